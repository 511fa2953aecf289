//! What a plan is expected to take: `linerate bench --dry-run`.

use measure::result::{Standing, Verdict};
use serde_json::json;
use units::{Fps, Frames};

use crate::{num, style::Style, table::Table, text};

/// A plan driven against simulated devices, once a seed.
#[derive(Debug, Clone, PartialEq)]
pub struct DryRun {
    /// The plan and what it searches, in words.
    pub plan: String,
    /// The simulated device, in words.
    pub dut: String,
    /// What the device forwards without loss, where that is one figure.
    pub capacity: Option<Fps>,
    /// One entry a seed.
    pub runs: Vec<DryRunOutcome>,
}

/// One run of the plan.
#[derive(Debug, Clone, PartialEq)]
pub struct DryRunOutcome {
    /// Trials made, latency trials counted.
    pub trials: usize,
    /// Virtual seconds, waits counted.
    pub seconds: f64,
    /// How it stands.
    pub standing: Standing,
    /// The throughput at each frame size where one was found, in the order of the plan.
    pub answers: Vec<DryRunAnswer>,
}

/// A throughput that a run found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DryRunAnswer {
    /// At this frame size.
    pub frame_size: Frames,
    /// Per direction.
    pub throughput_fps: Fps,
    /// The device set it, not the highest load of the plan or of the tester.
    pub of_device: bool,
}

/// What the runs answered at a frame size.
struct Precision {
    frame_size: Frames,
    answers: usize,
    median_fps: f64,
    /// From the least to the most answer, as a share of the median.
    spread: f64,
    /// From the capacity to the median, as a share of the capacity; of answers that are the device's.
    from_capacity: Option<f64>,
}

impl DryRun {
    /// Each frame size, in the order of the plan.
    fn precision(&self) -> Vec<Precision> {
        let mut sizes: Vec<Frames> = Vec::new();
        for answer in self.runs.iter().flat_map(|run| &run.answers) {
            if !sizes.contains(&answer.frame_size) {
                sizes.push(answer.frame_size);
            }
        }
        let of = |frame_size: Frames| {
            let here = || self.runs.iter().flat_map(|run| &run.answers).filter(|a| a.frame_size == frame_size);
            let mut all: Vec<f64> = here().map(|a| a.throughput_fps.get()).collect();
            all.sort_by(f64::total_cmp);
            let (median_fps, least, most) = (nearest_rank(&all, 0.5), nearest_rank(&all, 0.0), nearest_rank(&all, 1.0));
            let known = self.capacity.map(Fps::get).filter(|&c| c > 0.0 && here().all(|a| a.of_device));
            Precision {
                frame_size,
                answers: all.len(),
                median_fps,
                spread: if median_fps > 0.0 { (most - least) / median_fps } else { 0.0 },
                from_capacity: known.map(|capacity| (median_fps - capacity) / capacity),
            }
        };
        sizes.into_iter().map(of).collect()
    }
}

/// The outcome of each run, as indented JSON: each plan by its name, which is empty for a plan alone.
pub fn json(parts: &[(String, DryRun)]) -> String {
    let run = |r: &DryRunOutcome| json!({ "trials": r.trials, "duration_s": r.seconds, "standing": r.standing });
    let part = |(name, part): &(String, DryRun)| {
        let runs: Vec<_> = part.runs.iter().map(run).collect();
        let size = |p: Precision| {
            json!({
                "frame_size_bytes": p.frame_size, "answers": p.answers, "median_fps": p.median_fps, "spread": p.spread,
                "from_capacity": p.from_capacity,
            })
        };
        let sizes: Vec<_> = part.precision().into_iter().map(size).collect();
        json!({
            "name": name, "plan": part.plan, "dut": part.dut, "capacity_fps": part.capacity, "sizes": sizes, "runs": runs,
        })
    };
    let plans: Vec<_> = parts.iter().map(part).collect();
    format!("{:#}\n", json!({ "schema": "linerate-dry-run/1", "plans": plans }))
}

