//! Which memory DPDK uses: huge pages or ordinary memory.

use dpdk_sys as sys;

use crate::{log, DpdkError};

/// Which memory DPDK is to use, and how much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// 2 MiB pages if that many are free, ordinary memory otherwise.
    Auto {
        /// MiB.
        mib: u32,
    },
    /// 2 MiB pages, or an error.
    Huge {
        /// MiB.
        mib: u32,
    },
    /// Ordinary memory.
    NoHuge {
        /// MiB.
        mib: u32,
    },
}

/// Which memory DPDK got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryKind {
    /// 2 MiB pages, anonymous: no file in hugetlbfs, and none needed to be mounted.
    Huge,
    /// A memfd of ordinary pages.
    NoHuge,
}

impl MemoryKind {
    /// `hugepages` or `no hugepages`, for a report.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Huge => "hugepages",
            Self::NoHuge => "no hugepages",
        }
    }
}

const PAGE_MIB: u32 = 2;
/// Below this neither the EAL nor a pool is any use.
const LEAST_MIB: u32 = 16;

impl Memory {
    /// Decides before `rte_eal_init`, which cannot be called again after it failed on memory.
    pub(crate) fn decide(self) -> Result<(MemoryKind, u32), DpdkError> {
        let (Self::Auto { mib } | Self::Huge { mib } | Self::NoHuge { mib }) = self;
        if mib < LEAST_MIB {
            let why = format!("must be at least {LEAST_MIB} MiB");
            return Err(DpdkError::Config { what: format!("memory {mib} MiB"), why });
        }
        match self {
            Self::NoHuge { .. } => Ok((MemoryKind::NoHuge, mib)),
            Self::Auto { .. } => {
                let kind = if probe(mib).is_ok() { MemoryKind::Huge } else { MemoryKind::NoHuge };
                Ok((kind, mib))
            }
            Self::Huge { .. } => probe(mib).map(|()| (MemoryKind::Huge, mib)),
        }
    }
}

/// Whether the kernel would hand out that many huge pages to this process now.
fn probe(mib: u32) -> Result<(), DpdkError> {
    // One more than asked: the EAL rounds its own structures up.
    let needed = u64::from(mib.div_ceil(PAGE_MIB)) + 1;
    let free = free_huge_pages();
    let refuse = |reason: &str| Err(DpdkError::NoHugepages { needed, free, reason: reason.to_string() });
    if free < needed {
        return refuse("HugePages_Free in /proc/meminfo");
    }
    // SAFETY: reserves and releases anonymous memory of its own.
    match unsafe { sys::lr_huge_probe((needed * u64::from(PAGE_MIB)) << 20) } {
        0 => Ok(()),
        err => refuse(&log::errno_text(err)),
    }
}

fn free_huge_pages() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find(|l| l.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    match field("Hugepagesize:") {
        Some(2048) => field("HugePages_Free:").unwrap_or(0).saturating_sub(field("HugePages_Rsvd:").unwrap_or(0)),
        _ => 0,
    }
}
