//! The built-in device under test of a benchmark: a data plane, or the flow logger.

use std::{
    sync::{atomic::AtomicBool, Arc, Mutex},
    time::Duration,
};

use dataplane::{
    flowlog::FlowLog,
    impair::Impair,
    spec::{FunctionKind, PlaneSpec},
    Control, Forwarder, Function, PortInfo, Settings, Snapshot,
};
use dpdk::{Eal, Mbuf, Mempool, PoolHandle, Port, RxQueue, SharedWords, Tsc, TxQueue};
use failure::Failure;
use flow::{
    decode::DecodeSpec,
    export::Records,
    table::{table, TableFull, TableSpec},
    Record,
};
use packet::{Absence, Clock, MacAddr};

use super::{
    fibs,
    flow_logger::{anchor, Ended, Fetch, LogSpec, ENDED},
    kind::Device,
    plane::{queues, DataPlane, DataPlaneSpec, LoopOptions, Polled},
};

use crate::lcores::GAPS_LOGGED;

/// Flows in its table, the default of `linerate flowlog`.
const FLOWS: usize = 1 << 20;
/// Records discarded at once.
const BATCH: usize = 4096;

/// A loop, whatever its function. It is called once a trial, so the dynamic call costs frames nothing.
pub trait Polling: Send {
    /// Its counters.
    fn control(&self) -> Arc<Control>;

    /// Polls until `stop` is set. Returns the last counters.
    fn run(&mut self, stop: &AtomicBool) -> Snapshot;

    /// When it was away from its ports since the gap meter started, in order.
    fn absences(&self) -> &[Absence];
}

impl<F: Function<Mbuf> + Send> Polling for Forwarder<F, RxQueue, TxQueue, Tsc> {
    fn control(&self) -> Arc<Control> {
        Self::control(self)
    }

    fn run(&mut self, stop: &AtomicBool) -> Snapshot {
        Self::run(self, stop)
    }

    fn absences(&self) -> &[Absence] {
        Self::absences(self)
    }
}

/// The defaults of `linerate flowlog`.
fn log_spec(options: &LoopOptions) -> LogSpec {
    let seconds = Duration::from_secs;
    let table =
        TableSpec { idle: seconds(30), active: seconds(300), full: TableFull::DropNew, ..TableSpec::new(FLOWS) };
    let decode = DecodeSpec { biflow: table.biflow, ..DecodeSpec::default() };
    LogSpec { table, decode, reflect: false, receive_only: false, settings: watched(options.settings) }
}

/// A loop whose absences a trial is to know.
fn watched(settings: Settings) -> Settings {
    Settings { gaps_logged: GAPS_LOGGED, ..settings }
}

/// Makes the built-in device of a run, once the addresses of the ports are known.
pub(crate) struct BuiltInMaker {
    what: Made,
    /// A bridge forgets a station after this time.
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
    /// (usage) when stations are to age in a device that does not learn.
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
                "dut: the {} does not learn addresses: the address tests need --dut bridge, or three ports",
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

    /// Frames that the impairment may hold, over both ports.
    pub(crate) fn held_frames(&self) -> u32 {
        let (Made::Plane { options, .. } | Made::FlowLog(options)) = &self.what;
        2 * options.impair.held_frames()
    }

    /// Builds the device between these ports, for stations with these addresses behind ports 0 and 1.
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
    let options = LoopOptions { settings: watched(options.settings), ..options.clone() };
    DataPlaneSpec { plane, options }
}

/// The device, on one lcore between two ports.
pub struct BuiltIn {
    polling: Box<dyn Polling>,
    /// Records of ended flows, which a benchmark discards.
    ended: Option<Ended>,
    /// What the loop needs: the ports of its queues, the owner of its tables.
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

    /// Discards the records of ended flows between trials, to make room for those of the next.
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

#[cfg(test)]
mod tests {
    use measure::plan::Plan;

    use super::*;
    use crate::device::DeviceOptions;

    fn maker(dut: &str, ageing: Option<Duration>, routes: Option<u64>) -> Result<Option<BuiltInMaker>, Failure> {
        let mut plan = Plan::default();
        plan.dut.routes = routes;
        let options = DeviceOptions { dut: Some(dut.to_owned()), ..DeviceOptions::default() };
        BuiltInMaker::of(&Device::parse(&options, &plan)?, ageing)
    }

    #[test]
    fn only_a_bridge_learns_addresses_that_age() {
        let ageing = Some(Duration::from_secs(1));
        for (dut, ageing, built_in) in
            [("l2", None, true), ("flowlog", None, true), ("bridge", ageing, true), ("sim", ageing, false)]
        {
            assert_eq!(maker(dut, ageing, None).unwrap().is_some(), built_in, "{dut}");
        }
        for dut in ["l2", "flowlog"] {
            let refused = maker(dut, ageing, None).err().map(|e| e.exit);
            assert_eq!(refused, Some(failure::Exit::Usage), "{dut}");
        }
    }

    #[test]
    fn tables_are_as_large_as_the_device_needs() {
        let mib = |dut, routes| maker(dut, None, routes).unwrap().unwrap().tables_mib();
        assert_eq!((mib("l3", None), mib("l2", None)), (0, 0));
        assert_eq!(mib("l3", Some(1_000_000)), 674);
        assert!(mib("flowlog", None) > 64);
    }
}
