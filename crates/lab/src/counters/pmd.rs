//! What the polling threads of Open vSwitch with DPDK did: `dpif-netdev/pmd-stats-show` has the cycles, `pmd-perf-show` the
//! rest. Both count since the start, so that a trial is the difference of two readings and nothing has to be cleared.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What one thread has counted since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ThreadCounts {
    /// Packets received.
    pub packets: u64,
    /// Clocks in rounds that found packets, and in those that found none.
    pub busy_cycles: u64,
    /// Clocks in rounds that found none.
    pub idle_cycles: u64,
    /// Packets whose flow was found in the exact-match cache.
    pub emc_hits: u64,
    /// Packets whose flow was found in the signature-match cache.
    pub smc_hits: u64,
    /// Packets of rules that only look at the port.
    pub simple_hits: u64,
    /// Packets whose flow was found by the classifier.
    pub megaflow_hits: u64,
    /// Packets whose flow was not known.
    pub upcalls: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bursts sent.
    pub tx_batches: u64,
}

impl ThreadCounts {
    /// What was counted from `before` to `self`; `None` if the counters went back.
    #[must_use]
    pub fn since(&self, before: &Self) -> Option<Self> {
        Some(Self {
            packets: self.packets.checked_sub(before.packets)?,
            busy_cycles: self.busy_cycles.checked_sub(before.busy_cycles)?,
            idle_cycles: self.idle_cycles.checked_sub(before.idle_cycles)?,
            emc_hits: self.emc_hits.checked_sub(before.emc_hits)?,
            smc_hits: self.smc_hits.checked_sub(before.smc_hits)?,
            simple_hits: self.simple_hits.checked_sub(before.simple_hits)?,
            megaflow_hits: self.megaflow_hits.checked_sub(before.megaflow_hits)?,
            upcalls: self.upcalls.checked_sub(before.upcalls)?,
            tx_packets: self.tx_packets.checked_sub(before.tx_packets)?,
            tx_batches: self.tx_batches.checked_sub(before.tx_batches)?,
        })
    }
}

/// The threads of both answers, by CPU. A thread that one of them lacks is left out.
pub fn parse(stats: &str, perf: &str) -> BTreeMap<u32, ThreadCounts> {
    let (stats, perf) = (blocks(stats), blocks(perf));
    let one = |(cpu, block): (&u32, &&str)| -> Option<(u32, ThreadCounts)> {
        let more = perf.get(cpu)?;
        let of = |name: &str| number(block, name);
        Some((
            *cpu,
            ThreadCounts {
                packets: of("packets received")?,
                busy_cycles: of("processing cycles")?,
                idle_cycles: of("idle cycles")?,
                emc_hits: of("emc hits")?,
                // Versions before 3.0 do not have it.
                smc_hits: of("smc hits").unwrap_or(0),
                simple_hits: of("simple match hits").unwrap_or(0),
                megaflow_hits: of("megaflow hits")?,
                upcalls: of("miss with success upcall")?.saturating_add(of("miss with failed upcall")?),
                tx_packets: number(more, "Tx packets")?,
                tx_batches: number(more, "Tx batches")?,
            },
        ))
    };
    stats.iter().filter_map(one).collect()
}

/// The text about each thread, by its CPU: `pmd thread numa_id 0 core_id 2:` comes before it.
fn blocks(text: &str) -> BTreeMap<u32, &str> {
    let mut all = BTreeMap::new();
    for block in text.split("pmd thread ").skip(1) {
        let Some((head, body)) = block.split_once(':') else { continue };
        let Some(cpu) = head.split_once("core_id ").and_then(|(_, cpu)| cpu.trim().parse().ok()) else { continue };
        // The main thread comes last, and polls only ports of the kernel.
        all.insert(cpu, body.split("main thread").next().unwrap_or(body));
    }
    all
}

/// The number behind `NAME:` at the beginning of a line, bullets aside.
fn number(block: &str, name: &str) -> Option<u64> {
    block.lines().find_map(|line| {
        let rest = line.trim().trim_start_matches("- ").strip_prefix(name)?.strip_prefix(':')?;
        rest.split_whitespace().next()?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATS: &str = "pmd thread numa_id 0 core_id 3:
  packets received: 165526
  packet recirculations: 0
  phwol hits: 0
  simple match hits: 165510
  emc hits: 1
  smc hits: 2
  megaflow hits: 14
  avg. subtable lookups per megaflow hit: 1.00
  miss with success upcall: 2
  miss with failed upcall: 1
  idle cycles: 12940745418 (96.92%)
  processing cycles: 411097113 (3.08%)
main thread:
  packets received: 0
  emc hits: 0
";
    const PERF: &str = "Time: 15:40:54.079
pmd thread numa_id 0 core_id 3:

  Iterations:             57041331  (0.09 us/it)
  - EMC hits:                    0  (  0.0 %)
  Tx packets:               165526  (32 Kpps)
  Tx batches:               128862  (1.28 pkts/batch)
";

    #[test]
    fn both_answers_make_one_reading() {
        let all = parse(STATS, PERF);
        let wanted = ThreadCounts {
            packets: 165_526,
            busy_cycles: 411_097_113,
            idle_cycles: 12_940_745_418,
            emc_hits: 1,
            smc_hits: 2,
            simple_hits: 165_510,
            megaflow_hits: 14,
            upcalls: 3,
            tx_packets: 165_526,
            tx_batches: 128_862,
        };
        assert_eq!(all, BTreeMap::from([(3, wanted)]));
        assert!(parse(STATS, "").is_empty() && parse("", PERF).is_empty());
        let later = ThreadCounts { packets: 165_530, upcalls: 4, ..wanted };
        let since = later.since(&wanted).unwrap();
        assert_eq!((since.packets, since.upcalls, since.busy_cycles), (4, 1, 0));
        assert_eq!(wanted.since(&later), None, "started again meanwhile");
    }
}
