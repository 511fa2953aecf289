//! The answer of a search with its uncertainty.

use serde::{Deserialize, Serialize};
use units::Fps;

/// What was shown of a throughput: between which loads it lies. Loads are per direction.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct IntervalAnswer {
    /// Highest load shown to meet the goal; `None` when none was.
    pub lower_fps: Option<Fps>,
    /// Lowest load shown not to meet it; `None` when none was: the tester or the plan set the highest load.
    pub upper_fps: Option<Fps>,
    /// The likeliest load, within the two.
    pub point_fps: Option<Fps>,
    /// How much was shown; results of before it was told have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<AnswerStanding>,
    /// Confidence of the interval, 0 to 1; `None` of a search whose bounds rest on single trials (TST009, MLRsearch).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// Time behind it in slices that count, seconds.
    pub clean_seconds: f64,
    /// Passes over the loads near the answer.
    pub passes: u32,
    /// Share of the sending time that was set aside, since somebody was away.
    pub aside_share: f64,
    /// What the device forwarded while it was kept busy, whoever was away; `None` when it never was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_measured: Option<AsMeasured>,
}

/// How much was shown of a throughput.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerStanding {
    /// Both ends, as near to each other as asked.
    Found,
    /// Both ends, further apart than asked.
    Wide,
    /// A load that meets the goal, and none that does not: the tester or the plan set the highest load.
    AtLeast,
    /// A load that does not meet the goal, and none that does.
    AtMost,
    /// Nothing.
    Nothing,
}

impl AnswerStanding {
    /// Of these ends, where this width over the upper end was asked for.
    pub fn of(lower: Option<Fps>, upper: Option<Fps>, asked: f64) -> Self {
        match (lower.map(Fps::get), upper.map(Fps::get)) {
            (Some(lower), Some(upper)) if upper - lower <= asked * upper => Self::Found,
            (Some(_), Some(_)) => Self::Wide,
            (Some(_), None) => Self::AtLeast,
            (None, Some(_)) => Self::AtMost,
            (None, None) => Self::Nothing,
        }
    }
}

/// The rate that a device forwarded while it was kept busy, disturbances included.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AsMeasured {
    /// Lower end of the interval.
    pub lower_fps: Fps,
    /// Upper end of the interval.
    pub upper_fps: Fps,
    /// Mean over the passes.
    pub point_fps: Fps,
}

impl IntervalAnswer {
    /// Width over the upper end; `None` when an end is missing.
    pub fn relative_width(&self) -> Option<f64> {
        let (lower, upper) = (self.lower_fps?.get(), self.upper_fps?.get());
        (upper > 0.0).then(|| (upper - lower) / upper)
    }

    /// The same after longer trials: their highest load that passed, if one did, and the lowest that failed. `asked`: see
    /// [`AnswerStanding::of`].
    pub fn lowered(self, passed: Option<Fps>, failed: Option<Fps>, asked: f64) -> Self {
        let least = |a: Fps, b: Fps| if a.get() <= b.get() { a } else { b };
        // A device that is not the same from moment to moment may do more in another one: the upper end stays where a load passed.
        let upper_fps = match (passed, self.upper_fps, failed) {
            (Some(_), upper @ Some(_), _) => upper,
            (None, Some(upper), Some(failed)) => Some(least(upper, failed)),
            (_, upper, failed) => upper.or(failed),
        };
        let within = |point: Fps| {
            let above = passed.map_or(point.get(), |lower| point.get().max(lower.get()));
            Fps::from_raw(upper_fps.map_or(above, |upper| above.min(upper.get())))
        };
        let point_fps = if upper_fps.is_none() { passed } else { self.point_fps.map(within) };
        let standing = Some(AnswerStanding::of(passed, upper_fps, asked));
        Self { lower_fps: passed, upper_fps, point_fps, standing, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_shown_follows_from_the_ends() {
        let of = |lower: Option<f64>, upper: Option<f64>| {
            AnswerStanding::of(lower.map(Fps::from_raw), upper.map(Fps::from_raw), 0.01)
        };
        assert_eq!(of(Some(99.0), Some(100.0)), AnswerStanding::Found);
        assert_eq!(of(Some(98.9), Some(100.0)), AnswerStanding::Wide);
        assert_eq!(of(Some(5.0), None), AnswerStanding::AtLeast);
        assert_eq!(of(None, Some(5.0)), AnswerStanding::AtMost);
        assert_eq!(of(None, None), AnswerStanding::Nothing);
    }

    #[test]
    fn longer_trials_lower_an_answer() {
        let fps = |of: f64| Some(Fps::from_raw(of));
        let answer = |lower, upper| IntervalAnswer {
            lower_fps: lower,
            upper_fps: upper,
            point_fps: fps(9.0),
            ..IntervalAnswer::default()
        };
        let of = |before: IntervalAnswer, passed, failed| {
            let after = before.lowered(passed, failed, 0.01);
            (after.lower_fps, after.upper_fps, after.point_fps, after.standing)
        };
        let both = answer(fps(8.0), fps(10.0));
        assert_eq!(of(both, fps(7.0), fps(7.5)), (fps(7.0), fps(10.0), fps(9.0), Some(AnswerStanding::Wide)));
        assert_eq!(of(both, None, fps(7.5)), (None, fps(7.5), fps(7.5), Some(AnswerStanding::AtMost)));
        assert_eq!(of(both, None, fps(11.0)), (None, fps(10.0), fps(9.0), Some(AnswerStanding::AtMost)));
        let least = answer(fps(9.0), None);
        assert_eq!(
            of(least, fps(8.0), None),
            (fps(8.0), None, fps(8.0), Some(AnswerStanding::AtLeast)),
            "by the tester"
        );
        assert_eq!(of(least, fps(8.0), fps(8.5)), (fps(8.0), fps(8.5), fps(8.5), Some(AnswerStanding::Wide)));
        assert_eq!(of(least, None, None), (None, None, None, Some(AnswerStanding::Nothing)));
    }

    #[test]
    fn an_answer_of_before_has_none() {
        let text = r#"{"lower_fps":1.0,"upper_fps":2.0,"point_fps":1.5,"confidence":0.95,"clean_seconds":1.0,"passes":3,
                       "aside_share":0.0}"#;
        assert_eq!(serde_json::from_str::<IntervalAnswer>(text).unwrap().standing, None);
    }
}
