//! Hand-made results. The figures are made up but belong together: counts add up and rates follow from them.

use std::path::PathBuf;

use measure::{
    plan::Test,
    power::{self, Power},
    procedure::*,
    result::*,
    schema::device::DeviceRecord,
    search::mlr::{GoalResult, GoalSet, Regularity, SearchGoal},
    trial::*,
};
use report::{csv, markdown, run, terminal, Detail, Style};
use serde_json::json;
use units::{Fps, FrameSize, LinkSpeed};

/// What a terminal shows of a result.
pub fn text(result: &RunResult, detail: Detail, style: &Style, files: &[PathBuf]) -> String {
    terminal::render(&run::document(result, []), detail, style, files)
}

/// The same in short.
pub fn short(result: &RunResult, style: &Style) -> String {
    text(result, Detail::Short, style, &[])
}

/// The same with every statement.
pub fn verbose(result: &RunResult, style: &Style) -> String {
    text(result, Detail::Verbose, style, &[])
}

/// The result as Markdown.
pub fn page(result: &RunResult) -> String {
    markdown::render(&run::document(result, []))
}

/// One line for each figure of a test.
pub fn csv_tests(result: &RunResult) -> String {
    csv::tests(&run::document(result, []))
}

pub fn size(bytes: u32) -> FrameSize {
    FrameSize::new(bytes).unwrap()
}

pub fn fps(rate: f64) -> Fps {
    Fps::new(rate).unwrap()
}

pub fn link(text: &str) -> Option<LinkSpeed> {
    Some(text.parse().unwrap())
}

/// Delays that rise with every nine from a base.
pub fn latency(base_ns: u64, frames: u64) -> LatencySummary {
    let at = |percent: u64| base_ns * percent / 100;
    let histogram = vec![
        (base_ns, frames / 10),
        (at(130), frames / 2 - frames / 10),
        (at(180), frames * 4 / 10),
        (at(240), frames * 9 / 100),
        (at(400), frames * 9 / 1000),
        (at(900), frames / 1000 - 1),
        (at(2500), 1),
    ];
    LatencySummary {
        frames,
        min_ns: base_ns,
        avg_ns: base_ns as f64 * 1.375,
        max_ns: at(2500),
        p50_ns: at(130),
        p90_ns: at(180),
        p99_ns: at(240),
        p99_9_ns: at(400),
        p99_99_ns: at(900),
        p99_999_ns: at(900),
        pdv_p99_9_ns: at(300),
        ipdv: Some(IpdvSummary {
            pairs: frames - 1,
            min_ns: -(at(150) as i64),
            p5_ns: -(at(20) as i64),
            p50_ns: 0,
            p95_ns: at(20) as i64,
            max_ns: at(150) as i64,
            mean_abs_ns: base_ns as f64 / 12.0,
        }),
        histogram,
    }
}

pub fn direction(from: &str, to: &str, size: FrameSize, sent: u64, lost: u64) -> DirectionCounts {
    DirectionCounts {
        from: from.into(),
        to: to.into(),
        intended: sent,
        sent,
        received: sent - lost,
        lost,
        received_bytes: (sent - lost) * u64::from(size.bytes()),
        port_tx: Some(sent),
        port_rx: Some(sent - lost),
        port_missed: Some(0),
        tx_span_s: 1.0,
        latency: Some(latency(2_000 + u64::from(size.bytes()) * 4, 1_000_000)),
        ..Default::default()
    }
}

pub fn trial(number: u32, bytes: u32, load: f64, purpose: Purpose, lost: u64) -> TrialRecord {
    TrialRecord {
        number,
        spec: TrialSpec::steady(size(bytes), fps(load), 1.0, purpose),
        attempt: 1,
        real_duration_s: 1.0,
        directions: vec![direction("wire:a", "wire:b", size(bytes), load as u64, lost)],
        interference: Interference {
            lcores: vec![
                LcoreInterference {
                    role: LcoreRole::Tester,
                    lcore: 1,
                    cpu: Some(0),
                    scheduling: None,
                    busy_ns: None,
                    largest_gap_ns: 12_400,
                    largest_gap_at_ns: 231_000_000,
                    total_gap_ns: 12_400,
                    gaps: 1,
                    gap_threshold_ns: 10_000,
                    steal_ns: Some(0),
                    waited_ns: Some(3_000),
                    involuntary_switches: Some(2),
                    interrupts: Some(1_004),
                    frequency_mhz: None,
                    throttles: None,
                },
                LcoreInterference {
                    role: LcoreRole::Dut,
                    lcore: 2,
                    cpu: Some(1),
                    largest_gap_ns: 3_100,
                    gap_threshold_ns: 10_000,
                    ..Default::default()
                },
            ],
            core_to_core_before_ns: Some(61.0),
            core_to_core_after_ns: Some(63.5),
            placement: Some(0),
            device_waited_ns: None,
            clock_drift_ppm: 1.25,
        },
        dut: Some(DutReport {
            rx_frames: load as u64,
            tx_frames: load as u64 - lost,
            drops: [("tx-full".to_owned(), lost)].into(),
            nodes: vec![NodeReport { name: "l3-lookup".into(), calls: 9, vectors: 300, clocks: 4_000 }],
            ..DutReport::default()
        }),
        switch_threads: Vec::new(),
        evidence: None,
        power: None,
        violations: vec![],
    }
}

