//! Where a flow logger's records are read.

use std::{fmt, net::SocketAddr, str::FromStr};

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
            text.parse().map_err(|_| format!("{text:?} is not an address and port (0.0.0.0:4739, [::]:4739); {legal}"))
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
                    _ => Err(format!("{at:?} is not a host and port; {legal}")),
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
    }

    #[test]
    fn errors_say_what_is_legal() {
        let errors =
            ["", "netflow=udp://0.0.0.0:1", "ipfix=0.0.0.0:1", "ipfix=udp://localhost", "ours=:7700", "ours=box:99999"]
                .map(|bad| bad.parse::<FlowLogger>().unwrap_err());
        insta::assert_snapshot!(errors.join("\n"), @r#"
        must be ipfix=udp://ADDRESS:PORT, ipfix=tcp://ADDRESS:PORT or ours=HOST:PORT[,token=TOKEN], such as ipfix=udp://0.0.0.0:4739
        must be ipfix=udp://ADDRESS:PORT, ipfix=tcp://ADDRESS:PORT or ours=HOST:PORT[,token=TOKEN], such as ipfix=udp://0.0.0.0:4739
        "0.0.0.0:1" names no transport; must be ipfix=udp://ADDRESS:PORT, ipfix=tcp://ADDRESS:PORT or ours=HOST:PORT[,token=TOKEN], such as ipfix=udp://0.0.0.0:4739
        "localhost" is not an address and port (0.0.0.0:4739, [::]:4739); must be ipfix=udp://ADDRESS:PORT, ipfix=tcp://ADDRESS:PORT or ours=HOST:PORT[,token=TOKEN], such as ipfix=udp://0.0.0.0:4739
        ":7700" is not a host and port; must be ipfix=udp://ADDRESS:PORT, ipfix=tcp://ADDRESS:PORT or ours=HOST:PORT[,token=TOKEN], such as ipfix=udp://0.0.0.0:4739
        "box:99999" is not a host and port; must be ipfix=udp://ADDRESS:PORT, ipfix=tcp://ADDRESS:PORT or ours=HOST:PORT[,token=TOKEN], such as ipfix=udp://0.0.0.0:4739
        "#);
    }
}
