//! The columns of each layout.

use measure::{
    plan::Needs,
    result::{RunResult, SizeResult},
};
use units::{derived, rate, FrameSize, Frames};

use super::kind::Layout;
use crate::{
    figures::{self, Rates, Shown},
    num,
    table::{Cell, Table},
    text, words,
};

/// What a column shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// Frame size in bytes, FCS included.
    Size,
    /// `U1: Unidirectional 64b`.
    Loadtest,
    /// Frames/s summed over directions, whole.
    Pps,
    /// The same in millions, or with a prefix.
    Mpps,
    ShortPps,
    /// Frames/s of each direction in millions.
    MppsEachWay,
    /// Layer 1 in whole Mbit/s, cut as the two-VM document does, or rounded as the ONP report does.
    MbpsCut,
    MbpsRounded,
    /// Layer 2 without the FCS, and layer 1, with a prefix.
    L2NoFcs,
    L1,
    /// Percent of line rate with so many decimals.
    Percent(usize),
    /// Delays in nanoseconds or microseconds.
    MinNs,
    AvgNs,
    MaxNs,
    MinUs,
    AvgUs,
    MaxUs,
    /// Frames/s that the switch of the topology handles.
    Switching,
    /// Cycles a frame of the built-in device's core.
    Cycles,
}

/// A column: what it shows, and its name over its unit.
pub(super) struct Column(pub(super) What, &'static str, &'static str);

impl Column {
    pub(super) fn add_to(&self, table: &mut Table) {
        match self.0 {
            What::Loadtest => table.left(0, self.1, self.2),
            What::Size => table.right(0, self.1, self.2),
            _ => table.right(1, self.1, self.2),
        }
    }
}

pub(super) fn of(layout: Layout, results: &[&RunResult]) -> Vec<Column> {
    use What::*;
    let mut columns = match layout {
        Layout::Nfvi => vec![
            Column(Size, "Packet", "size B"),
            Column(Pps, "Average", "PPS"),
            Column(MbpsCut, "Average", "Mbps"),
            Column(Percent(2), "Average", "throughput %"),
            Column(AvgUs, "Latency", "avg us"),
            Column(MinUs, "Latency", "min us"),
            Column(MaxUs, "Latency", "max us"),
        ],
        Layout::Onp => vec![
            Column(Size, "Packet", "Size"),
            Column(MbpsRounded, "Mbps", ""),
            Column(Pps, "Packets/sec", ""),
            Column(Percent(0), "% Line", "Rate"),
            Column(AvgNs, "Average", "lat. (ns)"),
            Column(MinNs, "Minimum", "lat. (ns)"),
            Column(MaxNs, "Maximum", "lat. (ns)"),
        ],
        Layout::Router => vec![
            Column(Loadtest, "Loadtest", ""),
            Column(L2NoFcs, "L2", "bits/sec"),
            Column(L1, "L1", "bits/sec"),
            Column(ShortPps, "Packets/sec", ""),
            Column(Percent(1), "% of", "Line-Rate"),
        ],
        Layout::Flowlog => vec![
            Column(Size, "Packet", "size B"),
            Column(Mpps, "Rate", "MPPS"),
            Column(MppsEachWay, "each way", "MPPS"),
            Column(L1, "L1", "bits/sec"),
            Column(Percent(1), "% of full", "bandwidth"),
            Column(Cycles, "cycles", "a packet"),
            Column(MinUs, "Latency", "min us"),
            Column(AvgUs, "Latency", "avg us"),
            Column(MaxUs, "Latency", "max us"),
        ],
    };
    if layout == Layout::Onp && results.iter().any(|r| needs(r).switching_operations().is_some()) {
        columns.push(Column(Switching, "Switching", "packets/sec"));
    }
    columns
}

pub(super) fn title(layout: Layout, results: &[&RunResult]) -> String {
    let both = results.iter().filter(|r| r.directions > 1).count();
    let ways = match both {
        0 => "one way",
        n if n == results.len() => "both ways",
        _ => "one way or both",
    };
    match layout {
        Layout::Nfvi => format!("L3 forwarding throughput, {ways} (layout of the two-VM document)"),
        Layout::Onp => format!("Throughput and latency, {ways} (layout of the ONP report)"),
        Layout::Router => "Load tests (layout of the small-router document)".to_owned(),
        Layout::Flowlog => format!("Rates, {ways} (layout of the flow logger's document)"),
    }
}

pub(super) fn note(layout: Layout) -> Option<&'static str> {
    match layout {
        Layout::Nfvi => Some("figures of one run, summed over the ports; the document averages five"),
        Layout::Router => Some("L2 leaves out the FCS, as in the document; % of Line-Rate is L1 over the links loaded"),
        Layout::Onp | Layout::Flowlog => None,
    }
}

/// Needs as the result stores them with its plan; none where they cannot be read.
fn needs(result: &RunResult) -> Needs {
    let stored = result.effective_plan.get("needs").cloned();
    stored.and_then(|n| serde_json::from_value(n).ok()).unwrap_or_default()
}

/// `router-u1`, or what stands behind the colon in `onp-phy-ovs-phy:1-flow`, without `(quick)`.
pub(super) fn run_name(result: &RunResult) -> String {
    let name = text::clean(&result.plan_name);
    let name = name.trim_end_matches(" (quick)");
    name.rsplit_once(':').map_or(name, |(_, run)| run).to_owned()
}

