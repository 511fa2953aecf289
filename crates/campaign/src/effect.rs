//! What a setting of the host is worth: measured without and with it in turn, through apply and revert.

use std::{fs::File, path::Path, time::Duration, time::SystemTime};

use failure::{Exit, Failure, Stop};
use host::{
    audit::{is_setting, Context, Mend, Verdict},
    core_plan::CorePlan,
    journal,
    machine::Machine,
    outcome::{self, NotMeasured, Outcome},
    rules,
    tuning::{self, ApplyError, HostPlan},
    Roots,
};
use measure::{
    effect::{self, Change, EffectFigure, EffectResult, EFFECT_SCHEMA},
    result::{RunResult, Standing},
};

use crate::{job::Job, process::Launcher};

/// How long cores are polled in each leg.
const POLL: Duration = Duration::from_secs(1);

/// What is measured.
pub struct EffectOptions {
    /// The rule's id.
    pub id: String,
    /// The changes of the rule, and which core does what.
    pub plan: HostPlan,
    /// Rounds of four legs.
    pub rounds: u32,
    /// What the tester measures in each leg.
    pub job: Job,
    /// The same in words.
    pub test: String,
    /// Where journals are.
    pub journals: std::path::PathBuf,
}

/// Shows the legs as they are made.
pub trait EffectView {
    /// Leg `number` of `of` begins, with the change or without.
    fn begins(&mut self, number: usize, of: usize, with: bool);
    /// It gave no figure of the tester.
    fn failed(&mut self, failure: &Failure);
}

/// Measures. Whatever happens, the change is taken back at the end.
///
/// # Errors
///
/// (machine) when something is applied already, or a change cannot be made or taken back; (usage) when it is so already, or what
/// is measured is wrong; (stopped) after a signal.
pub fn run(
    options: &EffectOptions,
    launcher: &Launcher,
    stop: &Stop,
    view: &mut dyn EffectView,
) -> Result<EffectResult, Failure> {
    let roots = Roots::default();
    let begun = SystemTime::now();
    let legs = effect::order(options.rounds);
    let mut figures = Figures::default();
    let (mut failures, mut changes) = (Vec::new(), Vec::new());
    // What is refused is refused before anything is measured.
    Applied::now(&roots, options)?.back()?;
    for (number, &with) in legs.iter().enumerate() {
        view.begins(number + 1, legs.len(), with);
        let applied = if with { Some(Applied::now(&roots, options)?) } else { None };
        let cores = outcome::measure(&roots, &options.plan.cores, POLL, &|| !stop.requested());
        let answer = launcher.run(&options.job, stop);
        if let Some(applied) = applied {
            changes.clone_from(&applied.changes);
            applied.back()?;
        }
        if stop.requested() {
            return Err(Failure::stopped("stopped: the setting is as it was before"));
        }
        match cores {
            Ok(outcome) => figures.of_cores(&outcome, with),
            Err(NotMeasured::Cpu(cpu, why)) => failures.push(format!("CPU {cpu}: {why}")),
            Err(NotMeasured::Stopped) => {}
        }
        if let Some(result) = &answer.result {
            if !figures.of_test(result, with) && answer.failure.is_none() {
                failures.push(format!("leg {} found no throughput at any frame size", number + 1));
            }
            match result.standing {
                Standing::NotTrustworthy => {
                    failures.push(format!("leg {} says of itself that it cannot be trusted", number + 1));
                }
                Standing::NotDeviceLimit => {
                    failures.push(format!("leg {} found a limit of the tester, not of the device", number + 1));
                }
                _ => {}
            }
        }
        if let Some(failure) = answer.failure {
            // A command that is wrong is wrong in each leg.
            if failure.exit == Exit::Usage {
                return Err(failure);
            }
            view.failed(&failure);
            failures.push(failure.text);
        }
    }
    let facts = rig::facts::read();
    Ok(EffectResult {
        schema: EFFECT_SCHEMA.to_owned(),
        linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
        id: options.id.clone(),
        changes,
        measured_at: humantime::format_rfc3339_seconds(begun).to_string(),
        kernel: facts.kernel,
        cpu_model: facts.cpu_model,
        test: options.test.clone(),
        figures: figures.compared(),
        failures,
    })
}