/// The figures of all seeds: median, 90th percentile and extremes.
pub fn render(dry_run: &DryRun, style: &Style) -> String {
    let runs = &dry_run.runs;
    let mut out = format!("plan       {}\n", text::styled(&dry_run.plan, style));
    out.push_str(&format!("device     {}\n", text::styled(&dry_run.dut, style)));
    let passed = runs.iter().filter(|r| r.standing.is_good()).count();
    let others = |verdict, word: &str| match runs.iter().filter(|r| r.standing.verdict() == verdict).count() {
        0 => String::new(),
        n => format!(", {n} {word}"),
    };
    out.push_str(&format!(
        "runs       {}, one for each seed: {passed} completed{}{}\n",
        runs.len(),
        others(Verdict::Failed, "missed a criterion"),
        others(Verdict::Inconclusive, "not trustworthy")
    ));
    if runs.is_empty() {
        return out;
    }
    let mut t = Table::default();
    t.left(0, "", "");
    for name in ["median", "p90", "least", "most"] {
        t.right(1, name, "");
    }
    let mut row = |name: &str, of: &dyn Fn(&DryRunOutcome) -> f64, shown: &dyn Fn(f64) -> String| {
        let mut all: Vec<f64> = runs.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        let figures = [0.5, 0.9, 0.0, 1.0].map(|share| shown(nearest_rank(&all, share)).into());
        t.row(std::iter::once(name.into()).chain(figures).collect());
    };
    row("trials", &|r| r.trials as f64, &|v| num::thousands(v as u64));
    row("duration", &|r| r.seconds, &num::duration);
    out.push('\n');
    out.push_str(&t.text(style));
    out.push_str(&precision(dry_run, style));
    out
}

/// What the runs answered at each frame size: how far a measured figure may be off by chance alone.
fn precision(dry_run: &DryRun, style: &Style) -> String {
    let sizes = dry_run.precision();
    if sizes.is_empty() {
        return String::new();
    }
    let mut t = Table::default();
    t.left(0, "frame size", "");
    t.right(1, "throughput", "median");
    t.right(1, "spread", "most - least");
    t.right(1, "off the device's", "capacity");
    t.right(1, "answers", "of the runs");
    let percent = |share: f64| format!("{:.2} %", share * 100.0);
    for p in sizes {
        t.row(vec![
            p.frame_size.with_unit("B").into(),
            Fps::from_raw(p.median_fps).to_string().into(),
            percent(p.spread).into(),
            p.from_capacity.map_or_else(|| "-".to_owned(), |off| format!("{:+.2} %", off * 100.0)).into(),
            format!("{}/{}", p.answers, dry_run.runs.len()).into(),
        ]);
    }
    format!("\n{}", t.text(style))
}

/// Several plans, run one after the other: a row each, and their sum seed by seed.
pub fn render_all(parts: &[(String, DryRun)], style: &Style) -> String {
    let mut t = Table::default();
    t.left(0, "", "");
    t.right(1, "trials", "median");
    t.right(1, "duration", "median");
    t.right(1, "duration", "p90");
    t.right(1, "completed", "of the runs");
    let mut row = |name: &str, runs: &[DryRunOutcome]| {
        let sorted = |of: fn(&DryRunOutcome) -> f64| {
            let mut all: Vec<f64> = runs.iter().map(of).collect();
            all.sort_by(f64::total_cmp);
            all
        };
        let (trials, seconds) = (sorted(|r| r.trials as f64), sorted(|r| r.seconds));
        let passed = runs.iter().filter(|r| r.standing.is_good()).count();
        t.row(vec![
            text::clip(&text::clean(name), 60).into(),
            num::thousands(nearest_rank(&trials, 0.5) as u64).into(),
            num::duration(nearest_rank(&seconds, 0.5)).into(),
            num::duration(nearest_rank(&seconds, 0.9)).into(),
            format!("{passed}/{}", runs.len()).into(),
        ]);
    };
    parts.iter().filter(|(_, part)| !part.runs.is_empty()).for_each(|(name, part)| row(name, &part.runs));
    let seeds = parts.iter().map(|(_, part)| part.runs.len()).min().unwrap_or(0);
    let sum = |seed: usize| {
        let of_seed = || parts.iter().filter_map(|(_, part)| part.runs.get(seed));
        let all_passed = of_seed().all(|r| r.standing.is_good());
        DryRunOutcome {
            trials: of_seed().map(|r| r.trials).sum(),
            seconds: of_seed().map(|r| r.seconds).sum(),
            standing: if all_passed { Standing::Completed } else { Standing::CriterionMissed },
            answers: Vec::new(),
        }
    };
    if seeds > 0 {
        row("together", &(0..seeds).map(sum).collect::<Vec<_>>());
    }
    t.text(style)
}

