//! Replays: times, passes and what came back.

use std::{sync::Arc, time::Duration};

use packet::{
    capture::Capture,
    heap::{HeapPool, HeapWire},
    Buffer, Burst, Clock, FakeClock, Rx,
};
use proptest::prelude::*;
use units::Fps;

use super::{timeline::Cursor, *};
use crate::{
    control::{Control, Timing as Waits},
    worker::{Receives, Sends, Worker},
};

/// A tick is a microsecond.
const HZ: u64 = 1_000_000;

const fn us(times: [u64; 4]) -> [u64; 4] {
    [times[0] * 1000, times[1] * 1000, times[2] * 1000, times[3] * 1000]
}

/// Captured far from the epoch, 30, 0 and 90 us apart: 40 us in the mean.
const TIMES: [u64; 4] = us([5_000_000, 5_000_030, 5_000_030, 5_000_120]);

fn captured(speed: f64, max_gap_us: Option<u64>) -> Timing {
    Timing::Captured { speed, max_gap: max_gap_us.map(Duration::from_micros) }
}

fn even(fps: f64) -> Timing {
    Timing::Even(Fps::new(fps).unwrap())
}

/// When the first frames are due.
fn due(times: &[u64], timing: Timing, frames: usize) -> Vec<u64> {
    let timeline = Timeline::new(times, timing, HZ).unwrap();
    let mut cursor = Cursor::default();
    let mut next = || {
        let due = cursor.due(&timeline);
        cursor.step(&timeline);
        due
    };
    (0..frames).map(|_| next()).collect()
}

#[test]
fn frames_are_due_as_captured_scaled_or_evenly_and_go_round() {
    assert_eq!(due(&TIMES, captured(1.0, None), 9), [0, 30, 30, 120, 160, 190, 190, 280, 320]);
    assert_eq!(due(&TIMES, captured(2.0, None), 6), [0, 15, 15, 60, 80, 95]);
    assert_eq!(due(&TIMES, captured(0.5, None), 5), [0, 60, 60, 240, 320]);
    // A pause is cut as it is sent, and the mean gap is that of what is left.
    assert_eq!(due(&TIMES, captured(1.0, Some(60)), 5), [0, 30, 30, 90, 120]);
    assert_eq!(due(&TIMES, captured(2.0, Some(60)), 5), [0, 15, 15, 60, 80]);
    assert_eq!(due(&TIMES, even(1e5), 6), [0, 10, 20, 30, 40, 50]);
    // One frame alone is repeated at any rate, even when its interval is not a whole number of ticks.
    assert_eq!(due(&TIMES[..1], even(3e5), 7), [0, 3, 7, 10, 13, 17, 20]);
}

#[test]
fn times_that_run_backwards_are_no_gap() {
    let times = us([5_000_000, 4_000_000, 4_000_010, 4_000_010]);
    assert_eq!(due(&times, captured(1.0, None), 4), [0, 0, 10, 10]);
    let forwards = us([0, 30, 20, 40]);
    assert_eq!(due(&forwards, captured(1.0, None), 4), [0, 30, 30, 50]);
}

#[test]
fn what_has_no_time_or_too_much_is_refused() {
    let refused = |times: &[u64], timing| Timeline::new(times, timing, HZ).unwrap_err();
    assert_eq!(refused(&TIMES[..1], captured(1.0, None)), TimelineError::NoTime);
    assert_eq!(refused(&[7; 3], captured(1.0, None)), TimelineError::NoTime);
    assert_eq!(refused(&[9, 8, 7], captured(1.0, None)), TimelineError::Backwards);
    assert_eq!(refused(&[], even(1.0)), TimelineError::NoTime);
    assert_eq!(refused(&[0, u64::MAX], captured(1.0, None)), TimelineError::TooLong);
    assert_eq!(refused(&TIMES, even(0.0)), TimelineError::TooLong);
    assert!(Timeline::new(&[0, u64::MAX], captured(1.0, Some(1)), HZ).is_ok());
}

proptest! {
    #[test]
    fn frames_within_a_time_are_those_due_before_it(
        times in proptest::collection::vec(0..1_000_000u64, 1..20),
        ticks in 0..10_000u64,
        rate in 1e3..1e6,
        evenly: bool,
    ) {
        let timing = if evenly { even(rate) } else { captured(1.0, None) };
        if let Ok(timeline) = Timeline::new(&times, timing, HZ) {
            // Times of less than a tick each would be many frames.
            prop_assume!(timeline.pass() > 10.0);
            let (mut cursor, mut frames, mut before) = (Cursor::default(), 0, 0);
            while cursor.due(&timeline) < ticks {
                prop_assert!(cursor.due(&timeline) >= before);
                before = cursor.due(&timeline);
                cursor.step(&timeline);
                frames += 1;
            }
            prop_assert_eq!(timeline.within(ticks), frames);
        }
    }
}

/// A capture of frames of 60, 61, 62 and 63 bytes at `TIMES`.
fn capture() -> Arc<Capture> {
    let mut file = [0xa1b2_3c4du32, 0x0002_0004, 0, 0, 65_535, 1].map(u32::to_be_bytes).concat();
    for (n, ns) in TIMES.into_iter().enumerate() {
        let len = 60 + n as u32;
        let seconds = (ns / 1_000_000_000) as u32;
        file.extend([seconds, (ns % 1_000_000_000) as u32, len, len].map(u32::to_be_bytes).concat());
        file.extend((0..len).map(|i| (i * 7) as u8 ^ n as u8));
    }
    Arc::new(Capture::read(&file[..]).unwrap())
}

