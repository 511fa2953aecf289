//! The lab that was measured, as a result keeps it: two results can be told apart by it.

use serde::{Deserialize, Serialize};

/// A real system under test that Linerate brought up.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LabRecord {
    /// The topology's name.
    pub topology: String,
    /// What it is, in words.
    pub description: String,
    /// The other host that it ran on: `ssh://root@dut`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// The topology as a picture of text.
    pub diagram: String,
    /// What its virtual machines are run by, `kvm` or `tcg`; `None` if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accelerator: Option<String>,
    /// Receive queues of each port.
    pub queues: u32,
    /// Descriptors of each virtio ring, as asked for.
    #[serde(default)]
    pub ring: u32,
    /// Whether the switch has its exact-match cache, and its signature-match cache.
    #[serde(default)]
    pub emc: bool,
    /// See `emc`.
    #[serde(default)]
    pub smc: bool,
    /// What each guest runs.
    #[serde(default)]
    pub guests: Vec<LabGuest>,
    /// VXLAN networks whose frames its switch takes at the tester's ports, and no others (RFC 7348).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vxlan_networks: Vec<u32>,
    /// What was agreed on at each vhost-user port of the switch.
    #[serde(default)]
    pub virtio: Vec<LabVirtio>,
    /// CPUs of the switch's poll-mode threads.
    pub pmd_cpus: Vec<u32>,
    /// CPUs that more than one polling thread has.
    pub shared_cpus: Vec<u32>,
    /// Versions of its parts, in words.
    pub versions: Vec<String>,
    /// Its programs, with the CPUs of their threads as read back.
    pub programs: Vec<LabProgram>,
    /// Every command line that brought it up, in order.
    pub commands: Vec<String>,
    /// What was checked with the tester's ports up, and what the commands printed.
    pub checks: Vec<LabCheck>,
}

/// A guest of a lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabGuest {
    /// Its name.
    pub name: String,
    /// What it runs: `testpmd-mac`.
    pub application: String,
}

/// A vhost-user port of the switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabVirtio {
    /// Its name.
    pub port: String,
    /// The features that both ends have: `VERSION_1` (virtio 1.2, 5.1.3 and 6).
    pub features: Vec<String>,
    /// Descriptors of each ring, receive and transmit of the first queue first.
    pub rings: Vec<u32>,
}

/// A program of a lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabProgram {
    /// Its name.
    pub name: String,
    /// Its threads: the name of each and the CPUs that it may use.
    pub threads: Vec<(String, String)>,
}

/// Something that was checked before the first trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabCheck {
    /// What held.
    pub what: String,
    /// The command that asked.
    pub command: String,
    /// What it printed.
    pub printed: String,
}

/// Whether a frame enters a node or leaves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HopWay {
    /// Into the node.
    In,
    /// Out of the node.
    Out,
}

/// What a port on the way has counted over a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hop {
    /// The port: `br0:1`.
    pub at: String,
    /// Into its node or out of it.
    pub way: HopWay,
    /// Frames; `None` where the counter cannot be read.
    pub frames: Option<u64>,
}

/// What a polling thread of the switch did over a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SwitchThread {
    /// Its CPU.
    pub cpu: u32,
    /// Packets received.
    pub packets: u64,
    /// Clocks in rounds that found packets.
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

/// The threads of several trials by CPU, added up.
pub fn sum_threads<'a>(trials: impl IntoIterator<Item = &'a [SwitchThread]>) -> Vec<SwitchThread> {
    let mut all: Vec<SwitchThread> = Vec::new();
    for thread in trials.into_iter().flatten() {
        match all.iter_mut().find(|sum| sum.cpu == thread.cpu) {
            Some(sum) => {
                sum.packets = sum.packets.saturating_add(thread.packets);
                sum.busy_cycles = sum.busy_cycles.saturating_add(thread.busy_cycles);
                sum.idle_cycles = sum.idle_cycles.saturating_add(thread.idle_cycles);
                sum.emc_hits = sum.emc_hits.saturating_add(thread.emc_hits);
                sum.smc_hits = sum.smc_hits.saturating_add(thread.smc_hits);
                sum.simple_hits = sum.simple_hits.saturating_add(thread.simple_hits);
                sum.megaflow_hits = sum.megaflow_hits.saturating_add(thread.megaflow_hits);
                sum.upcalls = sum.upcalls.saturating_add(thread.upcalls);
                sum.tx_packets = sum.tx_packets.saturating_add(thread.tx_packets);
                sum.tx_batches = sum.tx_batches.saturating_add(thread.tx_batches);
            }
            None => all.push(*thread),
        }
    }
    all
}

/// Where frames of a direction were lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HopLoss {
    /// The hop.
    pub hop: Hop,
    /// Frames lost since the last hop before it whose counter is known: negative if more came than went. `None` where this
    /// hop's counter is unknown, and at the first hop.
    pub lost: Option<i64>,
}

/// The losses between hops, in the order in which frames pass them.
pub fn losses(hops: &[Hop]) -> Vec<HopLoss> {
    let mut before: Option<u64> = None;
    let one = |hop: &Hop| {
        let lost = before
            .zip(hop.frames)
            .map(|(before, now)| i64::try_from(i128::from(before) - i128::from(now)).unwrap_or(0));
        before = hop.frames.or(before);
        HopLoss { hop: hop.clone(), lost }
    };
    hops.iter().map(one).collect()
}

/// The hops of several trials of one direction, added up; a counter that is unknown in one of them is unknown.
pub fn sum<'a>(trials: impl IntoIterator<Item = &'a [Hop]>) -> Vec<Hop> {
    let mut all: Vec<Hop> = Vec::new();
    for hops in trials.into_iter().filter(|hops| !hops.is_empty()) {
        if all.is_empty() {
            all = hops.to_vec();
            continue;
        }
        for (sum, hop) in all.iter_mut().zip(hops) {
            sum.frames = sum.frames.zip(hop.frames).map(|(a, b)| a.saturating_add(b));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(at: &str, frames: Option<u64>) -> Hop {
        Hop { at: at.to_owned(), way: HopWay::In, frames }
    }

    #[test]
    fn losses_are_between_known_counters_and_add_up() {
        let hops = [hop("a", Some(100)), hop("b", Some(90)), hop("c", None), hop("d", Some(70)), hop("e", Some(71))];
        let lost: Vec<_> = losses(&hops).into_iter().map(|l| l.lost).collect();
        assert_eq!(lost, [None, Some(10), None, Some(20), Some(-1)]);
        assert_eq!(lost.iter().flatten().sum::<i64>(), 29, "what the first sent and the last did not get");
    }

    #[test]
    fn threads_are_added_up_by_cpu() {
        let thread = |cpu, packets| SwitchThread { cpu, packets, tx_batches: 1, ..SwitchThread::default() };
        let (one, two) = ([thread(2, 5), thread(3, 1)], [thread(3, 7)]);
        let sums = sum_threads([&one[..], &two[..]]);
        assert_eq!(sums.iter().map(|t| (t.cpu, t.packets, t.tx_batches)).collect::<Vec<_>>(), [(2, 5, 1), (3, 8, 2)]);
    }

    #[test]
    fn an_unknown_counter_stays_unknown_in_a_sum() {
        let (one, two) = ([hop("a", Some(1)), hop("b", Some(2))], [hop("a", Some(3)), hop("b", None)]);
        assert_eq!(sum([&one[..], &[], &two[..]]), [hop("a", Some(4)), hop("b", None)]);
        assert_eq!(sum([]), []);
    }
}
