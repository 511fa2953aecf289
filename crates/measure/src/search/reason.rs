//! Why a search ended as it did, and what its trials showed of the device.

use std::fmt;

use units::{Fps, Ratio};

use crate::attempts::GivenUp;

/// What to say of a search beside its outcome. The text of each is a part of one line.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// It was given up.
    GivenUp(GivenUp),
    /// Even the lowest load did not meet the goal.
    BelowMinimum,
    /// The tester offered no load in full.
    NotOffered,
    /// The interval is wider than asked.
    Precision {
        /// Largest relative width asked for.
        asked: Ratio,
        /// Relative width reached.
        reached: Ratio,
        /// Passes made.
        passes: usize,
    },
    /// The device forwards less in overload than just above its capacity.
    Degrades {
        /// Received per second at `load`.
        forwards: Fps,
        /// The highest load.
        load: Fps,
        /// Received per second just above the capacity.
        just_above: Fps,
    },
    /// Received per second in a high overload is more than just above the capacity: what was measured later was slower.
    Slower {
        /// Received per second at `load`.
        forwards: Fps,
        /// The highest load.
        load: Fps,
        /// Received per second just above the capacity.
        just_above: Fps,
    },
    /// The kernel forwards in the calls by which the tester sends.
    InCalls {
        /// What the tester sends over a pair of such interfaces alone.
        alone: Option<Fps>,
    },
    /// The kernel waits in the calls by which the tester sends: it holds them until frames may go.
    Holds {
        /// A load a little lower.
        load: Fps,
        /// The share of the time in which the tester was busy at it, 0 to 1.
        busy: Ratio,
    },
    /// An outside device stood still for moments in trials that passed.
    Paused {
        /// Frames that it lost then.
        lost: u64,
        /// The share of the time of these trials, 0 to 1.
        share: f64,
    },
    /// The device was down during these trials; they were discarded.
    WasDown {
        /// Their numbers, in order; at least one.
        trials: Vec<u32>,
    },
}

/// The reasons in one line; `None` when there are none.
pub(super) fn line(reasons: &[Reason]) -> Option<String> {
    let texts: Vec<_> = reasons.iter().map(Reason::to_string).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

impl From<GivenUp> for Reason {
    fn from(why: GivenUp) -> Self {
        Self::GivenUp(why)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GivenUp(why) => why.fmt(f),
            Self::BelowMinimum => f.write_str(
                "even the lowest load tried did not meet the goal: lower search.lower, or search.upper with a finer \
                 search.precision",
            ),
            Self::NotOffered => f.write_str("the tester could not offer even the lowest load in full"),
            Self::Precision { asked, reached, passes } => {
                write!(f, "precision: asked {asked}, reached {reached}")?;
                // A search that halves makes one.
                if *passes > 1 { write!(f, " in {passes} passes") } else { Ok(()) }
            }
            Self::Degrades { forwards, load, just_above } => write!(
                f,
                "the device forwards {forwards} at {load} and {just_above} just above its capacity: it degrades in overload"
            ),
            Self::Slower { forwards, load, just_above } => write!(
                f,
                "the device forwards {forwards} at {load} and {just_above} just above its capacity: it became slower, or its \
                 directions differ"
            ),
            Self::InCalls { alone } => {
                f.write_str("the kernel forwards in the tester's own calls, so the device sets the load that is offered")?;
                alone.map_or(Ok(()), |alone| {
                    write!(
                        f,
                        " and no load fails; the upper end leaves out the tester's own part of each call ({alone} over such \
                         interfaces without a device)"
                    )
                })
            }
            Self::Holds { load, busy } => write!(
                f,
                "the device holds the tester's calls until frames may go, so no load fails: what it lets through is its rate (the \
                 tester is always busy at it, and {busy} of the time at {load})"
            ),
            Self::Paused { lost, share } => write!(
                f,
                "the device stood still for {:.2} % of the time in trials that passed, and lost {lost} frames then: set aside, \
                 since the device or its host was away",
                share * 100.0
            ),
            Self::WasDown { trials } => {
                let (first, last) = (trials.first().copied().unwrap_or(0), trials.last().copied().unwrap_or(0));
                let (which, what) = match trials.len() {
                    1 => (format!("trial {first}"), "it was"),
                    n if last - first + 1 == n as u32 => (format!("trials {first} to {last}"), "they were"),
                    n => (format!("{n} trials, from {first} to {last}"), "they were"),
                };
                write!(f, "the device was down: nothing came back in {which}; {what} discarded, and their loads tried again")
            }
        }
    }
}
