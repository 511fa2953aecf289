//! The program under test, run as a user runs it.

use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use host::{core_plan::CorePlan, outcome, Roots};
use serde_json::Value;

use super::{Netns, Process};

/// How long a run that the machine disturbs is made again.
pub const PATIENCE: Duration = Duration::from_secs(180);

const MINUTE: Duration = Duration::from_secs(60);

/// The built binary.
pub const BINARY: &str = env!("CARGO_BIN_EXE_linerate");

/// How a run ended.
#[derive(Debug)]
pub struct Ended {
    /// Exit code; -1 when a signal ended it.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// How a command ended.
pub fn ended(output: &Output) -> Ended {
    Ended::of(output)
}

impl Ended {
    fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code().unwrap_or(-1), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    /// The result printed by `--json -`.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("no JSON ({e}): {}{}", self.stdout, self.stderr))
    }
}

/// Runs `linerate` to its end.
pub fn linerate(args: &[&str]) -> Ended {
    Ended::of(&Command::new(BINARY).args(args).output().expect("linerate runs"))
}

/// Runs `linerate` in a namespace to its end.
pub fn linerate_in(netns: &Netns, args: &[&str]) -> Ended {
    Ended::of(&netns.command(BINARY).args(args).output().expect("linerate runs"))
}

/// Starts `linerate`, to be signalled while it runs; its output goes to `log`.
pub fn start(args: &[&str], netns: Option<&Netns>, log: &Path) -> Process {
    let argv: Vec<String> = std::iter::once(BINARY).chain(args.iter().copied()).map(str::to_owned).collect();
    Process::spawn(&argv, netns, &[], log)
}

/// Runs again while the run says of itself that it cannot be trusted (exit code 3): these machines lose milliseconds at
/// a time. Fails when that goes on; what a trusted run says is for the caller to judge.
#[track_caller]
pub fn until_trusted(tries: u32, run: impl FnMut() -> Ended) -> Ended {
    match trusted(tries, MINUTE, run) {
        Ok(ended) => ended,
        Err(last) => panic!("{tries} runs or more could not be trusted, the last: {}\n{}", last.stdout, last.stderr),
    }
}

/// The same on a machine whose CPUs other programs take, as [`others_take_cpus`] said before the test's own did: there the last
/// run comes as an error, and has to be true as far as it goes. On any other machine it fails as [`until_trusted`] does.
#[track_caller]
pub fn until_trusted_unless_busy(tries: u32, busy: bool, run: impl FnMut() -> Ended) -> Result<Ended, Ended> {
    // What a busy machine spoils it spoils again.
    let ended = if busy { trusted(1, MINUTE / 4, run) } else { trusted(tries, MINUTE, run) };
    if let Err(last) = &ended {
        assert!(busy, "{tries} runs or more could not be trusted, the last: {}\n{}", last.stdout, last.stderr);
    }
    ended
}

/// Whether other programs take a quarter or more of a CPU from a thread that wants all of it.
pub fn others_take_cpus() -> bool {
    let plan = CorePlan { tester: lab::cpus::allowed_cpus().into_iter().collect(), ..CorePlan::default() };
    let outcome = outcome::measure(&Roots::default(), &plan, Duration::from_millis(500), &|| true);
    let cores = outcome.map(|outcome| outcome.cores).unwrap_or_default();
    cores.iter().any(|core| core.gaps.away_seconds > core.gaps.seconds / 4.0)
}

/// At least so many runs, and for at least so long.
fn trusted(tries: u32, patience: Duration, mut run: impl FnMut() -> Ended) -> Result<Ended, Ended> {
    let mut last = None;
    let until = Instant::now() + patience;
    for _ in (0..).take_while(|&tried| tried < tries || Instant::now() < until) {
        let ended = run();
        if ended.code != 3 {
            return Ok(ended);
        }
        last = Some(ended);
        std::thread::sleep(Duration::from_millis(200));
    }
    Err(last.expect("at least one try"))
}

/// The answer of one frame size in a bench result.
#[track_caller]
pub fn size_of(result: &Value, bytes: u64) -> &Value {
    let sizes = result["sizes"].as_array().expect("a list of sizes");
    sizes.iter().find(|s| s["frame_size_bytes"] == bytes).unwrap_or_else(|| panic!("no {bytes} B in {result}"))
}

/// Sum of a count over all directions of all trials.
pub fn total(result: &Value, field: &str) -> u64 {
    let trials = result["trials"].as_array().map_or(&[][..], |t| t);
    let directions = trials.iter().flat_map(|t| t["directions"].as_array().map_or(&[][..], |d| d));
    directions.filter_map(|d| d[field].as_u64()).sum()
}
