//! The rig of a run: DPDK, the tester's ports, the built-in device if there is one, and the pool of frames.

use std::time::Duration;

use dataplane::PortInfo;
use dpdk::{Eal, Mempool, Port, PortConfig, PortSpec, Tsc, Wire};
use failure::{Failure, Stop};
use host::{Facts, RealtimeLimits, Roots, ThreadWaits};
use measure::{
    placement::PlacementClassifier,
    plan::Placements,
    result::{HostFacts, HostFinding, PortFacts, SelfTestKind, Warning, WarningKind},
    schema::device::DeviceRecord,
};
use packet::{Clock, MacAddr};
use units::LinkSpeed;

use crate::{
    claim::Claim,
    cpus::CpuPlan,
    device::{threads_of_device, BuiltIn, BuiltInMaker, Device, InLab, OutsidePorts, Polled, Watched},
    facts, host_plan,
    lcores::{OTHER_LCORE, TESTER_LCORE},
    machine::{check_descriptors, data_room, frames_mib, pool_size, start_rig_eal, MachineOptions},
    polling_cpus::PollingCpus,
    power::MachinePower,
    realtime::{DeviceSite, Realtime},
    selftest_pair::Pair,
    tester_port::{own_mac, parse_ports, wait_for_links, TesterPort, STAMPED},
};

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;

/// What a rig is built for.
pub struct RigOptions<'a> {
    /// The device under test.
    pub device: &'a Device,
    /// Cores and memory.
    pub machine: &'a MachineOptions,
    /// Longest frame, without FCS.
    pub max_frame: usize,
    /// For the address tests: three ports instead of two, and a built-in bridge that forgets a station after this time.
    pub third_port: Option<Duration>,
    /// Whether placements of the cores are searched separately.
    pub placements: Placements,
    /// Ends the wait for a peer.
    pub stop: &'a Stop,
}

/// Everything up and running.
pub struct Rig {
    /// DPDK.
    pub eal: &'static Eal,
    /// The clock of every lcore.
    pub clock: Tsc,
    /// The machine.
    pub facts: Facts,
    /// CPUs of the lcores.
    pub cpus: CpuPlan,
    /// The tester's ports.
    pub ports: Vec<TesterPort>,
    /// The built-in device, if the device under test is one.
    pub built_in: Option<BuiltIn>,
    /// The data plane behind the ports, if it is one of ours.
    pub watched: Option<Watched>,
    /// The lab behind the ports, if this process is inside of one.
    pub in_lab: Option<InLab>,
    /// The threads of an outside device, if they are known.
    pub(crate) device_threads: Option<ThreadWaits>,
    /// The device under test, as results keep it.
    pub device: DeviceRecord,
    /// Two ends of a cable with nothing between, for the self-test.
    pub loopback: Vec<TesterPort>,
    /// Two joined ports of the kind in use, for the self-test.
    pub(crate) pair: Pair,
    /// Frames the tester sends.
    pub frames: Mempool,
    /// Placements of the cores seen so far.
    pub classifier: PlacementClassifier,
    /// Descriptors of each queue.
    pub descriptors: u32,
    /// Longest IP packet that a software cable carries.
    max_packet: u16,
    /// Trials run so far.
    pub number: u32,
    /// Added to the number of a trial for its epoch, so that frames of another run most likely count as foreign.
    pub epoch_base: u8,
    /// Warnings about the rig, for the result.
    pub warnings: Vec<Warning>,
    /// Findings about the host that were open at the start.
    pub findings: Vec<HostFinding>,
    /// When lcores poll with real-time priority.
    pub(crate) realtime: Realtime,
    /// Sensors of power and temperature.
    pub(crate) power: MachinePower,
    /// Thread ids of the polling lcores, for the kernel's counters.
    pub tids: [Option<u32>; 2],
    /// Whether learning frames were sent since frames or addresses changed.
    pub learned: bool,
    /// Kernel interfaces of the ports. After the ports, which must be closed first.
    _claims: Vec<Claim>,
    /// The CPUs that are polled, for other Linerates to see.
    _polling: PollingCpus,
}

