//! Labels of the tests other than throughput: the name, how far the standard is met, each departure.

use units::{Fps, FrameSize, Frames, Ratio};

use super::{
    common::{mixed, sizes_left_out, trust},
    draft::Draft,
    facts::LabelFacts,
};
use crate::{
    plan::{BackToBackPlan, GoalSet, Method, Plan, ResetEvent, Test},
    procedure::{Found, Setting},
    result::{Compliance, StandardLabel},
};

/// Loads count as equal below this relative difference: intended and offered loads are rounded separately.
const SAME: f64 = 0.001;
/// Most characters of a command in a label. The plan has the whole command.
const LONGEST_COMMAND: usize = 80;

/// Label of a test, from its plan, its setting and its findings.
pub fn procedure(
    test: Test,
    plan: &Plan,
    setting: &Setting,
    found: &Found,
    facts: &LabelFacts,
) -> (StandardLabel, Compliance) {
    let mut label = Draft::of("", facts);
    match test {
        Test::FrameLoss => frame_loss(&mut label, plan, setting, found),
        Test::BackToBack => back_to_back(&mut label, plan, found),
        Test::Recovery => recovery(&mut label, plan, setting, found),
        Test::Reset => reset(&mut label, plan, setting, found),
        Test::Bursty => bursty(&mut label, plan),
        Test::ForwardingRate => forwarding_rate(&mut label, plan, setting, found),
        Test::LatencyProfile => latency_profile(&mut label, plan, found),
        Test::Pdv => pdv(&mut label, plan),
        Test::Soak => label.name = "soak (no standard)".to_owned(),
        Test::Throughput | Test::Latency | Test::AddressCaching | Test::AddressLearning => {}
    }
    common(&mut label, test, plan, setting, facts);
    label.finish(facts)
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
    let mut label = Draft::of(name, facts);
    label.should(
        test == Test::AddressCaching,
        "the highest number is tried too; the loop of §5.7.3 assumes that it fails",
    );
    label.should(facts.repeated > 0, "invalid rounds repeated, none of them counted");
    label.should(facts.software_ports, "software ports instead of a physical link");
    label.finish(facts)
}

/// Departures that depend on the rig and on how trials are made.
fn common(label: &mut Draft, test: Test, plan: &Plan, setting: &Setting, facts: &LabelFacts) {
    if let Some(mix) = setting.frame_size.mix() {
        label.should(true, mixed(mix));
    }
    if plan.needs_throughput(test) {
        match plan.throughput {
            Some(load) => label.must(true, format!("throughput given ({load}), not measured")),
            None => going_by(label, plan),
        }
    }
    let bursts = matches!(test, Test::BackToBack | Test::Bursty);
    let text = format!("bursts at {} instead of the line rate", setting.max);
    label.must(bursts && setting.line_rate.is_none_or(|line| setting.max.get() < line.get() * (1.0 - SAME)), text);
    let (residual, settle) = (plan.trust.residual, plan.trust.settle);
    let text = format!("{} s instead of 2 s of waiting for residual frames (RFC 2544 §23 d)", residual.as_secs_f64());
    label.should(residual.as_secs() < 2, text);
    let text = format!("{} s instead of 5 s between trials (RFC 2544 §23 e)", settle.as_secs_f64());
    label.should(settle.as_secs() < 5, text);
    label.prepared(facts, test == Test::ForwardingRate);
    let text = "invalid trials repeated, none of them counted";
    label.should(facts.repeated > 0, text);
    let text = "the host moved the cores: the figures come from trials of one placement only";
    label.should(facts.several_placements, text);
    label.should(facts.software_ports, "software ports instead of a physical link");
    for text in trust(plan) {
        label.should(true, text);
    }
}

/// Departures of the search for the throughput that the test uses.
fn going_by(label: &mut Draft, plan: &Plan) {
    let s = &plan.search;
    let by = match s.method {
        Method::Rfc2544 => None,
        Method::Tst009 => Some("binary search with loss verification".to_owned()),
        Method::Mlrsearch => Some("the first goal of MLRsearch".to_owned()),
    };
    if let Some(by) = by {
        label.should(true, format!("the throughput used comes from {by}, not from RFC 2544 §26.1"));
    }
    let mlr = s.method == Method::Mlrsearch;
    let goals = s.goals.clone().unwrap_or_default().set().unwrap_or_else(|_| GoalSet::csit());
    let goal = goals.goals().first().filter(|_| mlr);
    let (loss, duration) = goal.map_or((s.tolerated_loss, s.duration), |goal| (goal.loss_ratio, goal.final_duration));
    label.must(loss > Ratio::ZERO, format!("the throughput used tolerates a loss of {loss}"));
    if let Some(exceed) = goal.map(|goal| goal.exceed_ratio).filter(|exceed| *exceed > Ratio::ZERO) {
        label.should(true, format!("the throughput used tolerates more loss in trials of up to {exceed} of the time"));
    }
    let text = format!("the throughput used comes from trials of {} s instead of 60 s", duration.as_secs_f64());
    label.should(duration.as_secs() < 60, text);
}

