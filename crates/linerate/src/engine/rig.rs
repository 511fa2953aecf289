//! What a run is made with: DPDK, the tester's two ports, the built-in DUT if there is one, and the pool of frames.

use std::time::{Duration, Instant};

use dataplane::PortInfo;
use dpdk::{Eal, EalOptions, Lcore, Memory, Mempool, Port, PortConfig, PortSpec, RxQueue, Tsc, TxQueue, Wire};
use host::Facts;
use measure::{
    placement::PlacementClassifier,
    plan::Placements,
    result::{PortFacts, Warning, WarningKind},
    schema::device::DeviceRecord,
};
use packet::{Clock, MacAddr};
use units::LinkSpeed;

use super::{cpus::CpuPlan, facts, watch::Watched, BuiltIn, BuiltInSpec, Polled, OTHER_LCORE, TESTER_LCORE};
use crate::{
    cli::{MachineArgs, MemoryArg, PortArgs},
    control::Claim,
    failure::Failure,
    stop::Stop,
};

/// What a rig is made of.
pub struct RigOptions<'a> {
    /// Ports or the built-in DUT.
    pub ports: &'a PortArgs,
    /// Cores and memory.
    pub machine: &'a MachineArgs,
    /// The built-in device under test and what impairs it; not used with ports.
    pub dut: Option<&'a str>,
    /// The impairment.
    pub impair: Option<&'a str>,
    /// Host routes of the built-in device behind ports 0 and 1.
    pub routes: [u32; 2],
    /// Longest frame, without FCS.
    pub max_frame: usize,
    /// Three ports instead of two, for the address tests; a built-in bridge then forgets stations silent for so long.
    pub third_port: Option<Duration>,
    /// Whether placements of the cores are told apart.
    pub placements: Placements,
    /// Stops the wait for a peer.
    pub stop: &'a Stop,
}

/// One end of the tester.
pub struct End {
    /// As named by the user.
    pub name: String,
    /// The port.
    pub port: Port,
    /// Its receive queue.
    pub rx: RxQueue,
    /// Its transmit queue.
    pub tx: TxQueue,
    /// Its address, or one made up where the port has none.
    pub mac: MacAddr,
}

/// Everything up and running.
pub struct Rig {
    pub eal: &'static Eal,
    pub clock: Tsc,
    pub facts: Facts,
    pub cpus: CpuPlan,
    pub ends: Vec<End>,
    pub dut: Option<BuiltIn>,
    /// The data plane behind the ports, if it is one of ours.
    pub watched: Option<Watched>,
    /// What is measured, for the report.
    pub device: DeviceRecord,
    /// Two ends of a cable with nothing between, for the self-test.
    pub loopback: Vec<End>,
    /// Frames the tester sends.
    pub frames: Mempool,
    pub classifier: PlacementClassifier,
    pub descriptors: u32,
    /// Longest IP packet that a software cable carries.
    max_packet: u16,
    /// Trials run so far.
    pub number: u32,
    /// Added to the number of a trial for its epoch, so that frames of another run are most likely foreign.
    pub epoch_base: u8,
    pub warnings: Vec<Warning>,
    /// Thread ids of the polling lcores, for the kernel's counters.
    pub tids: [Option<u32>; 2],
    /// How many trials have been run since frames or addresses changed.
    pub taught: bool,
    /// Kernel interfaces of the ports. Last, so that ports are closed before.
    _claims: Vec<Claim>,
}

/// A locally administered address; `L` `R` and a number.
const fn own_mac(n: u8) -> MacAddr {
    MacAddr([0x02, b'L', b'R', 0, 0, n])
}

/// The most mbufs of a pool: one less than a power of two fits best.
const FRAMES: u32 = (1 << 14) - 1;

