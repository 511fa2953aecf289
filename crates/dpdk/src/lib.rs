//! DPDK behind a safe interface: one [`Eal`], lcores with scoped closures, memory pools, owned mbufs, ports whose
//! queues are handed out once, software cables, and forwarding tables.
//!
//! ```no_run
//! use dpdk::{Eal, EalOptions, Mempool, Port, PortConfig, Wire};
//! use packet::{Alloc, Burst, Rx, Tx};
//!
//! # fn main() -> Result<(), dpdk::DpdkError> {
//! let eal = Eal::init(EalOptions::default())?;
//! let pool = Mempool::new(eal, "frames", 4096, 2048, 256)?;
//! let (mut a, mut b) = Wire::pair(eal, "cable", 1024, &PortConfig::new(&pool))?;
//! let (mut tx, mut rx) = (a.take_tx(0)?, b.take_rx(0)?);
//! let mut burst = Burst::new();
//! pool.handle().alloc(&mut burst, 32, 60);
//! tx.tx(&mut burst);
//! rx.rx(&mut burst);
//! # Eal::cleanup();
//! # Ok(())
//! # }
//! ```
//!
//! # What keeps it safe
//!
//! * Queues exist only for started ports and keep them alive; a port is stopped and closed when it and all its queues
//!   are gone. DPDK itself does not check the port number of a burst.
//! * A pool is freed only when every mbuf is back in it; otherwise its memory is left to the end of the process.
//! * [`Eal::cleanup`] unmaps DPDK's memory only when no pool, port or table is left.
//! * An [`Mbuf`] is one owner of one reference; there is no way to copy it.

mod busy;
mod eal;
mod error;
mod fib;
mod iova;
mod lcore;
mod log;
mod mbuf;
mod memory;
mod mempool;
mod park;
mod port;
mod realtime;
mod shared_words;
mod sockets;
mod spec;
mod tsc;

pub use eal::{lost_hugepages, Eal, EalOptions, Lcore};
pub use error::DpdkError;
pub use fib::{Fib4, Fib6, FibConfig, Lookup, NextHopBytes};
pub use lcore::{current_lcore, JobHandle, Scope};
pub use log::log_tail;
pub use mbuf::Mbuf;
pub use memory::{Memory, MemoryKind};
pub use mempool::{Mempool, PoolHandle};
pub use park::Parked;
pub use port::{
    end_promiscuous, is_promiscuous, FrameMark, Link, PeerWatch, Port, PortConfig, PortStats, Progress, Rss, RxQueue,
    TxQueue, Wire, AF_XDP_MOST_MTU,
};
pub use realtime::{check_realtime, is_realtime, Scheduling};
pub use shared_words::{prefetch, SharedWords};
pub use sockets::{has_napi, set_busy_poll, HwStamps};
pub use spec::{EthDriver, PortSpec, Role};
pub use tsc::{OrderedTsc, Tsc};
