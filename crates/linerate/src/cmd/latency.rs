//! `linerate latency`: round trips from application to application.

use std::{net::SocketAddr, time::Duration};

use campaign::applications::{self, OpenAsk, RawAsk, SocketAsk};
use failure::{Exit, Failure, Stop};
use latency::{
    background::Load,
    pingpong::{Ended, PingPongOptions},
    plans::LatencyPlan,
    raw::{frame::SHORTEST, result::RawResult, run::RawOptions},
    result::LatencyResult,
    socket::Transport,
};
use report::svg;

use super::{
    output::{self, Documents},
    times::{time, time_or_none},
};
use crate::{
    cli::latency::{
        CompareArgs, LatencyArgs, LatencyCommand, LatencyLayout, ModeArg, PeerArg, RawArgs, RawLayout, SocketArgs,
    },
    cli::OutputArgs,
    out,
};

/// The longest measurement.
const DAY: Duration = Duration::from_secs(86_400);
/// Bytes that the smallest usual buffers of both ends of a connection hold together (tcp(7): `tcp_wmem`, `tcp_rmem`).
const MOST_AT_ONCE: u64 = 128 << 10;
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
    args.check(transport).map_err(Failure::usage)?;
    match (args.server, args.address) {
        (Some(address), _) => serve(transport, address, args),
        (None, Some(address)) => measure(transport, address, args),
        (None, None) => Err(Failure::usage("latency: give the server's ADDRESS:PORT, or --server ADDRESS:PORT")),
    }
}

fn serve(transport: Transport, address: SocketAddr, args: &SocketArgs) -> Result<Exit, Failure> {
    args.output.json.as_deref().map(output::check_file).transpose()?;
    let stop = Stop::on_signals()?;
    let ready = |at: SocketAddr| out::note(&format!("linerate: answers on {at}; Ctrl-C ends it"));
    let server = (transport, address, args.wait.into());
    if args.peer == Some(PeerArg::Sockperf) {
        let options = options(args)?;
        let text = applications::measured_by_sockperf(server, args.cpu, &options, &stop)?;
        out::print(text.trim_end());
        return Ok(Exit::Passed);
    }
    let counts = applications::serve(server, args.busy_poll_us, args.cpu, &stop, &ready)?;
    match &args.output.json {
        Some(file) => output::file(file, &to_json(&counts).map_err(Failure::failed)?)?,
        None => out::print(&counts.to_string()),
    }
    Ok(Exit::Passed)
}

fn measure(transport: Transport, server: SocketAddr, args: &SocketArgs) -> Result<Exit, Failure> {
    let ask = asked(transport, server, args)?;
    output::check(&args.output.files())?;
    output::apart(args.output.named().into_iter().map(|(_, file)| file).chain([&args.full_log]).flatten())?;
    let stop = Stop::on_signals()?;
    let result = match args.peer {
        None => applications::measure(&ask, &stop)?,
        Some(PeerArg::Sockperf) => applications::against_sockperf(&ask, &stop)?,
    };
    let text = args.layout.map(|LatencyLayout::Sockperf| report::latency::sockperf(&result));
    write_sockets(&result, args.plan, None, text, &args.output.files())?;
    // Last: what else was measured is safe by then.
    if let Some(file) = &args.full_log {
        output::file(file, &report::latency::full_log(&result.log))?;
    }
    Ok(exit_of(&result.ended))
}

fn asked(transport: Transport, server: SocketAddr, args: &SocketArgs) -> Result<SocketAsk, Failure> {
    match (args.open_loop, args.cpu, args.receiver_cpu) {
        (Some(_), Some(cpu), None) => {
            return Err(Failure::usage(format!(
                "--cpu {cpu}: an open loop has two threads: say with --receiver-cpu where the other one runs"
            )))
        }
        (None, Some(cpu), _) if args.clients > 1 => {
            return Err(Failure::usage(format!("--cpu {cpu}: clients have a thread each: use taskset for all of them")))
        }
        _ => {}
    }
    let at_once = u64::from(args.burst) * *args.size.end() as u64;
    if transport == Transport::Tcp && args.burst > 1 && at_once > MOST_AT_ONCE {
        return Err(Failure::usage(format!(
            "--burst {} --size {}: {at_once} B at once, and a connection holds {MOST_AT_ONCE} B without a reader for sure",
            args.burst,
            args.size.end()
        )));
    }
    let bytes = args.background_size as usize;
    Ok(SocketAsk {
        transport,
        server,
        wait: args.wait.into(),
        busy_poll_us: args.busy_poll_us,
        options: options(args)?,
        open_loop: args.open_loop.map(|rate| OpenAsk {
            rate,
            reply_every: args.reply_every,
            receiver_cpu: args.receiver_cpu,
        }),
        throughput: args.throughput,
        clients: args.clients,
        background: args.background.map(|rate| Load { rate, bytes }),
        time_stamps: args.time_stamps,
        cpu: args.cpu,
    })
}

