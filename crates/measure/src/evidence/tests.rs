//! Slices of devices whose truth is known: a fluid model of a device with a rate and a buffer, and hand-made absences.

use super::{
    model::{trial, Device, SLICE},
    *,
};
use crate::schema::timeline::{Absence, Party, Slice};

fn shown(timeline: &Timeline) -> SliceEvidence {
    let seconds = timeline.directions[0].len() as f64 * SLICE;
    of(timeline, seconds, Watch::Known, 1).unwrap()
}

fn off(found: Option<Saturation>, truth: f64) -> f64 {
    (found.unwrap().fps.get() / truth - 1.0).abs()
}

const POLICER: Device = Device::new(7.777e6, 128.0, 3e-7);
/// 10 ms of buffer.
const SHAPER: Device = Device::new(5e6, 50_000.0, 1e-5);

#[test]
fn an_overloaded_device_shows_its_rate_whatever_the_tester_does() {
    let absences: Vec<_> = (0..40).map(|i| (20 + i * 70, 20 + i % 17)).collect();
    for load in [1.1, 1.5, 2.0] {
        for tester in [&[][..], &absences] {
            let e = shown(&trial(&POLICER, load * POLICER.rate, 3000, tester, &[]));
            assert!(off(e.undisturbed, POLICER.rate) < 1e-3, "{load}: {e:?}");
            assert!(off(e.as_measured, POLICER.rate) < 1e-3, "{load}: {e:?}");
            assert!(e.lost > 0);
        }
    }
}

#[test]
fn short_absences_of_the_tester_count_in_slices_of_long_trials() {
    // 10 Mpps through a device that takes them all; in one slice of 0.9 ms the tester is away for 0.3 ms and misses frames.
    let (slice_s, frames) = (9e-4, 9000);
    let slice = Slice { sent: frames, received: frames, arrived: frames, ..Slice::default() };
    let slice = Slice { min_delay_ns: 2000, mean_delay_ns: 2000, arrival_min_delay_ns: 2000, ..slice };
    let mut slices = vec![slice; 1000];
    (slices[500].received, slices[500].arrived) = (frames - 900, frames - 900);
    let away = |from_s: f64, to_s: f64| Absence { who: Party::Tester, from_s, to_s };
    let at = 500.0 * slice_s + 1e-4;
    let timeline = Timeline { slice_s, directions: vec![slices], absences: vec![away(at, at + 3e-4)] };
    let of_it = |timeline: &Timeline| of(timeline, 0.9, Watch::Known, 1).unwrap();
    assert_eq!(of_it(&timeline).lost, 0);
    // With nobody away the loss is the device's.
    assert_eq!(of_it(&Timeline { absences: Vec::new(), ..timeline }).lost, 900);
}

/// A device that holds frames for 2 ms, at a fifth of its rate, with the tester away for the 4 ms from slice 100 on: what departed
/// from slice 80 on came back meanwhile, and was lost in the queue of the tester.
fn missed(last: usize) -> Timeline {
    let device = Device::new(5e6, 500_000.0, 2e-3);
    let mut timeline = trial(&device, 1e6, 400, &[(100, 40)], &[]);
    timeline.directions[0].iter_mut().take(last).skip(82).for_each(|slice| slice.received = 0);
    timeline
}

#[test]
fn what_came_back_while_the_tester_was_away_is_not_lost_by_the_device() {
    let e = shown(&missed(100));
    assert_eq!((e.lost, e.undisturbed.map(|busy| busy.seconds)), (0, None), "{e:?}");
    assert!(e.clean_s > 0.02, "{e:?}");
    // A loss whose frames would have come before that is the device's.
    let mut timeline = missed(100);
    timeline.directions[0][70].received = 0;
    assert_eq!(shown(&timeline).lost, 100);
    // So is one after it.
    let mut timeline = missed(100);
    timeline.directions[0][300].received = 90;
    assert_eq!(shown(&timeline).lost, 10);
}