impl Rig {
    /// Brings everything up, or nothing.
    ///
    /// # Errors
    ///
    /// (machine) for what is missing, with what to do; (usage) for a simulated device, which has no ports.
    pub fn new(options: &RigOptions<'_>) -> Result<Self, Failure> {
        let facts = facts::read();
        let (outside, specs) = match options.device {
            Device::Ports(outside) => (Some(outside), parse_ports(&outside.names, options.third_port.is_some())?),
            Device::Plane { .. } | Device::FlowLog(_) => (None, Vec::new()),
            Device::Simulated(setup) => {
                return Err(Failure::usage(format!(
                    "--dut {setup}: only bench runs a simulated device: give a built-in function, or ports"
                )))
            }
        };
        let built_in = BuiltInMaker::of(options.device, options.third_port)?;
        let machine = options.machine;
        let cpus = CpuPlan::choose(&facts.cpus_allowed, machine.tester_cpu, machine.dut_cpu, outside.is_none())?;
        check_descriptors(machine.descriptors)?;
        if let (None, Some(pid)) = (outside, machine.dut_pids.first()) {
            return Err(Failure::usage(format!(
                "--dut-pid {pid}: only for a device behind --port: the built-in one is known"
            )));
        }
        let dut_cpu = machine.dut_cpu.filter(|_| outside.is_some());
        let device_threads = threads_of_device(&Roots::default(), &machine.dut_pids, dut_cpu)?;
        let (_, open) = host_plan::audit_of_run(machine, cpus, outside.is_none(), &specs);
        if machine.require_audit {
            host_plan::require_none_bad(&open)?;
        }
        let polled = polling_cpus(cpus, outside.is_none());
        let limits = RealtimeLimits::read(&Roots::default());
        let realtime = Realtime::decide(
            machine.realtime,
            dpdk::check_realtime(),
            limits,
            polled.clone(),
            DeviceSite::behind(&specs),
        )?;
        let claims = Claim::all(&specs)?;
        let held = built_in.as_ref().map_or(0, BuiltInMaker::held_frames);
        let room = data_room(options.max_frame);
        let mib = built_in.as_ref().map_or(0, BuiltInMaker::tables_mib) + frames_mib(held, room);
        let eal = start_rig_eal(machine, mib, cpus, &specs)?;
        let polling = PollingCpus::register(&polled);
        let clock = Tsc::new(eal);
        let frames = Mempool::new(eal, "frames", pool_size(machine.descriptors, 4, held), room, 512)?;
        let mut warnings = facts::warnings(&facts, eal.memory_kind() == dpdk::MemoryKind::Huge);
        let shared = |text: &String| Warning { kind: WarningKind::CpuShared, text: text.clone() };
        warnings.extend(polling.warnings().iter().map(shared));
        let mut rig = Self {
            eal,
            clock,
            cpus,
            warnings,
            facts,
            findings: host_plan::for_result(&open),
            ports: Vec::new(),
            built_in: None,
            watched: None,
            in_lab: None,
            device_threads,
            device: options.device.record(),
            loopback: Vec::new(),
            pair: Pair::new(specs.first().cloned(), options.max_frame, machine.descriptors),
            frames,
            classifier: PlacementClassifier::new(options.placements),
            descriptors: machine.descriptors,
            max_packet: (usize::from(room) - ETHERNET) as u16,
            number: 0,
            epoch_base: std::process::id() as u8 ^ clock.now() as u8,
            realtime,
            power: MachinePower::find(&Roots::default()),
            tids: [None; 2],
            learned: false,
            _claims: claims,
            _polling: polling,
        };
        match (outside, built_in) {
            (Some(outside), _) => rig.open_outside(&specs, outside, options)?,
            (None, Some(maker)) => rig.open_builtin(&maker, options.third_port.is_some())?,
            (None, None) => {}
        }
        rig.tids = rig.thread_ids()?;
        Ok(rig)
    }

    fn open_outside(
        &mut self,
        specs: &[PortSpec],
        outside: &OutsidePorts,
        options: &RigOptions<'_>,
    ) -> Result<(), Failure> {
        let wait = outside.link_wait;
        for (i, spec) in specs.iter().enumerate() {
            let descriptors = self.descriptors;
            let pool =
                Mempool::new(self.eal, "receive", pool_size(descriptors, 2, 0), data_room(options.max_frame), 512)?;
            let mut config = PortConfig::new(&pool);
            config.rx_desc = descriptors as u16;
            config.tx_desc = descriptors as u16;
            config.mtu = options.max_frame.saturating_sub(ETHERNET).max(1500) as u16;
            config.peer_timeout = wait;
            config.own = Some(STAMPED);
            config.cancel = Some(options.stop.shared());
            let port = Port::open(self.eal, spec, &config)?;
            if let Some(why) = port.fallback() {
                self.warnings.push(Warning { kind: WarningKind::PortFallback, text: why.to_owned() });
            }
            let name = outside.names.get(i).cloned().unwrap_or_default();
            self.ports.push(TesterPort::new(name, port, i as u8)?);
        }
        wait_for_links(&self.ports, wait, options.stop)?;
        self.watched = outside.control.as_deref().map(Watched::connect).transpose()?;
        self.in_lab = if outside.lab { Some(InLab::connect()?) } else { None };
        self.warnings.extend(self.in_lab.as_ref().and_then(InLab::warning));
        Ok(())
    }

