//! Labels of the tests beside the throughput: name, whether the standard is met conditionally or not, each departure.

use std::time::Duration;

use units::Ratio;

use super::LabelFacts;
use crate::{
    plan::{BackToBackPlan, Method, Plan, ResetEvent, Test},
    procedure::{BackToBack, Found, Setting},
    result::{Compliance, StandardLabel},
};

/// Departures as they are found.
#[derive(Default)]
struct Label {
    name: String,
    departures: Vec<String>,
    /// Something that the standard says MUST be was not.
    must: bool,
}

impl Label {
    /// A departure from what the standard says SHOULD be.
    fn should(&mut self, when: bool, text: impl Into<String>) {
        if when {
            self.departures.push(text.into());
        }
    }

    /// A departure from what the standard says MUST be.
    fn must(&mut self, when: bool, text: impl Into<String>) {
        self.must |= when;
        self.should(when, text);
    }

    fn shorter(&mut self, given: Duration, least_s: u64, clause: &str) {
        let text = format!("trials of {} s instead of {least_s} s ({clause})", given.as_secs_f64());
        self.should(given.as_secs_f64() < least_s as f64, text);
    }
}

/// Label of a test, from its plan and what it was run with and found.
pub fn procedure(
    test: Test,
    plan: &Plan,
    setting: &Setting,
    found: &Found,
    facts: &LabelFacts,
) -> (StandardLabel, Compliance) {
    let mut label = Label::default();
    label.must(facts.simulated, "simulated: no frame was sent and no device measured");
    match test {
        Test::FrameLoss => frame_loss(&mut label, plan, setting, found),
        Test::BackToBack => back_to_back(&mut label, plan, found),
        Test::Recovery => recovery(&mut label, plan),
        Test::Reset => reset(&mut label, plan),
        Test::Bursty => bursty(&mut label, plan),
        Test::ForwardingRate => forwarding_rate(&mut label, plan, setting),
        Test::LatencyProfile => latency_profile(&mut label, plan, found),
        Test::Pdv => pdv(&mut label, plan),
        Test::Soak => label.name = "soak (no standard)".to_owned(),
        Test::Throughput | Test::Latency | Test::AddressCaching | Test::AddressLearning => {}
    }
    common(&mut label, test, plan, setting, facts);
    if facts.simulated {
        label.name = format!("simulation of {}", label.name);
    }
    let compliance = match (label.must, label.departures.is_empty()) {
        (true, _) => Compliance::Departs,
        (false, true) => Compliance::Unconditional,
        (false, false) => Compliance::Conditional,
    };
    (StandardLabel { name: label.name, departures: label.departures }, compliance)
}

/// Label of a test between three ports (RFC 2889 §5.7, §5.8).
pub fn addresses(test: Test, plan: &Plan, facts: &LabelFacts) -> (StandardLabel, Compliance) {
    let table = plan.addresses.clone().unwrap_or_default();
    let age = table.age.as_secs_f64();
    let (what, search) = match test {
        Test::AddressLearning => ("§5.8 address learning rate", format!("searched to {}", table.precision)),
        _ => (
            "§5.7 address caching capacity",
            format!("up to {} addresses offered at {}", table.most, table.learning_rate),
        ),
    };
    let name = format!("RFC 2889 {what}: {search}, {age} s of ageing before each round");
    let mut label = Label { name, ..Label::default() };
    label.should(
        test == Test::AddressCaching,
        "the highest number is tried, too; the loop of §5.7.3 takes it for a failure",
    );
    label.should(facts.repeated > 0, "invalid rounds repeated, none of them counted");
    label.should(facts.software_ports, "software ports instead of a physical link");
    let compliance = if label.departures.is_empty() { Compliance::Unconditional } else { Compliance::Conditional };
    (StandardLabel { name: label.name, departures: label.departures }, compliance)
}

