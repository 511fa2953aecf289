//! What a setting is worth: figures measured without and with a change, in turn, and whether they differ by more than noise.

use serde::{Deserialize, Serialize};

use crate::student::t_95;

/// Schema of an [`EffectResult`].
pub const EFFECT_SCHEMA: &str = "linerate-effect-1";

/// What a change was worth on a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EffectResult {
    /// Of this program.
    pub schema: String,
    /// Version of the program.
    pub linerate_version: String,
    /// The rule's id, `kernel.watchdog`.
    pub id: String,
    /// What was changed, as commands.
    pub changes: Vec<String>,
    /// When it began.
    pub measured_at: String,
    /// The kernel's release.
    pub kernel: String,
    /// Model of the CPU.
    pub cpu_model: String,
    /// What the tester measured, in words: the plan and the device.
    pub test: String,
    /// Figures of every leg.
    pub figures: Vec<EffectFigure>,
    /// What speaks against figures: legs that failed, or that cannot be trusted.
    pub failures: Vec<String>,
}

/// A figure without and with the change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EffectFigure {
    /// What it is: `throughput at 64 B`.
    pub name: String,
    /// Its unit: `fps`, `us`, `%`, `1/s`.
    pub unit: String,
    /// Whether more of it is better.
    pub more_is_better: bool,
    /// As the machine was, one value a leg.
    pub without: Vec<f64>,
    /// With the change.
    pub with: Vec<f64>,
    /// The difference; `None` of less than two legs each.
    pub change: Option<Change>,
}

impl EffectFigure {
    /// Legs of each kind from which on a difference is called one: of fewer, chance alone is often larger than what it says of
    /// itself.
    pub const LEGS: usize = 6;

    /// Whether there are enough legs to tell a difference from chance.
    pub fn is_enough(&self) -> bool {
        self.without.len().min(self.with.len()) >= Self::LEGS
    }
}

/// A difference with its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Mean without the change.
    pub without: f64,
    /// Mean with it.
    pub with: f64,
    /// By how much the difference of the means may be wrong, with 95 % confidence.
    pub plus_minus: f64,
}

impl Change {
    /// The difference of these figures (Welch's test, with the degrees of freedom of Welch and Satterthwaite, rounded down). `None`
    /// of less than two figures each, or of one that is not finite.
    pub fn of(without: &[f64], with: &[f64]) -> Option<Self> {
        let (a, b) = (spread(without)?, spread(with)?);
        let (of_a, of_b) = (a.1 / without.len() as f64, b.1 / with.len() as f64);
        let variance = of_a + of_b;
        let parts = of_a.powi(2) / (without.len() - 1) as f64 + of_b.powi(2) / (with.len() - 1) as f64;
        // One spread of 0 leaves the degrees of the other; of two, nothing is uncertain. What is lost in the last digit is given back.
        let degrees = if parts > 0.0 { (variance.powi(2) / parts + 1e-6) as usize } else { 1 };
        Some(Self { without: a.0, with: b.0, plus_minus: t_95(degrees.max(1)) * variance.sqrt() })
    }

    /// With the change less without it.
    pub fn difference(&self) -> f64 {
        self.with - self.without
    }

    /// Whether figures that are the same differ as much.
    pub fn is_noise(&self) -> bool {
        self.difference().abs() <= self.plus_minus
    }

    /// Difference and uncertainty in percent of the figure without the change; `None` where that is 0.
    pub fn percent(&self) -> Option<(f64, f64)> {
        let share = |of: f64| of / self.without * 100.0;
        (self.without > 0.0).then(|| (share(self.difference()), share(self.plus_minus)))
    }
}

/// Mean and variance.
fn spread(figures: &[f64]) -> Option<(f64, f64)> {
    if figures.len() < 2 || figures.iter().any(|figure| !figure.is_finite()) {
        return None;
    }
    let mean = figures.iter().sum::<f64>() / figures.len() as f64;
    let squares = figures.iter().map(|figure| (figure - mean).powi(2)).sum::<f64>();
    Some((mean, squares / (figures.len() - 1) as f64))
}

/// Without, with, with, without, and so on: what drifts in time comes to both sides alike.
pub fn order(rounds: u32) -> Vec<bool> {
    [false, true, true, false].repeat(rounds as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_has_its_uncertainty() {
        let change = Change::of(&[9.0, 11.0], &[19.0, 21.0]).unwrap();
        assert_eq!((change.without, change.with, change.difference()), (10.0, 20.0, 10.0));
        // Variances of 2 each, two figures each: sqrt(2/2 + 2/2) by 4.303.
        assert!((change.plus_minus - 4.303 * 2.0_f64.sqrt()).abs() < 1e-9, "{change:?}");
        assert!(!change.is_noise());
        let (percent, plus_minus) = change.percent().unwrap();
        assert!((percent - 100.0).abs() < 1e-9 && (plus_minus - 60.853_6).abs() < 1e-3, "{plus_minus}");
        // Variances of 2 and 8: 25/17 degrees of freedom, so 1.
        let unlike = Change::of(&[9.0, 11.0], &[18.0, 22.0]).unwrap();
        assert!((unlike.plus_minus - 12.706 * 5.0_f64.sqrt()).abs() < 1e-2, "{unlike:?}");
        // One side without a spread: the other's degrees, 2.
        let one = Change::of(&[5.0, 5.0, 5.0], &[9.0, 10.0, 11.0]).unwrap();
        assert!((one.plus_minus - 4.303 / 3.0_f64.sqrt()).abs() < 1e-3, "{one:?}");
        let noise = Change::of(&[9.0, 11.0], &[10.0, 14.0]).unwrap();
        assert!(noise.is_noise(), "{noise:?}");
        let same = Change::of(&[5.0, 5.0], &[5.0, 5.0]).unwrap();
        assert!(same.is_noise() && same.plus_minus == 0.0);
        assert_eq!(Change::of(&[0.0, 0.0], &[1.0, 1.0]).unwrap().percent(), None);
    }

    #[test]
    fn too_few_figures_or_odd_ones_make_no_difference() {
        assert_eq!(Change::of(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(Change::of(&[1.0, 2.0], &[]), None);
        assert_eq!(Change::of(&[1.0, 2.0], &[1.0, f64::NAN]), None);
    }

    #[test]
    fn many_figures_have_a_smaller_t() {
        let of = |n: usize| {
            let figures: Vec<f64> = (0..n).map(|i| if i % 2 == 0 { 1.0 } else { 3.0 }).collect();
            let change = Change::of(&figures, &figures).unwrap();
            let variance = figures.len() as f64 / (figures.len() - 1) as f64;
            change.plus_minus / (2.0 * variance / n as f64).sqrt()
        };
        assert!((of(6) - 2.228).abs() < 1e-9, "{}", of(6));
        // 14 degrees of freedom: 2.145 in the tables.
        assert!((of(8) - 2.145).abs() < 1e-9, "{}", of(8));
        assert!((of(100) - 1.972).abs() < 2e-3, "{}", of(100));
    }

    #[test]
    fn legs_come_in_turn() {
        assert_eq!(order(1), [false, true, true, false]);
        assert_eq!(order(2).len(), 8);
    }
}
