//! `linerate host effect`: what a setting is worth here.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use campaign::{
    effect::{self, EffectOptions, EffectView},
    Launcher,
};
use failure::{Exit, Failure, Stop};
use host::{
    audit::{Context, Mend},
    core_plan::CorePlan,
    journal,
    machine::Machine,
    rules,
    tuning::HostPlan,
    Roots,
};
use measure::{effect::EffectResult, plan::Plan};
use rig::host_plan;

use super::{bench, output, plan, tune::Tuned};
use crate::{
    cli::{self, host::EffectArgs, BenchArgs, Command},
    out,
};

/// Where measured effects are kept, for audits.
const KEPT: &str = "/var/lib/linerate/effects";

/// Runs the command.
pub fn run(args: &EffectArgs) -> Result<Exit, Failure> {
    let mut bench_args = bench_args(&args.bench)?;
    bench_args.output.quiet = true;
    let roots = Roots::default();
    let machine = Machine::read(&roots);
    let cores = match &bench_args.machine.core_plan {
        Some(file) => host_plan::read_host_plan(file, &machine)?.cores,
        None => bench::host_plan(&bench_args)?.cores,
    };
    let plan = setting(args, &roots, &machine, cores)?;
    if effect::is_applied(Path::new(journal::DIR)) {
        return Err(Failure::machine("a plan is applied already: sudo linerate host revert"));
    }
    let test = plan::for_bench(&bench_args)?;
    let options = EffectOptions {
        id: args.id.clone(),
        plan,
        rounds: args.rounds,
        test: format!("linerate bench {}", flags(&args.bench)),
        job: bench::job_of(&bench_args, Plan::clone(&test))?,
        journals: PathBuf::from(journal::DIR),
    };
    let (stop, guard) = (Stop::on_signals()?, Tuned::guarded()?);
    let measured = effect::run(&options, &Launcher::new()?, &stop, &mut View { watched: out::watched() });
    guard.dismissed();
    let measured = measured?;
    out::print(&report::host::effect(&measured));
    let text = serde_json::to_string_pretty(&measured).map_err(Failure::failed)? + "\n";
    if let Some(file) = &args.json {
        output::file(file, &text)?;
    }
    keep(&measured, &text);
    Ok(if measured.figures.iter().any(|figure| figure.change.is_some()) { Exit::Passed } else { Exit::Failed })
}

fn flags(flags: &[OsString]) -> String {
    flags.iter().map(|flag| flag.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// The flags behind `--`, as bench reads them.
fn bench_args(flags: &[OsString]) -> Result<BenchArgs, Failure> {
    let words = ["linerate", "bench"].map(OsString::from).into_iter().chain(flags.iter().cloned());
    let wrong = |e: clap::Error| Failure::usage(format!("behind --: {}", cli::parsing::one_line(&e)));
    match cli::parsing::parse(words).map_err(wrong)?.command {
        Command::Bench(args) => Ok(*args),
        _ => Err(Failure::usage("behind --: flags of bench, such as -- --dut l3 --frame-sizes 64")),
    }
}

/// The changes of a rule: those that mend it, or the value that was given.
fn setting(args: &EffectArgs, roots: &Roots, machine: &Machine, cores: CorePlan) -> Result<HostPlan, Failure> {
    let Some(rule) = rules::find(&args.id) else {
        return Err(Failure::usage(format!("{}: no such rule: linerate host audit --all lists them", args.id)));
    };
    let mut findings = rules::look(rule, &Context::new(roots, machine, &cores, &[]));
    if let Some(value) = &args.value {
        // The files of the rule get this value instead.
        findings.retain(|finding| finding.place.starts_with("/sys/") || finding.place.starts_with("/proc/sys/"));
        for finding in &mut findings {
            finding.verdict = host::audit::Verdict::Warn;
            finding.mend = vec![Mend::Write { path: PathBuf::from(&finding.place), value: value.clone() }];
        }
    }
    let mut plan = HostPlan::new(cores, &findings);
    plan.steps.retain(|step| matches!(step.change, Mend::Write { .. } | Mend::Stop { .. }));
    if !plan.steps.is_empty() {
        return Ok(plan);
    }
    let why = if findings.iter().any(|finding| finding.is_open()) {
        "it changes at the next boot only: measure before and after it with linerate bench --json FILE, then linerate runs \
         show --against"
    } else {
        "it is as it should be, or this machine does not have it: give another value with --value, if it has one"
    };
    Err(Failure::usage(format!("{}: {why}", args.id)))
}

/// Keeps what was measured. Who may not write there goes without.
fn keep(measured: &EffectResult, text: &str) {
    let dir = Path::new(KEPT);
    let kept = fs::create_dir_all(dir).and_then(|()| {
        report::write::write_atomic(&dir.join(format!("{}.json", measured.id)), text.as_bytes())
            .map_err(std::io::Error::other)
    });
    if let Err(e) = kept {
        out::note(&format!("linerate: {KEPT}: {e}: not kept for audits"));
    }
}

/// What was measured of a rule on this kernel and CPU, in a line.
pub fn kept(id: &str, machine: &Machine) -> Option<String> {
    let text = fs::read_to_string(Path::new(KEPT).join(format!("{id}.json"))).ok()?;
    let effect: EffectResult = serde_json::from_str(&text).ok()?;
    let here = effect.kernel == machine.kernel && effect.cpu_model == machine.cpu_model;
    here.then(|| report::host::effect_line(&effect)).flatten()
}

struct View {
    watched: bool,
}

impl EffectView for View {
    fn begins(&mut self, number: usize, of: usize, with: bool) {
        if self.watched {
            out::note(&format!("leg {number} of {of}, {} the change", if with { "with" } else { "without" }));
        }
    }

    fn failed(&mut self, failure: &Failure) {
        out::note(&format!("linerate: {failure}"));
    }
}
