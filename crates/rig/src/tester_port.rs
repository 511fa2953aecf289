//! The ports of the tester.

use std::time::{Duration, Instant};

use dpdk::{FrameMark, Mbuf, Port, PortSpec, RxQueue, TxQueue};
use failure::{Failure, Stop};
use packet::{stamp, Buffer, Burst, MacAddr, Rx};

/// By what test frames are known.
pub(crate) const STAMPED: FrameMark = FrameMark { bytes: stamp::MARK, from_end: stamp::LEN as u32 };

/// One port of the tester, with its queues.
pub struct TesterPort {
    /// As named by the user.
    pub name: String,
    /// The port.
    pub port: Port,
    /// Its receive queue.
    pub rx: RxQueue,
    /// Its transmit queue.
    pub tx: TxQueue,
    /// Its MAC address, or one made up where the port has none.
    pub mac: MacAddr,
}

impl TesterPort {
    /// Takes the queues of an open port. Where the port has no MAC address, one is made of `number`.
    pub(crate) fn new(name: String, mut port: Port, number: u8) -> Result<Self, Failure> {
        let (rx, tx) = (port.take_rx(0)?, port.take_tx(0)?);
        let mac = match port.mac() {
            [0, 0, 0, 0, 0, 0] => own_mac(number),
            mac => MacAddr(mac),
        };
        Ok(Self { name, port, rx, tx, mac })
    }
}

/// A locally administered address: `L`, `R` and a number.
pub(crate) const fn own_mac(n: u8) -> MacAddr {
    MacAddr([0x02, b'L', b'R', 0, 0, n])
}

/// Discards the frames of earlier trials, until none was received for 1 ms, for at most 50 ms.
pub(crate) fn drain(ports: &mut [TesterPort]) {
    let mut burst: Burst<Mbuf> = Burst::new();
    let (mut quiet, begun) = (Instant::now(), Instant::now());
    while quiet.elapsed() < Duration::from_millis(1) && begun.elapsed() < Duration::from_millis(50) {
        for port in ports.iter_mut() {
            if port.rx.rx(&mut burst) > 0 {
                Buffer::discard(&mut burst);
                quiet = Instant::now();
            }
        }
    }
}

/// Waits until the links of all ports are up.
///
/// # Errors
///
/// (machine) for a link that is still down after `wait`; (stopped) when asked to end meanwhile.
pub(crate) fn wait_for_links(ports: &[TesterPort], wait: Duration, stop: &Stop) -> Result<(), Failure> {
    let until = Instant::now() + wait;
    for end in ports {
        while !end.port.link().up {
            if stop.requested() {
                return Err(Failure::stopped(format!("stopped while waiting for the link of port {}", end.name)));
            }
            if Instant::now() >= until {
                return Err(Failure::machine(format!(
                    "port {}: the link is still down after {wait:?}: start or enable the other side, or wait longer \
                     (--link-wait)",
                    end.name
                )));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    Ok(())
}

/// The ports that `--port` names: two, or three for the address tests.
///
/// # Errors
///
/// (usage) for another number of ports, a name that is not a port's, a port given twice, or `wire`.
pub(crate) fn parse_ports(texts: &[String], three: bool) -> Result<Vec<PortSpec>, Failure> {
    let (wanted, what) = match three {
        false => (2, "two ports, one to send and one to receive"),
        true => (3, "three ports for the address tests: learning port, test port, monitoring port (RFC 2889 §5.7.3)"),
    };
    if texts.len() != wanted {
        return Err(Failure::usage(format!(
            "{} --port given: the tester has {what} (or give none for the built-in device under test)",
            texts.len()
        )));
    }
    let specs = texts.iter().map(|t| Ok(t.parse::<PortSpec>()?)).collect::<Result<Vec<_>, Failure>>()?;
    for (i, spec) in specs.iter().enumerate().filter(|(_, spec)| !matches!(spec, PortSpec::Null { .. })) {
        if specs[..i].contains(spec) {
            return Err(Failure::usage(format!("--port {} is given twice: the ports must differ", texts[i])));
        }
    }
    if specs.contains(&PortSpec::Wire) {
        return Err(Failure::usage(
            "--port wire: the software cable leads to the built-in device under test: leave --port out",
        ));
    }
    Ok(specs)
}
