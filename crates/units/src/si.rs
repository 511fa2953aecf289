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
    let value: f64 = text[..end].replace('_', "").parse().ok()?;
    let rest = text[end..].trim_start();
    let (scale, unit) = match rest.as_bytes().first() {
        Some(b'k' | b'K') => (1e3, &rest[1..]),
        Some(b'M') => (1e6, &rest[1..]),
        Some(b'G') => (1e9, &rest[1..]),
        Some(b'T') => (1e12, &rest[1..]),
        _ => (1.0, rest),
    };
    (value * scale).is_finite().then_some((value * scale, unit))
}

fn scaled(value: f64) -> (f64, &'static str) {
    let magnitude = value.abs();
    // The limits sit half a last digit below the power, so that 999.9999 is shown as 1.000 k.
    if magnitude >= 0.999_95e12 {
        (value / 1e12, "T")
    } else if magnitude >= 0.999_95e9 {
        (value / 1e9, "G")
    } else if magnitude >= 0.999_95e6 {
        (value / 1e6, "M")
    } else if magnitude >= 0.999_95e3 {
        (value / 1e3, "k")
    } else {
        (value, "")
    }
}

/// Four significant digits with an SI prefix: `14.88 M`, `812.7 k`, `64.00 `. Append the unit.
pub fn si(value: f64) -> String {
    let (v, prefix) = scaled(value);
    let digits = match v.abs() {
        m if m >= 999.95 => 0,
        m if m >= 99.995 => 1,
        m if m >= 9.9995 => 2,
        _ => 3,
    };
    format!("{v:.digits$} {prefix}")
}

/// As short as exact allows, without a space: `10G`, `2.5G`, `100M`.
pub fn si_short(value: f64) -> String {
    let (v, prefix) = scaled(value);
    format!("{v}{prefix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_and_units_split() {
        assert_eq!(parse_si("12.5Mpps"), Some((12.5e6, "pps")));
        assert_eq!(parse_si("1e6"), Some((1e6, "")));
        assert_eq!(parse_si("1_000 k"), Some((1e6, "")));
        assert_eq!(parse_si("50%"), Some((50.0, "%")));
        assert_eq!(parse_si("1e-5"), Some((1e-5, "")));
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
    }
}
