//! When a trial counts: the validity rules of `docs/trial-rules.md`, each with its evidence.
//!
//! Only what disturbs Linerate itself is held against a trial. A device under test outside has no interference record,
//! so whatever disturbs it is its loss.

use units::{Fps, Nanos, Ratio};

use crate::{
    plan::Trust,
    shape::{LoadShape, LATE_DEPARTURE_NS},
    trial::{DirectionCounts, LcoreInterference, LcoreRole, Purpose, Rule, TrialRecord, Violation},
};

/// Largest disagreement of TSC and CLOCK_MONOTONIC over a trial, parts per million, at which delays are believed.
pub const MAX_CLOCK_DRIFT_PPM: f64 = 500.0;

/// How much longer than asked the sending of one burst may take whatever its length, seconds. The tester skips frames of a
/// burst that are 20 us late; the rest is the turn of its loop in which it does.
pub const BURST_SLACK_S: f64 = 50e-6;

/// Most percent of a steady load, or of one in bursts, that the tester may fail to offer where the load need not be exact.
const COUNTS_AS_OFFERED_PERCENT: u64 = 5;

/// What a trial is judged on.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// The trial; its own `violations` are not read.
    pub trial: &'a TrialRecord,
    /// The thresholds.
    pub trust: &'a Trust,
    /// Whether the TSC is invariant.
    pub tsc_invariant: bool,
    /// The tester's self-test maximum for this frame size per direction, when it was measured.
    pub selftest_max: Option<Fps>,
}

/// What a trial was made under.
#[derive(Debug, Clone, Copy)]
pub struct Conditions<'a> {
    /// The thresholds.
    pub trust: &'a Trust,
    /// Whether the TSC is invariant.
    pub tsc_invariant: bool,
    /// The tester's self-test maximum for this frame size per direction, when it was measured.
    pub selftest_max: Option<Fps>,
    /// Two cores were in use, and placements of theirs are known: both probes should have given a latency.
    pub probes_expected: bool,
}

/// The shortest time between two polls that can lose frames: a quarter of what the receive ring holds at this rate,
/// within 20 to 100 us. Shorter ones are the ring's to absorb. At low rates it is not the ring that sets the limit but
/// the burst that follows: the tester makes up for at most 100 us, and a policer or a shaper may take less than a ring.
pub fn gap_threshold_ns(rate_fps: f64, rx_ring: u32) -> u64 {
    let ns = f64::from(rx_ring) / (4.0 * rate_fps) * 1e9;
    if ns.is_finite() {
        ns.clamp(20_000.0, 100_000.0) as u64
    } else {
        100_000
    }
}

