//! Judgements over records of every kind, hostile ones too.

use units::Fps;

use super::*;
use crate::schema::{
    evidence::SliceEvidence,
    result::HostFacts,
    timeline::{Absence, Party, Slice, Timeline},
};

fn gap(from_us: u64, us: u64) -> Gap {
    Gap { from_ns: from_us * 1000, to_ns: (from_us + us) * 1000 }
}

fn polled(cpu: u32, gaps: &[Gap]) -> Polled {
    Polled { cpu, ns: 1_000_000, gaps: gaps.to_vec(), overflowed: false }
}

fn full(fps: f64) -> FullLoad {
    FullLoad { fps: Fps::from_raw(fps), deviation: 0.02, slice_s: 1e-4, clean_s: 0.05, aside_s: 0.05 }
}

fn evidence(load: f64, lost: u64) -> SliceEvidence {
    SliceEvidence { clean_s: 0.08, aside_s: 0.02, offered_fps: Fps::from_raw(load), lost, ..SliceEvidence::default() }
}

/// Two quiet cores on which nothing is to be improved.
fn quiet() -> CheckResult {
    let core = |cpu| CoreNoise { cpu, seconds: 1.0, ..CoreNoise::default() };
    let mut trials =
        CheckTrials { full_load: vec![full(20e6), full(20.01e6), full(20.02e6)], ..CheckTrials::default() };
    for mpps in [1e6, 20e6] {
        load(&mut trials.loads, Fps::from_raw(mpps), &evidence(mpps, 0));
    }
    load(&mut trials.loads, Fps::from_raw(50e6), &evidence(30e6, 7));
    CheckResult {
        cpus: vec![0, 1],
        cores: vec![core(0), core(1)],
        together: Some(TogetherNoise { cores: vec![core(0), core(1)], ..TogetherNoise::default() }),
        trials: Some(trials),
        state: MachineState { hugepages: true, ..MachineState::default() },
        ..CheckResult::default()
    }
}

/// The same with something changed on each core that the trials used.
fn with(change: impl Fn(&mut CoreNoise)) -> CheckResult {
    let mut result = quiet();
    result.together.iter_mut().flat_map(|t| &mut t.cores).for_each(change);
    result
}

fn first(mut result: CheckResult) -> Option<CauseKind> {
    judge(&mut result, false);
    assert!(result.causes.iter().all(|c| c.share.is_none_or(f64::is_finite)), "{:?}", result.causes);
    result.causes.first().map(|cause| cause.kind)
}

#[test]
fn the_noise_of_a_core_is_that_of_its_gaps() {
    let noise = noise(&polled(3, &[gap(100, 5), gap(200, 3), gap(300, 50), gap(900, 20)]));
    assert_eq!((noise.cpu, noise.gaps, noise.absences), (3, 4, 2));
    assert_eq!((noise.p50_ns, noise.p99_ns, noise.largest_ns), (Some(5000), Some(50_000), Some(50_000)));
    assert!((noise.away_share - 0.078).abs() < 1e-9 && (noise.absence_share - 0.07).abs() < 1e-9, "{noise:?}");
    assert!((noise.longest_clean_s - 550e-6).abs() < 1e-9 && (noise.gaps_per_s - 4000.0).abs() < 1e-6, "{noise:?}");
}

#[test]
fn a_core_without_gaps_or_without_time_has_no_percentiles() {
    let none = noise(&polled(0, &[]));
    assert_eq!((none.p50_ns, none.largest_ns, none.away_share), (None, None, 0.0));
    assert!((none.longest_clean_s - 1e-3).abs() < 1e-12);
    let empty = noise(&Polled::default());
    assert_eq!((empty.gaps_per_s, empty.away_share, empty.longest_clean_s), (0.0, 0.0, 0.0));
    // A gap that lasts longer than the time polled, and one that runs backwards.
    let odd = noise(&Polled { gaps: vec![gap(0, 5000), Gap { from_ns: 9, to_ns: 2 }], ..polled(0, &[]) });
    assert_eq!((odd.away_share, odd.longest_clean_s), (1.0, 0.0));
    assert_eq!(both(&[], Vec::new()), TogetherNoise::default());
}

