//! The built-in device under test of a benchmark: a data plane, or the flow logger.

use std::{
    sync::{atomic::AtomicBool, Arc, Mutex},
    time::Duration,
};

use dataplane::{
    flowlog::FlowLog, impair::Impair, spec::FunctionKind, Control, Forwarder, Function, PortInfo, Snapshot,
};
use dpdk::{Eal, Mbuf, Mempool, PoolHandle, Port, RxQueue, Tsc, TxQueue, Words};
use flow::{
    decode::DecodeSpec,
    export::Records,
    table::{table, Full, TableSpec},
    Record,
};
use measure::schema::device::DeviceRecord;
use packet::{Clock, MacAddr};

use super::{
    dut::queues,
    fibs,
    flowlog::{anchor, Ended, Fetch, LogSpec, ENDED},
    DataPlane, DutSpec, Polled,
};
use crate::failure::Failure;

/// What `--dut` calls the flow logger.
const FLOWLOG: &str = "flowlog";
/// Flows its table has room for, as that of `linerate flowlog` unless told.
const FLOWS: usize = 1 << 20;
/// Records thrown away at once.
const BATCH: usize = 4096;

/// A loop, whatever its function: run once a trial, so that not knowing which costs no frame anything.
pub trait Polling: Send {
    /// The handle to its counters.
    fn control(&self) -> Arc<Control>;

    /// Polls until told to stop; the last counters.
    fn run(&mut self, stop: &AtomicBool) -> Snapshot;
}

impl<F: Function<Mbuf> + Send> Polling for Forwarder<F, RxQueue, TxQueue, Tsc> {
    fn control(&self) -> Arc<Control> {
        Self::control(self)
    }

    fn run(&mut self, stop: &AtomicBool) -> Snapshot {
        Self::run(self, stop)
    }
}

/// What is asked for.
#[derive(Debug, Clone)]
pub enum BuiltInSpec {
    /// A data plane.
    Plane(DutSpec),
    /// The flow logger; of the rest, the impairment and how the loop behaves count.
    FlowLog(DutSpec),
}

impl BuiltInSpec {
    /// Reads `--dut`, `--impair` and `--dut-tx`, as [`DutSpec::parse`], which does not know the flow logger.
    pub fn parse(
        function: Option<&str>,
        impair: Option<&str>,
        tx: Option<&str>,
        stations: [MacAddr; 2],
    ) -> Result<Self, Failure> {
        match function.map(str::trim) {
            Some(FLOWLOG) => Ok(Self::FlowLog(DutSpec::parse(Some("null"), impair, tx, stations)?)),
            Some(name) if name.parse::<FunctionKind>().is_err() => {
                let names = FunctionKind::ALL.map(FunctionKind::name).join(", ");
                Err(Failure::usage(format!("dut {name:?}: must be {names} or {FLOWLOG}")))
            }
            function => Ok(Self::Plane(DutSpec::parse(function, impair, tx, stations)?)),
        }
    }

    /// Loads so many host routes to each of these stations, behind ports 0 and 1. Errors for a function that routes nothing.
    pub fn add_host_routes(&mut self, stations: [MacAddr; 2], counts: [u32; 2]) -> Result<(), Failure> {
        match self {
            Self::Plane(spec) if spec.plane.kind == FunctionKind::L3 => {
                spec.plane.add_host_routes(stations, counts);
                Ok(())
            }
            other => Err(Failure::usage(format!(
                "routes: the built-in {} has no routes to be loaded with: use --dut l3",
                other.describe()
            ))),
        }
    }

    /// MiB of DPDK's memory that its tables take.
    pub fn tables_mib(&self) -> u32 {
        match self {
            Self::Plane(spec) => fibs::tables_mib(spec.plane.routes.len()),
            Self::FlowLog(spec) => log_spec(spec).tables_mib(1),
        }
    }

    /// Lets a bridge forget stations silent for so long. Errors for a function that learns none.
    pub fn age_stations(&mut self, silent: Duration) -> Result<(), Failure> {
        match self {
            Self::Plane(spec) if spec.plane.kind == FunctionKind::Bridge => {
                spec.plane.bridge_ageing = Some(silent);
                Ok(())
            }
            other => Err(Failure::usage(format!(
                "dut {}: learns no addresses: the address tests need --dut bridge, or three ports",
                other.describe()
            ))),
        }
    }

