//! Raw frames, and methods beside each other.

use latency::{
    pingpong::Ended,
    plans::with_size_added,
    raw::{
        result::{RawResult, Row, Span},
        run::{RxMode, TxMode},
        sizes::wire_ns_per_byte,
    },
};

use super::parts;
use crate::{
    document::{Audience, Block, Document, Note, Section, Topic},
    num,
    style::Paint,
    table::{Cell, Table},
    text,
};

/// Percentiles of a row where there are several sizes,
const OF_SIZES: [f64; 7] = [0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 100.0];
/// or several methods.
const OF_METHODS: [f64; 6] = [0.0, 50.0, 90.0, 99.0, 99.9, 100.0];
/// The wire of the document's arithmetic, bit/s.
const ADDED_BPS: f64 = 10e9;
/// Rates whose wire stands beside a slope, Gbit/s.
const WIRES: [f64; 2] = [10.0, 25.0];

/// Figures that somebody published for the same measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// Whose, and of what.
    pub source: String,
    /// Percentiles and their times, ns.
    pub percentiles: Vec<(f64, f64)>,
}

/// A result as a document; the published figures stand beside where there is one size.
pub fn document(result: &RawResult, published: Option<&Published>) -> Document {
    let rows: Vec<&Row> = result.rows.iter().collect();
    let mut sections = match rows.as_slice() {
        [] => vec![Section::new(Topic::Sheet, "Nothing was measured")],
        [row] => vec![one(row, published)],
        rows if rows.iter().all(|row| row.method == rows[0].method && row.tx == rows[0].tx) => vec![sizes(rows)],
        rows => {
            let alike = |span: Span| rows.iter().copied().filter(|row| row.span == span).collect::<Vec<&Row>>();
            let spans =
                [Span::SendToReceive, Span::ReceiveToSend, Span::DriverToDriver, Span::WireToWire, Span::RoundTrip]
                    .map(alike);
            spans.iter().filter(|rows| !rows.is_empty()).map(|rows| methods(rows)).collect()
        }
    };
    if let Some(last) = sections.pop() {
        sections.push(last.with(Audience::READERS, Block::Notes(notes(result, published))));
    }
    Document::of(sections).with([data(result)])
}

/// What tells a row from the others of its result: its method, how frames are sent, or its size.
pub fn name_in(row: &Row, result: &RawResult) -> String {
    let alike: Vec<&Row> = result.rows.iter().filter(|other| other.method == row.method).collect();
    if alike.len() == 1 {
        return row.method.clone();
    }
    match alike.iter().all(|other| other.bytes == row.bytes) {
        true => format!("{}, {}", row.method, tx_name(row.tx)),
        false => format!("{} B", row.bytes),
    }
}

fn one(row: &Row, published: Option<&Published>) -> Section {
    let mut table = Table::default();
    table.left(0, "percentile", "");
    table.right(1, "time", "ns");
    table.right(1, "95 % interval", "ns");
    table.right(2, "undisturbed", "ns");
    if published.is_some() {
        table.right(3, "published", "ns");
    }
    for (n, percentile) in row.times.percentiles.iter().enumerate() {
        let interval = percentile
            .interval_ns
            .map_or_else(String::new, |(low, high)| format!("{} to {}", num::thousands(low), num::thousands(high)));
        let undisturbed = row.undisturbed.as_ref().and_then(|times| times.percentiles.get(n)?.ns);
        let mut cells: Vec<Cell> = vec![
            parts::percentile(percentile.percent).into(),
            Cell::bold(parts::ns(percentile.ns)),
            interval.into(),
            parts::ns(undisturbed).into(),
        ];
        if let Some(published) = published {
            let theirs = published.percentiles.iter().find(|(percent, _)| *percent == percentile.percent);
            cells.push(theirs.map_or_else(String::new, |(_, ns)| num::thousands(*ns as u64)).into());
        }
        table.row(cells);
    }
    let title = format!(
        "{}, {}{}, {} B: {} times in {:.2} s",
        row.method,
        span(row.span),
        modes(row),
        sized(row),
        num::thousands(row.times.samples),
        row.seconds
    );
    Section::new(Topic::Sheet, title)
        .with(Audience::READERS, Block::Table(table))
        .with(Audience::READERS, Block::Table(parts::picture(&row.steps)))
}

/// Bytes of the frames of a row.
fn sized(row: &Row) -> String {
    row.least_bytes.map_or_else(|| row.bytes.to_string(), |least| format!("{least} to {}", row.bytes))
}

/// Everything that tells a row from those of other results.
pub(super) fn full_name(row: &Row) -> String {
    let modes = if row.tx.is_some() { format!(", {}/{}", tx_name(row.tx), rx_name(row.rx)) } else { String::new() };
    let span = if row.span == Span::SendToReceive { String::new() } else { format!(", {}", span(row.span)) };
    format!("{}{modes}{span}, {} B", row.method, sized(row))
}

