//! What the device under test is: the one place that reads what a user calls it.

use std::{path::PathBuf, time::Duration};

use dataplane::spec::FunctionKind;
use failure::Failure;
use measure::{plan::Plan, schema::device::DeviceRecord, sim::SimSetup};

use serde::{Deserialize, Serialize};

use super::plane::LoopOptions;

/// What `--dut` calls the flow logger.
pub const FLOWLOG: &str = "flowlog";
/// What `--dut` calls a simulated device, alone or with its keys behind a colon.
const SIMULATED: &str = "sim";
/// The built-in device where nothing names another.
const DEFAULT: FunctionKind = FunctionKind::L3;

/// The words of a command line that name a device. They go before the plan's `[dut]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceOptions {
    /// `--port`: ports of an outside device. None: a built-in or a simulated device.
    pub ports: Vec<String>,
    /// `--dut`.
    pub dut: Option<String>,
    /// `--impair`.
    pub impair: Option<String>,
    /// `--dut-tx-policy`.
    pub tx_policy: Option<String>,
    /// `--dut-control`: name or socket of a `linerate forward` behind the ports.
    pub control: Option<PathBuf>,
    /// This process is inside a lab, whose counters are read around each trial.
    #[serde(default)]
    pub lab: bool,
    /// `--link-wait`.
    pub link_wait: Duration,
}

impl Default for DeviceOptions {
    fn default() -> Self {
        Self {
            ports: Vec::new(),
            dut: None,
            impair: None,
            tx_policy: None,
            control: None,
            lab: false,
            link_wait: Duration::from_secs(10),
        }
    }
}

/// Ports of the tester that lead to a device outside this process.
#[derive(Debug, Clone, PartialEq)]
pub struct OutsidePorts {
    /// As named by the user.
    pub names: Vec<String>,
    /// Name or socket of a `linerate forward` behind the ports, whose counters are read around each trial.
    pub control: Option<PathBuf>,
    /// The ports lead into the lab that this process is inside of.
    pub lab: bool,
    /// How long a link or a peer may take to come up.
    pub link_wait: Duration,
}

/// A device under test. A new kind is a variant here; every `match` names all of them.
#[derive(Debug, Clone)]
pub enum Device {
    /// Whatever is behind the tester's ports.
    Ports(OutsidePorts),
    /// The reference data plane, built in.
    Plane {
        /// Its function.
        kind: FunctionKind,
        /// How its loop behaves.
        options: LoopOptions,
        /// Host routes behind ports 0 and 1, besides those of the benchmark.
        routes: [u32; 2],
    },
    /// The flow logger, built in.
    FlowLog(LoopOptions),
    /// A tester and a device that are not there, in virtual time.
    Simulated(SimSetup),
}

impl Device {
    /// Reads the words of the command line, then the plan's `[dut]`.
    ///
    /// # Errors
    ///
    /// (usage) for an unknown function, a bad impairment or transmit policy, and for words that the device has no use for.
    pub fn parse(options: &DeviceOptions, plan: &Plan) -> Result<Self, Failure> {
        if !options.ports.is_empty() {
            return Ok(Self::Ports(OutsidePorts {
                names: options.ports.clone(),
                control: options.control.clone(),
                lab: options.lab,
                link_wait: options.link_wait,
            }));
        }
        let impair = options.impair.as_deref().or(plan.dut.impair.as_deref());
        let tx_policy = options.tx_policy.as_deref();
        let name = options.dut.as_deref().unwrap_or(Self::built_in_of(plan)).trim();
        if name.strip_prefix(SIMULATED).is_some_and(|rest| rest.is_empty() || rest.starts_with(':')) {
            return simulated(name, impair, tx_policy, plan);
        }
        let loop_options = LoopOptions::parse(impair, tx_policy)?;
        let device = match name.parse::<FunctionKind>() {
            Ok(kind) => Self::Plane { kind, options: loop_options, routes: routes(plan) },
            Err(_) if name == FLOWLOG => Self::FlowLog(loop_options),
            Err(_) => {
                let names = FunctionKind::ALL.map(FunctionKind::name).join(", ");
                return Err(Failure::usage(format!(
                    "dut {name:?}: must be {names}, {FLOWLOG} or {SIMULATED}:KEY=VALUE,..."
                )));
            }
        };
        let routed = matches!(device, Self::Plane { kind: FunctionKind::L3, .. });
        if !routed && routes(plan) != [0, 0] {
            return Err(Failure::usage(format!(
                "routes: the {} has no routes to be loaded with: use --dut l3",
                device.name()
            )));
        }
        Ok(device)
    }