/// A change that is made now, and taken back when this goes.
struct Applied<'a> {
    roots: &'a Roots,
    journals: &'a Path,
    changes: Vec<String>,
    /// Keeps everybody else from taking it back meanwhile.
    held: Option<File>,
    over: bool,
}

impl<'a> Applied<'a> {
    fn now(roots: &'a Roots, options: &'a EffectOptions) -> Result<Self, Failure> {
        let journals = options.journals.as_path();
        let applied = tuning::apply(roots, journals, &options.plan, None, || true).map_err(|e| not_applied(&e))?;
        let held = journal::hold(&journal::path_of(journals, tuning::NAME)).ok();
        let this = Self { roots, journals, changes: applied.made, held, over: false };
        if let Some((change, why)) = applied.refused.first() {
            return Err(Failure::machine(format!("{change}: refused: {why}")));
        }
        if this.changes.is_empty() {
            return Err(Failure::usage(format!("{}: it is so already: nothing to compare", options.id)));
        }
        Ok(this)
    }

    fn back(mut self) -> Result<(), Failure> {
        self.over = true;
        drop(self.held.take());
        let reverted = tuning::revert(self.roots, self.journals, true).map_err(Failure::failed)?;
        match (reverted.failed.first(), reverted.left.first()) {
            (Some((change, why)), _) => Err(Failure::failed(format!("{change}: could not be taken back: {why}"))),
            (None, Some((change, now))) => {
                Err(Failure::failed(format!("{change}: left alone: somebody made it {now} meanwhile")))
            }
            (None, None) => Ok(()),
        }
    }
}

impl Drop for Applied<'_> {
    fn drop(&mut self) {
        if !self.over {
            drop(self.held.take());
            // On the way out with an error: that one is told.
            let _ = tuning::revert(self.roots, self.journals, true);
        }
    }
}

/// Why a change was not made, for the user.
pub fn not_applied(error: &ApplyError) -> Failure {
    match error {
        ApplyError::Earlier(path) => {
            Failure::machine(format!("{}: a plan is applied already: sudo linerate host revert", path.display()))
        }
        ApplyError::Journal(path, why) => Failure::machine(format!("{}: {why}", path.display())),
        ApplyError::Plan(why) => Failure::failed(why),
        ApplyError::Failed { change, why, kept } if kept.is_empty() => {
            Failure::failed(format!("{change}: {why}; everything was taken back"))
        }
        ApplyError::Failed { change, why, kept } => {
            Failure::failed(format!("{change}: {why}; could not be taken back: {}", kept.join("; ")))
        }
    }
}

/// The changes of a rule: those that mend it, or the value that was given.
///
/// # Errors
///
/// (usage) for a rule that does not exist, or that nothing can be changed of now.
pub fn setting(
    id: &str,
    value: Option<&str>,
    roots: &Roots,
    machine: &Machine,
    cores: CorePlan,
) -> Result<HostPlan, Failure> {
    let Some(rule) = rules::find(id) else {
        return Err(Failure::usage(format!("{}: no such rule: linerate host audit --all lists them", id)));
    };
    let mut findings = rules::look(rule, &Context::new(roots, machine, &cores, &[]));
    if let Some(value) = value {
        // The files of the rule get this value instead.
        findings.retain(|finding| is_setting(Path::new(&finding.place)) && Path::new(&finding.place).is_file());
        if findings.is_empty() {
            return Err(Failure::usage(format!("{id}: --value: this rule has no file here that keeps one value")));
        }
        for finding in &mut findings {
            finding.verdict = Verdict::Warn;
            finding.mend = vec![Mend::Write { path: finding.place.clone().into(), value: value.to_owned() }];
        }
    }
    let mut plan = HostPlan::new(cores, &findings);
    plan.steps.retain(|step| matches!(step.change, Mend::Write { .. } | Mend::Stop { .. }));
    if !plan.steps.is_empty() {
        return Ok(plan);
    }
    let why = if findings.iter().any(|finding| finding.is_open()) {
        "it changes at the next boot only: measure before and after it with linerate bench --json FILE, then linerate runs \
         show --baseline"
    } else {
        "it is as it should be, or this machine does not have it: give another value with --value, if it has one"
    };
    Err(Failure::usage(format!("{}: {why}", id)))
}

