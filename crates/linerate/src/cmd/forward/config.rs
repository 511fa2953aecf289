//! What `forward` runs: flags over a TOML file, checked.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use dataplane::{impair::ImpairSpec, spec::PlaneSpec, TxPolicy};
use packet::MacAddr;
use serde::{de::DeserializeOwned, Deserialize, Serialize};

use crate::cli::{forward::ForwardArgs, MachineArgs};
use failure::Failure;
use rig::device::Polled;

/// Largest configuration file read; tables of any size come by `forward load`.
const MAX_CONFIG_BYTES: u64 = 64 << 20;

/// The configuration as written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The ports, counted from 0.
    pub ports: Vec<String>,
    /// CPUs that poll; empty: the last one allowed.
    pub cpus: Vec<u32>,
    /// Receive queues of each port.
    pub rx_queues: u16,
    /// `PORT:QUEUE=CPU` for each queue; empty: in turn.
    pub queue_map: Vec<String>,
    /// Largest IP packet, one for all ports or one a port.
    pub mtu: Vec<u16>,
    /// When frames leave.
    pub tx: String,
    /// What is done to frames on purpose; empty: nothing.
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

/// The configuration, checked.
#[derive(Debug)]
pub struct Settings {
    /// The ports' text forms.
    pub ports: Vec<String>,
    /// CPUs that poll, the first lcore's first.
    pub cpus: Vec<u32>,
    /// Receive queues of each port.
    pub rx_queues: u16,
    /// Who polls what.
    pub polled: Vec<Polled>,
    /// By port.
    pub mtu: Vec<u16>,
    /// When frames leave.
    pub tx: TxPolicy,
    /// The impairment.
    pub impair: ImpairSpec,
    /// Function and tables.
    pub plane: PlaneSpec,
    /// How long to run.
    pub duration: Option<Duration>,
}

impl Config {
    /// The file, if one was named, with the flags over it.
    pub fn read(args: &ForwardArgs) -> Result<Self, Failure> {
        let mut config = match &args.config {
            Some(path) => file(path)?,
            None => Self::default(),
        };
        if let Some(text) = &args.function {
            config.function.kind = text.parse().map_err(Failure::usage)?;
        } else if args.config.is_none() {
            return Err(Failure::usage(
                "forward what? null, l2, l2:macswap, bridge, l3, mpls or vxlan, or --config FILE (or show, route, load: see --help)",
            ));
        }
        config.ports.extend_from_slice(&args.ports);
        args.queues.over(&mut config.cpus, &mut config.rx_queues, &mut config.queue_map, &mut config.tx);
        if !args.mtu.is_empty() {
            config.mtu.clone_from(&args.mtu);
        }
        if let Some(impair) = &args.impair {
            config.impair.clone_from(impair);
        }
        let f = &mut config.function;
        items("--address", &args.addresses, &mut f.addresses)?;
        items("--route", &args.routes, &mut f.routes)?;
        items("--neighbour", &args.neighbours, &mut f.neighbours)?;
        items("--label", &args.labels, &mut f.labels)?;
        items("--network", &args.networks, &mut f.networks)?;
        items("--remote", &args.remotes, &mut f.remotes)?;
        items("--fdb", &args.fdb, &mut f.fdb)?;
        if f.is_bare() {
            let stations = stations(&args.stations)?;
            if !args.stations.is_empty() && PlaneSpec::benchmark(f.kind, stations).is_bare() {
                return Err(Failure::usage(format!(
                    "--stations: they are for the benchmark tables of l3, mpls and vxlan, and {} has none",
                    f.kind
                )));
            }
            // Everything else that was set stays.
            let PlaneSpec { addresses, routes, neighbours, labels, networks, remotes, .. } =
                PlaneSpec::benchmark(f.kind, stations);
            *f = PlaneSpec { addresses, routes, neighbours, labels, networks, remotes, ..f.clone() };
        } else if !args.stations.is_empty() {
            return Err(Failure::usage("--stations: they are for the benchmark tables, and other tables are given"));
        }
        Ok(config)
    }

    /// As a file would hold it.
    pub fn to_toml(&self) -> Result<String, Failure> {
        toml::to_string(&Self { function: self.function.effective(), ..self.clone() }).map_err(Failure::failed)
    }