    /// What it is in two words: `built-in l3`, `outside device`, `simulated device`.
    pub fn name(&self) -> String {
        match self {
            Self::Ports(_) => "outside device".to_owned(),
            Self::Plane { kind, .. } => format!("built-in {}", kind.name()),
            Self::FlowLog(_) => format!("built-in {FLOWLOG}"),
            Self::Simulated(_) => "simulated device".to_owned(),
        }
    }

    /// Whether nothing real is measured.
    pub fn is_simulated(&self) -> bool {
        match self {
            Self::Ports(_) | Self::Plane { .. } | Self::FlowLog(_) => false,
            Self::Simulated(_) => true,
        }
    }

    /// What `--dut` says of the device of run `number` of several, counted from 1, where that is another than of the first:
    /// a simulated device gets the next seed, since with the same one every run would be the same.
    pub fn in_run(&self, number: u32) -> Option<String> {
        match self {
            Self::Ports(_) | Self::Plane { .. } | Self::FlowLog(_) => None,
            Self::Simulated(setup) => {
                let seed = setup.seed.wrapping_add(u64::from(number).saturating_sub(1));
                Some(SimSetup { seed, ..setup.clone() }.to_string())
            }
        }
    }

    /// What is built in where neither the command line nor the plan says what.
    pub fn built_in_of(plan: &Plan) -> &str {
        plan.dut.function.as_deref().unwrap_or(DEFAULT.name())
    }

    /// As a result keeps it.
    pub fn record(&self) -> DeviceRecord {
        match self {
            Self::Ports(ports) => DeviceRecord::Ports { names: ports.names.clone() },
            Self::Plane { kind, options, routes } => {
                let (impairment, tx_policy) = options.behaviour();
                let routes = routes.iter().map(|&n| u64::from(n)).sum();
                DeviceRecord::Plane { function: kind.name().to_owned(), impairment, tx_policy, routes }
            }
            Self::FlowLog(options) => {
                let (impairment, tx_policy) = options.behaviour();
                DeviceRecord::FlowLog { impairment, tx_policy }
            }
            Self::Simulated(setup) => DeviceRecord::Simulated { setup: setup.to_string() },
        }
    }
}

fn simulated(name: &str, impair: Option<&str>, tx_policy: Option<&str>, plan: &Plan) -> Result<Device, Failure> {
    let unused = [("--impair", impair), ("--dut-tx-policy", tx_policy)];
    if let Some((flag, _)) = unused.iter().find(|(_, given)| given.is_some()) {
        return Err(Failure::usage(format!(
            "{flag} with --dut {name}: changes the built-in data plane only: use the keys of --dut sim: (queue, onset, \
             stalls, accidents, ...)"
        )));
    }
    let mut setup: SimSetup = name.parse()?;
    setup.directions = plan.traffic.directions();
    Ok(Device::Simulated(setup))
}