    /// As a result keeps it.
    pub fn record(&self) -> DeviceRecord {
        match self {
            Self::Plane(spec) => {
                let (impairment, tx_policy) = spec.behaviour();
                DeviceRecord::Plane { function: spec.plane.kind.name().to_owned(), impairment, tx_policy, routes: 0 }
            }
            Self::FlowLog(spec) => {
                let (impairment, tx_policy) = spec.behaviour();
                DeviceRecord::FlowLog { impairment, tx_policy }
            }
        }
    }

    /// In words, for a message.
    pub fn describe(&self) -> String {
        match self {
            Self::Plane(spec) => spec.describe(),
            Self::FlowLog(spec) => spec.describe_as(FLOWLOG),
        }
    }
}

/// As `linerate flowlog` is unless told.
fn log_spec(spec: &DutSpec) -> LogSpec {
    let seconds = Duration::from_secs;
    let table = TableSpec { idle: seconds(30), active: seconds(300), full: Full::Refuse, ..TableSpec::new(FLOWS) };
    let decode = DecodeSpec { joined: table.joined, ..DecodeSpec::default() };
    LogSpec { table, decode, reflect: false, settings: spec.settings }
}

/// The device, on one lcore between two ports.
pub struct BuiltIn {
    polling: Box<dyn Polling>,
    /// Records of ended flows: in a benchmark nobody wants them.
    ended: Option<Ended>,
    /// Behind the loop: its queues are these ports', and its tables this plane's.
    _kept: Kept,
}

/// What a loop needs and does not own.
enum Kept {
    Plane { _dut: Box<DataPlane> },
    Ports { _ports: Vec<Port>, _own: Mempool },
}

impl BuiltIn {
    /// Builds it between these two ports.
    pub fn new(
        eal: &'static Eal,
        spec: &BuiltInSpec,
        ports: Vec<Port>,
        infos: &[PortInfo],
        polled: &[Polled],
    ) -> Result<Self, Failure> {
        match spec {
            BuiltInSpec::Plane(spec) => {
                let mut dut = DataPlane::new(eal, spec, ports, infos, polled)?;
                let forwarder = dut.forwarders.pop().ok_or_else(|| Failure::failed("a data plane without a loop"))?;
                Ok(Self { polling: Box::new(forwarder), ended: None, _kept: Kept::Plane { _dut: Box::new(dut) } })
            }
            BuiltInSpec::FlowLog(spec) => Self::logger(eal, spec, ports, polled),
        }
    }

    fn logger(eal: &'static Eal, spec: &DutSpec, mut ports: Vec<Port>, polled: &[Polled]) -> Result<Self, Failure> {
        let (clock, log) = (Tsc::new(eal), log_spec(spec));
        let timebase = anchor(&clock);
        let memory = Words::new(eal, log.table.words())?;
        let (worker, reader, records) = table(&log.table, memory, timebase, ENDED)?;
        let function = FlowLog::new(ports.len(), log.reflect, log.decode, worker, Fetch);
        // For copies that the impairment makes.
        let own = Mempool::new(eal, "own", 8191, 2048, 256)?;
        let function: Impair<_, PoolHandle> =
            Impair::new(function, &spec.impair, ports.len(), own.handle(), clock.hz());
        let (inputs, tx) = queues(&mut ports, polled, 0)?;
        let forwarder = Forwarder::new(function, inputs, tx, clock, log.settings);
        Ok(Self {
            polling: Box::new(forwarder),
            ended: Some(Ended::new(records, reader, Arc::new(Mutex::new(timebase)))),
            _kept: Kept::Ports { _ports: ports, _own: own },
        })
    }

    /// The loop.
    pub fn polling(&mut self) -> &mut dyn Polling {
        self.polling.as_mut()
    }

    /// Between trials: makes room for the records of flows that end in the next one.
    pub fn forget_ended(&mut self) {
        let Some(ended) = &mut self.ended else { return };
        let mut records: Vec<Record> = Vec::with_capacity(BATCH);
        loop {
            records.clear();
            ended.pull(&mut records, BATCH);
            if records.is_empty() {
                return;
            }
        }
    }
}
