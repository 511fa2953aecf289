//! A plan of several runs: each run in its own process, one after the other, and one table at the end.

use std::path::Path;

use campaign::{
    plans::SuitePlan,
    suite::{path_for_run, Member, SuiteView},
    JobAnswer, Launcher,
};
use failure::{Exit, Failure, Stop};
use measure::{
    plan::{Plan, ValidPlan},
    result::RunResult,
};
use report::{layout, Detail, Document};
use rig::Device;

use super::{baseline, dry_run, job};
use crate::{
    cli::{layout::LayoutArgs, BenchArgs},
    cmd::{output, plan},
    out,
};

/// Runs every run of the suite.
pub fn run(args: &BenchArgs, set: &SuitePlan) -> Result<Exit, Failure> {
    refuse(args, set)?;
    output::check(&args.output)?;
    let named = |run: &String| Ok((run.clone(), plan::named(&format!("{}:{run}", args.plan_name()), args)?));
    let plans: Vec<(String, ValidPlan)> = set.runs.iter().map(named).collect::<Result<_, Failure>>()?;
    if args.print_config {
        for (_, plan) in &plans {
            out::print(&plan.to_toml()?);
        }
        return Ok(Exit::Passed);
    }
    let options = args.ports.options()?;
    let device = |plan: &ValidPlan| Device::parse(&options, plan);
    if args.dry_run {
        let plans = plans.into_iter().map(|(name, plan)| Ok((name, device(&plan)?, plan)));
        return dry_run::all(&plans.collect::<Result<Vec<_>, Failure>>()?, args);
    }
    let (mut members, mut view) = (Vec::new(), View { args, baselines: Vec::new() });
    for (name, plan) in &plans {
        let device = device(plan)?;
        campaign::sweep::check_device(plan, &device)?;
        let baseline = args.tables.baseline.as_deref().map(|path| path_for_run(path, name));
        let tables = LayoutArgs { baseline, layout: args.tables.layout };
        view.baselines.push((name.clone(), baseline::read(&tables, plan, &device)?));
        members.push(Member { name: name.clone(), job: job::of(args, Plan::clone(plan))? });
    }
    let (exit, results) = campaign::suite::run(&members, &Launcher::new()?, &Stop::on_signals()?, &mut view)?;
    if !results.is_empty() {
        let layout = args.tables.layout.map_or(set.layout, crate::cli::layout::LayoutArg::layout);
        let sheet = layout::sheet(&results.iter().collect::<Vec<_>>(), layout);
        let sections: Vec<_> = std::iter::once(sheet).chain(report::of_several(&results)).collect();
        let document = Document::of(sections);
        out::print(&format!("\n{}", report::terminal::render(&document, Detail::Verbose, &output::style(), &[])));
    }
    Ok(exit)
}

/// Refuses flags that are for one run only.
fn refuse(args: &BenchArgs, set: &SuitePlan) -> Result<(), Failure> {
    let first = set.runs.first().map_or("", String::as_str);
    if !args.dry_run && args.output.json.as_deref() == Some(Path::new("-")) {
        return Err(Failure::usage(format!(
            "--json -: plan {} has {} runs: name a file (all.json becomes all.{first}.json, ...), or one run (--plan {}:{first})",
            args.plan_name(),
            set.runs.len(),
            args.plan_name()
        )));
    }
    let given = [("--sweep", !args.sweep.axes.is_empty()), ("--repeat", args.repeat.is_some())];
    if let Some((flag, _)) = given.iter().find(|(_, given)| *given) {
        return Err(Failure::usage(format!(
            "{flag}: plan {} has several runs: name one of them (--plan {0}:{first})",
            args.plan_name()
        )));
    }
    Ok(())
}

/// Prints each run as it ends.
struct View<'a> {
    args: &'a BenchArgs,
    /// By name.
    baselines: Vec<(String, Option<RunResult>)>,
}

impl SuiteView for View<'_> {
    fn begins(&mut self, number: usize, of: usize, name: &str) {
        out::print(&format!("{}{number} of {of}: {name}\n", if number > 1 { "\n" } else { "" }));
    }

    fn ended(&mut self, name: &str, answer: &JobAnswer) -> Result<(), Failure> {
        if let Some(result) = &answer.result {
            let baseline = self.baselines.iter().find(|(run, _)| run == name).and_then(|(_, old)| old.as_ref());
            let files = output::for_run(&self.args.output, name);
            baseline::finish(result, baseline, self.args.tables.layout, &files)?;
        }
        if let Some(failure) = &answer.failure {
            out::note(&format!("linerate: {failure}"));
        }
        Ok(())
    }
}
