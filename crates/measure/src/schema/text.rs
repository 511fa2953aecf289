//! How values stand in a file: durations, loads, ratios and speeds as text, numbers accepted where they mean something.

use std::{fmt, marker::PhantomData, net::IpAddr, time::Duration};

use serde::{de, Deserializer, Serializer};
use units::{parse_duration_or_zero, LinkSpeed, Load, Ratio, UnitError};

/// Accepts a string or a number and parses its text.
struct Text<T>(fn(&str) -> Result<T, UnitError>, &'static str, PhantomData<T>);

impl<T> de::Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.1)
    }

    fn visit_str<E: de::Error>(self, v: &str) -> Result<T, E> {
        (self.0)(v).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, v: i64) -> Result<T, E> {
        self.visit_str(&v.to_string())
    }

    fn visit_u64<E: de::Error>(self, v: u64) -> Result<T, E> {
        self.visit_str(&v.to_string())
    }

    fn visit_f64<E: de::Error>(self, v: f64) -> Result<T, E> {
        self.visit_str(&v.to_string())
    }
}

fn read<'de, D: Deserializer<'de>, T>(
    d: D,
    parse: fn(&str) -> Result<T, UnitError>,
    expecting: &'static str,
) -> Result<T, D::Error> {
    d.deserialize_any(Text(parse, expecting, PhantomData))
}

/// The shortest exact text: `60s`, `250ms`, `20us`.
pub(crate) fn span_text(d: Duration) -> String {
    let ns = d.as_nanos();
    match ns {
        n if n > 0 && n % 3_600_000_000_000 == 0 => format!("{}h", n / 3_600_000_000_000),
        n if n % 1_000_000_000 == 0 => format!("{}s", n / 1_000_000_000),
        n if n % 1_000_000 == 0 => format!("{}ms", n / 1_000_000),
        n if n % 1_000 == 0 => format!("{}us", n / 1_000),
        n => format!("{n}ns"),
    }
}

/// `"60s"`; a bare number is seconds.
pub(crate) mod span {
    use super::*;

    pub fn serialize<S: Serializer>(d: &Duration, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(&span_text(*d))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Duration, D::Error> {
        read(d, parse_duration_or_zero, "a duration like \"60s\" or \"500ms\"")
    }
}

/// The same, absent allowed.
pub(crate) mod opt_span {
    use super::*;

    pub fn serialize<S: Serializer>(d: &Option<Duration>, s: S) -> Result<S::Ok, S::Error> {
        match d {
            Some(d) => span::serialize(d, s),
            None => s.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Duration>, D::Error> {
        span::deserialize(d).map(Some)
    }
}

/// `"0.1%"` or `0.001`; written as the number, which is exact.
pub(crate) mod ratio {
    use super::*;

    pub fn serialize<S: Serializer>(r: &Ratio, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_f64(r.get())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Ratio, D::Error> {
        read(d, str::parse, "a ratio like \"0.1%\" or 0.001")
    }
}

const LOAD: &str = "a load like \"1Mpps\", \"1Gbps\" or \"50%\"";

/// `"1Mpps"`; a bare number is frames per second.
pub(crate) mod load {
    use super::*;

    pub fn serialize<S: Serializer>(load: &Load, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(load)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Load, D::Error> {
        read(d, str::parse, LOAD)
    }
}

/// The same, absent allowed.
pub(crate) mod opt_load {
    use super::*;

    pub fn serialize<S: Serializer>(load: &Option<Load>, s: S) -> Result<S::Ok, S::Error> {
        match load {
            Some(load) => s.collect_str(load),
            None => s.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Load>, D::Error> {
        read(d, str::parse, LOAD).map(Some)
    }
}

/// `"10G"`, absent allowed; a bare number is bit/s.
pub(crate) mod opt_link {
    use super::*;

    pub fn serialize<S: Serializer>(link: &Option<LinkSpeed>, s: S) -> Result<S::Ok, S::Error> {
        match link {
            Some(link) => s.collect_str(link),
            None => s.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<LinkSpeed>, D::Error> {
        read(d, str::parse, "a link speed like \"10G\"").map(Some)
    }
}

/// An address, absent allowed.
pub(crate) mod opt_ip {
    use super::*;

    fn parse(text: &str) -> Result<IpAddr, UnitError> {
        let legal = "must be an IPv4 address like 198.18.0.2 or an IPv6 address like 2001:2:0:1::2";
        text.parse().map_err(|_| UnitError { what: "address", value: text.to_owned(), legal: legal.to_owned() })
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<IpAddr>, D::Error> {
        read(d, parse, "an address in quotes").map(Some)
    }
}

/// A value of a header field, kept as its text: numbers and addresses both.
pub(crate) mod value {
    use super::*;

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<String>, D::Error> {
        read(d, |t| Ok(t.to_owned()), "a number or an address in quotes").map(Some)
    }
}

/// A list of such values.
pub(crate) mod values {
    use super::*;
    use serde::Deserialize;

    struct Value(String);

    impl<'de> Deserialize<'de> for Value {
        fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
            read(d, |t| Ok(Self(t.to_owned())), "a number or an address in quotes")
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<String>, D::Error> {
        Ok(Vec::<Value>::deserialize(d)?.into_iter().map(|v| v.0).collect())
    }
}
