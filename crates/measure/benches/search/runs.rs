//! One search of one DUT, by each of the contestants.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
};

use measure::{
    plan::Plan,
    search::{mlr::GoalSet, MlrSearch, Rfc2544Search, SearchConfig},
    sim::SimSetup,
};
use units::{Fps, FrameSize};

use crate::scenario::LOADS;

/// What a search found and what it cost.
pub struct Run {
    pub trial_s: f64,
    pub trials: usize,
    /// Lower bound, upper bound and throughput of each goal; `None` when the search has no regular result.
    pub goals: Vec<Option<(f64, f64, f64)>>,
}

fn config() -> Result<SearchConfig, Box<dyn std::error::Error>> {
    let mut plan = Plan::default();
    plan.search.upper = Some(format!("{}", LOADS.1).parse()?);
    plan.search.lower = format!("{}", LOADS.0).parse()?;
    plan.search.max_trials = Some(2000);
    plan.search.timeout = std::time::Duration::from_secs(7 * 24 * 3600);
    Ok(SearchConfig::for_size(&plan.validate()?, FrameSize::MIN, None, None)?)
}

/// Ours.
pub fn linerate(dut: &str, goals: &GoalSet) -> Result<Run, Box<dyn std::error::Error>> {
    let mut search = MlrSearch::new(config()?, goals.clone(), 0.0);
    let (answer, made) = dut.parse::<SimSetup>()?.start().drive(&mut search, 2000);
    let answer = answer.ok_or("did not end")?;
    if std::env::var_os("SHOW").is_some() {
        for t in &made {
            eprintln!("{:>12.0} {:.5}%", t.spec.load_fps.get(), t.loss_ratio() * 100.0);
        }
    }
    let goal = |g: &measure::search::mlr::GoalResult| {
        Some((g.lower_fps?.get(), g.upper_fps?.get(), g.conditional_throughput_fps?.get()))
    };
    Ok(Run {
        trial_s: made.iter().map(|t| t.real_duration_s).sum(),
        trials: made.len(),
        goals: answer.goals.iter().map(goal).collect(),
    })
}

/// Binary search with trials of 60 s (RFC 2544 §24), once for each goal's loss ratio, to the goal's width.
pub fn bisection(dut: &str, goals: &GoalSet) -> Result<Run, Box<dyn std::error::Error>> {
    let mut dut = dut.parse::<SimSetup>()?.start();
    let mut run = Run { trial_s: 0.0, trials: 0, goals: Vec::new() };
    for goal in goals.goals() {
        let config =
            SearchConfig { tolerated_loss: goal.loss_ratio, precision: goal.width, duration_s: 60.0, ..config()? };
        let (answer, made) = dut.drive(&mut Rfc2544Search::new(config), 2000);
        let answer = answer.ok_or("did not end")?;
        run.trial_s += made.iter().map(|t| t.real_duration_s).sum::<f64>();
        run.trials += made.len();
        let bounds = answer.throughput.zip(answer.upper_bound);
        run.goals.push(bounds.map(|(low, high): (Fps, Fps)| (low.get(), high.get(), low.get())));
    }
    Ok(run)
}

/// The PyPI package, in a Python of its own, whose measurer is this program's simulator at the end of a pipe.
pub struct Library {
    python: Child,
    answers: BufReader<ChildStdout>,
}

impl Library {
    pub fn start(python: &Path) -> Result<Self, Box<dyn std::error::Error>> {
        let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/search/mlrsearch.py");
        let mut command = Command::new(python);
        command.arg(driver).arg(std::env::current_exe()?).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut python = command.spawn()?;
        let answers = BufReader::new(python.stdout.take().ok_or("no pipe")?);
        Ok(Self { python, answers })
    }

    pub fn run(&mut self, dut: &str, goals: &GoalSet) -> Result<Run, Box<dyn std::error::Error>> {
        let asked = serde_json::json!({
            "dut": dut,
            "min_load": LOADS.0,
            "max_load": LOADS.1,
            "goals": goals.goals().iter().map(|g| serde_json::json!({
                "loss_ratio": g.loss_ratio.get(),
                "exceed_ratio": g.exceed_ratio.get(),
                "relative_width": g.width.get(),
                "initial_trial_duration": g.initial_s(),
                "final_trial_duration": g.final_s(),
                "duration_sum": g.sum_s(),
            })).collect::<Vec<_>>(),
        });
        let pipe = self.python.stdin.as_mut().ok_or("no pipe")?;
        writeln!(pipe, "{asked}")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let answer: serde_json::Value = serde_json::from_str(&line)?;
        let number = |v: &serde_json::Value| v.as_f64();
        let goal = |g: &serde_json::Value| Some((number(&g[0])?, number(&g[1])?, number(&g[2])?));
        Ok(Run {
            trial_s: number(&answer["trial_s"]).ok_or("no answer")?,
            trials: answer["trials"].as_u64().ok_or("no answer")? as usize,
            goals: answer["goals"].as_array().ok_or("no answer")?.iter().map(goal).collect(),
        })
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        drop(self.python.stdin.take());
        let _ = self.python.wait();
    }
}
