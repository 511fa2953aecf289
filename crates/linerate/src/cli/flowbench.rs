//! What `linerate bench --flow-logger` takes.

use std::{fmt, net::SocketAddr, str::FromStr};

use clap::Args;
use traffic::flows::FlowSpec;
use units::Load;

/// A flow logger to be scored.
#[derive(Debug, Args, Default)]
#[command(next_help_heading = "Flow logger under test")]
pub struct FlowLoggerArgs {
    /// Score a flow logger against the flows sent (--flows), instead of running a plan (of which only the traffic, link
    /// and trust are taken). Where its records are read: ipfix=udp://ADDRESS:PORT or ipfix=tcp://ADDRESS:PORT (listen
    /// here; point the exporter at it), or ours=HOST:PORT[,token=TOKEN] (a `linerate flowlog`, asked when the trial is
    /// over).
    #[arg(long, value_name = "WHERE", conflicts_with_all = [
        "tests", "throughput", "quick", "print_config", "method", "goals", "warmup", "tolerated_loss", "retries",
        "max_repeats", "latency_duration", "no_latency", "csv_tests",
    ])]
    pub flow_logger: Option<FlowLogger>,
    /// Load: frames (1Mpps), bits of layer 1 (1Gbps) or 2 (1GbpsL2), or a share of the link (50%). A churn says itself
    /// how fast it sends.
    #[arg(long, value_name = "LOAD", requires = "flow_logger")]
    pub load: Option<Load>,
    /// How long to wait for records after the last frame, at most: longer than the logger's timeouts. Default: 90s.
    #[arg(long, value_name = "TIME", requires = "flow_logger")]
    pub flow_wait: Option<String>,
}

/// Where records are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlowLogger {
    /// IPFIX over UDP, to be received here.
    IpfixUdp(SocketAddr),
    /// IPFIX over TCP, to be received here.
    IpfixTcp(SocketAddr),
    /// The read protocol of `linerate flowlog`: its address and, if it asks for one, the token.
    Ours(String, Option<String>),
}

impl FromStr for FlowLogger {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let legal =
            "must be ipfix=udp://ADDRESS:PORT, ipfix=tcp://ADDRESS:PORT or ours=HOST:PORT[,token=TOKEN], such as \
                     ipfix=udp://0.0.0.0:4739";
        let address = |text: &str| {
            text.parse().map_err(|_| format!("{text:?} is no address and port (0.0.0.0:4739, [::]:4739); {legal}"))
        };
        match text.split_once('=') {
            Some(("ipfix", rest)) => match rest.split_once("://") {
                Some(("udp", rest)) => address(rest).map(Self::IpfixUdp),
                Some(("tcp", rest)) => address(rest).map(Self::IpfixTcp),
                _ => Err(format!("{rest:?} names no transport; {legal}")),
            },
            Some(("ours", rest)) => {
                let (at, token) = match rest.split_once(",token=") {
                    Some((at, token)) => (at, Some(token.to_owned())),
                    None => (rest, None),
                };
                match at.rsplit_once(':') {
                    Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => {
                        Ok(Self::Ours(at.to_owned(), token))
                    }
                    _ => Err(format!("{at:?} is no host and port; {legal}")),
                }
            }
            _ => Err(legal.to_owned()),
        }
    }
}

impl fmt::Display for FlowLogger {
    /// Without the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IpfixUdp(address) => write!(f, "ipfix=udp://{address}"),
            Self::IpfixTcp(address) => write!(f, "ipfix=tcp://{address}"),
            Self::Ours(address, _) => write!(f, "ours={address}"),
        }
    }
}

/// `--flows`: a number, or a program.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FlowsArg {
    /// So many distinct 5-tuples.
    Count(u64),
    /// Flows that are known one by one.
    Program(FlowSpec),
}

impl FromStr for FlowsArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains(':') {
            return text.parse().map(Self::Program).map_err(|e: traffic::flows::FlowSpecError| e.to_string());
        }
        text.parse().map(Self::Count).map_err(|_| {
            format!(
                "{text:?} is neither a whole number nor a program (constant:N, zipf:N, churn:RATE, scan:HOSTS,PORTS)"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read_and_shown() {
        for text in ["ipfix=udp://0.0.0.0:4739", "ipfix=tcp://[::1]:4739", "ours=127.0.0.1:7700", "ours=box:7700"] {
            assert_eq!(text.parse::<FlowLogger>().unwrap().to_string(), text);
        }
        let secret: FlowLogger = "ours=box:7700,token=a=b,c".parse().unwrap();
        assert_eq!(secret, FlowLogger::Ours("box:7700".into(), Some("a=b,c".into())));
        assert_eq!(secret.to_string(), "ours=box:7700");
        for (bad, why) in [
            ("", "must be ipfix"),
            ("netflow=udp://0.0.0.0:1", "must be ipfix"),
            ("ipfix=0.0.0.0:1", "names no transport"),
            ("ipfix=udp://localhost", "no address and port"),
            ("ours=:7700", "no host and port"),
            ("ours=box:99999", "no host and port"),
        ] {
            let text = bad.parse::<FlowLogger>().unwrap_err();
            assert!(text.contains(why) && text.contains("ipfix=udp://0.0.0.0:4739"), "{text}");
        }
    }

    #[test]
    fn flows_are_a_number_or_a_program() {
        assert_eq!("1000".parse(), Ok(FlowsArg::Count(1000)));
        assert_eq!("constant:1k".parse(), Ok(FlowsArg::Program(FlowSpec::Constant { flows: 1000 })));
        assert!("many".parse::<FlowsArg>().is_err());
    }
}
