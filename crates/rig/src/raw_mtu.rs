//! Frames that an interface does not carry.

use dpdk::PortSpec;
use failure::Failure;

use crate::raw::RawWay;

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;

/// Refuses a frame that is longer than what the interfaces of the way carry: nothing of it would ever come.
///
/// # Errors
///
/// (usage) with the size, the interface and its MTU.
pub fn check(way: &RawWay, sizes: &[usize]) -> Result<(), Failure> {
    let longest = sizes.iter().copied().max().unwrap_or(0);
    for (name, mtu) in interfaces(way) {
        let most = mtu as usize + ETHERNET;
        if longest > most {
            return Err(Failure::usage(format!(
                "--sizes {longest}: {name} carries at most {most} B, its MTU is {mtu}: send shorter frames, or \
                 ip link set {name} mtu {}",
                longest - ETHERNET
            )));
        }
    }
    Ok(())
}

/// The kernel's interfaces of a way, and their MTUs.
fn interfaces(way: &RawWay) -> Vec<(String, u32)> {
    let of = |name: &str, spec: &PortSpec| Some((name.to_owned(), spec.interface_mtu()?));
    match way {
        RawWay::Ports(specs) => specs
            .iter()
            .filter_map(|spec| match spec {
                PortSpec::Eth { iface, .. } => of(iface, spec),
                _ => None,
            })
            .collect(),
        RawWay::Sockets(names, _) => {
            names.iter().filter_map(|name| of(name, &format!("eth:{name}").parse().ok()?)).collect()
        }
        RawWay::Cable | RawWay::Pair(_) | RawWay::SocketPair => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_that_no_interface_carries_is_refused() {
        // `lo` is in every network namespace, with this MTU.
        let sockets = RawWay::Sockets(["lo".to_owned(), "none".to_owned()], None);
        assert_eq!(interfaces(&sockets), [("lo".to_owned(), 65_536)]);
        let ports = RawWay::parse(&["eth:lo".to_owned(), "memif:/tmp/m".to_owned()]).unwrap();
        assert_eq!(interfaces(&ports), [("lo".to_owned(), 65_536)]);
        assert!(check(&sockets, &[60, 65_550]).is_ok());
        assert!(check(&ports, &[65_551, 60]).is_err());
        assert!(check(&RawWay::Cable, &[9_014]).is_ok());
    }
}
