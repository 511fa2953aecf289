//! Latency of raw frames over every kind of port: opens the ends, and measures on the tester's lcore.

use std::{
    io,
    time::{Duration, Instant},
};

use dpdk::{Eal, HwStamps, Mbuf, Mempool, OrderedTsc, Port, PortConfig, PortSpec, Role, RxQueue, Tsc, TxQueue, Wire};
use failure::{Failure, Stop};
use host::Facts;
use latency::raw::{
    frame::{Frame, LONGEST},
    packet_socket::{mac_of, PacketSockets, Stamps},
    result::{Row, Span},
    run::{receive_to_send, send_to_receive, RawMeasured, RawOptions},
    timing::{own_ns, step, Timing},
    way::{Queues, Way},
};
use nix::sys::mman::{mlockall, MlockAllFlags};
use packet::{Alloc, Buffer, Burst, ClockPair, MacAddr, Rx, Tx};

use crate::{
    claim::Claim,
    cpus::CpuPlan,
    facts,
    lcores::TESTER_LCORE,
    machine::{check_descriptors, data_room, pool_size, start_rig_eal, MachineOptions},
    polling_cpus::PollingCpus,
    selftest_pair::Pair,
    tester_port::{drain, wait_for_links, TesterPort},
    veth::{Veth, NAMES},
};

/// Behind this, a `--port` of raw latency is an interface that AF_PACKET sockets use with a system call a frame.
const SOCKET: &str = "socket:";

/// A way of frames, as a user names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RawWay {
    /// The software cable.
    Cable,
    /// Two ports, out and in.
    Ports(Box<[PortSpec; 2]>),
    /// AF_PACKET sockets on two interfaces, out and in, and whose time stamps count.
    Sockets([String; 2], Option<Stamps>),
    /// Two joined ports of our own, like this one.
    Pair(Box<PortSpec>),
    /// A veth pair of our own with AF_PACKET sockets.
    SocketPair,
}

impl RawWay {
    /// Two ports as a user names them, or none for the software cable.
    ///
    /// # Errors
    ///
    /// (usage) for another number, names that are not a port's, ports without another end, and sockets beside ports.
    pub fn parse(ports: &[String]) -> Result<Self, Failure> {
        let [out, into] = match ports {
            [] => return Ok(Self::Cable),
            [out, into] => [out, into],
            _ => {
                return Err(Failure::usage(format!(
                    "{} --port given: frames go out of the first and come in at the second (none: the software cable)",
                    ports.len()
                )))
            }
        };
        if out == into {
            return Err(Failure::usage(format!("--port {out} is given twice: the ports must differ")));
        }
        match (out.strip_prefix(SOCKET), into.strip_prefix(SOCKET)) {
            (Some(""), _) | (_, Some("")) => {
                return Err(Failure::usage("--port socket: names no interface: write socket:eth0"))
            }
            (Some(out), Some(into)) => return Ok(Self::Sockets([out.to_owned(), into.to_owned()], None)),
            (None, None) => {}
            _ => return Err(Failure::usage(format!("--port {out} and {into}: sockets are at both ends or at none"))),
        }
        let spec = |text: &String| -> Result<PortSpec, Failure> {
            let spec: PortSpec = text.parse()?;
            match spec {
                PortSpec::Null { .. } | PortSpec::Pcap { .. } => {
                    Err(Failure::usage(format!("--port {text}: no frame comes back from it: it has no latency")))
                }
                PortSpec::Wire => Err(Failure::usage("--port wire: the software cable is measured without --port")),
                spec => Ok(spec),
            }
        };
        Ok(Self::Ports(Box::new([spec(out)?, spec(into)?])))
    }

    /// The same with time stamps instead of the clock of the program.
    ///
    /// # Errors
    ///
    /// (usage) for ports that are not sockets.
    pub fn with_stamps(self, stamps: Stamps) -> Result<Self, Failure> {
        match self {
            Self::Sockets(names, _) => Ok(Self::Sockets(names, Some(stamps))),
            _ => Err(Failure::usage(
                "time stamps are those of sockets: --port socket:IFACE --port socket:IFACE, on the interfaces of the NIC",
            )),
        }
    }

    /// The ports that DPDK opens.
    pub fn specs(&self) -> &[PortSpec] {
        match self {
            Self::Ports(specs) => &**specs,
            _ => &[],
        }
    }
}

/// A size to measure, and how.
#[derive(Debug, Clone, Copy)]
pub struct RawSize<'a> {
    /// Bytes of a frame without FCS.
    pub bytes: usize,
    /// From when a frame is there to when it is handed over again, instead of from end to end.
    pub forward: bool,
    /// How it is measured.
    pub options: &'a RawOptions,
}

