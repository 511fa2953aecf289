//! DPDK's forwarding tables for IPv4 and IPv6.

use std::{
    ffi::CString,
    net::{Ipv4Addr, Ipv6Addr},
    sync::atomic::{AtomicU32, Ordering},
};

use dpdk_sys as sys;

use crate::{eal::Alive, log, DpdkError, Eal};

/// How many bytes an entry of a forwarding table has. One bit of it is DPDK's, so next hops are below half the range.
/// The first level has 2^24 entries, so this also decides its memory: 32, 64 or 128 MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextHopBytes {
    /// Next hops 0 to 32767.
    Two,
    /// Next hops 0 to 2147483647.
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

    /// The largest number an entry holds: a next hop's, or a group's.
    fn largest(self) -> u32 {
        match self {
            Self::Two => (1 << 15) - 1,
            Self::Four => (1 << 31) - 1,
            Self::Eight => u32::MAX,
        }
    }
}

/// Which of DPDK's lookup functions a table uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// A loop over the addresses that prefetches ahead (IPv4: the size of an entry is fixed by a macro).
    Scalar,
    /// IPv4: the same with inlined functions; IPv6 has no such and takes [`Self::Scalar`].
    ScalarInline,
    /// Gathers eight or sixteen entries at once; needs a CPU with AVX-512.
    Avx512,
}

impl Lookup {
    fn number(self, ip4: bool) -> i32 {
        let number = match self {
            Self::ScalarInline if ip4 => sys::LR_LOOKUP_SCALAR_INLINE,
            Self::Scalar | Self::ScalarInline => sys::LR_LOOKUP_SCALAR,
            Self::Avx512 => sys::LR_LOOKUP_AVX512,
        };
        number as i32
    }
}

/// The size of a forwarding table, all of it taken when it is made.
#[derive(Debug, Clone, Copy)]
pub struct FibConfig {
    /// How many routes it holds at most: 1 to 16777216. Each takes 256 bytes beside the entries.
    pub routes: u32,
    /// Groups of 256 entries for prefixes longer than 24 bits. IPv4: one for each /24 with longer prefixes inside.
    /// IPv6: DPDK counts one for each 8 bits beyond the next shorter prefix that covers a new one, or beyond 24.
    ///
    /// `None` is enough for what is routed in the Internet: IPv4 one a route up to 32768 and then one for sixteen,
    /// IPv6 three a route.
    pub groups: Option<u32>,
    /// The size of an entry.
    pub bytes: NextHopBytes,
    /// What a lookup gives for an address that no prefix covers.
    pub no_route: u32,
}

impl FibConfig {
    /// For so many routes, with entries of four bytes; an address without a route has next hop 0.
    pub fn new(routes: u32) -> Self {
        Self { routes, groups: None, bytes: NextHopBytes::Four, no_route: 0 }
    }
}

fn default_groups4(routes: u32) -> u32 {
    routes.min((routes / 16).max(1 << 15)).max(256)
}

fn default_groups6(routes: u32) -> u32 {
    // A small table of any kind fits: a /128 takes 13.
    routes.saturating_mul(3).max(routes.saturating_mul(13).min(1 << 14)).max(256)
}

