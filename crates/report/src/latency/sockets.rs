//! Round trips of applications.

use latency::{
    pingpong::Ended,
    result::{LatencyResult, Times},
    socket::{Transport, Wait},
    stamps::Split,
    throughput::Throughput,
};

use super::{parts, raw::Published};
use crate::{
    document::{Audience, Block, Document, Note, Section, Topic},
    num,
    style::Paint,
    table::{Cell, Table},
};

/// Messages from which on a share of them is one of all.
const FAIR: u64 = 100;
/// Percentiles of a part.
const OF_PARTS: [f64; 4] = [0.0, 50.0, 90.0, 99.0];

/// A measurement as a document; the published figures, of whole round trips, stand beside.
pub fn document(result: &LatencyResult, published: Option<&Published>) -> Document {
    let open = result.open_loop.as_ref().map_or_else(String::new, |open| {
        format!(", open loop of {} messages a second", num::thousands(open.asked_rate.round() as u64))
    });
    let before = if result.before_open_loop { ", a closed loop before the open one, which did not begin" } else { "" };
    let fast = result.throughput.as_ref().map_or_else(
        || format!(": {} in", num::thousands(result.round_trip.samples)),
        |sent| {
            let rate = num::thousands(sent.messages_per_s.round() as u64);
            format!(
                ", as fast as it can: {rate} messages a second, {} Mbit/s of messages, for",
                num::mbps(sent.bits_per_s)
            )
        },
    );
    let clients = if result.clients > 1 { format!(", {} clients", result.clients) } else { String::new() };
    let burst = if result.burst > 1 { format!(", bursts of {}", result.burst) } else { String::new() };
    let title = format!(
        "{} to {}, {}, {} B{burst}{clients}{open}{before}{fast} {:.2} s",
        transport(result.transport),
        result.server,
        wait(result.wait),
        bytes(result),
        result.seconds
    );
    let section = Section::new(Topic::Sheet, title)
        .with(Audience::READERS, Block::Table(table(result, published)))
        .with(Audience::DETAILS, Block::Table(parts::picture(&result.steps)))
        .with(Audience::READERS, Block::Table(split(result.split.as_ref())))
        .with(Audience::READERS, Block::Notes(notes(result, published)));
    Document::of(vec![section, data(result)])
}

/// How messages go and are waited for: `UDP, blocking`.
pub fn method(transport: Transport, way: Wait) -> String {
    format!("{}, {}", self::transport(transport), wait(way))
}

/// How a thread waits, in a word.
pub(super) fn wait(wait: Wait) -> &'static str {
    match wait {
        Wait::Block => "blocking",
        Wait::Spin => "spinning",
        Wait::Epoll => "epoll",
        Wait::BusyPoll => "busy polling",
        Wait::PreferBusyPoll => "busy polling without interrupts",
    }
}