#[test]
fn full_notes_speak_only_of_the_time_that_they_cover() {
    let full = Polled { overflowed: true, ..polled(0, &[gap(100, 10), gap(500, 500)]) };
    let noise = noise(&full);
    assert_eq!((noise.gaps, noise.largest_ns), (1, Some(10_000)));
    assert!((noise.seconds - 500e-6).abs() < 1e-12 && (noise.away_share - 0.02).abs() < 1e-9, "{noise:?}");
    assert!((noise.longest_clean_s - 500e-6).abs() < 1e-12, "{noise:?}");
}

#[test]
fn together_both_must_be_there() {
    let (a, b) = (polled(0, &[gap(100, 100), gap(700, 5)]), polled(1, &[gap(150, 100), gap(600, 50)]));
    let both = both(&[a, b], Vec::new());
    assert!((both.both_there_share - 0.8).abs() < 1e-9, "{both:?}");
    assert!((both.longest_clean_s - 350e-6).abs() < 1e-12, "{both:?}");
}

#[test]
fn a_load_is_clean_when_half_of_its_trials_pass() {
    let mut loads = Vec::new();
    for (mpps, lost) in [(5e6, 0), (2e6, 0), (5e6, 3), (9e6, 1), (9e6, 0), (9e6, 1)] {
        load(&mut loads, Fps::from_raw(mpps), &evidence(mpps, lost));
    }
    let seen: Vec<_> = loads.iter().map(|l| (l.load_fps.get(), l.trials, l.passed, l.is_clean())).collect();
    assert_eq!(seen, [(2e6, 1, 1, true), (5e6, 2, 1, true), (9e6, 3, 1, false)]);
    assert_eq!(highest_clean(&loads), Some(Fps::from_raw(5e6)));
    assert!((loads[1].clean_share - 0.8).abs() < 1e-9 && loads[1].lost == 3, "{:?}", loads[1]);
    // Not offered in full, too few slices, no slices at all.
    let mut bad = Vec::new();
    load(&mut bad, Fps::from_raw(5e6), &evidence(4e6, 0));
    load(&mut bad, Fps::from_raw(6e6), &SliceEvidence { clean_s: 0.009, aside_s: 0.091, ..evidence(6e6, 0) });
    load(&mut bad, Fps::from_raw(7e6), &SliceEvidence::default());
    load(&mut bad, Fps::from_raw(f64::NAN), &evidence(f64::NAN, 0));
    assert_eq!(highest_clean(&bad), None);
    assert!(bad.iter().all(|l| (0.0..=1.0).contains(&l.clean_share)), "{bad:?}");
    assert_eq!(highest_clean(&[]), None);
}

#[test]
fn full_load_counts_slices_in_which_nobody_was_away() {
    let slice = |received| Slice { sent: 200, received, ..Slice::default() };
    let absences = vec![Absence { who: Party::Device, from_s: 20.2e-4, to_s: 22.1e-4 }];
    let slices = (0..42).map(|i| slice(if (20..23).contains(&i) { 0 } else { 99 + 2 * (i % 2) })).collect();
    let timeline = Timeline { slice_s: 1e-4, directions: vec![slices], absences };
    let full = full_load(&timeline, 40e-4).unwrap();
    // 40 slices, without two at the start, and without 19 to 24.
    assert!((full.clean_s - 32e-4).abs() < 1e-9 && (full.aside_s - 8e-4).abs() < 1e-9, "{full:?}");
    assert!((full.fps.get() - 1e6).abs() < 1.0 && (full.deviation - 0.01016).abs() < 1e-4, "{full:?}");
    assert_eq!(full_load(&timeline, 9e-4), None);
    assert_eq!(full_load(&Timeline::default(), 1.0), None);
    assert_eq!(full_load(&Timeline { slice_s: f64::NAN, ..timeline.clone() }, 1.0), None);
    let silent = Timeline { directions: vec![vec![slice(0); 40]], absences: Vec::new(), ..timeline };
    assert_eq!(full_load(&silent, 40e-4), None);
}

