//! Power and temperature of the machine: energy counters of its processors, its power meter, thermal sensors.

mod hwmon;
mod sensor;
#[cfg(test)]
mod tests;
mod throttles;
mod zones;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use crate::Roots;
use hwmon::Sensors;
use sensor::{Counter, Gauge, Reading, Sensor};
use throttles::Throttles;
use zones::Zones;

/// A power meter whose readings are the mean of more than this is used only where no counter is.
const SHORT_AVERAGE: Duration = Duration::from_secs(1);

/// How often the counters of a long measurement are to be read: RAPL's of a busy processor start again after a minute or
/// later.
pub const POWER_GLANCE: Duration = Duration::from_secs(20);

/// What the machine took over a time. What is not known is `None` or left out, never 0.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Power {
    /// The time, seconds.
    pub seconds: f64,
    /// Mean power of all processors (RAPL `package`, or `amd_energy`), watts.
    pub watts_package: Option<f64>,
    /// Mean power of their memory (RAPL `dram`), watts.
    pub watts_dram: Option<f64>,
    /// Power of the whole machine, watts: its power meter (ACPI) at the end, or RAPL `psys` as a mean.
    pub watts_system: Option<f64>,
    /// Power at other sensors of the board (hwmon) at the end, watts, by name.
    pub watts_by_sensor: BTreeMap<String, f64>,
    /// The highest temperature seen, degrees Celsius: `Package id 0` of a processor, `eth0 asic` of a NIC.
    pub temperatures_c: BTreeMap<String, f64>,
    /// Thermal throttle events of all cores and processors.
    pub throttles: Option<u64>,
}

/// The sensors of a machine for power and temperature.
///
/// A reading takes a few microseconds for each counter, and up to some milliseconds for sensors behind a firmware. RAPL is
/// read on a CPU of the processor that it counts for, which interrupts that CPU. Read it before and after frames pass.
#[derive(Debug)]
pub struct PowerMeter {
    package: Vec<Counter>,
    dram: Vec<Counter>,
    platform: Vec<Counter>,
    machine: Option<Gauge>,
    sensors: Vec<Gauge>,
    temperatures: Vec<(String, Sensor)>,
    throttles: Throttles,
    unreadable: Vec<String>,
}

/// What all sensors say at a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct PowerSnapshot {
    at: Instant,
    package_uj: Vec<Option<u64>>,
    dram_uj: Vec<Option<u64>>,
    platform_uj: Vec<Option<u64>>,
    machine: Option<Reading>,
    sensors: Vec<Option<Reading>>,
    temperatures_c: Vec<Option<f64>>,
    throttles: Option<u64>,
}

impl PowerSnapshot {
    fn nothing() -> Self {
        Self {
            at: Instant::now(),
            package_uj: Vec::new(),
            dram_uj: Vec::new(),
            platform_uj: Vec::new(),
            machine: None,
            sensors: Vec::new(),
            temperatures_c: Vec::new(),
            throttles: None,
        }
    }

    /// How long ago it was taken.
    pub fn age(&self) -> Duration {
        self.at.elapsed()
    }
}

/// From one snapshot to the next.
struct Step<'a> {
    before: &'a PowerSnapshot,
    after: &'a PowerSnapshot,
    elapsed: Duration,
}

impl PowerMeter {
    /// Looks for sensors, and opens those that can be read.
    ///
    /// The power of the whole machine comes from its power meter if this averages over a second or less, else from RAPL's
    /// `psys`, else from a power meter that averages over longer.
    pub fn find(roots: &Roots) -> Self {
        let (mut zones, sensors) = (Zones::find(roots), Sensors::find(roots));
        let short = |gauge: &Gauge| zones.platform.is_empty() || gauge.averaged() <= SHORT_AVERAGE;
        let machine = sensors.machine.filter(short);
        if machine.is_some() {
            zones.platform.clear();
        }
        Self {
            // Both are the same counters of the processor.
            package: if zones.package.is_empty() { sensors.package } else { zones.package },
            dram: zones.dram,
            platform: zones.platform,
            machine,
            sensors: sensors.power,
            temperatures: sensors.temperatures,
            throttles: Throttles::find(roots),
            unreadable: zones.unreadable,
        }
    }

    /// Whether the machine has none of these sensors: most virtual machines.
    pub fn is_empty(&self) -> bool {
        !self.measures_power() && self.temperatures.is_empty() && self.throttles.is_empty()
    }

    /// Whether any sensor is one of power.
    pub fn measures_power(&self) -> bool {
        let counters = self.package.len() + self.dram.len() + self.platform.len();
        counters + self.sensors.len() > 0 || self.machine.is_some()
    }

