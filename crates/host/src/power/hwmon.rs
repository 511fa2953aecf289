//! Sensors of the kernel's hardware monitoring: `Documentation/hwmon/sysfs-interface.rst` has the names and units of files.
//!
//! A server's own power meter is that of its management controller. ACPI hands its readings to the kernel (driver
//! `acpi_power_meter`, sensor `power_meter`): no `ipmitool` is needed.

use super::{
    sensor::{Counter, Gauge, Sensor},
    zones::MOST_PACKAGE_W,
};
use crate::Roots;

const HWMON: &str = "/sys/class/hwmon";
/// The most other sensors of power that are read.
const MOST_SENSORS: usize = 16;
/// Graphics processors forward no frames.
const GRAPHICS: [&str; 5] = ["amdgpu", "i915", "nouveau", "radeon", "xe"];

/// The sensors there are.
#[derive(Debug, Default)]
pub(super) struct Sensors {
    /// The energy of each processor (`amd_energy`).
    pub(super) package: Vec<Counter>,
    /// The power of the whole machine.
    pub(super) machine: Option<Gauge>,
    /// Other sensors of power, such as `ina226` at a supply of a board.
    pub(super) power: Vec<Gauge>,
    /// Temperatures by name, in thousandths of a degree Celsius.
    pub(super) temperatures: Vec<(String, Sensor)>,
}

/// One chip.
struct Chip<'a> {
    roots: &'a Roots,
    at: String,
    /// The driver's name of it.
    name: String,
    /// The network interface that it belongs to.
    interface: Option<String>,
    files: Vec<String>,
}

impl Sensors {
    pub(super) fn find(roots: &Roots) -> Self {
        let mut sensors = Self::default();
        let number = |name: &String| name.strip_prefix("hwmon")?.parse::<u32>().ok();
        let mut names = roots.names(HWMON);
        names.sort_by_key(number);
        for name in names {
            let at = format!("{HWMON}/{name}");
            let Some(name) = roots.fact(format!("{at}/name")).known() else { continue };
            let interface = roots.names(format!("{at}/device/net")).into_iter().next();
            let chip = Chip { roots, name, interface, files: roots.names(&at), at };
            sensors.add_temperatures(&chip);
            sensors.add_power(&chip);
        }
        sensors.power.truncate(MOST_SENSORS);
        sensors
    }

    /// Those of processors and of network interfaces.
    fn add_temperatures(&mut self, chip: &Chip<'_>) {
        let mut found: Vec<(Option<String>, u32)> =
            chip.numbers("temp", "_input").into_iter().map(|n| (chip.label("temp", n), n)).collect();
        match chip.name.as_str() {
            _ if chip.interface.is_some() => {}
            "coretemp" => found.retain(|(label, _)| {
                label.as_ref().is_some_and(|label| label.starts_with("Package id") || label.starts_with("Physical id"))
            }),
            // The die's own figure is the control figure less a constant of the model.
            "k10temp" | "zenpower" => {
                let of = |wanted: &str| found.iter().find(|(label, _)| label.as_deref() == Some(wanted)).cloned();
                found = of("Tctl").or_else(|| of("Tdie")).or(found.first().cloned()).into_iter().collect();
            }
            "cpu_thermal" => {}
            _ => found.clear(),
        }
        for (label, n) in found {
            let Some(sensor) = Sensor::open(chip.roots, &format!("{}/temp{n}_input", chip.at)).known() else {
                continue;
            };
            let name = match (&chip.interface, label) {
                (None, Some(label)) if chip.name == "coretemp" => label,
                (_, label) => chip.sensor_name(label),
            };
            let name = unique(name, self.temperatures.iter().map(|(name, _)| name.as_str()));
            self.temperatures.push((name, sensor));
        }
    }

    fn add_power(&mut self, chip: &Chip<'_>) {
        if chip.name == "amd_energy" {
            for n in chip.numbers("energy", "_input") {
                let Some(label) = chip.label("energy", n).filter(|label| label.starts_with("Esocket")) else {
                    continue;
                };
                let energy = Sensor::open(chip.roots, &format!("{}/energy{n}_input", chip.at)).known();
                self.package.extend(energy.map(|e| Counter::new(label, &chip.name, e, None, MOST_PACKAGE_W)));
            }
            return;
        }
        // The power of a transceiver is that of its light.
        if GRAPHICS.contains(&chip.name.as_str()) || chip.name.starts_with("sfp") {
            return;
        }
        for n in chip.all("power") {
            let Some(mut gauge) = chip.gauge(n) else { continue };
            if chip.name != "power_meter" {
                gauge.name = unique(gauge.name, self.power.iter().map(|gauge| gauge.name.as_str()));
                self.power.push(gauge);
            } else if self.machine.is_none()
                && chip.roots.value::<u32>(format!("{}/power{n}_is_battery", chip.at)) != Some(1)
            {
                self.machine = Some(gauge);
            }
        }
    }
}

impl Chip<'_> {
    /// The numbers of the sensors that have this file, in order.
    fn numbers(&self, kind: &str, ending: &str) -> Vec<u32> {
        let number = |file: &String| file.strip_prefix(kind)?.strip_suffix(ending)?.parse().ok();
        let mut numbers: Vec<u32> = self.files.iter().filter_map(number).collect();
        numbers.sort_unstable();
        numbers
    }

    /// The numbers of the meters of power.
    fn all(&self, kind: &str) -> Vec<u32> {
        let mut numbers = [self.numbers(kind, "_average"), self.numbers(kind, "_input")].concat();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    fn label(&self, kind: &str, n: u32) -> Option<String> {
        self.roots.fact(format!("{}/{kind}{n}_label", self.at)).known().filter(|label| !label.is_empty())
    }

    /// The interface, or else the chip; and which of its sensors.
    fn sensor_name(&self, label: Option<String>) -> String {
        let of = self.interface.as_ref().unwrap_or(&self.name);
        label.map_or_else(|| of.clone(), |label| format!("{of} {label}"))
    }

    /// A meter of power: by its averages if it has them, else by what it reads at the moment.
    fn gauge(&self, n: u32) -> Option<Gauge> {
        let open = |file: &str| Sensor::open(self.roots, &format!("{}/power{n}_{file}", self.at)).known();
        let name = self.sensor_name(self.label("power", n));
        match open("average") {
            Some(average) => Some(Gauge::new(name, average, open("average_interval"))),
            None => open("input").map(|power| Gauge::new(name, power, None)),
        }
    }
}

/// The name, with a number behind it if another one has it.
fn unique<'a>(name: String, taken: impl Iterator<Item = &'a str>) -> String {
    let taken: Vec<&str> = taken.collect();
    let numbered = (2..).map(|n| format!("{name} {n}"));
    let free = std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains(&name.as_str()));
    free.unwrap_or(name)
}
