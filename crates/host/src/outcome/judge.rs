//! What outcomes say: findings like those of settings.

use super::{CoreOutcome, Outcome};
use crate::{
    audit::{Finding, Group, Out, Verdict},
    core_plan::CorePlan,
    machine::Machine,
};

/// Ticks a second that a core without a tick may have: one stays in older kernels, and a timer now and then.
const TICKS: f64 = 2.0;
/// Other interrupts a second.
const INTERRUPTS: f64 = 1.0;
/// A gap from which a figure may suffer, and one from which it does, nanoseconds: a queue of 1,024 frames is full after 69 us of
/// 10 Gbit/s at 64 bytes.
const LONG_NS: u64 = 20_000;
const TOO_LONG_NS: u64 = 100_000;
/// Seconds away that nobody explains, from which on that is said. The kernel counts interrupts in steps of 10 ms.
const UNSEEN: f64 = 0.02;
/// Share of the time that a hypervisor may take.
const STOLEN: f64 = 0.01;
/// Share by which a clock may change, or be below what is on the processor's label.
const CLOCK: f64 = 0.05;
/// Microseconds that a core may take to leave an idle state.
const WAKE_US: u64 = 2;
/// Names that are shown of many.
const NAMES: usize = 4;

/// What outcomes say of a machine with these findings of its settings.
pub fn findings(outcome: &Outcome, machine: &Machine, plan: &CorePlan, settings: &[Finding]) -> Vec<Finding> {
    let judge = Judge { plan, settings, label_mhz: label_mhz(&machine.cpu_model) };
    let rules: [(Out, Look<'_>); 9] = [
        (
            out(
                "outcome.gap",
                "frames wait in the queue while the core is away, and the queue overflows",
                Some("an isolated core's longest gap is 17.9 us, the others' are 9.5 to 17 ms (rigtorp, low-latency guide)"),
            ),
            Judge::gap,
        ),
        (out("outcome.steal", "the hypervisor gives the core to others", None), Judge::steal),
        (out("outcome.switches", "other threads take the core", None), Judge::switches),
        (out("outcome.tick", "the kernel interrupts the core at each tick", None), Judge::tick),
        (out("outcome.interrupts", "interrupts take the core", None), Judge::interrupts),
        (
            out("outcome.clock", "frames a second follow the clock of the core", None),
            Judge::clock,
        ),
        (out("outcome.throttled", "the processor slows down because of heat", None), Judge::throttled),
        (
            out("outcome.management", "the firmware takes all cores, and the kernel does not see it", None),
            Judge::management,
        ),
        (out("outcome.wake", "a core that sleeps deeply takes that long to wake up for a frame", None), Judge::wake),
    ];
    let mut all = Vec::new();
    for (mut out, look) in rules {
        outcome.cores.iter().for_each(|core| look(&judge, core, &mut out));
        all.extend(out.into_findings());
    }
    all.extend(noted(outcome));
    all
}

fn out(id: &'static str, why: &'static str, effect: Option<&'static str>) -> Out {
    Out::new(id, Group::Outcome, why, effect)
}

/// Figures to compare machines by.
fn noted(outcome: &Outcome) -> Vec<Finding> {
    let mut memory = out("outcome.memory", "each frame that no cache has is read from there", None);
    match outcome.memory_ns {
        Some(ns) => memory.noted("", format!("{ns:.0} ns a read at a random place of 128 MiB")),
        None => memory.unknown("", "needs 512 MiB of free memory"),
    }
    let mut line = out("outcome.cache_line", "rings between two cores move that way", None);
    match outcome.cache_line {
        Some((one, other, ns)) => line.noted(&format!("cpu {one} to {other}"), format!("{ns:.0} ns one way")),
        None => line.not_applicable("", "the plan has one polling core"),
    }
    [memory, line].into_iter().flat_map(Out::into_findings).collect()
}

/// The clock on the processor's label, MHz: `Intel(R) Xeon(R) Gold 6152 CPU @ 2.10GHz`.
fn label_mhz(model: &str) -> Option<f64> {
    let (_, clock) = model.rsplit_once('@')?;
    let ghz: f64 = clock.trim().strip_suffix("GHz")?.trim().parse().ok()?;
    (ghz > 0.0).then_some(ghz * 1e3)
}

/// Looks at a core.
type Look<'a> = fn(&Judge<'a>, &CoreOutcome, &mut Out);