    /// Checks everything that can be wrong before a port is opened.
    pub fn check(self, args: &ForwardArgs, allowed: &[u32]) -> Result<Settings, Failure> {
        no_tester(&args.machine)?;
        let ports = self.ports.len();
        if ports < 2 {
            return Err(Failure::usage(format!(
                "{} --port given: a data plane forwards between two or more ports",
                number(ports)
            )));
        }
        let mtu = match self.mtu.as_slice() {
            [] => vec![1500; ports],
            &[one] => vec![one; ports],
            each if each.len() == ports => each.to_vec(),
            each => {
                return Err(Failure::usage(format!(
                    "mtu: {} given for {ports} ports: must be one for all or one a port",
                    each.len()
                )))
            }
        };
        if let Some(bad) = mtu.iter().find(|m| !(576..=9600).contains(*m)) {
            return Err(Failure::usage(format!("mtu {bad}: must be 576 to 9600 bytes of IP packet")));
        }
        let Placement { cpus, polled } = placement(&self.cpus, &self.queue_map, ports, self.rx_queues, allowed)?;
        Ok(Settings {
            ports: self.ports,
            cpus,
            rx_queues: self.rx_queues,
            polled,
            mtu,
            tx: self.tx.parse().map_err(Failure::usage)?,
            impair: self.impair.parse().map_err(Failure::usage)?,
            plane: self.function,
            duration: args.duration.as_deref().map(units::parse_duration).transpose()?,
        })
    }
}

/// A number of things, in words where there are none.
pub fn number(n: usize) -> String {
    if n == 0 {
        "no".into()
    } else {
        n.to_string()
    }
}

/// A command without a tester has no CPUs for one.
fn no_tester(machine: &MachineArgs) -> Result<(), Failure> {
    for (flag, cpu) in [("--tester-cpu", machine.tester_cpu), ("--dut-cpu", machine.dut_cpu)] {
        if let Some(cpu) = cpu {
            return Err(Failure::usage(format!("{flag} {cpu}: forward polls on --cpus {cpu}")));
        }
    }
    rig::check_descriptors(machine.descriptors)
}

/// Which CPUs poll, and who polls what.
pub struct Placement {
    /// CPUs that poll, the first lcore's first.
    pub cpus: Vec<u32>,
    /// Who polls what.
    pub polled: Vec<Polled>,
}

/// Places the queues of so many ports on lcores, from `--cpus`, `--queue-map` and `--rx-queues`.
pub fn placement(
    given: &[u32],
    map: &[String],
    ports: usize,
    rx_queues: u16,
    allowed: &[u32],
) -> Result<Placement, Failure> {
    let map = queue_map(map, ports, rx_queues)?;
    let cpus = cpus(given, &map, allowed)?;
    let polled = match map {
        Some(map) => {
            let lcore = |cpu: u32| cpus.iter().position(|&c| c == cpu).unwrap_or(0);
            map.into_iter().map(|((port, queue), cpu)| Polled { port, queue, lcore: lcore(cpu) }).collect()
        }
        None => in_turn(ports, rx_queues, cpus.len()),
    };
    let idle = (0..cpus.len()).find(|&lcore| polled.iter().all(|p| p.lcore != lcore));
    if let Some(idle) = idle {
        return Err(Failure::usage(format!(
            "CPU {} has no queue to poll: {} queues in all; ask for more (--rx-queues) or give fewer --cpus",
            cpus[idle],
            polled.len()
        )));
    }
    Ok(Placement { cpus, polled })
}

/// Reads a TOML file; errors name the line.
pub fn file<T: DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let at = |e: String| Failure::usage(format!("--config {}: {e}", path.display()));
    match fs::metadata(path) {
        Ok(m) if m.is_file() && m.len() <= MAX_CONFIG_BYTES => {}
        Ok(_) => return Err(at("must be a regular file of at most 64 MiB".into())),
        Err(e) => return Err(at(e.to_string())),
    }
    let text = fs::read_to_string(path).map_err(|e| at(e.to_string()))?;
    toml::from_str(&text).map_err(|e| {
        let before = e.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let (line, key) = (1 + before.matches('\n').count(), key(before));
        at(format!("line {line}: {key}{}", e.message().replace('\n', " ")))
    })
}

/// `KEY: ` of the value that begins behind this text; nothing where none does.
fn key(before: &str) -> String {
    let line = before.rsplit('\n').next().unwrap_or_default();
    let key = line.split_once('=').map(|(key, _)| key.trim()).unwrap_or_default();
    let bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    if bare {
        format!("{key}: ")
    } else {
        String::new()
    }
}

fn items<T: std::str::FromStr>(flag: &str, texts: &[String], list: &mut Vec<T>) -> Result<(), Failure>
where
    T::Err: std::fmt::Display,
{
    for text in texts {
        list.push(text.parse().map_err(|e| Failure::usage(format!("{flag}: {e}")))?);
    }
    Ok(())
}

fn stations(texts: &[String]) -> Result<[MacAddr; 2], Failure> {
    let mac = |text: &String| text.parse().map_err(|e| Failure::usage(format!("--stations: {e}")));
    match texts {
        [] => Ok([0, 1].map(|n| MacAddr([0x02, b'L', b'R', 0, 0, n]))),
        [a, b] => Ok([mac(a)?, mac(b)?]),
        _ => Err(Failure::usage("--stations: must be two MAC addresses, of the stations behind ports 0 and 1")),
    }
}

type QueueMap = BTreeMap<(usize, u16), u32>;