/// Host routes behind ports 0 and 1: behind every port that frames are sent to.
fn routes(plan: &Plan) -> [u32; 2] {
    let both_ways = plan.traffic.directions() == 2;
    [0, 1].map(|port| plan.dut.routes.filter(|_| port == 1 || both_ways).map_or(0, |n| n as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(dut: &str, impair: Option<&str>) -> Result<Device, Failure> {
        let (dut, impair) = (Some(dut.to_owned()), impair.map(str::to_owned));
        Device::parse(&DeviceOptions { dut, impair, ..DeviceOptions::default() }, &Plan::default())
    }

    #[test]
    fn every_kind_has_its_word() {
        assert!(matches!(parse("l2", Some("loss=1%")), Ok(Device::Plane { kind: FunctionKind::L2, .. })));
        assert!(matches!(parse("flowlog", None), Ok(Device::FlowLog(_))));
        let Ok(Device::Simulated(setup)) = parse("sim", None) else { unreachable!("sim is a simulated device") };
        assert_eq!(setup.queue, 256);
        let ports = DeviceOptions { ports: vec!["null".into(), "null".into()], ..DeviceOptions::default() };
        assert!(matches!(Device::parse(&ports, &Plan::default()), Ok(Device::Ports(_))));
        let by_default = Device::parse(&DeviceOptions::default(), &Plan::default()).unwrap();
        assert_eq!(by_default.record().describe(), "built-in l3 over wire");
    }

    #[test]
    fn a_name_of_no_device_is_refused_with_the_legal_ones() {
        let wrong = parse("simple", None).unwrap_err();
        assert_eq!(wrong.exit, failure::Exit::Usage);
        insta::assert_snapshot!(wrong.text, @r#"dut "simple": must be null, pass, l2, l2:macswap, bridge, l3, mpls, vxlan, flowlog or sim:KEY=VALUE,..."#);
        for (dut, impair) in [("sim:speed=3", None), ("sim", Some("loss=1%")), ("l2", Some("loss=many"))] {
            assert_eq!(parse(dut, impair).unwrap_err().exit, failure::Exit::Usage, "{dut}");
        }
    }

    #[test]
    fn a_device_has_a_name_and_a_record() {
        let outside = DeviceOptions { ports: vec!["null".into()], ..DeviceOptions::default() };
        let outside = Device::parse(&outside, &Plan::default()).unwrap();
        let [l2, flowlog, sim] = ["l2", "flowlog", "sim"].map(|dut| parse(dut, None).unwrap());
        let all = [&outside, &l2, &flowlog, &sim];
        insta::assert_snapshot!(all.map(Device::name).join(", "), @"outside device, built-in l2, built-in flowlog, simulated device");
        assert_eq!(all.map(Device::is_simulated), [false, false, false, true]);
        let options = DeviceOptions {
            dut: Some("l2".into()),
            impair: Some("loss=1%".into()),
            tx_policy: Some("small=4,polls=2".into()),
            ..DeviceOptions::default()
        };
        let Device::Plane { options, .. } = Device::parse(&options, &Plan::default()).unwrap() else {
            unreachable!("l2 is a data plane")
        };
        let (impairment, tx_policy) = options.behaviour();
        assert_eq!((impairment, tx_policy), (Some(options.impair.to_string()), Some("small=4,polls=2".to_owned())));
        insta::assert_snapshot!(options.describe("l2"), @"l2 with impair loss=0.01, transmit small=4,polls=2");
        let usual = LoopOptions::parse(None, None).unwrap();
        assert_eq!((usual.behaviour(), usual.describe("l2")), ((None, None), "l2".to_owned()));
    }

    #[test]
    fn routes_are_for_the_router_alone() {
        let mut plan = Plan::default();
        plan.dut.routes = Some(1000);
        let with =
            |dut: &str| Device::parse(&DeviceOptions { dut: Some(dut.to_owned()), ..DeviceOptions::default() }, &plan);
        assert!(matches!(with("l3"), Ok(Device::Plane { routes: [0, 1000], .. })));
        assert_eq!(with("l2").unwrap_err().exit, failure::Exit::Usage);
        assert_eq!(with("flowlog").unwrap_err().exit, failure::Exit::Usage);
    }
}
