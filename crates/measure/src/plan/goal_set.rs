//! The goals of an MLRsearch: named sets, and what makes goals sound.

use std::{str::FromStr, time::Duration};

use serde::{Deserialize, Serialize};
use units::Ratio;

use super::error::PlanError;
use crate::schema::{goal::SearchGoal, text::span_text};

/// Sending time of a full-length trial with `--quick`, seconds.
const QUICK_S: f64 = 0.1;
const QUICK_WIDTH: f64 = 0.01;
/// Most goals of one search.
const MAX_GOALS: usize = 16;

/// The first thing wrong with it: key, value, and what is legal.
fn check(goal: &SearchGoal) -> Result<(), PlanError> {
    let bad = |key: &str, value: String, legal: String| {
        Err(PlanError::value(format!("goal {:?}: {key}", goal.name), value, legal))
    };
    let spans = [("final_duration", goal.final_duration), ("duration_sum", goal.duration_sum)];
    let initial = goal.initial_duration.map(|d| ("initial_duration", d));
    for (key, span) in spans.into_iter().chain(initial) {
        if span.is_zero() {
            return bad(key, span_text(span), "must be above zero".to_owned());
        }
    }
    for (key, ratio) in [("loss_ratio", goal.loss_ratio), ("exceed_ratio", goal.exceed_ratio)] {
        if ratio.get() >= 1.0 {
            return bad(key, ratio.to_string(), "must be from 0% to below 100%".to_owned());
        }
    }
    let width = goal.width;
    if !(1e-6..=0.5).contains(&width.get()) {
        return bad("width", width.to_string(), "must be 0.0001% to 50%".to_owned());
    }
    if width < goal.loss_ratio {
        let legal =
            format!("must be no less than loss_ratio = {}: the goals' throughputs could cross", goal.loss_ratio);
        return bad("width", width.to_string(), legal);
    }
    if goal.duration_sum < goal.final_duration {
        let legal = format!("must be no less than final_duration = {}", span_text(goal.final_duration));
        return bad("duration_sum", span_text(goal.duration_sum), legal);
    }
    match goal.initial_duration {
        Some(initial) if initial > goal.final_duration => {
            let legal = format!("must be no more than final_duration = {}", span_text(goal.final_duration));
            bad("initial_duration", span_text(initial), legal)
        }
        _ => Ok(()),
    }
}

/// The goals of one search: at least one, each of them sound, none of them twice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "Vec<SearchGoal>", try_from = "Vec<SearchGoal>")]
pub struct GoalSet(Vec<SearchGoal>);

impl GoalSet {
    /// The names that [`GoalSet::from_str`] takes.
    pub const NAMES: [&'static str; 3] = ["csit", "rfc2544", "tst009"];

    /// Checks goals: each by itself, and against each other. Errors in one line: goal, key, value, what is legal.
    pub fn new(goals: Vec<SearchGoal>) -> Result<Self, PlanError> {
        if goals.is_empty() || goals.len() > MAX_GOALS {
            return Err(PlanError::value("goals", goals.len(), format!("must be 1 to {MAX_GOALS} search goals")));
        }
        for (i, goal) in goals.iter().enumerate() {
            check(goal)?;
            for earlier in &goals[..i] {
                if earlier.name == goal.name {
                    let legal = "must be another name for each goal";
                    return Err(PlanError::value(format!("goal {}: name", i + 1), format!("{:?}", goal.name), legal));
                }
                if (SearchGoal { name: String::new(), ..earlier.clone() })
                    == (SearchGoal { name: String::new(), ..goal.clone() })
                {
                    let legal = format!("asks for the same as goal {:?}: leave one out", earlier.name);
                    return Err(PlanError::value("goal", format!("{:?}", goal.name), legal));
                }
            }
        }
        Ok(Self(goals))
    }

    /// What FD.io CSIT searches for: without loss (NDR), and with at most 0.5 % (PDR).
    pub fn csit() -> Self {
        Self(vec![SearchGoal::default(), SearchGoal::of("PDR", (1, 21), (0.005, 0.5), 0.005)])
    }

    /// The goal whose result is unconditionally compliant with RFC 2544 §24 (RFC 9971, MLRsearch Compliant with RFC
    /// 2544). With shorter first trials, which can only make upper bounds.
    pub fn rfc2544() -> Self {
        Self(vec![SearchGoal::of("RFC 2544", (60, 60), (0.0, 0.0), 0.005).tried_for_a_second()])
    }

    /// Binary search with loss verification, max(r) = 2, z = infinity (RFC 9971, MLRsearch Compliant with TST009). With
    /// shorter first trials, too; those that lose nothing count for nothing but against others that do.
    pub fn tst009() -> Self {
        Self(vec![SearchGoal::of("TST009", (60, 120), (0.0, 0.5), 0.005).tried_for_a_second()])
    }

    /// The same goals with trials of at most 0.1 s and as many of them, to a width of at least 1 %.
    pub(crate) fn quick(&self) -> Vec<SearchGoal> {
        let short = |goal: &SearchGoal| {
            let factor = (QUICK_S / goal.final_s()).min(1.0);
            let least = Duration::from_millis(10);
            SearchGoal {
                final_duration: goal.final_duration.mul_f64(factor),
                duration_sum: goal.duration_sum.mul_f64(factor),
                initial_duration: goal
                    .initial_duration
                    .map(|d| d.mul_f64(factor).max(least).min(goal.final_duration.mul_f64(factor))),
                width: Ratio::new(goal.width.get().max(QUICK_WIDTH)).unwrap_or(goal.width),
                ..goal.clone()
            }
        };
        self.0.iter().map(short).collect()
    }

    /// The goals, in the order given; never none.
    pub fn goals(&self) -> &[SearchGoal] {
        &self.0
    }
}

impl TryFrom<Vec<SearchGoal>> for GoalSet {
    type Error = PlanError;