/// The nearest-rank percentile: the smallest value that this share of all values does not exceed.
fn nearest_rank(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted.get(rank - 1).or(sorted.last()).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_of_all_seeds() {
        let run = |n: u32| DryRunOutcome {
            trials: 10 * n as usize,
            seconds: f64::from(n) * 60.0,
            standing: if n == 10 { Standing::NotTrustworthy } else { Standing::Completed },
            answers: Vec::new(),
        };
        let all = DryRun { plan: "ci".into(), dut: "sim".into(), capacity: None, runs: (1..=10).map(run).collect() };
        insta::assert_snapshot!(render(&all, &Style::PIPE), @r"
        plan       ci
        device     sim
        runs       10, one for each seed: 9 completed, 1 not trustworthy

                      median         p90  least         most
        ────────  ──────────  ──────────  ─────  ───────────
        trials            50          90     10          100
        duration  5 min 00 s  9 min 00 s   60 s  10 min 00 s
        ");
        let two = [("a".to_owned(), all.clone()), ("b".to_owned(), all.clone())];
        insta::assert_snapshot!(render_all(&two, &Style::PIPE), @r"
                  trials     duration     duration    completed
                  median       median          p90  of the runs
        ────────  ──────  ───────────  ───────────  ───────────
        a             50   5 min 00 s   9 min 00 s         9/10
        b             50   5 min 00 s   9 min 00 s         9/10
        together     100  10 min 00 s  18 min 00 s         9/10
        ");
        let json: serde_json::Value = serde_json::from_str(&json(&two)).unwrap();
        let last = json!({ "trials": 100, "duration_s": 600.0, "standing": "not_trustworthy" });
        assert_eq!((&json["plans"][1]["name"], &json["plans"][1]["runs"][9]), (&"b".into(), &last));
        insta::assert_snapshot!(render(&DryRun { runs: vec![], ..all }, &Style::PIPE), @r"
        plan       ci
        device     sim
        runs       0, one for each seed: 0 completed
        ");
    }

    #[test]
    fn the_precision_to_expect_is_the_spread_of_the_answers() {
        let run = |n: u32| {
            let answer = |size: u16, fps: f64, of_device| DryRunAnswer {
                frame_size: units::FrameSize::new(size.into()).unwrap().into(),
                throughput_fps: Fps::from_raw(fps),
                of_device,
            };
            let mut answers = vec![answer(64, 9.8e6 + 1e5 * f64::from(n), true), answer(1518, 812_744.0, false)];
            answers.truncate(if n == 3 { 1 } else { 2 });
            DryRunOutcome { trials: 10, seconds: 60.0, standing: Standing::Completed, answers }
        };
        let capacity = Some(Fps::from_raw(10e6));
        let all = DryRun { plan: "p".into(), dut: "sim".into(), capacity, runs: (1..=3).map(run).collect() };
        let text = render(&all, &Style::PIPE);
        let row = |size: &str| {
            let line = text.lines().find(|l| l.starts_with(size)).unwrap_or_else(|| panic!("no {size} in {text}"));
            line.split("  ").filter(|p| !p.trim().is_empty()).map(|p| p.trim().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(row("64 B"), ["64 B", "10.00 Mpps", "2.00 %", "+0.00 %", "3/3"]);
        assert_eq!(row("1518 B")[2..], ["0.00 %", "-", "2/3"], "the link's, not the device's");
        let json: serde_json::Value = serde_json::from_str(&json(&[(String::new(), all)])).unwrap();
        let size = &json["plans"][0]["sizes"][0];
        assert_eq!(
            (&size["frame_size_bytes"], &size["median_fps"], &size["answers"]),
            (&64.into(), &10e6.into(), &3.into())
        );
        assert!((size["spread"].as_f64().unwrap() - 0.02).abs() < 1e-9 && size["from_capacity"] == 0.0, "{size}");
    }
}
