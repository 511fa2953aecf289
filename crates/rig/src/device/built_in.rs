//! The built-in device under test of a benchmark: a data plane, or the flow logger.

use std::{
    sync::{atomic::AtomicBool, Arc, Mutex},
    time::Duration,
};

use dataplane::{
    flowlog::FlowLog,
    impair::Impair,
    spec::{FunctionKind, PlaneSpec},
    Control, Forwarder, Function, PortInfo, Snapshot,
};
use dpdk::{Eal, Mbuf, Mempool, PoolHandle, Port, RxQueue, SharedWords, Tsc, TxQueue};
use failure::Failure;
use flow::{
    decode::DecodeSpec,
    export::Records,
    table::{table, TableFull, TableSpec},
    Record,
};
use packet::{Clock, MacAddr};

use super::{
    fibs,
    flow_logger::{anchor, Ended, Fetch, LogSpec, ENDED},
    kind::Device,
    plane::{queues, DataPlane, DataPlaneSpec, LoopOptions, Polled},
};

/// Flows its table has room for, as that of `linerate flowlog` by default.
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

/// The defaults of `linerate flowlog`.
fn log_spec(options: &LoopOptions) -> LogSpec {
    let seconds = Duration::from_secs;
    let table =
        TableSpec { idle: seconds(30), active: seconds(300), full: TableFull::DropNew, ..TableSpec::new(FLOWS) };
    let decode = DecodeSpec { biflow: table.biflow, ..DecodeSpec::default() };
    LogSpec { table, decode, reflect: false, settings: options.settings }
}

/// Makes the built-in device of a run, once the addresses of the ports are known.
pub(crate) struct BuiltInMaker {
    what: Made,
    /// A bridge forgets stations silent for so long.
    ageing: Option<Duration>,
}

enum Made {
    Plane { kind: FunctionKind, options: LoopOptions, routes: [u32; 2] },
    FlowLog(LoopOptions),
}

impl BuiltInMaker {
    /// For this device; `None` for one that is not built in.
    ///
    /// # Errors
    ///
    /// (usage) when stations are to age in a device that learns none.
    pub(crate) fn of(device: &Device, ageing: Option<Duration>) -> Result<Option<Self>, Failure> {
        let what = match device {
            Device::Ports(_) | Device::Simulated(_) => return Ok(None),
            Device::Plane { kind, options, routes } => {
                Made::Plane { kind: *kind, options: options.clone(), routes: *routes }
            }
            Device::FlowLog(options) => Made::FlowLog(options.clone()),
        };
        let learns = matches!(what, Made::Plane { kind: FunctionKind::Bridge, .. });
        if ageing.is_some() && !learns {
            return Err(Failure::usage(format!(
                "dut: the {} learns no addresses: the address tests need --dut bridge, or three ports",
                device.name()
            )));
        }
        Ok(Some(Self { what, ageing }))
    }

    /// MiB of DPDK's memory that its tables take.
    pub(crate) fn tables_mib(&self) -> u32 {
        match &self.what {
            Made::Plane { kind, options, routes } => {
                let spec = plane_spec(*kind, options, *routes, self.ageing, [MacAddr::default(); 2]);
                fibs::tables_mib(spec.plane.routes.len())
            }
            Made::FlowLog(options) => log_spec(options).tables_mib(1),
        }
    }

    /// Builds it between these ports, for stations of these addresses behind ports 0 and 1.
    pub(crate) fn make(
        &self,
        eal: &'static Eal,
        stations: [MacAddr; 2],
        ports: Vec<Port>,
        infos: &[PortInfo],
        polled: &[Polled],
    ) -> Result<BuiltIn, Failure> {
        match &self.what {
            Made::Plane { kind, options, routes } => {
                BuiltIn::plane(eal, &plane_spec(*kind, options, *routes, self.ageing, stations), ports, infos, polled)
            }
            Made::FlowLog(options) => BuiltIn::logger(eal, options, ports, polled),
        }
    }
}

fn plane_spec(
    kind: FunctionKind,
    options: &LoopOptions,
    routes: [u32; 2],
    ageing: Option<Duration>,
    stations: [MacAddr; 2],
) -> DataPlaneSpec {
    let mut plane = PlaneSpec::benchmark(kind, stations);
    if routes != [0, 0] {
        plane.add_host_routes(stations, routes);
    }
    if ageing.is_some() {
        plane.bridge_ageing = ageing;
    }
    DataPlaneSpec { plane, options: options.clone() }
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
    Plane { _plane: Box<DataPlane> },
    Ports { _ports: Vec<Port>, _own: Mempool },
}

impl BuiltIn {
    /// Builds a data plane between these ports.
    fn plane(
        eal: &'static Eal,
        spec: &DataPlaneSpec,
        ports: Vec<Port>,
        infos: &[PortInfo],
        polled: &[Polled],
    ) -> Result<Self, Failure> {
        let mut plane = DataPlane::new(eal, spec, ports, infos, polled)?;
        let forwarder = plane.forwarders.pop().ok_or_else(|| Failure::failed("a data plane without a loop"))?;
        Ok(Self { polling: Box::new(forwarder), ended: None, _kept: Kept::Plane { _plane: Box::new(plane) } })
    }

    /// Builds the flow logger between these ports.
    fn logger(
        eal: &'static Eal,
        options: &LoopOptions,
        mut ports: Vec<Port>,
        polled: &[Polled],
    ) -> Result<Self, Failure> {
        let (clock, log) = (Tsc::new(eal), log_spec(options));
        let timebase = anchor(&clock);
        let memory = SharedWords::new(eal, log.table.words())?;
        let (worker, reader, records) = table(&log.table, memory, timebase, ENDED)?;
        let function = FlowLog::new(ports.len(), log.reflect, log.decode, worker, Fetch);
        // For copies that the impairment makes.
        let own = Mempool::new(eal, "own", 8191, 2048, 256)?;
        let function: Impair<_, PoolHandle> =
            Impair::new(function, &options.impair, ports.len(), own.handle(), clock.hz());
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
