//! What a plan needs of the testbed: in words for `--list`, and what of it a testbed has not, for the result.

use measure::{
    plan::{Direction, Needs, Plan},
    result::{RunResult, Warning, WarningKind},
};
use units::Load;

/// What a plan needs of the testbed, in words.
pub fn words(plan: &Plan) -> String {
    let function = plan.dut.function.as_deref().unwrap_or("l3");
    let ports = match plan.needs.ports {
        _ if plan.tests_addresses() => "three ports of a bridge".to_owned(),
        Some(n) if n != 2 => format!("two ports (its document has {n})"),
        _ => "two ports".to_owned(),
    };
    let mut needs = vec![match plan.traffic.direction {
        Direction::OneWay => ports,
        Direction::BothWays => format!("{ports}, loaded both ways"),
    }];
    needs.extend(plan.needs.words());
    let longest = plan.frame_sizes.iter().map(|frames| frames.largest().bytes()).max().unwrap_or(0);
    if longest > 1518 {
        needs.push(format!("links and a device that carry frames of {longest} bytes"));
    }
    let t = &plan.traffic;
    for (what, some) in [("VLAN tags", !t.vlan.is_empty()), ("MPLS labels", !t.mpls.is_empty())] {
        if some {
            needs.push(format!("a device that takes {what}"));
        }
    }
    match (plan.link.speed, plan.search.upper) {
        (Some(speed), _) => needs.push(format!("links of {speed}bit/s")),
        (None, Some(Load::LinePercent(_))) => needs.push("links whose speed is known (--link)".to_owned()),
        _ => {}
    }
    format!("{}; or no port, for the built-in {function}", needs.join(", "))
}

/// What of it this testbed is seen to lack, and what cannot be seen from here.
pub fn unmet(plan: &Plan, result: &RunResult) -> Vec<Warning> {
    let needs = &plan.needs;
    let device = &result.device;
    let mut unmet = Vec::new();
    if let (Some(topology), true, false) = (&needs.topology, needs.more_than_ports(), device.is_outside()) {
        unmet.push(format!(
            "this plan expects {topology} but ran against {}: the figures do not describe that topology",
            device.name()
        ));
    }
    if device.is_outside() {
        for port in &result.ports {
            if let (Some(has), Some(wants)) = (port.link_bps, plan.link.speed) {
                if has != wants {
                    let port = &port.name;
                    unmet.push(format!(
                        "port {port} has a link of {has}bit/s, and the plan is for {wants}bit/s (--link)"
                    ));
                }
            }
        }
        unmet.extend(ports(needs));
        let unseen = needs.words();
        if !unseen.is_empty() {
            unmet.push(format!("cannot be seen from the tester, so see to it: {}", unseen.join(", ")));
        }
    }
    if device.is_built_in() {
        unmet.extend(ports(needs));
        if !needs.cores.is_empty() && !needs.cores.contains(&1) {
            let cores: Vec<_> = needs.cores.iter().map(u32::to_string).collect();
            unmet.push(format!(
                "this plan expects {} forwarding cores, and {} has one",
                cores.join(", "),
                device.name()
            ));
        }
    }
    let warning = |text| Warning { kind: WarningKind::Needs, text };
    unmet.into_iter().map(warning).collect()
}

/// That there were more ports.
fn ports(needs: &Needs) -> Option<String> {
    let ports = needs.ports.filter(|&n| n > 2)?;
    Some(format!("the plan's document has {ports} ports: sums and percentages here are of two"))
}

#[cfg(test)]
mod tests {
    use measure::{result::Standing, schema::device::DeviceRecord, sim::SimSetup};

    use super::*;
    use crate::{
        cmd::bench::{bed::Bed, sim::SimRun},
        stop::Stop,
    };

    #[test]
    fn what_is_not_met_or_not_seen_is_said() {
        let toml = "needs = { topology = 'PHY-VM-PHY', ports = 4, vms = 1, cores = [2] }\nlink.speed = '25G'";
        let plan = Plan::from_toml(toml).unwrap().validate().unwrap();
        let run = SimRun::new(plan.clone(), SimSetup::new(1e6, 1), Stop::simulated(false));
        let mut result = run.result(Vec::new(), Vec::new(), Standing::Completed);
        let texts =
            |result: &RunResult| unmet(&plan, result).into_iter().map(|w| w.text).collect::<Vec<_>>().join("; ");
        let against = "this plan expects PHY-VM-PHY but ran against a simulated device";
        assert!(texts(&result).starts_with(against), "{}", texts(&result));
        let function = "l3".to_owned();
        result.device = DeviceRecord::Plane { function, impairment: None, tx_policy: None, routes: 0 };
        assert_eq!(
            texts(&result),
            "this plan expects PHY-VM-PHY but ran against the built-in l3: the figures do not describe that topology; the \
             plan's document has 4 ports: sums and percentages here are of two; this plan expects 2 forwarding cores, and \
             the built-in l3 has one"
        );
        result.device = DeviceRecord::Ports { names: vec!["eth:a".to_owned(), "eth:b".to_owned()] };
        result.ports[1].link_bps = "10G".parse().ok();
        assert_eq!(
            texts(&result),
            "port b has a link of 10Gbit/s, and the plan is for 25Gbit/s (--link); the plan's document has 4 ports: sums \
             and percentages here are of two; cannot be seen from the tester, so see to it: topology PHY-VM-PHY, 1 VM, 2 \
             cores of the device"
        );
        let usual = Plan::default().validate().unwrap();
        assert_eq!(unmet(&usual, &result), []);
    }

    #[test]
    fn needs_are_those_of_the_plan() {
        let plan = |toml: &str| words(&Plan::from_toml(toml).unwrap());
        assert_eq!(plan(""), "two ports; or no port, for the built-in l3");
        let all = "frame_sizes = [9018]\ntraffic.mpls = [16]\ntraffic.direction = 'both-ways'\nsearch.upper = '90%'\n\
                   dut.function = 'mpls'";
        assert_eq!(
            plan(all),
            "two ports, loaded both ways, links and a device that carry frames of 9018 bytes, a device that takes MPLS \
             labels, links whose speed is known (--link); or no port, for the built-in mpls"
        );
        let chain = "needs = { topology = 'PHY-VM-VM-PHY', ports = 4, vms = 2, cores = [2] }\nlink.speed = '25G'";
        assert_eq!(
            plan(chain),
            "two ports (its document has 4), topology PHY-VM-VM-PHY, 2 VMs, 2 cores of the device, links of 25Gbit/s; or \
             no port, for the built-in l3"
        );
    }
}
