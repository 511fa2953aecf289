//! `linerate check`: what this machine can measure, and what would improve it most.

use campaign::check::{self, CheckOptions};
use failure::{Exit, Failure, Stop};
use rig::MachineOptions;

use super::{
    output::{self, Documents},
    progress::Progress,
    times::time,
};
use crate::cli::{check::CheckArgs, OutputArgs};

/// Runs the command.
pub fn run(args: &CheckArgs) -> Result<Exit, Failure> {
    let files = OutputArgs { json: args.json.clone(), ..OutputArgs::default() };
    let options = CheckOptions {
        cpus: args.cpus.iter().cloned().flatten().collect(),
        duration: time("--duration", &args.duration)?,
        machine: MachineOptions { memory: args.memory.choice(), ..MachineOptions::default() },
    };
    output::check(&files)?;
    let progress = Progress::new(args.quiet);
    let checked = check::run(&options, &Stop::on_signals()?, &progress);
    progress.clear();
    let checked = checked?;
    let none = || Err("check writes JSON only".to_owned());
    output::write(
        &Documents {
            json: &|| report::check::json(&checked).map_err(|e| e.to_string()),
            markdown: &none,
            svg: &none,
            csv: &none,
            csv_tests: &none,
            table: &|written| report::check::render(&checked, &output::style(), written),
        },
        &files,
    )?;
    Ok(campaign::exit_of(checked.answer.standing))
}