struct Judge<'a> {
    plan: &'a CorePlan,
    settings: &'a [Finding],
    label_mhz: Option<f64>,
}

impl Judge<'_> {
    /// Whether the plan keeps a core from everything else.
    fn is_kept(&self, cpu: u32) -> bool {
        !self.plan.shared && self.plan.isolated.contains(&cpu)
    }

    /// Whether settings are as they should be: nothing open, and something looked at.
    fn are_right(&self, ids: &[&str]) -> bool {
        let of = |finding: &&Finding| ids.contains(&finding.id.as_str());
        let mut all = self.settings.iter().filter(of).peekable();
        all.peek().is_some()
            && ids.iter().all(|id| self.settings.iter().any(|f| f.id == *id && f.verdict == Verdict::Ok))
            && all.all(|finding| !finding.is_open())
    }

    /// Something comes to a core that settings should keep away.
    fn comes<'o>(
        &self,
        out: &'o mut Out,
        cpu: u32,
        got: String,
        want: &str,
        settings: &[&str],
    ) -> Option<&'o mut Finding> {
        let place = place(cpu);
        if !self.is_kept(cpu) {
            out.noted(&place, got);
            return None;
        }
        if self.are_right(settings) {
            let found = out.found(Verdict::Bad, &place, got, want);
            found.outcome = true;
            return Some(found);
        }
        out.found(Verdict::Warn, &place, format!("{got} (see {})", settings.join(", ")), want);
        None
    }

    fn tick(&self, core: &CoreOutcome, out: &mut Out) {
        let rate = times(core, |name| name == "LOC") as f64 / core.came.seconds.max(1e-3);
        let got = format!("{rate:.0} ticks a second");
        if rate <= TICKS {
            return out.ok(&place(core.came.cpu), got);
        }
        if let Some(found) = self.comes(out, core.came.cpu, got, "at most 2 a second", &["cores.tickless"]) {
            found.hand("look for a second thread on this core, or a timer of the kernel: linerate host watch");
        }
    }

    fn interrupts(&self, core: &CoreOutcome, out: &mut Out) {
        let rate = times(core, |name| name != "LOC") as f64 / core.came.seconds.max(1e-3);
        let names: Vec<String> = core
            .came
            .interrupts
            .iter()
            .filter(|came| came.name != "LOC")
            .take(NAMES)
            .map(|came| format!("{} {:.1}", came.name, came.times as f64 / core.came.seconds.max(1e-3)))
            .collect();
        let named = if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
        let got = format!("{rate:.1} interrupts a second beside the tick{named}");
        if rate <= INTERRUPTS {
            return out.ok(&place(core.came.cpu), got);
        }
        let settings = ["cores.isolated", "interrupts.each"];
        if let Some(found) = self.comes(out, core.came.cpu, got, "at most 1 a second", &settings) {
            found.hand("TLB, CAL and RES come from threads on other cores that share memory with this one");
        }
    }

    fn switches(&self, core: &CoreOutcome, out: &mut Out) {
        let cpu = core.came.cpu;
        let Some(switches) = core.involuntary_switches else {
            return out.unknown(&place(cpu), "the kernel does not count them");
        };
        let threads = core.came.threads.iter().flatten().take(NAMES);
        let ran: Vec<String> =
            threads.map(|thread| format!("{} {:.0} ms", thread.name, thread.seconds * 1e3)).collect();
        let ran = if ran.is_empty() { String::new() } else { format!("; ran there: {}", ran.join(", ")) };
        let got = format!("switched out {switches} times in {:.1} s{ran}", core.gaps.seconds);
        if switches == 0 {
            return out.ok(&place(cpu), got);
        }
        if let Some(found) = self.comes(out, cpu, got, "never", &["cores.isolated"]) {
            found.hand("threads of the kernel cannot be moved; pin the others to the operating system's cores");
        }
    }

    fn gap(&self, core: &CoreOutcome, out: &mut Out) {
        let (cpu, gaps) = (core.came.cpu, &core.gaps);
        let [_, _, hundred, _] = gaps.from_10_50_100_1000_us;
        let got = format!(
            "away for {} us at most, {:.2} % of the time, {:.1} times a second for 100 us or more",
            micros(gaps.longest_ns),
            gaps.away_seconds / gaps.seconds.max(1e-9) * 1e2,
            hundred as f64 / gaps.seconds.max(1e-9)
        );
        if gaps.longest_ns < LONG_NS {
            return out.ok(&place(cpu), got);
        }
        let unseen = unseen_seconds(core);
        let got = match unseen {
            Some(seconds) => format!(
                "{got}; {:.0} ms of {:.0} ms were taken by something the kernel does not see",
                seconds * 1e3,
                gaps.away_seconds * 1e3
            ),
            None => got,
        };
        let right = self.is_kept(cpu) && self.are_right(&["cores.isolated", "cores.tickless", "interrupts.each"]);
        let bad = gaps.longest_ns >= TOO_LONG_NS && !self.plan.shared;
        let verdict = if bad { Verdict::Bad } else { Verdict::Warn };
        let found = out.found(verdict, &place(cpu), got, "at most 20 us");
        found.outcome = right;
        found.hand(match unseen {
            Some(_) => {
                "a hypervisor took it (pin its vCPUs on the host, and leave their CPUs to them), or the firmware"
            }
            None => "see who takes it: linerate host watch",
        });
    }

    fn steal(&self, core: &CoreOutcome, out: &mut Out) {
        let (place, share) = (place(core.came.cpu), core.came.steal_seconds / core.came.seconds.max(1e-3));
        let got = format!("{:.1} % of the time", share * 1e2);
        if share <= 0.0 {
            return out.ok(&place, got);
        }
        let verdict = if share > STOLEN { Verdict::Bad } else { Verdict::Warn };
        out.found(verdict, &place, got, "0 %")
            .hand("give this virtual machine processors of its own: pin its vCPUs on the hypervisor");
    }

    fn clock(&self, core: &CoreOutcome, out: &mut Out) {
        let place = place(core.came.cpu);
        let Some(clock) = core.clock else { return out.unknown(&place, "polled for too short a time") };
        let got = format!("{:.0} MHz, between {:.0} and {:.0}", clock.median_mhz, clock.least_mhz, clock.most_mhz);
        let changes = clock.most_mhz - clock.least_mhz > clock.median_mhz * CLOCK;
        let slow = self.label_mhz.filter(|label| clock.median_mhz < label * (1.0 - CLOCK));
        let want = match (changes, slow) {
            (_, Some(label)) => format!("{label:.0} MHz, as on its label"),
            (true, None) => "one clock".to_owned(),
            (false, None) => return out.ok(&place, got),
        };
        let right = self.are_right(&["power.governor"]);
        out.found(Verdict::Warn, &place, got, want).outcome = right;
    }

    fn throttled(&self, core: &CoreOutcome, out: &mut Out) {
        let place = place(core.came.cpu);
        match core.throttles {
            None => out.not_applicable(&place, "the machine does not count it"),
            Some(0) => out.ok(&place, "never"),
            Some(times) => {
                out.found(Verdict::Bad, &place, format!("{times} times"), "never").hand("look after its cooling");
            }
        }
    }

    fn management(&self, core: &CoreOutcome, out: &mut Out) {
        let place = place(core.came.cpu);
        match core.management_interrupts {
            None => out.not_applicable(&place, "this machine shows no counter of them: it takes an Intel processor that is not virtual, root and modprobe msr"),
            Some(0) => out.ok(&place, "none"),
            Some(times) => {
                let got = format!("{times} system management interrupts in {:.1} s", core.gaps.seconds);
                out.found(Verdict::Bad, &place, got, "none")
                    .hand("switch off power management, patrol scrubbing and USB emulation in the firmware");
            }
        }
    }

    fn wake(&self, core: &CoreOutcome, out: &mut Out) {
        let place = place(core.came.cpu);
        let Some(wake) = &core.wake else { return out.unknown(&place, "not measured") };
        let states: Vec<String> =
            wake.states.iter().map(|s| format!("{} {} times ({} us)", s.name, s.times, s.latency_us)).collect();
        let states = if states.is_empty() { String::new() } else { format!("; {}", states.join(", ")) };
        let got = format!(
            "a timer of 1 ms is late by {} us, {} at most{states}",
            micros(wake.median_ns),
            micros(wake.longest_ns)
        );
        if !wake.states.iter().any(|state| state.latency_us > WAKE_US) {
            return out.noted(&place, got);
        }
        let right = self.are_right(&["power.sleep"]);
        let (verdict, got) = match right {
            true => (Verdict::Bad, got),
            false => (Verdict::Warn, format!("{got} (see power.sleep)")),
        };
        out.found(verdict, &place, got, "no state that takes more than 2 us to leave").outcome = right;
    }
}