fn notes(result: &LatencyResult, published: Option<&Published>) -> Vec<Note> {
    let mut notes: Vec<String> = result.throughput.iter().flat_map(|sent| fast(sent, result)).collect();
    let some_ask = result.throughput.is_some() || result.open_loop.as_ref().is_some_and(|open| open.reply_every > 1);
    let what = if some_ask { "messages that asked for a reply" } else { "messages" };
    notes.push(parts::counts(what, &result.counts, "replied", 0));
    if let Some(open) = &result.open_loop {
        notes.push(format!(
            "sent: {} messages a second, one of {} asks; the sender was late by {} us at most; {} refused by the socket",
            num::thousands(open.rate.round() as u64),
            open.reply_every,
            num::us(open.late_ns as f64),
            num::thousands(open.refused),
        ));
        notes.push(format!(
            "round trips count from the moment at which a message was due; a closed loop made {} a second",
            num::thousands(open.closed_rate.round() as u64)
        ));
    }
    if let Some(background) = &result.background {
        notes.push(format!(
            "beside it: {} messages a second of {} B to the same server, {} wanted, {} refused",
            num::thousands(background.rate.round() as u64),
            background.bytes,
            num::thousands(background.asked_rate.round() as u64),
            num::thousands(background.refused)
        ));
    }
    if let Some(split) = &result.split {
        let alone = match (&result.open_loop, result.burst) {
            (Some(_), _) => ", one after the other and not at a rate",
            (None, 2..) => ", one after the other and not in bursts",
            (None, _) => "",
        };
        notes.push(format!(
            "the parts are of {} further round trips{alone}, with time stamps of the kernel, which cost time themselves; {} had \
             not all",
            num::thousands(split.away.samples),
            num::thousands(split.without)
        ));
    }
    if result.no_stamps {
        notes.push("the kernel or the driver made no time stamps: ethtool -T names those that it can make".to_owned());
    }
    if let Some(why) = &result.split_failed {
        notes.push(format!("no parts: {why}"));
    }
    if result.napi == Some(false) {
        notes.push(
            "no device could be polled behind this socket (lo, and veth without XDP, have none): as blocking"
                .to_owned(),
        );
    }
    if let Some(open) = result.open_loop.as_ref().filter(|open| !open.is_kept()) {
        let unsent = match open.unsent {
            0 => String::new(),
            unsent => format!(": {} messages were due and not sent when the time was over", num::thousands(unsent)),
        };
        notes.push(format!(
            "the rate was not kept{unsent}. Each time follows from the one before, and grows for as long as that lasts: so these \
             times have no interval"
        ));
    }
    match (&result.throughput, &result.undisturbed) {
        (Some(_), _) => notes.push("undisturbed: not told apart where messages go as fast as they can".to_owned()),
        (None, undisturbed) => {
            notes.extend(parts::undisturbed(&result.round_trip, undisturbed.as_ref(), result.stretches));
        }
    }
    notes.extend(parts::interference(&result.interference));
    notes.push(format!("a reading of the clock takes {:.0} ns: one is in each round trip", result.clock_ns));
    notes.extend(parts::findings(result.findings.as_ref()));
    if result.round_trip.percentiles.iter().any(|percentile| percentile.ns.is_none()) {
        notes.push("-: fewer than 100 samples are beyond it; measure for longer (--duration)".to_owned());
    }
    notes.extend(published.map(|published| format!("published: {}", published.source)));
    let mut notes: Vec<Note> = notes.into_iter().map(Note::plain).collect();
    match &result.ended {
        Ended::Done => {
            let missed = result.precision.as_ref().and_then(parts::missed);
            notes.extend(missed.map(|text| Note::new(text, Paint::Warn)));
        }
        Ended::Precise => notes.push(Note::plain("as precise as asked")),
        Ended::Stopped if result.seconds <= 0.0 => {
            notes.push(Note::new("stopped before the warm-up was over: nothing was measured", Paint::Warn))
        }
        Ended::Stopped => notes.push(Note::new("stopped", Paint::Warn)),
        Ended::TooFast => {
            notes.push(Note::new("no reply came in time: ask for a lower rate (--open-loop)", Paint::Bad))
        }
        Ended::LeftOut(why) => notes.push(Note::new(why.clone(), Paint::Bad)),
        Ended::Gone(why) => notes.push(Note::new(format!("the server is gone: {why}"), Paint::Bad)),
    }
    notes
}

/// What went out as fast as it could.
fn fast(sent: &Throughput, result: &LatencyResult) -> [String; 2] {
    let went = format!(
        "sent: {} messages; {} refused by the socket",
        num::thousands(sent.messages),
        num::thousands(sent.refused)
    );
    let seen = match result.transport {
        Transport::Tcp if sent.unread > 0 => format!(
            "until the last reply; whether the server has read {} further messages is not known",
            num::thousands(sent.unread)
        ),
        Transport::Tcp => {
            "until the server had read them all; round trips are of the few that asked for a reply".to_owned()
        }
        Transport::Udp if sent.sampled < FAIR => {
            "too few messages went out to say which share of them arrived".to_owned()
        }
        Transport::Udp => format!(
            "of each thousandth message, {} in all, {:.1} % were answered: about this share of all arrived",
            num::thousands(sent.sampled),
            sent.sampled_answered as f64 * 100.0 / sent.sampled as f64
        ),
    };
    [went, seen]
}

/// The parts of a round trip.
fn split(split: Option<&Split>) -> Table {
    let mut table = Table::default();
    table.left(0, "part of a round trip", "");
    for percent in OF_PARTS {
        table.right(1, &parts::percentile(percent), "us");
    }
    let Some(split) = split else { return table };
    for (name, times) in [
        ("all of it", split.round_trip.as_ref()),
        ("application to queue", Some(&split.to_queue)),
        ("queue to driver", Some(&split.to_driver)),
        ("driver to driver: the other end", Some(&split.away)),
        ("driver to application", Some(&split.to_application)),
    ] {
        let Some(times) = times else { continue };
        let of = |percent: f64| times.percentiles.iter().find(|p| p.percent == percent).and_then(|p| p.ns);
        let mut cells: Vec<Cell> = vec![name.into()];
        cells.extend(OF_PARTS.iter().map(|&percent| Cell::from(parts::us(of(percent)))));
        table.row(cells);
    }
    table
}

