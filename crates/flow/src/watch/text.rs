//! Text of loggers made safe for a terminal, and figures of five digits.

use std::net::IpAddr;

/// Text from outside, escaped except for letters, digits, ASCII signs and spaces, so that it can neither move the cursor
/// nor change the direction of writing; at most `most` characters.
pub fn clean(text: &str, most: usize) -> String {
    let mut out = String::new();
    let mut length = 0;
    for c in text.chars() {
        let plain = c.is_ascii_graphic() || c == ' ' || (!c.is_ascii() && c.is_alphanumeric());
        let shown: String = if plain { c.into() } else { c.escape_unicode().collect() };
        length += shown.len().min(if plain { 1 } else { usize::MAX });
        if length > most {
            // Room for the sign that something is missing.
            while out.chars().count() >= most.max(1) {
                out.pop();
            }
            out.push('…');
            return out;
        }
        out += &shown;
    }
    out
}

/// At most `width` characters of text; a sign marks text that was cut.
pub fn fit(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut out: String = text.chars().take(width.saturating_sub(1)).collect();
    if width > 0 {
        out.push('…');
    }
    out
}

/// A number not below zero in at most five digits, and its SI prefix: `14.881`, `M`. Whole numbers below 100,000 are
/// written out.
fn five_parts(value: f64) -> (String, &'static str) {
    // NaN becomes zero here, too.
    let v = value.max(0.0);
    if v < 99_999.5 && v.fract() == 0.0 {
        return (format!("{v:.0}"), "");
    }
    // Five digits of the last prefix are the most that fits.
    if v >= 999.995e18 {
        return (">999".into(), "E");
    }
    units::si_parts(v, 5)
}

/// Five digits: `14.881M`. Never more than seven characters.
pub fn five(value: f64) -> String {
    let (digits, prefix) = five_parts(value);
    digits + prefix
}

/// Five digits and a unit: `14.881 Mpps`.
pub fn five_of(value: f64, unit: &str) -> String {
    let (digits, prefix) = five_parts(value);
    format!("{digits} {prefix}{unit}")
}

/// A span of nanoseconds in at most six characters: `0.4s`, `59s`, `1m30s`, `5h02m`, `12d`.
pub fn span(ns: u64) -> String {
    let s = ns / 1_000_000_000;
    match s {
        0..=9 => format!("{s}.{}s", ns / 100_000_000 % 10),
        10..=59 => format!("{s}s"),
        60..=3599 => format!("{}m{:02}s", s / 60, s % 60),
        3600..=86_399 => format!("{}h{:02}m", s / 3600, s / 60 % 60),
        _ if s / 86_400 <= 9999 => format!("{}d", s / 86_400),
        _ => ">9999d".into(),
    }
}

/// Names of protocols, and their numbers (IANA).
const PROTOCOLS: [(&str, u8); 10] = [
    ("icmp", 1),
    ("igmp", 2),
    ("ipip", 4),
    ("tcp", 6),
    ("udp", 17),
    ("gre", 47),
    ("esp", 50),
    ("icmp6", 58),
    ("ospf", 89),
    ("sctp", 132),
];

/// `tcp`, or the number of a protocol without a short name.
pub fn protocol(number: u8) -> String {
    PROTOCOLS.iter().find(|(_, n)| *n == number).map_or_else(|| number.to_string(), |(name, _)| (*name).into())
}

/// The number of `tcp` or `6`.
pub fn protocol_number(text: &str) -> Option<u8> {
    let named = PROTOCOLS.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, n)| *n);
    named.or_else(|| text.parse().ok())
}

/// An address with its port: `192.0.2.1:53`, `[2001:db8::1]:53`; ports of zero are left out.
pub fn endpoint(address: IpAddr, port: u16) -> String {
    match (address, port) {
        (_, 0) => address.to_string(),
        (IpAddr::V4(a), _) => format!("{a}:{port}"),
        (IpAddr::V6(a), _) => format!("[{a}]:{port}"),
    }
}

/// TCP flags as letters, a dot for each not seen: `.AP.SF`, in the order URG ACK PSH RST SYN FIN.
pub fn tcp_flags(flags: u16) -> String {
    let flag = |(bit, letter)| if flags & bit == 0 { '.' } else { letter };
    [(0x20, 'U'), (0x10, 'A'), (0x08, 'P'), (0x04, 'R'), (0x02, 'S'), (0x01, 'F')].map(flag).iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_reaches_the_terminal_raw() {
        assert_eq!(clean("eth0 \u{1b}[2J", 64), "eth0 \\u{1b}[2J");
        assert_eq!(clean("a\u{202e}b\u{9b}c\n", 64), "a\\u{202e}b\\u{9b}c\\u{a}");
        assert_eq!(clean("größe", 64), "größe");
        assert_eq!(clean(&"x".repeat(1000), 8), "xxxxxxx…");
        assert!(clean(&"\u{300}".repeat(1000), 8).chars().count() <= 8);
        assert_eq!(clean("x", 0), "…");
    }

    #[test]
    fn five_digits_each() {
        for (value, text) in [
            (0.0, "0"),
            (99_999.0, "99999"),
            (100_000.0, "100.00k"),
            (14_880_952.0, "14.881M"),
            (999_999.9, "1.0000M"),
            (0.5, "0.5000"),
            (12.25, "12.250"),
            (u64::MAX as f64, "18.447E"),
            (1e300, ">999E"),
            (f64::INFINITY, ">999E"),
            (f64::NAN, "0"),
            (-5.0, "0"),
        ] {
            assert_eq!(five(value), text);
        }
        assert_eq!(five_of(7.619e9, "bit/s"), "7.6190 Gbit/s");
    }

    #[test]
    fn spans_are_short() {
        for (s, text) in [(0.4, "0.4s"), (59.9, "59s"), (90.0, "1m30s"), (18_120.0, "5h02m"), (1e6, "11d")] {
            assert_eq!(span((s * 1e9) as u64), text);
        }
        assert!(span(u64::MAX).len() <= 6);
    }

    #[test]
    fn keys_read_as_people_write_them() {
        assert_eq!(endpoint("192.0.2.1".parse().unwrap(), 53), "192.0.2.1:53");
        assert_eq!(endpoint("2001:db8::1".parse().unwrap(), 53), "[2001:db8::1]:53");
        assert_eq!(endpoint("192.0.2.1".parse().unwrap(), 0), "192.0.2.1");
        assert_eq!((protocol(17), protocol(253)), ("udp".into(), "253".into()));
        assert_eq!(
            (protocol_number("UDP"), protocol_number("253"), protocol_number("256")),
            (Some(17), Some(253), None)
        );
        assert_eq!(tcp_flags(0x12), ".A..S.");
    }
}
