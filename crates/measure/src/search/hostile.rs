//! Searches by slices of devices, clocks and testers that do what spoils figures: none may give a narrow wrong interval.

use units::Fps;

use super::{for_config, reason::Reason, world::World, Answer, Search, SearchConfig, Step};
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

/// One thing odd or several: delays that drift, batches of milliseconds, a clock that steps, copies, a bucket of tokens.
fn odd_device(rng: &mut Rng) -> Device {
    let rate = 0.2e6 + 20e6 * rng.share();
    let mut sometimes = |what: f64| if rng.share() < 0.5 { 0.0 } else { what * rng.share() };
    let (batch, drift) = (1 + sometimes(60.0) as usize, sometimes(1e-3) - sometimes(1e-3));
    let step = (sometimes(1000.0) as usize, sometimes(1e-3) - sometimes(1e-3));
    let twice = sometimes(0.5);
    let polices = sometimes(1.0) > 0.0 && batch == 1;
    // A bucket that lasts for a whole trial hides any overload from it; a full buffer shows in the delay.
    let buffer_s = sometimes(if polices { 3e-3 } else { 3e-2 });
    // A batch has to fit, or the device loses frames at any load.
    let buffer = (rate * buffer_s).max(128.0).max(2.0 * rate * 1e-4 * batch as f64);
    Device { batch, drift, step, twice, polices, ..Device::new(rate, buffer, 1e-5) }
}

#[test]
fn odd_devices_and_clocks_yield_no_narrow_wrong_interval() {
    let (mut wrong, runs) = (Vec::new(), 150);
    for seed in 0..runs {
        let mut rng = Rng::new(seed ^ 0x0dd);
        let device = odd_device(&mut rng);
        let tester_away = if rng.share() < 0.3 { 0.0 } else { 0.5 * rng.share() };
        for method in ALL {
            let mut world = World { device, tester_away, ..World::new(device.rate, 0.0, seed) };
            let (lower, upper) = ends(&world.find(method), device.rate);
            // By more than this, not once; by more than 1 %, in one of several hundred.
            assert!(lower <= 1.05 && upper >= 0.95, "{method:?} {seed} {device:?}: {lower} to {upper}");
            if lower > 1.01 || upper < 0.99 {
                wrong.push((method, seed, lower, upper));
            }
        }
    }
    assert!(wrong.len() <= 2, "of {}: {wrong:?}", runs * 3);
}

#[test]
fn a_device_of_which_most_slices_have_no_frame_yields_no_narrow_wrong_interval() {
    for method in ALL {
        let mut shown = 0;
        for seed in 0..30 {
            // 200 to 50,000 frames a second.
            let rate = 200.0 * 250f64.powf(Rng::new(seed).share());
            let mut world = match seed % 3 {
                0 => World::new(rate, 64.0, seed),
                1 => World { tester_away: 0.3, ..World::new(rate, 64.0, seed) },
                _ => World::noisy(rate, 64.0, seed),
            };
            world.device.polices = seed % 2 == 0;
            let answer = world.find(method);
            let ends = answer.interval.map_or([None; 2], |found| [found.lower_fps, found.upper_fps]);
            let both = ends.iter().all(Option::is_some);
            // MLRsearch knows what its trials of 0.1 s show, to some frames. One end alone makes no narrow interval.
            let frames = if method == Method::Mlrsearch { 6.0 / (rate * 0.1) } else { 0.0 };
            let within = if both { frames.max(0.01) } else { 0.05 };
            assert_honest(&answer, rate, within, &format!("{method:?} {seed} {rate}"));
            let quiet = world.tester_away == 0.0;
            assert!(both || !quiet || method != Method::Rfc2544, "{seed} {rate}: {answer:?}");
            shown += u32::from(ends.iter().any(Option::is_some));
        }
        let least = if method == Method::Mlrsearch { 3 } else { 25 };
        assert!(shown >= least, "{method:?}: {shown}");
    }
}

#[test]
fn a_slow_device_is_kept_busy_by_a_load_that_suits_it_before_the_first_step() {
    let mut world = World::new(1_200.0, 64.0, 1);
    world.device.polices = true;
    world.find(Method::Mlrsearch);
    // Its bucket lets 64 frames more through in 0.1 s.
    let second = world.asked[1].0;
    assert!(world.asked[0].0 > 29e6 && (7.0e3..7.7e3).contains(&second), "{:?}", &world.asked[..3]);
    // One that the first overload tells the rate of is not overloaded again.
    let mut world = World::new(1.2e6, 64.0, 1);
    world.find(Method::Mlrsearch);
    assert!(world.asked[1].0 < 1.3e6, "{:?}", &world.asked[..3]);
}