/// Exact figures.
fn data(result: &LatencyResult) -> Section {
    let mut table = Table::default();
    table.data_columns("transport,wait,bytes,percentile,round_trip_ns,low_ns,high_ns,undisturbed_ns,samples,lost,from_sending_ns,closed_loop_ns");
    for (n, percentile) in result.round_trip.percentiles.iter().enumerate() {
        let number = |ns: Option<u64>| ns.map_or_else(String::new, |ns| ns.to_string());
        let of = |times: Option<&Times>| number(times.and_then(|times| times.percentiles.get(n)?.ns));
        let open = result.open_loop.as_ref();
        table.data_row(vec![
            transport(result.transport).to_lowercase(),
            wait(result.wait).to_owned(),
            bytes(result),
            percentile.percent.to_string(),
            number(percentile.ns),
            number(percentile.interval_ns.map(|i| i.0)),
            number(percentile.interval_ns.map(|i| i.1)),
            of(result.undisturbed.as_ref()),
            result.round_trip.samples.to_string(),
            result.counts.lost.to_string(),
            of(open.map(|open| &open.from_sending)),
            of(open.map(|open| &open.closed_loop)),
        ]);
    }
    Section::new(Topic::Data, "").with(Audience::CSV, Block::Data(table))
}

fn transport(transport: Transport) -> &'static str {
    match transport {
        Transport::Udp => "UDP",
        Transport::Tcp => "TCP",
    }
}

fn bytes(result: &LatencyResult) -> String {
    match result.bytes {
        (least, most) if least == most => least.to_string(),
        (least, most) => format!("{least} to {most}"),
    }
}

fn table(result: &LatencyResult, published: Option<&Published>) -> Table {
    let mut table = Table::default();
    table.left(0, "percentile", "");
    table.right(1, "round trip", "us");
    table.right(1, "95 % interval", "us");
    table.right(2, "undisturbed", "us");
    match &result.open_loop {
        Some(_) => {
            table.right(3, "from sending", "us");
            table.right(4, "closed loop", "us");
        }
        None => table.right(3, "half of it (sockperf)", "us"),
    }
    if published.is_some() {
        table.right(4, "published", "us");
    }
    let undisturbed = |n: usize| result.undisturbed.as_ref().and_then(|times| times.percentiles.get(n)?.ns);
    let us = parts::us;
    for (n, percentile) in result.round_trip.percentiles.iter().enumerate() {
        let interval = percentile
            .interval_ns
            .map_or_else(String::new, |(low, high)| format!("{} to {}", num::us(low as f64), num::us(high as f64)));
        let rest: Vec<Cell> = match &result.open_loop {
            Some(open) => [&open.from_sending, &open.closed_loop]
                .map(|times| us(times.percentiles.get(n).and_then(|percentile| percentile.ns)).into())
                .into(),
            None => vec![percentile.ns.map_or_else(|| "-".to_owned(), |ns| num::us(ns as f64 / 2.0)).into()],
        };
        let mut row: Vec<Cell> = vec![
            parts::percentile(percentile.percent).into(),
            Cell::bold(us(percentile.ns)),
            interval.into(),
            us(undisturbed(n)).into(),
        ];
        row.extend(rest);
        if let Some(published) = published {
            let theirs = published.percentiles.iter().find(|(percent, _)| *percent == percentile.percent);
            row.push(theirs.map_or_else(String::new, |(_, ns)| num::us(*ns)).into());
        }
        table.row(row);
    }
    table
}

#[cfg(test)]
pub(super) mod tests {
    use latency::{steps::steps, summary::Samples, tally::Counts};

    use super::*;
    use crate::{style::Style, terminal, Detail};

    fn render(result: &LatencyResult) -> String {
        terminal::render(&document(result, None), Detail::Short, &Style::PIPE, &[])
    }