/// Raw frames.
fn raw(args: &RawArgs) -> Result<Exit, Failure> {
    let plan = args.plan;
    let planned = plan.map_or_else(RawOptions::default, LatencyPlan::raw_options);
    let ask = RawAsk {
        machine: args.machine.options(),
        ports: args.ports.clone(),
        stamps: args.stamps(),
        zero_copy: args.zero_copy,
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
            background: None,
        },
        background: args.background,
        link_wait: time("--link-wait", &args.link_wait)?,
    };
    if ask.forward && ask.stamps.is_some() {
        return Err(Failure::usage("--stamps: not with --mode forward: what is timed there is the program itself"));
    }
    if ask.stamps.is_some() && args.cycles {
        return Err(Failure::usage("--stamps: not with -a: time stamps are nanoseconds, not clocks"));
    }
    if ask.forward && ask.background.is_some() {
        return Err(Failure::usage(
            "--background: not with --mode forward: what comes in beside is the source's to send",
        ));
    }
    let files = args.output.files();
    output::check(&files)?;
    let stop = Stop::on_signals()?;
    let (result, failed) = applications::raw(&ask, &stop)?;
    let text = match (args.cycles, args.layout) {
        (true, _) => Some(report::latency::clocks(&result.rows)),
        (false, Some(RawLayout::Exanic)) => Some(report::latency::exanic(&result)),
        (false, None) => None,
    };
    write_raw(&result, plan, None, text, &files)?;
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
    write_raw(&result, None, None, None, &args.output.files())?;
    Ok(if stop.requested() { Exit::Stopped } else { Exit::Passed })
}

/// Writes and prints a result of raw frames, or what stands `instead` of its tables; `text` instead of either.
pub fn write_raw(
    result: &RawResult,
    plan: Option<&LatencyPlan>,
    instead: Option<report::Document>,
    text: Option<String>,
    args: &OutputArgs,
) -> Result<(), Failure> {
    let published = plan.map(applications::published);
    let document = instead.unwrap_or_else(|| report::latency::raw(result, published.as_ref()));
    let rows: Vec<_> = result.rows.iter().map(|row| (report::latency::name_in(row, result), &row.steps[..])).collect();
    let below = format!("{}, CPU {}", result.cpu_model, result.cpu);
    let picture = || svg::of_applications("Latency by percentile", &below, &rows).map_err(|e| e.to_string());
    write(&|| to_json(result), &document, &picture, text, args)
}

/// The same of round trips.
pub fn write_sockets(
    result: &LatencyResult,
    plan: Option<&LatencyPlan>,
    instead: Option<report::Document>,
    text: Option<String>,
    args: &OutputArgs,
) -> Result<(), Failure> {
    let published = plan.map(applications::published);
    let document = instead.unwrap_or_else(|| report::latency::sockets(result, published.as_ref()));
    let name = report::latency::socket_method(result.transport, result.wait);
    let below = format!("{} to {}", result.local, result.server);
    let picture = || {
        svg::of_applications("Round trips by percentile", &below, &[(name.clone(), &result.steps)])
            .map_err(|e| e.to_string())
    };
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
    args: &OutputArgs,
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
    output::write(&documents, args)
}

/// What the command ends with.
fn exit_of(ended: &Ended) -> Exit {
    match ended {
        Ended::Done | Ended::Precise => Exit::Passed,
        Ended::Stopped => Exit::Stopped,
        Ended::TooFast | Ended::LeftOut(_) | Ended::Gone(_) => Exit::Failed,
    }
}

/// A time of measuring, out of text.
fn measured_time(flag: &str, text: &str, most: Duration) -> Result<Duration, Failure> {
    let duration = time_or_none(flag, text)?;
    if !(Duration::from_millis(10)..=most).contains(&duration) {
        return Err(Failure::usage(format!("{flag}: must be 10ms to {}h", most.as_secs() / 3600)));
    }
    Ok(duration)
}

fn options(args: &SocketArgs) -> Result<PingPongOptions, Failure> {
    let (duration, warm_up) =
        (measured_time("--duration", &args.duration, DAY)?, time_or_none("--warm-up", &args.warm_up)?);
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
        keep: if args.full_log.is_some() { KEPT } else { 0 },
    })
}
