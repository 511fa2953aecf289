//! Latency against that of an earlier run: what a change bought.

use latency::{
    raw::result::RawResult,
    result::{LatencyResult, Times},
};

use super::{parts, raw::full_name, sockets};
use crate::{
    document::{Audience, Block, Document, Note, Section, Topic},
    num,
    style::Paint,
    table::{Cell, Table},
    text,
};

/// Percentiles that are compared.
const COMPARED: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];

/// Times with a name, by which those of two results are put together.
pub type Named<'a> = (String, &'a Times);

/// What a result of sockets compares with.
pub fn of_sockets(result: &LatencyResult) -> Vec<Named<'_>> {
    let bytes = if result.bytes.0 == result.bytes.1 {
        result.bytes.0.to_string()
    } else {
        format!("{} to {}", result.bytes.0, result.bytes.1)
    };
    let mut name = format!("{}, {bytes} B", sockets::method(result.transport, result.wait));
    if result.burst > 1 {
        name += &format!(", bursts of {}", result.burst);
    }
    if result.clients > 1 {
        name += &format!(", {} clients", result.clients);
    }
    if let Some(open) = &result.open_loop {
        name += &format!(", open loop of {}/s", num::thousands(open.asked_rate.round() as u64));
    }
    if let Some(background) = &result.background {
        name += &format!(", beside {}/s", num::thousands(background.asked_rate.round() as u64));
    }
    vec![(name, &result.round_trip)]
}

/// What a result of raw frames, or a comparison of methods, compares with.
pub fn of_raw(result: &RawResult) -> Vec<Named<'_>> {
    result.rows.iter().map(|row| (full_name(row), &row.times)).collect()
}

/// Percentiles of both, and whether their 95 % intervals are apart. Two single results always belong together, however they were
/// measured: that is what is compared.
///
/// # Errors
///
/// Where they have nothing in common.
pub fn document(new: &[Named<'_>], old: &[Named<'_>]) -> Result<Document, String> {
    let mut table = Table::default();
    table.left(0, "", "");
    table.right(0, "percentile", "");
    table.right(1, "before", "us");
    table.right(1, "now", "us");
    table.right(1, "change", "%");
    table.left(1, "", "");
    let mut alone = Vec::new();
    for (name, now) in new {
        let before = match (new, old) {
            ([_], [(_, before)]) => Some(*before),
            _ => old.iter().find(|(other, _)| other == name).map(|(_, before)| *before),
        };
        let Some(before) = before else {
            alone.push(name.clone());
            continue;
        };
        rows(&mut table, name, before, now);
    }
    if table.is_empty() {
        return Err("they have no method or size in common".to_owned());
    }
    let mut notes = vec![Note::plain(
        "apart: the 95 % intervals of both do not overlap. These are of one run each: runs of one setting may differ by more, so \
         repeat both",
    )];
    notes.extend(alone.iter().map(|name| Note::new(format!("{name}: not in the earlier result"), Paint::Warn)));
    let title = match (new, old) {
        ([(now, _)], [(before, _)]) if now != before => format!("{now}, against {before}"),
        ([(now, _)], _) => format!("{now}, against an earlier run"),
        _ => "Against an earlier run".to_owned(),
    };
    let section = Section::new(Topic::Sheet, title)
        .with(Audience::READERS, Block::Table(table))
        .with(Audience::READERS, Block::Notes(notes));
    Ok(Document::of(vec![section]))
}

fn rows(table: &mut Table, name: &str, before: &Times, now: &Times) {
    for percent in COMPARED {
        let of = |times: &Times| times.percentiles.iter().find(|p| p.percent == percent).copied();
        let (Some(before), Some(now)) = (of(before), of(now)) else { continue };
        let (Some(before_ns), Some(now_ns)) = (before.ns, now.ns) else { continue };
        let apart = match (before.interval_ns, now.interval_ns) {
            (Some(a), Some(b)) => a.1 < b.0 || b.1 < a.0,
            _ => false,
        };
        let verdict = match (apart, now_ns < before_ns) {
            (false, _) => Cell::from("within noise"),
            (true, true) => Cell::painted("apart, shorter", Paint::Good),
            (true, false) => Cell::painted("apart, longer", Paint::Bad),
        };
        let change =
            if before_ns > 0 { num::percent((now_ns as f64 / before_ns as f64 - 1.0) * 100.0) } else { String::new() };
        table.row(vec![
            text::clean(name).into(),
            parts::percentile(percent).into(),
            parts::us(Some(before_ns)).into(),
            Cell::bold(parts::us(Some(now_ns))),
            change.into(),
            verdict,
        ]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        latency::{raw::tests as raw, sockets::tests as socket},
        style::Style,
        terminal, Detail,
    };

    fn shown(document: &Document) -> String {
        terminal::render(document, Detail::Short, &Style::PIPE, &[])
    }

    #[test]
    fn what_a_change_bought_is_told_with_whether_it_is_noise() {
        let before = socket::result();
        let mut now = socket::result();
        for percentile in &mut now.round_trip.percentiles {
            let shift = if percentile.percent > 60.0 { 100 } else { 3000 };
            percentile.ns = percentile.ns.map(|ns| ns - shift);
            percentile.interval_ns = percentile.interval_ns.map(|(low, high)| (low - shift, high - shift));
        }
        now.wait = latency::socket::Wait::Spin;
        insta::assert_snapshot!(shown(&document(&of_sockets(&now), &of_sockets(&before)).expect("comparable")));
        let (few, many) = (raw::result(&[60, 128, 1514]), raw::result(&[60, 128, 256]));
        let compared = shown(&document(&of_raw(&few), &of_raw(&many)).expect("comparable"));
        assert!(
            compared.contains("within noise") && compared.contains("1514 B: not in the earlier result"),
            "{compared}"
        );
        let none = document(&of_raw(&raw::result(&[60, 128])), &of_raw(&raw::result(&[64, 256])));
        assert!(none.is_err());
    }
}
