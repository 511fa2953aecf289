//! The counters of the last minute, one sample a second.

use std::{collections::VecDeque, time::Duration};

use dataplane::Snapshot;

/// Time between two samples.
const INTERVAL: Duration = Duration::from_secs(1);
/// Samples kept.
const SAMPLES: usize = 61;
/// The longest span that the samples cover.
pub(crate) const LONGEST: Duration = Duration::from_secs(60);

/// What every lcore had counted at one moment.
#[derive(Debug, Default)]
struct Sample {
    /// Time since the start.
    at: Duration,
    /// By lcore; empty at the start, when no loop has run.
    lcores: Vec<Snapshot>,
}

/// The samples of the last minute, oldest first, and the start.
#[derive(Debug)]
pub(crate) struct History {
    start: Sample,
    samples: VecDeque<Sample>,
}

impl History {
    pub(crate) fn new() -> Self {
        Self { start: Sample::default(), samples: VecDeque::with_capacity(SAMPLES) }
    }

    /// Whether a sample is due at this time since the start.
    pub(crate) fn is_due(&self, now: Duration) -> bool {
        now >= self.samples.back().map_or(Duration::ZERO, |sample| sample.at) + INTERVAL
    }

    /// Adds a sample; the oldest makes room.
    pub(crate) fn add(&mut self, at: Duration, lcores: Vec<Snapshot>) {
        while self.samples.len() >= SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(Sample { at, lcores });
    }

    /// The youngest counters that are at least `ago` old at `now`, with their time; `None`: those of the start. Where
    /// no sample is old enough, the start.
    pub(crate) fn before(&self, now: Duration, ago: Option<Duration>) -> (Duration, &[Snapshot]) {
        let found = ago.and_then(|ago| {
            let wanted = now.saturating_sub(ago);
            self.samples.iter().rev().find(|sample| sample.at <= wanted)
        });
        let sample = found.unwrap_or(&self.start);
        (sample.at, &sample.lcores)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_youngest_sample_that_is_old_enough_is_found() {
        let seconds = Duration::from_secs;
        let mut history = History::new();
        assert!(!history.is_due(Duration::from_millis(999)));
        for s in 1..=100 {
            assert!(history.is_due(seconds(s)));
            history.add(seconds(s), vec![Snapshot::default()]);
            assert!(!history.is_due(seconds(s)));
        }
        let at = |ago| history.before(Duration::from_millis(100_500), ago).0;
        assert_eq!(at(Some(seconds(1))), seconds(99));
        assert_eq!(at(Some(LONGEST)), seconds(40));
        assert_eq!(at(Some(seconds(90))), Duration::ZERO);
        assert_eq!(at(None), Duration::ZERO);
        assert!(history.before(seconds(100), None).1.is_empty());
    }
}
