//! One figure of the kernel that is read again and again: counters of energy, and meters of power.

use std::{fs::File, os::unix::fs::FileExt, time::Duration};

use crate::{Fact, Roots};

/// A file with one number. It stays open: a later reading is one system call.
#[derive(Debug)]
pub(super) struct Sensor(File);

impl Sensor {
    /// Opens a file, by its whole path, that holds a number now.
    pub(super) fn open(roots: &Roots, path: &str) -> Fact<Self> {
        match roots.fact(path) {
            Fact::Known(text) if text.parse::<i64>().is_ok() => File::open(roots.of_machine(path)).map(Self).into(),
            Fact::Known(text) => Fact::Unreadable(format!("{text:?} is not a number")),
            Fact::Absent => Fact::Absent,
            Fact::Unreadable(why) => Fact::Unreadable(why),
        }
    }

    /// The number now; `None` if the device is gone or does not answer.
    pub(super) fn read(&self) -> Option<i64> {
        let mut bytes = [0; 32];
        let length = self.0.read_at(&mut bytes, 0).ok()?;
        std::str::from_utf8(bytes.get(..length)?).ok()?.trim().parse().ok()
    }
}

/// A counter of energy in microjoules.
#[derive(Debug)]
pub(super) struct Counter {
    /// What it counts, such as `package-0`.
    pub(super) name: String,
    /// The driver behind it.
    pub(super) source: String,
    energy: Sensor,
    /// Where it starts again from zero; `None` of a counter of 64 bits.
    range_uj: Option<u64>,
    /// More than what it counts can take, watts.
    most_w: f64,
}

impl Counter {
    pub(super) fn new(name: String, source: &str, energy: Sensor, range_uj: Option<u64>, most_w: f64) -> Self {
        Self { name, source: source.to_owned(), energy, range_uj, most_w }
    }

    /// Microjoules so far.
    pub(super) fn read(&self) -> Option<u64> {
        self.energy.read()?.try_into().ok()
    }

    /// Joules between two readings. `None` if the counter did not move, moved by more than is possible, or may have passed its
    /// range more than once: such a counter says nothing.
    pub(super) fn joules(&self, before: u64, after: u64, elapsed: Duration) -> Option<f64> {
        let most_j = self.most_w * elapsed.as_secs_f64();
        let joules = |uj: u64| uj as f64 / 1e6;
        if self.range_uj.is_some_and(|range| joules(range) < most_j) {
            return None;
        }
        let moved = match after.checked_sub(before) {
            Some(moved) => moved,
            None => self.range_uj?.checked_sub(before)?.checked_add(after)?,
        };
        (moved > 0 && joules(moved) <= most_j).then(|| joules(moved))
    }
}

/// A meter of power.
#[derive(Debug)]
pub(super) struct Gauge {
    /// What it measures.
    pub(super) name: String,
    power: Sensor,
    /// The time that its readings are the mean of.
    averaged: Option<Sensor>,
}

/// One reading of a [`Gauge`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Reading {
    watts: f64,
    averaged: Duration,
}

impl Gauge {
    /// `averaged`: the file with the averaging interval in milliseconds, if there is one.
    pub(super) fn new(name: String, power: Sensor, averaged: Option<Sensor>) -> Self {
        Self { name, power, averaged }
    }

    /// The time that a reading is the mean of; zero if the meter does not say.
    pub(super) fn averaged(&self) -> Duration {
        let ms = self.averaged.as_ref().and_then(Sensor::read).and_then(|ms| ms.try_into().ok());
        Duration::from_millis(ms.unwrap_or(0))
    }

    /// Watts now. A meter without a value says 0, which no running machine takes.
    pub(super) fn read(&self) -> Option<Reading> {
        let uw = self.power.read().filter(|uw| *uw > 0)?;
        Some(Reading { watts: uw as f64 / 1e6, averaged: self.averaged() })
    }
}

impl Reading {
    /// Its watts, if they are the mean of no longer a time than this.
    pub(super) fn within(self, elapsed: Duration) -> Option<f64> {
        (self.averaged <= elapsed).then_some(self.watts)
    }
}
