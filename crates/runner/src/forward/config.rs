//! The configuration of `forward` as a file has it.

use dataplane::{spec::PlaneSpec, TxPolicy};
use failure::Failure;
use packet::MacAddr;
use serde::{Deserialize, Serialize};

/// MAC addresses of the stations that the benchmark tables face, unless others are given.
const STATIONS: [MacAddr; 2] = [MacAddr([0x02, b'L', b'R', 0, 0, 0]), MacAddr([0x02, b'L', b'R', 0, 0, 1])];

/// The configuration as written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The ports, counted from 0.
    pub ports: Vec<String>,
    /// CPUs that poll; empty: the last but one allowed.
    pub cpus: Vec<u32>,
    /// Receive queues of each port.
    pub rx_queues: u16,
    /// `PORT:QUEUE=CPU` for each queue; empty: in turn.
    pub queue_map: Vec<String>,
    /// Largest IP packet in bytes, one for all ports or one for each.
    pub mtu: Vec<u16>,
    /// When frames leave.
    pub tx: String,
    /// The impairment; empty: none.
    pub impair: String,
    /// The function and its tables.
    pub function: PlaneSpec,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            ports: Vec::new(),
            cpus: Vec::new(),
            rx_queues: 1,
            queue_map: Vec::new(),
            mtu: vec![1500],
            tx: TxPolicy::default().to_string(),
            impair: String::new(),
            function: PlaneSpec::default(),
        }
    }
}

impl Config {
    /// Fills in the benchmark tables where none are given, for stations with these addresses behind ports 0 and 1.
    ///
    /// # Errors
    ///
    /// (usage) when stations are given and the tables, or the function, have no use for them.
    pub fn fill_benchmark_tables(&mut self, stations: Option<[MacAddr; 2]>) -> Result<(), Failure> {
        let function = &mut self.function;
        if !function.is_bare() {
            return match stations {
                Some(_) => Err(Failure::usage("--stations: only for the benchmark tables, and other tables are given")),
                None => Ok(()),
            };
        }
        let benchmark = PlaneSpec::benchmark(function.kind, stations.unwrap_or(STATIONS));
        if stations.is_some() && benchmark.is_bare() {
            return Err(Failure::usage(format!(
                "--stations: only for the benchmark tables of l3, mpls and vxlan; {} has none",
                function.kind
            )));
        }
        // Other settings of the function stay.
        let PlaneSpec { addresses, routes, neighbours, labels, networks, remotes, .. } = benchmark;
        *function = PlaneSpec { addresses, routes, neighbours, labels, networks, remotes, ..function.clone() };
        Ok(())
    }

    /// As a file would hold it, with every default.
    ///
    /// # Errors
    ///
    /// (failed) for a value that TOML cannot hold.
    pub fn to_toml(&self) -> Result<String, Failure> {
        toml::to_string(&Self { function: self.function.effective(), ..self.clone() }).map_err(Failure::failed)
    }
}

#[cfg(test)]
mod tests {
    use dataplane::spec::FunctionKind;

    use super::*;

    #[test]
    fn benchmark_tables_are_for_functions_without_tables() {
        let config = |kind| Config { function: PlaneSpec::new(kind), ..Config::default() };
        let mut l3 = config(FunctionKind::L3);
        l3.fill_benchmark_tables(Some(STATIONS)).unwrap();
        assert_eq!(l3.function, PlaneSpec::benchmark(FunctionKind::L3, STATIONS));
        let kept = l3.clone();
        l3.fill_benchmark_tables(None).unwrap();
        assert_eq!(l3, kept);
        insta::assert_snapshot!(l3.fill_benchmark_tables(Some(STATIONS)).unwrap_err(), @"--stations: only for the benchmark tables, and other tables are given");
        let mut bridge = config(FunctionKind::Bridge);
        insta::assert_snapshot!(bridge.fill_benchmark_tables(Some(STATIONS)).unwrap_err(), @"--stations: only for the benchmark tables of l3, mpls and vxlan; bridge has none");
        bridge.fill_benchmark_tables(None).unwrap();
        assert!(bridge.function.is_bare());
    }
}
