//! The lines of other programs, so that scripts go on working.

use latency::{
    raw::result::{RawResult, Row},
    result::{LatencyResult, Times},
};

/// Percentiles that sockperf prints, from the greatest down.
const SOCKPERF: [f64; 8] = [99.999, 99.99, 99.9, 99.0, 90.0, 75.0, 50.0, 25.0];
/// Percentiles that exanic_perf_test prints (the low-latency document).
const EXANIC: [f64; 11] = [0.0, 1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 100.0];

/// Round trips in the lines of sockperf 3.7, whose latency is half a round trip, of an open loop from when a message really went
/// out.
pub fn sockperf(result: &LatencyResult) -> String {
    if let Some(sent) = &result.throughput {
        // As sockperf, it calls 2^20 bytes a megabyte, and eight times as many a megabit.
        let mega = sent.bits_per_s / 8.0 / f64::from(1 << 20);
        return format!(
            "sockperf: Total of {} messages sent in {:.3} sec\n\
             sockperf: Summary: Message Rate is {:.0} [msg/sec]\n\
             sockperf: Summary: BandWidth is {mega:.3} MBps ({:.3} Mbps)\n",
            sent.messages,
            result.seconds,
            sent.messages_per_s,
            mega * 8.0
        );
    }
    let times = result.open_loop.as_ref().map_or(&result.round_trip, |open| &open.from_sending);
    let Times { samples, mean_ns, deviation_ns, percentiles } = times;
    let half = |ns: Option<f64>| ns.map_or(0.0, |ns| ns / 2.0 / 1e3);
    let counts = result.counts;
    let mean = half(*mean_ns);
    // Of an open loop, those that ask for no reply too.
    let sent = result.open_loop.as_ref().map_or(counts.sent, |open| open.messages);
    let run = format!("RunTime={:.3} sec; SentMessages={sent}; ReceivedMessages={}", result.seconds, counts.replied);
    // What sockperf counts outside of the time that is valid, its warm-up and its end, is not kept here.
    let mut out = format!(
        "sockperf: [Total Run] {run}\n\
         sockperf: ========= Printing statistics for Server No: 0\n\
         sockperf: [Valid Duration] {run}\n"
    );
    if *samples == 0 {
        return out + "sockperf: No messages were received from the server. Is the server down?\n";
    }
    out += &format!("sockperf: ====> avg-latency={mean:.3} (std-dev={:.3})\n", half(*deviation_ns));
    out += &format!(
        "sockperf: # dropped messages = {}; # duplicated messages = {}; # out-of-order messages = {}\n",
        counts.lost, counts.duplicates, counts.reordered
    );
    let of = if result.burst > 1 { format!(" of burst of {} messages", result.burst) } else { String::new() };
    out += &format!("sockperf: Summary: Latency{of} is {mean:.3} usec\n");
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

/// Raw frames in the lines of exanic_perf_test; several sizes have a line with the size before each.
pub fn exanic(result: &RawResult) -> String {
    let mut out = format!("CPU GHz = {:.2}\n", result.timing.hz / 1e9);
    for row in &result.rows {
        if result.rows.len() > 1 {
            out += &format!("Size {}\n", row.bytes);
        }
        for percent in EXANIC {
            if let Some(ns) = row.ns(percent) {
                out += &format!("Percentile {percent:.3} = {ns:.0}ns\n");
            }
        }
    }
    out
}

/// Times one by one in clocks, one a line.
pub fn clocks(rows: &[Row]) -> String {
    rows.iter().flat_map(|row| &row.clocks).map(|clocks| format!("{clocks}\n")).collect()
}

/// A line of sockperf's `--full-log`: when a message went out and came back, seconds from the first, and half the time between, us.
pub fn full_log(messages: &[(u64, u64)]) -> String {
    let mut out = String::from("packet, txTime(sec), rxTime(sec), latency(usec)\n");
    for (n, (sent, came)) in messages.iter().enumerate() {
        let seconds = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
        let half = came.saturating_sub(*sent) as f64 / 2e3;
        out += &format!("{n}, {}, {}, {half:.3}\n", seconds(*sent), seconds(*came));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::{raw::tests as raw, sockets::tests as sockets};

    #[test]
    fn the_lines_of_sockperf_have_half_a_round_trip() {
        insta::assert_snapshot!(sockperf(&sockets::result()));
        insta::assert_snapshot!(sockperf(&sockets::fast()), @r"
        sockperf: Total of 291283 messages sent in 1.000 sec
        sockperf: Summary: Message Rate is 291165 [msg/sec]
        sockperf: Summary: BandWidth is 17.771 MBps (142.170 Mbps)
        ");
        insta::assert_snapshot!(full_log(&[(0, 20_000), (1_000_000_000, 1_000_041_001)]), @r"
        packet, txTime(sec), rxTime(sec), latency(usec)
        0, 0.000000000, 0.000020000, 10.000
        1, 1.000000000, 1.000041001, 20.500
        ");
    }

    #[test]
    fn the_lines_of_exanic_perf_test_have_its_percentiles() {
        insta::assert_snapshot!(exanic(&raw::result(&[60])));
        assert!(exanic(&raw::result(&[60, 1514])).contains("Size 1514\n"));
        assert_eq!(clocks(&raw::result(&[60]).rows), "300\n301\n");
    }
}
