//! The tests of RFC 2889 §5.7 and §5.8, between three ports.

use std::time::{Duration, Instant};

use measure::{
    addresses::{AddressSearch, Addresses, End, RoundRecord, RoundVerdict},
    label::{self, LabelFacts},
    plan::{AddressesPlan, Test, ValidPlan},
    procedure::{Found, TestOutcome},
    result::{TestResult, Warning, WarningKind},
    standing,
};
use units::FrameSize;

use super::bed::Bed;
use crate::{
    cli::BenchArgs,
    cmd::{output, progress::Progress, run::Run},
    failure::{Exit, Failure},
};

/// A device has to forget that much sooner than the plan waits; the built-in bridge does, whose clock has whole seconds.
const SOONER: Duration = Duration::from_secs(2);

/// Runs the plan's address tests, each at the smallest frame size.
pub fn run(args: &BenchArgs, plan: ValidPlan) -> Result<Exit, Failure> {
    let dut = args.ports.dut.as_deref().or(plan.dut.function.as_deref()).filter(|_| args.ports.ports.is_empty());
    if let Some(sim) = dut.filter(|dut| *dut == "sim" || dut.starts_with("sim:")) {
        return Err(Failure::usage(format!(
            "--dut {sim}: a simulated device learns no addresses: use --dut bridge, or three ports"
        )));
    }
    let table = plan.addresses.clone().unwrap_or_default();
    let size = plan.smallest_size().unwrap_or(FrameSize::MIN);
    let tests = plan.tests.clone();
    let ageing = table.age.saturating_sub(SOONER).max(Duration::from_secs(1));
    let run = Run::with(plan, &args.ports, &args.machine, Some(ageing))?;
    let mut bench = Rounds { run, table, size, progress: Progress::new(args.output.quiet), capacity: None };
    let (mut results, mut ended) = (Vec::new(), Ok(()));
    for test in tests {
        match bench.test(test) {
            Ok(result) => results.push(result),
            Err(e) => {
                ended = Err(e);
                break;
            }
        }
        if bench.run.stopped() {
            break;
        }
    }
    bench.progress.clear();
    if results.is_empty() {
        return ended.map(|()| Exit::Failed);
    }
    let stopped = bench.run.stopped();
    let mut warnings = Vec::new();
    if stopped {
        let text = "stopped before the end: what was measured until then is here".to_owned();
        warnings.push(Warning { kind: WarningKind::Stopped, text });
    }
    if args.quick {
        let text = "quick: few addresses and short waits; leave out --quick for figures to publish".to_owned();
        warnings.push(Warning { kind: WarningKind::ShortTrials, text });
    }
    let mut result = Bed::result(&bench.run, Vec::new(), warnings, standing::of_run(&[], &results, stopped));
    result.tests = results;
    let exit = output::finish(&result, &args.output)?;
    ended.map(|()| exit)
}

struct Rounds {
    run: Run,
    table: AddressesPlan,
    size: FrameSize,
    progress: Progress,
    /// What the capacity test found.
    capacity: Option<u64>,
}

impl Rounds {
    fn test(&mut self, test: Test) -> Result<TestResult, Failure> {
        let (goal, test_fps) = self.table.goal(test, self.size, self.run.link(), self.capacity)?;
        let trust = self.run.plan.trust.clone();
        let residual = trust.residual.max(Duration::from_millis(20));
        let mut search = AddressSearch::new(goal, trust.max_repeats)
            .ok_or_else(|| Failure::usage("addresses: no round is possible: the highest rate is below 1 frame/s"))?;
        let (since, most) = (Instant::now(), self.run.plan.time_of_a_test());
        let mut late = false;
        while let Some(round) = search.wanted() {
            if since.elapsed() >= most {
                late = true;
                break;
            }
            let n = round.addresses as f64;
            let least = Duration::from_secs_f64((n / round.learning_fps.get() + n / test_fps.get()).min(1e9));
            self.check(round.addresses, least)?;
            self.progress.note(&format!(
                "{test}: {} addresses at {}, after {:?} of ageing",
                round.addresses, round.learning_fps, self.table.age
            ));
            // Even the first: the device may know them from before.
            self.rest();
            let begun = Instant::now();
            let counted = self.run.rig.address_round(&round, test_fps, self.size, residual, &self.run.stop)?;
            let Some((counts, disturbed)) = counted else { break };
            self.check(round.addresses, begun.elapsed())?;
            search.report(RoundRecord::judge(round, counts, disturbed));
        }
        let (found, ended) = (search.found(), search.ended());
        if test == Test::AddressCaching && ended.is_some() {
            self.capacity = found.addresses;
        }
        let late = late.then(|| {
            let (rounds, most) = (found.rounds.len(), most.as_secs_f64());
            format!("did not end within test_timeout = {most} s: {rounds} rounds until then")
        });
        Ok(self.answer(test, found, ended, late))
    }

    /// That a round is over before the device forgets.
    fn check(&self, addresses: u64, takes: Duration) -> Result<(), Failure> {
        if takes + SOONER < self.table.age {
            return Ok(());
        }
        Err(Failure::usage(format!(
            "addresses.age = {:?}: a round of {addresses} addresses takes {takes:.1?}, and must be shorter by {SOONER:?}: the \
             device forgets meanwhile; raise addresses.age and the device's ageing time, or the rates",
            self.table.age
        )))
    }

    /// Until every address is forgotten, or a signal comes.
    fn rest(&self) {
        let end = Instant::now() + self.table.age;
        while Instant::now() < end && !self.run.stop.requested() {
            std::thread::sleep(Duration::from_millis(20).min(end.saturating_duration_since(Instant::now())));
        }
    }

    /// `late`: why it was ended before its end, when its time was up.
    fn answer(&self, test: Test, found: Addresses, ended: Option<End>, late: Option<String>) -> TestResult {
        let invalid = found.rounds.iter().filter(|r| r.verdict == RoundVerdict::Invalid).count() as u32;
        let facts = LabelFacts { repeated: invalid, ..self.run.label_facts() };
        let (standard, compliance) = label::addresses(test, &self.run.plan, &facts);
        let nothing = found.rounds.iter().all(|r| r.counts.forwarded == 0) && !found.rounds.is_empty();
        let (outcome, reason) = match ended {
            None if late.is_some() => (TestOutcome::Inconclusive, late),
            None => (TestOutcome::Interrupted, None),
            Some(_) if nothing => (
                TestOutcome::NoTraffic,
                Some(
                    "no test frame came back to the learning port: is it a bridge, and are all three ports in it?"
                        .into(),
                ),
            ),
            Some(End::Found) => (TestOutcome::Done, None),
            Some(End::AtMaximum) => (
                TestOutcome::AtMaximum,
                Some("even the most that was tried was held: raise addresses.most or addresses.most_rate".into()),
            ),
            Some(End::BelowMinimum) => (TestOutcome::BelowMinimum, None),
            Some(End::Inconclusive) => (TestOutcome::Inconclusive, found.rounds.last().and_then(|r| r.why.clone())),
        };
        TestResult {
            test,
            frame_size_bytes: self.size.into(),
            outcome,
            reason,
            standard,
            compliance,
            trials: Vec::new(),
            invalid_trials: invalid,
            found: Found::Addresses(found),
        }
    }
}