#[test]
fn slices_whose_frames_were_to_come_after_the_end_tell_no_rate() {
    let mut timeline = trial(&Device::new(5e6, 500_000.0, 2e-3), 1e6, 400, &[], &[]);
    timeline.directions[0].iter_mut().skip(383).for_each(|slice| slice.received = 0);
    let e = shown(&timeline);
    assert_eq!((e.lost, e.as_measured, e.undisturbed), (0, None, None), "{e:?}");
    // Where some came, the others were lost; but the device may hold those of the last slice back until more come.
    timeline.directions[0].iter_mut().skip(383).for_each(|slice| slice.received = 50);
    assert_eq!(shown(&timeline).lost, 16 * 50);
    let mut timeline = trial(&Device::new(5e6, 500_000.0, 2e-3), 1e6, 400, &[], &[]);
    timeline.directions[0][399].received = 90;
    let e = shown(&timeline);
    assert_eq!((e.lost, (e.clean_s / SLICE).round()), (0, 396.0), "the first three and the last are set aside");
    let e = shown(&trial(&Device::new(5e6, 500_000.0, 2e-3), 1e6, 400, &[], &[]));
    assert_eq!((e.lost, (e.clean_s / SLICE).round()), (0, 397.0), "the last one counts where it lost nothing");
}

#[test]
fn a_shaper_is_not_believed_before_its_buffer_is_full() {
    let e = shown(&trial(&SHAPER, 1.2 * SHAPER.rate, 3000, &[], &[]));
    assert!(off(e.as_measured, SHAPER.rate) < 1e-3, "{e:?}");
    // 100 ms are too short to fill it: no loss, and the delay tells.
    let e = shown(&trial(&SHAPER, 1.05 * SHAPER.rate, 1000, &[], &[]));
    assert_eq!((e.lost, e.as_measured), (0, None));
    let delay = e.delay.unwrap();
    assert!((delay.growth - 0.05).abs() < 5e-3, "{delay:?}");
}

#[test]
fn a_queue_that_fills_behind_a_door_that_refuses_tells_the_rate() {
    for slices in [300, 3000] {
        let mut timeline = trial(&SHAPER, 2.0 * SHAPER.rate, slices, &[], &[]);
        for slice in &mut timeline.directions[0] {
            slice.refused += 3;
        }
        let e = shown(&timeline);
        assert!(off(e.as_measured, SHAPER.rate) < 2e-3, "{slices}: {e:?}");
        assert!(off(e.undisturbed, SHAPER.rate) < 2e-3, "{slices}: {e:?}");
    }
    // And where the tester is away while it fills, or the device, so that its runs are short.
    let away: Vec<_> = (0..12).map(|i| (i * 8, 2)).collect();
    for (tester, device) in [(&away[..], &[][..]), (&[], &away)] {
        let mut timeline = trial(&SHAPER, 2.0 * SHAPER.rate, 1000, tester, device);
        for slice in &mut timeline.directions[0] {
            slice.refused += 3;
        }
        let e = shown(&timeline);
        assert!(off(e.undisturbed, SHAPER.rate) < 3e-3, "{tester:?} {device:?}: {e:?}");
    }
}

