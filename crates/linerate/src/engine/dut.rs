//! The built-in device under test: the reference data plane on its own core, joined to the tester by software cables.

use dataplane::{
    impair::{Impair, ImpairSpec},
    l3::L3Config,
    spec::{AnyFunction, FunctionSpec},
    Forwarder, Input, Settings,
};
use dpdk::{Eal, Mempool, PoolHandle, Port, RxQueue, Tsc, TxQueue};

use packet::MacAddr;

use crate::failure::Failure;

/// A forwarding loop over DPDK ports.
pub type Loop = Forwarder<Impair<AnyFunction, PoolHandle>, RxQueue, TxQueue, Tsc>;

/// What was asked for: a function and what impairs it.
#[derive(Debug, Clone)]
pub struct DutSpec {
    /// The function.
    pub function: FunctionSpec,
    /// The impairment; one that does nothing by default.
    pub impair: ImpairSpec,
}

impl DutSpec {
    /// Reads `--dut` and `--impair`. Without a function: `l3`.
    pub fn parse(function: Option<&str>, impair: Option<&str>) -> Result<Self, Failure> {
        let function = function.unwrap_or("l3").parse().map_err(Failure::usage)?;
        let impair = impair.map(str::parse).transpose().map_err(Failure::usage)?.unwrap_or_default();
        Ok(Self { function, impair })
    }

    /// In words, for the report.
    pub fn describe(&self) -> String {
        if self.impair.is_active() {
            format!("{} with impair {}", self.function, self.impair)
        } else {
            self.function.to_string()
        }
    }
}

/// The built-in DUT with its ports.
pub struct Builtin {
    /// The loop, to be run on its lcore.
    pub forwarder: Loop,
    /// Kept open; its queues are in the loop.
    ports: Vec<Port>,
}

impl Builtin {
    /// Builds the function over these ports. `neighbours` are the stations behind the ports, for routes not given.
    pub fn new(
        eal: &'static Eal,
        spec: &DutSpec,
        mut ports: Vec<Port>,
        macs: &[MacAddr],
        neighbours: [MacAddr; 2],
    ) -> Result<Self, Failure> {
        let clock = Tsc::new(eal);
        let function = match &spec.function {
            FunctionSpec::L3(config) if config.routes.is_empty() => {
                FunctionSpec::L3(L3Config { check_mac: config.check_mac, ..L3Config::benchmark(neighbours) })
            }
            other => other.clone(),
        };
        let inner = function.build(macs).map_err(Failure::usage)?;
        // Only duplicates are made here.
        let copies = Mempool::new(eal, "copies", 4095, 2048, 256)?;
        let hz = packet::Clock::hz(&clock);
        let function = Impair::new(inner, &spec.impair, ports.len(), copies.handle(), hz);
        let mut inputs = Vec::new();
        let mut tx = Vec::new();
        for (port, open) in ports.iter_mut().enumerate() {
            inputs.push(Input { port, queue: open.take_rx(0)? });
            tx.push(open.take_tx(0)?);
        }
        let settings = Settings::default();
        Ok(Self { forwarder: Forwarder::new(function, inputs, tx, clock, settings), ports })
    }

    /// Asks each port for its link.
    pub fn ask_links(&self) {
        for port in &self.ports {
            let _ = port.link();
        }
    }
}
