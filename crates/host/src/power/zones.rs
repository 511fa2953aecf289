//! Energy counters of processors: RAPL (running average power limit), by Intel's driver, which also serves AMD's.

use super::sensor::{Counter, Sensor};
use crate::{Fact, Roots};

const POWERCAP: &str = "/sys/class/powercap";
/// More than a processor or its memory takes, and more than a machine takes, watts.
pub(super) const MOST_PACKAGE_W: f64 = 1_500.0;
const MOST_MACHINE_W: f64 = 5_000.0;

/// The counters there are.
#[derive(Debug, Default)]
pub(super) struct Zones {
    /// Of each processor, or of each die of one.
    pub(super) package: Vec<Counter>,
    /// Of the memory of each processor.
    pub(super) dram: Vec<Counter>,
    /// Of the whole machine (`psys`): one, or none.
    pub(super) platform: Vec<Counter>,
    /// Those that cannot be read, and why not.
    pub(super) unreadable: Vec<String>,
}

impl Zones {
    /// `/sys/class/powercap/intel-rapl:N`, and `intel-rapl:N:M` for parts of N. The zones of `intel-rapl-mmio` count the same
    /// energy again. Most kernels show the energy to root only.
    pub(super) fn find(roots: &Roots) -> Self {
        let mut zones = Self::default();
        for zone in roots.names(POWERCAP).iter().filter(|zone| zone.starts_with("intel-rapl:")) {
            let at = format!("{POWERCAP}/{zone}");
            let Some(name) = roots.fact(format!("{at}/name")).known() else { continue };
            let (list, most_w) = match name.as_str() {
                name if name.starts_with("package") => (&mut zones.package, MOST_PACKAGE_W),
                name if name.starts_with("dram") => (&mut zones.dram, MOST_PACKAGE_W),
                // More than one would be of the same machine.
                name if name.starts_with("psys") && zones.platform.is_empty() => (&mut zones.platform, MOST_MACHINE_W),
                _ => continue,
            };
            match Sensor::open(roots, &format!("{at}/energy_uj")) {
                Fact::Known(energy) => {
                    let range = roots.value(format!("{at}/max_energy_range_uj"));
                    list.push(Counter::new(name, "intel-rapl", energy, range, most_w));
                }
                Fact::Unreadable(why) => zones.unreadable.push(format!("{name} of intel-rapl: {why}")),
                Fact::Absent => {}
            }
        }
        zones
    }
}
