//! Host facts, and what disturbs a polling core.
//!
//! Everything is read from `/proc` and `/sys` under a [`Roots`], so that tests feed it fixture trees. What the kernel
//! does not report is `None`, never a guess: inside a virtual machine most of it is missing, and the polling gaps and
//! the core-to-core probe, which need nothing from the kernel, carry the weight.
#![forbid(unsafe_code)]

pub mod audit;
mod beside;
mod boot_line;
mod core_facts;
pub mod core_plan;
mod core_to_core;
mod cpu_list;
pub mod cpu_set;
mod fact;
mod facts;
mod interference;
mod interrupt_table;
pub mod journal;
pub mod machine;
mod net_namespace;
pub mod outcome;
pub mod pci;
pub mod pcie;
mod pinned;
mod place;
mod power;
mod processes;
mod realtime;
mod recording;
mod roots;
pub mod rules;
mod run;
mod smbios;
mod thread_waits;
pub mod tuning;
mod waits;
pub mod watch;

pub use boot_line::BootLine;
pub use core_facts::{rt_throttle_share, CoreFacts};
pub use core_to_core::CoreToCoreProbe;
pub use fact::Fact;
pub use facts::Facts;
pub use interference::{current_tid, CpuSnapshot};
pub use pci::PciDevice;
pub use pinned::{may_run_on, pin, run_on, Pinned};
pub use place::Place;
pub use power::{Power, PowerMeter, PowerSnapshot, POWER_GLANCE};
pub use processes::{ProcessTimes, Ran};
pub use realtime::RealtimeLimits;
pub use recording::{NotRecording, Recording};
pub use roots::Roots;
pub use thread_waits::{ThreadTime, ThreadWaits};
pub use waits::CoreCounters;
