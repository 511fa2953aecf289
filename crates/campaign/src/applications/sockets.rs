//! Messages over sockets: the client that measures, and the server that answers.

use std::{
    io,
    net::SocketAddr,
    os::fd::BorrowedFd,
    time::{Duration, SystemTime},
};

use failure::{Failure, Stop};
use host::cpu_set::{self, CpuSet};
use latency::{
    asked::OpenRate,
    background::{self, Load},
    clients,
    open_loop::{self, OpenLoopOptions},
    pingpong::{self, Ended, PingPongOptions},
    result::LatencyResult,
    server::{ServedCounts, Server},
    socket::{explain, Client, Transport, Wait},
    stamps,
    throughput::{self, ThroughputOptions},
};
use rig::{host_plan::open_for, lock_memory};

/// How long the closed loop before an open one is measured.
const CLOSED: Duration = Duration::from_secs(1);
/// How long round trips are split by time stamps.
const STAMPED: Duration = Duration::from_secs(1);

/// An open loop, as a user asks for it.
#[derive(Debug, Clone, Copy)]
pub struct OpenAsk {
    /// Messages a second, or a share of what a closed loop does.
    pub rate: OpenRate,
    /// Each Nth message asks for a reply.
    pub reply_every: u32,
    /// The CPU of the receiving thread.
    pub receiver_cpu: Option<u32>,
}

/// Round trips, as a user asks for them.
#[derive(Debug, Clone)]
pub struct SocketAsk {
    /// UDP or TCP.
    pub transport: Transport,
    /// The server.
    pub server: SocketAddr,
    /// How replies are waited for.
    pub wait: Wait,
    /// How long a call polls the device, us, where it does.
    pub busy_poll_us: u32,
    /// What is measured.
    pub options: PingPongOptions,
    /// At a rate instead of in a closed loop.
    pub open_loop: Option<OpenAsk>,
    /// As fast as it can instead: of `options` size and times count.
    pub throughput: bool,
    /// Clients at once.
    pub clients: u32,
    /// Load beside.
    pub background: Option<Load>,
    /// Whether round trips are split by the kernel's time stamps, behind the measurement.
    pub time_stamps: bool,
    /// The CPU of the thread that measures.
    pub cpu: Option<u32>,
}

/// Measures round trips.
///
/// # Errors
///
/// (usage) for a CPU that cannot be used; (machine) where nobody answers or a right is missing.
pub fn measure(ask: &SocketAsk, stop: &Stop) -> Result<LatencyResult, Failure> {
    let failed = |e: io::Error| Failure::machine(format!("{}: {}", ask.server, explain(&e, ask.transport)));
    let open = || -> Result<Client, Failure> {
        let client = Client::open(ask.transport, ask.server, ask.wait).map_err(failed)?;
        poll_device(client.as_fd(), ask.wait, ask.busy_poll_us)?;
        Ok(client)
    };
    let allowed = host::may_run_on().unwrap_or_default();
    if let Some(cpu) = ask.open_loop.and_then(|open| open.receiver_cpu) {
        // Its thread begins with the measurement: what is wrong is said before.
        may_run(cpu, "--receiver-cpu", &allowed)?;
    }
    let mut clients = (0..ask.clients.max(1)).map(|_| open()).collect::<Result<Vec<_>, _>>()?;
    on_cpu(ask.cpu)?;
    let local = clients[0].local().map_err(failed)?.to_string();
    let memory = || Failure::machine("too little memory for the times");
    let ends = (ask.server.to_string(), local);
    let mut result = LatencyResult::new((ask.transport, ask.wait), ends, &ask.options).ok_or_else(memory)?;
    let facts = rig::facts::read();
    (result.hostname, result.cpu_model, result.kernel) = (facts.hostname, facts.cpu_model, facts.kernel);
    let polls = [ask.cpu, ask.open_loop.and_then(|open| open.receiver_cpu)].into_iter().flatten().collect();
    result.findings = Some(open_for(polls, &[]));
    result.started_at = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    (result.cpu, result.clients, result.memory_locked) = (ask.cpu, ask.clients.max(1), lock_memory());
    let go_on = || !stop.requested();
    let measure = || -> Result<LatencyResult, Failure> {
        match ask.open_loop {
            None if ask.throughput => {
                let PingPongOptions { size, warm_up, time, .. } = ask.options.clone();
                let options = ThroughputOptions { size, warm_up, time };
                result.take_throughput(throughput::run(&mut clients, &options, &go_on).map_err(failed)?);
            }
            None => result.take(clients::run(&mut clients, &ask.options, &go_on).map_err(failed)?),
            Some(open_ask) => {
                let short = PingPongOptions { time: CLOSED, keep: 0, verify: false, ..ask.options.clone() };
                let closed = pingpong::run(&mut clients[0], &short, &go_on).map_err(failed)?;
                if closed.ended == Ended::Done {
                    // Replies that are late for the closed loop are not the open one's.
                    clients[0] = open()?;
                    let options = open_options(ask, open_ask, closed.rate());
                    let messages = options.rate * options.time.as_secs_f64();
                    if messages < f64::from(options.reply_every) {
                        return Err(Failure::usage(format!(
                            "--reply-every {}: of {messages:.0} messages in all none would ask for a reply: measure for longer, \
                             or ask more often",
                            options.reply_every
                        )));
                    }
                    let mut measured = open_loop::run(&mut clients[0], &options, &go_on).map_err(failed)?;
                    result.log = std::mem::take(&mut measured.log);
                    result.take_open(&measured, &closed, &options);
                    if result.ended == Ended::Done && result.round_trip.samples == 0 {
                        result.ended = Ended::TooFast;
                    }
                } else {
                    result.take(closed);
                    result.before_open_loop = true;
                }
            }
        }
        result.napi = ask.wait.is_busy_poll().then(|| dpdk::has_napi(clients[0].as_fd()));
        if ask.time_stamps && matches!(result.ended, Ended::Done | Ended::Precise) {
            // The server has so many connections to give.
            clients.truncate(1);
            let server = (ask.transport, ask.server);
            match stamps::split(server, ask.wait, *ask.options.size.end(), STAMPED, &go_on) {
                Ok(split) => (result.no_stamps, result.split) = (split.is_none(), split),
                Err(_) if stop.requested() => {}
                Err(e) => result.split_failed = Some(explain(&e, ask.transport)),
            }
            if stop.requested() {
                result.ended = Ended::Stopped;
            }
        }
        Ok(result)
    };
    let Some(load) = &ask.background else { return measure() };
    let busy = [ask.cpu, ask.open_loop.and_then(|open| open.receiver_cpu)];
    let free = allowed.iter().copied().filter(|&cpu| !busy.contains(&Some(cpu))).collect::<CpuSet>();
    // With too few CPUs they are shared.
    let cpus = if free.is_empty() { allowed } else { free };
    let beside = background::beside((ask.transport, ask.server), load, Some(&cpus), measure);
    let (result, background) = beside.map_err(failed)?;
    Ok(LatencyResult { background: Some(background), ..result? })
}

