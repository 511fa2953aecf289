//! Where the cycles of the built-in data plane went: its runtime table at the throughput found, and how it changes with
//! the load.

use measure::{
    result::{RunResult, SizeResult},
    trial::{DutReport, TrialRecord},
};

use crate::{
    document::{Audience, Block, Note, Section, Topic},
    num,
    table::Table,
};

/// Most loads shown of one frame size.
const LOADS: usize = 12;

/// Nodes at the throughput: of the smallest frames, which have the least to do with memory; in a file of all.
pub(crate) fn section(result: &RunResult) -> Section {
    let least = || result.sizes.iter().min_by_key(|s| s.frame_size_bytes);
    let notes = |lines: Vec<String>| Block::Notes(lines.into_iter().map(Note::plain).collect());
    Section::new(Topic::DataPlane, "Inside the data plane, at the throughput")
        .with(Audience::VERBOSE, Block::Table(nodes(result, least())))
        .with(Audience::VERBOSE, notes(sums(result, least())))
        .with(Audience::FILE, Block::Table(nodes(result, &result.sizes)))
        .with(Audience::FILE, notes(sums(result, &result.sizes)))
}

/// How the work of the data plane changes with the load.
pub(crate) fn load_section(result: &RunResult) -> Section {
    Section::new(Topic::DataPlaneByLoad, "The data plane by load").with(Audience::FILE, Block::Table(by_load(result)))
}

/// Frames a second that the data plane took in over a trial.
fn rate(trial: &TrialRecord, dut: &DutReport) -> f64 {
    dut.rx_frames as f64 / trial.real_duration_s.max(1e-9)
}

/// Clocks of polls that found frames, for each frame taken in.
fn clocks_per_frame(dut: &DutReport) -> f64 {
    dut.busy_clocks as f64 / dut.rx_frames.max(1) as f64
}

fn busy(dut: &DutReport) -> f64 {
    dut.busy_clocks as f64 / (dut.busy_clocks + dut.idle_clocks).max(1) as f64
}

fn vectors_per_call(dut: &DutReport) -> Option<f64> {
    let rx = dut.nodes.first()?;
    (rx.calls > 0).then(|| rx.vectors as f64 / rx.calls as f64)
}

/// The trial that stands for a frame size: that of its latency, or the valid one nearest to its throughput.
fn trial_of<'a>(result: &'a RunResult, size: &SizeResult) -> Option<(&'a TrialRecord, &'a DutReport)> {
    let own = || {
        let of_size = result
            .trials
            .iter()
            .filter(|t| size.trials.contains(&t.number) || Some(t.number) == size.at_throughput_trial);
        of_size.filter_map(|t| Some((t, t.dut.as_ref()?)))
    };
    let at = own().find(|(t, _)| Some(t.number) == size.at_throughput_trial);
    let wanted = size.throughput_fps?.get();
    let off = |t: &TrialRecord| (t.spec.load_fps.get() - wanted).abs();
    let one = at.or_else(|| own().filter(|(t, _)| t.valid()).min_by(|a, b| off(a.0).total_cmp(&off(b.0))));
    // Results of before these clocks were kept have nothing to add up.
    one.filter(|(_, dut)| dut.busy_clocks + dut.idle_clocks > 0)
}

/// A row a node and frame size: calls, vectors, clocks a vector, vectors a call, and the node's share of the core.
fn nodes<'a>(result: &RunResult, sizes: impl IntoIterator<Item = &'a SizeResult>) -> Table {
    let mut t = Table::default();
    t.right(0, "frame", "B");
    t.left(0, "node", "");
    t.right(1, "calls", "");
    t.right(1, "vectors", "frames");
    t.right(1, "clocks", "a vector");
    t.right(1, "vectors", "a call");
    t.right(1, "core", "%");
    for size in sizes {
        let Some((_, dut)) = trial_of(result, size) else { continue };
        let all = (dut.busy_clocks + dut.idle_clocks).max(1) as f64;
        for node in dut.nodes.iter().filter(|n| n.calls > 0) {
            t.row(vec![
                size.frame_size_bytes.to_string().into(),
                node.name.clone().into(),
                node.calls.to_string().into(),
                node.vectors.to_string().into(),
                format!("{:.1}", node.clocks as f64 / node.vectors.max(1) as f64).into(),
                format!("{:.1}", node.vectors as f64 / node.calls as f64).into(),
                format!("{:.1}", 100.0 * node.clocks as f64 / all).into(),
            ]);
        }
    }
    t
}

/// One line a frame size: that clocks a frame times frames a second, and what was idle, add up to the core.
fn sums<'a>(result: &RunResult, sizes: impl IntoIterator<Item = &'a SizeResult>) -> Vec<String> {
    let line = |size: &SizeResult| {
        let (trial, dut) = trial_of(result, size)?;
        let seconds = (dut.busy_clocks + dut.idle_clocks) as f64 / result.host.tsc_hz.max(1) as f64;
        let fps = dut.rx_frames as f64 / seconds.max(1e-9);
        Some(format!(
            "{}, trial {}: {:.1} clocks a frame x {} pps = {:.2} GHz of {:.2} GHz; {:.1} % busy, {:.1} % idle",
            size.frame_size_bytes.with_unit("B"),
            trial.number,
            clocks_per_frame(dut),
            num::pps(units::Fps::from_raw(fps)),
            clocks_per_frame(dut) * fps / 1e9,
            result.host.tsc_hz as f64 / 1e9,
            100.0 * busy(dut),
            100.0 * (1.0 - busy(dut)),
        ))
    };
    sizes.into_iter().filter_map(line).collect()
}

/// A row a load: how the data plane's work changes with it. Valid trials only, at most a dozen loads a frame size.
fn by_load(result: &RunResult) -> Table {
    let mut t = Table::default();
    t.right(0, "frame", "B");
    t.right(0, "load", "pps");
    t.right(1, "taken in", "pps");
    t.right(1, "clocks", "a frame");
    t.right(1, "vectors", "a call");
    t.right(1, "busy", "%");
    for size in &result.sizes {
        let mut trials: Vec<_> = result
            .trials
            .iter()
            .filter(|t| t.valid() && size.trials.contains(&t.number))
            .filter_map(|t| Some((t, t.dut.as_ref()?)))
            .filter(|(_, dut)| dut.busy_clocks > 0)
            .collect();
        trials.sort_by(|a, b| a.0.spec.load_fps.get().total_cmp(&b.0.spec.load_fps.get()));
        trials.dedup_by_key(|t| t.0.spec.load_fps.get().to_bits());
        // The highest ones are the interesting ones.
        let skip = trials.len().saturating_sub(LOADS);
        for (trial, dut) in trials.into_iter().skip(skip) {
            t.row(vec![
                size.frame_size_bytes.to_string().into(),
                num::pps(trial.spec.load_fps).into(),
                num::pps(units::Fps::from_raw(rate(trial, dut))).into(),
                format!("{:.1}", clocks_per_frame(dut)).into(),
                vectors_per_call(dut).map(|v| format!("{v:.1}")).into(),
                format!("{:.1}", 100.0 * busy(dut)).into(),
            ]);
        }
    }
    t
}
