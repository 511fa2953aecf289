//! What a user chooses about a topology.

use std::{collections::BTreeMap, ops::RangeInclusive};

use failure::Failure;
use serde::{Deserialize, Serialize};

use crate::topology::{Application, Topology};

/// Receive queues of a port: what virtio and OVS are run with.
pub const QUEUES: RangeInclusive<u32> = 1..=16;
/// The rings that virtio has: powers of two.
pub const RINGS: RangeInclusive<u32> = 64..=1024;
/// Memory of a virtual machine, MiB: its image and its hugepages must fit.
pub const GUEST_MIB: RangeInclusive<u32> = 768..=65_536;
/// Most virtual CPUs of a machine.
const MOST_VCPUS: u32 = 64;
/// Highest number of a CPU.
const MAX_CPU: u32 = 1023;
/// Poll-mode threads of a switch.
pub const PMDS: RangeInclusive<u32> = 1..=64;

/// Variables of a topology.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LabOptions {
    /// Receive queues of each port.
    pub queues: u32,
    /// Poll-mode threads of a switch.
    pub pmds: u32,
    /// Their CPUs; none: chosen.
    pub pmd_cpus: Vec<u32>,
    /// The tester's CPU; `None`: chosen.
    pub tester_cpu: Option<u32>,
    /// Polling CPUs of each guest, in the topology's order; those that are left out get free ones.
    #[serde(default)]
    pub guest_cpus: Vec<Vec<u32>>,
    /// Virtual CPUs of each virtual machine; `None` for one and one for each queue of a port.
    #[serde(default)]
    pub vcpus: Option<u32>,
    /// CPU of everything that does not poll; `None` for the first that is not the tester's.
    #[serde(default)]
    pub control_cpu: Option<u32>,
    /// What every guest runs, in place of what the topology says.
    pub application: Option<Application>,
    /// Whether the switch has its exact-match cache.
    pub emc: bool,
    /// Whether the switch has its signature-match cache.
    pub smc: bool,
    /// Descriptors of each virtio ring.
    pub ring: u32,
    /// Whether memory comes from hugepages, else from ordinary pages.
    pub hugepages: bool,
    /// What guests are.
    pub guests: GuestKind,
    /// Where kernels between two ports are: on this machine, or in a virtual machine of their own.
    pub kernels: GuestKind,
    /// MiB of memory of each virtual machine.
    pub guest_mib: u32,
    /// NICs of the device under test behind the tester's ports 0 and 1, by PCI address; none: the lab makes these ports.
    pub phy: Vec<String>,
    /// The tester's own ports, cabled to these NICs, as `--port` takes them.
    pub tester_ports: Vec<String>,
    /// The tester is on another host: it takes no CPU here, and its ports are not here.
    pub tester_elsewhere: bool,
    /// Bootable disks of guests, by the guest's name.
    pub disks: BTreeMap<String, String>,
    /// Poll-mode threads in pairs on the hardware threads of a core.
    pub smt: bool,
    /// Hardware threads that share a core with a CPU, of this machine; none: every CPU is a core.
    pub siblings: BTreeMap<u32, Vec<u32>>,
}

/// What guests are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuestKind {
    /// Processes at the guest's end of vhost-user.
    #[default]
    Process,
    /// Virtual machines that the CPU runs itself.
    Kvm,
    /// Virtual machines that QEMU emulates: their rates mean nothing and are compared with nothing.
    Tcg,
}

impl GuestKind {
    /// The accelerator of QEMU; `None` if guests are processes.
    pub fn accelerator(self) -> Option<&'static str> {
        match self {
            Self::Process => None,
            Self::Kvm => Some("kvm"),
            Self::Tcg => Some("tcg"),
        }
    }
}

impl Default for LabOptions {
    fn default() -> Self {
        Self {
            queues: 1,
            pmds: 1,
            pmd_cpus: Vec::new(),
            tester_cpu: None,
            guest_cpus: Vec::new(),
            vcpus: None,
            control_cpu: None,
            application: None,
            emc: true,
            smc: false,
            ring: 1024,
            hugepages: true,
            guests: GuestKind::Process,
            kernels: GuestKind::Process,
            guest_mib: 1024,
            phy: Vec::new(),
            tester_ports: Vec::new(),
            tester_elsewhere: false,
            disks: BTreeMap::new(),
            smt: false,
            siblings: BTreeMap::new(),
        }
    }
}

