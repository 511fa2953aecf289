//! Liveness of the device: a trial without received frames counts for its load only if the device was alive then.
//!
//! If the device answered earlier, a trial without received frames does not count for its load. Checks at a low load
//! follow.

use units::Fps;

use super::reason::Reason;
use crate::{
    attempts::{GivenUp, SILENT_CHECKS},
    schema::trial::TrialRecord,
};

/// What is known of it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
enum State {
    #[default]
    Unknown,
    /// No frame of the first trial was received; a trial at a low load decides.
    Doubted,
    Alive,
    /// It was alive, and no frame of a trial was received: low loads are tried until frames are.
    Silent,
}

/// What a valid trial says.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Sign {
    /// It counts for its load: the strategy judges it.
    Load,
    /// It is the first at a low load, and only shows that the device is alive.
    Alive,
    /// It does not count for its load.
    Nothing,
    /// The device was down in the trials since the last verdict. That verdict may be of the trial in which it went down.
    WasDown,
    /// No frame of the first two was received.
    NoTraffic,
    /// The device does not come back.
    Gone(GivenUp),
}

/// Tells a device that is down from a load that is too high for it: some devices forward nothing in overload.
#[derive(Debug, Clone, Default)]
pub(super) struct Liveness {
    state: State,
    checks: u32,
    /// The load at which most frames/s were received, and how many.
    heard: Option<(Fps, f64)>,
    /// Trials in a row without a received frame.
    row: Vec<u32>,
    /// Loads at which it was silent once.
    tried: Vec<Fps>,
    /// The last of them, where the first check already gave something: it is tried again.
    again: Option<Fps>,
    /// Lowest load at which it was silent twice, and heard in between.
    mute: Option<Fps>,
    /// Trials that were made while it was down.
    down: Vec<u32>,
}

impl Liveness {
    /// Whether a trial at a low load is to be made rather than the strategy's.
    pub fn checks(&self) -> bool {
        matches!(self.state, State::Doubted | State::Silent)
    }

    /// The load of the check to be made, in turn a low one and that of which most came back before: a DUT that is away
    /// by moments may lose all of a low load, too.
    pub fn check_at(&self, low: Fps) -> Fps {
        self.heard.filter(|_| self.checks % 2 == 1).map_or(low, |(load, _)| load)
    }

    /// Takes a valid trial.
    pub fn sign(&mut self, trial: &TrialRecord) -> Sign {
        let (load, number) = (trial.spec.load_fps, trial.number);
        let received = trial.received();
        if received == 0 {
            self.row.push(number);
        }
        let rate = received as f64 / trial.real_duration_s;
        if received > 0 && self.heard.is_none_or(|(_, most)| rate > most) {
            self.heard = Some((load, rate));
        }
        match self.state {
            State::Doubted if received == 0 => Sign::NoTraffic,
            State::Doubted => {
                self.state = State::Alive;
                Sign::Alive
            }
            State::Silent if received == 0 => {
                self.checks += 1;
                if self.checks < SILENT_CHECKS {
                    Sign::Nothing
                } else {
                    Sign::Gone(self.gone())
                }
            }
            State::Silent if self.checks > 0 => self.was_down(),
            State::Silent => {
                self.state = State::Alive;
                Sign::Nothing
            }
            State::Unknown | State::Alive if received > 0 => {
                self.state = State::Alive;
                let again = self.again.take_if(|again| *again == load);
                if again.is_some() {
                    self.was_down()
                } else {
                    Sign::Load
                }
            }
            State::Alive if self.tried.contains(&load) || self.mute.is_some_and(|mute| load >= mute) => {
                self.mute = Some(self.mute.map_or(load, |mute| if load < mute { load } else { mute }));
                Sign::Load
            }
            state => {
                self.state = if state == State::Unknown { State::Doubted } else { State::Silent };
                (self.checks, self.row, self.again) = (0, vec![number], Some(load));
                self.tried.push(load);
                Sign::Nothing
            }
        }
    }

    fn was_down(&mut self) -> Sign {
        self.down.append(&mut self.row);
        (self.state, self.again) = (State::Alive, None);
        Sign::WasDown
    }

    fn gone(&self) -> GivenUp {
        let (first, last) = (self.row.first().copied().unwrap_or(0), self.row.last().copied().unwrap_or(0));
        GivenUp::Gone { first, last }
    }

    /// The trials that were made while the device was down, if any.
    pub fn note(&self) -> Option<Reason> {
        (!self.down.is_empty()).then(|| Reason::WasDown { trials: self.down.clone() })
    }
}