impl Rig {
    /// Brings everything up, or nothing. Errors say what is missing and what mends it.
    pub fn new(options: &RigOptions<'_>) -> Result<Self, Failure> {
        let facts = facts::read();
        let outside = !options.ports.ports.is_empty();
        let specs = port_specs(&options.ports.ports, options.third_port.is_some())?;
        // Wrong words are wrong before anything is opened; the stations are known when the cables are.
        let parse = |stations| {
            let mut spec = BuiltInSpec::parse(options.dut, options.impair, options.ports.dut_tx.as_deref(), stations)?;
            if !outside && options.routes != [0, 0] {
                spec.add_host_routes(stations, options.routes)?;
            }
            Ok(spec)
        };
        let tables_mib = parse([MacAddr::default(); 2])?.tables_mib();
        let tables_mib = if outside { 0 } else { tables_mib };
        let machine = options.machine;
        let cpus = CpuPlan::choose(&facts.cpus_allowed, machine.tester_cpu, machine.dut_cpu, !outside)?;
        check_descriptors(machine.descriptors)?;
        let claims = Claim::all(&specs)?;
        let eal = start_eal(machine, tables_mib, cpus, &specs)?;
        let clock = Tsc::new(eal);
        let room = data_room(options.max_frame);
        let mut warnings = facts::warnings(&facts, eal.memory_kind() == dpdk::MemoryKind::Huge);
        let frames = Mempool::new(eal, "frames", pool_size(machine.descriptors, 4), room, 512)?;
        let mut rig = Self {
            eal,
            clock,
            cpus,
            facts,
            ends: Vec::new(),
            dut: None,
            watched: None,
            device: DeviceRecord::default(),
            loopback: Vec::new(),
            frames,
            classifier: PlacementClassifier::new(options.placements),
            descriptors: machine.descriptors,
            max_packet: (usize::from(room) - ETHERNET) as u16,
            number: 0,
            epoch_base: std::process::id() as u8 ^ clock.now() as u8,
            warnings: Vec::new(),
            tids: [None; 2],
            taught: false,
            _claims: claims,
        };
        if outside {
            rig.open_outside(&specs, options, &mut warnings)?;
            rig.watched = options.ports.dut_control.as_deref().map(Watched::connect).transpose()?;
        } else {
            rig.open_builtin(&parse, options.third_port)?;
            if let DeviceRecord::Plane { routes, .. } = &mut rig.device {
                *routes = options.routes.iter().copied().map(u64::from).sum();
            }
        }
        rig.warnings = warnings;
        rig.tids = rig.thread_ids()?;
        Ok(rig)
    }

