//! `linerate latency`: round trips from application to application.

use std::{
    io,
    net::SocketAddr,
    time::{Duration, SystemTime},
};

use campaign::applications::{self, RawAsk};
use failure::{Exit, Failure, Stop};
use latency::{
    asked::OpenRate,
    open_loop::{self, OpenLoopOptions},
    pingpong::{self, Ended, PingPongOptions},
    plans::LatencyPlan,
    raw::{frame::SHORTEST, result::RawResult, run::RawOptions},
    result::LatencyResult,
    server::Server,
    socket::{explain, Client, Transport},
};

use report::svg;

use super::{
    output::{self, Documents},
    times::time,
};
use crate::{
    cli::latency::{
        CompareArgs, LatencyArgs, LatencyCommand, LatencyLayout, LatencyOutput, ModeArg, RawArgs, RawLayout, SocketArgs,
    },
    out,
};

/// How long the closed loop before an open one is measured.
const CLOSED: Duration = Duration::from_secs(1);

/// The longest measurement.
const DAY: Duration = Duration::from_secs(86_400);
/// Times that are printed one by one.
const KEPT: usize = 1_000_000;

/// Runs the command.
pub fn run(args: &LatencyArgs) -> Result<Exit, Failure> {
    let (transport, args) = match &args.command {
        LatencyCommand::Udp(args) => (Transport::Udp, args),
        LatencyCommand::Tcp(args) => (Transport::Tcp, args),
        LatencyCommand::Raw(args) => return raw(args),
        LatencyCommand::Compare(args) => return compare(args),
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
    match &args.output.json {
        Some(file) => output::file(file, &(serde_json::to_string_pretty(&counts).map_err(Failure::failed)? + "\n"))?,
        None => out::print(&counts.to_string()),
    }
    Ok(Exit::Passed)
}

fn measure(transport: Transport, address: SocketAddr, args: &SocketArgs) -> Result<Exit, Failure> {
    let options = options(args)?;
    output::check(&args.output.files())?;
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

/// Raw frames.
fn raw(args: &RawArgs) -> Result<Exit, Failure> {
    let plan = args.plan;
    let planned = plan.map_or_else(RawOptions::default, LatencyPlan::raw_options);
    let ask = RawAsk {
        machine: args.machine.options(),
        ports: args.ports.clone(),
        forward: args.mode == ModeArg::Forward,
        sizes: match (plan, &args.sizes) {
            (Some(plan), _) => vec![plan.bytes],
            (None, Some(sizes)) => sizes.0.clone(),
            (None, None) => vec![SHORTEST],
        },
        options: RawOptions {
            tx: args.tx.map_or(planned.tx, Into::into),
            rx: args.rx.map_or(planned.rx, Into::into),
            warm_ups: args.warmups,
            samples: args.count,
            time: measured_time("--duration", &args.duration, DAY)?,
            precision: args.until,
            keep: if args.cycles { KEPT } else { 0 },
        },
        link_wait: time("--link-wait", &args.link_wait)?,
    };
    let files = args.output.files();
    output::check(&files)?;
    let stop = Stop::on_signals()?;
    let (result, failed) = applications::raw(&ask, &stop)?;
    let text = match (args.cycles, args.layout) {
        (true, _) => Some(report::latency::clocks(&result.rows)),
        (false, Some(RawLayout::Exanic)) => Some(report::latency::exanic(&result)),
        (false, None) => None,
    };
    write_raw(&result, plan, text, &args.output)?;
    match failed {
        Some(failure) => Err(failure),
        None => Ok(exit_of(result.ended())),
    }
}

/// Every method beside each other.
fn compare(args: &CompareArgs) -> Result<Exit, Failure> {
    let time = measured_time("--duration", &args.duration, Duration::from_secs(3600))?;
    output::check(&args.output.files())?;
    let stop = Stop::on_signals()?;
    let progress = |name: &str| out::note(&format!("linerate: {name}"));
    let result = applications::compare(&args.machine.options(), time, &stop, &progress)?;
    write_raw(&result, None, None, &args.output)?;
    Ok(if stop.requested() { Exit::Stopped } else { Exit::Passed })
}

/// Writes and prints a result of raw frames; `text` instead of the table.
fn write_raw(
    result: &RawResult,
    plan: Option<&LatencyPlan>,
    text: Option<String>,
    args: &LatencyOutput,
) -> Result<(), Failure> {
    let published = plan.map(applications::published);
    let document = report::latency::raw(result, published.as_ref());
    let rows: Vec<_> = result.rows.iter().map(|row| (report::latency::name_in(row, result), &row.steps[..])).collect();
    let below = format!("{}, CPU {}", result.cpu_model, result.cpu);
    let picture = || svg::of_applications("Latency by percentile", &below, &rows).map_err(|e| e.to_string());
    write(&|| to_json(result), &document, &picture, text, args)
}

fn to_json(result: &impl serde::Serialize) -> Result<String, String> {
    serde_json::to_string_pretty(result).map(|text| text + "\n").map_err(|e| e.to_string())
}

/// Writes and prints the documents of a result; `text` instead of the table.
fn write(
    json: output::Document<'_>,
    document: &report::Document,
    svg: output::Document<'_>,
    text: Option<String>,
    args: &LatencyOutput,
) -> Result<(), Failure> {
    let documents = Documents {
        json,
        svg,
        markdown: &|| Ok(report::markdown::render(document)),
        csv: &|| Ok(report::csv::figures(document)),
        csv_tests: &|| Ok(String::new()),
        table: &|written| match &text {
            Some(text) => text.clone(),
            None => report::terminal::render(document, output::detail(args.verbose), &output::style(), written),
        },
    };
    output::write(&documents, &args.files())
}

/// Writes and prints a result.
fn shown(result: &LatencyResult, args: &SocketArgs) -> Result<Exit, Failure> {
    let text = args.layout.map(|LatencyLayout::Sockperf| report::latency::sockperf(result));
    let published = args.plan.map(applications::published);
    let document = report::latency::sockets(result, published.as_ref());
    let name = report::latency::socket_method(result.transport, result.wait);
    let below = format!("{} to {}", result.local, result.server);
    let picture = || {
        svg::of_applications("Round trips by percentile", &below, &[(name.clone(), &result.steps)])
            .map_err(|e| e.to_string())
    };
    write(&|| to_json(result), &document, &picture, text, &args.output)?;
    Ok(exit_of(&result.ended))
}

/// What the command ends with.
fn exit_of(ended: &Ended) -> Exit {
    match ended {
        Ended::Done | Ended::Precise => Exit::Passed,
        Ended::Stopped => Exit::Stopped,
        Ended::Gone(_) => Exit::Failed,
    }
}

/// A time of measuring, out of text.
fn measured_time(flag: &str, text: &str, most: Duration) -> Result<Duration, Failure> {
    let duration = time(flag, text)?;
    if !(Duration::from_millis(10)..=most).contains(&duration) {
        return Err(Failure::usage(format!("{flag}: must be 10ms to {}h", most.as_secs() / 3600)));
    }
    Ok(duration)
}

fn options(args: &SocketArgs) -> Result<PingPongOptions, Failure> {
    let (duration, warm_up) = (measured_time("--duration", &args.duration, DAY)?, time("--warm-up", &args.warm_up)?);
    if warm_up > Duration::from_secs(60) {
        return Err(Failure::usage("--warm-up: must be at most 1min"));
    }
    Ok(PingPongOptions {
        size: args.plan.map_or_else(|| args.size.clone(), |plan| plan.bytes..=plan.bytes),
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
