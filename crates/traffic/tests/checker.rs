//! The checker on frames made by hand.
#![allow(clippy::unwrap_used, clippy::panic)]

use packet::{
    heap::{HeapBuf, HeapPool},
    stamp::Stamp,
};
use proptest::prelude::*;
use traffic::checker::{Checker, Losses, LostRun, Odd, StreamCounts};
use units::Imix;

const LEN: usize = 60;

fn frame(pool: &HeapPool, epoch: u8, stream: u16, sequence: u32, departure: u64, len: usize) -> HeapBuf {
    let mut bytes = vec![0x55; len];
    assert!(Stamp { epoch, stream, sequence, departure }.write(&mut bytes));
    pool.frame(&bytes).unwrap()
}

fn feed(checker: &mut Checker, sequences: impl IntoIterator<Item = u32>) {
    let pool = HeapPool::new(1, LEN);
    for sequence in sequences {
        checker.check(&[frame(&pool, 1, 0, sequence, 0, LEN)], 100);
    }
}

fn counts(checker: &Checker) -> StreamCounts {
    checker.stream(0).unwrap()
}

#[test]
fn a_frame_of_a_mix_has_the_length_of_its_number() {
    // Three of 64, one of 128, one of 1518 bytes.
    let mix = "aaabg".parse::<Imix>().unwrap();
    let of = |n: u64| mix.sizes()[(n % 5) as usize].without_fcs();
    let pool = HeapPool::new(1, 1514);
    let mut checker = Checker::new(1, &[0], &[], 0).with_sizes(mix.into());
    // Frames 3 to 5 are reordered, 8 is lost, and 10 comes twice.
    let order = [0, 1, 2, 6, 4, 7, 3, 9, 10, 5, 10, 11];
    for n in order {
        checker.check(&[frame(&pool, 1, 0, n as u32, 0, of(n))], 100);
    }
    let c = checker.counts();
    assert_eq!((c.streams.received, c.streams.duplicates, c.streams.reordered, c.wrong_length), (11, 1, 3, 0));
    let sum: u64 = order.iter().filter(|n| **n != 10).map(|n| of(*n) as u64 + 4).sum();
    assert_eq!(c.received_bytes, sum + 64);
    // The next in line, but of the length of another.
    checker.check(&[frame(&pool, 1, 0, 12, 0, of(13))], 100);
    assert_eq!((checker.counts().wrong_length, checker.counts().streams.received), (1, 11));
}

#[test]
fn a_mix_goes_on_where_numbers_wrap() {
    let mix = "abc".parse::<Imix>().unwrap();
    let pool = HeapPool::new(1, 252);
    let mut checker = Checker::new(1, &[0], &[], 0).with_sizes(mix.into());
    // In strides, since a checker cannot tell more than 2^31 ahead from behind.
    let numbers = [0u64, 1 << 30, 1 << 31, 3 << 30, (1 << 32) - 1, 1 << 32, (1 << 32) + 1];
    for n in numbers {
        let len = mix.sizes()[(n % 3) as usize].without_fcs();
        checker.check(&[frame(&pool, 1, 0, n as u32, 0, len)], 100);
    }
    assert_eq!((checker.counts().streams.received, checker.counts().wrong_length), (numbers.len() as u64, 0));
}