#[test]
fn one_trial_that_loses_nearly_all_decides_nothing() {
    for lost in [1, 2] {
        let mut world = World::new(50e6, 512.0, 1);
        let config = SearchConfig { max_trials: 60, ..world.config(Method::Tst009) };
        let mut search = for_config(config);
        let mut number = 0;
        while let Step::Run(spec) = search.next() {
            let mut trial = world.run(&spec);
            // Not the overload that comes first.
            if (1..=lost).contains(&number) {
                let d = &mut trial.directions[0];
                (d.received, d.lost) = (d.sent / 20, d.sent - d.sent / 20);
                trial.evidence = None;
            }
            number += 1;
            search.report(&trial);
        }
        let answer = search.so_far();
        assert_eq!(answer.upper_bound.is_some(), lost == 2, "{lost}: {answer:?}");
    }
}

#[test]
fn a_silent_device_is_asked_at_a_hundredth_of_the_load_by_every_method() {
    for method in ALL {
        let mut world = World::new(0.0, 0.0, 1);
        world.device.polices = true;
        let answer = world.find(method);
        assert_eq!(answer.outcome, Outcome::NoTraffic, "{method:?} {answer:?}");
        let second = world.asked[1].0;
        assert!((0.29e6..0.4e6).contains(&second), "{method:?}: {:?}", world.asked);
    }
}

#[test]
fn a_search_that_halves_says_how_far_it_came() {
    let find = |most: u32| {
        let mut world = World::new(7.777e6, 128.0, 1);
        let config = SearchConfig { max_trials: most, ..world.config(Method::Tst009) };
        let mut search = for_config(config);
        loop {
            match search.next() {
                Step::Done(answer) => break answer,
                Step::Run(spec) => search.report(&world.run(&spec)),
            }
        }
    };
    let width = |answer: &Answer| answer.interval.unwrap().relative_width().unwrap();
    let missed = |answer: &Answer| -> Vec<(f64, f64, usize)> {
        let of = |reason: &Reason| match reason {
            Reason::Precision { asked, reached, passes } => Some((asked.get(), reached.get(), *passes)),
            _ => None,
        };
        answer.reasons.iter().filter_map(of).collect()
    };
    let short = find(5);
    assert_eq!((short.outcome, missed(&short).len()), (Outcome::Found, 1), "{short:?}");
    let (asked, reached, passes) = missed(&short)[0];
    assert_eq!((reached, passes), (width(&short), 1));
    // A share of the highest load is a larger one of this device's.
    assert!(asked < reached && (0.005..0.05).contains(&asked), "{asked} {reached}");
    let whole = find(900);
    assert!(width(&whole) < reached && missed(&whole).is_empty(), "{whole:?}");
}

/// What a method finds where the tester offers this share of loads below the rate, by the number of the trial.
fn found_by_a_tester_that_misses_moments(method: Method, offers: impl Fn(u32) -> f64) -> Answer {
    let mut world = World::new(7.777e6, 128.0, 3);
    let mut search = for_config(world.config(method));
    while let Step::Run(spec) = search.next() {
        let mut trial = world.run(&spec);
        let share = if spec.load_fps.get() < 7.777e6 { offers(trial.number) } else { 1.0 };
        if let Some(e) = trial.evidence.as_mut() {
            e.offered_fps = Fps::from_raw(e.offered_fps.get() * share);
        }
        search.report(&trial);
    }
    search.so_far()
}

#[test]
fn a_tester_that_misses_moments_of_a_load_is_not_the_limit() {
    for method in [Method::Tst009, Method::Mlrsearch] {
        let answer = found_by_a_tester_that_misses_moments(method, |_| 0.99);
        assert_eq!(answer.outcome, Outcome::Found, "{method:?}: {answer:?}");
        let (lower, upper) = ends(&answer, 7.777e6);
        // A step of TST009 is 4 % here.
        assert!((0.92..1.0).contains(&lower) && (1.0..1.02).contains(&upper), "{method:?}: {lower} {upper}");
    }
}

#[test]
fn a_load_of_which_the_tester_missed_a_moment_is_made_again_where_it_would_count_a_step_lower() {
    let bounds = |answer: Answer| (answer.throughput, answer.upper_bound, answer.trials.len());
    let never = found_by_a_tester_that_misses_moments(Method::Tst009, |_| 1.0);
    for kept in 0..3 {
        let shares =
            |kept_share: f64, other: f64| move |number: u32| if number % 3 == kept { kept_share } else { other };
        let at_times = found_by_a_tester_that_misses_moments(Method::Tst009, shares(1.0, 0.99));
        assert_eq!(bounds(at_times), bounds(never.clone()), "{kept}");
        // Where it always misses some, the trial counts of which it missed the least.
        let always = found_by_a_tester_that_misses_moments(Method::Tst009, shares(0.99, 0.98));
        assert_eq!(always.best_trial.map(|number| number % 3), Some(kept), "{always:?}");
    }
    // Goals of MLRsearch leave the share open instead, in the same time.
    let never = found_by_a_tester_that_misses_moments(Method::Mlrsearch, |_| 1.0);
    let always = found_by_a_tester_that_misses_moments(Method::Mlrsearch, |_| 0.99);
    assert_eq!((always.invalid_trials, always.trials.len()), (0, never.trials.len()));
}
