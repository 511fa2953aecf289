//! One trial: what was counted, and what disturbed it.

use measure::{
    result::RunResult,
    shape::{Outage, ReplayCounts},
    trial::{DirectionCounts, TrialRecord},
};
use units::{Fps, Ratio, WIRE_OVERHEAD_BYTES};

use super::{delay, windows};
use crate::{
    document::{Audience, Block, Note, Section, Topic},
    figures::Rates,
    names::Names,
    num,
    style::Paint,
    table::{Cell, Table},
    words,
};

/// One trial: counts and rates of each direction, delay, validity, and what disturbed the tester.
pub(crate) fn sections(result: &RunResult, trial: &TrialRecord) -> Vec<Section> {
    let each = if trial.directions.len() > 1 { " each way" } else { "" };
    let asked = num::duration(trial.spec.duration_s);
    let really = num::duration(trial.real_duration_s);
    let really = if really == asked { String::new() } else { format!(", really {really}") };
    let shape = words::shape(&trial.spec.shape).map_or_else(String::new, |shape| format!(", {shape}"));
    let tries = if trial.attempt > 1 { format!(", try {}", trial.attempt) } else { String::new() };
    let title = format!(
        "Trial {}: {} at {}{each} for {asked}{shape}{really}{tries}",
        trial.number,
        words::size(&trial.spec),
        trial.spec.load_fps,
    );
    let paint = if trial.valid() { Paint::Good } else { Paint::Bad };
    let mut validity = vec![Note::new(words::validity(trial), paint)];
    validity.extend(trial.violations.iter().map(|violation| Note::plain(&violation.text)));
    vec![
        Section::new(Topic::Trial, title).with(Audience::READERS, Block::Table(counts(result, trial))),
        delay(trial),
        windows::section(trial),
        Section::new(Topic::Trial, "Validity").with(Audience::READERS, Block::Notes(validity)),
        Section::new(Topic::Interference, "Interference")
            .with(Audience::DETAILS, Block::Table(interference(trial)))
            .with(Audience::DETAILS, Block::Notes(vec![Note::plain(cores(trial))])),
    ]
}

fn delay(trial: &TrialRecord) -> Section {
    let section = Section::new(Topic::Delay, "One-way delay, and its variation");
    let any = |has: fn(&DirectionCounts) -> bool| trial.directions.iter().any(has);
    if any(|d| d.latency.is_some()) {
        section
            .with(Audience::READERS, Block::Table(extremes(trial)))
            .with(Audience::READERS, Block::Table(delay::of_trial(trial)))
    } else if any(|d| d.replay.is_some()) {
        section.with(Audience::READERS, Block::Notes(vec![Note::plain(words::NO_STAMP)]))
    } else {
        let none = "none: no frame came back, or the clock cannot be trusted";
        section.with(Audience::READERS, Block::Notes(vec![Note::new(none, Paint::Warn)]))
    }
}

fn counts(result: &RunResult, trial: &TrialRecord) -> Table {
    let mut t = Table::default();
    t.left(0, "", "");
    let names = Names::of_trial(trial);
    for d in &trial.directions {
        t.right(1, &names.direction(d), "");
    }
    let mut row = |name: &str, value: &dyn Fn(&DirectionCounts) -> Cell| {
        let cells: Vec<Cell> = trial.directions.iter().map(value).collect();
        if cells.iter().any(|c| !c.text.is_empty()) {
            t.row(std::iter::once(Cell::from(name)).chain(cells).collect());
        }
    };
    let frames = |n: u64| Cell::from(num::thousands(n));
    let bad = |n: u64| Cell::painted(num::thousands(n), if n > 0 { Paint::Warn } else { Paint::Plain });
    let optional = |n: Option<u64>| Cell::from(n.map(num::thousands));
    row("intended frames", &|d| frames(d.intended));
    row("sent", &|d| frames(d.sent));
    row("refused, link full", &|d| bad(d.refused));
    row("skipped by the tester", &|d| bad(d.skipped));
    row("received", &|d| frames(d.received));
    row("lost", &|d| bad(d.lost));
    // A replay cannot count these; foreign frames are counted.
    let stamped = |d: &DirectionCounts, n| if d.replay.is_some() { "".into() } else { bad(n) };
    row("duplicates", &|d| stamped(d, d.duplicates));
    row("reordered", &|d| stamped(d, d.reordered));
    row("foreign", &|d| bad(d.foreign));
    row("wrong length", &|d| stamped(d, d.wrong_length));
    row("misdirected", &|d| stamped(d, d.misdirected));
    for (name, figure) in REPLAYED {
        row(name, &|d| d.replay.as_ref().map(|r| figure(d, r)).into());
    }
    row("port's own count out", &|d| optional(d.port_tx));
    row("port's own count in", &|d| optional(d.port_rx));
    row("port's own missed", &|d| optional(d.port_missed));
    let at = |s: f64| format!("{:.6} s", s);
    row("last lost: number", &|d| d.last_lost.map(|l| num::thousands(l.sequence)).into());
    row("last lost: left by", &|d| d.last_lost.map(|l| at(l.departed_s)).into());
    row("longest outage, frames", &|d| d.outage.map(|o| num::thousands(o.lost)).into());
    row("longest outage, lasted", &|d| {
        let lasted = |o: Outage| match o.to_s {
            Some(to_s) => format!("{} from {}", num::duration((to_s - o.from_s).max(0.0)), at(o.from_s)),
            None => format!("to the end from {}", at(o.from_s)),
        };
        d.outage.map(lasted).into()
    });
    row("loss ratio", &|d| Ratio::new(d.loss_ratio()).map_or_else(|_| "-".into(), |r| r.to_string().into()));
    row("offered / intended", &|d| Ratio::of(d.sent, d.intended).to_string().into());
    let rate = |n: u64| Fps::from_count(n, trial.real_duration_s);
    let rates = |d: &DirectionCounts| Rates::new(rate(d.received), trial.spec.frame_size_bytes, 1, result.link_bps);
    row("offered pps", &|d| num::pps(rate(d.sent)).into());
    row("forwarded pps", &|d| num::pps(rate(d.received)).into());
    // Of a replay by its bytes, the wire's for each frame added for layer 1.
    let by_bytes = |d: &DirectionCounts, wire: u64| {
        let frames = d.received + d.replay.as_ref()?.extra;
        Some((d.received_bytes + frames * wire) as f64 * 8.0 / trial.real_duration_s)
    };
    let l1 = |d: &DirectionCounts| by_bytes(d, u64::from(WIRE_OVERHEAD_BYTES));
    row("forwarded L2 Mbit/s", &|d| num::mbps(by_bytes(d, 0).unwrap_or(rates(d).l2_bps)).into());
    row("forwarded L1 Mbit/s", &|d| num::mbps(l1(d).unwrap_or(rates(d).l1_bps)).into());
    let percent = |d: &DirectionCounts| match (l1(d), result.link_bps) {
        (Some(bps), Some(link)) => Some(bps / link.bps() as f64 * 100.0),
        _ => rates(d).line_percent,
    };
    row("% of line rate", &|d| percent(d).map(|p| format!("{p:.2}")).into());
    t
}