/// One frame size of one result, with what is derived of it.
pub(super) struct Row<'a> {
    result: &'a RunResult,
    size: &'a SizeResult,
    pub(super) shown: Shown,
    pub(super) rates: Option<Rates>,
    latency: Option<(u64, f64, u64)>,
}

impl<'a> Row<'a> {
    pub(super) fn of(result: &'a RunResult, size: &'a SizeResult) -> Self {
        let shown = Shown::of(size, result.link_bps);
        let rates = shown.rate().map(|r| Rates::new(r, size.frame_size_bytes, result.directions, result.link_bps));
        Self { result, size, shown, rates, latency: rates.and(figures::latency(&size.at_throughput)) }
    }

    pub(super) fn frames(&self) -> Frames {
        self.size.frame_size_bytes
    }

    /// Whether the links set the figure.
    pub(super) fn at_line_rate(&self) -> bool {
        figures::at_line_rate(self.size, self.result.link_bps)
    }

    pub(super) fn outcome(&self) -> Cell {
        let link = self.result.link_bps;
        Cell::painted(words::outcome(self.size, link), words::outcome_paint(self.size, link))
    }

    /// A dash where the result has nothing to fill the column with.
    pub(super) fn cell(&self, column: &Column) -> Cell {
        self.text(column.0).unwrap_or_else(|| "-".to_owned()).into()
    }

    pub(super) fn text(&self, what: What) -> Option<String> {
        let rates = self.rates;
        let sum = rates.map(|r| r.sum.get());
        let mega = |v: f64| format!("{:.2}", v / 1e6);
        let prefixed = |v: f64| units::si(v).trim_end().to_owned();
        let latency = |pick: fn((u64, f64, u64)) -> f64| self.latency.map(pick);
        let ns = |v: f64| num::thousands(v.round() as u64);
        match what {
            What::Size => Some(self.frames().to_string()),
            What::Loadtest => Some(self.loadtest()),
            What::Pps => Some(self.at_least(num::pps(rates?.sum))),
            What::Mpps => Some(self.at_least(mega(sum?))),
            What::ShortPps => Some(self.at_least(prefixed(sum?))),
            What::MppsEachWay => rates.map(|r| mega(r.per_direction.get())),
            What::MbpsCut => rates.map(|r| num::thousands((r.l1_bps / 1e6) as u64)),
            What::MbpsRounded => rates.map(|r| num::thousands((r.l1_bps / 1e6).round() as u64)),
            What::L2NoFcs => rates.map(|r| prefixed(rate::l2_bps_without_fcs(r.sum, self.frames()))),
            What::L1 => rates.map(|r| prefixed(r.l1_bps)),
            What::Percent(decimals) => rates?.line_percent.map(|p| format!("{p:.decimals$}")),
            What::MinNs => latency(|l| l.0 as f64).map(ns),
            What::AvgNs => latency(|l| l.1).map(ns),
            What::MaxNs => latency(|l| l.2 as f64).map(ns),
            What::MinUs => latency(|l| l.0 as f64).map(num::us),
            What::AvgUs => latency(|l| l.1).map(num::us),
            What::MaxUs => latency(|l| l.2 as f64).map(num::us),
            What::Switching => {
                let operations = needs(self.result).switching_operations()?;
                Some(num::pps(derived::switching_rate(rates?.sum, operations)))
            }
            What::Cycles => rates.and(self.cycles()).map(|c| format!("{c:.0}")),
        }
    }

    /// A figure that only the highest load limited.
    fn at_least(&self, figure: String) -> String {
        match self.shown {
            Shown::AtLeast(_) => format!(">= {figure}"),
            _ => figure,
        }
    }

    /// `U1: Unidirectional 1514b`; the letter and number are the plan's.
    fn loadtest(&self) -> String {
        let ways = if self.result.directions > 1 { "Bidirectional" } else { "Unidirectional" };
        let name = run_name(self.result);
        let test = match name.strip_prefix("router-") {
            Some(test) => test.to_uppercase(),
            None => text::clip(&name, 24),
        };
        let mpls = self.result.effective_plan.pointer("/traffic/mpls").and_then(serde_json::Value::as_array);
        let flows = self.result.effective_plan.pointer("/traffic/flows").and_then(serde_json::Value::as_u64);
        let kind = match (mpls.is_some_and(|labels| !labels.is_empty()), flows) {
            (true, _) => " MPLS",
            (false, Some(1)) => " Single",
            (false, Some(_)) if self.frames() == FrameSize::MIN => " Multi",
            _ => "",
        };
        let frames = self.frames().size().map_or_else(|| self.frames().to_string(), |size| format!("{size}b"));
        format!("{test}: {ways} {frames}{kind}")
    }

    /// Cycles that the built-in device's core was busy for a frame, at the throughput.
    fn cycles(&self) -> Option<f64> {
        let trial = self.result.trials.iter().find(|t| Some(t.number) == self.size.at_throughput_trial)?;
        let dut = trial.dut.as_ref().filter(|d| d.busy_clocks > 0)?;
        derived::cycles_per_frame(dut.busy_clocks as f64, dut.rx_frames as f64)
    }
}
