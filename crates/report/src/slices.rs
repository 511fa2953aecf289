//! A trial over time as comma-separated values, a row a slice.

use std::fmt::Write;

use measure::timeline::{Party, Slice, Timeline};

const HEADER: &str = "direction,from_s,sent,refused,received,lost,arrived,duplicates,min_delay_ns,mean_delay_ns,\
                      arrival_min_delay_ns,tester_away_s,device_away_s";

/// The slices of each direction (numbered from 1) in order. What is not known is empty.
pub fn csv(timeline: &Timeline) -> String {
    let mut out = format!("{HEADER}\n");
    for (number, slices) in (1..).zip(&timeline.directions) {
        let away = [Party::Tester, Party::Device].map(|who| timeline.away(who, slices.len()));
        for (i, slice) in slices.iter().enumerate() {
            let Slice { sent, refused, received, arrived, duplicates, .. } = slice;
            let known = |frames: &u32, ns: u32| if *frames > 0 { ns.to_string() } else { String::new() };
            let _ = writeln!(
                out,
                "{number},{:.6},{sent},{refused},{received},{},{arrived},{duplicates},{},{},{},{:.6},{:.6}",
                i as f64 * timeline.slice_s,
                slice.lost(),
                known(received, slice.min_delay_ns),
                known(received, slice.mean_delay_ns),
                known(arrived, slice.arrival_min_delay_ns),
                away[0].get(i).copied().unwrap_or_default(),
                away[1].get(i).copied().unwrap_or_default(),
            );
        }
    }
    out
}
