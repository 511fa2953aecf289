//! Figures as the source documents print them.

use units::Fps;

/// `14,880,952`.
pub(crate) fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

fn decimals(value: f64, digits: usize) -> String {
    let text = format!("{:.digits$}", value.abs());
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), thousands);
    let sign = if value < 0.0 && text.contains(|c: char| matches!(c, '1'..='9')) { "-" } else { "" };
    if rest.is_empty() {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{rest}")
    }
}

/// A change in percent, to a hundredth; none is not below zero.
pub(crate) fn percent(change: f64) -> String {
    decimals(change, 2)
}

/// Whole frames/s, always rounded down; tenths below 100.
pub(crate) fn pps(rate: Fps) -> String {
    let v = rate.get();
    if v > 0.0 && v < 100.0 {
        format!("{v:.1}")
    } else {
        thousands((v + 1e-6) as u64)
    }
}

/// Mbit/s to a tenth, to a thousandth below 10: the documents print whole ones, some cut and some rounded.
pub(crate) fn mbps(bps: f64) -> String {
    let v = bps / 1e6;
    decimals(v, if v != 0.0 && v < 10.0 { 3 } else { 1 })
}

/// Microseconds of a span in nanoseconds, three digits or more.
pub(crate) fn us(ns: f64) -> String {
    let v = ns / 1e3;
    let digits = match v.abs() {
        m if m < 9.995 => 2,
        m if m < 999.95 => 1,
        _ => 0,
    };
    decimals(v, digits)
}

/// `1 h 02 min`, `3 min 20 s`, `12 s`, `0.3 s`, `6.40 us`.
pub(crate) fn duration(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return "?".to_owned();
    }
    if seconds > 0.0 && seconds < 0.01 {
        return units::Nanos((seconds * 1e9).round() as u64).to_string();
    }
    let s = seconds.round() as u64;
    match s {
        0..=9 => format!("{} s", trim(seconds, 2)),
        10..=119 => format!("{s} s"),
        120..=7199 => format!("{} min {:02} s", s / 60, s % 60),
        _ => format!("{} h {:02} min", s / 3600, s % 3600 / 60),
    }
}

/// At most this many decimals, without closing zeros: `0.3`, `60`.
pub(crate) fn trim(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_like_the_documents() {
        assert_eq!(thousands(14_880_952), "14,880,952");
        assert_eq!((thousands(0), thousands(999), thousands(1000)), ("0".into(), "999".into(), "1,000".into()));
        assert_eq!(pps(Fps::from_raw(812_743.83)), "812,743");
        assert_eq!(pps(Fps::from_raw(2.26)), "2.3");
        assert_eq!((mbps(9_999.999_7e6), mbps(512e3), mbps(0.0)), ("10,000.0".into(), "0.512".into(), "0.0".into()));
        assert_eq!((us(643.0), us(12_345.0), us(8_463_600.0)), ("0.64".into(), "12.3".into(), "8,464".into()));
        assert_eq!((us(-4.0), us(-12_345.0), us(0.0)), ("0.00".into(), "-12.3".into(), "0.00".into()));
    }

    #[test]
    fn durations_read_well() {
        for (s, text) in [
            (0.3, "0.3 s"),
            (60.0, "60 s"),
            (200.4, "3 min 20 s"),
            (7320.0, "2 h 02 min"),
            (6.4e-6, "6.40 us"),
            (-1.0, "?"),
        ] {
            assert_eq!(duration(s), text);
        }
    }
}
