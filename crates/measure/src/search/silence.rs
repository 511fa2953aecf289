//! Whether a DUT forwards at all: one that fell silent says nothing of the load it was offered.

use units::Fps;

use crate::trial::TrialRecord;

/// Checks in a row of which nothing came back: after so many the DUT is held to be gone.
const CHECKS: u32 = 5;

/// What is known of it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
enum Signs {
    #[default]
    Unknown,
    /// The first trial gave nothing; one at a low load decides.
    Doubted,
    Alive,
    /// It was alive, and a trial gave nothing: low loads are tried until one gives something.
    Silent,
}

/// What a valid trial says.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Sign {
    /// It is of the load: for the strategy to judge.
    Load,
    /// It is the first low load, and only shows that the DUT lives.
    Lives,
    /// It says nothing of its load.
    Nothing,
    /// Nor did the trials before it back to the last verdict: the DUT was away, and that verdict may be of its end.
    WasAway,
    /// Nothing came back in the first two.
    NoTraffic,
    /// It does not come back.
    Gone(String),
}

/// Tells a DUT that is away from a load that is too high for it: some forward nothing at all in overload.
#[derive(Debug, Clone, Default)]
pub(super) struct Silence {
    signs: Signs,
    checks: u32,
    /// Load of which most came back, and how much, frames/s.
    heard: Option<(Fps, f64)>,
    /// Trials in a row of which nothing came back.
    row: Vec<u32>,
    /// Loads at which it was silent once.
    tried: Vec<Fps>,
    /// The last of them, where the first check already gave something: it is tried again.
    again: Option<Fps>,
    /// Lowest load at which it was silent twice, and heard in between.
    mute: Option<Fps>,
    /// Trials that were made while it was away.
    away: Vec<u32>,
}

impl Silence {
    /// Whether a trial at a low load is to be made rather than the strategy's.
    pub fn checks(&self) -> bool {
        matches!(self.signs, Signs::Doubted | Signs::Silent)
    }

    /// The load of the check to be made, in turn a low one and that of which most came back before: a DUT that is away
    /// by moments may lose all of a low load, too.
    pub fn check_at(&self, low: Fps) -> Fps {
        self.heard.filter(|_| self.checks % 2 == 1).map_or(low, |(load, _)| load)
    }

    /// Takes a valid trial.
    pub fn sign(&mut self, trial: &TrialRecord) -> Sign {
        let (load, number) = (trial.spec.load_fps, trial.number);
        let received: u64 = trial.directions.iter().map(|d| d.received).sum();
        if received == 0 {
            self.row.push(number);
        }
        let rate = received as f64 / trial.real_duration_s;
        if received > 0 && self.heard.is_none_or(|(_, most)| rate > most) {
            self.heard = Some((load, rate));
        }
        match self.signs {
            Signs::Doubted if received == 0 => Sign::NoTraffic,
            Signs::Doubted => {
                self.signs = Signs::Alive;
                Sign::Lives
            }
            Signs::Silent if received == 0 => {
                self.checks += 1;
                if self.checks < CHECKS {
                    Sign::Nothing
                } else {
                    Sign::Gone(self.gone())
                }
            }
            Signs::Silent if self.checks > 0 => self.was_away(),
            Signs::Silent => {
                self.signs = Signs::Alive;
                Sign::Nothing
            }
            Signs::Unknown | Signs::Alive if received > 0 => {
                self.signs = Signs::Alive;
                let again = self.again.take_if(|again| *again == load);
                if again.is_some() {
                    self.was_away()
                } else {
                    Sign::Load
                }
            }
            Signs::Alive if self.tried.contains(&load) || self.mute.is_some_and(|mute| load >= mute) => {
                self.mute = Some(self.mute.map_or(load, |mute| if load < mute { load } else { mute }));
                Sign::Load
            }
            signs => {
                self.signs = if signs == Signs::Unknown { Signs::Doubted } else { Signs::Silent };
                (self.checks, self.row, self.again) = (0, vec![number], Some(load));
                self.tried.push(load);
                Sign::Nothing
            }
        }
    }

    fn was_away(&mut self) -> Sign {
        self.away.append(&mut self.row);
        (self.signs, self.again) = (Signs::Alive, None);
        Sign::WasAway
    }

    fn gone(&self) -> String {
        let (first, last) = (self.row.first().copied().unwrap_or(0), self.row.last().copied().unwrap_or(0));
        format!(
            "the device fell silent: nothing came back from trial {first} on (trials {first} to {last}), the last \
             {CHECKS} of them at low loads and at one that it forwarded: see whether it still runs"
        )
    }

    /// What to say of the trials that were made while the DUT was away, if any.
    pub fn note(&self) -> Option<String> {
        let (&first, &last) = (self.away.first()?, self.away.last()?);
        let (which, what) = match self.away.len() {
            1 => (format!("trial {first}"), "it is"),
            n if last - first + 1 == n as u32 => (format!("trials {first} to {last}"), "they are"),
            n => (format!("{n} trials, from {first} to {last}"), "they are"),
        };
        Some(format!(
            "nothing came back in {which}, and then something did: {what} not counted against the device, whose loads were \
             tried again"
        ))
    }
}