/// What of a replay of the capture comes out of a cable that holds `depth` frames and is emptied once a turn: when, and
/// which of the four. The worker begins one turn and sends from the next on.
fn replay(frames: u64, depth: usize, pool: &HeapPool, step: impl Fn(u64) -> u64) -> (Vec<(u64, usize)>, Counted) {
    let capture = capture();
    let clock = FakeClock::new(HZ);
    let ((near, mut far), (_, back)) = (HeapWire::pair(depth), HeapWire::pair(1));
    let timeline = Timeline::new(capture.times(), captured(1.0, None), HZ).unwrap();
    let task = Replay::new(near, pool.clone(), Arc::clone(&capture), timeline, frames, 20);
    let mut worker = Worker::new(vec![task], vec![Tally::new(back, Arc::new(Known::new(&capture)))], HZ);
    let control = Control::new(Waits { residual: 10, settle: 5 }, 1);
    control.start_at(100);
    let mut seen = Vec::new();
    for turn in 0..1000 {
        let go_on = worker.turn(&clock, &control);
        let mut burst = Burst::new();
        far.rx(&mut burst);
        let number = |data: &[u8]| (0..4).find(|&n| capture.frame(n) == data).expect("a frame of the capture");
        seen.extend(burst.iter().map(|b| (clock.now() - 100, number(b.data()))));
        if !go_on {
            let task = &worker.tx[0];
            assert!(task.finished());
            assert_eq!(task.counters().intended, frames);
            return (seen, Counted { tx: task.counters(), replayed: task.replayed().clone() });
        }
        clock.advance(step(turn));
    }
    panic!("a replay of {frames} frames does not end");
}

struct Counted {
    tx: crate::worker::TxCounters,
    replayed: Replayed,
}

#[test]
fn a_capture_leaves_byte_for_byte_when_it_is_due() {
    let pool = HeapPool::new(64, 64);
    let (seen, counted) = replay(10, 64, &pool, |_| 1);
    let wanted = [(1, 0), (30, 1), (30, 2), (120, 3), (160, 0), (190, 1), (190, 2), (280, 3), (320, 0), (350, 1)];
    assert_eq!(seen, wanted);
    let (tx, sent) = (counted.tx, counted.replayed);
    assert_eq!((tx.sent, tx.refused, tx.skipped, sent.late), (10, 0, 0, 0));
    assert_eq!((sent.lateness.count(), sent.lateness.max()), (10, Some(1)));
    assert_eq!(sent.bytes, 3 * 64 + 3 * 65 + 2 * 66 + 2 * 67);
    assert_eq!((tx.first_tick, tx.last_tick), (101, 450));
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn a_tester_that_comes_late_leaves_nothing_out_and_says_so() {
    let pool = HeapPool::new(64, 64);
    // Away for 149 ticks after the start: the frames due at 0, twice at 30, and at 120 leave at 150.
    let (seen, counted) = replay(5, 64, &pool, |turn| if turn == 101 { 149 } else { 1 });
    assert_eq!(seen, [(1, 0), (150, 1), (150, 2), (150, 3), (160, 0)]);
    let sent = counted.replayed;
    assert_eq!((counted.tx.sent, sent.late), (5, 3));
    assert_eq!((sent.lateness.sum(), sent.lateness.max()), (1 + 120 + 120 + 30, Some(120)));
}

#[test]
fn what_a_port_refuses_is_lost_and_the_next_frame_follows() {
    let pool = HeapPool::new(64, 64);
    // Frames 1 and 2 are due at once, and the cable holds one.
    let (seen, counted) = replay(6, 1, &pool, |_| 1);
    assert_eq!(seen, [(1, 0), (30, 1), (120, 3), (160, 0), (190, 1)]);
    assert_eq!((counted.tx.sent, counted.tx.refused, counted.replayed.bytes), (5, 1, 64 + 65 + 67 + 64 + 65));
    let empty = HeapPool::new(0, 64);
    let (seen, counted) = replay(6, 64, &empty, |_| 1);
    assert_eq!((seen.len(), counted.tx.sent, counted.tx.skipped), (0, 0, 6));
    assert_eq!(counted.replayed.lateness.count(), 0);
}

#[test]
fn a_tally_counts_whatever_comes() {
    let pool = HeapPool::new(64, 64);
    let (mut near, far) = HeapWire::pair(8);
    let capture = capture();
    let mut tally = Tally::new(far, Arc::new(Known::new(&capture)));
    let mut send = |len| packet::Tx::tx(&mut near, &mut pool.frame(&vec![1; len]).into_iter().collect());
    send(60);
    let clock = FakeClock::new(HZ);
    assert!(tally.poll(&clock));
    tally.begin(0);
    send(14);
    send(60);
    assert!(tally.poll(&clock) && !tally.poll(&clock));
    assert_eq!((tally.received(), tally.bytes(), tally.foreign()), (2, 14 + 60 + 8, 2));
    // A frame of the capture, as it left and with another way in front and another address.
    let mut own = capture.frame(0).to_vec();
    packet::Tx::tx(&mut near, &mut pool.frame(&own).into_iter().collect());
    own[0] ^= 1;
    own.splice(12..12, [0x81, 0, 0, 7]);
    packet::Tx::tx(&mut near, &mut pool.frame(&own).into_iter().collect());
    assert!(tally.poll(&clock));
    assert_eq!((tally.received(), tally.foreign()), (4, 2));
    assert_eq!(pool.in_use(), 0);
}
