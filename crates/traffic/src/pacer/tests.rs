//! Frames due: never early, none lost.

use packet::{Clock, FakeClock};
use proptest::prelude::*;

use super::*;

const HZ: u64 = 2_600_000_000;

fn pacer(fps: f64, duration: u64) -> Pacer {
    Pacer::new(Fps::new(fps).unwrap(), HZ, duration, Pacer::default_catch_up(HZ))
}

#[test]
fn frames_are_due_when_they_are_due() {
    let mut p = pacer(1e6, HZ / 1000);
    p.start(1000);
    assert_eq!((p.intended(), p.due(999, 64)), (1000, 0));
    assert_eq!((p.due(1000, 64), p.due(1000 + 2599, 64), p.due(1000 + 2600, 64)), (1, 0, 1));
    assert_eq!(p.due(1000 + 26_000, 4), 4);
    assert_eq!((p.due(1000 + 26_000, 64), p.skipped()), (5, 0));
}

#[test]
fn a_stall_is_made_up_for_100_us_and_no_more() {
    let mut p = pacer(1e6, HZ);
    p.start(0);
    p.due(0, 64);
    let stall = HZ / 100;
    let given: usize = (0..10).map(|_| p.due(stall, 64)).sum();
    assert_eq!((given, p.skipped()), (100, 10_000 - 100));
}

#[test]
fn a_slow_rate_never_skips_for_lateness_alone() {
    let mut p = pacer(10.0, 10 * HZ);
    p.start(0);
    let given: usize = (0..=200).map(|i| p.due(i * HZ / 20 + HZ / 30, 64)).sum();
    assert_eq!((given, p.skipped(), p.finished()), (100, 0, true));
}

#[test]
fn a_rate_beyond_all_ports_is_counted_not_refused() {
    let mut p = pacer(1e30, HZ);
    p.start(0);
    let given = (0..=1000).map(|i| p.due(i * HZ / 1000, 64) as u64).sum::<u64>();
    p.stop(HZ);
    assert_eq!(given + p.skipped(), p.intended());
    assert_eq!(given, 1 + 64 * 1000);
}

#[test]
fn a_stop_before_the_start_leaves_nothing_due() {
    let mut p = pacer(1e6, HZ);
    assert_eq!(p.due(HZ, 64), 0);
    p.stop(HZ);
    assert_eq!((p.intended(), p.skipped(), p.finished()), (0, 0, true));
}

#[test]
fn a_stop_keeps_the_books() {
    let mut p = pacer(1e6, HZ);
    p.start(0);
    assert_eq!(p.due(0, 64) + p.due(2600 * 9, 64), 10);
    p.stop(2600 * 49);
    assert_eq!((p.intended(), p.skipped(), p.finished(), p.due(HZ, 64)), (50, 40, true, 0));
}

fn shaped(shape: Shape, fps: f64, duration: u64) -> Pacer {
    let mut p = Pacer::shaped(shape, Fps::new(fps).unwrap(), HZ, duration, Pacer::burst_catch_up(HZ));
    p.start(0);
    p
}

/// What is given at each of these ticks.
fn given<const N: usize>(p: &mut Pacer, at: [u64; N]) -> [usize; N] {
    at.map(|now| p.due(now, 1 << 20))
}

#[test]
fn a_burst_has_its_frames_whatever_the_rounding() {
    for (frames, fps) in [(1, 1e6), (7, 3.3e6), (64, 14_880_952.38), (1_000_003, 7.77e6)] {
        // The duration is that of the burst, not the one given.
        let mut p = shaped(Shape::Burst { frames }, fps, 5);
        assert_eq!(p.intended(), frames);
        let last = ((frames - 1) as f64 * HZ as f64 / fps).ceil() as u64;
        let steps = last / 20_000;
        let mut all: u64 = (0..=steps).map(|i| p.due(i * 20_000, 1 << 20) as u64).sum();
        assert_eq!(p.finished(), last == steps * 20_000);
        all += p.due(last, 1 << 20) as u64;
        assert_eq!((all, p.skipped(), p.finished()), (frames, 0, true), "{frames} at {fps}");
    }
}

#[test]
fn a_burst_that_cannot_be_sent_in_time_is_skipped() {
    // 1000 frames in 100 us; the tester takes 10 every 4 us.
    let mut p = shaped(Shape::Burst { frames: 1000 }, 10e6, HZ);
    let us = HZ / 1_000_000;
    let given: usize = (0..100).map(|i| p.due(i * 4 * us, 10)).sum();
    // One at first, then ten a poll, until 20 us behind the last frame's time: but one is never too late.
    assert_eq!((given, p.skipped(), p.finished()), (292, 708, true));
}

#[test]
fn bursts_begin_when_they_should_and_are_whole() {
    // 16 frames at 26 Mpps, 100 ticks apart, every 16,000 ticks.
    let bursts = Shape::Bursts { frames: 16, rate: Fps::new(26e6).unwrap() };
    let mut p = shaped(bursts, 2.6e6, 100_000);
    assert_eq!(p.intended(), 96, "six whole bursts of the 100 frames");
    let at = [0, 99, 100, 1500, 1501, 15_999, 16_000, 17_500, 31_999];
    assert_eq!(given(&mut p, at), [1, 0, 1, 14, 0, 0, 1, 15, 0]);
    // Late by a burst of 20 us at most: 52,000 ticks.
    assert_eq!(given(&mut p, [48_000 + 200]), [16 + 3]);
    assert_eq!((given(&mut p, [1 << 40]), p.skipped(), p.finished()), ([1], 96 - 52, true));
}

