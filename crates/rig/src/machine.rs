//! The cores and the memory that DPDK is started with.

use std::time::Duration;

use dpdk::{Eal, EalOptions, Lcore, Memory, PortSpec};
use failure::Failure;
use host::core_plan::CorePlan;
use serde::{Deserialize, Serialize};

use crate::{
    cpus::CpuPlan,
    lcores::{OTHER_LCORE, TESTER_LCORE},
    lock_file::LockFile,
    realtime::RealtimeChoice,
    restart::is_again,
};

/// How long another Linerate may take to start DPDK.
const START: Duration = Duration::from_secs(10);

/// The memory of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryChoice {
    /// Hugepages if there are any, ordinary pages otherwise.
    #[default]
    Auto,
    /// Hugepages only; an error where there are too few.
    Hugepages,
    /// Ordinary pages.
    NoHugepages,
}

/// Cores and memory, as a user may choose them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineOptions {
    /// CPU of the tester's polling core.
    pub tester_cpu: Option<u32>,
    /// CPU of the built-in device.
    pub dut_cpu: Option<u32>,
    /// Processes of an outside device: when their threads wait for a CPU is seen.
    #[serde(default)]
    pub dut_pids: Vec<u32>,
    /// Whether polling lcores get real-time priority.
    pub realtime: RealtimeChoice,
    /// Kind of memory.
    pub memory: MemoryChoice,
    /// MiB of it.
    pub memory_mib: u32,
    /// Descriptors of each receive and transmit queue: a power of two, 64 to 32768.
    pub descriptors: u32,
    /// Which core does what, where a plan says it: settings of the host are judged by it.
    #[serde(default)]
    pub core_plan: Option<CorePlan>,
    /// Whether a machine with bad findings is refused.
    #[serde(default)]
    pub require_audit: bool,
}

impl Default for MachineOptions {
    fn default() -> Self {
        Self {
            tester_cpu: None,
            dut_cpu: None,
            dut_pids: Vec::new(),
            realtime: RealtimeChoice::Auto,
            memory: MemoryChoice::Auto,
            memory_mib: 256,
            descriptors: 2048,
            core_plan: None,
            require_audit: false,
        }
    }
}

/// Refuses a number of descriptors that software rings would round.
///
/// # Errors
///
/// (usage) when it is not a power of two.
pub fn check_descriptors(descriptors: u32) -> Result<(), Failure> {
    match descriptors {
        n if n.is_power_of_two() => Ok(()),
        n => Err(Failure::usage(format!("--descriptors {n}: must be a power of two, 64 to 32768"))),
    }
}

/// Starts DPDK with the tester's lcore and the other one of this plan.
pub(crate) fn start_rig_eal(
    machine: &MachineOptions,
    tables_mib: u32,
    cpus: CpuPlan,
    specs: &[PortSpec],
) -> Result<&'static Eal, Failure> {
    let mut lcores = vec![Lcore { id: TESTER_LCORE, cpu: cpus.tester }];
    lcores.extend(cpus.other.map(|cpu| Lcore { id: OTHER_LCORE, cpu }));
    start(machine, tables_mib, lcores, specs)
}

/// Starts DPDK with lcore 1 on the first of these CPUs, lcore 2 on the second, and so on.
///
/// # Errors
///
/// (machine) for what DPDK lacks or refuses.
pub fn start_forward_eal(
    machine: &MachineOptions,
    tables_mib: u32,
    cpus: &[u32],
    specs: &[PortSpec],
) -> Result<&'static Eal, Failure> {
    start(machine, tables_mib, cpus.iter().zip(1..).map(|(&cpu, id)| Lcore { id, cpu }).collect(), specs)
}

fn start(
    machine: &MachineOptions,
    tables_mib: u32,
    lcores: Vec<Lcore>,
    specs: &[PortSpec],
) -> Result<&'static Eal, Failure> {
    let mib = machine.memory_mib.saturating_add(tables_mib);
    // Free hugepages are counted, then taken: two that start at once would count the same ones.
    let _alone = control::private_directory().ok().and_then(|dir| LockFile::wait(&dir.join("memory.lock"), START));
    let pci = specs.iter().filter_map(|s| match s {
        PortSpec::Pci { address, .. } => Some(address.clone()),
        _ => None,
    });
    Ok(Eal::init(EalOptions {
        lcores,
        memory: match machine.memory {
            MemoryChoice::Auto if is_again() => Memory::NoHuge { mib },
            MemoryChoice::Auto => Memory::Auto { mib },
            MemoryChoice::Hugepages => Memory::Huge { mib },
            MemoryChoice::NoHugepages => Memory::NoHuge { mib },
        },
        pci: pci.collect(),
    })?)
}

/// Tags, labels and tunnel headers that a device may add to the longest frame.
const HEADER_ROOM: usize = 78;
/// The most mbufs of a pool: one less than a power of two fits best.
const FRAMES: u32 = (1 << 14) - 1;

/// Bytes of a buffer for the longest frame: at least what drivers expect.
pub(crate) fn data_room(max_frame: usize) -> u16 {
    (max_frame + HEADER_ROOM).max(2048) as u16
}

/// Memory for so many more frames of a pool, MiB.
pub(crate) fn frames_mib(frames: u32, room: u16) -> u32 {
    // The pool rounds up to a power of two, and each buffer has a header and head room.
    let bytes = u64::from(frames) * 2 * (u64::from(room) + 384);
    u32::try_from(bytes.div_ceil(1 << 20)).unwrap_or(u32::MAX)
}

/// Frames for `rings` rings of this depth, for `held` frames in queues, for caches and for bursts being handled. The lower bound leaves room for caches
/// where rings are small.
pub(crate) fn pool_size(descriptors: u32, rings: u32, held: u32) -> u32 {
    (descriptors * rings + 4096 + held).next_power_of_two().max(FRAMES + 1) - 1
}