/// The machine, ready to measure one way after the other.
pub struct RawBench {
    eal: &'static Eal,
    clock: OrderedTsc,
    frames: Mempool,
    descriptors: u32,
    link_wait: Duration,
    begun: ClockPair<Instant>,
    step: u64,
    own_ns: f64,
    runs: u64,
    /// The CPU that measures.
    pub cpu: u32,
    /// What is known of the machine.
    pub facts: Facts,
    /// Whether all memory of this process is locked.
    pub memory_locked: bool,
    /// Whether ports without zero-copy are refused.
    pub zero_copy: bool,
    _claims: Vec<Claim>,
    polling: PollingCpus,
}

/// The ends of a way over queues.
struct QueueEnds {
    out: TesterPort,
    into: TesterPort,
    /// Of a forwarder of our own frames: where they come from, and where they end.
    outer: Option<(TesterPort, TesterPort)>,
    /// What keeps them.
    _pairs: Vec<Pair>,
}

/// The ends of a way, open.
enum Ends {
    Queues(Box<QueueEnds>),
    Sockets {
        way: PacketSockets,
        names: [String; 2],
        macs: [MacAddr; 2],
        _stamping: Vec<HwStamps>,
        _veth: Option<Veth>,
    },
}

impl RawBench {
    /// Starts DPDK for ways over these ports.
    ///
    /// # Errors
    ///
    /// (usage) for a CPU that cannot be used; (machine) for what is missing or in use.
    pub fn new(machine: &MachineOptions, specs: &[PortSpec], link_wait: Duration) -> Result<Self, Failure> {
        let facts = facts::read();
        let mut cpus = CpuPlan::choose(&facts.cpus_allowed, machine.tester_cpu, machine.dut_cpu, false)
            .map_err(|e| Failure { text: e.text.replace("--tester-cpu", "--cpu"), ..e })?;
        check_descriptors(machine.descriptors)?;
        let claims = Claim::all(specs)?;
        // One lcore does both ends.
        cpus.other = None;
        let eal = start_rig_eal(machine, 0, cpus, specs)?;
        let polling = PollingCpus::register(&[cpus.tester]);
        let clock = Tsc::new(eal).ordered();
        let frames = Mempool::new(eal, "frames", pool_size(machine.descriptors, 4, 0), data_room(LONGEST), 512)?;
        // Without the right to it, pages stay as they are: the result says so.
        let memory_locked = lock_memory();
        let (step, own_ns) = eal.scope(|s| s.launch(TESTER_LCORE, || (step(&clock), own_ns(&clock)))?.join())?;
        let begun = ClockPair::monotonic(&clock);
        Ok(Self {
            eal,
            clock,
            frames,
            descriptors: machine.descriptors,
            link_wait,
            begun,
            step,
            own_ns,
            runs: 0,
            cpu: cpus.tester,
            facts,
            memory_locked,
            zero_copy: false,
            _claims: claims,
            polling,
        })
    }

    /// What a reader should know: another program of ours polls the same CPU.
    pub fn warnings(&self) -> Vec<String> {
        self.polling.warnings().to_vec()
    }

    /// The clock, over all that was measured so far.
    pub fn timing(&self) -> Timing {
        Timing::between(&self.begun, &ClockPair::monotonic(&self.clock), self.step, self.own_ns)
    }