#[test]
fn the_precision_is_that_of_its_formula() {
    // Slices differ and trials do not: 1.96 * 0.02 / sqrt(0.5 * 60 / 2 / 1e-4).
    let slices = FullLoad { deviation: 0.5, ..full(10e6) };
    let p = expected(&[slices; 3], 60.0).unwrap();
    assert!((p.by_slices - 1.96 * 0.5 / (0.5f64 * 60.0 / 2.0 / 1e-4).sqrt()).abs() < 1e-12, "{p:?}");
    assert!((p.by_trials, p.width) == (0.0, 2.0 * p.by_slices), "{p:?}");
    // Never below what clocks and bursts allow.
    assert_eq!(expected(&[full(10e6); 3], 60.0).unwrap().width, 1e-3);
    // Trials differ by 1 % (median distance): 4.303 * 0.014826 / sqrt(12), as their slices explain nothing.
    let steady = |fps| FullLoad { deviation: 0.0, ..full(fps) };
    let p = expected(&[steady(9.9e6), steady(10e6), steady(10.1e6)], 60.0).unwrap();
    assert!((p.by_trials - 4.303 * 0.014826 / 12f64.sqrt()).abs() < 1e-9 && p.by_slices == 0.0, "{p:?}");
    // One trial of many that went wrong does not decide.
    let p = expected(&[9.99e6, 10e6, 10e6, 10.01e6, 2e6].map(steady), 60.0).unwrap();
    assert!(p.by_trials < 2e-3, "{p:?}");
    // What slices explain is not counted twice: 1.5 % is what 50 slices of 10.5 % leave open.
    let noisy = |fps| FullLoad { deviation: 0.105, clean_s: 50e-4, aside_s: 0.0, ..full(fps) };
    let p = expected(&[noisy(9.9e6), noisy(10e6), noisy(10.1e6)], 60.0).unwrap();
    assert!(p.by_trials < 1e-4, "{p:?}");
}

#[test]
fn no_precision_without_evidence() {
    assert_eq!(expected(&[], 60.0), None);
    assert_eq!(expected(&[full(1e6); 2], 60.0), None);
    let rare = FullLoad { clean_s: 0.005, aside_s: 0.095, ..full(1e6) };
    assert_eq!(expected(&[rare; 4], 60.0), None, "nearly always away");
    let nan = FullLoad { deviation: f64::NAN, ..full(1e6) };
    assert_eq!(expected(&[nan, full(1e6), full(1e6)], 60.0), None);
    let still = FullLoad { fps: Fps::from_raw(0.0), clean_s: f64::INFINITY, ..full(1e6) };
    assert_eq!(expected(&[still; 3], 60.0), None);
    assert_eq!(expected(&[full(1e6); 3], f64::NAN), None);
    assert_eq!(expected(&[full(1e6); 3], 0.0), None);
}

#[test]
fn widths_are_rounded_up() {
    let round = |width| precision::rounded_up(width);
    assert_eq!([1e-4, 1e-3, 1.1e-3, 0.004, 0.05, 0.3].map(round), [1e-3, 1e-3, 2e-3, 5e-3, 0.05, 0.5]);
    assert!(round(7.0).is_infinite() && round(f64::NAN).is_infinite());
}

#[test]
fn the_conclusion_says_how_good_up_to_where() {
    let mut good = quiet();
    judge(&mut good, false);
    assert_eq!((good.answer.standing, good.answer.good_for), (Standing::Completed, Some(0.001)));
    assert_eq!(good.answer.clean_load_fps, Some(Fps::from_raw(20e6)));
    assert_eq!(good.causes, []);
    insta::assert_snapshot!(good.answer.conclusion, @"this machine: good for 0.1 % within a minute up to 20.00 Mpps");
    let mut cut = quiet();
    judge(&mut cut, true);
    assert_eq!(cut.answer.standing, Standing::Stopped);
    let mut wild = quiet();
    wild.trials.as_mut().unwrap().full_load = vec![full(1e6), full(40e6), full(2e6)];
    judge(&mut wild, false);
    assert_eq!((wild.answer.standing, wild.answer.good_for), (Standing::NotTrustworthy, None));
    assert!(wild.answer.precision.is_some_and(|p| p.width > 0.5), "{:?}", wild.answer);
    let mut few = quiet();
    few.trials.as_mut().unwrap().full_load.truncate(2);
    judge(&mut few, false);
    assert_eq!((few.answer.standing, few.answer.precision), (Standing::NotTrustworthy, None));
    let mut lossy = quiet();
    lossy.trials.as_mut().unwrap().loads.iter_mut().for_each(|l| l.passed = 0);
    judge(&mut lossy, false);
    assert_eq!((lossy.answer.standing, lossy.answer.clean_load_fps), (Standing::NotTrustworthy, None));
    let mut nothing = CheckResult::default();
    judge(&mut nothing, false);
    assert_eq!((nothing.answer.standing, nothing.answer.precision), (Standing::NotTrustworthy, None));
}