/// A server with two processors; the machine itself has a meter.
pub fn with_power(mut r: RunResult) -> RunResult {
    let power = |package, dram, system, celsius: [f64; 2], throttled| Power {
        measured_s: 1.006,
        package_watts: Some(package),
        dram_watts: Some(dram),
        system_watts: Some(system),
        sensor_watts: [("ina226 12 V".to_owned(), 4.5)].into(),
        temperatures_celsius: [("Package id 0".to_owned(), celsius[0]), ("enp59s0f0 asic".to_owned(), celsius[1])]
            .into(),
        throttle_events: Some(throttled),
        ..Power::default()
    };
    let idle = power(92.125, 11.25, 160.0, [45.0, 52.0], 0);
    let loaded = [power(164.5, 17.75, 241.0, [71.5, 64.0], 3), power(160.375, 17.5, 236.0, [69.0, 66.0], 0)];
    for (trial, power) in r.trials.iter_mut().zip(loaded) {
        trial.power = Some(power::of_trial(power, Some(&idle), trial.received(), trial.real_duration_s));
    }
    r.host.idle_power = Some(idle);
    r.host.extra.insert("power".into(), "package: intel-rapl; dram: intel-rapl; system: power_meter".into());
    r
}

pub fn violated(mut trial: TrialRecord, rule: Rule, text: &str) -> TrialRecord {
    trial.violations.push(Violation { rule, text: text.into() });
    trial
}

pub fn found(bytes: u32, rate: f64, directions: u32) -> SizeResult {
    let names = [("wire:a", "wire:b"), ("wire:b", "wire:a")];
    let at = names
        .iter()
        .take(directions as usize)
        .map(|(from, to)| direction(from, to, size(bytes), rate as u64, 0))
        .collect();
    SizeResult {
        frame_size_bytes: size(bytes).into(),
        outcome: Outcome::Found,
        throughput_fps: Some(fps(rate)),
        upper_bound_fps: Some(fps(rate * 1.005)),
        answer: None,
        standard: StandardLabel {
            name: "RFC 2544 §26.1 throughput".into(),
            departures: vec!["trials of 1 s, where §24 asks for 60 s".into()],
        },
        compliance: Some(Compliance::Conditional),
        latency_standard: Some(StandardLabel {
            name: "RFC 2544 §26.2 latency".into(),
            departures: vec!["one trial instead of 20".into()],
        }),
        latency_compliance: Some(Compliance::Departs),
        placement: Some(Placement { class: 0, core_to_core_ns: 62.0 }),
        other_placements: vec![],
        core_to_core: Some(CoreToCore { median_ns: 62.0, min_ns: 58.0, max_ns: 66.0 }),
        at_throughput_trial: Some(2),
        at_throughput: at,
        trials: vec![1, 2],
        invalid_trials: 0,
        diagnosis: None,
        goals: vec![],
    }
}

/// A size searched for CSIT's goals; the second is as regular as said.
pub fn of_goals(bytes: u32, ndr: f64, pdr: Regularity) -> SizeResult {
    let goal = |goal: &SearchGoal, rate: f64, regularity| GoalResult {
        goal: SearchGoal { initial_duration: Some(goal.final_duration), ..goal.clone() },
        regularity,
        lower_fps: Some(fps(rate)),
        upper_fps: (regularity == Regularity::Regular).then(|| fps(rate * 1.004)),
        conditional_throughput_fps: Some(fps(rate * (1.0 - goal.loss_ratio.get() / 2.0))),
        trials: vec![1, 2],
        trial_s: 2.0,
    };
    let csit = GoalSet::csit();
    let goals = vec![goal(&csit.goals()[0], ndr, Regularity::Regular), goal(&csit.goals()[1], ndr * 1.1, pdr)];
    SizeResult { goals, ..found(bytes, ndr, 1) }
}

