//! Meters of hand-made machines.

use std::{fs, path::Path};

use super::*;
use crate::Recording;

/// Two processors with memory, a power meter that averages over 5 minutes, and a NIC with two sensors.
const SERVER: &str = "linerate machine 1
/sys/class/powercap/intel-rapl:0/name = package-0
/sys/class/powercap/intel-rapl:0/energy_uj = 1000000
/sys/class/powercap/intel-rapl:0/max_energy_range_uj = 262143328850
/sys/class/powercap/intel-rapl:0:0/name = dram
/sys/class/powercap/intel-rapl:0:0/energy_uj = 500000
/sys/class/powercap/intel-rapl:0:0/max_energy_range_uj = 65712999613
/sys/class/powercap/intel-rapl:0:1/name = core
/sys/class/powercap/intel-rapl:0:1/energy_uj = 77
/sys/class/powercap/intel-rapl:1/name = package-1
/sys/class/powercap/intel-rapl:1/energy_uj = 262142328850
/sys/class/powercap/intel-rapl:1/max_energy_range_uj = 262143328850
/sys/class/powercap/intel-rapl:1:0/name = dram
/sys/class/powercap/intel-rapl:1:0/energy_uj = 600000
/sys/class/powercap/intel-rapl:1:0/max_energy_range_uj = 65712999613
/sys/class/powercap/intel-rapl-mmio:0/name = package-0
/sys/class/powercap/intel-rapl-mmio:0/energy_uj = 1000000
/sys/class/hwmon/hwmon0/name = power_meter
/sys/class/hwmon/hwmon0/power1_average = 184000000
/sys/class/hwmon/hwmon0/power1_average_interval = 300000
/sys/class/hwmon/hwmon0/power1_is_battery = 0
/sys/class/hwmon/hwmon2/name = coretemp
/sys/class/hwmon/hwmon2/temp1_label = Package id 0
/sys/class/hwmon/hwmon2/temp1_input = 61000
/sys/class/hwmon/hwmon2/temp2_label = Core 0
/sys/class/hwmon/hwmon2/temp2_input = 63000
/sys/class/hwmon/hwmon10/name = coretemp
/sys/class/hwmon/hwmon10/temp1_label = Package id 1
/sys/class/hwmon/hwmon10/temp1_input = 58000
/sys/class/hwmon/hwmon3/name = mlx5
/sys/class/hwmon/hwmon3/device/net/enp59s0f0/
/sys/class/hwmon/hwmon3/temp1_label = asic
/sys/class/hwmon/hwmon3/temp1_input = 70000
/sys/class/hwmon/hwmon3/temp2_label = Module0
/sys/class/hwmon/hwmon3/temp2_input = 0
/sys/class/hwmon/hwmon4/name = nvme
/sys/class/hwmon/hwmon4/temp1_input = 40000
/sys/devices/system/cpu/cpu{0,2}/topology/thread_siblings_list = 0,2
/sys/devices/system/cpu/cpu{1,3}/topology/thread_siblings_list = 1,3
/sys/devices/system/cpu/cpu{0-3}/topology/core_siblings_list = 0-3
/sys/devices/system/cpu/cpu{0-3}/thermal_throttle/core_throttle_count = 5
/sys/devices/system/cpu/cpu{0-3}/thermal_throttle/package_throttle_count = 2
";

/// Counters that root alone reads, and the same by `amd_energy`.
const AMD: &str = "linerate machine 1
/sys/class/powercap/intel-rapl:0/name = package-0
/sys/class/powercap/intel-rapl:0/energy_uj ! needs root
/sys/class/powercap/intel-rapl:0/max_energy_range_uj = 65532610987
/sys/class/hwmon/hwmon0/name = k10temp
/sys/class/hwmon/hwmon0/temp1_label = Tctl
/sys/class/hwmon/hwmon0/temp1_input = 55125
/sys/class/hwmon/hwmon0/temp3_label = Tccd1
/sys/class/hwmon/hwmon0/temp3_input = 51000
/sys/class/hwmon/hwmon1/name = k10temp
/sys/class/hwmon/hwmon1/temp1_label = Tctl
/sys/class/hwmon/hwmon1/temp1_input = 50000
/sys/class/hwmon/hwmon2/name = amd_energy
/sys/class/hwmon/hwmon2/energy1_label = Ecore000
/sys/class/hwmon/hwmon2/energy1_input = 9000000
/sys/class/hwmon/hwmon2/energy2_label = Esocket0
/sys/class/hwmon/hwmon2/energy2_input = 40000000
/sys/class/hwmon/hwmon2/energy3_label = Esocket1
/sys/class/hwmon/hwmon2/energy3_input = 30000000
";