    fn open_outside(
        &mut self,
        specs: &[PortSpec],
        options: &RigOptions<'_>,
        warnings: &mut Vec<Warning>,
    ) -> Result<(), Failure> {
        let names = &options.ports.ports;
        let wait = units::parse_duration(&options.ports.link_wait)?;
        for (i, spec) in specs.iter().enumerate() {
            let descriptors = self.descriptors;
            let pool = Mempool::new(self.eal, "receive", pool_size(descriptors, 2), data_room(options.max_frame), 512)?;
            let mut config = PortConfig::new(&pool);
            config.rx_desc = descriptors as u16;
            config.tx_desc = descriptors as u16;
            config.mtu = options.max_frame.saturating_sub(14).max(1500) as u16;
            config.peer_timeout = wait;
            config.cancel = Some(options.stop.shared());
            let port = Port::open(self.eal, spec, &config)?;
            if let Some(why) = port.fallback() {
                warnings.push(Warning { kind: WarningKind::PortFallback, text: why.to_owned() });
            }
            let name = names.get(i).cloned().unwrap_or_default();
            self.ends.push(End::new(name, port, i as u8)?);
        }
        let until = Instant::now() + wait;
        for end in &self.ends {
            while !end.port.link().up {
                if options.stop.requested() {
                    return Err(Failure::stopped(format!("stopped while port {} waited for its link", end.name)));
                }
                if Instant::now() >= until {
                    return Err(Failure::machine(format!(
                        "port {}: its link is still down after {wait:?}: start or enable the other side, or wait longer \
                         (--link-wait)",
                        end.name
                    )));
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        self.device = DeviceRecord::Ports { names: names.clone() };
        Ok(())
    }

    fn open_builtin(
        &mut self,
        parse: &dyn Fn([MacAddr; 2]) -> Result<BuiltInSpec, Failure>,
        third_port: Option<Duration>,
    ) -> Result<(), Failure> {
        let mut dut_ports = Vec::new();
        for i in 0..if third_port.is_some() { 3 } else { 2u8 } {
            let config = PortConfig::new(&self.frames);
            let (near, far) = Wire::pair(self.eal, &format!("wire{i}"), self.descriptors, &config)?;
            self.ends.push(End::new(format!("wire{i}"), near, i)?);
            dut_ports.push(far);
        }
        let mut spec = parse(self.macs())?;
        if let Some(ageing) = third_port {
            spec.age_stations(ageing)?;
        }
        // What the tester sends is no longer than its own ports take, and headers are added behind that.
        let info = |n| PortInfo { mac: own_mac(n), mtu: self.max_packet };
        let ports = dut_ports.len();
        let polled: Vec<_> = (0..ports).map(|port| Polled { port, queue: 0, lcore: 0 }).collect();
        let infos: Vec<_> = (0x10..).take(ports).map(info).collect();
        self.dut = Some(BuiltIn::new(self.eal, &spec, dut_ports, &infos, &polled)?);
        self.device = spec.record();
        Ok(())
    }

    /// Opens the cable of the self-test, once.
    pub fn open_loopback(&mut self) -> Result<(), Failure> {
        if self.loopback.is_empty() {
            let config = PortConfig::new(&self.frames);
            let (a, b) = Wire::pair(self.eal, "selftest", self.descriptors, &config)?;
            self.loopback = vec![End::new("loop0".into(), a, 0x20)?, End::new("loop1".into(), b, 0x21)?];
        }
        Ok(())
    }

    fn thread_ids(&self) -> Result<[Option<u32>; 2], Failure> {
        let ask = |lcore| -> Result<Option<u32>, Failure> {
            Ok(self.eal.scope(|s| s.launch(lcore, host::current_tid)?.join())?)
        };
        Ok([ask(TESTER_LCORE)?, if self.cpus.other.is_some() { ask(OTHER_LCORE)? } else { None }])
    }

    /// The speed that both links report, when they do and it is the same.
    pub fn reported_link(&self) -> Option<LinkSpeed> {
        let mut speeds = self.ends.iter().map(|e| e.port.link().bps.and_then(|bps| LinkSpeed::new(bps).ok()));
        let first = speeds.next()??;
        speeds.all(|s| s == Some(first)).then_some(first)
    }

    /// Facts of the tester's ports, for the result.
    pub fn port_facts(&self) -> Vec<PortFacts> {
        let fact = |e: &End| PortFacts {
            name: e.name.clone(),
            driver: e.port.driver().to_owned(),
            mac: e.mac.to_string(),
            link_bps: e.port.link().bps.and_then(|bps| LinkSpeed::new(bps).ok()),
            descriptors: (self.descriptors, self.descriptors),
        };
        self.ends.iter().map(fact).collect()
    }

    /// The addresses of both ends.
    pub fn macs(&self) -> [MacAddr; 2] {
        [0, 1].map(|i: usize| self.ends.get(i).map_or(own_mac(i as u8), |e| e.mac))
    }

    /// Ticks of the clock in a duration.
    pub fn ticks(&self, d: Duration) -> u64 {
        u64::try_from(d.as_nanos() * u128::from(self.clock.hz()) / 1_000_000_000).unwrap_or(u64::MAX)
    }
}

impl End {
    fn new(name: String, mut port: Port, n: u8) -> Result<Self, Failure> {
        let (rx, tx) = (port.take_rx(0)?, port.take_tx(0)?);
        let mac = match port.mac() {
            [0, 0, 0, 0, 0, 0] => own_mac(n),
            mac => MacAddr(mac),
        };
        Ok(Self { name, port, rx, tx, mac })
    }
}

fn port_specs(texts: &[String], three: bool) -> Result<Vec<PortSpec>, Failure> {
    let (wanted, what) = match three {
        false => (2, "two ports, one to send and one to receive"),
        true => (3, "three ports for the address tests: learning port, test port, monitoring port (RFC 2889 §5.7.3)"),
    };
    if texts.len() != wanted && !texts.is_empty() {
        return Err(Failure::usage(format!(
            "{} --port given: the tester has {what} (or give none for the built-in device under test)",
            texts.len()
        )));
    }
    let specs = texts.iter().map(|t| Ok(t.parse::<PortSpec>()?)).collect::<Result<Vec<_>, Failure>>()?;
    for (i, spec) in specs.iter().enumerate().filter(|(_, spec)| !matches!(spec, PortSpec::Null { .. })) {
        if specs[..i].contains(spec) {
            return Err(Failure::usage(format!("--port {} was given twice: the ports must differ", texts[i])));
        }
    }
    if specs.contains(&PortSpec::Wire) {
        return Err(Failure::usage(
            "--port wire: a software cable joins the tester to the built-in device under test: leave --port out",
        ));
    }
    Ok(specs)
}

/// Starts DPDK with the polling cores of this plan.
fn start_eal(
    machine: &MachineArgs,
    tables_mib: u32,
    cpus: CpuPlan,
    specs: &[PortSpec],
) -> Result<&'static Eal, Failure> {
    let mut lcores = vec![Lcore { id: TESTER_LCORE, cpu: cpus.tester }];
    lcores.extend(cpus.other.map(|cpu| Lcore { id: OTHER_LCORE, cpu }));
    init(machine, tables_mib, lcores, specs)
}

/// Starts DPDK with lcore 1 on the first of these CPUs, 2 on the second and so on.
pub fn start_forward_eal(
    machine: &MachineArgs,
    tables_mib: u32,
    cpus: &[u32],
    specs: &[PortSpec],
) -> Result<&'static Eal, Failure> {
    init(machine, tables_mib, cpus.iter().zip(1..).map(|(&cpu, id)| Lcore { id, cpu }).collect(), specs)
}

/// Software rings of another size hold fewer frames than asked, or none.
pub fn check_descriptors(descriptors: u32) -> Result<(), Failure> {
    match descriptors {
        n if n.is_power_of_two() => Ok(()),
        n => Err(Failure::usage(format!("--descriptors {n}: must be a power of two, 64 to 32768"))),
    }
}

fn init(
    machine: &MachineArgs,
    tables_mib: u32,
    lcores: Vec<Lcore>,
    specs: &[PortSpec],
) -> Result<&'static Eal, Failure> {
    let mib = machine.memory_mib.saturating_add(tables_mib);
    let pci = specs.iter().filter_map(|s| match s {
        PortSpec::Pci { address, .. } => Some(address.clone()),
        _ => None,
    });
    Ok(Eal::init(EalOptions {
        lcores,
        memory: match machine.memory {
            MemoryArg::Auto => Memory::Auto { mib },
            MemoryArg::Hugepages => Memory::Huge { mib },
            MemoryArg::NoHugepages => Memory::NoHuge { mib },
        },
        pci: pci.collect(),
    })?)
}

/// Tags, labels and tunnel headers that a DUT may add to the longest frame.
const HEADER_ROOM: usize = 78;
const ETHERNET: usize = 14;

/// Room for the longest frame, at least what drivers expect.
fn data_room(max_frame: usize) -> u16 {
    (max_frame + HEADER_ROOM).max(2048) as u16
}

/// Frames for `rings` rings of this depth, caches and bursts in hand; bounded below so that small rings still have
/// caches.
fn pool_size(descriptors: u32, rings: u32) -> u32 {
    (descriptors * rings + 4096).next_power_of_two().max(FRAMES + 1) - 1
}
