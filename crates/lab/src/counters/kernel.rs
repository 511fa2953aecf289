//! The answer of `ip -s -j link show`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::PortCounts;

/// Reads the counters of the interfaces `d0`, `d1` and so on by their number.
pub fn parse(text: &str) -> BTreeMap<String, PortCounts> {
    let Ok(Value::Array(links)) = serde_json::from_str(text) else { return BTreeMap::new() };
    let one = |link: &Value| {
        let port = link["ifname"].as_str()?.strip_prefix('d')?.to_owned();
        port.parse::<u32>().ok()?;
        let count = |way: &str, what: &str| link["stats64"][way][what].as_u64();
        let counts = PortCounts {
            rx: count("rx", "packets"),
            tx: count("tx", "packets"),
            rx_dropped: count("rx", "dropped"),
            tx_dropped: count("tx", "dropped"),
            ..PortCounts::default()
        };
        Some((port, counts))
    };
    links.iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_are_found_by_number() {
        let answer = r#"[{"ifname":"lo"},{"ifname":"dummy0"},{"ifname":"d0","stats64":{"rx":{"packets":5,"dropped":1},"tx":{"packets":4,"dropped":2}}}]"#;
        let ports = parse(answer);
        assert_eq!(ports.len(), 1);
        assert_eq!(
            ports["0"],
            PortCounts { rx: Some(5), tx: Some(4), rx_dropped: Some(1), tx_dropped: Some(2), ..PortCounts::default() }
        );
        assert!(parse("Cannot find device").is_empty());
    }
}