/// One processor, the whole machine's counter, a board's own sensor, graphics, a transceiver.
const LAPTOP: &str = "linerate machine 1
/sys/class/powercap/intel-rapl:0/name = package-0
/sys/class/powercap/intel-rapl:0/energy_uj = 10
/sys/class/powercap/intel-rapl:0/max_energy_range_uj = 262143328850
/sys/class/powercap/intel-rapl:1/name = psys
/sys/class/powercap/intel-rapl:1/energy_uj = 100
/sys/class/powercap/intel-rapl:1/max_energy_range_uj = 262143328850
/sys/class/hwmon/hwmon0/name = ina226
/sys/class/hwmon/hwmon0/power1_input = 4500000
/sys/class/hwmon/hwmon1/name = ina226
/sys/class/hwmon/hwmon1/power1_label = 12 V
/sys/class/hwmon/hwmon1/power1_input = 0
/sys/class/hwmon/hwmon2/name = amdgpu
/sys/class/hwmon/hwmon2/power1_average = 9000000
/sys/class/hwmon/hwmon3/name = sfp_1
/sys/class/hwmon/hwmon3/power1_input = 500
";

struct Machine(tempfile::TempDir);

impl Machine {
    fn of(text: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Recording::parse(text).unwrap().unpack(dir.path()).unwrap();
        Self(dir)
    }

    fn meter(&self) -> PowerMeter {
        PowerMeter::find(&Roots::at(self.0.path()))
    }

    fn set(&self, path: &str, value: impl ToString) {
        fs::write(self.0.path().join("sys").join(path), value.to_string() + "\n").unwrap();
    }