/// MLRsearch of two sizes, one of them with an irregular result.
pub fn mlrsearch() -> RunResult {
    result(vec![of_goals(64, 9.5e6, Regularity::Regular), of_goals(1518, 8.1e6, Regularity::AtMaximum)])
}

/// A size for which no figure may be shown.
pub fn nothing(bytes: u32, outcome: Outcome) -> SizeResult {
    SizeResult {
        outcome,
        throughput_fps: None,
        upper_bound_fps: None,
        placement: None,
        at_throughput_trial: None,
        at_throughput: vec![],
        latency_standard: None,
        latency_compliance: None,
        ..found(bytes, 1e6, 1)
    }
}

pub fn result(sizes: Vec<SizeResult>) -> RunResult {
    let port = |name: &str, mac: &str| PortFacts {
        name: name.into(),
        driver: "net_ring".into(),
        mac: mac.into(),
        link_bps: None,
        descriptors: (1024, 1024),
    };
    RunResult {
        schema: SCHEMA.into(),
        linerate_version: "0.1.0".into(),
        plan_name: "rfc2544-quick".into(),
        started_at: "2026-03-01T12:00:00Z".into(),
        elapsed_s: 83.4,
        host: HostFacts {
            hostname: "bench1".into(),
            kernel: "6.1.0-18-amd64".into(),
            cpu_model: "Example CPU @ 2.60GHz".into(),
            cpus_allowed: 2,
            hypervisor: Some("KVM".into()),
            dpdk_version: "22.11.4".into(),
            memory: "no hugepages".into(),
            tsc_hz: 2_600_000_000,
            tsc_invariant: true,
            idle_power: None,
            findings: None,
            extra: [("governor".to_owned(), "performance".to_owned())].into(),
        },
        dut: "built-in l3 over wire".into(),
        lab: None,
        dut_name: None,
        device: DeviceRecord::Plane { function: "l3".into(), impairment: None, tx_policy: None, routes: 0 },
        ports: vec![port("wire:a", "02:00:00:00:00:01"), port("wire:b", "02:00:00:00:00:02")],
        link_bps: None,
        directions: 1,
        effective_plan: json!({ "name": "rfc2544-quick", "search": { "loss_ratio": 0.0, "precision": 0.005 } }),
        selftest: vec![
            SelfTestPoint {
                frame_size_bytes: size(64).into(),
                max_fps: fps(25.4e6),
                cycles_per_frame: 102.4,
                pair: pair(SelfTestKind::Memif),
            },
            SelfTestPoint {
                frame_size_bytes: size(1518).into(),
                max_fps: fps(18.1e6),
                cycles_per_frame: 143.6,
                pair: pair(SelfTestKind::SoftwareCable),
            },
        ],
        mixes: Vec::new(),
        sizes,
        tests: Vec::new(),
        trials: vec![trial(1, 64, 14e6, Purpose::Search, 1_200), trial(2, 64, 12.3e6, Purpose::AtThroughput, 0)],
        timeline: None,
        warnings: vec![Warning {
            kind: WarningKind::NoHugepages,
            text: "no hugepages are free, so rates are lower: echo 512 | sudo tee /proc/sys/vm/nr_hugepages".into(),
        }],
        standing: Standing::Completed,
    }
}

/// One way over 10G at the seven sizes; large frames reach the line rate.
pub fn ten_gig() -> RunResult {
    let ten = link("10G");
    let mut all: Vec<SizeResult> = FrameSize::RFC2544
        .iter()
        .map(|s| {
            let line = ten.unwrap().line_rate(*s).get();
            let mut one = found(s.bytes(), line.min(12.3e6 - f64::from(s.bytes()) * 500.0), 1);
            if one.throughput_fps == Some(fps(line)) {
                one.outcome = Outcome::AtMaximum;
                one.upper_bound_fps = None;
            }
            one
        })
        .collect();
    all[0].other_placements.push(PlacementAnswer {
        placement: Placement { class: 1, core_to_core_ns: 340.0 },
        outcome: Outcome::Interrupted,
        throughput_fps: Some(fps(5.8e6)),
        upper_bound_fps: Some(fps(6.4e6)),
        trials: 6,
    });
    RunResult { link_bps: ten, ..result(all) }
}