/// Where measured effects are kept, for audits.
pub const KEPT: &str = "/var/lib/linerate/effects";

/// Keeps what was measured, as this text.
///
/// # Errors
///
/// As the system says: who may not write there goes without.
pub fn keep(dir: &Path, id: &str, text: &str) -> std::io::Result<()> {
    std::fs::create_dir_all(dir)?;
    report::write::write_atomic(&dir.join(format!("{id}.json")), text.as_bytes()).map_err(std::io::Error::other)
}

/// What was measured of a rule on this kernel and CPU.
pub fn kept(dir: &Path, id: &str, machine: &Machine) -> Option<EffectResult> {
    let text = std::fs::read_to_string(dir.join(format!("{id}.json"))).ok()?;
    let effect: EffectResult = serde_json::from_str(&text).ok()?;
    let here =
        effect.schema == EFFECT_SCHEMA && effect.kernel == machine.kernel && effect.cpu_model == machine.cpu_model;
    here.then_some(effect)
}

/// Whether something is applied already, as far as this user may know. A journal without a change in force is none.
pub fn is_applied(journals: &Path) -> bool {
    let (roots, path) = (Roots::default(), journal::path_of(journals, tuning::NAME));
    let in_force = journal::in_force(&roots, &path);
    in_force.is_ok_and(|(changes, damaged)| !changes.is_empty() || !damaged.is_empty())
        && !journal::is_of_earlier_boot(&roots, &path)
}

#[derive(Default)]
struct Figures(Vec<EffectFigure>);

impl Figures {
    fn add(&mut self, name: String, unit: &str, more_is_better: bool, with: bool, value: f64) {
        let at = match self.0.iter().position(|figure| figure.name == name) {
            Some(at) => at,
            None => {
                self.0.push(EffectFigure {
                    name,
                    unit: unit.to_owned(),
                    more_is_better,
                    without: Vec::new(),
                    with: Vec::new(),
                    change: None,
                });
                self.0.len() - 1
            }
        };
        let figure = &mut self.0[at];
        if with { &mut figure.with } else { &mut figure.without }.push(value);
    }

    /// What the tester found, by frame size: the likeliest load, or of a search by whole trials its figure. Whether there was any.
    fn of_test(&mut self, result: &RunResult, with: bool) -> bool {
        let mut any = false;
        for size in &result.sizes {
            let point = size.answer.as_ref().and_then(|answer| answer.point_fps);
            let Some(fps) = point.or(size.throughput_fps) else { continue };
            any = true;
            self.add(format!("throughput at {}", size.frame_size_bytes.with_unit("B")), "fps", true, with, fps.get());
        }
        any
    }

    /// What came to the busy cores: the worst of them.
    fn of_cores(&mut self, outcome: &Outcome, with: bool) {
        let worst = |of: &dyn Fn(&outcome::CoreOutcome) -> f64| outcome.cores.iter().map(of).fold(0.0, f64::max);
        let rate = |times: u64, seconds: f64| times as f64 / seconds.max(1e-3);
        let interrupts = |core: &outcome::CoreOutcome| core.came.interrupts.iter().map(|came| came.times).sum::<u64>();
        let gaps = |core: &outcome::CoreOutcome| core.gaps;
        let figures: [(&str, &str, f64); 4] = [
            ("longest gap of a core", "us", worst(&|core| gaps(core).longest_ns as f64 / 1e3)),
            ("time a core was away", "%", worst(&|core| gaps(core).away_seconds / gaps(core).seconds.max(1e-3) * 1e2)),
            (
                "gaps of 10 us and more of a core",
                "1/s",
                worst(&|core| rate(gaps(core).from_10_50_100_1000_us[0], gaps(core).seconds)),
            ),
            ("interrupts of a core", "1/s", worst(&|core| rate(interrupts(core), core.came.seconds))),
        ];
        for (name, unit, value) in figures {
            self.add(name.to_owned(), unit, false, with, value);
        }
    }

