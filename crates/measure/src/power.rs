//! Energy for each frame, from the power of a trial and that of the idle machine
//! (draft-ietf-bmwg-powerbench compares both).

pub use crate::schema::power::Power;

/// The least share of the measured time in which frames were sent: what else happened in it is not the frames' doing.
const LEAST_SENDING: f64 = 0.9;

/// What power is taken from: idle and loaded are compared by the same.
type Source = fn(&Power) -> Option<f64>;

/// The whole machine, else processors and memory, else processors.
const SOURCES: [Source; 3] = [|p| p.system_watts, |p| Some(p.package_watts? + p.dram_watts?), |p| p.package_watts];

/// The power of a trial with its energy for each frame. `received`: frames that came back, all directions together;
/// `sending_s`: how long sending took, seconds.
pub fn of_trial(power: Power, idle: Option<&Power>, received: u64, sending_s: f64) -> Power {
    let counts = received > 0 && sending_s >= LEAST_SENDING * power.measured_s;
    let each = |watts: f64| watts * 1e3 * sending_s / received as f64;
    let above = |idle: &Power| {
        let (loaded, idle) = SOURCES.iter().find_map(|of| of(&power).zip(of(idle)))?;
        Some(loaded - idle)
    };
    Power {
        frame_millijoules: watts(&power).filter(|_| counts).map(each),
        frame_above_idle_millijoules: idle.and_then(above).filter(|_| counts).map(each),
        ..power
    }
}

/// The power that energy is computed from: of the whole machine, else of processors and memory, else of processors.
pub fn watts(power: &Power) -> Option<f64> {
    SOURCES.iter().find_map(|of| of(power))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn power(package: Option<f64>, dram: Option<f64>, system: Option<f64>) -> Power {
        Power { measured_s: 1.0, package_watts: package, dram_watts: dram, system_watts: system, ..Power::default() }
    }

    fn energies(power: Power, idle: Option<&Power>, received: u64, sending_s: f64) -> (Option<f64>, Option<f64>) {
        let of = of_trial(power, idle, received, sending_s);
        (of.frame_millijoules, of.frame_above_idle_millijoules)
    }

    #[test]
    fn a_frame_takes_its_share_of_the_energy() {
        // The small router: 12 W idle, 17 W at 10 Mpps.
        let idle = power(Some(4.0), None, Some(12.0));
        let loaded = power(Some(8.0), Some(1.0), Some(17.0));
        assert_eq!(energies(loaded.clone(), Some(&idle), 10_000_000, 1.0), (Some(1.7e-3), Some(0.5e-3)));
        assert_eq!(energies(loaded.clone(), None, 10_000_000, 1.0), (Some(1.7e-3), None));
        // The idle machine's meter had no value: both by the processors.
        let no_meter = power(Some(4.0), None, None);
        assert_eq!(energies(loaded, Some(&no_meter), 10_000_000, 1.0), (Some(1.7e-3), Some(0.4e-3)));
        let servers = [power(Some(100.0), Some(20.0), None), power(Some(80.0), Some(10.0), None)];
        assert_eq!(watts(&servers[0]), Some(120.0));
        assert_eq!(energies(servers[0].clone(), Some(&servers[1]), 1_000_000, 1.0), (Some(0.12), Some(0.03)));
    }

    #[test]
    fn what_is_not_known_has_no_energy() {
        let loaded = power(Some(8.0), None, None);
        assert_eq!(energies(loaded.clone(), Some(&loaded), 0, 1.0), (None, None));
        assert_eq!(
            energies(loaded.clone(), Some(&loaded), 1_000, 0.5),
            (None, None),
            "half of the time was not sending"
        );
        assert_eq!(energies(power(None, Some(1.0), None), Some(&loaded), 1_000, 1.0), (None, None));
        // A machine that took less with frames than without: the difference is shown as it is.
        assert_eq!(energies(loaded, Some(&power(Some(9.0), None, None)), 1_000, 1.0), (Some(8.0), Some(-1.0)));
    }

    #[test]
    fn the_hottest_place_is_named() {
        let celsius = [("Package id 0", 61.0), ("eth0 asic", 70.0)].map(|(name, c)| (name.to_owned(), c));
        let power = Power { temperatures_celsius: celsius.into(), ..Power::default() };
        assert_eq!(power.hottest(), Some(("eth0 asic", 70.0)));
        assert_eq!(Power::default().hottest(), None);
        let json = serde_json::to_string(&Power { measured_s: 2.0, ..Power::default() }).unwrap();
        assert_eq!(json, r#"{"measured_s":2.0}"#, "what is not known is left out");
    }
}
