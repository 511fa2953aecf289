//! Numbers with SI prefixes, read and written: the one place that does it for every table, picture and message.

/// Splits `12.5Mpps` into its value times the SI prefix, and the unit after the prefix.
///
/// The prefix is one of `k K M G T`; `None` when there is no finite number in front.
pub fn parse_si(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text
        .char_indices()
        .find(|&(i, c)| {
            let exponent = matches!(c, 'e' | 'E')
                && text[i + 1..].starts_with(|d: char| d.is_ascii_digit() || d == '-' || d == '+');
            let sign = matches!(c, '-' | '+') && (i == 0 || text[..i].ends_with(['e', 'E']));
            !(c.is_ascii_digit() || c == '.' || c == '_' || exponent || sign)
        })
        .map_or(text.len(), |(i, _)| i);
    let digits = text[..end].replace('_', "");
    let rest = text[end..].trim_start();
    let (exponent, unit) = match rest.as_bytes().first() {
        Some(b'k' | b'K') => (3, &rest[1..]),
        Some(b'M') => (6, &rest[1..]),
        Some(b'G') => (9, &rest[1..]),
        Some(b'T') => (12, &rest[1..]),
        _ => (0, rest),
    };
    // As one number, so that 1.001M is 1,001,000 and not a product that is rounded twice.
    let value: f64 = match digits.contains(['e', 'E']) {
        true => digits.parse::<f64>().ok()? * 10f64.powi(exponent),
        false => format!("{digits}e{exponent}").parse().ok()?,
    };
    value.is_finite().then_some((value, unit))
}

/// Prefixes, each a thousand times the one before.
const PREFIXES: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];

/// A value in so many significant digits (3 to 9), and its SI prefix: 14,880,952 in 4 digits is `14.88` and `M`. 999,999
/// is `1.000` and `M`: the number of digits is the same for every value from 1 on. Below 1 the digits count from the
/// decimal point. What is not finite is `?`; what is beyond the last prefix has more digits.
pub fn si_parts(value: f64, digits: usize) -> (String, &'static str) {
    if !value.is_finite() {
        return ("?".to_owned(), "");
    }
    let last = PREFIXES.len() - 1;
    let mut scale = 1.0;
    for (n, prefix) in PREFIXES.into_iter().enumerate() {
        let scaled = value / scale;
        for before_point in 1..=3usize {
            let decimals = digits.saturating_sub(before_point);
            // Half a last digit below the power of ten: what is rounded up to the power is of the next range.
            let limit = 10f64.powi(before_point as i32) - 0.5 * 10f64.powi(-(decimals as i32));
            if scaled.abs() < limit {
                return (format!("{scaled:.decimals$}"), prefix);
            }
        }
        if n == last {
            return (format!("{scaled:.0}"), prefix);
        }
        scale *= 1e3;
    }
    ("?".to_owned(), "")
}

/// Four significant digits with an SI prefix: `14.88 M`, `812.7 k`, `64.00 `. Append the unit.
pub fn si(value: f64) -> String {
    let (digits, prefix) = si_parts(value, 4);
    format!("{digits} {prefix}")
}

/// The same without a space, and whole below 999.5, for columns of counts a second: `14.88M`, `812.7k`, `64`.
pub fn si_column(value: f64) -> String {
    if value.abs() < 999.5 {
        return format!("{value:.0}");
    }
    let (digits, prefix) = si_parts(value, 4);
    digits + prefix
}

/// As short as exact allows, without a space: `10G`, `2.5G`, `100M`.
pub fn si_short(value: f64) -> String {
    let (mut scaled, mut prefix) = (value, "");
    for next in ["k", "M", "G", "T"] {
        if scaled.abs() >= 999.95 {
            (scaled, prefix) = (scaled / 1e3, next);
        }
    }
    format!("{scaled}{prefix}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn prefixes_and_units_split() {
        assert_eq!(parse_si("12.5Mpps"), Some((12.5e6, "pps")));
        assert_eq!(parse_si("1e6"), Some((1e6, "")));
        assert_eq!(parse_si("1_000 k"), Some((1e6, "")));
        assert_eq!(parse_si("50%"), Some((50.0, "%")));
        assert_eq!(parse_si("1e-5"), Some((1e-5, "")));
        // Not 1000999.9999999999.
        assert_eq!(parse_si("1.001Mpps"), Some((1_001_000.0, "pps")));
        assert_eq!(parse_si("1.5e3k"), Some((1.5e6, "")));
        for bad in ["", "M", "1e999", "--1", "1.2.3", "nan", "e"] {
            assert_eq!(parse_si(bad), None, "{bad}");
        }
    }

    #[test]
    fn figures_read_as_the_documents_print_them() {
        assert_eq!(si(14_880_952.0), "14.88 M");
        assert_eq!(si(999_999.9), "1.000 M");
        assert_eq!(si(812_743.8), "812.7 k");
        assert_eq!(si(0.0), "0.000 ");
        assert_eq!(si_short(2.5e9), "2.5G");
        let columns = [0.0, 12.0, 999.4, 999.5, 999_999.0, 14_880_952.0].map(si_column);
        assert_eq!(columns, ["0", "12", "999", "999.5", "1.000M", "14.88M"]);
        assert_eq!((si(f64::NAN), si_parts(u64::MAX as f64, 5)), ("? ".into(), ("18.447".into(), "E")));
    }

    /// The value that a text stands for.
    fn value_of(text: &str, prefix: &str) -> f64 {
        let power = PREFIXES.iter().position(|p| *p == prefix).unwrap();
        text.parse::<f64>().unwrap() * 1e3f64.powi(power as i32)
    }

    proptest! {
        #[test]
        fn every_value_has_the_same_digits(mantissa in 1.0..10.0f64, power in 0..20, digits in 3..9usize) {
            let (text, prefix) = si_parts(mantissa * 10f64.powi(power), digits);
            prop_assert_eq!(text.chars().filter(char::is_ascii_digit).count(), digits, "{} {}", text, prefix);
            prop_assert!(!text.starts_with("1000"), "{} {}", text, prefix);
        }

        #[test]
        fn next_to_a_power_of_a_thousand_nothing_reads_1000(power in 1..6, off in -2.0..2.0f64, digits in 3..9usize) {
            let value = 1e3f64.powi(power) * (1.0 + off * 10f64.powi(-(digits as i32)));
            for (text, prefix) in [si_parts(value, digits), (si_column(value), "")] {
                prop_assert!(!text.starts_with("1000"), "{} {}", text, prefix);
            }
        }

        #[test]
        fn a_larger_value_never_reads_smaller(a in 0.0..1e15f64, b in 0.0..1e15f64, digits in 3..9usize) {
            let (low, high) = if a < b { (a, b) } else { (b, a) };
            let [low, high] = [low, high].map(|v| si_parts(v, digits)).map(|(text, prefix)| value_of(&text, prefix));
            prop_assert!(low <= high * (1.0 + 1e-12), "{} {}", low, high);
        }

        #[test]
        fn what_is_read_is_what_was_meant(mantissa in 1.0..10.0f64, power in 0..18, digits in 3..9usize) {
            let value = mantissa * 10f64.powi(power);
            let (text, prefix) = si_parts(value, digits);
            let off = (value_of(&text, prefix) / value - 1.0).abs();
            prop_assert!(off <= 0.5001 * 10f64.powi(1 - digits as i32), "{} {} of {}", text, prefix, value);
        }
    }
}
