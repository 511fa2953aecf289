//! Searches by slices of devices, clocks and testers that do what spoils figures: none may give a narrow wrong interval.

use proptest::prelude::*;
use units::Fps;

use super::{world::World, Answer};
use crate::{evidence::model::Device, plan::Method, result::Outcome, sim::Rng};

const ALL: [Method; 3] = [Method::Rfc2544, Method::Tst009, Method::Mlrsearch];

/// Lower and upper end of what was shown, over the truth; where nothing was, the widest.
fn ends(answer: &Answer, truth: f64) -> (f64, f64) {
    let found = answer.interval.unwrap();
    let over = |fps: Option<Fps>, none| fps.map_or(none, |fps| fps.get() / truth);
    (over(found.lower_fps, 0.0), over(found.upper_fps, f64::INFINITY))
}

/// An interval that holds the truth, within this share; or one so wide that nobody takes it for the answer.
#[track_caller]
fn assert_honest(answer: &Answer, truth: f64, within: f64, what: &str) {
    let (lower, upper) = ends(answer, truth);
    let holds = lower <= 1.0 + within && upper >= 1.0 - within;
    assert!(holds, "{what}: {lower} to {upper}: {answer:?}");
}

#[test]
fn every_method_finds_quiet_policers_and_shapers() {
    for method in ALL {
        for (rate, buffer) in [(7.777e6, 128.0), (0.9e6, 900.0), (3e6, 30_000.0)] {
            let answer = World::new(rate, buffer, 1).find(method);
            let (lower, upper) = ends(&answer, rate);
            assert_eq!(answer.outcome, Outcome::Found, "{method:?} {answer:?}");
            // What a method asks of its precision, of the highest load where it is TST009.
            let width = if method == Method::Rfc2544 { 0.005 } else { 0.3e6 / rate + 0.03 };
            assert!(lower > 1.0 - width && lower <= 1.002, "{method:?} {rate}: {lower} {upper}");
            assert!((0.998..1.0 + width).contains(&upper), "{method:?} {rate}: {lower} {upper}");
        }
    }
}

#[test]
fn every_method_finds_policers_while_everybody_is_away_by_moments() {
    for method in ALL {
        let mut found = 0;
        for seed in 0..20 {
            let rate = 0.3e6 + 20e6 * Rng::new(seed).share();
            let answer = World::noisy(rate, (rate * 1e-4).max(128.0), seed).find(method);
            assert_honest(&answer, rate, 0.005, &format!("{method:?} {seed}"));
            found += u32::from(answer.outcome == Outcome::Found);
            // With a bucket of tokens no delay tells.
            let mut policer = World::noisy(rate, rate * 5e-4, seed);
            policer.device.polices = true;
            assert_honest(&policer.find(method), rate, 0.005, &format!("policer, {method:?} {seed}"));
        }
        assert!(found >= 18, "{method:?}: {found} of 20");
    }
}

#[test]
fn a_policer_with_a_deep_bucket_is_not_taken_for_one_that_degrades() {
    for method in ALL {
        for (rate, bucket_s) in [(0.2e6, 29e-3), (1e6, 50e-3), (5e6, 20e-3), (9.3e6, 1e-3)] {
            let mut world = World::new(rate, rate * bucket_s, 3);
            world.device.polices = true;
            let answer = world.find(method);
            assert_honest(&answer, rate, 0.005, &format!("{method:?} {bucket_s}"));
            let (lower, _) = ends(&answer, rate);
            assert!(method != Method::Rfc2544 || lower > 0.99, "{bucket_s}: {answer:?}");
        }
    }
}

#[test]
fn a_tester_that_is_the_limit_is_named_by_every_method() {
    for method in ALL {
        let mut world = World { tester: 9e6, tester_away: 0.3, ..World::new(12e6, 512.0, 4) };
        let answer = world.find(method);
        assert_eq!(answer.outcome, Outcome::TesterLimited, "{method:?} {answer:?}");
        let (lower, upper) = ends(&answer, 9e6);
        assert!(lower > 0.8 && lower <= 1.002 && upper.is_infinite(), "{method:?}: {lower} {upper}");
    }
}

fn odd_device() -> impl Strategy<Value = Device> {
    let plain = (0.2e6f64..20e6, prop_oneof![Just(0.0), 1e-4f64..3e-2]);
    let odd = (
        prop_oneof![Just(1usize), 2usize..60],
        prop_oneof![Just(0.0), -5e-4f64..5e-4],
        prop_oneof![Just((usize::MAX, 0.0)), (0usize..1000, -1e-3f64..1e-3)],
        prop_oneof![Just(0.0), 0.0f64..0.5],
        any::<bool>(),
    );
    (plain, odd).prop_map(|((rate, buffer_s), (batch, drift, step, twice, polices))| {
        // A bucket that lasts for a whole trial hides any overload from it; a full buffer shows in the delay.
        let buffer_s = if polices { f64::min(buffer_s, 3e-3) } else { buffer_s };
        // A batch has to fit, or the device loses frames at any load.
        let buffer = (rate * buffer_s).max(128.0).max(2.0 * rate * 1e-4 * batch as f64);
        let polices = polices && batch == 1;
        Device { batch, drift, step, twice, polices, ..Device::new(rate, buffer, 1e-5) }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    /// Delays that drift, batches of milliseconds, clocks that step, copies, a tester that is away half of the time.
    #[test]
    fn odd_devices_and_clocks_yield_no_narrow_wrong_interval(
        device in odd_device(), away in prop_oneof![Just(0.0), 0.0f64..0.5], seed in any::<u64>(),
    ) {
        for method in ALL {
            let mut world = World { device, tester_away: away, ..World::new(device.rate, 0.0, seed) };
            let answer = world.find(method);
            assert_honest(&answer, device.rate, 0.01, &format!("{method:?} {device:?} {away}"));
        }
    }
}