#[test]
fn each_cause_is_first_where_it_takes_the_most() {
    let virtual_host = |change: &dyn Fn(&mut CoreNoise)| {
        let host = HostFacts { hypervisor: Some("QEMU".into()), ..HostFacts::default() };
        CheckResult { host, ..with(change) }
    };
    let away = |core: &mut CoreNoise| (core.away_share, core.absence_share) = (0.05, 0.04);
    let steal = |core: &mut CoreNoise| core.steal_share = Some(0.04);
    assert_eq!(first(virtual_host(&|core| (away(core), steal(core)).0)), Some(CauseKind::Hypervisor));
    assert_eq!(first(virtual_host(&away)), Some(CauseKind::Hypervisor), "a hypervisor that does not report steal");
    assert_eq!(first(with(away)), Some(CauseKind::Firmware));

    let waited = |core: &mut CoreNoise| {
        away(core);
        core.waited_share = Some(0.04);
    };
    assert_eq!(first(with(waited)), Some(CauseKind::Processes));
    assert_eq!(first(virtual_host(&waited)), Some(CauseKind::Processes));

    let ticks = |timer, all| {
        move |core: &mut CoreNoise| {
            (core.away_share, core.timer_per_s, core.interrupts_per_s) = (0.004, Some(timer), Some(all));
        }
    };
    assert_eq!(first(with(ticks(1000.0, 1100.0))), Some(CauseKind::TimerTicks));
    assert_eq!(first(with(ticks(100.0, 9000.0))), Some(CauseKind::Interrupts));

    let busy = |core: &mut CoreNoise| (core.siblings, core.sibling_busy_share) = (vec![8], Some(0.5));
    assert_eq!(first(with(busy)), Some(CauseKind::Sibling));
    let mut throttled = quiet();
    throttled.state.rt_throttle_share = Some(0.05);
    assert_eq!(first(throttled.clone()), None, "an ordinary thread is not throttled");
    throttled.state.real_time = Some(true);
    assert_eq!(first(throttled), Some(CauseKind::RtThrottling));

    let saving = |core: &mut CoreNoise| core.governor = Some("powersave".into());
    assert_eq!(first(with(saving)), Some(CauseKind::Governor));
    assert_eq!(first(with(|core| core.governor = Some("performance".into()))), None);
    let mut small = quiet();
    small.state.hugepages = false;
    assert_eq!(first(small), Some(CauseKind::NoHugepages));
    assert_eq!(first(CheckResult { cpus: vec![4], together: None, trials: None, ..quiet() }), Some(CauseKind::OneCpu));
}

#[test]
fn figures_that_are_no_numbers_are_no_causes() {
    let nan = |core: &mut CoreNoise| {
        (core.away_share, core.absence_share) = (f64::NAN, f64::NAN);
        (core.steal_share, core.waited_share) = (Some(f64::NAN), Some(f64::INFINITY));
        (core.timer_per_s, core.interrupts_per_s) = (Some(f64::NAN), Some(f64::NEG_INFINITY));
        (core.siblings, core.sibling_busy_share) = (Vec::new(), Some(f64::NAN));
    };
    assert_eq!(first(with(nan)), None);
}

#[test]
fn causes_name_who_and_what_to_do() {
    let mut result = with(|core| (core.waited_share, core.absence_share, core.away_share) = (Some(0.2), 0.2, 0.21));
    let other = |pid, name: &str| OtherThread { pid, name: name.into(), cpu: 1, share: 0.2, kernel: pid < 10 };
    result.state.others = vec![other(812, "stress-ng-cpu"), other(9, "kworker/1:2"), other(10, "third")];
    result.together.as_mut().unwrap().cores.iter_mut().for_each(|core| core.timer_per_s = Some(250.0));
    result.host.hypervisor = Some("KVM".into());
    result.state.cores_moved = true;
    result.state.hugepages = false;
    judge(&mut result, false);
    let lines = |c: &Cause| format!("{}\n  {}\n  {}", c.text, c.remedy, c.page);
    insta::assert_snapshot!(result.causes.iter().map(lines).collect::<Vec<_>>().join("\n"));
    // Nobody can move the kernel's own threads, or stop the first process.
    result.state.others = vec![other(9, "kworker/1:2"), OtherThread { kernel: false, ..other(1, "init") }];
    judge(&mut result, false);
    assert!(result.causes[0].remedy.contains("isolcpus=1"), "{:?}", result.causes[0]);
}