    fn open_builtin(&mut self, maker: &BuiltInMaker, three: bool) -> Result<(), Failure> {
        let mut dut_ports = Vec::new();
        for i in 0..if three { 3 } else { 2u8 } {
            let config = PortConfig::new(&self.frames);
            let (near, far) = Wire::pair(self.eal, &format!("wire{i}"), self.descriptors, &config)?;
            self.ports.push(TesterPort::new(format!("wire{i}"), near, i)?);
            dut_ports.push(far);
        }
        // The device may add headers to the longest frame that the tester sends.
        let info = |n| PortInfo { mac: own_mac(n), mtu: self.max_packet };
        let ports = dut_ports.len();
        let polled: Vec<_> = (0..ports).map(|port| Polled { port, queue: 0, lcore: 0 }).collect();
        let infos: Vec<_> = (0x10..).take(ports).map(info).collect();
        self.built_in = Some(maker.make(self.eal, self.macs(), dut_ports, &infos, &polled)?);
        Ok(())
    }

    /// Opens the cable of the self-test, if it is not open.
    ///
    /// # Errors
    ///
    /// (machine) when DPDK lacks memory.
    pub fn open_loopback(&mut self) -> Result<(), Failure> {
        if self.loopback.is_empty() {
            let config = PortConfig::new(&self.frames);
            let (a, b) = Wire::pair(self.eal, "selftest", self.descriptors, &config)?;
            self.loopback = vec![TesterPort::new("loop0".into(), a, 0x20)?, TesterPort::new("loop1".into(), b, 0x21)?];
        }
        Ok(())
    }

    /// Opens the pair of the self-test, if it is not open. Returns its kind; and why it is the software cable, where the
    /// ports are not.
    pub(crate) fn open_pair(&mut self) -> (SelfTestKind, Option<String>) {
        self.pair.open(self.eal)
    }

    /// Makes the self-test go over this kind of pair, whatever the ports are.
    pub fn selftest_over(&mut self, kind: SelfTestKind) {
        self.pair.choose(kind);
    }

    fn thread_ids(&self) -> Result<[Option<u32>; 2], Failure> {
        let ask = |lcore| -> Result<Option<u32>, Failure> {
            Ok(self.eal.scope(|s| s.launch(lcore, host::current_tid)?.join())?)
        };
        Ok([ask(TESTER_LCORE)?, if self.cpus.other.is_some() { ask(OTHER_LCORE)? } else { None }])
    }

    /// The speed of the links, where all report the same.
    pub fn reported_link(&self) -> Option<LinkSpeed> {
        let mut speeds = self.ports.iter().map(|e| e.port.link().bps.and_then(|bps| LinkSpeed::new(bps).ok()));
        let first = speeds.next()??;
        speeds.all(|s| s == Some(first)).then_some(first)
    }

    /// Facts about the tester's ports, for the result.
    pub fn port_facts(&self) -> Vec<PortFacts> {
        let fact = |e: &TesterPort| PortFacts {
            name: e.name.clone(),
            driver: e.port.driver().to_owned(),
            mac: e.mac.to_string(),
            link_bps: e.port.link().bps.and_then(|bps| LinkSpeed::new(bps).ok()),
            descriptors: (self.descriptors, self.descriptors),
        };
        self.ports.iter().map(fact).collect()
    }

    /// The facts of the machine with what it takes without frames, and where power is read.
    pub fn with_power(&self, facts: HostFacts) -> HostFacts {
        self.power.add_to(facts)
    }

    /// When lcores poll with real-time priority, in words.
    pub fn realtime_use(&self) -> String {
        self.realtime.describe()
    }

    /// The MAC addresses of the first two ports.
    pub fn macs(&self) -> [MacAddr; 2] {
        [0, 1].map(|i: usize| self.ports.get(i).map_or(own_mac(i as u8), |e| e.mac))
    }

    /// Ticks of the clock in a duration.
    pub fn ticks(&self, d: Duration) -> u64 {
        u64::try_from(d.as_nanos() * u128::from(self.clock.hz()) / 1_000_000_000).unwrap_or(u64::MAX)
    }
}

/// The CPUs that are polled all the time. Without a built-in device, the other lcore only answers the core-to-core probe.
fn polling_cpus(cpus: CpuPlan, built_in: bool) -> Vec<u32> {
    std::iter::once(cpus.tester).chain(cpus.other.filter(|_| built_in)).collect()
}