/// As beside other work on both cores: tester and device are away for much of the time, 4 ms at a time.
#[test]
fn a_trial_in_which_somebody_is_nearly_always_away_counts_by_shorter_slices() {
    let slow = Device { polices: true, ..Device::new(200e3, 40.0, 9e-7) };
    let tester: Vec<_> = (0..10).map(|i| (10 + i * 100, 40)).collect();
    let device: Vec<_> = (0..10).map(|i| (30 + i * 100, 40)).collect();
    let below = trial(&slow, 0.98 * slow.rate, 1000, &tester, &device);
    let e = of(&below, 0.1, Watch::Known, 10).unwrap();
    assert!((e.lost, e.slice_s) == (0, SLICE) && e.clean_s > 0.01, "{e:?}");
    assert!(e.delay.unwrap().growth.abs() < 1e-3, "{e:?}");
    assert!((e.offered_fps.get() / (0.98 * slow.rate) - 1.0).abs() < 1e-2, "{e:?}");
    // In slices of usual length hardly any is without an absence.
    let usual = of(&below.in_longer(10), 0.1, Watch::Known, 1).unwrap();
    assert!(usual.delay.is_none() && usual.clean_s < e.clean_s / 2.0, "{usual:?}");

    // In overload several short runs tell the rate better than a few.
    let short =
        of(&trial(&slow, 4.4 * slow.rate, 1000, &tester, &device), 0.1, Watch::Known, 3).unwrap().undisturbed.unwrap();
    let few =
        of(&trial(&slow, 4.4 * slow.rate, 250, &tester, &device), 0.025, Watch::Known, 3).unwrap().undisturbed.unwrap();
    let [short_error, few_error] = [short, few].map(|s| s.error_fps.get() / s.fps.get());
    assert!(off(Some(short), slow.rate) < 1e-2 && off(Some(few), slow.rate) < 1e-2, "{short:?} {few:?}");
    assert!(few_error >= 0.01 && short_error < 0.5 * few_error && short_error > 1e-3, "{short:?} {few:?}");
}

#[test]
fn a_slow_device_that_sends_evenly_tells_its_rate_between_absences_of_the_tester() {
    // Slices of 25 ms at this load, and no ten of them without an absence.
    let slow = Device { polices: true, ..Device::new(2_400.0, 20.0, 9e-7) };
    let away: Vec<_> = (0..3).map(|i| (900 + i * 1_300, 5)).collect();
    let rate = |away: &[(usize, usize)]| {
        of(&trial(&slow, 1.2 * slow.rate, 5_000, away, &[]), 0.5, Watch::Known, 10).unwrap().undisturbed.unwrap()
    };
    let found = rate(&away);
    assert!(found.stretches > 1 && found.seconds > 0.05, "{found:?}");
    assert!(off(Some(found), slow.rate) < 1e-2 && found.error_fps.get() < 0.01 * slow.rate, "{found:?}");
    assert!(found.error_fps.get() > 1e-3 * slow.rate, "{found:?}");
}

#[test]
fn absences_of_the_device_are_told_apart() {
    let away: Vec<_> = (0..10).map(|i| (200 + i * 250, 50)).collect();
    let e = shown(&trial(&POLICER, 1.5 * POLICER.rate, 3000, &[], &away));
    assert!(off(e.undisturbed, POLICER.rate) < 1e-3, "{e:?}");
    assert!(off(e.as_measured, POLICER.rate * 2500.0 / 3000.0) < 1e-2, "{e:?}");
}

#[test]
fn below_the_rate_only_slices_beside_absences_lose_frames() {
    let away: Vec<_> = (0..10).map(|i| (200 + i * 250, 30)).collect();
    let e = shown(&trial(&POLICER, 0.99 * POLICER.rate, 3000, &[(100, 20)], &away));
    assert_eq!((e.lost, e.undisturbed), (0, None));
    assert!(e.clean_s > 0.2 && (e.offered_fps.get() / POLICER.rate - 0.99).abs() < 1e-4, "{e:?}");
    assert!(e.delay.unwrap().growth.abs() < 1e-3, "{e:?}");
}

#[test]
fn an_outside_device_that_stalls_now_and_then_is_told_from_one_that_sends_in_batches() {
    let now_and_then: Vec<_> = (0..6).map(|i| (200 + i * 400, 30)).collect();
    let mut timeline = trial(&POLICER, 0.9 * POLICER.rate, 3000, &[], &now_and_then);
    timeline.absences.clear();
    let e = of(&timeline, 0.3, Watch::Silence, 1).unwrap();
    assert!((e.stalled_s - 0.018).abs() < 1e-3 && e.lost == 0, "{e:?}");
    let batches: Vec<_> = (0..300).map(|i| (i * 10, 8)).collect();
    let device = Device::new(50e6, 1e5, 1e-6);
    let mut timeline = trial(&device, 5e6, 3000, &[], &batches);
    timeline.absences.clear();
    let e = of(&timeline, 0.3, Watch::Silence, 1).unwrap();
    assert_eq!((e.stalled_s, e.lost), (0.0, 0));
}