    /// Measures sizes over a way, one after the other, until `stop`. Rows go to `rows` as they come.
    ///
    /// # Errors
    ///
    /// (machine) for ports that cannot be opened or joined, and where no frame comes at all; (failed) where none comes of a later
    /// size. Rows measured before stay.
    pub fn measure(
        &mut self,
        way: &RawWay,
        sizes: &[RawSize<'_>],
        stop: &Stop,
        rows: &mut Vec<Row>,
    ) -> Result<(), Failure> {
        let forward = sizes.first().is_some_and(|size| size.forward);
        let mut ends = self.open(way, forward, stop)?;
        if self.zero_copy {
            require_zero_copy(&ends)?;
        }
        for size in sizes {
            if stop.requested() {
                break;
            }
            let row = self.row(&mut ends, way, *size, stop, rows.is_empty())?;
            rows.push(row);
        }
        Ok(())
    }

    /// Measures a size; `first`: nothing has come so far.
    fn row(
        &mut self,
        ends: &mut Ends,
        way: &RawWay,
        size: RawSize<'_>,
        stop: &Stop,
        first: bool,
    ) -> Result<Row, Failure> {
        let silent = |text: String| if first { Failure::machine(text) } else { Failure::failed(text) };
        self.runs += 1;
        let mark = u64::from(std::process::id()) << 32 | self.runs;
        let go_on = || !stop.requested();
        let (names, measured) = match ends {
            Ends::Queues(ends) => {
                let QueueEnds { out, into, outer, .. } = &mut **ends;
                let names = (out.name.clone(), into.name.clone());
                let frame = Frame::new(size.bytes, out.mac, into.mac, mark);
                let outer = outer.as_mut();
                (names, self.over_queues(out, into, outer, frame, size, &go_on)?)
            }
            Ends::Sockets { way, names, macs, .. } => {
                let frame = Frame::new(size.bytes, macs[0], macs[1], mark);
                let clock = self.clock;
                let run = || timed(way, &clock, frame, size, &mut |_| (), &go_on);
                let measured = self.eal.scope(|s| s.launch(TESTER_LCORE, run)?.join())?;
                ((names[0].clone(), names[1].clone()), measured)
            }
        };
        // From where to where.
        let ends_named = if size.forward { (names.1.clone(), names.0.clone()) } else { names.clone() };
        let measured = measured.map_err(|e| match e.kind() {
            io::ErrorKind::TimedOut if size.forward => silent(format!(
                "no frame of {} B came in at {} and went out at {} within 3 s: send some, and see that both links are up",
                size.bytes, names.1, names.0
            )),
            io::ErrorKind::TimedOut => silent(format!(
                "no frame of {} B came from {} to {} within 3 s: join the two ports (a cable, or the device between them), \
                 and see that it carries frames of this size",
                size.bytes, names.0, names.1
            )),
            _ => Failure::machine(e),
        })?;
        if measured.times.all.count() == 0 && measured.unstamped > 0 {
            return Err(Failure::machine(format!(
                "{} B: frames came, and none had both time stamps: ethtool -T {} and {} say what the drivers make",
                size.bytes, names.0, names.1
            )));
        }
        let span = match way {
            _ if size.forward => Span::ReceiveToSend,
            RawWay::Sockets(_, Some(Stamps::Kernel)) => Span::DriverToDriver,
            RawWay::Sockets(_, Some(Stamps::Nic)) => Span::WireToWire,
            _ => Span::SendToReceive,
        };
        let modes = (size.options.tx, size.options.rx);
        Ok(Row::of(&method(way, ends), span, ends_named, modes, size.bytes, measured))
    }

    fn over_queues(
        &self,
        out: &mut TesterPort,
        into: &mut TesterPort,
        outer: Option<&mut (TesterPort, TesterPort)>,
        frame: Frame,
        size: RawSize<'_>,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<io::Result<RawMeasured>, Failure> {
        let (clock, pool, mut feeding) = (self.clock, self.frames.handle(), self.frames.handle());
        let feed = frame.clone();
        let run = move || {
            let rest = |tx: &mut &mut TxQueue| tx.tx_done_cleanup();
            let mut way = Queues::<&mut RxQueue, &mut TxQueue, _, _>::new(&mut into.rx, &mut out.tx, pool, rest);
            let mut burst: Burst<Mbuf> = Burst::new();
            match outer {
                None => timed(&mut way, &clock, frame, size, &mut |_| (), go_on),
                Some((source, sink)) => {
                    let mut feed_one = |_| {
                        sink.rx.rx(&mut burst);
                        Buffer::discard(&mut burst);
                        if feeding.alloc(&mut burst, 1, feed.bytes().len()) == 1 {
                            burst.iter_mut().for_each(|buffer| buffer.data_mut().copy_from_slice(feed.bytes()));
                            source.tx.tx(&mut burst);
                            Buffer::discard(&mut burst);
                            source.tx.tx_done_cleanup();
                        }
                    };
                    timed(&mut way, &clock, frame, size, &mut feed_one, go_on)
                }
            }
        };
        Ok(self.eal.scope(|s| s.launch(TESTER_LCORE, run)?.join())?)
    }

    fn open(&self, way: &RawWay, forward: bool, stop: &Stop) -> Result<Ends, Failure> {
        let queues = |mut ports: Vec<TesterPort>, pairs: Vec<Pair>| {
            drain(&mut ports);
            let mut ports = ports.into_iter();
            let mut two = || Some((ports.next()?, ports.next()?));
            let ends = match (two(), two()) {
                // The device under test stands between both pairs.
                (Some((source, into)), Some((out, sink))) => Ok((out, into, Some((source, sink)))),
                (Some((out, into)), None) => Ok((out, into, None)),
                _ => Err(Failure::failed("a way has two ends")),
            };
            let (out, into, outer) = ends?;
            Ok(Ends::Queues(Box::new(QueueEnds { out, into, outer, _pairs: pairs })))
        };
        match way {
            RawWay::Cable => {
                let mut ports = Vec::new();
                for n in 0..if forward { 2 } else { 1u8 } {
                    let config = PortConfig::new(&self.frames);
                    let (a, b) = Wire::pair(self.eal, &format!("cable{n}"), self.descriptors, &config)?;
                    ports.push(TesterPort::new(format!("cable{n}:a"), a, 2 * n)?);
                    ports.push(TesterPort::new(format!("cable{n}:b"), b, 2 * n + 1)?);
                }
                queues(ports, Vec::new())
            }
            RawWay::Pair(like) => {
                let (mut ports, mut pairs) = (Vec::new(), Vec::new());
                for _ in 0..if forward { 2 } else { 1 } {
                    let mut pair = Pair::new(Some((**like).clone()), LONGEST.min(1514), self.descriptors);
                    if let (_, Some(why)) = pair.open(self.eal) {
                        return Err(Failure::machine(why));
                    }
                    ports.append(&mut pair.ports);
                    pairs.push(pair);
                }
                queues(ports, pairs)
            }
            RawWay::Ports(specs) => {
                let mut ports = self.open_ports(specs, stop)?;
                if forward {
                    // Out of the second.
                    ports.reverse();
                }
                queues(ports, Vec::new())
            }
            RawWay::Sockets([into, out], _) if forward => sockets([out, into], None, None),
            RawWay::Sockets([out, into], stamps) => sockets([out, into], *stamps, None),
            RawWay::SocketPair => {
                let veth = Veth::new()?;
                sockets([NAMES[0], NAMES[1]], None, Some(veth))
            }
        }
    }

    /// Opens both ports, one that listens first, and waits for their links.
    fn open_ports(&self, specs: &[PortSpec; 2], stop: &Stop) -> Result<Vec<TesterPort>, Failure> {
        let mut ports: [Option<TesterPort>; 2] = [None, None];
        let mut order = [0, 1];
        order.sort_by_key(|&n| !listens(&specs[n]));
        for n in order {
            let room = data_room(LONGEST);
            let pool = Mempool::new(self.eal, "receive", pool_size(self.descriptors, 2, 0), room, 512)?;
            let mut config = PortConfig::new(&pool);
            config.rx_desc = self.descriptors as u16;
            config.tx_desc = self.descriptors as u16;
            config.peer_timeout = self.link_wait;
            config.cancel = Some(stop.shared());
            ports[n] = Some(TesterPort::new(specs[n].to_string(), Port::open(self.eal, &specs[n], &config)?, n as u8)?);
        }
        let ports: Vec<TesterPort> = ports.into_iter().flatten().collect();
        wait_for_links(&ports, self.link_wait, stop)?;
        Ok(ports)
    }
}

/// Locks what memory this process has, so that no page of it has to be fetched again; false without the right to it.
pub fn lock_memory() -> bool {
    mlockall(MlockAllFlags::MCL_CURRENT).is_ok()
}

/// Both ends have zero-copy AF_XDP.
fn require_zero_copy(ends: &Ends) -> Result<(), Failure> {
    let ports = match ends {
        Ends::Queues(ends) => vec![&ends.out, &ends.into],
        Ends::Sockets { .. } => {
            return Err(Failure::usage("--zero-copy: of AF_XDP ports: --port eth:IFACE,driver=af_xdp"))
        }
    };
    for end in ports {
        match end.port.zero_copy() {
            Some(true) => {}
            Some(false) => {
                return Err(Failure::machine(format!(
                    "port {}: its driver has no zero-copy AF_XDP: leave --zero-copy out to measure with copies",
                    end.name
                )))
            }
            None => {
                return Err(Failure::usage(format!(
                    "--zero-copy: port {} is not of AF_XDP: --port eth:IFACE,driver=af_xdp",
                    end.name
                )))
            }
        }
    }
    Ok(())
}

/// Whether the other side connects to this one.
fn listens(spec: &PortSpec) -> bool {
    match spec {
        PortSpec::Memif { role, .. } | PortSpec::Vhost { role, .. } | PortSpec::Virtio { role, .. } => {
            *role == Role::Server
        }
        _ => false,
    }
}

fn sockets(names: [&str; 2], stamps: Option<Stamps>, veth: Option<Veth>) -> Result<Ends, Failure> {
    let open = || -> Result<_, Failure> {
        let failed = |e: io::Error| {
            let what = format!("sockets on {} and {}", names[0], names[1]);
            match e.kind() {
                io::ErrorKind::PermissionDenied => {
                    Failure::machine(format!("{what}: {e}: run as root, or give linerate CAP_NET_RAW"))
                }
                io::ErrorKind::NotFound => Failure::usage(format!("{what}: {e}: ip link lists what there is")),
                _ => Failure::machine(format!("{what}: {e}")),
            }
        };
        let mut way = PacketSockets::open(names[0], names[1]).map_err(failed)?;
        let mut stamping = Vec::new();
        if stamps == Some(Stamps::Nic) {
            for name in names {
                stamping.push(HwStamps::on(name).map_err(|e| no_hw_stamps(name, &e))?);
            }
        }
        if let Some(stamps) = stamps {
            way = way.with_stamps(stamps).map_err(failed)?;
        }
        Ok((way, stamping, [mac_of(names[0]).map_err(failed)?, mac_of(names[1]).map_err(failed)?]))
    };
    let (way, stamping, macs) = match &veth {
        Some(veth) => veth.inside(open)?,
        None => open()?,
    };
    Ok(Ends::Sockets {
        way,
        names: names.map(|name| format!("{SOCKET}{name}")),
        macs,
        _stamping: stamping,
        _veth: veth,
    })
}

fn no_hw_stamps(name: &str, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::PermissionDenied => Failure::machine(format!(
            "hardware time stamps of {name}: {error}: run as root, or give linerate CAP_NET_ADMIN"
        )),
        _ => Failure::machine(format!(
            "hardware time stamps of {name}: {error}: its driver or NIC makes none for all frames (ethtool -T {name}); those of the \
             kernel are --stamps software"
        )),
    }
}

