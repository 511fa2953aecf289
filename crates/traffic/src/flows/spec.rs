use std::{fmt, str::FromStr, time::Duration};

use units::{parse_duration, si_short};

/// The most flows of a program whose flows are numbered: what a score can hold (2^24).
pub const MOST_FLOWS: u64 = 1 << 24;
/// The most frames of a flow of a churn.
const MOST_PACKETS: u64 = 1 << 16;
/// The most hosts or ports of a scan.
const MOST_SCANNED: u64 = 1 << 16;

/// Which flows are sent, as written on the command line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FlowSpec {
    /// `constant:N`: N flows in turn, all alive the whole time.
    Constant {
        /// Number of flows.
        flows: u64,
    },
    /// `zipf:N,s=S`: each frame is of a flow drawn at random; flow i, from 1, with a weight of i^-S. S is 1 when not
    /// given; 0 is uniform.
    Zipf {
        /// Number of flows drawn from.
        flows: u64,
        /// The exponent, 0 to 4.
        exponent: f64,
    },
    /// `churn:RATE,packets=K,life=T`: RATE new flows a second, each K frames long (1 when not given) and then gone, its
    /// frames spread over T (as near together as the program allows when not given).
    Churn {
        /// New flows a second; `None` (`max`) when it is searched for.
        rate: Option<f64>,
        /// Frames of each flow.
        packets: u64,
        /// From the first frame of a flow to its last.
        life: Option<Duration>,
    },
    /// `scan:HOSTS,PORTS`: one frame to each port of each host, then again from another source port: every frame is a
    /// flow of its own.
    Scan {
        /// Hosts scanned.
        hosts: u64,
        /// Ports of each, from 1.
        ports: u64,
    },
}

/// A text that is no flow program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "flows {text:?}: {what}; must be constant:N, zipf:N[,s=S], churn:RATE[,packets=K][,life=TIME] or \
     scan:HOSTS,PORTS, such as constant:1M, zipf:100k,s=1.1, churn:1M,packets=4 (churn:max to search) or scan:256,1024"
)]
pub struct FlowSpecError {
    text: String,
    what: String,
}

impl FlowSpec {
    /// Frames a second that this many new flows a second take, where the program itself says how fast it sends.
    pub fn load(&self, flows_per_second: f64) -> Option<f64> {
        match *self {
            Self::Churn { packets, .. } => Some(flows_per_second * packets as f64),
            _ => None,
        }
    }

    /// The same with this many new flows a second, if it is a churn.
    #[must_use]
    pub fn at_rate(self, flows_per_second: f64) -> Self {
        match self {
            Self::Churn { packets, life, .. } => Self::Churn { rate: Some(flows_per_second), packets, life },
            other => other,
        }
    }
}

impl FromStr for FlowSpec {
    type Err = FlowSpecError;

    fn from_str(text: &str) -> Result<Self, FlowSpecError> {
        let err = |what: String| FlowSpecError { text: text.to_owned(), what };
        let (kind, rest) = text.split_once(':').ok_or_else(|| err("no program".to_owned()))?;
        let mut parts = rest.split(',').map(str::trim);
        let first = parts.next().unwrap_or_default();
        let whole = |name: &str, text: &str, most: u64| match number(text) {
            Some(n) if n.fract() == 0.0 && n >= 1.0 && n <= most as f64 => Ok(n as u64),
            _ => Err(err(format!("{name} {text:?}: must be a whole number of 1 to {most}"))),
        };
        let unknown = |part: &str| err(format!("{part:?} is nothing that {kind} takes"));
        let spec = match kind {
            "constant" => Self::Constant { flows: whole("number of flows", first, MOST_FLOWS)? },
            "zipf" => {
                let (flows, mut exponent) = (whole("number of flows", first, MOST_FLOWS)?, 1.0);
                for part in parts.by_ref() {
                    let value = part.strip_prefix("s=").ok_or_else(|| unknown(part))?;
                    exponent = number(value)
                        .filter(|s| (0.0..=4.0).contains(s))
                        .ok_or_else(|| err(format!("s {value:?}: must be 0 to 4")))?;
                }
                Self::Zipf { flows, exponent }
            }
            "churn" => {
                let rate = match first {
                    "max" => None,
                    text => Some(
                        number(text)
                            .filter(|r| (1.0..=1e9).contains(r))
                            .ok_or_else(|| err(format!("rate {text:?}: must be max, or 1 to 1G flows a second")))?,
                    ),
                };
                let (mut packets, mut life) = (1, None);
                for part in parts.by_ref() {
                    match part.split_once('=') {
                        Some(("packets", value)) => packets = whole("packets", value, MOST_PACKETS)?,
                        Some(("life", value)) => life = Some(parse_duration(value).map_err(|e| err(e.to_string()))?),
                        _ => return Err(unknown(part)),
                    }
                }
                Self::Churn { rate, packets, life }
            }
            "scan" => {
                let second = parts.next().ok_or_else(|| err("no number of ports".to_owned()))?;
                let hosts = whole("number of hosts", first, MOST_SCANNED)?;
                Self::Scan { hosts, ports: whole("number of ports", second, MOST_SCANNED - 1)? }
            }
            other => return Err(err(format!("there is no program {other:?}"))),
        };
        match parts.next() {
            Some(part) => Err(unknown(part)),
            None => Ok(spec),
        }
    }
}