#[test]
fn without_slices_nothing_is_shown() {
    assert_eq!(of(&Timeline::default(), 1.0, Watch::Known, 1), None);
    let empty = Timeline { slice_s: SLICE, directions: vec![vec![Slice::default(); 50]], absences: Vec::new() };
    let e = shown(&empty);
    assert_eq!((e.offered, e.lost, e.as_measured, e.delay), (0, 0, None, None));
    assert_eq!(e.clean_s, 0.0, "nobody knows whether it forwards");
}

/// What a tester that is away does to the frames that come back meanwhile: they wait for it, and those that
/// its ring has no room for are lost.
fn deafen(timeline: &mut Timeline, tester: &[(usize, usize)], ring: u32) {
    for &(from, n) in tester {
        let mut held = 0;
        for i in 0..from + n {
            let Some(slice) = timeline.directions[0].get_mut(i) else { break };
            let came = i + (f64::from(slice.min_delay_ns) * 1e-9 / SLICE) as usize;
            if slice.received == 0 || !(from..from + n).contains(&came) {
                continue;
            }
            slice.min_delay_ns += ((from + n - came) as f64 * SLICE * 1e9) as u32;
            let room = ring.saturating_sub(held).min(slice.received);
            held += slice.received;
            slice.received = room;
        }
    }
}

#[test]
fn what_the_tester_loses_while_it_is_away_is_not_the_devices() {
    for (rate, buffer) in [(3.33e6, 3330.0), (7e6, 700.0), (1.7e6, 17_000.0)] {
        let device = Device::new(rate, buffer, 3e-6);
        let away: Vec<_> = (0..14).map(|i| (20 + i * 70, 40)).collect();
        let mut timeline = trial(&device, 1.5 * rate, 1000, &away, &[]);
        deafen(&mut timeline, &away, 2048);
        let e = shown(&timeline);
        let found = e.undisturbed.map(|s| (s.fps.get() / rate - 1.0, s.error_fps.get() / rate));
        assert!(
            found.is_none_or(|(off, error)| off.abs() < (3.0 * error).max(5e-3)),
            "{rate} {buffer}: {found:?} {e:?}"
        );
    }
}

#[test]
fn a_device_that_is_away_while_frames_wait_tells_its_rate() {
    for (rate, buffer) in [(3.33e6, 3330.0), (7e6, 700.0)] {
        let device = Device::new(rate, buffer, 3e-6);
        let away: Vec<_> = (0..14).map(|i| (20 + i * 70, 40)).collect();
        let mut timeline = trial(&device, 1.5 * rate, 1000, &[], &away);
        // What waits as the device goes waits for it.
        for (i, slice) in timeline.directions[0].iter_mut().enumerate() {
            let mut left = f64::from(slice.min_delay_ns) * 1e-9 / SLICE;
            let mut at = i;
            while left > 0.0 {
                if away.iter().any(|(from, n)| (*from..from + n).contains(&at)) {
                    slice.min_delay_ns += (SLICE * 1e9) as u32;
                } else {
                    left -= 1.0;
                }
                at += 1;
            }
        }
        let e = shown(&timeline);
        let found = e.undisturbed.map(|s| (s.fps.get() / rate - 1.0, s.error_fps.get() / rate));
        assert!(
            found.is_some_and(|(off, error)| off.abs() < (3.0 * error).max(5e-3)),
            "{rate} {buffer}: {found:?} {e:?}"
        );
    }
}

