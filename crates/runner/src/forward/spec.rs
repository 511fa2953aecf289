//! A checked configuration of `forward`: what is run.

use std::time::Duration;

use dpdk::PortSpec;
use failure::Failure;
use rig::{
    device::{DataPlaneSpec, LoopOptions, Polled, NODE_SAMPLE},
    MachineOptions,
};

use super::config::Config;
use crate::{
    ports::parse_ports,
    queues::{count, place_queues, QueuePlacement},
};

/// What a file does not say.
#[derive(Debug, Clone, Default)]
pub struct ForwardOptions {
    /// Memory and descriptors.
    pub machine: MachineOptions,
    /// Whether nodes count without reading the clock.
    pub no_clocks: bool,
    /// The name of the control socket; `None`: `forward`, or `forward-PID`.
    pub name: Option<String>,
    /// How long to run; `None`: until stopped.
    pub duration: Option<Duration>,
    /// Whether the final report is JSON.
    pub json: bool,
    /// Whether the run fails when frame buffers are lost.
    pub check_pools: bool,
}

/// What is run, checked.
#[derive(Debug, Clone)]
pub struct ForwardSpec {
    /// The ports' text forms.
    pub names: Vec<String>,
    /// The ports.
    pub ports: Vec<PortSpec>,
    /// CPUs that poll; the first lcore's first.
    pub cpus: Vec<u32>,
    /// Receive queues of each port.
    pub rx_queues: u16,
    /// Which lcore polls which queue.
    pub polled: Vec<Polled>,
    /// Largest IP packet in bytes, by port.
    pub mtu: Vec<u16>,
    /// The function, its tables and its loops.
    pub plane: DataPlaneSpec,
    /// What a file does not say.
    pub options: ForwardOptions,
}

impl ForwardSpec {
    /// Checks everything that can be wrong before a port is opened. `allowed` are the CPUs that this process may use.
    ///
    /// # Errors
    ///
    /// (usage) for a value that is not legal.
    pub fn check(config: Config, options: ForwardOptions, allowed: &[u32]) -> Result<Self, Failure> {
        rig::check_descriptors(options.machine.descriptors)?;
        let n = config.ports.len();
        if n < 2 {
            return Err(Failure::usage(format!(
                "{} --port given: a data plane forwards between two or more ports",
                count(n)
            )));
        }
        let mtu = match config.mtu.as_slice() {
            [] => vec![1500; n],
            &[one] => vec![one; n],
            each if each.len() == n => each.to_vec(),
            each => {
                return Err(Failure::usage(format!(
                    "mtu: {} given for {n} ports: must be one for all, or one for each port",
                    each.len()
                )))
            }
        };
        if let Some(bad) = mtu.iter().find(|m| !(576..=9600).contains(*m)) {
            return Err(Failure::usage(format!("mtu {bad}: must be 576 to 9600 bytes of IP packet")));
        }
        let QueuePlacement { cpus, polled } =
            place_queues(&config.cpus, &config.queue_map, n, config.rx_queues, allowed)?;
        let settings = dataplane::Settings {
            tx_policy: config.tx.parse().map_err(Failure::usage)?,
            node_clocks: !options.no_clocks,
            node_sample: NODE_SAMPLE,
            ..dataplane::Settings::default()
        };
        let impair = config.impair.parse().map_err(Failure::usage)?;
        Ok(Self {
            ports: parse_ports(&config.ports)?,
            names: config.ports,
            cpus,
            rx_queues: config.rx_queues,
            polled,
            mtu,
            plane: DataPlaneSpec { plane: config.function, options: LoopOptions { impair, settings } },
            options,
        })
    }
}

#[cfg(test)]
mod tests {
    use failure::Exit;

    use super::*;

    fn check(ports: &[&str], change: fn(&mut Config)) -> Result<ForwardSpec, Failure> {
        let mut config = Config { ports: ports.iter().map(|&p| p.to_owned()).collect(), ..Config::default() };
        change(&mut config);
        ForwardSpec::check(config, ForwardOptions::default(), &[0, 1])
    }

    #[test]
    fn a_checked_configuration_is_complete() {
        let spec = check(&["null", "null"], |c| c.mtu = vec![9000]).unwrap();
        assert_eq!((spec.cpus, spec.mtu, spec.ports.len()), (vec![0], vec![9000, 9000], 2));
        assert_eq!(spec.polled.len(), 2);
    }

    #[test]
    fn wrong_values_name_what_is_legal() {
        let null = ["null", "null"];
        let bad = [
            check(&[], |_| {}),
            check(&null[..1], |_| {}),
            check(&null, |c| c.mtu = vec![1500; 3]),
            check(&null, |c| c.mtu = vec![100]),
            check(&null, |c| c.cpus = vec![7]),
            check(&null, |c| c.cpus = vec![0, 1, 1]),
            check(&["null", "null", "null", "null"], |c| {
                c.cpus = vec![0, 1];
                c.queue_map = vec!["0:0=0".into(), "1:0=0".into(), "2:0=0".into(), "3:0=0".into()];
            }),
        ];
        let bad = bad.map(|bad| bad.unwrap_err());
        assert!(bad.iter().all(|failure| failure.exit == Exit::Usage));
        insta::assert_snapshot!(bad.map(|failure| failure.text).join("\n"), @r#"
        no --port given: a data plane forwards between two or more ports
        1 --port given: a data plane forwards between two or more ports
        mtu: 3 given for 2 ports: must be one for all, or one for each port
        mtu 100: must be 576 to 9600 bytes of IP packet
        --cpus 7: this process may use CPUs 0,1
        --cpus 1 is given twice: each lcore needs a CPU of its own
        CPU 1 has no queue to poll: there are 4 queues in all. Ask for more (--rx-queues) or give fewer --cpus
        "#);
    }
}