/// A figure of a replay, as text.
type Figure = fn(&DirectionCounts, &ReplayCounts) -> String;

/// More figures of a replay.
const REPLAYED: [(&str, Figure); 7] = [
    ("extra", |_, r| num::thousands(r.extra)),
    ("bytes sent", |_, r| num::thousands(r.sent_bytes)),
    ("bytes received", |d, _| num::thousands(d.received_bytes)),
    ("left late, by over 100 us", |_, r| num::thousands(r.late_departures)),
    ("left after due: mean us", |_, r| num::us(r.lateness_mean_ns)),
    ("left after due: p99 us", |_, r| num::us(r.lateness_p99_ns as f64)),
    ("left after due: max us", |_, r| num::us(r.lateness_max_ns as f64)),
];

fn extremes(trial: &TrialRecord) -> Table {
    let mut t = Table::default();
    t.left(0, "direction", "");
    for name in ["min", "avg", "max"] {
        t.right(1, name, "us");
    }
    t.right(1, "IPDV mean", "abs us");
    t.right(1, "measured", "frames");
    let names = Names::of_trial(trial);
    for d in &trial.directions {
        if let Some(l) = &d.latency {
            t.row(vec![
                names.direction(d).into(),
                num::us(l.min_ns as f64).into(),
                num::us(l.avg_ns).into(),
                num::us(l.max_ns as f64).into(),
                l.ipdv.as_ref().map(|i| num::us(i.mean_abs_ns)).into(),
                num::thousands(l.frames).into(),
            ]);
        }
    }
    t
}

fn interference(trial: &TrialRecord) -> Table {
    let mut t = Table::default();
    t.left(0, "role", "");
    t.right(0, "lcore", "");
    t.right(0, "cpu", "");
    t.left(2, "scheduling", "");
    t.right(1, "largest gap", "us");
    t.right(1, "at", "ms");
    t.right(1, "gaps", "");
    t.right(1, "of at least", "us");
    t.right(1, "in all", "us");
    t.right(2, "waited", "us");
    t.right(2, "steal", "us");
    t.right(2, "switches", "");
    t.right(2, "interrupts", "");
    t.right(2, "throttles", "");
    t.right(2, "MHz", "");
    for l in &trial.interference.lcores {
        let us = |ns: u64| num::us(ns as f64);
        t.row(vec![
            l.role.name().into(),
            l.lcore.to_string().into(),
            l.cpu.map(|c| c.to_string()).into(),
            l.scheduling.map(|s| s.name().to_owned()).into(),
            us(l.largest_gap_ns).into(),
            num::trim(l.largest_gap_at_ns as f64 / 1e6, 1).into(),
            num::thousands(l.gaps).into(),
            us(l.gap_threshold_ns).into(),
            us(l.total_gap_ns).into(),
            l.waited_ns.map(us).into(),
            l.steal_ns.map(us).into(),
            l.involuntary_switches.map(num::thousands).into(),
            l.interrupts.map(num::thousands).into(),
            l.throttles.map(num::thousands).into(),
            l.frequency_mhz.map(|f| format!("{f:.0}")).into(),
        ]);
    }
    t
}

fn cores(trial: &TrialRecord) -> String {
    let i = &trial.interference;
    let mut parts = vec![];
    if let (Some(before), Some(after)) = (i.core_to_core_before_ns, i.core_to_core_after_ns) {
        parts.push(match i.placement {
            Some(p) => format!("core to core {before:.0} ns before, {after:.0} ns after: placement class {p}"),
            None => format!("core to core {before:.0} ns before, {after:.0} ns after: the cores were moved"),
        });
    }
    parts.push(format!("TSC against the monotonic clock {:+.1} ppm", i.clock_drift_ppm));
    parts.join("; ")
}