#[test]
fn each_frame_is_one_thing_only() {
    let pool = HeapPool::new(16, 128);
    let mut checker = Checker::new(1, &[3, 9], &[4], LEN);
    let frames = [
        frame(&pool, 1, 3, 0, 5, LEN),
        frame(&pool, 1, 9, 0, 7, LEN),
        frame(&pool, 2, 3, 1, 5, LEN),
        frame(&pool, 1, 5, 0, 5, LEN),
        frame(&pool, 1, 65535, 0, 5, LEN),
        frame(&pool, 1, 4, 0, 5, LEN),
        frame(&pool, 1, 3, 1, 5, LEN + 4),
        pool.frame(&[0xff; LEN]).unwrap(),
        pool.frame(&[]).unwrap(),
        frame(&pool, 1, 3, 1, 2000, LEN),
    ];
    checker.check(&frames, 1005);
    let c = checker.counts();
    assert_eq!((c.streams.received, c.foreign, c.misdirected, c.wrong_length), (3, 5, 1, 1));
    assert_eq!(c.received_bytes, 3 * 64);
    assert_eq!(checker.stream(3).unwrap().received, 2);
    assert_eq!((checker.stream(4), checker.stream(5)), (None, None));
    // The last frame's clock was ahead: no delay, and an IPDV of -1000.
    assert_eq!((checker.delays().min(), checker.delays().max()), (Some(0), Some(1000)));
    assert_eq!((checker.ipdv().count(), checker.ipdv().min()), (1, Some(-1000)));
    let what: Vec<_> = checker.samples().iter().map(|s| (s.what, s.frame_len, s.bytes.len())).collect();
    assert_eq!(
        what,
        [(Odd::Foreign, 60, 60), (Odd::Foreign, 60, 60), (Odd::Foreign, 60, 60), (Odd::Misdirected, 60, 60)]
    );
    checker.forget_foreign();
    assert_eq!((checker.counts().foreign, checker.counts().streams.received, checker.samples().len()), (0, 3, 0));
}

#[test]
fn the_first_frames_may_be_lost() {
    let mut checker = Checker::new(1, &[0], &[], LEN);
    feed(&mut checker, [5, 6, 0, 6]);
    assert_eq!(counts(&checker), StreamCounts { received: 3, duplicates: 1, reordered: 1, late: 0 });
    assert_eq!(checker.ipdv().count(), 1);
}

#[test]
fn the_window_is_65536_frames_exactly() {
    let mut checker = Checker::new(1, &[0], &[], LEN);
    feed(&mut checker, [0, 1, 2, 65537]);
    // 65535 behind the highest is within, 65536 is not.
    feed(&mut checker, [2]);
    assert_eq!(counts(&checker).duplicates, 1);
    feed(&mut checker, [1, 0]);
    assert_eq!(counts(&checker), StreamCounts { received: 4, duplicates: 1, reordered: 0, late: 2 });
}

#[test]
fn sequences_wrap() {
    // 2^31 frames at most between two that came, so that the unwrapped number is known.
    let mut checker = Checker::new(1, &[0], &[], LEN);
    feed(&mut checker, [0x7fff_ffff, 0xffff_fffe, 0xffff_ffff, 0, 1, 0xffff_ffff, 3, 2]);
    assert_eq!(counts(&checker), StreamCounts { received: 7, duplicates: 1, reordered: 1, late: 0 });
}

#[test]
fn a_frame_from_before_the_first_is_late() {
    let mut checker = Checker::new(1, &[0], &[], LEN);
    feed(&mut checker, [0, 1, 0xffff_ffff]);
    assert_eq!(counts(&checker).late, 1);
}

#[test]
fn delay_variation_leaves_out_pairs_with_a_lost_or_reordered_frame() {
    let pool = HeapPool::new(1, LEN);
    let mut checker = Checker::new(1, &[0], &[], LEN);
    // Sequence and delay: the pairs are 0-1, 3-4 and 4-5.
    for (sequence, delay) in [(0, 100), (1, 130), (3, 500), (2, 900), (4, 480), (4, 9999), (5, 485)] {
        checker.check(&[frame(&pool, 1, 0, sequence, 10_000 - delay, LEN)], 10_000);
    }
    let ipdv: Vec<_> = checker.ipdv().bins().map(|(low, _, n)| (low, n)).collect();
    assert_eq!(ipdv, [(-20, 1), (5, 1), (30, 1)]);
    assert_eq!(checker.ipdv().mean_abs(), Some(55.0 / 3.0));
    // Copies have no delay of their own.
    assert_eq!((checker.delays().count(), checker.delays().max()), (6, Some(900)));
}

