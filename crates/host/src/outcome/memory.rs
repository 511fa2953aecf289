//! How long a read of memory takes that no cache has.

use std::{hint::black_box, time::Instant};

use crate::Roots;

/// Numbers in a cache line.
const LINE: usize = 16;
/// Cache lines: 128 MiB.
const LINES: u32 = 2 << 20;
/// Reads that are timed: some 50 ms.
const READS: u32 = 400_000;
/// Steps between two looks whether to end.
const LOOK: u32 = 1 << 16;

/// Nanoseconds of a read at a random place. `None` if memory is short, or it was asked to end.
pub(super) fn random_read_ns(roots: &Roots, go_on: &(dyn Fn() -> bool + Sync)) -> Option<f64> {
    let bytes = LINES as usize * LINE * size_of::<u32>();
    // A quarter of what is free at most: nobody is to be pushed out of memory for this.
    if available(roots)? / 4 < bytes as u64 {
        return None;
    }
    let mut chain: Vec<u32> = Vec::new();
    chain.try_reserve_exact(LINES as usize * LINE).ok()?;
    chain.resize(LINES as usize * LINE, 0);
    one_round(&mut chain, LINES, go_on)?;
    let start = Instant::now();
    let mut at = 0u32;
    for _ in 0..READS {
        at = chain[at as usize * LINE];
    }
    black_box(at);
    Some(start.elapsed().as_secs_f64() * 1e9 / f64::from(READS))
}

/// Makes each line name another one, so that following them comes by all of them before the first comes again (Sattolo 1986).
fn one_round(chain: &mut [u32], lines: u32, go_on: &(dyn Fn() -> bool + Sync)) -> Option<()> {
    for line in 0..lines {
        chain[line as usize * LINE] = line;
    }
    // Any generator will do whose steps a prefetcher does not guess (Vigna, xorshift64).
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for line in (1..lines).rev() {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let other = (random % u64::from(line)) as usize;
        chain.swap(line as usize * LINE, other * LINE);
        if line.is_multiple_of(LOOK) && !go_on() {
            return None;
        }
    }
    Some(())
}

/// Bytes of memory that programs can have without swapping (`MemAvailable`); `None` if the kernel does not say.
pub fn available(roots: &Roots) -> Option<u64> {
    let text = roots.fact("/proc/meminfo").known()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_ascii_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn following_the_chain_comes_by_every_line_once() {
        const SMALL: u32 = 1000;
        let mut chain = vec![0; SMALL as usize * LINE];
        one_round(&mut chain, SMALL, &|| true).unwrap();
        let (mut at, mut seen) = (0u32, vec![false; SMALL as usize]);
        for _ in 0..SMALL {
            assert!(!std::mem::replace(&mut seen[at as usize], true));
            at = chain[at as usize * LINE];
        }
        assert_eq!(at, 0);
        assert_eq!(one_round(&mut vec![0; (LOOK as usize + 1) * LINE], LOOK + 1, &|| false), None);
    }

    #[test]
    fn memory_that_is_short_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("proc")).unwrap();
        std::fs::write(dir.path().join("proc/meminfo"), "MemTotal: 9 kB\nMemAvailable: 262144 kB\n").unwrap();
        let roots = Roots::at(dir.path());
        assert_eq!(available(&roots), Some(256 << 20));
        assert_eq!(random_read_ns(&roots, &|| true), None);
    }
}
