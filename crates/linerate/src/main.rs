//! Linerate: how fast a machine forwards packets, at which loss and latency, whether the number can be trusted, and
//! why it is not higher.
#![forbid(unsafe_code)]

mod cli;
mod cmd;
mod out;

use std::process::ExitCode;

use clap::error::ErrorKind;
use cli::Command;
use failure::{Exit, Failure};

fn main() -> ExitCode {
    if guest::init::is_first_process() {
        guest::init::run();
        return ExitCode::FAILURE;
    }
    if let Err(failure) = cli::renamed::check(std::env::args_os()) {
        return fail(&failure);
    }
    let cli = match cli::parsing::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(e) if e.use_stderr() && e.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            return fail(&Failure::usage(cli::parsing::one_line(&e)));
        }
        Err(e) => {
            // Help and version go to standard output and do not count as errors. Neither does a closed pipe.
            let _ = e.print();
            return ExitCode::from(if e.use_stderr() { Exit::Usage as u8 } else { 0 });
        }
    };
    let result = match cli.command {
        Command::Bench(mut args) => cmd::bench::run(&mut args),
        Command::Check(args) => cmd::check::run(&args),
        Command::Trial(mut args) => cmd::trial::run(&mut args),
        Command::Selftest(args) => cmd::selftest::run(&args),
        Command::Forward(args) => cmd::forward::run(&args),
        Command::Flowlog(args) => cmd::flowlog::run(&args),
        Command::Flows(args) => cmd::flows::run(&args),
        Command::Host(args) => cmd::host::run(&args),
        Command::Ports(args) => cmd::ports::run(&args),
        Command::Lab(args) => cmd::lab::run(&args),
        Command::LabHold { spec } => cmd::lab::hold(&spec),
        Command::RunJob => cmd::job::run(),
        Command::Latency(args) => cmd::latency::run(&args),
        Command::Runs(args) => cmd::runs::run(&args),
    };
    // However the command ended, its ports and cores are released by now.
    dpdk::Eal::cleanup();
    rig::start_again(None);
    match result {
        Ok(Exit::Passed) if out::lost().is_some() => {
            let why = out::lost().map(ToString::to_string).unwrap_or_default();
            fail(&Failure::machine(format!("standard output: {why}: what was to be printed is lost")))
        }
        Ok(exit) => ExitCode::from(exit as u8),
        Err(failure) => fail(&failure),
    }
}

fn fail(failure: &Failure) -> ExitCode {
    out::note(&format!("linerate: {failure}"));
    ExitCode::from(failure.exit as u8)
}
