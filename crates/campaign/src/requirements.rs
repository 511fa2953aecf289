//! What a plan needs of the testbed: in words for `--list`, and the unmet requirements for the result.

use flow::decode::VXLAN_PORT;
use measure::{
    plan::{Direction, Needs, Plan},
    result::{PortFacts, Warning, WarningKind},
    schema::lab::LabRecord,
};
use rig::{device::InLab, Device};
use units::Load;

/// What a plan needs of the testbed, in words.
pub fn describe(plan: &Plan) -> String {
    let function = Device::built_in_of(plan);
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

/// What of it this testbed lacks, and what cannot be seen from the tester.
pub fn unmet(plan: &Plan, device: &Device, tester: &[PortFacts], lab: Option<&LabRecord>) -> Vec<Warning> {
    let needs = &plan.needs;
    let mut unmet = Vec::new();
    let stands_in = |name: String| {
        let topology = needs.topology.as_ref().filter(|_| needs.more_than_ports())?;
        Some(format!(
            "this plan expects {topology} but ran against the {name}: the figures do not describe that topology"
        ))
    };
    match device {
        Device::Ports(_) => {
            for port in tester {
                if let (Some(has), Some(wants)) = (port.link_bps, plan.link.speed) {
                    if has != wants {
                        let port = &port.name;
                        unmet.push(format!(
                            "port {port} has a link of {has}bit/s, and the plan is for {wants}bit/s (--link)"
                        ));
                    }
                }
            }
            unmet.extend(more_ports(needs));
            let unseen = needs.words();
            if let Some(lab) = lab {
                unmet.extend(in_lab(needs, lab));
            } else if !unseen.is_empty() {
                unmet.push(format!("the tester cannot see these requirements, so check them: {}", unseen.join(", ")));
            }
        }
        Device::Plane { .. } | Device::FlowLog(_) => {
            unmet.extend(stands_in(device.name()));
            unmet.extend(more_ports(needs));
            if !needs.cores.is_empty() && !needs.cores.contains(&1) {
                let cores: Vec<_> = needs.cores.iter().map(u32::to_string).collect();
                let (cores, name) = (cores.join(", "), device.name());
                unmet.push(format!("the plan is for {cores} forwarding cores, and the {name} has one"));
            }
        }
        Device::Simulated(_) => unmet.extend(stands_in(device.name())),
    }
    let warning = |text| Warning { kind: WarningKind::Needs, text };
    unmet.into_iter().map(warning).collect()
}

/// What the lab has that is behind the tester's ports, and what the plan needs.
fn in_lab(needs: &Needs, lab: &LabRecord) -> Vec<String> {
    let mut unmet = Vec::new();
    if needs.is_empty() {
        return unmet;
    }
    let needed = needs.topology.as_ref().filter(|needed| !InLab::is_needed(lab, needed));
    unmet.extend(needed.map(|needed| {
        format!("this plan expects {needed} but ran in lab {}: the figures do not describe that topology", lab.topology)
    }));
    let has = u32::try_from(lab.pmd_cpus.len()).unwrap_or(u32::MAX);
    let threads = needs.switch_threads();
    if has > 0 && !threads.is_empty() && !threads.contains(&has) {
        let cores: Vec<_> = threads.iter().map(u32::to_string).collect();
        unmet.push(format!(
            "the plan is for {} polling threads of the switch, and the lab has {has} (--pmds)",
            cores.join(", ")
        ));
    }
    if let Some(queues) = needs.queues.filter(|queues| *queues != lab.queues) {
        unmet.push(format!(
            "the plan is for {queues} receive queues of each port, and the lab has {} (--queues)",
            lab.queues
        ));
    }
    if !lab.shared_cpus.is_empty() {
        let shared: Vec<_> = lab.shared_cpus.iter().map(u32::to_string).collect();
        unmet.push(format!("polling threads of the lab take turns on CPU {}: it has too few CPUs", shared.join(", ")));
    }
    unmet
}

/// A plan whose document has more than two ports.
/// That the switch drops what this plan sends: it takes frames out of their tunnels, and these have none.
pub(crate) fn without_tunnel(plan: &Plan, lab: &LabRecord) -> Option<Warning> {
    let networks: Vec<_> = lab.vxlan_networks.iter().map(u32::to_string).collect();
    if networks.is_empty() || plan.traffic.dst_port == VXLAN_PORT {
        return None;
    }
    let text = format!(
        "lab {} takes VXLAN frames only (network {}), and these frames have no tunnel: they are lost there \
         (linerate bench --plan onp-vxlan sends frames with one)",
        lab.topology,
        networks.join(", ")
    );
    Some(Warning { kind: WarningKind::Needs, text })
}

fn more_ports(needs: &Needs) -> Option<String> {
    let ports = needs.ports.filter(|&n| n > 2)?;
    Some(format!("the plan's document has {ports} ports: sums and percentages here are of two"))
}

#[cfg(test)]
mod tests {
    use rig::device::DeviceOptions;

    use super::*;

    #[test]
    fn what_is_not_met_or_not_seen_is_said() {
        let toml = "needs = { topology = 'PHY-VM-PHY', ports = 4, vms = 1, cores = [2] }\nlink.speed = '25G'";
        let plan = Plan::from_toml(toml).unwrap();
        let port = |link: Option<&str>| PortFacts {
            name: "b".into(),
            link_bps: link.and_then(|l| l.parse().ok()),
            ..PortFacts::default()
        };
        let texts = |options: DeviceOptions, plan: &Plan, link: Option<&str>| -> Vec<String> {
            let device = Device::parse(&options, plan).unwrap();
            unmet(plan, &device, &[port(link)], None).into_iter().map(|w| w.text).collect()
        };
        let dut = |name: &str| DeviceOptions { dut: Some(name.to_owned()), ..DeviceOptions::default() };
        let outside = DeviceOptions { ports: vec!["null".into(); 2], ..DeviceOptions::default() };
        insta::assert_debug_snapshot!(
            [
                texts(dut("sim"), &plan, None),
                texts(dut("l3"), &plan, None),
                texts(outside.clone(), &plan, Some("10G")),
            ],
            @r#"
            [
                [
                    "this plan expects PHY-VM-PHY but ran against the simulated device: the figures do not describe that topology",
                ],
                [
                    "this plan expects PHY-VM-PHY but ran against the built-in l3: the figures do not describe that topology",
                    "the plan's document has 4 ports: sums and percentages here are of two",
                    "the plan is for 2 forwarding cores, and the built-in l3 has one",
                ],
                [
                    "port b has a link of 10Gbit/s, and the plan is for 25Gbit/s (--link)",
                    "the plan's document has 4 ports: sums and percentages here are of two",
                    "the tester cannot see these requirements, so check them: topology PHY-VM-PHY, 1 VM, 2 cores of the device",
                ],
            ]
            "#
        );
        for options in [dut("sim"), dut("l3"), outside] {
            assert!(texts(options, &Plan::default(), None).is_empty(), "the usual plan needs nothing");
        }
        let two_ports = Plan::from_toml("needs = { ports = 2 }").unwrap();
        assert!(texts(dut("l3"), &two_ports, None).is_empty());
    }

    #[test]
    fn a_lab_is_compared_with_what_the_plan_needs() {
        let plan = Plan::from_toml("needs = { topology = 'PHY-VM-PHY', vms = 1, cores = [1, 2] }").unwrap();
        let options = DeviceOptions { ports: vec!["null".into(); 2], ..DeviceOptions::default() };
        let device = Device::parse(&options, &plan).unwrap();
        let lab = |topology: &str, pmds: u32, shared: &[u32]| LabRecord {
            topology: topology.to_owned(),
            pmd_cpus: (0..pmds).collect(),
            shared_cpus: shared.to_vec(),
            ..LabRecord::default()
        };
        let unmet = |lab: LabRecord| unmet(&plan, &device, &[], Some(&lab)).len();
        assert_eq!(unmet(lab("phy-vm-phy", 2, &[])), 0);
        assert_eq!(unmet(lab("phy-ovs-phy", 1, &[])), 1);
        assert_eq!(unmet(lab("phy-vm-phy", 3, &[])), 1);
        assert_eq!(unmet(lab("vxlan", 3, &[0])), 3);
        let two = Plan::from_toml("needs = { topology = 'PHY-VM-PHY', queues = 2 }").unwrap();
        for (queues, expected) in [(1, 1), (2, 0)] {
            let lab = LabRecord { queues, ..lab("phy-vm-phy", 2, &[]) };
            assert_eq!(super::unmet(&two, &device, &[], Some(&lab)).len(), expected, "{queues}");
        }
        let any = Plan::default();
        let device = Device::parse(&options, &any).unwrap();
        assert!(super::unmet(&any, &device, &[], Some(&lab("vxlan", 3, &[0]))).is_empty(), "it needs nothing");
    }

    #[test]
    fn frames_without_a_tunnel_are_told_where_a_switch_takes_no_others() {
        let lab = |vxlan_networks| LabRecord { topology: "mine".to_owned(), vxlan_networks, ..LabRecord::default() };
        for (toml, networks, told) in
            [("", vec![1000], true), ("traffic.dst_port = 4789", vec![1000], false), ("", vec![], false)]
        {
            let plan = Plan::from_toml(toml).unwrap();
            assert_eq!(without_tunnel(&plan, &lab(networks)).is_some(), told, "{toml}");
        }
    }

    #[test]
    fn needs_are_those_of_the_plan() {
        let plan = |toml: &str| describe(&Plan::from_toml(toml).unwrap());
        assert_eq!(plan(""), "two ports; or no port, for the built-in l3");
        assert_eq!(plan("needs = { ports = 2 }"), plan(""));
        insta::assert_snapshot!(plan("tests = ['address-caching']"), @"three ports of a bridge; or no port, for the built-in l3");
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
