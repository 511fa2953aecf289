//! Millions of random and mutated frames through every function, with everything going wrong around them that can: full
//! queues, an empty pool, tables changed under way, frames lost, doubled and delayed. Nothing panics, every frame is
//! accounted for at every moment, and in the end the pool has all its buffers back.
//!
//! `LINERATE_SOAK_FRAMES` says how many frames; `LINERATE_SOAK_SEED` which; `LINERATE_SOAK_ROUND` runs one round alone,
//! as the message of a failure says.
#![allow(clippy::unwrap_used, clippy::panic)]

mod dice;
mod frames;
mod mutate;
mod plans;
mod repair;
mod rig;

use std::{
    sync::{
        atomic::{AtomicUsize, Ordering},
        Mutex,
    },
    thread,
    time::Instant,
};

use dataplane::{spec::FunctionKind, DropCounters, DropReason};

use dice::Dice;
use rig::Totals;

/// Frames in a round: one data plane, from its start to its end.
const ROUND: usize = 20_000;
/// A round of each of these in turn: those with more to go wrong come more often.
const KINDS: [FunctionKind; 16] = {
    use FunctionKind::{Bridge, L2MacSwap, Mpls, Null, Pass, Vxlan, L2, L3};
    [L3, Mpls, Vxlan, Bridge, L3, Vxlan, Mpls, Vxlan, L3, Mpls, Bridge, L2MacSwap, Vxlan, L2, Null, Pass]
};
/// Drop reasons that do not come up here: the flow logger is not among these, and a data plane that is consistent never
/// names a port that is not there.
const NEVER: [DropReason; 2] = [DropReason::Logged, DropReason::NoPort];

fn env(name: &str, default: usize) -> usize {
    std::env::var(name).ok().map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}: a number, please")))
}

/// Says which round it was, should it end in a panic.
struct Tell(usize, usize, FunctionKind);

impl Drop for Tell {
    fn drop(&mut self) {
        if thread::panicking() {
            let Self(seed, round, kind) = self;
            eprintln!("{kind}; again with LINERATE_SOAK_SEED={seed} LINERATE_SOAK_ROUND={round}");
        }
    }
}

#[test]
fn no_frame_panics_hangs_or_is_lost() {
    let (seed, frames) = (env("LINERATE_SOAK_SEED", 1), env("LINERATE_SOAK_FRAMES", 1_500_000));
    let alone = std::env::var("LINERATE_SOAK_ROUND").is_ok();
    let first = env("LINERATE_SOAK_ROUND", 0);
    let rounds = if alone { first + 1 } else { frames.div_ceil(ROUND) };
    let (next, totals, since) = (AtomicUsize::new(first), Mutex::new(Totals::default()), Instant::now());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from).min(rounds - first) {
            scope.spawn(|| loop {
                let round = next.fetch_add(1, Ordering::Relaxed);
                if round >= rounds {
                    break;
                }
                let kind = KINDS[round % KINDS.len()];
                let tell = Tell(seed, round, kind);
                let mut dice = Dice::new((seed as u64).wrapping_mul(1_000_003).wrapping_add(round as u64));
                let seen = rig::round(kind, &mut dice, ROUND);
                totals.lock().unwrap().add(&seen);
                drop(tell);
            });
        }
    });
    let totals = totals.into_inner().unwrap();
    println!("seed {seed}, {rounds} rounds in {:.1?}:\n{totals}", since.elapsed());
    if !alone && rounds >= 2 * KINDS.len() {
        every_reason(&totals.drops);
        assert!(
            totals.received as usize >= rounds * ROUND * 9 / 10,
            "most frames are received: the pool is not that small"
        );
        assert!(totals.changes > rounds as u64 && totals.learned > 0 && totals.sent > 0 && totals.punted > 0);
    }
}

/// The soak reaches what it is to reach.
fn every_reason(drops: &DropCounters) {
    let missing: Vec<_> = drops.iter().filter(|&(_, n)| n == 0).map(|(reason, _)| reason).collect();
    assert_eq!(missing, NEVER);
}