/// Sizes of one method.
fn sizes(rows: &[&Row]) -> Section {
    let mut table = Table::default();
    table.right(0, "frame", "B");
    for percent in OF_SIZES {
        table.right(1, &parts::percentile(percent), "ns");
    }
    table.right(2, "with size added", "ns");
    table.right(3, "times", "");
    table.right(3, "lost", "");
    table.left(4, "median", "");
    let most = rows.iter().filter_map(|row| row.ns(50.0)).fold(1.0, f64::max);
    let shortest = rows.first().and_then(|row| Some((row.bytes, row.ns(50.0)?)));
    for row in rows {
        let mut cells: Vec<Cell> = vec![num::thousands(row.bytes as u64).into()];
        cells.extend(OF_SIZES.iter().map(|&percent| shown(percent, parts::ns(row.ns(percent).map(|ns| ns as u64)))));
        let added = shortest.map(|(bytes, ns)| with_size_added(ns, bytes, row.bytes, ADDED_BPS));
        cells.push(added.map(|ns| num::thousands(ns.round() as u64)).into());
        cells.push(num::thousands(row.times.samples).into());
        cells.push(num::thousands(row.counts.lost).into());
        cells.push(parts::bar(row.ns(50.0).map_or(0.0, |ns| ns / most)));
        table.row(cells);
    }
    let title =
        rows.first().map_or_else(String::new, |row| format!("{}, {}{}", row.method, span(row.span), modes(row)));
    Section::new(Topic::Sheet, title).with(Audience::READERS, Block::Table(table)).with(
        Audience::READERS,
        Block::Notes(vec![Note::plain(
            "with size added: the median of the shortest, and 0.8 ns for each further byte, which is what a wire of 10 Gbit/s \
             takes: the arithmetic of the low-latency guide",
        )]),
    )
}

/// Methods beside each other, those whose times count alike.
fn methods(rows: &[&Row]) -> Section {
    let mut table = Table::default();
    table.left(0, "method", "");
    table.left(0, "sent/received", "");
    for percent in OF_METHODS {
        table.right(1, &parts::percentile(percent), "us");
    }
    table.right(2, "lost", "");
    table.left(3, "median", "");
    let most = rows.iter().filter_map(|row| row.ns(50.0)).fold(1.0, f64::max);
    let lost = rows.iter().any(|row| row.counts.lost > 0);
    for row in rows {
        let modes = format!("{}/{}", tx_name(row.tx), rx_name(row.rx));
        let modes = if row.tx.is_some() { modes } else { String::new() };
        let mut cells: Vec<Cell> = vec![text::clean(&row.method).into(), modes.into()];
        cells.extend(OF_METHODS.iter().map(|&percent| shown(percent, parts::us(row.ns(percent).map(|ns| ns as u64)))));
        cells.push(if lost { num::thousands(row.counts.lost).into() } else { Cell::default() });
        cells.push(parts::bar(row.ns(50.0).map_or(0.0, |ns| ns / most)));
        table.row(cells);
    }
    let title = rows.first().map_or_else(String::new, |row| {
        let what = if row.span == Span::RoundTrip { "messages" } else { "frames" };
        format!("{}: {what} of {} B", capital(span(row.span)), row.bytes)
    });
    Section::new(Topic::Sheet, title).with(Audience::READERS, Block::Table(table))
}