    /// Where power is read, in words; `None` if nowhere: `package: intel-rapl; system: power_meter`.
    pub fn describe(&self) -> Option<String> {
        let counted = |what, counters: &[Counter]| {
            counters.first().map(|counter| match counter.name.starts_with(what) {
                true => format!("{what}: {}", counter.source),
                false => format!("{what}: {} {}", counter.source, counter.name),
            })
        };
        let parts = [
            counted("package", &self.package),
            counted("dram", &self.dram),
            counted("system", &self.platform),
            self.machine.as_ref().map(|gauge| format!("system: {}", gauge.name)),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().chain(self.unreadable.iter().cloned()).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// Reads all sensors before a measurement: the energy counters last, since other sensors may take their time.
    pub fn begin(&self) -> PowerSnapshot {
        let slow = self.slow(PowerSnapshot::nothing());
        self.energy(slow)
    }

    /// Reads all sensors: the energy counters first.
    pub fn snapshot(&self) -> PowerSnapshot {
        self.slow(self.glance())
    }

    /// Reads the energy counters only: within a long measurement, every [`POWER_GLANCE`].
    pub fn glance(&self) -> PowerSnapshot {
        self.energy(PowerSnapshot::nothing())
    }

    /// The snapshot with the energy counters of now.
    fn energy(&self, snapshot: PowerSnapshot) -> PowerSnapshot {
        let read = |counters: &[Counter]| counters.iter().map(Counter::read).collect();
        PowerSnapshot {
            at: Instant::now(),
            package_uj: read(&self.package),
            dram_uj: read(&self.dram),
            platform_uj: read(&self.platform),
            ..snapshot
        }
    }

    /// The snapshot with all other sensors of now.
    fn slow(&self, snapshot: PowerSnapshot) -> PowerSnapshot {
        // A sensor that is not there reads 0.
        let celsius = |(_, sensor): &(String, Sensor)| sensor.read().filter(|mc| *mc != 0).map(|mc| mc as f64 / 1e3);
        PowerSnapshot {
            machine: self.machine.as_ref().and_then(Gauge::read),
            sensors: self.sensors.iter().map(Gauge::read).collect(),
            temperatures_c: self.temperatures.iter().map(celsius).collect(),
            throttles: self.throttles.read(),
            ..snapshot
        }
    }

    /// What the machine took between two snapshots of this meter.
    pub fn between(&self, before: &PowerSnapshot, after: &PowerSnapshot, elapsed: Duration) -> Power {
        self.over_steps(&[Step { before, after, elapsed }])
    }

    /// What the machine took from the first to the last of these snapshots. The counters may start again between any two
    /// that follow each other. `None` with fewer than two.
    pub fn over(&self, snapshots: &[PowerSnapshot]) -> Option<Power> {
        let step = |(before, after)| Step { before, after, elapsed: after.at.duration_since(before.at) };
        let steps: Vec<Step<'_>> = snapshots.iter().zip(snapshots.iter().skip(1)).map(step).collect();
        (!steps.is_empty()).then(|| self.over_steps(&steps))
    }

    fn over_steps(&self, steps: &[Step<'_>]) -> Power {
        let elapsed: Duration = steps.iter().map(|step| step.elapsed).sum();
        let ends = steps.first().zip(steps.last()).map(|(first, last)| (first.before, last.after));
        let snapshots = || steps.iter().flat_map(|step| [step.before, step.after]);
        let watts = |reading: Option<Reading>| reading?.within(elapsed);
        let gauge = |(i, gauge): (usize, &Gauge)| {
            let reading = ends.and_then(|(_, last)| *last.sensors.get(i)?);
            Some((gauge.name.clone(), watts(reading)?))
        };
        let hottest = |(i, (name, _)): (usize, &(String, Sensor))| {
            let seen = snapshots().filter_map(|snapshot| *snapshot.temperatures_c.get(i)?);
            Some((name.clone(), seen.reduce(f64::max)?))
        };
        Power {
            seconds: elapsed.as_secs_f64(),
            watts_package: mean_watts(&self.package, steps, |snapshot| &snapshot.package_uj),
            watts_dram: mean_watts(&self.dram, steps, |snapshot| &snapshot.dram_uj),
            watts_system: watts(ends.and_then(|(_, last)| last.machine))
                .or_else(|| mean_watts(&self.platform, steps, |snapshot| &snapshot.platform_uj)),
            watts_by_sensor: self.sensors.iter().enumerate().filter_map(gauge).collect(),
            temperatures_c: self.temperatures.iter().enumerate().filter_map(hottest).collect(),
            throttles: ends.and_then(|(first, last)| last.throttles?.checked_sub(first.throttles?)),
        }
    }
}

/// The mean power of these counters together. One that says nothing leaves all of them without a figure: a part is not the
/// whole.
fn mean_watts(counters: &[Counter], steps: &[Step<'_>], of: fn(&PowerSnapshot) -> &Vec<Option<u64>>) -> Option<f64> {
    let mut joules = 0.0;
    for Step { before, after, elapsed } in steps {
        for (i, counter) in counters.iter().enumerate() {
            let read = |snapshot| of(snapshot).get(i).copied().flatten();
            joules += counter.joules(read(before)?, read(after)?, *elapsed)?;
        }
    }
    let seconds: f64 = steps.iter().map(|step| step.elapsed.as_secs_f64()).sum();
    (!counters.is_empty() && seconds > 0.0).then(|| joules / seconds)
}