macro_rules! fib {
    ($(#[$doc:meta])* $name:ident, $raw:ident, $route:ident, $table:literal, $ip4:literal, $addr:ty, $std:ty,
     $groups:ident, $fastest:ident, $create:ident, $free:ident, $add:ident, $delete:ident, $lookup:ident, $select:ident,
     $routes:ident, $arg:expr) => {
        $(#[$doc])*
        pub struct $name {
            /// Null when it could not be made anew.
            fib: *mut sys::$raw,
            config: FibConfig,
            groups: u32,
            lookup: Lookup,
            /// Routes taken out or given another next hop since the table was made.
            removed: u32,
            _alive: Alive,
        }

        // SAFETY: a table has no thread affinity.
        unsafe impl Send for $name {}
        // SAFETY: lookups only read; changes need `&mut`.
        unsafe impl Sync for $name {}

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name)).field("config", &self.config).finish_non_exhaustive()
            }
        }

        impl $name {
            /// An empty table, with the fastest lookup of this machine. Errors when DPDK's memory does not hold it.
            pub fn new(eal: &'static Eal, config: &FibConfig) -> Result<Self, DpdkError> {
                let FibConfig { routes, bytes, no_route, .. } = *config;
                let alive = eal.alive()?;
                let refuse = |why: String| {
                    Err(DpdkError::Config { what: format!("the {} table for {routes} routes", $table), why })
                };
                if routes == 0 || routes > 1 << 24 {
                    return refuse("must be 1 to 16777216 routes".into());
                }
                // A bit of an entry tells groups from next hops.
                let most = bytes.largest().min(1 << 30);
                let groups = config.groups.unwrap_or($groups(routes).min(most));
                if groups == 0 || groups > most {
                    return refuse(format!("{groups} groups: must be 1 to {most} with this size of entries"));
                }
                if no_route > bytes.largest() {
                    return refuse(format!("no_route {no_route}: must be 0 to {}", bytes.largest()));
                }
                let fib = std::ptr::null_mut();
                let mut table = Self { fib, config: *config, groups, lookup: $fastest, removed: 0, _alive: alive };
                table.create()?;
                Ok(table)
            }

            fn create(&mut self) -> Result<(), DpdkError> {
                let FibConfig { routes, bytes, no_route, .. } = self.config;
                let (name, groups) = (unique_name(), self.groups);
                log::mark();
                // SAFETY: the EAL runs; the name is NUL-terminated and copied.
                self.fib = unsafe { sys::$create(name.as_ptr(), routes, groups, bytes.count(), no_route.into()) };
                if self.fib.is_null() {
                    let what = format!("the {} table for {routes} routes and {groups} groups", $table);
                    let reason = log::errno_text(if log::errno() == 0 { ENOMEM } else { log::errno() });
                    return Err(DpdkError::NoMemory { what, reason });
                }
                if !self.select(self.lookup) {
                    self.select(Lookup::Scalar);
                }
                Ok(())
            }

            /// Groups of 256 entries there are for long prefixes.
            pub fn groups(&self) -> u32 {
                self.groups
            }

            /// The lookup function in use.
            pub fn lookup(&self) -> Lookup {
                self.lookup
            }

            /// Takes another lookup function; `false`, and nothing changes, if this machine has not got it.
            pub fn select(&mut self, lookup: Lookup) -> bool {
                // SAFETY: as in `try_add`.
                let there = unsafe { sys::$select(self.fib, lookup.number($ip4)) } == 0;
                if there {
                    self.lookup = lookup;
                }
                there
            }

            /// Adds or replaces a route. Many load ten times faster in the order of their prefixes. Bits behind the prefix are ignored. Errors when the table is full, the prefix
            /// too long, or the next hop too large for an entry.
            ///
            /// DPDK's count of the groups in use goes wrong when routes are taken away: when it says "full" after
            /// that, the table is made anew, which takes as long as loading it did.
            pub fn add(&mut self, prefix: $std, len: u8, next_hop: u32) -> Result<(), DpdkError> {
                let largest = self.config.bytes.largest();
                if next_hop > largest {
                    let reason = format!("next hop {next_hop}: must be 0 to {largest}");
                    return Err(DpdkError::Fib { table: $table, what: format!("route {prefix}/{len}"), reason });
                }
                let mut err = self.try_add(prefix, len, next_hop);
                if is_full(err) && self.removed > 0 {
                    self.remake()?;
                    err = self.try_add(prefix, len, next_hop);
                }
                check($table, prefix, len, err, &self.config, self.groups)
            }

            fn try_add(&mut self, prefix: $std, len: u8, next_hop: u32) -> i32 {
                let ip: $addr = $arg(prefix);
                let mut replaced = 0;
                // SAFETY: the table is borrowed mutably, and live or null, which the shim refuses.
                let err = unsafe { sys::$add(self.fib, ip.as_arg(), len, next_hop.into(), &mut replaced) };
                self.removed = self.removed.saturating_add(replaced);
                err
            }

            /// Takes a route away; `false` when there is none. Errors when the table is full, for the room that a
            /// shorter route's place in it may take.
            pub fn remove(&mut self, prefix: $std, len: u8) -> Result<bool, DpdkError> {
                let ip: $addr = $arg(prefix);
                // SAFETY: as in `try_add`.
                let mut err = unsafe { sys::$delete(self.fib, ip.as_arg(), len) };
                if is_full(err) && self.removed > 0 {
                    self.remake()?;
                    // SAFETY: as in `try_add`.
                    err = unsafe { sys::$delete(self.fib, ip.as_arg(), len) };
                }
                if err.abs() == ENOENT {
                    return Ok(false);
                }
                self.removed = self.removed.saturating_add(1);
                check($table, prefix, len, err, &self.config, self.groups).map(|()| true)
            }

            /// Puts the routes, as DPDK keeps them beside the entries, into a new table.
            fn remake(&mut self) -> Result<(), DpdkError> {
                // SAFETY: as in `try_add`; nothing is copied, only counted.
                let count = unsafe { sys::$routes(self.fib, std::ptr::null_mut(), 0) };
                let mut routes = vec![sys::$route::default(); count as usize];
                // SAFETY: the vector holds `count` routes.
                unsafe { sys::$routes(self.fib, routes.as_mut_ptr(), count) };
                // Short ones first: DPDK counts the groups of a long one from the next shorter on.
                routes.sort_unstable_by_key(|r| r.len);
                // Both do not fit into memory together.
                let old = std::mem::replace(&mut self.fib, std::ptr::null_mut());
                // SAFETY: nobody has the old table any more.
                unsafe { sys::$free(old) };
                self.removed = 0;
                self.create()?;
                for r in routes {
                    let mut replaced = 0;
                    // SAFETY: the table is live; addresses are as DPDK gave them.
                    let err = unsafe { sys::$add(self.fib, r.ip.as_arg(), r.len, r.nh, &mut replaced) };
                    if err != 0 {
                        let reason = format!("{} while making it anew", log::errno_text(err));
                        return Err(DpdkError::Fib { table: $table, what: "all routes".into(), reason });
                    }
                }
                Ok(())
            }

            /// Looks addresses up: `next_hops[i]` for `addresses[i]`, as many as the shorter of the two has.
            #[inline]
            pub fn lookup_bulk(&self, addresses: &[$addr], next_hops: &mut [u64]) {
                let n = addresses.len().min(next_hops.len());
                if self.fib.is_null() {
                    return next_hops.iter_mut().take(n).for_each(|hop| *hop = self.config.no_route.into());
                }
                // SAFETY: the table is live; both slices hold at least n entries.
                unsafe { sys::$lookup(self.fib, addresses.as_ptr().cast(), next_hops.as_mut_ptr(), n as u32) };
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: nobody else has the table; the function accepts null and then frees nothing.
                unsafe { sys::$free(self.fib) };
            }
        }
    };
}