#[test]
fn tokens_saved_up_while_a_policer_was_away_do_not_raise_its_rate() {
    for (rate, overload) in [(7.777e6, 2.2), (7.777e6, 1.3), (1e6, 5.0)] {
        let device = Device { polices: true, ..Device::new(rate, rate * 5e-4, 3e-6) };
        let away: Vec<_> = (0..20).map(|i| (20 + i * 48, 12)).collect();
        let timeline = trial(&device, overload * rate, 1000, &[], &away);
        let e = shown(&timeline);
        let off = e.undisturbed.map(|s| s.fps.get() / rate - 1.0);
        assert!(off.is_some_and(|off| off.abs() < 2e-3), "{rate} {overload}: {off:?} {e:?}");
    }
}

#[test]
fn both_ways_a_tester_in_turns_of_several_slices_counts() {
    // As over a kernel interface: a burst one way, then one the other way, each in a call of two slices and a half.
    let way = |at: usize| {
        let slice = |i: usize| match i % 5 {
            n if n == at => Slice { sent: 64, received: 64, min_delay_ns: 440_000, ..Slice::default() },
            n if n == at + 1 => Slice { arrived: 64, arrival_min_delay_ns: 440_000, ..Slice::default() },
            _ => Slice::default(),
        };
        (0..1000).map(slice).collect::<Vec<Slice>>()
    };
    let timeline = Timeline { slice_s: SLICE, directions: vec![way(0), way(2)], absences: Vec::new() };
    let e = of(&timeline, 0.1, Watch::Silence, 1).unwrap();
    assert!(e.clean_s > 0.09 && e.lost == 0 && e.delay.is_some(), "{e:?}");
    assert!((e.offered_fps.get() / 128_000.0 - 1.0).abs() < 0.02, "{e:?}");
    assert_eq!(e.delay.unwrap().floor_ns, 440_000);
}

/// 20 Mpps through a device that forwards 26 Mpps, which stands still for 80 us at these slices: its queue of 1024 frames is
/// full, and empties in the slices after.
fn paused(at: impl Iterator<Item = usize>) -> Timeline {
    let mut timeline = trial(&Device::new(26e6, 1024.0, 3e-6), 20e6, 1000, &[], &[]);
    let slices = &mut timeline.directions[0];
    for i in at {
        let lost = Slice { sent: 1400, refused: 600, received: 1400, arrived: 900, ..slices[i] };
        slices[i] = Slice { mean_delay_ns: 40_000, ..lost };
        (slices[i + 1].min_delay_ns, slices[i + 1].arrived) = (20_000, 2400);
        (slices[i + 2].min_delay_ns, slices[i + 2].arrived) = (8_000, 2100);
    }
    timeline
}

fn shown_of(timeline: &Timeline, watch: Watch) -> (u64, u64, f64) {
    let e = of(timeline, 0.1, watch, 1).unwrap();
    (e.lost, e.stalled_lost, (e.stalled_s / SLICE).round())
}

#[test]
fn what_a_device_loses_in_a_pause_is_told_from_what_the_load_makes_it_lose() {
    let now_and_then = || paused((0..6).map(|i| 100 + i * 150));
    assert_eq!(shown_of(&now_and_then(), Watch::Pauses), (0, 3600, 6.0));
    // On a machine that is not virtual the device causes its own pauses. The absences of a built-in device are recorded.
    for watch in [Watch::Silence, Watch::Known] {
        assert_eq!(shown_of(&now_and_then(), watch), (3600, 0, 0.0));
    }
    // Above the capacity the queue never empties.
    let over = trial(&Device::new(26e6, 1024.0, 3e-6), 26.2e6, 1000, &[], &[]);
    let (lost, stalled, _) = shown_of(&over, Watch::Pauses);
    assert!(lost > 10_000 && stalled == 0, "{lost} {stalled}");
    // Frames that nothing waited behind were dropped, not stopped.
    let mut drops = now_and_then();
    drops.directions[0].iter_mut().for_each(|slice| slice.min_delay_ns = 3_000);
    assert_eq!(shown_of(&drops, Watch::Pauses), (3600, 0, 0.0));
    // A device that pauses all the time is as slow as that.
    let often = paused((0..90).map(|i| 20 + i * 10));
    let (lost, stalled, _) = shown_of(&often, Watch::Pauses);
    assert!(lost > 50_000 && stalled == 0, "{lost} {stalled}");
}

