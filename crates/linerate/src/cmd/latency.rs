//! `linerate latency`: round trips from application to application.

use std::{
    io,
    net::SocketAddr,
    time::{Duration, SystemTime},
};

use failure::{Exit, Failure, Stop};
use latency::{
    asked::OpenRate,
    open_loop::{self, OpenLoopOptions},
    pingpong::{self, Ended, PingPongOptions},
    result::LatencyResult,
    server::Server,
    socket::{explain, Client, Transport},
};

use super::{output, times::time};
use crate::{
    cli::latency::{LatencyArgs, LatencyCommand, LatencyLayout, SocketArgs},
    out,
};

/// How long the closed loop before an open one is measured.
const CLOSED: Duration = Duration::from_secs(1);

/// Runs the command.
pub fn run(args: &LatencyArgs) -> Result<Exit, Failure> {
    let (transport, args) = match &args.command {
        LatencyCommand::Udp(args) => (Transport::Udp, args),
        LatencyCommand::Tcp(args) => (Transport::Tcp, args),
    };
    match (args.server, args.address) {
        (Some(address), _) => serve(transport, address, args),
        (None, Some(address)) => measure(transport, address, args),
        (None, None) => Err(Failure::usage("latency: give the server's ADDRESS:PORT, or --server ADDRESS:PORT")),
    }
}

fn serve(transport: Transport, address: SocketAddr, args: &SocketArgs) -> Result<Exit, Failure> {
    let failed = |e: io::Error| Failure::machine(format!("--server {address}: {e}"));
    let server = Server::bind(transport, address, args.wait.into()).map_err(failed)?;
    on_cpu(args.cpu)?;
    let stop = Stop::on_signals()?;
    out::note(&format!("linerate: answers on {}; Ctrl-C ends it", server.address().map_err(failed)?));
    server.run(&|| !stop.requested()).map_err(failed)?;
    let counts = server.counts();
    match &args.json {
        Some(file) => output::file(file, &(serde_json::to_string_pretty(&counts).map_err(Failure::failed)? + "\n"))?,
        None => out::print(&counts.to_string()),
    }
    Ok(Exit::Passed)
}

fn measure(transport: Transport, address: SocketAddr, args: &SocketArgs) -> Result<Exit, Failure> {
    let options = options(args)?;
    if let (Some(_), Some(cpu), None) = (args.open_loop, args.cpu, args.receiver_cpu) {
        return Err(Failure::usage(format!(
            "--cpu {cpu}: an open loop has two threads: say with --receiver-cpu where the other one runs"
        )));
    }
    let wait = args.wait.into();
    let failed = |e: io::Error| Failure::machine(format!("{address}: {}", explain(&e, transport)));
    let stop = Stop::on_signals()?;
    let mut client = Client::open(transport, address, wait).map_err(failed)?;
    on_cpu(args.cpu)?;
    let local = client.local().map_err(failed)?.to_string();
    let memory = || Failure::machine("too little memory for the times");
    let mut result =
        LatencyResult::new((transport, wait), (address.to_string(), local), &options).ok_or_else(memory)?;
    let facts = rig::facts::read();
    (result.hostname, result.cpu_model, result.kernel) = (facts.hostname, facts.cpu_model, facts.kernel);
    result.started_at = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    result.cpu = args.cpu;
    let go_on = || !stop.requested();
    match args.open_loop {
        None => result.take(&pingpong::run(&mut client, &options, &go_on).map_err(failed)?),
        Some(rate) => {
            let short = PingPongOptions { time: CLOSED, ..options.clone() };
            let closed = pingpong::run(&mut client, &short, &go_on).map_err(failed)?;
            if closed.ended != Ended::Done {
                result.take(&closed);
                return shown(&result, args);
            }
            let options = OpenLoopOptions {
                rate: match rate {
                    OpenRate::PerSecond(rate) => rate,
                    OpenRate::Share(share) => (closed.rate() * share).max(1.0),
                },
                reply_every: args.reply_every,
                size: options.size,
                warm_up: options.warm_up,
                time: options.time,
                receiver_cpu: args.receiver_cpu,
            };
            // Replies that are late for the closed loop are not the open one's.
            let mut client = Client::open(transport, address, wait).map_err(failed)?;
            result.take_open(&open_loop::run(&mut client, &options, &go_on).map_err(failed)?, &closed, &options);
        }
    }
    shown(&result, args)
}

/// Writes and prints a result.
fn shown(result: &LatencyResult, args: &SocketArgs) -> Result<Exit, Failure> {
    if let Some(file) = &args.json {
        output::file(file, &(serde_json::to_string_pretty(result).map_err(Failure::failed)? + "\n"))?;
    }
    if args.json.as_deref().is_none_or(|file| file.as_os_str() != "-") {
        out::print(&match args.layout {
            Some(LatencyLayout::Sockperf) => report::latency::sockperf(result),
            None => report::latency::render(result, &output::style()),
        });
    }
    Ok(match result.ended {
        Ended::Done | Ended::Precise => Exit::Passed,
        Ended::Stopped => Exit::Stopped,
        Ended::Gone(_) => Exit::Failed,
    })
}

fn options(args: &SocketArgs) -> Result<PingPongOptions, Failure> {
    let (duration, warm_up) = (time("--duration", &args.duration)?, time("--warm-up", &args.warm_up)?);
    if !(Duration::from_millis(10)..=Duration::from_secs(86_400)).contains(&duration) {
        return Err(Failure::usage("--duration: must be 10ms to 24h"));
    }
    if warm_up > Duration::from_secs(60) {
        return Err(Failure::usage("--warm-up: must be at most 1min"));
    }
    Ok(PingPongOptions {
        size: args.size.clone(),
        burst: args.burst,
        warm_up,
        time: duration,
        samples: args.samples,
        precision: args.until,
        verify: args.verify,
    })
}

/// Pins this thread to the CPU that was asked for.
fn on_cpu(cpu: Option<u32>) -> Result<(), Failure> {
    let Some(cpu) = cpu else { return Ok(()) };
    host::pin(cpu).map_err(|e| Failure::usage(format!("--cpu {cpu}: {e}")))
}
