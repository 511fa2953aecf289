use std::{
    ffi::CString,
    net::{Ipv4Addr, Ipv6Addr},
    ptr::NonNull,
    sync::atomic::{AtomicU32, Ordering},
};

use dpdk_sys as sys;

use crate::{eal::Alive, log, DpdkError, Eal};

/// How many bytes an entry of a forwarding table has. One bit of it is DPDK's, so next hops are below half the range.
/// The first level has 2^24 entries, so this also decides its memory: 32, 64 or 128 MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextHopBytes {
    /// Next hops 0 to 32766.
    Two,
    /// Next hops 0 to 2147483646.
    Four,
    /// Every next hop of 32 bits.
    Eight,
}

impl NextHopBytes {
    fn count(self) -> u32 {
        match self {
            Self::Two => 2,
            Self::Four => 4,
            Self::Eight => 8,
        }
    }

    /// What a lookup returns for an address without a route: the largest value an entry holds.
    pub fn no_route(self) -> u64 {
        (1 << (self.count() * 8 - 1)) - 1
    }
}

macro_rules! fib {
    ($(#[$doc:meta])* $name:ident, $raw:ident, $table:literal, $addr:ty, $std:ty, $most:literal,
     $create:ident, $free:ident, $add:ident, $delete:ident, $lookup:ident, $arg:expr) => {
        $(#[$doc])*
        pub struct $name {
            fib: NonNull<sys::$raw>,
            bytes: NextHopBytes,
            _alive: Alive,
        }

        // SAFETY: a table has no thread affinity.
        unsafe impl Send for $name {}
        // SAFETY: lookups only read; changes need `&mut`.
        unsafe impl Sync for $name {}

        impl $name {
            /// An empty table for up to `max_routes` routes. Errors when DPDK's memory does not hold it.
            pub fn new(eal: &'static Eal, max_routes: u32, bytes: NextHopBytes) -> Result<Self, DpdkError> {
                let what = || format!("the {} table for {max_routes} routes", $table);
                let alive = eal.alive()?;
                if max_routes == 0 || max_routes > 1 << 24 {
                    return Err(DpdkError::Config { what: what(), why: "legal are 1 to 16777216 routes".into() });
                }
                let name = unique_name();
                // Second-level groups of 256 entries: at most one per long route, and what an entry can number.
                let tbl8 = max_routes.saturating_mul($most).clamp(256, 1 << 15).min(bytes.no_route() as u32);
                log::mark();
                // SAFETY: the EAL runs; the name is NUL-terminated and copied.
                let fib = unsafe {
                    sys::$create(name.as_ptr(), max_routes, tbl8, bytes.count(), bytes.no_route())
                };
                match NonNull::new(fib) {
                    Some(fib) => Ok(Self { fib, bytes, _alive: alive }),
                    None => Err(DpdkError::NoMemory { what: what(), reason: log::errno_text(log::errno()) }),
                }
            }

            /// What [`Self::lookup_bulk`] gives for an address without a route.
            pub fn no_route(&self) -> u64 {
                self.bytes.no_route()
            }

            /// Adds or replaces a route. Bits behind the prefix are ignored. Errors when the table is full, the prefix
            /// too long, or the next hop too large for an entry.
            pub fn add(&mut self, prefix: $std, len: u8, next_hop: u32) -> Result<(), DpdkError> {
                if u64::from(next_hop) >= self.no_route() {
                    let reason = format!("next hop {next_hop} is too large; legal are 0 to {}", self.no_route() - 1);
                    return Err(DpdkError::Fib { table: $table, what: format!("route {prefix}/{len}"), reason });
                }
                let ip: $addr = $arg(prefix);
                // SAFETY: the table is live and borrowed mutably.
                let err = unsafe { sys::$add(self.fib.as_ptr(), ip.as_arg(), len, next_hop.into()) };
                check($table, prefix, len, err)
            }

            /// Takes a route away. Errors when there is none.
            pub fn remove(&mut self, prefix: $std, len: u8) -> Result<(), DpdkError> {
                let ip: $addr = $arg(prefix);
                // SAFETY: as in `add`.
                let err = unsafe { sys::$delete(self.fib.as_ptr(), ip.as_arg(), len) };
                check($table, prefix, len, err)
            }

            /// Looks addresses up: `next_hops[i]` for `addresses[i]`, as many as the shorter of the two has.
            #[inline]
            pub fn lookup_bulk(&self, addresses: &[$addr], next_hops: &mut [u64]) {
                let n = addresses.len().min(next_hops.len());
                // SAFETY: the table is live; both slices hold at least n entries.
                unsafe { sys::$lookup(self.fib.as_ptr(), addresses.as_ptr().cast(), next_hops.as_mut_ptr(), n as u32) };
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: the table is live and nobody else has it.
                unsafe { sys::$free(self.fib.as_ptr()) };
            }
        }
    };
}

/// How an address is handed to C.
trait AsArg {
    type Arg;
    fn as_arg(&self) -> Self::Arg;
}

impl AsArg for u32 {
    type Arg = u32;
    fn as_arg(&self) -> u32 {
        *self
    }
}

impl AsArg for [u8; 16] {
    type Arg = *const u8;
    fn as_arg(&self) -> *const u8 {
        self.as_ptr()
    }
}

fib! {
    /// DPDK's IPv4 forwarding table (`rte_fib`, DIR24_8). Addresses are in host order, as [`Ipv4Addr::to_bits`].
    ///
    /// Longest match in one or two memory reads. Lookups from many lcores at once; changes need the only reference.
    Fib4, rte_fib, "IPv4", u32, Ipv4Addr, 1,
    lr_fib_create, lr_fib_free, lr_fib_add, lr_fib_delete, lr_fib_lookup, Ipv4Addr::to_bits
}

fib! {
    /// DPDK's IPv6 forwarding table (`rte_fib6`, TRIE). Addresses are in network order, as [`Ipv6Addr::octets`].
    ///
    /// One memory read for the first 24 bits and one for each 8 more. Sharing as for [`Fib4`].
    Fib6, rte_fib6, "IPv6", [u8; 16], Ipv6Addr, 14,
    lr_fib6_create, lr_fib6_free, lr_fib6_add, lr_fib6_delete, lr_fib6_lookup, |ip: Ipv6Addr| ip.octets()
}

fn unique_name() -> CString {
    static SERIAL: AtomicU32 = AtomicU32::new(0);
    CString::new(format!("lr_fib{}", SERIAL.fetch_add(1, Ordering::Relaxed))).unwrap_or_default()
}

fn check(table: &'static str, prefix: impl std::fmt::Display, len: u8, err: i32) -> Result<(), DpdkError> {
    const ENOENT: i32 = 2;
    const ENOMEM: i32 = 12;
    const EINVAL: i32 = 22;
    const ENOSPC: i32 = 28;
    let reason = match err.abs() {
        0 => return Ok(()),
        ENOENT => "there is no such route".to_string(),
        EINVAL => "the prefix length is too long".to_string(),
        ENOSPC | ENOMEM => "the table is full".to_string(),
        _ => log::errno_text(err),
    };
    Err(DpdkError::Fib { table, what: format!("route {prefix}/{len}"), reason })
}