#[test]
fn a_queue_that_empties_since_less_is_sent_proves_nothing() {
    let with = |change: &dyn Fn(&mut Timeline, usize)| {
        let mut timeline = paused([300, 600].into_iter());
        [300, 600].into_iter().for_each(|at| change(&mut timeline, at));
        shown_of(&timeline, Watch::Pauses).1
    };
    assert_eq!(with(&|_, _| {}), 1200);
    let less = |timeline: &mut Timeline, at: usize| {
        let slice = &mut timeline.directions[0][at + 2];
        (slice.sent, slice.received, slice.arrived) = (1000, 1000, 1000);
    };
    assert_eq!(with(&less), 0);
    let absence = |from: usize, slices: f64| Absence {
        who: Party::Tester,
        from_s: from as f64 * SLICE,
        to_s: (from as f64 + slices) * SLICE,
    };
    // The tester was away beside it, for a fifth of a slice; a twentieth is a turn of its loop.
    assert_eq!(with(&|timeline, at| timeline.absences.push(absence(at + 1, 0.2))), 0);
    assert_eq!(with(&|timeline, at| timeline.absences.push(absence(at + 1, 0.05))), 1200);
    // Nor is one that was away before the pause: the queue emptied later.
    assert_eq!(with(&|timeline, at| timeline.absences.push(absence(at - 1, 0.4))), 1200);
    assert_eq!(with(&|timeline, at| timeline.absences.push(absence(at - 1, 0.6))), 0);
    // It was full for long before, or lost more until it had emptied, or for too long.
    let full = |timeline: &mut Timeline, at: usize, slices: usize| {
        (1..=slices).for_each(|i| timeline.directions[0][at - i].min_delay_ns = 9_000);
    };
    assert_eq!(with(&|timeline, at| full(timeline, at, 4)), 1200);
    assert_eq!(with(&|timeline, at| full(timeline, at, 5)), 0);
    assert_eq!(with(&|timeline, at| timeline.directions[0][at + 2].refused = 1), 0);
    let longer = |timeline: &mut Timeline, at: usize, slices: usize| {
        (1..slices).for_each(|i| timeline.directions[0][at - i].refused = 1);
    };
    assert_eq!(with(&|timeline, at| longer(timeline, at, 3)), 1204);
    assert_eq!(with(&|timeline, at| longer(timeline, at, 4)), 0);
}

#[test]
fn what_was_offered_later_on_is_told_where_nothing_was_lost() {
    // A bucket lets 20 frames a slice through at first, and 10 from slice 20 on. The tester is away for slices 200 to 219.
    let mut timeline = trial(&Device::new(1e6, 512.0, 2e-6), 1e5, 400, &[(200, 20)], &[]);
    timeline.directions[0].iter_mut().take(20).for_each(|slice| *slice = Slice { sent: 20, received: 20, ..*slice });
    let later = shown(&timeline).settled.unwrap();
    let off = |fps: units::Fps, truth: f64| (fps.get() / truth - 1.0).abs();
    assert!(off(later.clean_fps, 1e5) < 0.01 && off(later.all_fps, 1e5 * 280.0 / 300.0) < 0.01, "{later:?}");
    // Of slices 100 to 249, and of the rest.
    assert!(off(later.earlier_fps, 1e5 * 130.0 / 150.0) < 0.01 && off(later.later_fps, 1e5) < 0.01, "{later:?}");
    timeline.directions[0][10].received = 19;
    assert_eq!(shown(&timeline).settled, None);
}