#[test]
fn intervals_are_told_apart_and_add_up() {
    let pool = HeapPool::new(1, LEN);
    let mut checker = Checker::new(1, &[0], &[], LEN).with_intervals(1000, 4);
    checker.begin(5000);
    // Sequence, arrival, delay: nothing comes in the second interval, and the last one lasts until the end.
    let came =
        [(0, 5000, 10), (1, 5999, 30), (5, 7000, 20), (3, 7100, 140), (6, 7999, 20), (2, 8500, 9), (7, 99_999, 8)];
    for (sequence, now, delay) in came {
        checker.check(&[frame(&pool, 1, 0, sequence, now - delay, LEN)], now);
    }
    let all = checker.intervals();
    let seen: Vec<_> = all.iter().map(|i| (i.received, i.missing, i.min, i.p50, i.max)).collect();
    // Of frames 2 to 4, found missing in the third interval, 4 never comes.
    assert_eq!(seen, [(2, 0, 10, 10, 30), (0, 0, 0, 0, 0), (3, 1, 20, 20, 140), (2, 0, 8, 8, 9)]);
    assert_eq!((all[0].pairs, all[0].ipdv, all[0].ipdv_abs), (1, [20; 5], 20));
    assert_eq!((all[2].pairs, all[3].pairs, all[3].ipdv[0]), (1, 1, -12));
    assert_eq!((checker.delays().count(), checker.delays().max(), checker.ipdv().count()), (7, Some(140), 3));
    let losses = checker.losses(0, 9);
    assert_eq!(losses.longest.map(|run| (run.first, run.before, run.behind)), Some((4, Some(5999), Some(7000))));
    assert_eq!(losses.last.map(|run| (run.first, run.before, run.behind)), Some((8, Some(99_999), None)));
    assert_eq!(checker.losses(3, 9), Losses::default());
}

#[test]
fn frames_around_a_run_are_those_of_the_stream() {
    let pool = HeapPool::new(16, LEN);
    let mut checker = Checker::new(1, &[0], &[], LEN);
    let test = |sequence, departure| frame(&pool, 1, 0, sequence, departure, LEN);
    checker.check(&[test(0, 10), test(1, 10)], 100);
    checker.check(&[pool.frame(&[0; LEN]).unwrap()], 150);
    // A frame of somebody else's in front does not hide how long it was quiet.
    checker.check(&[pool.frame(&[0; LEN]).unwrap(), test(4, 190), test(6, 190)], 200);
    let losses = checker.losses(0, 7);
    let want = LostRun { first: 2, frames: 2, before: Some(100), behind: Some(200), departed: Some(190) };
    assert_eq!(losses.longest, Some(want));
    assert_eq!(losses.last, Some(LostRun { first: 5, frames: 1, before: Some(200), ..want }));
}

proptest! {
    /// Against a plain set, for sequences that jump about within and beyond the window.
    #[test]
    fn any_order_is_counted_as_a_set_would(jumps in proptest::collection::vec(prop_oneof![
        6 => 1i64..3,
        2 => -40i64..40,
        1 => -70_000i64..70_000,
        1 => 0i64..300_000,
    ], 1..400)) {
        let mut checker = Checker::new(1, &[0], &[], LEN);
        let (mut seen, mut highest, mut at) = (std::collections::HashSet::new(), -1i64, 0i64);
        let mut want = StreamCounts::default();
        for jump in jumps {
            at = (at + jump).max(0);
            feed(&mut checker, [at as u32]);
            if highest - at >= 1 << 16 {
                want.late += 1;
            } else if seen.insert(at) {
                want.received += 1;
                want.reordered += u64::from(at < highest);
            } else {
                want.duplicates += 1;
            }
            highest = highest.max(at);
        }
        prop_assert_eq!(counts(&checker), want);
    }

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..100), stamp: bool, sequence: u32, stream: u16) {
        let pool = HeapPool::new(1, 100);
        let mut bytes = bytes;
        let _ = stamp && Stamp { epoch: 1, stream: stream % 8, sequence, departure: u64::MAX / 3 }.write(&mut bytes);
        let mut checker = Checker::new(1, &[0, 1, 2], &[3], LEN);
        checker.check(&[pool.frame(&bytes).unwrap()], 7);
        let c = checker.counts();
        prop_assert_eq!(c.streams.received + c.foreign + c.misdirected + c.wrong_length + c.streams.late, 1);
    }
}
