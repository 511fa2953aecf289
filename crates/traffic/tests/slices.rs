//! Slices of a checker against a plain count of the same frames.
#![allow(clippy::unwrap_used)]

use packet::{
    heap::{HeapBuf, HeapPool},
    stamp::Stamp,
};
use proptest::prelude::*;
use traffic::checker::{CameSlice, CheckedSlice, Checker, Grid};

const LEN: usize = 60;
const START: u64 = 1_000;
const GRID: Grid = Grid { width: 100, count: 5 };

fn frame(pool: &HeapPool, sequence: u32, departure: u64) -> HeapBuf {
    let mut bytes = vec![0x55; LEN];
    assert!(Stamp { epoch: 1, stream: 0, sequence, departure }.write(&mut bytes));
    pool.frame(&bytes).unwrap()
}

fn index(tick: u64) -> usize {
    ((tick.saturating_sub(START) / GRID.width) as usize).min(GRID.count - 1)
}

/// Numbers and departures of frames that arrive together.
type Arrival = (u64, Vec<(u32, u64)>);

fn checked(arrivals: &[Arrival]) -> Vec<CheckedSlice> {
    let pool = HeapPool::new(256, LEN);
    let mut checker = Checker::new(1, &[0], &[], LEN).with_slices(GRID);
    checker.begin(START);
    for (now, frames) in arrivals {
        let burst: Vec<HeapBuf> = frames.iter().map(|(n, departure)| frame(&pool, *n, *departure)).collect();
        checker.check(&burst, *now);
    }
    checker.slices()
}

fn add(slice: &mut CameSlice, delay: u64) {
    slice.frames += 1;
    slice.min = slice.min.min(delay as u32);
    slice.sum += delay;
}

fn counted(arrivals: &[Arrival]) -> Vec<CheckedSlice> {
    let mut slices = vec![CheckedSlice::default(); GRID.count];
    let mut seen = std::collections::BTreeSet::new();
    for (now, frames) in arrivals {
        for (n, departure) in frames {
            let delay = now.saturating_sub(*departure);
            if !seen.insert(*n) {
                slices[index(*now)].duplicates += 1;
                continue;
            }
            add(&mut slices[index(*departure)].departed, delay);
            add(&mut slices[index(*now)].arrived, delay);
        }
    }
    slices
}

#[test]
fn loss_stands_in_the_slice_of_the_departure() {
    // Ten frames a slice; all that depart in the third slice are lost, and what departs in the second arrives in the third.
    let departs = |n: u32| START + u64::from(n) * 10;
    let arrivals: Vec<Arrival> =
        (0..50).filter(|n| !(20..30).contains(n)).map(|n| (departs(n) + 100, vec![(n, departs(n))])).collect();
    let slices = checked(&arrivals);
    assert_eq!(slices.iter().map(|s| s.departed.frames).collect::<Vec<_>>(), [10, 10, 0, 10, 10]);
    assert_eq!(slices.iter().map(|s| s.arrived.frames).collect::<Vec<_>>(), [0, 10, 10, 0, 20]);
    assert_eq!((slices[1].departed.min, slices[1].departed.sum), (100, 1000));
    assert_eq!(slices[2].departed.min, u32::MAX);
}

#[test]
fn without_a_grid_there_are_no_slices() {
    let mut checker = Checker::new(1, &[0], &[], LEN);
    checker.begin(START);
    let pool = HeapPool::new(1, LEN);
    checker.check(&[frame(&pool, 0, START)], START + 5);
    assert!(checker.slices().is_empty());
    assert_eq!(checker.received(), 1);
}

proptest! {
    /// Lost, reordered and copied frames, in bursts, across slices and past the last one.
    #[test]
    fn slices_are_what_a_plain_count_says(
        steps in prop::collection::vec((0u64..25, 0u8..10, 1usize..6), 1..120),
        delay in 0u64..300,
    ) {
        let (mut at, mut arrivals): (u64, Vec<Arrival>) = (START, Vec::new());
        let mut sent: Vec<(u32, u64)> = Vec::new();
        for (step, what, burst) in steps {
            at += step;
            let mut frames = Vec::new();
            for _ in 0..burst {
                let n = sent.len() as u32;
                sent.push((n, at));
                match what {
                    0 => {}
                    1 => frames.extend([(n, at), (n, at)]),
                    2 => frames.insert(0, (n, at)),
                    3 => {
                        frames.insert(0, sent[sent.len() / 2]);
                        frames.push((n, at));
                    }
                    _ => frames.push((n, at)),
                }
            }
            arrivals.push((at + delay, frames));
        }
        prop_assert_eq!(checked(&arrivals), counted(&arrivals));
    }
}
