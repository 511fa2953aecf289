//! Times of pcapng.

use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};

/// `if_tsresol` of an interface: 10^-n s, or 2^-n with the highest bit set; microseconds when it is not said.
pub(super) fn resolution(interface: &InterfaceDescriptionBlock<'_>) -> u8 {
    let said = interface.options.iter().find_map(|option| match option {
        InterfaceDescriptionOption::IfTsResol(n) => Some(*n),
        _ => None,
    });
    said.unwrap_or(6)
}

/// So many units of this resolution in ns; more than the clock holds is the most it holds.
pub(super) fn nanoseconds(units: u64, resolution: u8) -> u64 {
    let exponent = u32::from(resolution & 0x7f);
    let per_second = if resolution & 0x80 == 0 { 10u128.checked_pow(exponent) } else { 1u128.checked_shl(exponent) };
    let ns = per_second.map_or(0, |per_second| u128::from(units) * 1_000_000_000 / per_second.max(1));
    u64::try_from(ns).unwrap_or(u64::MAX)
}