impl LabOptions {
    /// Checks the values.
    ///
    /// # Errors
    ///
    /// (usage) the first wrong one, with what is legal.
    pub fn check(&self) -> Result<(), Failure> {
        let usage = |text: String| Err(Failure::usage(text));
        if !QUEUES.contains(&self.queues) {
            return usage(format!("--queues {}: must be 1 to {}", self.queues, QUEUES.end()));
        }
        if !PMDS.contains(&self.pmds) {
            return usage(format!("--pmds {}: must be 1 to {}", self.pmds, PMDS.end()));
        }
        if !RINGS.contains(&self.ring) || !self.ring.is_power_of_two() {
            let (least, most) = (RINGS.start(), RINGS.end());
            return usage(format!("--ring {}: must be a power of two from {least} to {most}", self.ring));
        }
        if !GUEST_MIB.contains(&self.guest_mib) {
            let (least, most) = (GUEST_MIB.start(), GUEST_MIB.end());
            return usage(format!("--guest-memory {}: must be {least} to {most} MiB", self.guest_mib));
        }
        if let Some(cpu) = self.pmd_cpus.iter().chain(&self.tester_cpu).find(|&&cpu| cpu > MAX_CPU) {
            return usage(format!("--pmd-cpus, --tester-cpu {cpu}: must be 0 to {MAX_CPU}"));
        }
        if let Some(vcpus) = self.vcpus.filter(|vcpus| !(self.queues + 1..=MOST_VCPUS).contains(vcpus)) {
            let least = self.queues + 1;
            return usage(format!(
                "--vcpus {vcpus}: must be {least} to {MOST_VCPUS}: one for each of the {} queues of a port, and one more",
                self.queues
            ));
        }
        if !self.hugepages && !self.phy.is_empty() {
            return usage("--no-huge: NICs (--phy) take hugepages: leave one of both out".to_owned());
        }
        // They go into scripts, where `$` stands for something.
        let texts = self.disks.values().map(|text| ("--disk", text));
        let texts = texts.chain(self.phy.iter().map(|text| ("--phy", text)));
        let mut texts = texts.chain(self.tester_ports.iter().map(|text| ("--tester-ports", text)));
        if let Some((flag, text)) = texts.find(|(_, text)| text.contains(|c: char| c.is_control() || c == '$')) {
            return usage(format!("{flag} {text:?}: must be without `$` and control characters"));
        }
        match (self.phy.as_slice(), self.tester_ports.as_slice()) {
            ([], []) => Ok(()),
            ([a, b], [c, d]) if [a, b, c, d].iter().all(|one| [a, b, c, d].iter().filter(|all| *all == one).count() == 1) => Ok(()),
            (nics, testers) => usage(format!(
                "--phy {} --tester-ports {}: must be two ports each, all different: the NICs of the device, and the tester's \
                 own that are cabled to them",
                nics.join(","),
                testers.join(",")
            )),
        }
    }

    /// The topology with these choices in it.
    pub fn applied_to(&self, mut topology: Topology) -> Topology {
        if let Some(application) = self.application {
            topology.guest.iter_mut().for_each(|guest| guest.application = application);
        }
        for guest in &mut topology.guest {
            guest.disk = self.disks.get(&guest.name).cloned().or(guest.disk.take());
        }
        topology
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_bounded() {
        LabOptions::default().check().unwrap();
        let wrong = [
            LabOptions { queues: 0, ..LabOptions::default() },
            LabOptions { queues: 17, ..LabOptions::default() },
            LabOptions { pmds: 0, ..LabOptions::default() },
            LabOptions { pmds: 65, ..LabOptions::default() },
            LabOptions { ring: 63, ..LabOptions::default() },
            LabOptions { ring: 100, ..LabOptions::default() },
            LabOptions { ring: 2048, ..LabOptions::default() },
            LabOptions { guest_mib: 767, ..LabOptions::default() },
            LabOptions { pmd_cpus: vec![3, 1024], ..LabOptions::default() },
            LabOptions { phy: vec!["a".into(), "b".into()], ..LabOptions::default() },
            LabOptions { disks: [("vm1".into(), "/x/$d".into())].into(), ..LabOptions::default() },
            LabOptions {
                phy: vec!["a".into(), "b".into()],
                tester_ports: vec!["c".into(), "d".into()],
                hugepages: false,
                ..LabOptions::default()
            },
            LabOptions {
                phy: vec!["a".into(), "b".into()],
                tester_ports: vec!["c".into(), "b".into()],
                ..LabOptions::default()
            },
        ];
        let lines: Vec<String> = wrong.iter().map(|options| options.check().unwrap_err().text).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }
}