fn queue_map(texts: &[String], ports: usize, queues: u16) -> Result<Option<QueueMap>, Failure> {
    if texts.is_empty() {
        return Ok(None);
    }
    let mut map = QueueMap::new();
    for text in texts {
        let err = |why: &str| {
            Failure::usage(format!(
                "--queue-map {text:?}: {why}; must be PORT:QUEUE=CPU with port 0 to {} and queue 0 to {}",
                ports - 1,
                queues - 1
            ))
        };
        let parts = text.split_once('=').and_then(|(left, cpu)| Some((left.split_once(':')?, cpu)));
        let ((port, queue), cpu) = parts.ok_or_else(|| err("is not of this form"))?;
        let numbers = (port.trim().parse(), queue.trim().parse(), cpu.trim().parse());
        let (Ok(port), Ok(queue), Ok(cpu)) = numbers else { return Err(err("has something else than numbers")) };
        if port >= ports || queue >= queues {
            return Err(err("there is no such queue"));
        }
        if map.insert((port, queue), cpu).is_some() {
            return Err(err("this queue is there twice"));
        }
    }
    let all = (0..ports).flat_map(|port| (0..queues).map(move |queue| (port, queue)));
    if let Some((port, queue)) = all.into_iter().find(|key| !map.contains_key(key)) {
        return Err(Failure::usage(format!(
            "--queue-map: queue {queue} of port {port} has no CPU: its frames would never be taken; add {port}:{queue}=CPU"
        )));
    }
    Ok(Some(map))
}

/// The CPUs that poll: those given, or those of the map, or the last allowed.
fn cpus(given: &[u32], map: &Option<QueueMap>, allowed: &[u32]) -> Result<Vec<u32>, Failure> {
    let mut cpus = given.to_vec();
    if let Some(map) = map {
        for &cpu in map.values() {
            if !cpus.contains(&cpu) {
                if !given.is_empty() {
                    return Err(Failure::usage(format!("--queue-map names CPU {cpu}, which is not among --cpus")));
                }
                cpus.push(cpu);
            }
        }
    }
    if cpus.is_empty() {
        cpus.extend(allowed.last());
    }
    for (i, cpu) in cpus.iter().enumerate() {
        if !allowed.contains(cpu) {
            let list = allowed.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
            return Err(Failure::usage(format!("--cpus {cpu}: this process may use CPUs {list}")));
        }
        if cpus[..i].contains(cpu) {
            return Err(Failure::usage(format!("--cpus {cpu} is there twice: each lcore needs a CPU of its own")));
        }
    }
    Ok(cpus)
}

/// Queue n of each port by lcore n; ports of one queue in turn.
fn in_turn(ports: usize, queues: u16, lcores: usize) -> Vec<Polled> {
    let lcore = |port: usize, queue: u16| if queues > 1 { usize::from(queue) % lcores } else { port % lcores };
    let all = (0..ports).flat_map(|port| (0..queues).map(move |queue| (port, queue)));
    all.map(|(port, queue)| Polled { port, queue, lcore: lcore(port, queue) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_go_in_turn_or_as_told() {
        let by = |polled: Vec<Polled>| polled.iter().map(|p| (p.port, p.queue, p.lcore)).collect::<Vec<_>>();
        assert_eq!(by(in_turn(2, 1, 1)), [(0, 0, 0), (1, 0, 0)]);
        assert_eq!(by(in_turn(2, 1, 2)), [(0, 0, 0), (1, 0, 1)]);
        assert_eq!(by(in_turn(2, 2, 2)), [(0, 0, 0), (0, 1, 1), (1, 0, 0), (1, 1, 1)]);
        let map = |texts: &[&str]| queue_map(&texts.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>(), 2, 1);
        assert_eq!(map(&["0:0=2", "1:0=3"]).unwrap().unwrap(), BTreeMap::from([((0, 0), 2), ((1, 0), 3)]));
        for (bad, want) in [
            (&["0:0=2"][..], "queue 0 of port 1 has no CPU"),
            (&["0:0=2", "0:0=3"], "there twice"),
            (&["0:1=2"], "no such queue"),
            (&["0=2"], "PORT:QUEUE=CPU"),
            (&["0:0=x"], "numbers"),
        ] {
            let err = map(bad).unwrap_err().text;
            assert!(err.contains(want), "{err}");
        }
    }

    #[test]
    fn polling_cpus_are_real_and_distinct() {
        assert_eq!(cpus(&[], &None, &[0, 1]).unwrap(), [1]);
        assert_eq!(cpus(&[], &Some(BTreeMap::from([((0, 0), 0), ((1, 0), 1)])), &[0, 1]).unwrap(), [0, 1]);
        assert!(cpus(&[7], &None, &[0, 1]).unwrap_err().text.contains("may use CPUs 0,1"));
        assert!(cpus(&[1, 1], &None, &[0, 1]).is_err());
    }
}
