//! The answer of `ovs-ofctl -O OpenFlow14 dump-ports`.

use std::collections::BTreeMap;

use super::PortCounts;

/// Reads the counters of each port by its OpenFlow number or its name, as the answer has it. `?` is unknown.
pub fn parse(text: &str) -> BTreeMap<String, PortCounts> {
    let mut ports = BTreeMap::new();
    let mut port: Option<String> = None;
    for line in text.lines() {
        let head = line.trim_start().strip_prefix("port ").and_then(|rest| rest.split_once(':'));
        if let Some((name, _)) = head {
            port = Some(name.trim().trim_matches('"').to_owned());
        }
        let Some(name) = &port else { continue };
        let counts: &mut PortCounts = ports.entry(name.clone()).or_default();
        if line.contains("rx pkts=") {
            (counts.rx, counts.rx_dropped) = (number(line, "rx pkts="), number(line, "drop="));
        } else if line.contains("tx pkts=") {
            (counts.tx, counts.tx_dropped) = (number(line, "tx pkts="), number(line, "drop="));
        }
    }
    ports
}

fn number(text: &str, after: &str) -> Option<u64> {
    let (_, rest) = text.split_once(after)?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Open vSwitch 3.1 prints it.
    const ANSWER: &str = "OFPST_PORT reply (OF1.4) (xid=0x2): 3 ports
  port LOCAL: rx pkts=0, bytes=0, drop=0, errs=0, frame=0, over=0, crc=0
           tx pkts=0, bytes=0, drop=5, errs=0, coll=0
           duration=1.2s
  port  1: rx pkts=1000, bytes=60000, drop=7, errs=0, frame=?, over=?, crc=?
           tx pkts=900, bytes=54000, drop=100, errs=?, coll=?
           duration=1.2s
           CUSTOM Statistics
                      ovs_tx_failure_drops=100, ovs_tx_retries=8,
  port  \"phy1\": rx pkts=?, bytes=?, drop=?, errs=?, frame=?, over=?, crc=?
           tx pkts=3, bytes=?, drop=?, errs=?, coll=?
";

    #[test]
    fn each_port_has_its_counters() {
        let ports = parse(ANSWER);
        assert_eq!(
            ports["1"],
            PortCounts {
                rx: Some(1000),
                tx: Some(900),
                rx_dropped: Some(7),
                tx_dropped: Some(100),
                ..PortCounts::default()
            }
        );
        assert_eq!(ports["phy1"], PortCounts { tx: Some(3), ..PortCounts::default() });
        assert_eq!(ports["LOCAL"].tx_dropped, Some(5));
        assert!(parse("OFPT_ERROR: rx pkts=4").is_empty());
    }
}