#[test]
fn bursts_no_faster_than_the_load_are_steady() {
    let mut p = shaped(Shape::Bursts { frames: 10, rate: Fps::ZERO }, 2.6e6, 100_000);
    let mut steady = pacer(2.6e6, 100_000);
    steady.start(0);
    for now in (0..100_000).step_by(333) {
        assert_eq!(p.due(now, 64), steady.due(now, 64), "{now}");
    }
}

#[test]
fn a_step_changes_the_rate_and_forgets_nothing() {
    let mut p = shaped(Shape::Step { after: 10_000, rate: Fps::new(260e3).unwrap() }, 2.6e6, 30_000);
    assert_eq!(p.intended(), 10 + 2);
    assert_eq!(given(&mut p, [0, 8_999, 9_000, 10_000, 19_999, 20_000, 30_000]), [1, 8, 1, 1, 0, 1, 0]);
    assert_eq!((p.skipped(), p.finished()), (0, true));
    // Frames of before the step are made up for behind it.
    let mut p = shaped(Shape::Step { after: 10_000, rate: Fps::ZERO }, 2.6e6, 30_000);
    assert_eq!((given(&mut p, [0, 12_000]), p.finished()), ([1, 9], true));
}

#[test]
fn absurd_shapes_end() {
    let fast = Fps::new(1e300).unwrap();
    for (shape, fps) in [
        (Shape::Burst { frames: u64::MAX }, 1e300),
        (Shape::Burst { frames: u64::MAX }, 1e-300),
        (Shape::Burst { frames: 0 }, 1.0),
        (Shape::Burst { frames: 9 }, 0.0),
        (Shape::Bursts { frames: 0, rate: fast }, 1e6),
        (Shape::Bursts { frames: u32::MAX, rate: fast }, 1e300),
        (Shape::Bursts { frames: 5, rate: fast }, 0.0),
        (Shape::Step { after: u64::MAX, rate: fast }, 1e300),
        (Shape::Step { after: 0, rate: fast }, 1.0),
    ] {
        for duration in [0, 1, HZ, u64::MAX] {
            let mut p = shaped(shape, fps, duration);
            let given: usize = [0, 1, HZ, u64::MAX - 1].map(|now| p.due(now, 64)).iter().sum();
            p.stop(u64::MAX);
            assert_eq!(given as u64 + p.skipped(), p.intended(), "{shape:?} {fps} {duration}");
        }
    }
}

fn any_shape() -> impl Strategy<Value = Shape> {
    let rate = || prop_oneof![Just(0.0), 1e3..1e8, 1e8..1e12].prop_map(Fps::from_raw);
    prop_oneof![
        Just(Shape::Steady),
        (1u64..1_000_000).prop_map(|frames| Shape::Burst { frames }),
        (1u32..5000, rate()).prop_map(|(frames, rate)| Shape::Bursts { frames, rate }),
        (0..HZ * 20, rate()).prop_map(|(after, rate)| Shape::Step { after, rate }),
    ]
}

proptest! {
    #[test]
    fn of_any_shape_given_and_skipped_are_intended_however_polls_fall(
        shape in any_shape(),
        fps in prop_oneof![0.0..100.0, 1e3..1e8, 1e8..1e12],
        duration in prop_oneof![1u64..1000, 1_000_000u64..HZ * 20],
        catch_up in prop_oneof![Just(0), 0u64..1_000_000_000],
        max in 1usize..200,
        steps in proptest::collection::vec(prop_oneof![1u64..100_000, 1u64..1 << 32], 1..100),
        to_the_end: bool,
    ) {
        let mut p = Pacer::shaped(shape, Fps::new(fps).unwrap(), HZ, duration, catch_up);
        let (mut now, intended) = (77, p.intended());
        p.start(now);
        if let Shape::Burst { frames } = shape {
            prop_assert_eq!(intended, if fps > 0.0 { frames } else { 0 });
        }
        let mut given = p.due(now, max) as u64;
        for step in steps {
            now += step;
            given += p.due(now, max) as u64;
            prop_assert!(given + p.skipped() <= intended);
        }
        if to_the_end {
            // The last frame due is never too late.
            now = u64::MAX / 4;
            given += p.due(now, usize::MAX) as u64;
            prop_assert!(p.finished());
            prop_assert!(given > 0 || intended == 0);
        }
        p.stop(now);
        prop_assert_eq!(given + p.skipped(), p.intended());
        prop_assert!(p.intended() <= intended);
        if to_the_end {
            prop_assert_eq!(p.intended(), intended);
        }
    }

    #[test]
    fn given_and_skipped_are_intended_however_polls_fall(
        fps in prop_oneof![0.0..100.0, 1e3..1e8, 1e8..1e12],
        duration in prop_oneof![1u64..1000, 1_000_000u64..HZ * 20],
        catch_up in 0u64..1_000_000_000,
        max in 1usize..200,
        steps in proptest::collection::vec(1u64..1 << 32, 1..100),
    ) {
        let clock = FakeClock::new(HZ);
        clock.advance(77);
        let mut p = Pacer::new(Fps::new(fps).unwrap(), HZ, duration, catch_up);
        p.start(clock.now());
        let want = (fps * duration as f64 / HZ as f64).round();
        prop_assert!((p.intended() as f64 - want).abs() <= 1.0);
        let mut given = p.due(clock.now(), max) as u64;
        for step in steps {
            clock.advance(step);
            given += p.due(clock.now(), max) as u64;
            prop_assert!(given + p.skipped() <= p.intended());
        }
        clock.advance(duration);
        for _ in 0..3 {
            given += p.due(clock.now(), max) as u64;
        }
        p.stop(clock.now());
        prop_assert_eq!(given + p.skipped(), p.intended());
        prop_assert!((p.intended() as f64 - want).abs() <= 1.0);
        prop_assert!(p.finished());
    }
}
