//! The answer of dpdk-testpmd to `show port stats all`.

use std::collections::BTreeMap;

use super::PortCounts;

/// Reads the counters of each port by its number.
pub fn parse(text: &str) -> BTreeMap<String, PortCounts> {
    let mut ports = BTreeMap::new();
    for block in text.split("NIC statistics for port").skip(1) {
        let Some(port) = block.split_whitespace().next() else { continue };
        let count = |name: &str| -> Option<u64> {
            let (_, after) = block.split_once(&format!("{name}:"))?;
            after.split_whitespace().next()?.parse().ok()
        };
        let sum = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        let counts = PortCounts {
            rx: count("RX-packets"),
            tx: count("TX-packets"),
            rx_dropped: sum(count("RX-missed"), count("RX-errors")),
            tx_dropped: count("TX-errors"),
            ..PortCounts::default()
        };
        ports.insert(port.to_owned(), counts);
    }
    ports
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_port_has_its_counters() {
        let answer = "
  ######################## NIC statistics for port 0  ########################
  RX-packets: 100        RX-missed: 2          RX-bytes:  6000
  RX-errors: 1
  RX-nombuf:  0
  TX-packets: 90         TX-errors: 3          TX-bytes:  5400

  Throughput (since last show)
  Rx-pps:            0          Rx-bps:            0
  ######################## NIC statistics for port 1  ########################
  RX-packets: 7
";
        let ports = parse(answer);
        assert_eq!(
            ports["0"],
            PortCounts {
                rx: Some(100),
                tx: Some(90),
                rx_dropped: Some(3),
                tx_dropped: Some(3),
                ..PortCounts::default()
            }
        );
        assert_eq!(ports["1"], PortCounts { rx: Some(7), ..PortCounts::default() });
        assert!(parse("Command not found").is_empty());
    }
}