/// The median is what is looked for.
fn shown(percent: f64, text: String) -> Cell {
    if percent == 50.0 {
        Cell::bold(text)
    } else {
        text.into()
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn span(span: Span) -> &'static str {
    match span {
        Span::SendToReceive => "send to receive",
        Span::ReceiveToSend => "receive to send",
        Span::DriverToDriver => "driver to driver (time stamps of the kernel)",
        Span::WireToWire => "wire to wire (time stamps of the NIC)",
        Span::RoundTrip => "round trip",
    }
}

fn modes(row: &Row) -> String {
    let tx = match row.tx {
        Some(TxMode::Frame) => ", frame made anew",
        Some(TxMode::Preloaded) => ", frame preloaded",
        None => "",
    };
    let rx = match row.rx {
        Some(RxMode::Copy) => ", received by copy",
        Some(RxMode::InPlace) => ", received in place",
        None => "",
    };
    format!("{tx}{rx}")
}

fn notes(result: &RawResult, published: Option<&Published>) -> Vec<Note> {
    let mut notes = Vec::new();
    if let [row] = result.rows.as_slice() {
        notes.push(Note::plain(format!(
            "{}; from {} to {}",
            parts::counts("frames", &row.counts, "received", row.refused),
            row.ends.0,
            row.ends.1
        )));
        notes.extend(parts::undisturbed(&row.times, row.undisturbed.as_ref(), row.stretches).map(Note::plain));
        notes.extend(parts::interference(&row.interference).map(Note::plain));
    }
    let of = |row: &Row| {
        let wanted = row.background_asked_fps.map(|fps| format!(" of {} wanted", num::thousands(fps.round() as u64)));
        Some(format!("{} a second{}", num::thousands(row.background_fps? as u64), wanted.unwrap_or_default()))
    };
    let beside: Vec<String> = result.rows.iter().filter_map(of).collect();
    if !beside.is_empty() {
        notes.push(Note::plain(format!(
            "beside it, frames of the same size on the same way: {}, sent by the thread that measures just before its own",
            beside.join(", ")
        )));
    }
    let unstamped: u64 = result.rows.iter().map(|row| row.unstamped).sum();
    if unstamped > 0 {
        notes.push(Note::new(
            format!("{} frames came back without their time stamps, and have no time", num::thousands(unstamped)),
            Paint::Warn,
        ));
    }
    if let Some(slope) = &result.slope {
        let wires: Vec<String> =
            WIRES.iter().map(|gbps| format!("{} at {gbps}G", num::trim(wire_ns_per_byte(gbps * 1e9), 2))).collect();
        notes.push(Note::plain(format!(
            "each byte adds {:.3} ns, and a frame without bytes would take {:.0} ns: the line through the medians, none of them \
             farther from it than {:.0} ns; a wire adds {} ns a byte each time that the whole frame is sent before it is used",
            slope.ns_per_byte,
            slope.intercept_ns,
            slope.farthest_ns,
            wires.join(", ")
        )));
    }
    let timing = &result.timing;
    notes.push(Note::plain(format!(
        "clock: {:.6} GHz, known to {:.2} ppm, in steps of {} ns; the clock and our own work are {:.0} ns of each time, and \
         nothing is subtracted",
        timing.hz / 1e9,
        timing.error_ppm.max(0.01),
        num::trim(timing.step_ns, 1),
        timing.own_ns
    )));
    let locked = if result.memory_locked { "memory locked" } else { "memory not locked: no right to it" };
    notes.push(Note::plain(format!("measured on CPU {}, {locked}", result.cpu)));
    if result.rows.iter().any(|row| row.span == Span::RoundTrip)
        && result.rows.iter().any(|row| row.span != Span::RoundTrip)
    {
        notes.push(Note::plain("a round trip is two ways, with an application at the other end that wakes up"));
    }
    if result.rows.iter().flat_map(|row| &row.times.percentiles).any(|percentile| percentile.ns.is_none()) {
        // Methods beside each other are measured for a time.
        let flags = if result.rows.iter().any(|row| row.span == Span::RoundTrip) { "" } else { "--count, " };
        notes.push(Note::plain(format!("-: fewer than 100 samples are beyond it; measure more ({flags}--duration)")));
    }
    if let Some(published) = published {
        notes.push(Note::plain(format!("published: {}", published.source)));
    }
    notes.extend(parts::findings(result.findings.as_ref()).map(Note::plain));
    notes.extend(result.warnings.iter().map(|text| Note::new(text.clone(), Paint::Warn)));
    let missing = result.missing.iter().map(|missing| format!("{}: not measured: {}", missing.method, missing.why));
    notes.extend(missing.map(|text| Note::new(text, Paint::Warn)));
    for row in &result.rows {
        match &row.ended {
            Ended::Done => {
                let missed = row.precision.as_ref().and_then(parts::missed);
                notes.extend(missed.map(|text| Note::new(format!("{} B: {text}", row.bytes), Paint::Warn)));
            }
            Ended::Precise => notes.push(Note::plain(format!("{} B: as precise as asked", row.bytes))),
            Ended::Stopped => notes.push(Note::new("stopped", Paint::Warn)),
            // Only of an open loop.
            Ended::TooFast => {}
            Ended::LeftOut(why) | Ended::Gone(why) => {
                notes.push(Note::new(format!("{} B: ended early: {why}", row.bytes), Paint::Bad))
            }
        }
    }
    notes
}

/// Exact figures.
fn data(result: &RawResult) -> Section {
    let mut table = Table::default();
    table.data_columns("method,span,tx,rx,bytes,percentile,ns,low_ns,high_ns,undisturbed_ns,samples,lost");
    for row in &result.rows {
        for (n, percentile) in row.times.percentiles.iter().enumerate() {
            let number = |ns: Option<u64>| ns.map_or_else(String::new, |ns| ns.to_string());
            let undisturbed = row.undisturbed.as_ref().and_then(|times| times.percentiles.get(n)?.ns);
            table.data_row(vec![
                text::field(&row.method),
                span(row.span).split(" (").next().unwrap_or_default().replace(' ', "-"),
                tx_name(row.tx).to_owned(),
                rx_name(row.rx).to_owned(),
                row.bytes.to_string(),
                percentile.percent.to_string(),
                number(percentile.ns),
                number(percentile.interval_ns.map(|i| i.0)),
                number(percentile.interval_ns.map(|i| i.1)),
                number(undisturbed),
                row.times.samples.to_string(),
                row.counts.lost.to_string(),
            ]);
        }
    }
    Section::new(Topic::Data, "").with(Audience::CSV, Block::Data(table))
}

fn tx_name(mode: Option<TxMode>) -> &'static str {
    match mode {
        Some(TxMode::Frame) => "frame",
        Some(TxMode::Preloaded) => "preloaded",
        None => "",
    }
}