/// What depends on the rig and on how trials are made.
fn common(label: &mut Label, test: Test, plan: &Plan, setting: &Setting, facts: &LabelFacts) {
    if let Some(mix) = setting.frame_size.mix() {
        label.should(true, super::mixed(mix));
    }
    if plan.needs_throughput(test) {
        match plan.throughput {
            Some(load) => label.must(true, format!("throughput given ({load}), not measured")),
            None => going_by(label, plan),
        }
    }
    let bursts = matches!(test, Test::BackToBack | Test::Bursty);
    let text = format!("bursts at {} instead of the line rate", setting.max);
    label.must(bursts && setting.line_rate.is_none_or(|line| setting.max.get() < line.get() * 0.999), text);
    let (residual, settle) = (plan.trust.residual, plan.trust.settle);
    let text = format!("{} s instead of 2 s of waiting for residual frames (RFC 2544 §23 d)", residual.as_secs_f64());
    label.should(residual.as_secs() < 2, text);
    let text = format!("{} s instead of 5 s between trials (RFC 2544 §23 e)", settle.as_secs_f64());
    label.should(settle.as_secs() < 5, text);
    let text = "no learning frames or routing updates before each trial (RFC 2544 §23 a, b)";
    label.should(!facts.learning_frames && !facts.simulated, text);
    let text = "invalid trials repeated, none of them counted";
    label.should(facts.repeated > 0, text);
    let text = "the host moved the cores: trials of one placement only are behind the figures";
    label.should(facts.several_placements, text);
    label.should(facts.software_ports, "software ports instead of a physical link");
    for text in super::trust(plan) {
        label.should(true, text);
    }
}

/// The throughput is part of the test: so are its own departures, in one line.
fn going_by(label: &mut Label, plan: &Plan) {
    let s = &plan.search;
    let by = match s.method {
        Method::Rfc2544 => None,
        Method::Tst009 => Some("binary search with loss verification".to_owned()),
        Method::Mlrsearch => Some("the first goal of MLRsearch".to_owned()),
    };
    if let Some(by) = by {
        label.should(true, format!("the throughput it goes by is of {by}, not RFC 2544 §26.1"));
    }
    let mlr = s.method == Method::Mlrsearch;
    let text = format!("the throughput it goes by tolerates a loss of {}", s.tolerated_loss);
    label.must(!mlr && s.tolerated_loss > Ratio::ZERO, text);
    let short = !mlr && s.duration.as_secs() < 60;
    let text = format!("the throughput it goes by is of trials of {} s instead of 60 s", s.duration.as_secs_f64());
    label.should(short, text);
}

fn sizes(label: &mut Label, plan: &Plan) {
    let missing = super::sizes_left_out(plan);
    let text = format!("frame sizes {} of RFC 2544 §9.1 left out", missing.as_deref().unwrap_or_default());
    label.should(missing.is_some(), text);
}

fn frame_loss(label: &mut Label, plan: &Plan, setting: &Setting, found: &Found) {
    label.name = "RFC 2544 §26.3 frame loss rate".to_owned();
    let table = plan.frame_loss.clone().unwrap_or_default();
    label.shorter(table.duration, 60, "§24");
    let text = format!("percentages of {}, the highest load, instead of the line rate", setting.max);
    label.must(setting.line_rate.is_none(), text);
    let (not_offered, without) = match found {
        Found::FrameLoss(curve) => (curve.not_offered_fps.len(), curve.without_figure.len()),
        _ => (0, 0),
    };
    let text = format!("{not_offered} loads of the curve are more than the tester offers");
    label.should(not_offered > 0, text);
    label.must(without > 0, format!("{without} loads of the curve are without a valid trial"));
    sizes(label, plan);
}

fn back_to_back(label: &mut Label, plan: &Plan, found: &Found) {
    let table = plan.back_to_back.clone().unwrap_or_default();
    let BackToBackPlan { limit, step, repetitions, retries, retry_max_lost } = table;
    let search = if retries == 0 {
        "TST009 §12.3.2 binary search".to_owned()
    } else {
        let z = retry_max_lost.map_or("infinity".to_owned(), |z| z.to_string());
        format!("TST009 §12.3.3 binary search with loss verification, r={}, z={z}", retries + 1)
    };
    label.name = format!(
        "RFC 9004 §6 back-to-back frames: {search}, N={repetitions}, step {step}, bursts up to {} s",
        limit.as_secs_f64()
    );
    let text = format!("{repetitions} searches averaged instead of 50 (RFC 2544 §26.4; RFC 9004 leaves N open)");
    label.should(repetitions < 50, text);
    let idle = plan.trust.settle;
    let text = format!("{} s instead of 2 s of idle time behind a burst (RFC 9004 §6.2)", idle.as_secs_f64());
    label.must(idle.as_secs() < 2, text);
    if let Found::BackToBack(BackToBack { drain_cut: true, longest_drain_s, .. }) = found {
        let text =
            format!("bursts that leave the buffer more slowly are waited for {longest_drain_s} s (RFC 9004 §6.2)");
        label.must(true, text);
    }
    let text =
        "bursts are as long as the search makes them, instead of trials of 2 s (RFC 2544 §26.4, before RFC 9004)";
    label.should(true, text);
    sizes(label, plan);
}