/// `100`, `1.5k`, `1M`, `1G`.
fn number(text: &str) -> Option<f64> {
    let (digits, scale) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1e3),
        b'M' => (&text[..text.len() - 1], 1e6),
        b'G' => (&text[..text.len() - 1], 1e9),
        _ => (text, 1.0),
    };
    // No words such as "inf", and no signs.
    let legal = digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    digits.parse().ok().filter(|n: &f64| legal && n.is_finite()).map(|n| n * scale)
}

impl fmt::Display for FlowSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Constant { flows } => write!(f, "constant:{flows}"),
            Self::Zipf { flows, exponent } => write!(f, "zipf:{flows},s={exponent}"),
            Self::Churn { rate, packets, life } => {
                let rate = rate.map_or_else(|| "max".to_owned(), si_short);
                write!(f, "churn:{rate},packets={packets}")?;
                life.map_or(Ok(()), |life| write!(f, ",life={}us", life.as_micros()))
            }
            Self::Scan { hosts, ports } => write!(f, "scan:{hosts},{ports}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_meant() {
        let churn = |rate, packets, life| FlowSpec::Churn { rate, packets, life };
        for (text, want) in [
            ("constant:1M", FlowSpec::Constant { flows: 1_000_000 }),
            ("zipf:100k,s=1.1", FlowSpec::Zipf { flows: 100_000, exponent: 1.1 }),
            ("zipf:5", FlowSpec::Zipf { flows: 5, exponent: 1.0 }),
            ("churn:1.5M,packets=4", churn(Some(1.5e6), 4, None)),
            ("churn:max,packets=2,life=10ms", churn(None, 2, Some(Duration::from_millis(10)))),
            ("scan:256,1024", FlowSpec::Scan { hosts: 256, ports: 1024 }),
        ] {
            let spec: FlowSpec = text.parse().unwrap();
            assert_eq!(spec, want);
            assert_eq!(spec.to_string().parse::<FlowSpec>().unwrap(), spec, "{spec}");
        }
        assert_eq!(churn(None, 4, None).load(1e6), Some(4e6));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let mut shown = String::new();
        for text in [
            "1M",
            "burst:7",
            "constant:0",
            "constant:17M",
            "constant:1.5",
            "constant:-3",
            "constant:inf",
            "constant:",
            "constant:5,6",
            "zipf:5,s=nan",
            "zipf:5,t=1",
            "churn:0.5",
            "churn:1M,packets=0",
            "churn:1M,life=ever",
            "scan:4",
            "scan:4,65536",
            "scan:4,4,4",
        ] {
            let error = text.parse::<FlowSpec>().unwrap_err();
            assert_eq!(error.text, text);
            shown += &format!("{text}\n    {}\n", error.what);
        }
        insta::assert_snapshot!("errors", shown);
        insta::assert_snapshot!("one_error_in_full", "1M".parse::<FlowSpec>().unwrap_err());
    }
}
