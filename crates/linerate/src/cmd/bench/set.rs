//! A plan of several runs: each in a process of its own, one after the other, and one table of all at the end.
//!
//! DPDK starts once a process. A run's process is its own group, so that Ctrl-C reaches it once, through this one.

use std::{
    env,
    ffi::OsString,
    fs, io,
    os::unix::{fs::DirBuilderExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command},
    thread::sleep,
    time::Duration,
};

use report::layout;
use rustix::process::{kill_process, Pid, Signal};

use super::rehearse;
use crate::{
    cli::BenchArgs,
    cmd::{
        output, plan, runs,
        sets::{self, Set},
        stored,
    },
    out,
};
use failure::{Exit, Failure, Stop};

/// Options whose file each run has of its own: `all.json` becomes `all.router-u1.json`.
pub(super) const FILES: [&str; 6] = ["--json", "--markdown", "--svg", "--csv", "--csv-tests", "--baseline"];

/// Runs the plan if it has several runs; `None` when it has not.
pub fn run(args: &BenchArgs) -> Result<Option<Exit>, Failure> {
    let set = match sets::of(&args.plan) {
        Ok(Some(set)) => set,
        Ok(None) => return Ok(None),
        // `PLAN:RUN` names one run, which is loaded as any plan is.
        Err(_) if args.plan.contains(':') => return Ok(None),
        Err(e) => return Err(e),
    };
    if args.flow_logger.flow_logger.is_some() {
        return Err(Failure::usage(format!("--flow-logger: plan {} has several runs: name one of them", args.plan)));
    }
    if !args.dry_run && args.output.json.as_deref() == Some(Path::new("-")) {
        let first = set.runs.first().map_or("", String::as_str);
        return Err(Failure::usage(format!(
            "--json -: plan {} has {} runs: name a file (all.json becomes all.{first}.json, ...), or one run (--plan {}:{first})",
            args.plan,
            set.runs.len(),
            args.plan
        )));
    }
    if !args.sweep.axes.is_empty() {
        return Err(Failure::usage(format!(
            "--sweep: plan {} has several runs: name one of them (--plan {0}:{})",
            args.plan, set.runs[0]
        )));
    }
    output::check(&args.output)?;
    all(args, &set).map(Some)
}

fn all(args: &BenchArgs, set: &Set) -> Result<Exit, Failure> {
    if args.dry_run {
        let named = |run: &String| Ok((run.clone(), plan::named(&format!("{}:{run}", args.plan), args)?));
        let plans = set.runs.iter().map(named).collect::<Result<Vec<_>, Failure>>()?;
        return rehearse::all(&plans, args);
    }
    let stop = Stop::on_signals()?;
    let kept = Kept::new().map_err(|e| Failure::machine(format!("no directory for the results of runs: {e}")))?;
    let measures = !args.print_config;
    let (mut exit, mut results) = (Exit::Passed, Vec::new());
    for (i, run) in set.runs.iter().enumerate() {
        if measures {
            out::print(&format!("{}{} of {}: {run}\n", if i > 0 { "\n" } else { "" }, i + 1, set.runs.len()));
        }
        let keep = kept.0.join(format!("{run}.json"));
        let code = one(args, run, measures.then_some(keep.as_path()), &stop)?;
        if let Ok(result) = stored::read(&keep) {
            results.push(result);
        }
        exit = worse(exit, code);
        if stop.requested() || exit == Exit::Stopped {
            exit = Exit::Stopped;
            break;
        }
        if matches!(code, 2 | 4) {
            // What is wrong with the command or the machine is so for the next run, too; it has said what.
            break;
        }
    }
    if !results.is_empty() {
        let layout = args.tables.layout.map_or(set.layout, crate::cli::layout::LayoutArg::layout);
        out::print(&runs::text(&[layout::sheet(&results.iter().collect::<Vec<_>>(), layout)]));
    }
    Ok(exit)
}

/// Runs one in a process of its own, and gives its exit code.
fn one(args: &BenchArgs, run: &str, keep: Option<&Path>, stop: &Stop) -> Result<u8, Failure> {
    let failed = |e: io::Error| Failure::failed(format!("run {run}: {e}"));
    let program = env::current_exe().map_err(failed)?;
    let mut command = Command::new(program);
    command.args(rewritten(env::args_os().skip(1), &args.plan, run));
    if let Some(keep) = keep {
        command.arg("--keep").arg(keep);
    }
    ended(command, stop).map_err(failed)
}

