//! The answer of `linerate forward` to `show ports` as data.

use std::collections::BTreeMap;

use serde_json::Value;

use super::PortCounts;

/// Reads the counters of each port by its number.
pub fn parse(answer: &Value) -> BTreeMap<String, PortCounts> {
    let ports = answer.as_array().into_iter().flatten().enumerate();
    let one = |(n, port): (usize, &Value)| {
        let counts = PortCounts {
            rx: port["rx_frames"].as_u64(),
            tx: port["tx_frames"].as_u64(),
            rx_dropped: port["missed_frames"].as_u64(),
            ..PortCounts::default()
        };
        (n.to_string(), counts)
    };
    ports.map(one).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ports_are_counted_in_order() {
        let ports = parse(&json!([{ "rx_frames": 3, "tx_frames": 2, "missed_frames": 7 }, { "rx_frames": 1 }]));
        let first = PortCounts { rx: Some(3), tx: Some(2), rx_dropped: Some(7), ..PortCounts::default() };
        assert_eq!(ports["0"], first);
        assert_eq!(ports["1"].rx, Some(1));
        assert!(parse(&json!("no")).is_empty());
    }
}
