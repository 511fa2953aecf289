//! What a user asks for, out of text.

use std::{
    net::{SocketAddr, ToSocketAddrs},
    ops::RangeInclusive,
};

use crate::message::{HEADER, MOST_UDP};

/// The rate of an open loop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OpenRate {
    /// Messages a second.
    PerSecond(f64),
    /// A share of what a closed loop does.
    Share(f64),
}

/// Reads `20k` or `50%`.
///
/// # Errors
///
/// What is legal.
pub fn open_rate(text: &str) -> Result<OpenRate, String> {
    let legal =
        || "must be 1 to 10M messages a second, or 1% to 100% of the closed loop, such as 20k or 50%".to_owned();
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|n| n.is_finite());
    if let Some(percent) = text.strip_suffix('%') {
        let percent = number(percent).filter(|percent| (1.0..=100.0).contains(percent));
        return percent.map(|percent| OpenRate::Share(percent / 100.0)).ok_or_else(legal);
    }
    // As loads are written elsewhere.
    let count = text.strip_suffix("pps").unwrap_or(text);
    let (digits, unit) = match count.strip_suffix(['k', 'M']) {
        Some(digits) => (digits, if count.ends_with('k') { 1e3 } else { 1e6 }),
        None => (count, 1.0),
    };
    let rate = number(digits).map(|n| n * unit).filter(|rate| (1.0..=1e7).contains(rate));
    rate.map(OpenRate::PerSecond).ok_or_else(legal)
}

/// How much background load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BackgroundRate {
    /// Messages a second.
    Messages(f64),
    /// Bits of messages a second.
    Bits(f64),
}

impl BackgroundRate {
    /// Messages a second, of `bytes` each.
    pub fn messages(self, bytes: usize) -> f64 {
        match self {
            Self::Messages(rate) => rate,
            Self::Bits(bps) => bps / (bytes.max(1) as f64 * 8.0),
        }
    }
}

/// Reads `20k` messages a second or `100Mbps`.
///
/// # Errors
///
/// What is legal.
pub fn background_rate(text: &str) -> Result<BackgroundRate, String> {
    let legal = || "must be 1 to 10M messages a second or 1kbps to 100Gbps, such as 20k or 100Mbps".to_owned();
    let (number, bits) = match text.strip_suffix("bps") {
        Some(number) => (number, true),
        None => (text.strip_suffix("pps").unwrap_or(text), false),
    };
    let units = [("k", 1e3), ("M", 1e6), ("G", 1e9)];
    let (digits, unit) =
        units.iter().find_map(|(letter, unit)| Some((number.strip_suffix(letter)?, *unit))).unwrap_or((number, 1.0));
    let rate = digits.trim().parse::<f64>().ok().filter(|n| n.is_finite()).map(|n| n * unit).ok_or_else(legal)?;
    match bits {
        true if (1e3..=1e11).contains(&rate) => Ok(BackgroundRate::Bits(rate)),
        false if (1.0..=1e7).contains(&rate) => Ok(BackgroundRate::Messages(rate)),
        _ => Err(legal()),
    }
}

/// Reads `10.0.0.2:11111`, `[fd00::2]:11111`, `[fe80::2%eth0]:11111` or `host:11111`. Of a name that has several addresses the
/// first of IPv4 counts, since sockperf has no other.
///
/// # Errors
///
/// What is legal, or that the name has no address.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let legal = || "must be ADDRESS:PORT, such as 10.0.0.2:11111, [fd00::2]:11111 or host:11111".to_owned();
    let (host, port) = text.rsplit_once(':').ok_or_else(legal)?;
    let port: u16 = port.parse().map_err(|_| legal())?;
    let scoped = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    // Without brackets, an address of IPv6 and a port are one row of colons.
    if host.is_empty() || scoped.is_none() && host.contains([':', '[', ']']) {
        return Err(legal());
    }
    let host = scoped.unwrap_or(host);
    let found: Vec<SocketAddr> = (host, port).to_socket_addrs().map_err(|e| format!("{host}: {e}"))?.collect();
    found.iter().find(|a| a.is_ipv4()).or(found.first()).copied().ok_or_else(|| format!("{host} has no address"))
}