/// Runs a process of our own, in a group of its own, and gives its exit code; a signal that comes is passed on.
pub(super) fn ended(mut command: Command, stop: &Stop) -> io::Result<u8> {
    let mut child = command.process_group(0).spawn()?;
    let mut told = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.code().and_then(|c| u8::try_from(c).ok()).unwrap_or(Exit::Failed as u8));
        }
        if stop.requested() && !told {
            told = true;
            tell(&child);
        }
        sleep(Duration::from_millis(20));
    }
}

fn tell(child: &Child) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // One that has ended meanwhile is no error.
        let _ = kill_process(pid, Signal::TERM);
    }
}

/// The command line again for one run: its plan, and its own files.
fn rewritten(given: impl Iterator<Item = OsString>, plan: &str, run: &str) -> Vec<OsString> {
    let mut out: Vec<OsString> = Vec::new();
    let mut value_of: Option<String> = None;
    let of = |option: &str, value: &str| match option {
        "--plan" => format!("{plan}:{run}"),
        option if FILES.contains(&option) => beside(value, run),
        _ => value.to_owned(),
    };
    for arg in given {
        let text = arg.to_string_lossy().into_owned();
        if let Some(option) = value_of.take() {
            out.push(of(&option, &text).into());
        } else if text == "--plan" || FILES.contains(&text.as_str()) {
            value_of = Some(text);
            out.push(arg);
        } else if let Some((option, value)) = text.split_once('=').filter(|(o, _)| *o == "--plan" || FILES.contains(o))
        {
            out.push(format!("{option}={}", of(option, value)).into());
        } else {
            out.push(arg);
        }
    }
    out
}

/// `dir/all.json` becomes `dir/all.RUN.json`.
fn beside(file: &str, run: &str) -> String {
    let path = Path::new(file);
    let name = match (path.file_stem(), path.extension()) {
        (Some(stem), Some(extension)) => {
            format!("{}.{run}.{}", stem.to_string_lossy(), extension.to_string_lossy())
        }
        _ => format!("{}.{run}", path.file_name().unwrap_or_default().to_string_lossy()),
    };
    path.with_file_name(name).to_string_lossy().into_owned()
}

/// The exit code of all: stopped goes before what is wrong, that before inconclusive, that before failed.
pub(super) fn worse(so_far: Exit, code: u8) -> Exit {
    const ORDER: [Exit; 6] = [Exit::Passed, Exit::Failed, Exit::Untrusted, Exit::Usage, Exit::Machine, Exit::Stopped];
    let this = ORDER.into_iter().find(|e| *e as u8 == code).unwrap_or(Exit::Failed);
    let rank = |exit: Exit| ORDER.iter().position(|e| *e == exit);
    if rank(this) > rank(so_far) {
        this
    } else {
        so_far
    }
}

/// A directory for results of runs, gone when the last table is printed.
pub(super) struct Kept(pub(super) PathBuf);

impl Kept {
    pub(super) fn new() -> io::Result<Self> {
        let dir = env::temp_dir().join(format!("linerate-runs-{}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&dir)?;
        Ok(Self(dir))
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_has_its_own_plan_and_files() {
        let given =
            ["bench", "--plan", "router-all", "--json=out/all.json", "--csv", "t", "--quick", "--baseline", "o.j"];
        let out = rewritten(given.into_iter().map(OsString::from), "router-all", "router-u1");
        let expected =
            "bench --plan router-all:router-u1 --json=out/all.router-u1.json --csv t.router-u1 --quick --baseline \
                        o.router-u1.j";
        assert_eq!(out.join(&OsString::from(" ")), expected);
    }

    #[test]
    fn the_worst_run_decides() {
        let all = |codes: &[u8]| codes.iter().fold(Exit::Passed, |exit, &code| worse(exit, code));
        assert_eq!(all(&[0, 0]), Exit::Passed);
        assert_eq!(all(&[0, 1, 0]), Exit::Failed);
        assert_eq!(all(&[3, 1]), Exit::Untrusted);
        assert_eq!(all(&[1, 77]), Exit::Failed);
        assert_eq!(all(&[130, 3]), Exit::Stopped);
    }
}