fn sizes(label: &mut Draft, plan: &Plan) {
    let missing = sizes_left_out(plan);
    let text = format!("frame sizes {} of RFC 2544 §9.1 left out", missing.as_deref().unwrap_or_default());
    label.should(missing.is_some(), text);
}

fn frame_loss(label: &mut Draft, plan: &Plan, setting: &Setting, found: &Found) {
    label.name = "RFC 2544 §26.3 frame loss rate".to_owned();
    let table = plan.frame_loss.clone().unwrap_or_default();
    label.shorter(table.duration, 60, "§24");
    let text = format!("percentages of {}, the highest load, instead of the line rate", setting.max);
    label.must(setting.line_rate.is_none(), text);
    let (not_offered, without) = match found {
        Found::FrameLoss(curve) => (curve.not_offered_fps.len(), curve.without_figure.len()),
        _ => (0, 0),
    };
    let text = format!("the tester could not offer {not_offered} loads of the curve");
    label.should(not_offered > 0, text);
    label.must(without > 0, format!("{without} loads of the curve have no valid trial"));
    sizes(label, plan);
}

fn back_to_back(label: &mut Draft, plan: &Plan, found: &Found) {
    let table = plan.back_to_back.clone().unwrap_or_default();
    let BackToBackPlan { limit, step, repetitions, retries, retry_max_lost } = table;
    let search = if retries == 0 {
        "TST009 §12.3.2 binary search".to_owned()
    } else {
        let z = retry_max_lost.map_or("infinity".to_owned(), |z| z.to_string());
        format!("TST009 §12.3.3 binary search with loss verification, r={}, z={z}", retries + 1)
    };
    let asked_s = limit.as_secs_f64();
    let found = match found {
        Found::BackToBack(found) => Some(found),
        _ => None,
    };
    let n = found.map_or(repetitions, |f| f.bursts.len() as u32);
    let tried = found.map_or_else(
        || format!("{asked_s} s"),
        |f| format!("{} frames ({} s)", f.limit_frames, micros(f.limit_frames as f64 / f.rate_fps.get())),
    );
    label.name = format!("RFC 9004 §6 back-to-back frames: {search}, N={n}, step {step}, bursts up to {tried}");
    let searches = if n == 1 { "1 search".to_owned() } else { format!("{n} searches averaged") };
    label.should(n < 50, format!("{searches} instead of 50 (RFC 2544 §26.4; RFC 9004 leaves N open)"));
    let idle = plan.trust.settle;
    let text = format!("{} s instead of 2 s of idle time after a burst (RFC 9004 §6.2)", idle.as_secs_f64());
    label.must(idle.as_secs() < 2, text);
    if let Some(f) = found {
        // The limit is rounded down to whole steps.
        let lowered = ((f.limit_frames + f.step_frames) as f64) < f.rate_fps.get() * asked_s - 1.0;
        let text = format!("bursts of at most {tried} instead of {asked_s} s: the tester cannot send longer bursts");
        label.should(lowered, text);
        let text = "the figure is at or near the longest burst tried: repeat with longer bursts (RFC 9004 §6.2)";
        label.must(f.at_limit(), text);
        let text = format!("the wait for the frames of a burst is cut to {} s (RFC 9004 §6.2)", f.longest_drain_s);
        label.must(f.drain_cut, text);
    }
    let text = "the search sets the length of a burst, instead of trials of 2 s (RFC 2544 §26.4, before RFC 9004)";
    label.should(true, text);
    sizes(label, plan);
}

