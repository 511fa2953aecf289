//! The highest rate of new flows that is held.

/// A search between bounds: from the upper one down, by halves until one is held, then by bisection.
#[derive(Debug, Clone, Copy)]
pub struct Search {
    lower: f64,
    precision: f64,
    /// The next rate to try.
    next: Option<f64>,
    /// The highest that was held.
    pub held: Option<f64>,
    /// The lowest that was not.
    pub not_held: Option<f64>,
}

impl Search {
    /// Between these rates, until the bounds are as near as this, relative to the upper.
    pub fn new(lower: f64, upper: f64, precision: f64) -> Self {
        Self { lower, precision: precision.max(1e-4), next: Some(upper.max(lower)), held: None, not_held: None }
    }

    /// The rate to try; `None` when all is known.
    pub fn next(&self) -> Option<f64> {
        self.next
    }

    /// Whether the rate just tried was held.
    pub fn report(&mut self, held: bool) {
        let Some(rate) = self.next else { return };
        *(if held { &mut self.held } else { &mut self.not_held }) = Some(rate);
        self.next = match (self.held, self.not_held) {
            (_, None) => None,
            (None, Some(high)) => (high > self.lower).then(|| (high / 2.0).max(self.lower)),
            (Some(low), Some(high)) => (high - low > self.precision * high).then_some((low + high) / 2.0),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(truth: f64, lower: f64, upper: f64) -> (Option<f64>, Option<f64>, u32) {
        let (mut search, mut trials) = (Search::new(lower, upper, 0.01), 0);
        while let Some(rate) = search.next() {
            search.report(rate <= truth);
            trials += 1;
        }
        (search.held, search.not_held, trials)
    }

    #[test]
    fn the_truth_is_between_the_bounds() {
        for truth in [1500.0, 77_777.0, 1e6, 3.9e6] {
            let (held, not_held, trials) = run(truth, 1000.0, 4e6);
            let (held, not_held) = (held.unwrap(), not_held.unwrap());
            assert!(held <= truth && truth < not_held && not_held - held <= 0.01 * not_held && trials < 24);
        }
        assert_eq!(run(9e9, 1000.0, 4e6), (Some(4e6), None, 1));
        let (held, not_held, _) = run(10.0, 1000.0, 4e6);
        assert_eq!((held, not_held), (None, Some(1000.0)));
    }
}