/// Reads `64` or `14..1400`: bytes of messages.
///
/// # Errors
///
/// What is legal.
pub fn sizes(text: &str) -> Result<RangeInclusive<usize>, String> {
    let (from, to) = text.split_once("..").unwrap_or((text, text));
    match (from.trim().parse(), to.trim_start_matches('=').trim().parse()) {
        (Ok(from), Ok(to)) if HEADER <= from && from <= to && to <= MOST_UDP => Ok(from..=to),
        _ => Err(format!("must be {HEADER} to {MOST_UDP} bytes, such as 64 or 14..1400")),
    }
}

/// Reads `ci=1%`, as a share.
///
/// # Errors
///
/// What is legal.
pub fn precision(text: &str) -> Result<f64, String> {
    let percent = text.strip_prefix("ci=").and_then(|text| text.strip_suffix('%')).and_then(|text| text.parse().ok());
    match percent {
        Some(percent) if (0.2..=50.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("must be ci=PERCENT%, 0.2 to 50, such as ci=1%".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_sizes_and_precisions_are_read_or_refused() {
        assert_eq!(open_rate("20k"), Ok(OpenRate::PerSecond(20_000.0)));
        assert_eq!(open_rate("1.5M"), Ok(OpenRate::PerSecond(1_500_000.0)));
        assert_eq!((open_rate("1"), open_rate("10M")), (Ok(OpenRate::PerSecond(1.0)), Ok(OpenRate::PerSecond(1e7))));
        assert_eq!((open_rate("50%"), open_rate("100%")), (Ok(OpenRate::Share(0.5)), Ok(OpenRate::Share(1.0))));
        assert_eq!((open_rate("20kpps"), open_rate("7pps")), (open_rate("20k"), open_rate("7")));
        for wrong in ["", "pps", "20ppspps", "0", "0.5", "11M", "101%", "0%", "nan", "inf", "x", "-1", "k", "%", "1kk"]
        {
            assert!(open_rate(wrong).is_err(), "{wrong}");
        }
        assert_eq!((sizes("14"), sizes("14..65507"), sizes("64..=65")), (Ok(14..=14), Ok(14..=65507), Ok(64..=65)));
        for wrong in ["13", "65508", "100..99", "", "14..", "a..b"] {
            assert!(sizes(wrong).is_err(), "{wrong}");
        }
        assert_eq!((precision("ci=1%"), precision("ci=50%")), (Ok(0.01), Ok(0.5)));
        for wrong in ["1%", "ci=1", "ci=0%", "ci=51%", "ci=0.1%", "ci=x%", ""] {
            assert!(precision(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_server_is_an_address_a_name_or_an_address_of_one_interface() {
        let is =
            |text: &str, means: &str| assert_eq!(address(text).map(|a| a.to_string()), Ok(means.to_owned()), "{text}");
        is("10.0.0.2:11111", "10.0.0.2:11111");
        is("[fd00::2]:1", "[fd00::2]:1");
        is("localhost:80", "127.0.0.1:80");
        // The first interface is lo everywhere.
        is("[fe80::2%lo]:7", "[fe80::2%1]:7");
        is("[::1]:7", "[::1]:7");
        for wrong in
            ["", "10.0.0.2", ":1", "10.0.0.2:65536", "10.0.0.2:x", "fd00::2:11111", "[fe80::2%none]:7", "[]:1", "[a:1"]
        {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_background_is_of_messages_or_of_bits() {
        assert_eq!(background_rate("20k"), Ok(BackgroundRate::Messages(20_000.0)));
        assert_eq!(background_rate("100Mbps"), Ok(BackgroundRate::Bits(1e8)));
        assert_eq!(background_rate("1kbps"), Ok(BackgroundRate::Bits(1e3)));
        assert_eq!(background_rate("1.5Mpps"), Ok(BackgroundRate::Messages(1.5e6)));
        assert_eq!(BackgroundRate::Bits(8e6).messages(1000), 1000.0);
        assert_eq!(BackgroundRate::Messages(7.0).messages(1000), 7.0);
        for wrong in ["", "0", "-1", "k", "pps", "0.9", "11M", "999bps", "101Gbps", "x", "1Tbps", "NaN", "inf"] {
            assert!(background_rate(wrong).is_err(), "{wrong}");
        }
    }
}