/// Seconds to the microsecond.
fn micros(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

fn recovery(label: &mut Draft, plan: &Plan, setting: &Setting, found: &Found) {
    let table = plan.recovery.clone().unwrap_or_default();
    label.name = "RFC 2544 §26.5 system recovery, time from A to B (the RFC subtracts them in reverse order)".into();
    let text = format!("an overload of {} s instead of 60 s", table.overload.as_secs_f64());
    label.should(table.overload.as_secs() < 60, text);
    if let Found::Recovery(found) = found {
        // Only the line rate may lower the overload, not the tester and not the plan.
        let (sent, throughput) = (found.overload_fps.get(), found.throughput_fps.get());
        let line = setting.line_rate.map_or(f64::INFINITY, |line| line.get());
        let percent = (sent / throughput * 1e4).round() / 1e2;
        let instead = match line < throughput * 1.1 {
            true => format!("the line rate ({})", Fps::from_raw(line)),
            false => "110 % of the throughput".to_owned(),
        };
        let asked = (throughput * 1.1).min(line);
        let text = format!("an overload of {percent} % instead of {instead}");
        label.should((sent / asked - 1.0).abs() > SAME, text);
        label.should(found.trials.len() < 2, "one trial instead of several");
    }
    sizes(label, plan);
}

fn reset(label: &mut Draft, plan: &Plan, setting: &Setting, found: &Found) {
    let table = plan.reset.clone().unwrap_or_default();
    let event = match table.event {
        ResetEvent::Process => "RFC 2544 §26.6, RFC 6201 §4.2.2 process reset; event: process",
        ResetEvent::Link => "RFC 2544 §26.6 reset; event: link down and up",
        ResetEvent::Command => "RFC 2544 §26.6 reset; event: command",
    };
    let by = match table.command.join(" ") {
        none if none.is_empty() => none,
        command if command.chars().count() > LONGEST_COMMAND => {
            format!(", by {} ...", command.chars().take(LONGEST_COMMAND).collect::<String>().trim_end())
        }
        command => format!(", by {command}"),
    };
    label.name = format!("{event}{by}");
    label.should(table.event != ResetEvent::Process, "not one of the resets of RFC 6201 §4");
    let text =
        "resets of routing processor, line card, operating system and power are not tested (RFC 6201 §4, REQUIRED)";
    label.must(true, text);
    let text = format!("{} s instead of 15 s of forwarding before the event (RFC 6201 §4.2.2)", table.at.as_secs_f64());
    label.should(table.at.as_secs() < 15, text);
    label.shorter(table.duration, 60, "RFC 2544 §24");
    if let Found::Reset(found) = found {
        label.should(found.trials.len() < 2, "one trial instead of multiple (RFC 6201 §1.4)");
    }
    let size = setting.frame_size;
    let text = format!("frames of {} instead of the smallest of Ethernet, 64 B (RFC 2544 §26.6)", size.with_unit("B"));
    label.should(size != Frames::Size(FrameSize::MIN), text);
}

fn bursty(label: &mut Draft, plan: &Plan) {
    let table = plan.bursty.clone().unwrap_or_default();
    label.name = "RFC 2544 §21 bursty traffic".to_owned();
    label.shorter(table.duration, 60, "§24");
    let asked = [16, 64, 256, 1024];
    let missing: Vec<_> = asked.iter().filter(|n| !table.burst_sizes.contains(n)).map(ToString::to_string).collect();
    label.should(!missing.is_empty(), format!("bursts of {} frames left out", missing.join(", ")));
    label.should(true, format!("searched to {} of the mean load", table.precision));
    sizes(label, plan);
}

fn forwarding_rate(label: &mut Draft, plan: &Plan, setting: &Setting, found: &Found) {
    let table = plan.forwarding_rate.clone().unwrap_or_default();
    label.name = format!(
        "RFC 2889 §5.6 maximum forwarding rate, RFC 2285 §3.6.2 FRMOL, steps of {} of the maximum offered load",
        table.step
    );
    label.shorter(table.duration, 30, "RFC 2889 §5.6.2");
    let mol = match found {
        Found::ForwardingRate(found) => found.mol_fps,
        _ => setting.max,
    };
    let below = |fps: Fps| mol.get() < fps.get() * (1.0 - SAME);
    match setting.line_rate {
        None => label.should(true, format!("the maximum offered load is {mol}: the line rate is not known")),
        Some(line) => label.should(below(line), format!("the maximum offered load is {mol}, below the line rate")),
    }
    let text = format!("the maximum offered load was lowered from {}: the tester cannot offer more", setting.max);
    label.should(below(setting.max), text);
    sizes(label, plan);
}

fn latency_profile(label: &mut Draft, plan: &Plan, found: &Found) {
    let table = plan.latency_profile.clone().unwrap_or_default();
    label.name = format!(
        "RFC 2544 §26.2 latency (RFC 1242 §3.8, store and forward), and at other loads; the idle load is {}",
        table.idle
    );
    let text = format!("a stream of {} s instead of 120 s", table.duration.as_secs_f64());
    label.should(table.duration.as_secs() < 120, text);
    let trials = match found {
        Found::LatencyProfile(p) => p.points.iter().find(|p| p.percent == Some(100.0)).map_or(0, |p| p.trials.len()),
        _ => table.repetitions as usize,
    };
    let text = format!("{trials} {} at the throughput instead of 20", if trials == 1 { "trial" } else { "trials" });
    label.must((1..20).contains(&trials), text);
    let no_full = !table.loads_percent.contains(&100.0);
    label.must(no_full, "no trial at the throughput itself");
    match found {
        Found::LatencyProfile(p) if p.tagged_ns.is_some() => {
            let text = format!(
                "every frame is timed: the median of a window, instead of one tagged frame {} s into the stream",
                p.tagged_at_s
            );
            label.should(true, text);
        }
        _ => label.must(!no_full, "the delay of a tagged frame was not measured"),
    }
    label.should(true, "software time stamps, when a burst is handed to a port and when it is received");
    sizes(label, plan);
}

fn pdv(label: &mut Draft, plan: &Plan) {
    let table = plan.pdv.clone().unwrap_or_default();
    label.name = format!(
        "RFC 5481 §4.1 IPDV and §4.2 PDV (99.9th percentile), over the whole trial and windows of {} s; IPDV leaves \
         out pairs whose earlier frame was lost",
        table.window.as_secs_f64()
    );
    let text = format!("an interval of {} s instead of minutes (§8.4)", table.duration.as_secs_f64());
    label.should(table.duration.as_secs() < 60, text);
}
