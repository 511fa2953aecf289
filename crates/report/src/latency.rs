//! Round trips of applications, as text: our own table, and sockperf's lines.

use latency::{
    pingpong::Ended,
    result::{LatencyResult, Times},
    socket::{Transport, Wait},
};

use crate::{
    num,
    style::Style,
    table::{Cell, Table},
    text,
};

/// Percentiles that sockperf prints, from the greatest down.
const SOCKPERF: [f64; 8] = [99.999, 99.99, 99.9, 99.0, 90.0, 75.0, 50.0, 25.0];

/// A measurement as text.
pub fn render(result: &LatencyResult, style: &Style) -> String {
    let wait = match result.wait {
        Wait::Block => "blocking",
        Wait::Spin => "spinning",
        Wait::Epoll => "epoll",
    };
    let open = result.open_loop.as_ref().map_or_else(String::new, |open| {
        format!(", open loop of {} messages a second", num::thousands(open.asked_rate.round() as u64))
    });
    let burst = if result.burst > 1 { format!(", bursts of {}", result.burst) } else { String::new() };
    let mut out = format!(
        "{} to {}, {wait}, {} B{burst}{open}: {} in {:.2} s\n\n",
        transport(result.transport),
        text::clean(&result.server),
        bytes(result),
        num::thousands(result.round_trip.samples),
        result.seconds
    );
    out += &table(result).text(style);
    out += &format!("\n{}\n", messages(result));
    if let Some(open) = &result.open_loop {
        out += &format!(
            "sent: {} messages a second, one of {} asks; the sender was late by {} us at most; {} refused by the socket\n\
             round trips count from the moment at which a message was due; a closed loop made {} a second\n",
            num::thousands(open.rate.round() as u64),
            open.reply_every,
            num::us(open.late_ns as f64),
            num::thousands(open.refused),
            num::thousands(open.closed_rate.round() as u64)
        );
    }
    if let Some(undisturbed) = &result.undisturbed {
        out += &format!(
            "undisturbed: {} of {} stretches of 5 ms, {} of {} samples; nothing is left out of the other columns\n",
            result.stretches.all - result.stretches.disturbed.min(result.stretches.all),
            result.stretches.all,
            num::thousands(undisturbed.samples),
            num::thousands(result.round_trip.samples)
        );
    }
    out += &format!("a reading of the clock takes {:.0} ns: one is in each round trip\n", result.clock_ns);
    if result.round_trip.percentiles.iter().any(|percentile| percentile.ns.is_none()) {
        out += "-: fewer than 100 samples are beyond it; measure for longer (--duration)\n";
    }
    out + &ended(result)
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

fn table(result: &LatencyResult) -> Table {
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
    let undisturbed = |n: usize| result.undisturbed.as_ref().and_then(|times| times.percentiles.get(n)?.ns);
    let us = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), |ns| num::us(ns as f64));
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
        let name = match percentile.percent {
            0.0 => "least".to_owned(),
            100.0 => "greatest".to_owned(),
            percent => num::trim(percent, 3),
        };
        let mut row: Vec<Cell> =
            vec![name.into(), Cell::bold(us(percentile.ns)), interval.into(), us(undisturbed(n)).into()];
        row.extend(rest);
        table.row(row);
    }
    table
}

fn messages(result: &LatencyResult) -> String {
    let counts = result.counts;
    let mut parts = vec![
        format!("{} sent", num::thousands(counts.sent)),
        format!("{} replied", num::thousands(counts.replied)),
        format!("{} lost", num::thousands(counts.lost)),
    ];
    let more = [
        (counts.late, "replied too late"),
        (counts.duplicates, "replied twice"),
        (counts.reordered, "out of order"),
        (counts.foreign, "foreign"),
        (counts.damaged, "damaged"),
    ];
    parts.extend(more.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{} {what}", num::thousands(*n))));
    format!("messages: {}", parts.join(", "))
}

fn ended(result: &LatencyResult) -> String {
    match &result.ended {
        Ended::Done => String::new(),
        Ended::Precise => "as precise as asked\n".to_owned(),
        Ended::Stopped => "stopped\n".to_owned(),
        Ended::Gone(why) => format!("the server is gone: {}\n", text::clean(why)),
    }
}

/// The same in the lines of sockperf 3.7, whose latency is half a round trip.
pub fn sockperf(result: &LatencyResult) -> String {
    let Times { samples, mean_ns, deviation_ns, percentiles } = &result.round_trip;
    let half = |ns: Option<f64>| ns.map_or(0.0, |ns| ns / 2.0 / 1e3);
    let counts = result.counts;
    let mean = half(*mean_ns);
    let mut out = format!(
        "sockperf: [Valid Duration] RunTime={:.3} sec; SentMessages={}; ReceivedMessages={}\n",
        result.seconds, counts.sent, counts.replied
    );
    out += &format!("sockperf: ====> avg-latency={mean:.3} (std-dev={:.3})\n", half(*deviation_ns));
    out += &format!(
        "sockperf: # dropped messages = {}; # duplicated messages = {}; # out-of-order messages = {}\n",
        counts.lost, counts.duplicates, counts.reordered
    );
    out += &format!("sockperf: Summary: Latency is {mean:.3} usec\n");
    out += &format!(
        "sockperf: Total {samples} observations; each percentile contains {:.2} observations\n",
        *samples as f64 / 100.0
    );
    let of = |percent: f64| percentiles.iter().find(|p| p.percent == percent).and_then(|p| p.ns).map(|ns| ns as f64);
    out += &format!("sockperf: ---> <MAX> observation = {:8.3}\n", half(of(100.0)));
    for percent in SOCKPERF {
        if let Some(ns) = of(percent) {
            out += &format!("sockperf: ---> percentile {percent:.3} = {:8.3}\n", half(Some(ns)));
        }
    }
    out + &format!("sockperf: ---> <MIN> observation = {:8.3}\n", half(of(0.0)))
}

#[cfg(test)]
mod tests {
    use latency::{summary::Samples, tally::Counts};

    use super::*;

    fn result() -> LatencyResult {
        let mut samples = Samples::new().expect("memory");
        (1..=2000).for_each(|n| samples.add(10_000 + n));
        LatencyResult {
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
            clock_ns: 25.4,
            open_loop: None,
        }
    }

    #[test]
    fn round_trips_read_as_a_table() {
        insta::assert_snapshot!(render(&result(), &Style::PIPE));
        let hostile = LatencyResult {
            server: "\u{1b}[31mx".into(),
            bytes: (14, 64),
            burst: 4,
            undisturbed: Some(result().round_trip),
            ended: Ended::Gone("it closed\nthe connection".into()),
            ..result()
        };
        insta::assert_snapshot!("round_trips_of_a_server_that_died", render(&hostile, &Style::PIPE));
    }

    #[test]
    fn an_open_loop_stands_beside_a_closed_one() {
        let open = latency::result::OpenLoop {
            asked_rate: 20_000.4,
            rate: 19_990.0,
            reply_every: 10,
            late_ns: 123_456,
            refused: 7,
            from_sending: result().round_trip,
            closed_loop: result().round_trip,
            closed_rate: 40_000.0,
        };
        insta::assert_snapshot!(render(&LatencyResult { open_loop: Some(open), ..result() }, &Style::PIPE));
    }

    #[test]
    fn the_lines_of_sockperf_have_half_a_round_trip() {
        insta::assert_snapshot!(sockperf(&result()));
    }
}
