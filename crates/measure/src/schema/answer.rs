//! The answer of a search with its uncertainty.

use serde::{Deserialize, Serialize};
use units::Fps;

/// What was shown of a throughput: between which loads it lies. Loads are per direction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
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
    fn an_answer_of_before_has_none() {
        let text = r#"{"lower_fps":1.0,"upper_fps":2.0,"point_fps":1.5,"confidence":0.95,"clean_seconds":1.0,"passes":3,
                       "aside_share":0.0}"#;
        assert_eq!(serde_json::from_str::<IntervalAnswer>(text).unwrap().standing, None);
    }
}
