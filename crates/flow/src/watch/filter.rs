//! Filters as they are typed: `prefix=10.0.0.0/8,port=53,protocol=udp,ingress=0`.

use std::net::IpAddr;

use crate::protocol::Filter;

use super::text;

const LEGAL: &str =
    "must be prefix=ADDRESS[/LEN], port=0..65535, protocol=NAME|0..255 or ingress=0..255, separated by commas";

/// Parses a filter. The error is one line: what is wrong and what is legal.
pub fn parse(text: &str) -> Result<Filter, String> {
    let mut filter = Filter::default();
    for part in text.split([',', ' ']).filter(|part| !part.is_empty()) {
        let wrong = |why: &str| Err(format!("filter {part:?}: {why}"));
        let Some((name, value)) = part.split_once('=') else { return wrong(LEGAL) };
        let again = match name {
            "prefix" if !is_prefix(value) => return wrong("must be like 10.0.0.0/8, 2001:db8::/32 or 192.0.2.1"),
            "prefix" => filter.prefix.replace(value.into()).is_some(),
            "port" => match value.parse() {
                Ok(port) => filter.port.replace(port).is_some(),
                Err(_) => return wrong("must be a port, 0 to 65535"),
            },
            "protocol" => match text::protocol_number(value) {
                Some(number) => filter.protocol.replace(number).is_some(),
                None => return wrong("must be a protocol: tcp, udp, icmp, icmp6, sctp, gre, esp or 0 to 255"),
            },
            "ingress" => match value.parse() {
                Ok(port) => filter.ingress.replace(port).is_some(),
                Err(_) => return wrong("must be a port of the logger, 0 to 255"),
            },
            _ => return wrong(LEGAL),
        };
        if again {
            return wrong("given twice: remove one");
        }
    }
    Ok(filter)
}

fn is_prefix(text: &str) -> bool {
    let (address, length) = text.split_once('/').map_or((text, None), |(a, l)| (a, Some(l)));
    let Ok(address) = address.parse::<IpAddr>() else { return false };
    let most = if address.is_ipv4() { 32 } else { 128 };
    length.is_none_or(|l| l.parse::<u8>().is_ok_and(|l| l <= most))
}

/// The text form of the filter; empty when it matches every flow.
pub fn show(filter: &Filter) -> String {
    let parts = [
        filter.prefix.as_ref().map(|p| format!("prefix={p}")),
        filter.port.map(|p| format!("port={p}")),
        filter.protocol.map(|p| format!("protocol={}", text::protocol(p))),
        filter.ingress.map(|p| format!("ingress={p}")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_survive_their_own_text() {
        for text in ["", "prefix=10.0.0.0/8", "prefix=2001:db8::/32,port=53,protocol=udp,ingress=1"] {
            assert_eq!(show(&parse(text).unwrap()), text);
        }
        assert_eq!(parse("port=53 protocol=17").unwrap(), parse("protocol=udp,port=53").unwrap());
    }

    #[test]
    fn wrong_ones_say_what_is_legal() {
        let wrong = [
            "dns",
            "colour=red",
            "prefix=10.0.0.0/33",
            "prefix=x",
            "port=65536",
            "protocol=999",
            "ingress=-1",
            "port=1,port=2",
        ];
        insta::assert_snapshot!(wrong.map(|text| parse(text).unwrap_err()).join("\n"), @r#"
        filter "dns": must be prefix=ADDRESS[/LEN], port=0..65535, protocol=NAME|0..255 or ingress=0..255, separated by commas
        filter "colour=red": must be prefix=ADDRESS[/LEN], port=0..65535, protocol=NAME|0..255 or ingress=0..255, separated by commas
        filter "prefix=10.0.0.0/33": must be like 10.0.0.0/8, 2001:db8::/32 or 192.0.2.1
        filter "prefix=x": must be like 10.0.0.0/8, 2001:db8::/32 or 192.0.2.1
        filter "port=65536": must be a port, 0 to 65535
        filter "protocol=999": must be a protocol: tcp, udp, icmp, icmp6, sctp, gre, esp or 0 to 255
        filter "ingress=-1": must be a port of the logger, 0 to 255
        filter "port=2": given twice: remove one
        "#);
    }
}