/// The lookups to start with. Measured (`benches/fib.rs`): over a million IPv4 routes prefetching beats gathering (12.5
/// cycles a lookup to 15), and of a table in the cache gathering saves one cycle of two and a half; IPv6 walks many
/// levels, and AVX-512 takes less than half the cycles at every size. Where the machine has no AVX-512: scalar.
const FASTEST4: Lookup = Lookup::Scalar;
const FASTEST6: Lookup = Lookup::Avx512;

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
    Fib4, rte_fib, lr_route4, "IPv4", true, u32, Ipv4Addr, default_groups4, FASTEST4,
    lr_fib_create, lr_fib_free, lr_fib_add, lr_fib_delete, lr_fib_lookup, lr_fib_select, lr_fib_routes,
    Ipv4Addr::to_bits
}

fib! {
    /// DPDK's IPv6 forwarding table (`rte_fib6`, TRIE). Addresses are in network order, as [`Ipv6Addr::octets`].
    ///
    /// One memory read for the first 24 bits and one for each 8 more. Sharing as for [`Fib4`].
    Fib6, rte_fib6, lr_route6, "IPv6", false, [u8; 16], Ipv6Addr, default_groups6, FASTEST6,
    lr_fib6_create, lr_fib6_free, lr_fib6_add, lr_fib6_delete, lr_fib6_lookup, lr_fib6_select, lr_fib6_routes,
    |ip: Ipv6Addr| ip.octets()
}

fn unique_name() -> CString {
    static SERIAL: AtomicU32 = AtomicU32::new(0);
    CString::new(format!("lr_fib{}", SERIAL.fetch_add(1, Ordering::Relaxed))).unwrap_or_default()
}

const ENOENT: i32 = 2;
const ENOMEM: i32 = 12;
const EINVAL: i32 = 22;
const ENOSPC: i32 = 28;

fn is_full(err: i32) -> bool {
    matches!(err.abs(), ENOSPC | ENOMEM)
}

fn check(
    table: &'static str,
    prefix: impl std::fmt::Display,
    len: u8,
    err: i32,
    config: &FibConfig,
    groups: u32,
) -> Result<(), DpdkError> {
    let reason = match err.abs() {
        0 => return Ok(()),
        EINVAL => "the prefix length is too long".to_string(),
        _ if is_full(err) => {
            format!("the table is full: it was made for {} routes and {groups} groups of long ones", config.routes)
        }
        _ => log::errno_text(err),
    };
    Err(DpdkError::Fib { table, what: format!("route {prefix}/{len}"), reason })
}
