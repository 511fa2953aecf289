//! What a device lost in pauses that were set aside, over the trials that passed.

use super::reason::Reason;
use crate::schema::evidence::SliceEvidence;

/// Pauses of trials that passed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Pauses {
    lost: u64,
    stalled_s: f64,
    /// Of these trials.
    total_s: f64,
}

impl Pauses {
    /// Adds those of a trial that passed.
    pub fn see(&mut self, e: &SliceEvidence) {
        self.lost += e.stalled_lost;
        self.stalled_s += e.stalled_s;
        self.total_s += e.clean_s + e.aside_s;
    }

    /// What to say of them: a reader has to know of frames that do not count.
    pub fn note(&self) -> Option<Reason> {
        (self.lost > 0).then(|| Reason::Paused { lost: self.lost, share: self.stalled_s / self.total_s })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_lost_in_pauses_of_all_trials_are_told() {
        let of = |stalled_lost, stalled_s| SliceEvidence {
            stalled_lost,
            stalled_s,
            clean_s: 0.09,
            aside_s: 0.01,
            ..SliceEvidence::default()
        };
        let mut pauses = Pauses::default();
        assert_eq!(pauses.note(), None);
        pauses.see(&of(0, 0.0005));
        assert_eq!(pauses.note(), None, "nothing was lost");
        pauses.see(&of(70, 0.0003));
        pauses.see(&of(30, 0.0004));
        let Some(Reason::Paused { lost, share }) = pauses.note() else { panic!("{pauses:?}") };
        assert!(lost == 100 && (share - 0.004).abs() < 1e-12, "{share}");
        insta::assert_snapshot!(pauses.note().unwrap(), @"the device stood still for 0.40 % of the time in trials that passed, and lost 100 frames then: set aside, since the device or its host was away");
    }
}