pub fn both_ways() -> RunResult {
    let sizes = vec![found(64, 6.15e6, 2), found(1518, 812_743.0, 2)];
    let mut r = RunResult { link_bps: link("10G"), directions: 2, ..result(sizes) };
    r.sizes[0].at_throughput[1].duplicates = 3;
    r.sizes[0].at_throughput[1].reordered = 17;
    r
}

/// Seven outcomes and no link speed: whatever is not an answer must not look like one.
pub fn every_outcome() -> RunResult {
    let mut limited = found(64, 12.3e6, 1);
    limited.outcome = Outcome::TesterLimited;
    limited.upper_bound_fps = None;
    let mut inconclusive = nothing(256, Outcome::Inconclusive);
    inconclusive.throughput_fps = Some(fps(8.1e6));
    inconclusive.upper_bound_fps = Some(fps(14.2e6));
    inconclusive.invalid_trials = 9;
    let mut silent = nothing(512, Outcome::NoTraffic);
    silent.diagnosis = Some(
        "sent 1,000,000 frames from wire:a, links up, 0 came back stamped and 12 unstamped at wire:b: \
         the DUT has no route to 198.19.0.0/16"
            .into(),
    );
    let mut stopped = nothing(1280, Outcome::Interrupted);
    stopped.throughput_fps = Some(fps(2e6));
    let mut below = nothing(1024, Outcome::BelowMinimum);
    below.upper_bound_fps = Some(fps(1_000.0));
    let mut r = result(vec![limited, found(128, 11.9e6, 1), inconclusive, silent, below, stopped]);
    r.trials = (1..=12)
        .map(|n| {
            let t = trial(n, 256, 10e6, Purpose::Search, 4_000);
            match n {
                1..=6 => violated(
                    t,
                    Rule::Interrupted,
                    "tester lcore 1 was away 4.1 ms, which explains 4,000 lost frames: give it a CPU of its own",
                ),
                7..=9 => violated(t, Rule::Moved, "core to core 62 ns before and 338 ns after"),
                10 => violated(t, Rule::Clock, "TSC off by 912 ppm"),
                _ => t,
            }
        })
        .collect();
    r.standing = Standing::NotTrustworthy;
    r
}

/// `linerate trial`, discarded.
pub fn invalid_trial() -> RunResult {
    let mut one = trial(1, 64, 1e6, Purpose::Single, 37);
    one.directions.push(direction("wire:b", "wire:a", size(64), 1_000_000, 0));
    one.directions[1].latency = None;
    one.directions[1].foreign = 5;
    let text = "tester lcore 1 was away 37.2 us at 231 ms, which explains 37 lost frames: give it a CPU of its own";
    let mut r = result(vec![]);
    r.trials = vec![violated(one, Rule::Interrupted, text)];
    r.directions = 2;
    r.standing = Standing::NotTrustworthy;
    r
}

/// Every string that comes from outside tries to break the document it lands in.
pub fn hostile() -> RunResult {
    let evil = "\u{1b}[2J|<script>alert(1)</script>\"&'`x`\u{202e}\r\n# heading\u{9b}31m";
    let mut r = both_ways();
    r.plan_name = evil.into();
    r.dut = evil.into();
    r.dut_name = Some(evil.into());
    r.started_at = evil.into();
    r.linerate_version = evil.into();
    r.host.hostname = evil.into();
    r.host.cpu_model = evil.into();
    r.host.extra.insert(evil.into(), evil.into());
    r.ports[0].name = evil.into();
    r.ports[0].driver = evil.into();
    r.warnings[0].text = evil.into();
    r.effective_plan = json!({ evil: format!("``` {evil}") });
    r.sizes[0].standard.name = evil.into();
    r.sizes[0].standard.departures = vec![evil.into()];
    r.sizes[0].diagnosis = Some(evil.into());
    r.sizes[0].at_throughput[0].from = evil.into();
    r.trials[0].directions[0].to = evil.into();
    r.trials[0].violations.push(Violation { rule: Rule::Interrupted, text: evil.into() });
    r
}