/// Measures one size on this thread.
fn timed(
    way: &mut impl Way,
    clock: &OrderedTsc,
    mut frame: Frame,
    size: RawSize<'_>,
    feed: &mut dyn FnMut(u64),
    go_on: &dyn Fn() -> bool,
) -> io::Result<RawMeasured> {
    match size.forward {
        true => receive_to_send(way, clock, &frame, size.options, feed, go_on),
        false => send_to_receive(way, clock, &mut frame, size.options, go_on),
    }
}

/// How frames went, in words of the field.
fn method(way: &RawWay, ends: &Ends) -> String {
    let like = match way {
        RawWay::Cable => return "software cable".to_owned(),
        RawWay::Sockets(..) | RawWay::SocketPair => return "AF_PACKET sockets".to_owned(),
        RawWay::Ports(specs) => &specs[0],
        RawWay::Pair(like) => &**like,
    };
    let Ends::Queues(ends) = ends else { return String::new() };
    let (out, into) = (&ends.out, &ends.into);
    let name = |port: &Port| match port.driver() {
        "net_af_packet" => "AF_PACKET mmap".to_owned(),
        "net_af_xdp" if port.zero_copy() == Some(true) => "AF_XDP zero-copy".to_owned(),
        "net_af_xdp" => "AF_XDP copy".to_owned(),
        "net_memif" => "memif".to_owned(),
        "net_vhost" | "net_virtio_user" => "vhost-user".to_owned(),
        driver => format!("{like} ({driver})"),
    };
    let (first, second) = (name(&out.port), name(&into.port));
    if first == second {
        first
    } else {
        format!("{first} to {second}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(ports: &[&str]) -> Result<RawWay, Failure> {
        RawWay::parse(&ports.iter().map(|port| (*port).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_way_has_two_ends_of_one_kind() {
        assert_eq!(parse(&[]).unwrap(), RawWay::Cable);
        assert_eq!(parse(&["socket:a", "socket:b"]).unwrap(), RawWay::Sockets(["a".into(), "b".into()], None));
        let ports = parse(&["eth:a", "memif:/run/b.sock,role=server"]).unwrap();
        assert_eq!(ports.specs().len(), 2);
        assert!(parse(&["socket:a", "socket:b"]).unwrap().with_stamps(Stamps::Nic).is_ok());
        assert_eq!(RawWay::Cable.with_stamps(Stamps::Kernel).unwrap_err().exit, failure::Exit::Usage);
        assert!(!listens(&ports.specs()[0]) && listens(&ports.specs()[1]));
        for wrong in [
            &["eth:a"][..],
            &["eth:a", "eth:a"],
            &["eth:a", "socket:b"],
            &["socket:", "socket:b"],
            &["null", "eth:a"],
            &["wire", "eth:a"],
            &["nonsense", "eth:a"],
            &["eth:a", "eth:b", "eth:c"],
        ] {
            assert_eq!(parse(wrong).unwrap_err().exit, failure::Exit::Usage, "{wrong:?}");
        }
    }
}