/// Seconds that a core was away while the kernel let no other thread run there and counted no interrupt's time, if that is most of
/// the time away: another part of the machine took them.
fn unseen_seconds(core: &CoreOutcome) -> Option<f64> {
    let away = core.gaps.away_seconds;
    let unseen = away - core.waited_seconds? - core.came.interrupt_seconds - core.came.steal_seconds;
    (unseen >= UNSEEN && unseen > away / 2.0).then_some(unseen)
}

fn place(cpu: u32) -> String {
    format!("cpu {cpu}")
}

fn micros(ns: u64) -> String {
    let us = ns as f64 / 1e3;
    if us < 100.0 {
        format!("{us:.1}")
    } else {
        format!("{us:.0}")
    }
}

/// How often interrupts came whose name is wanted.
fn times(core: &CoreOutcome, wanted: impl Fn(&str) -> bool) -> u64 {
    core.came.interrupts.iter().filter(|came| wanted(&came.name)).map(|came| came.times).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cpu_set,
        outcome::{CoreClock, Gaps, IdleState, Wake},
        watch::{Came, CoreWatch, Thread},
    };

    /// A quiet core, and a change of it.
    fn core(change: impl Fn(&mut CoreOutcome)) -> CoreOutcome {
        let mut core = CoreOutcome {
            came: CoreWatch {
                cpu: 2,
                seconds: 10.0,
                interrupts: vec![Came { name: "LOC".into(), times: 20 }, Came { name: "TLB".into(), times: 10 }],
                softirqs: Vec::new(),
                interrupt_seconds: 0.0,
                steal_seconds: 0.0,
                threads: None,
            },
            involuntary_switches: Some(0),
            waited_seconds: Some(0.0),
            gaps: Gaps { seconds: 10.0, longest_ns: 19_999, ..Gaps::default() },
            clock: Some(CoreClock { least_mhz: 2000.0, median_mhz: 2050.0, most_mhz: 2100.0 }),
            throttles: Some(0),
            management_interrupts: Some(0),
            wake: Some(Wake {
                median_ns: 52_000,
                longest_ns: 130_000,
                states: vec![IdleState { name: "C1".into(), latency_us: 2, times: 300 }],
            }),
        };
        change(&mut core);
        core
    }

    /// All settings that matter, right or not.
    fn settings(right: bool) -> Vec<Finding> {
        let ids = ["cores.tickless", "cores.isolated", "interrupts.each", "power.governor", "power.sleep"];
        let one = |id| {
            let mut out = Out::new(id, Group::Cores, "", None);
            if right {
                out.ok("", "");
            } else {
                out.found(Verdict::Bad, "", "", "");
            }
            out.into_findings()
        };
        ids.into_iter().flat_map(one).collect()
    }

    fn plan(shared: bool) -> CorePlan {
        let two = cpu_set::from_list("2");
        CorePlan { tester: two.clone(), isolated: two, shared, ..CorePlan::default() }
    }

    /// The finding of an outcome.
    fn judged(id: &str, core: CoreOutcome, plan: &CorePlan, settings: &[Finding]) -> (Verdict, bool) {
        let machine = Machine { cpu_model: "Some CPU @ 2.10GHz".to_owned(), ..Machine::default() };
        let outcome = Outcome { cores: vec![core], memory_ns: Some(88.0), cache_line: Some((2, 3, 40.0)) };
        let all = findings(&outcome, &machine, plan, settings);
        let finding = all.iter().find(|finding| finding.id == id).unwrap();
        (finding.verdict, finding.outcome)
    }

    #[test]
    fn a_quiet_core_is_as_it_should_be() {
        let outcome = Outcome { cores: vec![core(|_| ())], memory_ns: None, cache_line: None };
        let machine = Machine { cpu_model: "Some CPU @ 2.10GHz".to_owned(), ..Machine::default() };
        let all = findings(&outcome, &machine, &plan(false), &settings(true));
        let verdicts: Vec<(&str, Verdict)> = all.iter().map(|f| (f.id.as_str(), f.verdict)).collect();
        let ok = |id| (id, Verdict::Ok);
        assert_eq!(
            verdicts,
            [
                ok("outcome.gap"),
                ok("outcome.steal"),
                ok("outcome.switches"),
                ok("outcome.tick"),
                ok("outcome.interrupts"),
                ok("outcome.clock"),
                ok("outcome.throttled"),
                ok("outcome.management"),
                ("outcome.wake", Verdict::Noted),
                ("outcome.memory", Verdict::Unknown),
                ("outcome.cache_line", Verdict::NotApplicable),
            ]
        );
    }

    /// What comes to a core, by how much settings and plan keep it away.
    #[test]
    fn a_right_setting_with_a_wrong_outcome_is_a_class_of_its_own() {
        type Change = fn(&mut CoreOutcome);
        let cases: [(&str, Change); 3] = [
            ("outcome.tick", |core| core.came.interrupts[0].times = 21),
            ("outcome.interrupts", |core| core.came.interrupts[1].times = 11),
            ("outcome.switches", |core| {
                core.involuntary_switches = Some(1);
                core.came.threads =
                    Some(vec![Thread { pid: 9, name: "kworker/2:1".into(), seconds: 0.03, kernel: true }]);
            }),
        ];
        for (id, change) in cases {
            assert_eq!(judged(id, core(change), &plan(false), &settings(true)), (Verdict::Bad, true), "{id}");
            assert_eq!(judged(id, core(change), &plan(false), &settings(false)), (Verdict::Warn, false), "{id}");
            assert_eq!(judged(id, core(change), &plan(false), &[]), (Verdict::Warn, false), "{id}");
            assert_eq!(judged(id, core(change), &plan(true), &settings(true)), (Verdict::Noted, false), "{id}");
            let alone = CorePlan { isolated: cpu_set::from_list("3"), ..plan(false) };
            assert_eq!(judged(id, core(change), &alone, &settings(true)), (Verdict::Noted, false), "{id}");
        }
        let mut one_wrong = settings(true);
        one_wrong.extend(settings(false));
        assert_eq!(judged("outcome.tick", core(cases[0].1), &plan(false), &one_wrong), (Verdict::Warn, false));
        let none = core(|core| core.involuntary_switches = None);
        assert_eq!(judged("outcome.switches", none, &plan(false), &[]).0, Verdict::Unknown);
    }

    #[test]
    fn gaps_and_steal_are_judged_by_how_long() {
        let gap = |ns| core(move |core| core.gaps.longest_ns = ns);
        let of = |ns, shared, right| judged("outcome.gap", gap(ns), &plan(shared), &settings(right));
        assert_eq!(of(20_000, false, true), (Verdict::Warn, true));
        assert_eq!(of(99_999, false, false), (Verdict::Warn, false));
        assert_eq!(of(100_000, false, false), (Verdict::Bad, false));
        assert_eq!(of(100_000, true, false), (Verdict::Warn, false));
        // Who took it: most of 100 ms, and not threads, interrupts or what the hypervisor tells.
        let away = |waited: Option<f64>, interrupts| {
            let core = core(|core| {
                core.gaps.away_seconds = 0.1;
                core.waited_seconds = waited;
                core.came.interrupt_seconds = interrupts;
                core.came.steal_seconds = 0.01;
            });
            unseen_seconds(&core).map(|seconds| (seconds * 1e3).round())
        };
        assert_eq!([away(Some(0.0), 0.0), away(Some(0.03), 0.0), away(None, 0.0)], [Some(90.0), Some(60.0), None]);
        assert_eq!([away(Some(0.041), 0.0), away(Some(0.0), 0.041)], [None, None]);
        let short = core(|core| core.gaps.away_seconds = 0.019);
        assert_eq!(unseen_seconds(&short), None);
        let steal = |seconds| core(move |core| core.came.steal_seconds = seconds);
        assert_eq!(judged("outcome.steal", steal(0.01), &plan(false), &[]).0, Verdict::Warn);
        assert_eq!(judged("outcome.steal", steal(0.1), &plan(false), &[]).0, Verdict::Warn);
        assert_eq!(judged("outcome.steal", steal(0.11), &plan(false), &[]).0, Verdict::Bad);
    }

    #[test]
    fn clocks_heat_and_firmware() {
        let clock = |least, median, most| {
            core(move |core| core.clock = Some(CoreClock { least_mhz: least, median_mhz: median, most_mhz: most }))
        };
        let of = |core, right| judged("outcome.clock", core, &plan(false), &settings(right));
        assert_eq!(of(clock(2000.0, 2000.0, 2100.0), true), (Verdict::Ok, false));
        assert_eq!(of(clock(2000.0, 2000.0, 2101.0), true), (Verdict::Warn, true));
        assert_eq!(of(clock(1994.0, 1994.0, 1994.0), false), (Verdict::Warn, false));
        assert_eq!(of(core(|core| core.clock = None), true).0, Verdict::Unknown);
        let heat = |times| core(move |core| core.throttles = times);
        assert_eq!(judged("outcome.throttled", heat(Some(1)), &plan(false), &[]).0, Verdict::Bad);
        assert_eq!(judged("outcome.throttled", heat(None), &plan(false), &[]).0, Verdict::NotApplicable);
        let firmware = |times| core(move |core| core.management_interrupts = times);
        assert_eq!(judged("outcome.management", firmware(Some(1)), &plan(false), &[]).0, Verdict::Bad);
        assert_eq!(judged("outcome.management", firmware(None), &plan(false), &[]).0, Verdict::NotApplicable);
        assert_eq!(label_mhz("Intel(R) Xeon(R) Gold 6152 CPU @ 2.10GHz"), Some(2100.0));
        assert_eq!((label_mhz("AMD EPYC 7763"), label_mhz("x @ fast"), label_mhz("x @ 0GHz")), (None, None, None));
    }

    #[test]
    fn a_core_that_sleeps_deeply_although_it_may_not() {
        let deep = || {
            core(|core| {
                let wake = core.wake.as_mut().unwrap();
                wake.states.push(IdleState { name: "C6".into(), latency_us: 3, times: 1 });
            })
        };
        assert_eq!(judged("outcome.wake", deep(), &plan(false), &settings(true)), (Verdict::Bad, true));
        assert_eq!(judged("outcome.wake", deep(), &plan(false), &settings(false)), (Verdict::Warn, false));
        assert_eq!(judged("outcome.wake", core(|core| core.wake = None), &plan(false), &[]).0, Verdict::Unknown);
    }
}