fn recovery(label: &mut Label, plan: &Plan) {
    let table = plan.recovery.clone().unwrap_or_default();
    label.name =
        "RFC 2544 §26.5 system recovery, time from A to B (the text subtracts them the wrong way round)".into();
    let text = format!("an overload of {} s instead of 60 s", table.overload.as_secs_f64());
    label.should(table.overload.as_secs() < 60, text);
    let text = format!("an overload of {} % instead of 110 % of the throughput", table.overload_percent);
    label.should((table.overload_percent - 110.0).abs() > 1e-9, text);
    label.should(table.repetitions < 2, "one trial instead of a number of them");
    sizes(label, plan);
}

fn reset(label: &mut Label, plan: &Plan) {
    let table = plan.reset.clone().unwrap_or_default();
    label.name = match table.event {
        ResetEvent::Process => "RFC 2544 §26.6, RFC 6201 §4.2.2 process reset",
        ResetEvent::Link => "RFC 2544 §26.6 reset, by a link that goes down and up",
        ResetEvent::Command => "RFC 2544 §26.6 reset, by a command",
    }
    .to_owned();
    label.should(table.event != ResetEvent::Process, "not one of the resets of RFC 6201 §4");
    let text =
        "resets of routing processor, line card, operating system and power are not caused (RFC 6201 §4, REQUIRED)";
    label.must(true, text);
}

fn bursty(label: &mut Label, plan: &Plan) {
    let table = plan.bursty.clone().unwrap_or_default();
    label.name = "RFC 2544 §21 bursty traffic".to_owned();
    label.shorter(table.duration, 60, "§24");
    let asked = [16, 64, 256, 1024];
    let missing: Vec<_> = asked.iter().filter(|n| !table.burst_sizes.contains(n)).map(ToString::to_string).collect();
    label.should(!missing.is_empty(), format!("bursts of {} frames left out", missing.join(", ")));
    label.should(true, format!("searched to {} of the mean load", table.precision));
    sizes(label, plan);
}

fn forwarding_rate(label: &mut Label, plan: &Plan, setting: &Setting) {
    let table = plan.forwarding_rate.clone().unwrap_or_default();
    label.name = format!(
        "RFC 2889 §5.6 maximum forwarding rate, RFC 2285 §3.6.2 FRMOL, steps of {} of the maximum offered load",
        table.step
    );
    label.shorter(table.duration, 30, "RFC 2889 §5.6.2");
    let text = format!("the maximum offered load is {}, below the line rate", setting.max);
    label.should(setting.line_rate.is_none_or(|line| setting.max.get() < line.get() * 0.999), text);
    sizes(label, plan);
}

fn latency_profile(label: &mut Label, plan: &Plan, found: &Found) {
    let table = plan.latency_profile.clone().unwrap_or_default();
    label.name = format!(
        "RFC 2544 §26.2 latency (RFC 1242 §3.8, store and forward), and at other loads; the idle load is {}",
        table.idle
    );
    let text = format!("a stream of {} s instead of 120 s", table.duration.as_secs_f64());
    label.should(table.duration.as_secs() < 120, text);
    label.must(table.repetitions < 20, format!("{} trials at the throughput instead of 20", table.repetitions));
    let no_full = !table.loads_percent.contains(&100.0);
    label.must(no_full, "no trial at the throughput itself");
    match found {
        Found::LatencyProfile(p) if p.tagged_ns.is_some() => {
            let text = format!(
                "instead of one tagged frame {} s into the stream, the median of the window of it: every frame is timed",
                p.tagged_at_s
            );
            label.should(true, text);
        }
        _ => label.must(!no_full, "no delay of a tagged frame"),
    }
    label.should(true, "time stamps of software, from handing a burst to the port to taking it from one");
    sizes(label, plan);
}

fn pdv(label: &mut Label, plan: &Plan) {
    let table = plan.pdv.clone().unwrap_or_default();
    label.name = format!(
        "RFC 5481 §4.1 IPDV and §4.2 PDV (99.9th percentile), over the whole and windows of {} s; IPDV pairs whose earlier \
         frame was lost are left out",
        table.window.as_secs_f64()
    );
    let text = format!("an interval of {} s instead of minutes (§8.4)", table.duration.as_secs_f64());
    label.should(table.duration.as_secs() < 60, text);
}