/// One rule: what was seen and what to do about it, when it was broken.
type Check = fn(&Evidence<'_>) -> Option<(Rule, String)>;

/// Every rule that the trial broke, in the order of [`Rule`].
pub fn judge(evidence: &Evidence<'_>) -> Vec<Violation> {
    let whole: [Check; 9] =
        [tester_short, late, stretched, tester_limited, interrupted, stalled, counters, clock, moved];
    // Slices say themselves which of them count, if any: a trial is not discarded for what happened in the others.
    let slices: [Check; 2] = [counters, clock];
    // Of delays they do not: frames that wait for the tester, or for the device while it is away, are among them.
    let delays: [Check; 3] = [counters, clock, stalled];
    let spec = &evidence.trial.spec;
    let checks: &[Check] = match (spec.by_slices, spec.purpose) {
        (true, Purpose::AtThroughput) => &delays,
        (true, _) => &slices,
        (false, _) => &whole,
    };
    checks.iter().filter_map(|check| check(evidence)).map(|(rule, text)| Violation { rule, text }).collect()
}

/// Judges a trial: records its violations, and takes out what they make worthless. Delays go with a clock that cannot be
/// trusted, the placement goes with a probe that got no answer.
pub fn settle(trial: &mut TrialRecord, conditions: &Conditions<'_>) {
    let Conditions { trust, tsc_invariant, selftest_max, probes_expected } = *conditions;
    let mut violations = judge(&Evidence { trial, trust, tsc_invariant, selftest_max });
    let seen = &mut trial.interference;
    if probes_expected
        && !trial.spec.by_slices
        && (seen.core_to_core_before_ns.is_none() || seen.core_to_core_after_ns.is_none())
    {
        seen.placement = None;
        let text =
            "the other core did not answer the probe, so the placement of the cores is unknown: keep its CPU free";
        violations.push(Violation { rule: Rule::Moved, text: text.to_owned() });
    }
    if violations.iter().any(|v| v.rule == Rule::Clock) {
        trial.directions.iter_mut().for_each(|d| (d.latency, d.windows) = (None, Vec::new()));
    }
    trial.violations = violations;
}

/// The violation of a trial that a signal ended before its time.
pub fn cut_short(trial: &TrialRecord) -> Violation {
    let (real, asked) = (trial.real_duration_s, trial.spec.duration_s);
    let text = format!("stopped by a signal after {real:.3} s of {asked} s: frames that were under way count as lost");
    Violation { rule: Rule::Stretched, text }
}

/// Whether a trial shows that the tester cannot offer the load: it fell short, and its own polling gaps
/// explain less than half of the frames it did not send. Whatever else disturbed the trial does not matter for that.
pub fn beyond_tester(trial: &TrialRecord) -> bool {
    let skipped: u64 = trial.directions.iter().map(|d| d.skipped).sum();
    fell_short(trial) && frames_in_gaps(trial, |l| l.role == LcoreRole::Tester) < skipped as f64 / 2.0
}

/// Whether the tester offered less than the load: more than is tolerated, or of a trial that counts at what was offered.
pub fn fell_short(trial: &TrialRecord) -> bool {
    (trial.spec.at_offered && trial.least_offered() < 1.0)
        || trial.violations.iter().any(|v| v.rule == Rule::TesterShort)
}

/// Frames that may have been due while lcores were away, summed over lcores and directions.
fn frames_in_gaps(trial: &TrialRecord, counted: impl Fn(&LcoreInterference) -> bool) -> f64 {
    let lcores = trial.interference.lcores.iter().filter(|l| counted(l));
    let frames: f64 = lcores.map(|l| due_within(trial, Nanos(l.total_gap_ns).seconds(), l.gaps)).sum();
    frames * trial.directions.len() as f64
}

/// The most frames of one direction that were due within `seconds` seconds, made up of `gaps` gaps.
fn due_within(trial: &TrialRecord, seconds: f64, gaps: u64) -> f64 {
    let (load, shape) = (trial.spec.load_fps, trial.spec.shape);
    let most = shape.peak(load).get() * seconds;
    match shape {
        LoadShape::Steady | LoadShape::Step { .. } | LoadShape::Replay { .. } => most,
        LoadShape::Burst { frames } => most.min(frames as f64),
        // A short gap holds a burst at most, and a long one what the load asks for besides.
        LoadShape::Bursts { frames, .. } => most.min(gaps as f64 * f64::from(frames) + load.get() * seconds),
    }
}

/// Frames lost or refused that polling gaps and the tester's own ports may explain.
fn explained(trial: &TrialRecord) -> f64 {
    let missed: u64 = trial.directions.iter().filter_map(|d| d.port_missed).sum();
    frames_in_gaps(trial, |_| true) + missed as f64
}

/// Whether the device lost more than tolerated of the part of the load that was offered, whatever disturbed the trial.
fn failed_anyway(trial: &TrialRecord) -> bool {
    let intended: u64 = trial.directions.iter().map(|d| d.intended).sum();
    let unexplained = trial.lost() as f64 - explained(trial);
    trial.spec.tolerated_loss.is_some_and(|tolerated| unexplained > tolerated.get() * intended as f64)
}

/// Whether the trial passes every goal of its search with all that was lost, whoever lost it.
fn passed_anyway(trial: &TrialRecord) -> bool {
    trial.spec.passing_loss.is_some_and(|most| trial.loss_ratio() <= most.get())
}

/// The share of the load that the tester may fail to offer. A trial whose load need not be exact counts at the load that was
/// offered (RFC 2285 §3.5.2, RFC 2889 §4): one at a steady load, or in bursts. That of a binary search does if it
/// passes: the device has shown that it passes what was offered.
fn tolerated_shortfall(e: &Evidence<'_>) -> Ratio {
    let spec = &e.trial.spec;
    let counts_as_offered = match (spec.shape, spec.purpose) {
        (LoadShape::Steady | LoadShape::Bursts { .. }, Purpose::Test | Purpose::Single) => true,
        (LoadShape::Steady, Purpose::Search) => spec.at_offered && passed_anyway(e.trial),
        _ => false,
    };
    let most = Ratio::of(COUNTS_AS_OFFERED_PERCENT, 100);
    match counts_as_offered && e.trust.offered_tolerance < most {
        true => most,
        false => e.trust.offered_tolerance,
    }
}

fn tester_short(e: &Evidence<'_>) -> Option<(Rule, String)> {
    if failed_anyway(e.trial) {
        return None;
    }
    let tolerated = tolerated_shortfall(e);
    let short = |d: &&DirectionCounts| d.skipped as f64 > d.intended as f64 * tolerated.get();
    let d = e.trial.directions.iter().filter(short).max_by_key(|d| d.skipped)?;
    let text = format!(
        "the tester did not offer {} of {} frames due from {} ({}, allowed {}): its core is too slow or was taken away; \
         lower the load, use larger frames, or give it a core of its own",
        d.skipped,
        d.intended,
        d.from,
        Ratio::of(d.skipped, d.intended),
        tolerated
    );
    Some((Rule::TesterShort, text))
}

/// The frames of a replay are all sent; too many of them late are not the capture's timing.
fn late(e: &Evidence<'_>) -> Option<(Rule, String)> {
    let replays = e.trial.directions.iter().filter_map(|d| Some((d, d.replay.as_ref()?)));
    let (d, replay) = replays.max_by_key(|(_, replay)| replay.late_departures)?;
    if replay.late_departures as f64 <= d.intended as f64 * e.trust.offered_tolerance.get() {
        return None;
    }
    let text = format!(
        "{} of {} frames left {} more than {} after they were due, the latest {} ({}, allowed {}): the tester's core is too \
         slow or was taken away; replay more slowly, or give it a core of its own",
        replay.late_departures,
        d.intended,
        d.from,
        Nanos(LATE_DEPARTURE_NS),
        Nanos(replay.lateness_max_ns),
        Ratio::of(replay.late_departures, d.intended),
        e.trust.offered_tolerance
    );
    Some((Rule::TesterShort, text))
}

fn stretched(e: &Evidence<'_>) -> Option<(Rule, String)> {
    let (real, asked) = (e.trial.real_duration_s, e.trial.spec.duration_s);
    let off = (real - asked) / asked;
    let (tolerance, burst) = (e.trust.duration_tolerance, matches!(e.trial.spec.shape, LoadShape::Burst { .. }));
    let slack = if burst { BURST_SLACK_S / asked } else { 0.0 };
    // Not a number counts as off.
    if off.abs() <= tolerance.get().max(slack) {
        return None;
    }
    let allowed = if slack > tolerance.get() { "50 us".to_owned() } else { tolerance.to_string() };
    let text = format!(
        "sending took {real:.6} s instead of {asked} s ({:+.2} %, allowed {allowed}): the tester was stopped or its clock \
         jumped; keep other work off its core, or send for longer",
        off * 100.0
    );
    Some((Rule::Stretched, text))
}

fn tester_limited(e: &Evidence<'_>) -> Option<(Rule, String)> {
    let load = match e.trial.spec.shape {
        // The tester counts the frames of a burst that leave in time. The self-test does not describe so short a time.
        LoadShape::Burst { .. } => return None,
        LoadShape::Steady | LoadShape::Bursts { .. } | LoadShape::Replay { .. } => e.trial.spec.load_fps,
        LoadShape::Step { .. } => e.trial.spec.shape.peak(e.trial.spec.load_fps),
    };
    let most = e.selftest_max?;
    if load.get() <= most.get() * (1.0 + e.trust.offered_tolerance.get()) {
        return None;
    }
    let text = format!(
        "the load of {load} is above the {most} this tester reached in its self-test at {}: lower the load, or \
         use a faster core",
        e.trial.spec.frame_size_bytes.with_unit("bytes")
    );
    Some((Rule::TesterLimited, text))
}

fn interrupted(e: &Evidence<'_>) -> Option<(Rule, String)> {
    // Refused frames too: a queue fills while the built-in DUT is away, or after the tester was and catches up.
    let lost = e.trial.lost();
    // Frames that our own port had no room for did come back.
    let missed: u64 = e.trial.directions.iter().filter_map(|d| d.port_missed).sum();
    if passed_anyway(e.trial) {
        return None;
    }
    if lost > 0 && missed >= lost {
        let text = format!(
            "{lost} frames were lost or refused and the tester's own ports missed {missed}: it received too slowly; lower \
             the load, or give the ports more --descriptors"
        );
        return Some((Rule::Interrupted, text));
    }
    let explained = explained(e.trial);
    if lost == 0 || explained < lost as f64 {
        return None;
    }
    let worst = e.trial.interference.lcores.iter().max_by_key(|l| l.total_gap_ns)?;
    let all: u64 = e.trial.interference.lcores.iter().map(|l| l.total_gap_ns).sum();
    let text = format!(
        "{lost} frames were lost or refused and polling gaps explain up to {explained:.0}: {} away in all, most of it on {} \
         ({} in {} gaps, the largest {}); {}",
        Nanos(all),
        place(worst),
        Nanos(worst.total_gap_ns),
        worst.gaps,
        Nanos(worst.largest_gap_ns),
        match taker(worst) {
            Taker::Unknown => "isolate its CPU, or leave it to Linerate".to_owned(),
            known => known.to_string(),
        }
    );
    Some((Rule::Interrupted, text))
}

fn stalled(e: &Evidence<'_>) -> Option<(Rule, String)> {
    let worst = e.trial.interference.lcores.iter().max_by_key(|l| l.largest_gap_ns)?;
    let most = Nanos::from(e.trust.max_gap);
    if worst.largest_gap_ns <= most.0 {
        return None;
    }
    let text = format!(
        "{} did not poll for {}, {} into the trial (allowed {most}): the load was not what was asked; {}",
        place(worst),
        Nanos(worst.largest_gap_ns),
        Nanos(worst.largest_gap_at_ns),
        taker(worst)
    );
    Some((Rule::Stalled, text))
}

fn counters(e: &Evidence<'_>) -> Option<(Rule, String)> {
    let wrong = e.trial.directions.iter().find_map(|d| {
        let way = format!("{} -> {}", d.from, d.to);
        let due = d.sent.saturating_add(d.refused).saturating_add(d.skipped);
        if d.received > d.sent {
            Some(format!("{way}: {} frames came back of {} sent", d.received, d.sent))
        } else if d.lost != d.sent - d.received {
            Some(format!("{way}: {} sent, {} received, yet {} lost", d.sent, d.received, d.lost))
        } else if due.abs_diff(d.intended) > 1 {
            // One frame is the rounding of load times duration.
            let parts = format!("{} sent, {} refused, {} skipped", d.sent, d.refused, d.skipped);
            Some(format!("{way}: {} frames were due, but {parts}", d.intended))
        } else if d.intended == 0 {
            Some(format!("{way}: no frame was due in {} s", e.trial.spec.duration_s))
        } else {
            None
        }
    });
    let none = e.trial.directions.is_empty().then(|| "no direction was counted".to_owned());
    let text = format!(
        "counts do not add up ({}): frames of another trial or sender, or a fault of the tester; wait longer between \
         trials (trust.residual), and keep other senders off the ports",
        wrong.or(none)?
    );
    Some((Rule::Counters, text))
}

fn clock(e: &Evidence<'_>) -> Option<(Rule, String)> {
    let drift = e.trial.interference.clock_drift_ppm;
    let remedy = "delays are withheld, loss still counts; boot with a TSC the kernel trusts (clocksource=tsc)";
    if !e.tsc_invariant {
        return Some((Rule::Clock, format!("the TSC is not invariant: {remedy}")));
    }
    if drift.abs() <= MAX_CLOCK_DRIFT_PPM {
        return None;
    }
    let text = format!(
        "TSC and CLOCK_MONOTONIC drifted {drift:+.0} ppm apart (allowed {MAX_CLOCK_DRIFT_PPM:.0} ppm): {remedy}"
    );
    Some((Rule::Clock, text))
}

fn moved(e: &Evidence<'_>) -> Option<(Rule, String)> {
    let seen = &e.trial.interference;
    let (before, after) = (seen.core_to_core_before_ns?, seen.core_to_core_after_ns?);
    if seen.placement.is_some() {
        return None;
    }
    let text = format!(
        "a cache line took {before:.0} ns from core to core before the trial and {after:.0} ns after it: the host moved \
         the cores; pin the virtual CPUs on the host, or send for a shorter time"
    );
    Some((Rule::Moved, text))
}

/// Who had the CPU of an lcore while it was away, as far as the kernel counts.
enum Taker {
    /// Other threads, for so long.
    Threads(Nanos),
    /// Mostly nobody that the kernel knows of: other threads for so long only.
    Machine(Nanos),
    Unknown,
}

impl std::fmt::Display for Taker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Threads(time) => {
                write!(f, "other programs had its CPU for {time}: isolate it, or leave it to Linerate")
            }
            Self::Machine(time) => {
                let others = match time.0 {
                    0 => "no other program had its CPU".to_owned(),
                    _ => format!("other programs had its CPU for only {time}"),
                };
                write!(
                    f,
                    "{others}, so the host of this machine, interrupts or the firmware took it: keep its physical CPU free"
                )
            }
            Self::Unknown => f.write_str("something else ran on its CPU or the host took it, keep it free"),
        }
    }
}

/// Who took most of the time in which an lcore was away.
fn taker(l: &LcoreInterference) -> Taker {
    match l.waited_ns {
        None => Taker::Unknown,
        Some(waited) if waited >= l.total_gap_ns.max(l.largest_gap_ns) / 2 => Taker::Threads(Nanos(waited)),
        Some(waited) => Taker::Machine(Nanos(waited)),
    }
}

/// `the tester's lcore 1 (CPU 3)`.
fn place(l: &LcoreInterference) -> String {
    let whose = if l.role == LcoreRole::Dut { "the data plane's" } else { "the tester's" };
    let cpu = l.cpu.map(|c| format!(" (CPU {c})")).unwrap_or_default();
    format!("{whose} lcore {}{cpu}", l.lcore)
}

#[cfg(test)]
mod tests;