fn open_options(ask: &SocketAsk, open: OpenAsk, closed_rate: f64) -> OpenLoopOptions {
    OpenLoopOptions {
        rate: match open.rate {
            OpenRate::PerSecond(rate) => rate,
            OpenRate::Share(share) => (closed_rate * share).max(1.0),
        },
        reply_every: open.reply_every,
        size: ask.options.size.clone(),
        warm_up: ask.options.warm_up,
        time: ask.options.time,
        receiver_cpu: open.receiver_cpu,
        verify: ask.options.verify,
        keep: ask.options.keep,
    }
}

/// Answers until `stop`. `ready` hears where.
///
/// # Errors
///
/// (machine) for an address that cannot be had; (usage) for a CPU that cannot be used.
pub fn serve(
    (transport, address, wait): (Transport, SocketAddr, Wait),
    busy_poll_us: u32,
    cpu: Option<u32>,
    stop: &Stop,
    ready: &dyn Fn(SocketAddr),
) -> Result<ServedCounts, Failure> {
    let failed = |e: io::Error| Failure::machine(format!("--server {address}: {e}"));
    let server = Server::bind(transport, address, wait).map_err(failed)?;
    poll_device(server.as_fd(), wait, busy_poll_us)?;
    on_cpu(cpu)?;
    ready(server.address().map_err(failed)?);
    // Without the right to it, pages stay as they are.
    lock_memory();
    server.run(&|| !stop.requested()).map_err(failed)?;
    Ok(server.counts())
}

/// Has the kernel poll the device for a socket, if that is asked for.
fn poll_device(socket: BorrowedFd<'_>, wait: Wait, us: u32) -> Result<(), Failure> {
    if !wait.is_busy_poll() {
        return Ok(());
    }
    dpdk::set_busy_poll(socket, us, wait == Wait::PreferBusyPoll).map_err(|e| {
        let what = match e.kind() {
            io::ErrorKind::PermissionDenied => "run as root, or give linerate CAP_NET_ADMIN".to_owned(),
            _ => format!("{e}: this kernel cannot; use --wait spin"),
        };
        Failure::machine(format!("busy polling for {us} us is refused: {what}"))
    })
}

/// Pins this thread to the CPU that was asked for.
fn on_cpu(cpu: Option<u32>) -> Result<(), Failure> {
    let Some(cpu) = cpu else { return Ok(()) };
    may_run(cpu, "--cpu", &host::may_run_on().unwrap_or_default())?;
    host::pin(cpu).map_err(|e| Failure::usage(format!("--cpu {cpu}: {e}")))
}

fn may_run(cpu: u32, flag: &str, allowed: &CpuSet) -> Result<(), Failure> {
    match allowed.contains(&cpu) {
        true => Ok(()),
        false => Err(Failure::usage(format!("{flag} {cpu}: this process may use CPUs {}", cpu_set::to_list(allowed)))),
    }
}
