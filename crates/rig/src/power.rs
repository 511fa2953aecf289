//! Power and temperature of the machine: once without frames, and over each trial.

use std::{
    cell::RefCell,
    time::{Duration, Instant},
};

use failure::Stop;
use host::{PowerMeter, PowerSnapshot, Roots, POWER_GLANCE};
use measure::{
    power::{self, Power},
    result::HostFacts,
    trial::TrialRecord,
};

/// How long the machine without frames is measured.
const IDLE: Duration = Duration::from_secs(1);
/// How often a signal is looked for meanwhile.
const WAKE: Duration = Duration::from_millis(20);

/// The sensors of this machine, if it has any, and what it takes without frames.
pub(crate) struct MachinePower {
    meter: Option<PowerMeter>,
    /// In words: where power is read.
    sources: Option<String>,
    idle: Option<Power>,
}

impl MachinePower {
    pub(crate) fn find(roots: &Roots) -> Self {
        let meter = PowerMeter::find(roots);
        let sources = meter.describe();
        Self { meter: Some(meter).filter(|meter| !meter.is_empty()), sources, idle: None }
    }

    /// Measures the machine without frames, once. A machine without power sensors loses no time.
    pub(crate) fn measure_idle(&mut self, stop: &Stop) {
        let Some(meter) = self.meter.as_ref().filter(|meter| meter.measures_power() && self.idle.is_none()) else {
            return;
        };
        let before = meter.begin();
        let begun = Instant::now();
        while begun.elapsed() < IDLE {
            if stop.requested() {
                return;
            }
            std::thread::sleep(WAKE.min(IDLE.saturating_sub(begun.elapsed())));
        }
        self.idle = meter.over(&[before, meter.snapshot()]).as_ref().map(for_result);
    }

    /// The facts of the machine with what it takes without frames, if that was measured, and where power is read.
    pub(crate) fn add_to(&self, mut facts: HostFacts) -> HostFacts {
        facts.idle_power = self.idle.clone();
        facts.extra.extend(self.sources.iter().map(|sources| ("power".to_owned(), sources.clone())));
        facts
    }

    /// Begins a measurement of a trial.
    pub(crate) fn begin(&self) -> TrialPower<'_> {
        TrialPower {
            meter: self.meter.as_ref(),
            taken: RefCell::new(self.meter.iter().map(PowerMeter::begin).collect()),
        }
    }

    /// The power of a trial with its energy for each frame.
    pub(crate) fn of_trial(&self, power: Option<host::Power>, record: &TrialRecord) -> Option<Power> {
        let power = for_result(&power?);
        Some(power::of_trial(power, self.idle.as_ref(), record.received(), record.real_duration_s))
    }
}

/// What the sensors say over a trial: read by the thread that waits for it, never on an lcore.
pub(crate) struct TrialPower<'a> {
    meter: Option<&'a PowerMeter>,
    taken: RefCell<Vec<PowerSnapshot>>,
}

impl TrialPower<'_> {
    /// To be called now and then: in a long trial counters start again.
    pub(crate) fn look(&self) {
        let Some(meter) = self.meter else { return };
        let mut taken = self.taken.borrow_mut();
        if taken.last().is_some_and(|last| last.age() >= POWER_GLANCE) {
            taken.push(meter.glance());
        }
    }

    /// Ends the measurement.
    pub(crate) fn end(&self) -> Option<host::Power> {
        let meter = self.meter?;
        let mut taken = self.taken.borrow_mut();
        taken.push(meter.snapshot());
        meter.over(&taken)
    }
}

/// The figures in the form of the result: to a milliwatt.
fn for_result(power: &host::Power) -> Power {
    let round = |value: f64| (value * 1e3).round() / 1e3;
    let by_name = |values: &std::collections::BTreeMap<String, f64>| {
        values.iter().map(|(name, value)| (name.clone(), round(*value))).collect()
    };
    Power {
        measured_s: power.seconds,
        package_watts: power.watts_package.map(round),
        dram_watts: power.watts_dram.map(round),
        system_watts: power.watts_system.map(round),
        sensor_watts: by_name(&power.watts_by_sensor),
        temperatures_celsius: by_name(&power.temperatures_c),
        throttle_events: power.throttles,
        ..Power::default()
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    fn machine(energy_uj: u64) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let zone = dir.path().join("sys/class/powercap/intel-rapl:0");
        fs::create_dir_all(&zone).unwrap();
        fs::write(zone.join("name"), "package-0\n").unwrap();
        fs::write(zone.join("max_energy_range_uj"), "262143328850\n").unwrap();
        set(dir.path(), energy_uj);
        dir
    }

    fn set(root: &Path, energy_uj: u64) {
        fs::write(root.join("sys/class/powercap/intel-rapl:0/energy_uj"), format!("{energy_uj}\n")).unwrap();
    }

    #[test]
    fn the_idle_machine_is_measured_once_and_a_trial_between_two_readings() {
        let dir = machine(1_000_000);
        let mut power = MachinePower::find(&Roots::at(dir.path()));
        assert_eq!(power.sources.as_deref(), Some("package: intel-rapl"));
        // A signal ends the wait.
        power.measure_idle(&Stop::simulated(true));
        assert_eq!(power.idle, None);
        let path = dir.path().to_owned();
        let counting = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            set(&path, 11_000_000);
        });
        power.measure_idle(&Stop::simulated(false));
        counting.join().unwrap();
        let idle = power.idle.clone().unwrap();
        let watts = idle.package_watts.unwrap();
        assert!(watts > 1.0 && watts <= 10.0, "10 J in a second or more: {watts}");
        assert!(idle.measured_s >= 1.0 && idle.frame_millijoules.is_none());
        let facts = power.add_to(HostFacts::default());
        assert_eq!((facts.idle_power, facts.extra["power"].as_str()), (Some(idle), "package: intel-rapl"));
        let begun = Instant::now();
        power.measure_idle(&Stop::simulated(false));
        assert!(begun.elapsed() < IDLE / 2);
        let trial = power.begin();
        trial.look();
        std::thread::sleep(Duration::from_millis(50));
        set(dir.path(), 12_000_000);
        let measured = trial.end().unwrap();
        assert!(measured.watts_package.is_some_and(|watts| watts > 0.0 && watts <= 20.0), "{measured:?}");
    }

    #[test]
    fn a_machine_without_sensors_loses_no_time() {
        let dir = tempfile::tempdir().unwrap();
        let mut power = MachinePower::find(&Roots::at(dir.path()));
        let begun = Instant::now();
        power.measure_idle(&Stop::simulated(false));
        assert!(begun.elapsed() < IDLE / 2);
        let trial = power.begin();
        trial.look();
        assert_eq!((trial.end(), power.idle, power.sources), (None, None, None));
    }
}