    fn compared(mut self) -> Vec<EffectFigure> {
        // What the tester found stands first.
        self.0.sort_by_key(|figure| !figure.more_is_better);
        for figure in &mut self.0 {
            figure.change = Change::of(&figure.without, &figure.with);
        }
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_kept_by_name_and_side_and_throughput_stands_first() {
        let mut figures = Figures::default();
        for (with, gap, fps) in [(false, 10.0, 100.0), (true, 5.0, 120.0), (true, 7.0, 122.0), (false, 12.0, 102.0)] {
            figures.add("longest gap".into(), "us", false, with, gap);
            figures.add("throughput at 64 B".into(), "fps", true, with, fps);
        }
        let all = figures.compared();
        assert_eq!(all.iter().map(|f| f.name.as_str()).collect::<Vec<_>>(), ["throughput at 64 B", "longest gap"]);
        assert_eq!((all[0].without.as_slice(), all[0].with.as_slice()), (&[100.0, 102.0][..], &[120.0, 122.0][..]));
        assert_eq!(all[0].change.unwrap().difference(), 20.0);
        assert_eq!(all[1].change.unwrap().difference(), -5.0);
    }

    #[test]
    fn what_was_measured_is_kept_for_the_same_kernel_and_cpu() {
        let dir = tempfile::tempdir().unwrap();
        let machine = Machine { kernel: "6.1".into(), cpu_model: "CPU".into(), ..Machine::default() };
        let effect = EffectResult {
            schema: EFFECT_SCHEMA.into(),
            linerate_version: String::new(),
            id: "a.b".into(),
            changes: Vec::new(),
            measured_at: String::new(),
            kernel: "6.1".into(),
            cpu_model: "CPU".into(),
            test: String::new(),
            figures: Vec::new(),
            failures: Vec::new(),
        };
        let path = dir.path().join("effects");
        keep(&path, "a.b", &serde_json::to_string(&effect).unwrap()).unwrap();
        assert_eq!(kept(&path, "a.b", &machine), Some(effect.clone()));
        assert_eq!(kept(&path, "a.c", &machine), None);
        assert_eq!(kept(&path, "a.b", &Machine { kernel: "6.2".into(), ..machine.clone() }), None);
        assert_eq!(kept(&path, "a.b", &Machine { cpu_model: "other".into(), ..machine.clone() }), None);
        keep(&path, "a.b", "{").unwrap();
        assert_eq!(kept(&path, "a.b", &machine), None);
    }

    #[test]
    fn a_rule_without_a_change_is_refused() {
        let (roots, machine) = (Roots::default(), Machine::read(&Roots::default()));
        let of =
            |id: &str, value: Option<&str>| setting(id, value, &roots, &machine, CorePlan::squeezed(&machine, None));
        for id in ["no.such", "boot.line"] {
            assert_eq!(of(id, None).unwrap_err().exit, failure::Exit::Usage, "{id}");
        }
        // A value of one's own: each file of the rule gets it.
        let plan = of("kernel.statistics", Some("77")).unwrap();
        assert!(plan.steps.iter().all(|step| step.change.text().ends_with("=77")), "{plan:?}");
        assert_eq!(plan.steps.len(), 1);
    }

    #[test]
    fn a_journal_that_is_there_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!is_applied(dir.path()));
        let mut journal = journal::Journal::begin(&Roots::default(), dir.path(), tuning::NAME).unwrap();
        assert!(!is_applied(dir.path()), "nothing is changed yet");
        let path = "/proc/sys/vm/stat_interval".into();
        journal.note(&journal::Change::File { path, old: "-".into(), new: "1".into(), first: None }).unwrap();
        assert!(is_applied(dir.path()));
    }
}
