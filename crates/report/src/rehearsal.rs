//! What a plan may be expected to take: `linerate bench --dry-run`.

use measure::result::Verdict;

use crate::{num, table::Table, text, Style};

/// A plan driven against simulated devices, once a seed.
#[derive(Debug, Clone, PartialEq)]
pub struct Rehearsal {
    /// The plan and what it searches, in words.
    pub plan: String,
    /// The simulated device, in words.
    pub dut: String,
    /// One entry a seed.
    pub runs: Vec<Rehearsed>,
}

/// One run of the plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rehearsed {
    /// Trials made, latency trials counted.
    pub trials: usize,
    /// Virtual seconds, waits counted.
    pub seconds: f64,
    /// How it ended.
    pub verdict: Verdict,
}

/// The figures of all seeds: median, 90th percentile and extremes.
pub fn render(rehearsal: &Rehearsal, style: &Style) -> String {
    let runs = &rehearsal.runs;
    let mut out = format!("plan       {}\n", text::styled(&rehearsal.plan, style));
    out.push_str(&format!("device     {}\n", text::styled(&rehearsal.dut, style)));
    let passed = runs.iter().filter(|r| r.verdict == Verdict::Passed).count();
    let others = |verdict, word: &str| match runs.iter().filter(|r| r.verdict == verdict).count() {
        0 => String::new(),
        n => format!(", {n} {word}"),
    };
    out.push_str(&format!(
        "runs       {}, one a seed: {passed} passed{}{}\n",
        runs.len(),
        others(Verdict::Failed, "failed"),
        others(Verdict::Inconclusive, "inconclusive")
    ));
    if runs.is_empty() {
        return out;
    }
    let mut t = Table::default();
    t.left(0, "", "");
    for name in ["median", "p90", "least", "most"] {
        t.right(1, name, "");
    }
    let mut row = |name: &str, of: &dyn Fn(&Rehearsed) -> f64, shown: &dyn Fn(f64) -> String| {
        let mut all: Vec<f64> = runs.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        let figures = [0.5, 0.9, 0.0, 1.0].map(|share| shown(nearest_rank(&all, share)).into());
        t.row(std::iter::once(name.into()).chain(figures).collect());
    };
    row("trials", &|r| r.trials as f64, &|v| num::thousands(v as u64));
    row("duration", &|r| r.seconds, &num::duration);
    out.push('\n');
    out.push_str(&t.text(style));
    out
}

/// The smallest value that so large a share of all is no more than.
fn nearest_rank(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted.get(rank - 1).or(sorted.last()).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_of_all_seeds() {
        let run = |n: u32| Rehearsed {
            trials: 10 * n as usize,
            seconds: f64::from(n) * 60.0,
            verdict: if n == 10 { Verdict::Inconclusive } else { Verdict::Passed },
        };
        let all = Rehearsal { plan: "ci".into(), dut: "sim".into(), runs: (1..=10).map(run).collect() };
        insta::assert_snapshot!(render(&all, &Style::PIPE), @r"
        plan       ci
        device     sim
        runs       10, one a seed: 9 passed, 1 inconclusive

                      median         p90  least         most
        ────────  ──────────  ──────────  ─────  ───────────
        trials            50          90     10          100
        duration  5 min 00 s  9 min 00 s   60 s  10 min 00 s
        ");
        assert!(render(&Rehearsal { runs: vec![], ..all }, &Style::PIPE).contains("0, one a seed: 0 passed"));
    }
}
