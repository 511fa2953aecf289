//! Student's t: how far the mean of a few samples may be from the truth.

/// Two-sided, for a confidence of 95 %, by degrees of freedom from 1.
const T_95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];
/// The same of endless many: that of the normal distribution.
pub(crate) const Z_95: f64 = 1.96;
/// What more each degree of freedom takes off beyond the table: within 0.001 of the true values.
const TAIL: f64 = 2.46;

/// Student's t for 95 % on both sides; without end where nothing is known of the spread (no degree of freedom).
pub(crate) fn t_95(degrees: usize) -> f64 {
    match degrees.checked_sub(1) {
        None => f64::INFINITY,
        Some(row) => T_95.get(row).copied().unwrap_or(Z_95 + TAIL / degrees as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_that_of_the_tables() {
        assert_eq!([1, 2, 10, 30].map(t_95), [12.706, 4.303, 2.228, 2.042]);
        assert_eq!(t_95(0), f64::INFINITY);
        for (degrees, table) in [(31, 2.040), (40, 2.021), (60, 2.000), (120, 1.980), (1000, 1.962)] {
            assert!((t_95(degrees) - table).abs() < 1.1e-3, "{degrees}: {}", t_95(degrees));
        }
    }
}