/// Every test beside the throughput at 64 bytes, each with one of everything.
pub fn tests() -> RunResult {
    let spread = |mean: f64| Some(Spread { n: 20, mean, stddev: 0.0, min: mean, max: mean });
    let trend = Some(Trend { points: 9, per_hour: 5.0, per_hour_error: 0.5, mean: 9.0 });
    let rate = fps(1e7);
    let point = LossPoint { load_fps: rate, percent: 100.0, loss_ratio: 0.328, forwarding_fps: rate, trial: 1 };
    let b2b = BackToBack {
        limit_frames: 29_761_904,
        bursts: vec![3121],
        frames: spread(3121.0),
        implied_buffer_s: Some(2e-4),
        corrected_buffer_s: Some(7e-5),
        corrected_buffer_frames: Some(1024.0),
        actual_buffer_s: Some(1e-4),
        ..BackToBack::default()
    };
    let recovered = RecoveryTrial { trial: 1, recovery_s: Some(0.05), lost: 9 };
    let reset = ResetTrial { trial: 1, command: Some("exit status: 0 after 0.40 s".into()), ..ResetTrial::default() };
    let burst = BurstPoint {
        burst_frames: 16,
        outcome: TestOutcome::Done,
        interval_s: Some(1e-6),
        load_fps: Some(rate),
        upper_bound_fps: Some(rate),
    };
    let forwarded = ForwardingPoint { iload_fps: rate, oload_fps: rate, fr_fps: rate, trial: 1 };
    let delays = LatencyPoint { percent: Some(100.0), load_fps: rate, trials: vec![1], ..LatencyPoint::default() };
    let spreads =
        WindowSpread { min_ns: spread(1e3).unwrap(), pdv_p99_9_ns: spread(2e3).unwrap(), ipdv_range_ns: spread(3e3) };
    let way = PdvDirection { from: "a".into(), to: "b".into(), windows: Some(spreads), ..PdvDirection::default() };
    let segment = Segment {
        trial: 1,
        from_s: 0.0,
        lost: 9,
        forwarding_fps: rate,
        p50_ns: Some(1),
        p99_9_ns: Some(2),
        max_ns: Some(3),
    };
    let all = [
        (
            Test::FrameLoss,
            Found::FrameLoss(FrameLoss {
                theoretical_fps: rate,
                points: vec![point],
                not_offered_fps: vec![rate],
                without_figure: vec![NoPoint { load_fps: rate, percent: 80.0, reason: "away".to_owned() }],
            }),
        ),
        (Test::BackToBack, Found::BackToBack(b2b)),
        (
            Test::Recovery,
            Found::Recovery(Recovery { trials: vec![recovered], recovery_s: spread(0.05), ..Recovery::default() }),
        ),
        (Test::Reset, Found::Reset(Reset { trials: vec![reset], by_loss_s: spread(2.0), ..Reset::default() })),
        (Test::Bursty, Found::Bursty(Bursty { burst_fps: rate, bursts: vec![burst] })),
        (
            Test::ForwardingRate,
            Found::ForwardingRate(ForwardingRate { points: vec![forwarded], ..ForwardingRate::default() }),
        ),
        (
            Test::LatencyProfile,
            Found::LatencyProfile(LatencyProfile {
                points: vec![delays],
                tagged_at_s: 60.0,
                tagged_ns: spread(12_500.0),
                ..LatencyProfile::default()
            }),
        ),
        (Test::Pdv, Found::Pdv(Pdv { directions: vec![way], ..Pdv::default() })),
        (
            Test::Soak,
            Found::Soak(Soak { delay_ns: trend, rate_fps: trend, segments: vec![segment], ..Soak::default() }),
        ),
    ];
    let answer = |(test, found)| TestResult {
        test,
        frame_size_bytes: size(64).into(),
        outcome: if test == Test::Soak { TestOutcome::Failed } else { TestOutcome::Done },
        reason: (test == Test::Soak).then(|| "9 frames were lost".to_owned()),
        standard: StandardLabel { name: "RFC 0000".to_owned(), departures: vec!["software ports".to_owned()] },
        compliance: Compliance::Conditional,
        trials: vec![1],
        invalid_trials: 0,
        found,
    };
    let tests = all.map(answer).to_vec();
    let standing = measure::standing::of_run(&[], &tests, false);
    RunResult { tests, standing, ..result(Vec::new()) }
}

/// A pair of a self-test: stable over memif, and a software cable for ports that cannot be joined.
fn pair(kind: SelfTestKind) -> Option<SelfTestPair> {
    let cable = kind == SelfTestKind::SoftwareCable;
    Some(SelfTestPair {
        kind,
        lower_fps: fps(if cable { 12.0e6 } else { 14.9e6 }),
        upper_fps: fps(if cable { 18.1e6 } else { 15.1e6 }),
        passes: if cable { 10 } else { 3 },
        stable: !cable,
        fallback: cable.then(|| "ports of this kind cannot be joined".to_owned()),
    })
}
