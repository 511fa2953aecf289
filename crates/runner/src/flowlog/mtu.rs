//! The largest IP packet of each port: of the interface, if nothing else is asked for.

use dpdk::{EthDriver, Port, PortSpec, AF_XDP_MOST_MTU};

use crate::output::Note;

/// The MTU of a port that has none of its own.
const USUAL: u16 = 1500;
/// What an interface may have; lo has 65,536.
const LEGAL: std::ops::RangeInclusive<u32> = 68..=9600;

/// By port: what was asked for, otherwise the MTU of the interface, as far as the driver that was asked for carries it.
pub fn mtus(asked: Option<u16>, ports: &[PortSpec]) -> Vec<u16> {
    ports.iter().map(|port| asked.unwrap_or_else(|| of_interface(port, port.interface_mtu()))).collect()
}

fn of_interface(port: &PortSpec, mtu: Option<u32>) -> u16 {
    let most = match port {
        PortSpec::Eth { driver: EthDriver::AfXdp, .. } => AF_XDP_MOST_MTU,
        _ => *LEGAL.end(),
    };
    mtu.and_then(|mtu| u16::try_from(mtu.clamp(*LEGAL.start(), most)).ok()).unwrap_or(USUAL)
}

/// Says which ports do not carry all that their interfaces do.
pub fn note_shorter(specs: &[PortSpec], ports: &[Port], mtus: &[u16], asked: bool, note: &Note) {
    for ((spec, port), mtu) in specs.iter().zip(ports).zip(mtus) {
        if let Some(interface) = spec.interface_mtu().filter(|interface| *interface > u32::from(*mtu)) {
            note(&shorter(port.name(), interface, *mtu, port.cut_length().is_some(), asked));
        }
    }
}

fn shorter(port: &str, interface: u32, mtu: u16, cuts: bool, asked: bool) -> String {
    let fate = if cuts {
        "are cut: they count with the bytes of their IP header, and are not passed whole"
    } else {
        "are lost"
    };
    let mend = match (asked, cuts) {
        (true, _) if interface <= *LEGAL.end() => format!(". Leave --mtu out, or: --mtu {interface}"),
        (false, false) => ". driver=af_packet carries more".to_owned(),
        _ => String::new(),
    };
    format!(
        "port {port}: the MTU of the interface is {interface}, that of the port is {mtu}: longer frames {fate}{mend}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_has_the_mtu_of_its_interface_as_far_as_it_can() {
        let of = |text: &str, mtu| of_interface(&text.parse().unwrap(), mtu);
        assert_eq!(of("eth:d0", Some(9000)), 9000);
        assert_eq!(of("eth:d0", Some(1280)), 1280);
        assert_eq!(of("eth:d0,driver=af_packet", Some(65_536)), 9600);
        assert_eq!(of("eth:d0,driver=af_xdp", Some(9000)), 3434);
        assert_eq!(of("eth:nosuch0", None), 1500);
        let ports = ["null", "eth:lo"].map(|text| text.parse().unwrap());
        assert_eq!((mtus(None, &ports), mtus(Some(2000), &ports)), (vec![1500, 9600], vec![2000, 2000]));
    }

    #[test]
    fn a_shorter_mtu_is_told_with_what_mends_it() {
        insta::assert_snapshot!(shorter("eth:d0", 9000, 1500, true, true), @"port eth:d0: the MTU of the interface is 9000, that of the port is 1500: longer frames are cut: they count with the bytes of their IP header, and are not passed whole. Leave --mtu out, or: --mtu 9000");
        insta::assert_snapshot!(shorter("eth:d0", 9000, 3434, false, false), @"port eth:d0: the MTU of the interface is 9000, that of the port is 3434: longer frames are lost. driver=af_packet carries more");
        insta::assert_snapshot!(shorter("eth:lo", 65_536, 9600, true, false), @"port eth:lo: the MTU of the interface is 65536, that of the port is 9600: longer frames are cut: they count with the bytes of their IP header, and are not passed whole");
    }
}
