//! Ports opened for loops on several lcores.

use std::time::Duration;

use dpdk::{Eal, Mempool, Port, PortConfig, PortSpec};
use failure::{Failure, Stop};

use crate::output::Note;

/// How long a port waits for its peer: as long as it takes. Ctrl-C ends the wait.
const PEER_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// Ethernet header and two VLAN tags.
const ETHERNET: u16 = 14 + 8;

/// How ports are opened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PortOptions<'a> {
    /// Descriptors of each queue.
    pub descriptors: u32,
    /// Receive queues of each port.
    pub rx_queues: u16,
    /// Transmit queues of each port: one for each lcore.
    pub lcores: usize,
    /// Largest IP packet in bytes, by port.
    pub mtu: &'a [u16],
    /// Whether captures are read once, to their end.
    pub once: bool,
}

impl PortOptions<'_> {
    /// Opens all ports, each with a pool of its own. The pools are added to `pools`, also when a later port fails.
    pub(crate) fn open(
        &self,
        eal: &'static Eal,
        specs: &[PortSpec],
        stop: &Stop,
        pools: &mut Vec<Mempool>,
    ) -> Result<Vec<Port>, Failure> {
        let (d, lcores) = (self.descriptors, self.lcores as u32);
        let mut open = |(spec, &mtu): (&PortSpec, &u16)| {
            let rings = u32::from(self.rx_queues) + lcores;
            // An interface has a pool of its own.
            let interface = spec.interface_mtu();
            let count = match interface {
                Some(_) => 1023,
                None => ((2 * rings * d + 8192).next_power_of_two() - 1).max(16383),
            };
            let pool = Mempool::new(eal, "ports", count, (mtu + ETHERNET).max(2048), 512)?;
            pools.push(pool.clone());
            let mut config = PortConfig::new(&pool);
            (config.rx_desc, config.tx_desc) = (d as u16, d as u16);
            (config.rx_queues, config.tx_queues) = (self.rx_queues, lcores as u16);
            let least = interface.and_then(|mtu| u16::try_from(mtu).ok()).unwrap_or(1500).min(1500);
            config.mtu = mtu.max(least);
            config.read_once = self.once;
            config.peer_timeout = PEER_TIMEOUT;
            config.cancel = Some(stop.shared());
            Ok(Port::open(eal, spec, &config)?)
        };
        specs.iter().zip(self.mtu).map(&mut open).collect()
    }
}

/// Says which ports run with a slower driver than asked for, and why.
pub(crate) fn note_fallbacks(names: &[String], ports: &[Port], note: &Note) {
    for (name, port) in names.iter().zip(ports) {
        if let Some(why) = port.fallback() {
            note(&format!("port {name}: {why}"));
        }
    }
}

/// Says which NICs do not spread frames over the receive queues that were asked for.
pub(crate) fn note_unspread(specs: &[PortSpec], ports: &[Port], rx_queues: u16, note: &Note) {
    for (spec, port) in specs.iter().zip(ports) {
        let is_nic = matches!(spec, PortSpec::Pci { .. });
        if is_nic && rx_queues > 1 && !port.rss().is_on() {
            note(&format!(
                "port {spec}: its driver does not spread frames over receive queues (RSS): all come by queue 0, and the \
                 lcores of the others have nothing to do"
            ));
        }
    }
}

/// What becomes of frames that are longer than the MTU.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LongFrames {
    /// They cannot be sent.
    Lost,
    /// They are counted, and cannot be sent.
    Counted,
}

/// Says which ports cut frames, since offloads of the kernel make them longer than the port carries.
pub(crate) fn note_long_frames(specs: &[PortSpec], ports: &[Port], fate: LongFrames, note: &Note) {
    for (spec, port) in specs.iter().zip(ports) {
        if let (PortSpec::Eth { iface, .. }, offloads @ [_, ..]) = (spec, port.long_frame_offloads()) {
            note(&long_frames(port.name(), iface, offloads, fate));
        }
    }
}

fn long_frames(port: &str, iface: &str, offloads: &[&str], fate: LongFrames) -> String {
    let off: Vec<String> = offloads.iter().map(|offload| format!("{offload} off")).collect();
    let fate = match fate {
        LongFrames::Lost => "are lost here",
        LongFrames::Counted => {
            "count as one packet each, with the bytes of their IP header, and are not passed to another port"
        }
    };
    format!(
        "port {port}: offloads are on ({}): frames longer than the MTU, which they make, {fate}. Turn them off: \
         ethtool -K {iface} {}",
        offloads.join(", "),
        off.join(" ")
    )
}

/// Whether each port is a socket, where peers come and go.
pub(crate) fn are_sockets(specs: &[PortSpec]) -> Vec<bool> {
    let socket = |s: &PortSpec| matches!(s, PortSpec::Memif { .. } | PortSpec::Vhost { .. } | PortSpec::Virtio { .. });
    specs.iter().map(socket).collect()
}

/// The ports' text forms, read.
pub(crate) fn parse_ports(names: &[String]) -> Result<Vec<PortSpec>, Failure> {
    names.iter().map(|text| Ok(text.parse::<PortSpec>()?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offloads_are_named_with_the_command_that_turns_them_off() {
        insta::assert_snapshot!(
            long_frames("eth:d0,driver=af_packet", "d0", &["tso"], LongFrames::Counted),
            @"port eth:d0,driver=af_packet: offloads are on (tso): frames longer than the MTU, which they make, count as one packet each, with the bytes of their IP header, and are not passed to another port. Turn them off: ethtool -K d0 tso off"
        );
        insta::assert_snapshot!(
            long_frames("eth:d0,driver=af_packet", "d0", &["gro", "tso"], LongFrames::Lost),
            @"port eth:d0,driver=af_packet: offloads are on (gro, tso): frames longer than the MTU, which they make, are lost here. Turn them off: ethtool -K d0 gro off tso off"
        );
    }
}