    pub(in crate::latency) fn result() -> LatencyResult {
        let mut samples = Samples::new().expect("memory");
        (1..=2000).for_each(|n| samples.add(10_000 + n));
        LatencyResult {
            precision: None,
            split_failed: None,
            findings: Some(vec![]),
            schema: latency::result::LATENCY_SCHEMA.into(),
            linerate_version: "0.1.0".into(),
            transport: Transport::Udp,
            wait: Wait::Block,
            server: "10.0.0.2:11111".into(),
            local: "10.0.0.1:40000".into(),
            bytes: (14, 14),
            burst: 1,
            started_at: "2026-11-26T12:00:00Z".into(),
            hostname: "host".into(),
            cpu_model: "CPU".into(),
            kernel: "6.1".into(),
            cpu: Some(1),
            seconds: 1.0,
            ended: Ended::Done,
            counts: Counts { sent: 2001, replied: 2000, lost: 1, late: 1, ..Counts::default() },
            round_trip: Times::of(&samples),
            undisturbed: None,
            stretches: latency::result::Stretches { all: 200, disturbed: 3 },
            interference: latency::disturbed::Interference {
                involuntary_switches: Some(3),
                interrupts: Some(2500),
                steal_ns: Some(30_000_000),
                throttles: None,
            },
            steps: steps(&samples),
            clock_ns: 25.4,
            clients: 1,
            memory_locked: true,
            background: None,
            napi: None,
            split: None,
            no_stamps: false,
            log: Vec::new(),
            open_loop: None,
            before_open_loop: false,
            throughput: None,
        }
    }

    /// The same as fast as it can.
    pub(in crate::latency) fn fast() -> LatencyResult {
        let sent = Throughput {
            messages: 291_283,
            bytes: 291_283 * 64,
            refused: 5,
            unread: 0,
            sampled: 291,
            sampled_answered: 97,
            messages_per_s: 291_165.0,
            bits_per_s: 291_165.0 * 512.0,
        };
        LatencyResult { bytes: (64, 64), throughput: Some(sent), ..result() }
    }

    #[test]
    fn round_trips_read_as_a_table() {
        insta::assert_snapshot!(render(&result()));
        insta::assert_snapshot!("as_fast_as_it_can", render(&fast()));
        let few = fast().throughput.map(|sent| Throughput { sampled: FAIR - 1, ..sent });
        assert!(render(&LatencyResult { throughput: few, ..fast() }).contains("too few messages"));
        let tcp = LatencyResult { transport: Transport::Tcp, ..fast() };
        insta::assert_snapshot!("as_fast_as_it_can_over_tcp", render(&tcp));
        let hostile = LatencyResult {
            server: "\u{1b}[31mx".into(),
            bytes: (14, 64),
            burst: 4,
            undisturbed: Some(result().round_trip),
            ended: Ended::Gone("it closed\nthe connection".into()),
            ..result()
        };
        insta::assert_snapshot!("round_trips_of_a_server_that_died", render(&hostile));
    }

    #[test]
    fn an_open_loop_stands_beside_a_closed_one() {
        let open = latency::result::OpenLoop {
            asked_rate: 20_000.4,
            messages: 19_990,
            rate: 19_990.0,
            reply_every: 10,
            late_ns: 123_456,
            refused: 7,
            unsent: 0,
            from_sending: result().round_trip,
            closed_loop: result().round_trip,
            closed_rate: 40_000.0,
        };
        insta::assert_snapshot!(render(&LatencyResult { open_loop: Some(open.clone()), ..result() }));
        let fast = latency::result::OpenLoop { unsent: 9, ..open };
        assert!(!fast.is_kept());
        let mut late = LatencyResult { open_loop: Some(fast), ..result() };
        late.round_trip.leave_out_intervals();
        insta::assert_snapshot!("a_rate_that_was_not_kept", render(&late));
        let before = LatencyResult { before_open_loop: true, ended: Ended::Stopped, ..result() };
        insta::assert_snapshot!("a_closed_loop_before_the_open_one", render(&before));
    }

    #[test]
    fn what_was_asked_for_beside_is_told() {
        let times = result().round_trip;
        let split = Split {
            round_trip: None,
            to_queue: times.clone(),
            to_driver: times.clone(),
            away: times.clone(),
            to_application: times,
            without: 3,
        };
        let background = latency::background::Background { asked_rate: 1000.0, rate: 990.4, bytes: 1400, refused: 2 };
        let all = LatencyResult {
            wait: Wait::PreferBusyPoll,
            clients: 4,
            background: Some(background),
            napi: Some(false),
            split: Some(split),
            ..result()
        };
        insta::assert_snapshot!(render(&all));
        assert!(render(&LatencyResult { no_stamps: true, ..result() }).contains("ethtool -T"));
    }
}