    fn remove(&self, path: &str) {
        let path = self.0.path().join("sys").join(path);
        let removed = if Path::is_dir(&path) { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        removed.unwrap();
    }
}

const TWO_S: Duration = Duration::from_secs(2);

#[test]
fn a_server_adds_up_its_processors_and_their_counters_start_again() {
    let machine = Machine::of(SERVER);
    let meter = machine.meter();
    assert!(meter.measures_power() && !meter.is_empty());
    let before = meter.begin();
    machine.set("class/powercap/intel-rapl:0/energy_uj", 201_000_000);
    machine.set("class/powercap/intel-rapl:0:0/energy_uj", 20_500_000);
    machine.set("class/powercap/intel-rapl:1/energy_uj", 159_000_000);
    machine.set("class/powercap/intel-rapl:1:0/energy_uj", 10_600_000);
    machine.set("class/hwmon/hwmon2/temp1_input", 60_000);
    machine.set("class/hwmon/hwmon10/temp1_input", 71_500);
    machine.set("devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", 8);
    machine.set("devices/system/cpu/cpu3/thermal_throttle/core_throttle_count", 8);
    let power = meter.between(&before, &meter.snapshot(), TWO_S);
    // 200 J and, over the end of the range, 160 J; 20 J and 10 J.
    let near = |watts: Option<f64>, wanted: f64| assert!((watts.unwrap() - wanted).abs() < 1e-9, "{watts:?}");
    near(power.watts_package, 180.0);
    near(power.watts_dram, 15.0);
    // An average over five minutes is not of these two seconds.
    assert_eq!(power.watts_system, None);
    let temperatures = [("Package id 0", 61.0), ("Package id 1", 71.5), ("enp59s0f0 asic", 70.0)];
    assert_eq!(power.temperatures_c, temperatures.map(|(name, c)| (name.to_owned(), c)).into());
    assert_eq!((power.throttles, power.seconds), (Some(3), 2.0));
    let long = meter.between(&before, &meter.snapshot(), Duration::from_secs(300));
    assert_eq!(
        (long.watts_system, long.watts_package),
        (Some(184.0), None),
        "the counters may have started again twice"
    );
    assert_eq!(meter.describe().unwrap(), "package: intel-rapl; dram: intel-rapl; system: power_meter");
    machine.set("class/hwmon/hwmon0/power1_average_interval", 1000);
    assert_eq!(meter.between(&before, &meter.snapshot(), TWO_S).watts_system, Some(184.0));
}

#[test]
fn amd_has_the_same_counters_and_its_own() {
    let machine = Machine::of(AMD);
    let meter = machine.meter();
    assert_eq!(meter.describe().unwrap(), "package: amd_energy Esocket0; package-0 of intel-rapl: needs root");
    let before = meter.begin();
    machine.set("class/hwmon/hwmon2/energy2_input", 240_000_000);
    machine.set("class/hwmon/hwmon2/energy3_input", 230_000_000);
    let power = meter.between(&before, &meter.snapshot(), TWO_S);
    assert_eq!((power.watts_package, power.watts_dram, power.watts_system), (Some(200.0), None, None));
    assert_eq!(power.temperatures_c, [("k10temp Tctl".to_owned(), 55.125), ("k10temp Tctl 2".to_owned(), 50.0)].into());
    assert_eq!(power.throttles, None);
    // What root reads is read in place of it.
    machine.remove("class/powercap/intel-rapl:0/energy_uj");
    machine.set("class/powercap/intel-rapl:0/energy_uj", 65_532_000_000u64);
    let meter = machine.meter();
    let before = meter.begin();
    machine.set("class/powercap/intel-rapl:0/energy_uj", 99_389_013);
    let power = meter.between(&before, &meter.snapshot(), Duration::from_secs(1));
    assert_eq!(power.watts_package, Some(100.0));
}

#[test]
fn a_laptop_counts_all_of_itself() {
    let machine = Machine::of(LAPTOP);
    let meter = machine.meter();
    assert_eq!(meter.describe().unwrap(), "package: intel-rapl; system: intel-rapl psys");
    let before = meter.begin();
    machine.set("class/powercap/intel-rapl:0/energy_uj", 12_000_010);
    machine.set("class/powercap/intel-rapl:1/energy_uj", 34_000_100);
    let power = meter.between(&before, &meter.snapshot(), TWO_S);
    assert_eq!((power.watts_package, power.watts_system), (Some(6.0), Some(17.0)));
    assert_eq!(power.watts_by_sensor, [("ina226".to_owned(), 4.5)].into());
    // A meter of the machine that averages over a second is better than a counter of most of it; a battery is not one.
    for (file, value) in [("name", "power_meter"), ("power1_average", "21000000"), ("power1_average_interval", "1000")]
    {
        fs::create_dir_all(machine.0.path().join("sys/class/hwmon/hwmon9")).unwrap();
        machine.set(&format!("class/hwmon/hwmon9/{file}"), value);
    }
    let meter = machine.meter();
    assert_eq!(meter.between(&meter.begin(), &meter.snapshot(), TWO_S).watts_system, Some(21.0));
    machine.set("class/hwmon/hwmon9/power1_is_battery", 1);
    assert_eq!(machine.meter().describe().unwrap(), "package: intel-rapl; system: intel-rapl psys");
}

#[test]
fn what_says_nothing_is_not_zero() {
    let machine = Machine::of(LAPTOP);
    let meter = machine.meter();
    let before = meter.begin();
    let still = meter.between(&before, &meter.snapshot(), TWO_S);
    assert_eq!((still.watts_package, still.watts_system), (None, None));
    // A counter that was reset is not one that passed its range, and one that is gone says nothing.
    machine.set("class/powercap/intel-rapl:0/energy_uj", 5);
    machine.set("class/powercap/intel-rapl:1/energy_uj", "");
    let odd = meter.between(&before, &meter.snapshot(), TWO_S);
    assert_eq!((odd.watts_package, odd.watts_system), (None, None));
    assert_eq!(meter.over(&[]), None);
    assert_eq!(meter.over(std::slice::from_ref(&before)), None);
    let none = Machine::of("linerate machine 1\n/sys/devices/system/cpu/cpu0/online = 1\n").meter();
    assert!(none.is_empty() && !none.measures_power());
    assert_eq!(none.describe(), None);
    assert_eq!(none.between(&none.begin(), &none.snapshot(), TWO_S), Power { seconds: 2.0, ..Power::default() });
}

#[test]
fn a_long_measurement_is_read_between() {
    let machine = Machine::of(LAPTOP);
    let meter = machine.meter();
    let begun = meter.begin();
    let later = |snapshot: PowerSnapshot, s: u64| PowerSnapshot { at: begun.at + Duration::from_secs(s), ..snapshot };
    let mut snapshots = vec![begun.clone()];
    // 100 W for 10,000 s: the counter starts again three times.
    for n in 1..=100u64 {
        machine.set("class/powercap/intel-rapl:0/energy_uj", (10 + n * 10_000_000_000) % 262_143_328_850);
        let snapshot = if n < 100 { meter.glance() } else { meter.snapshot() };
        snapshots.push(later(snapshot, n * 100));
    }
    let power = meter.over(&snapshots).unwrap();
    assert!((power.watts_package.unwrap() - 100.0).abs() < 1e-6, "{power:?}");
    assert_eq!((power.seconds, power.watts_by_sensor.len()), (10_000.0, 1));
    assert!(begun.age() < Duration::from_secs(600));
    // Without the readings between, the counter says nothing.
    let ends = [snapshots[0].clone(), snapshots[100].clone()];
    assert_eq!(meter.over(&ends).unwrap().watts_package, None);
}

#[test]
fn this_machine_is_read() {
    let meter = PowerMeter::find(&Roots::default());
    let power = meter.over(&[meter.begin(), meter.snapshot()]).unwrap();
    assert!(power.watts_package.is_none_or(|watts| watts > 0.0));
}
