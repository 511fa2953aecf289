//! What can be made to fail in a lab, by name: for the tests of recovery and reset.

use super::{
    context::{Context, Part},
    guest, machine, ovs,
};
use crate::{line::CommandLine, step::Step, topology::End, vm::Definition};

/// The programs of a switch.
pub(super) const VSWITCHD: &str = "vswitchd";

/// Something that fails, and comes back or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Its name: `restart-switch`, `reboot:vm1`.
    pub name: String,
    /// What happens, in words.
    pub what: String,
    /// What is done, in order.
    pub acts: Vec<Act>,
}

/// One act of a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// This program is killed.
    Kill(String),
    /// This program is started again, as it was.
    Start(String),
    /// A step.
    Do(Box<Step>),
}

/// A guest is connected again: until then a check of the lab is wrong, and what is measured is the fault.
fn connected(context: &Context<'_>, guest: &str) -> Option<Act> {
    ovs::guest_connected(context, guest).map(|question| Act::Do(Box::new(Step::Await(question))))
}

/// Every fault of a lab.
pub(super) fn all(context: &Context<'_>, machines: &[Definition]) -> Vec<Fault> {
    let mut all = Vec::new();
    let mut add = |name: String, what: &str, acts: Vec<Act>| all.push(Fault { name, what: what.to_owned(), acts });
    let kill = |name: &str| Act::Kill(name.to_owned());
    let start = |name: &str| Act::Start(name.to_owned());
    if !context.topology.switch.is_empty() {
        add("kill-switch".to_owned(), "the switch is killed", vec![kill(VSWITCHD)]);
        let Part { steps, .. } = ovs::flows_again(context);
        let again = steps.into_iter().map(|step| Act::Do(Box::new(step)));
        let acts = [kill(VSWITCHD), start(VSWITCHD)].into_iter().chain(again).collect();
        add("restart-switch".to_owned(), "the switch is killed and started again, and gets its flows", acts);
    }
    if context.options.guests.accelerator().is_none() {
        for guest in &context.topology.guest {
            // A dead program leaves the sockets that it served.
            let sockets = [0, 1].map(|port| context.socket(&End::new(&guest.name, port)));
            let clear = Step::Run(CommandLine::words("rm -f").with(sockets));
            let mut acts = vec![kill(&guest.name), Act::Do(Box::new(clear)), start(&guest.name)];
            // The switch knows of the death by the time that the new program serves its socket.
            acts.extend(guest::served(context, guest).into_iter().map(|step| Act::Do(Box::new(step))));
            acts.extend(connected(context, &guest.name));
            add(format!("restart:{}", guest.name), "the guest is killed and started again", acts);
        }
    }
    for machine in machines {
        let guest = |command: &str, more: &[&str]| {
            let line = CommandLine(vec![context.linerate.to_owned()]).with(["lab", "guest", command]);
            line.with([machine.file("qmp")]).with(more.iter().copied())
        };
        let mut reboot = vec![Act::Do(Box::new(Step::Run(guest("reset", &[]))))];
        if machine.disk.is_none() {
            reboot.push(Act::Do(Box::new(Step::Await(machine::up(context, machine)))));
        }
        reboot.extend(connected(context, &machine.name));
        add(format!("reboot:{}", machine.name), "the machine is reset and boots again", reboot);
        for port in 0..machine.ports.len() {
            let port = port.to_string();
            for (word, what) in [("down", "the port loses its carrier"), ("up", "the port has its carrier again")] {
                let act = Act::Do(Box::new(Step::Run(guest("link", &[&port, word]))));
                add(format!("link-{word}:{}:{port}", machine.name), what, vec![act]);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{options::GuestKind, step::Want, topology, Build, LabOptions};

    /// The last act of a fault, if it waits for a guest's rings.
    fn waits_for(guests: GuestKind, fault: &str) -> Option<Vec<String>> {
        let options = LabOptions { guests, ..LabOptions::default() };
        let topology = topology::load("phy-vm-vm-phy").unwrap();
        let build = Build::new(topology, options, &[0, 1], "linerate", "/run/lab").unwrap();
        let fault = build.faults.into_iter().find(|one| one.name == fault).unwrap();
        match fault.acts.last() {
            Some(Act::Do(step)) => match step.as_ref() {
                Step::Await(crate::step::Question { want: Want::Rings { ports, .. }, .. }) => Some(ports.clone()),
                _ => None,
            },
            _ => None,
        }
    }

    #[test]
    fn a_guest_that_comes_back_is_waited_for() {
        let vm2 = Some(vec!["vm2p0".to_owned(), "vm2p1".to_owned()]);
        assert_eq!(waits_for(GuestKind::Process, "restart:vm2"), vm2);
        assert_eq!(waits_for(GuestKind::Tcg, "reboot:vm2"), vm2);
        assert_eq!(waits_for(GuestKind::Process, "kill-switch"), None);
    }

    #[test]
    fn a_guest_that_was_refused_connects_again() {
        let again = |guests: GuestKind, fault: &str| -> Vec<String> {
            let options = LabOptions { guests, ..LabOptions::default() };
            let topology = topology::load("phy-vm-phy").unwrap();
            let build = Build::new(topology, options, &[0, 1], "linerate", "/run/lab").unwrap();
            let fault = build.faults.into_iter().find(|one| one.name == fault).unwrap();
            match fault.acts.last() {
                Some(Act::Do(step)) => match step.as_ref() {
                    Step::Await(question) => question.again.iter().map(ToString::to_string).collect(),
                    other => panic!("{other:?}"),
                },
                other => panic!("{other:?}"),
            }
        };
        for fault in ["restart-switch", "restart:vm1"] {
            let lines = again(GuestKind::Process, fault);
            assert_eq!(lines.len(), 2, "{lines:?}");
            for port in ["vm1p0", "vm1p1"] {
                assert!(lines[0].contains(&format!("del-port br0 {port}")), "{lines:?}");
                assert!(lines[1].contains(&format!("add-port br0 {port} ")), "{lines:?}");
            }
            // The tester's ports stay, and each port has its number again: flows go by it.
            assert!(!lines.concat().contains("phy0") && lines[1].contains("ofport_request=3"), "{lines:?}");
        }
        // A machine's driver takes its time.
        assert!(again(GuestKind::Tcg, "restart-switch").is_empty());
    }
}
