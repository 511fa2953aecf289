//! Bisection: the highest value that passes, looked for between one that passed and one that failed.
//!
//! The one place that halves an interval. The binary search for the throughput, the address tests and the search for a
//! flow logger's rate go by it. (The loop of TST009 runs over the indices of an array, as the standard writes it.)

/// The bounds so far.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Bracket {
    passed: Option<f64>,
    failed: Option<f64>,
}

impl Bracket {
    /// The highest value that passed.
    pub fn passed(&self) -> Option<f64> {
        self.passed
    }

    /// The lowest value that failed.
    pub fn failed(&self) -> Option<f64> {
        self.failed
    }

    /// Takes what a value gave.
    pub fn report(&mut self, value: f64, passed: bool) {
        *(if passed { &mut self.passed } else { &mut self.failed }) = Some(value);
    }
}

/// Whether the width of an interval is at most this share of its upper end.
pub fn is_narrow(low: f64, high: f64, width: f64) -> bool {
    high - low <= high * width
}

/// The middle of an interval.
pub fn middle(low: f64, high: f64) -> f64 {
    low + (high - low) / 2.0
}

/// The middle in whole numbers where that is strictly inside, otherwise exactly; `None` when the interval is empty.
pub fn whole_middle(low: f64, high: f64) -> Option<f64> {
    let exact = middle(low, high);
    let is_inside = |value: f64| value > low && value < high;
    [exact.round(), exact].into_iter().find(|&value| is_inside(value))
}

/// A search from the highest value down: by halves until one passes, then by bisection.
#[derive(Debug, Clone, Copy)]
pub struct Descent {
    lowest: f64,
    width: f64,
    next: Option<f64>,
    bounds: Bracket,
}

impl Descent {
    /// Between these values, until the bounds are as near as this share of the upper one.
    pub fn new(lowest: f64, highest: f64, width: f64) -> Self {
        Self { lowest, width: width.max(1e-4), next: Some(highest.max(lowest)), bounds: Bracket::default() }
    }

    /// The value to try; `None` when the search has ended.
    pub fn next(&self) -> Option<f64> {
        self.next
    }

    /// The bounds so far.
    pub fn bounds(&self) -> Bracket {
        self.bounds
    }

    /// Takes what the value to try gave.
    pub fn report(&mut self, passed: bool) {
        let Some(value) = self.next else { return };
        self.bounds.report(value, passed);
        self.next = match (self.bounds.passed, self.bounds.failed) {
            (_, None) => None,
            (None, Some(high)) => (high > self.lowest).then(|| middle(0.0, high).max(self.lowest)),
            (Some(low), Some(high)) => (!is_narrow(low, high, self.width)).then(|| middle(low, high)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(truth: f64, lowest: f64, highest: f64) -> (Option<f64>, Option<f64>, u32) {
        let (mut search, mut trials) = (Descent::new(lowest, highest, 0.01), 0);
        while let Some(rate) = search.next() {
            search.report(rate <= truth);
            trials += 1;
        }
        (search.bounds().passed(), search.bounds().failed(), trials)
    }

    #[test]
    fn the_truth_is_between_the_bounds() {
        for truth in [1500.0, 77_777.0, 1e6, 3.9e6] {
            let (passed, failed, trials) = run(truth, 1000.0, 4e6);
            let (passed, failed) = (passed.unwrap(), failed.unwrap());
            assert!(passed <= truth && truth < failed && failed - passed <= 0.01 * failed && trials < 24);
        }
        assert_eq!(run(9e9, 1000.0, 4e6), (Some(4e6), None, 1));
        let (passed, failed, _) = run(10.0, 1000.0, 4e6);
        assert_eq!((passed, failed), (None, Some(1000.0)));
    }

    #[test]
    fn whole_numbers_are_taken_where_there_are_any() {
        assert_eq!(whole_middle(1.0, 4.0), Some(3.0));
        assert_eq!(whole_middle(1.0, 2.0), Some(1.5));
        assert_eq!(whole_middle(1.0, 1.8), Some(1.4), "1 is not inside");
        assert_eq!(whole_middle(1.0, 1.0), None);
        assert!(is_narrow(99.0, 100.0, 0.01) && !is_narrow(98.9, 100.0, 0.01));
    }
}
