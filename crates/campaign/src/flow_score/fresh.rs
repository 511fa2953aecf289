//! Keys that no other run has: a logger that goes on running still holds the flows of the last one.

use flow::decode::VXLAN_PORT;
use packet::{
    frame::{HeaderSpec, IpSpec, L4Spec},
    since_1970,
};

/// Destination ports to choose from: 1024 and up, without VXLAN's.
const PORTS: u64 = 65_535 - 1024;
/// Ports set aside for the trials of a run, so that runs whose seeds follow one another share none.
const TRIALS: u64 = 32;

/// The seed of a run that was given none: the seconds since 1970. Runs have no key in common for half an hour, longer
/// than flows stay.
pub fn seed() -> u64 {
    since_1970().as_secs()
}

/// Makes these headers the own ones of a trial of the run with this seed; trials count from 1. The destination port tells
/// runs and trials apart; for a scan, which has all of them, the source address does, and the source port its trials.
pub fn own(headers: &mut HeaderSpec, seed: u64, trial: u16) {
    if let L4Spec::Udp { src, dst } | L4Spec::Tcp { src, dst, .. } = &mut headers.l4 {
        *src = src.wrapping_add(trial);
        *dst = port(*dst, seed, trial);
    }
    // Never by nothing: what was taught before the trial has the plan's.
    let by = (1 + seed % 0xffff) as u16;
    match &mut headers.ip {
        IpSpec::V4 { src, .. } => *src = (src.to_bits() & !0xffff | u32::from(moved(src.to_bits() as u16, by))).into(),
        IpSpec::V6 { src, .. } => {
            *src = (src.to_bits() & !0xffff | u128::from(moved(src.to_bits() as u16, by))).into();
        }
    }
}

fn moved(low: u16, by: u16) -> u16 {
    low.wrapping_add(by)
}

/// A port other than this one.
fn port(first: u16, seed: u64, trial: u16) -> u16 {
    let rank = u64::from(first).saturating_sub(1024 + u64::from(first > VXLAN_PORT));
    let by = 1 + (seed % (1 << 48) * TRIALS + u64::from(trial)) % (PORTS - 1);
    let port = 1024 + ((rank + by) % PORTS) as u16;
    port + u16::from(port >= VXLAN_PORT)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use packet::MacAddr;

    use super::*;

    fn headers(dst: u16) -> HeaderSpec {
        HeaderSpec {
            dst_mac: MacAddr::default(),
            src_mac: MacAddr::default(),
            vlans: vec![],
            mpls: vec![],
            ip: IpSpec::V4 { src: [198, 18, 0, 2].into(), dst: [198, 19, 0, 2].into(), ttl: 64, dscp: 0 },
            l4: L4Spec::Udp { src: 49184, dst },
        }
    }

    fn of(dst: u16, seed: u64, trial: u16) -> HeaderSpec {
        let mut headers = headers(dst);
        own(&mut headers, seed, trial);
        headers
    }

    #[test]
    fn neither_runs_nor_trials_share_a_port_for_half_an_hour() {
        for first in [0, 7, 1024, 4788, 4789, 4790, 65535] {
            let mut seen = HashSet::from([first, VXLAN_PORT]);
            for seed in 1_795_281_322..1_795_281_322 + 1800 {
                for trial in 1..=TRIALS as u16 {
                    let new = port(first, seed, trial);
                    assert!(new >= 1024 && seen.insert(new), "{first} {seed} {trial}: {new}");
                }
            }
        }
    }

    #[test]
    fn a_scan_is_told_by_its_source_and_a_seed_gives_the_same_again() {
        let src = |headers: &HeaderSpec| match headers.ip {
            IpSpec::V4 { src, .. } => src.octets(),
            IpSpec::V6 { .. } => panic!("IPv4"),
        };
        let all: HashSet<_> = (0..1000).map(|seed| src(&of(7, seed, 1))).collect();
        assert_eq!(all.len(), 1000);
        assert!(all.iter().all(|a| a[..2] == [198, 18] && *a != src(&headers(7))));
        assert_eq!(of(7, 5, 3), of(7, 5, 3));
        assert_ne!(of(7, 5, 3), of(7, 6, 3));
        // No seed is too large.
        own(&mut headers(7), u64::MAX, u16::MAX);
    }
}