    fn try_from(goals: Vec<SearchGoal>) -> Result<Self, PlanError> {
        Self::new(goals)
    }
}

impl From<GoalSet> for Vec<SearchGoal> {
    fn from(set: GoalSet) -> Self {
        set.0
    }
}

impl FromStr for GoalSet {
    type Err = PlanError;

    fn from_str(name: &str) -> Result<Self, PlanError> {
        match name {
            "csit" => Ok(Self::csit()),
            "rfc2544" => Ok(Self::rfc2544()),
            "tst009" => Ok(Self::tst009()),
            _ => Err(PlanError::value("goals", name, format!("must be one of {}", Self::NAMES.join(", ")))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_goals_are_sound() {
        for name in GoalSet::NAMES {
            let set: GoalSet = name.parse().unwrap();
            assert_eq!(GoalSet::new(set.goals().to_vec()).unwrap(), set);
        }
        insta::assert_snapshot!("ndr".parse::<GoalSet>().unwrap_err(), @"goals = ndr: must be one of csit, rfc2544, tst009");
    }

    #[test]
    fn goals_read_from_toml() {
        let goal: SearchGoal = toml::from_str("name = 'x'\nfinal_duration = '2s'\nloss_ratio = '0.1%'").unwrap();
        assert_eq!((goal.final_s(), goal.initial_s(), goal.sum_s()), (2.0, 2.0, 21.0));
        let again: SearchGoal = toml::from_str(&toml::to_string(&goal).unwrap()).unwrap();
        assert_eq!(again, goal);
        assert!(toml::from_str::<SearchGoal>("speed = 1").is_err());
    }

    #[test]
    fn what_contradicts_itself_is_refused_in_one_line() {
        let s = Duration::from_secs;
        let with = |change: fn(&mut SearchGoal)| {
            let mut goal = SearchGoal::default();
            change(&mut goal);
            GoalSet::new(vec![goal]).unwrap_err().to_string()
        };
        let mut errors = vec![
            GoalSet::new(Vec::new()).unwrap_err().to_string(),
            with(|g| g.final_duration = Duration::ZERO),
            with(|g| g.initial_duration = Some(Duration::ZERO)),
            with(|g| g.initial_duration = Some(Duration::from_secs(2))),
            with(|g| g.duration_sum = Duration::from_millis(500)),
            with(|g| g.loss_ratio = Ratio::new(1.0).unwrap()),
            with(|g| g.exceed_ratio = Ratio::new(1.0).unwrap()),
            with(|g| g.width = Ratio::ZERO),
            with(|g| g.loss_ratio = Ratio::new(0.01).unwrap()),
        ];
        let (one, two) = (SearchGoal::default(), SearchGoal { final_duration: s(2), ..SearchGoal::default() });
        errors.push(GoalSet::new(vec![one.clone(), two]).unwrap_err().to_string());
        let same = SearchGoal { name: "again".to_owned(), ..one.clone() };
        errors.push(GoalSet::new(vec![one, same]).unwrap_err().to_string());
        insta::assert_snapshot!(errors.join("\n"), @r#"
        goals = 0: must be 1 to 16 search goals
        goal "NDR": final_duration = 0s: must be above zero
        goal "NDR": initial_duration = 0s: must be above zero
        goal "NDR": initial_duration = 2s: must be no more than final_duration = 1s
        goal "NDR": duration_sum = 500ms: must be no less than final_duration = 1s
        goal "NDR": loss_ratio = 100 %: must be from 0% to below 100%
        goal "NDR": exceed_ratio = 100 %: must be from 0% to below 100%
        goal "NDR": width = 0 %: must be 0.0001% to 50%
        goal "NDR": width = 0.5 %: must be no less than loss_ratio = 1 %: the goals' throughputs could cross
        goal 2: name = "NDR": must be another name for each goal
        goal = "again": asks for the same as goal "NDR": leave one out
        "#);
    }
}