fn rx_name(mode: Option<RxMode>) -> &'static str {
    match mode {
        Some(RxMode::Copy) => "copy",
        Some(RxMode::InPlace) => "in-place",
        None => "",
    }
}

#[cfg(test)]
pub(super) mod tests {
    use latency::{
        raw::{result::Missing, sizes::Slope, timing::Timing},
        result::{Stretches, Times},
        steps::steps,
        summary::Samples,
        tally::Counts,
    };

    use super::*;
    use crate::{csv, markdown, style::Style, terminal, Detail};

    pub(in crate::latency) fn result(sizes: &[usize]) -> RawResult {
        let row = |bytes: usize| {
            let mut samples = Samples::new().expect("memory");
            (1..=2000).for_each(|n| samples.add(240 + bytes as u64 + n / 20));
            Row {
                precision: None,
                method: "software cable".into(),
                span: Span::SendToReceive,
                ends: ("cable0:a".into(), "cable0:b".into()),
                tx: Some(TxMode::Frame),
                rx: Some(RxMode::Copy),
                bytes,
                least_bytes: None,
                background_fps: Some(1234.5),
                background_asked_fps: Some(2000.0),
                seconds: 1.5,
                ended: Ended::Done,
                counts: Counts { sent: 2003, replied: 2000, lost: 3, ..Counts::default() },
                refused: 2,
                unstamped: 0,
                times: Times::of(&samples),
                undisturbed: Some(Times::of(&samples)),
                stretches: Stretches { all: 300, disturbed: 2 },
                interference: latency::disturbed::Interference { involuntary_switches: Some(1), ..Default::default() },
                steps: steps(&samples),
                clocks: vec![300, 301],
            }
        };
        let mut result = RawResult {
            timing: Timing { hz: 3.31e9, error_ppm: 0.25, step_ns: 0.3, own_ns: 21.0 },
            memory_locked: true,
            ..RawResult::new(1)
        };
        result.rows = sizes.iter().map(|&bytes| row(bytes)).collect();
        result.fit();
        result
    }

    fn text(document: &Document) -> String {
        terminal::render(document, Detail::Short, &Style::PIPE, &[])
    }

    #[test]
    fn one_size_is_a_table_of_percentiles_with_a_picture() {
        let published =
            Published { source: "ExaNIC X25 at 10G".into(), percentiles: vec![(0.0, 625.0), (50.0, 696.0)] };
        let document = document(&result(&[60]), Some(&published));
        insta::assert_snapshot!(text(&document));
        insta::assert_snapshot!(
            "one_size_as_csv",
            csv::figures(&document).lines().take(3).collect::<Vec<_>>().join("\n")
        );
        assert!(markdown::render(&document).contains("| percentile"));
    }

    #[test]
    fn sizes_have_a_line_through_their_medians() {
        let result = result(&[60, 260, 460]);
        assert_eq!(result.slope.map(|slope: Slope| (slope.ns_per_byte * 1e3).round()), Some(1000.0));
        insta::assert_snapshot!(text(&document(&result, None)));
    }

    #[test]
    fn methods_stand_beside_each_other_with_what_is_missing() {
        let mut compared = result(&[60, 60, 60]);
        compared.slope = None;
        compared.rows[1].tx = Some(TxMode::Preloaded);
        compared.rows[1].rx = Some(RxMode::InPlace);
        compared.rows[1].counts.lost = 0;
        assert_eq!(name_in(&compared.rows[1], &compared), "software cable, preloaded");
        compared.rows[2] = Row {
            method: "UDP, blocking, veth\u{1b}[31m".into(),
            span: Span::RoundTrip,
            tx: None,
            rx: None,
            bytes: 14,
            ended: Ended::Gone("it\nleft".into()),
            ..compared.rows[2].clone()
        };
        assert!(name_in(&compared.rows[2], &compared).starts_with("UDP"));
        compared.missing.push(Missing { method: "AF_XDP".into(), why: "no right to it".into() });
        let text = text(&document(&compared, None));
        assert!(!text.contains('\u{1b}'));
        insta::assert_snapshot!(text);
        let none = document(&RawResult::new(0), None);
        assert!(super::tests::text(&none).contains("Nothing was measured"));
    }
}
