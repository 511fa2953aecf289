//! The reference data plane over DPDK ports: one loop for each lcore, and the control side that owns their tables.
//!
//! It is the built-in device under test of `bench`, and what `forward` runs.

use dataplane::{
    impair::{Impair, ImpairSpec},
    spec::PlaneSpec,
    AnyFunction, Control, Forwarder, Input, Plane, PortInfo, Settings,
};
use dpdk::{Eal, Mempool, PoolHandle, Port, RxQueue, Tsc, TxQueue};
use packet::{Clock, MacAddr};
use std::sync::Arc;

use super::fibs::RteFibs;
use failure::Failure;

/// A forwarding loop over DPDK ports.
pub type Loop = Forwarder<Impair<AnyFunction<PoolHandle>, PoolHandle>, RxQueue, TxQueue, Tsc>;

/// Nodes read the clock once every `NODE_SAMPLE` polls. In every poll, five readings a burst would cost `l3` 4 %.
pub const NODE_SAMPLE: u32 = 32;

/// One receive queue and the lcore that polls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Polled {
    /// The port.
    pub port: usize,
    /// Its queue.
    pub queue: u16,
    /// Index of the lcore.
    pub lcore: usize,
}

/// How the loops of a function behave.
#[derive(Debug, Clone)]
pub struct LoopOptions {
    /// The impairment; one that does nothing by default.
    pub impair: ImpairSpec,
    /// Transmit policy, and how often nodes read the clock.
    pub settings: Settings,
}

impl LoopOptions {
    /// Reads `--impair` and `--dut-tx-policy`.
    ///
    /// # Errors
    ///
    /// (usage) for a text that is not one.
    pub fn parse(impair: Option<&str>, tx_policy: Option<&str>) -> Result<Self, Failure> {
        let impair = impair.map(str::parse).transpose().map_err(Failure::usage)?.unwrap_or_default();
        let tx_policy = tx_policy.map(str::parse).transpose().map_err(Failure::usage)?.unwrap_or_default();
        Ok(Self { impair, settings: Settings { tx_policy, node_sample: NODE_SAMPLE, ..Settings::default() } })
    }

    /// What impairs it and when it sends, where either is other than usual.
    pub fn behaviour(&self) -> (Option<String>, Option<String>) {
        let impairment = self.impair.is_active().then(|| self.impair.to_string());
        let tx_policy = (!self.settings.tx_policy.is_now()).then(|| self.settings.tx_policy.to_string());
        (impairment, tx_policy)
    }

    /// The function and these options in words.
    pub fn describe(&self, function: &str) -> String {
        let mut text = function.to_owned();
        if self.impair.is_active() {
            text.push_str(&format!(" with impair {}", self.impair));
        }
        if !self.settings.tx_policy.is_now() {
            text.push_str(&format!(", transmit {}", self.settings.tx_policy));
        }
        text
    }
}

/// A function with its tables, and how its loops behave.
#[derive(Debug, Clone)]
pub struct DataPlaneSpec {
    /// The function and its tables.
    pub plane: PlaneSpec,
    /// The impairment and the loops.
    pub options: LoopOptions,
}

/// The data plane with its ports.
pub struct DataPlane {
    /// The tables.
    pub plane: Plane,
    /// The loops, each for an lcore of its own.
    pub forwarders: Vec<Loop>,
    /// The open ports. Their queues are in the loops.
    pub ports: Vec<Port>,
    /// Buffers of the frames that the function makes.
    pub own: Mempool,
}

impl DataPlane {
    /// Builds the function over these open ports, whose transmit queue `n` is for lcore `n`.
    ///
    /// # Errors
    ///
    /// (usage) for tables that do not fit the ports; (machine) when memory is lacking.
    pub fn new(
        eal: &'static Eal,
        spec: &DataPlaneSpec,
        mut ports: Vec<Port>,
        infos: &[PortInfo],
        polled: &[Polled],
    ) -> Result<Self, Failure> {
        let clock = Tsc::new(eal);
        let hz = clock.hz();
        let plane = Plane::new(&spec.plane, infos, Box::new(RteFibs::new(eal))).map_err(Failure::usage)?;
        let lcores = polled.iter().map(|p| p.lcore + 1).max().unwrap_or(1);
        // For duplicates, and for frames that the function makes.
        let room = infos.iter().map(|i| i.mtu).max().unwrap_or(1500) + FRAME_ROOM;
        let own = Mempool::new(eal, "own", 8191, room.max(2048), 256)?;
        let mut forwarders = Vec::new();
        for lcore in 0..lcores {
            let function = plane.function(own.handle(), hz, lcore);
            let function = Impair::new(function, &spec.options.impair, ports.len(), own.handle(), hz);
            let (inputs, tx) = queues(&mut ports, polled, lcore)?;
            forwarders.push(Forwarder::new(function, inputs, tx, clock, spec.options.settings));
        }
        Ok(Self { plane, forwarders, ports, own })
    }

    /// The control of each loop.
    pub fn controls(&self) -> Vec<Arc<Control>> {
        self.forwarders.iter().map(Forwarder::control).collect()
    }
}

/// The receive queues that an lcore polls, and its transmit queue of each port.
pub fn queues(
    ports: &mut [Port],
    polled: &[Polled],
    lcore: usize,
) -> Result<(Vec<Input<RxQueue>>, Vec<TxQueue>), Failure> {
    let mut inputs = Vec::new();
    for p in polled.iter().filter(|p| p.lcore == lcore) {
        let port = ports.get_mut(p.port).ok_or_else(|| Failure::usage(format!("there is no port {}", p.port)))?;
        inputs.push(Input { port: p.port, queue_id: p.queue, queue: port.take_rx(p.queue)? });
    }
    let tx = ports.iter_mut().map(|port| port.take_tx(lcore as u16)).collect::<Result<_, _>>()?;
    Ok((inputs, tx))
}

/// Ethernet header, two tags, tunnel headers.
const FRAME_ROOM: u16 = 14 + 8 + 70;

/// The port's own MAC address, or one made up where it has none.
pub fn port_mac(port: &Port, n: usize) -> MacAddr {
    match port.mac() {
        [0, 0, 0, 0, 0, 0] => MacAddr([0x02, b'L', b'R', 0, 1, n as u8]),
        own => MacAddr(own),
    }
}
