//! The memory that the programs of a lab take, in MiB.

use crate::{
    options::LabOptions,
    topology::{Application, Guest, Topology},
};

/// The tester's own memory, with one page that it asks for besides. Without free hugepages for it the tester takes ordinary memory, and warns.
pub const TESTER_MIB: u64 = 258;

/// What dpdk-testpmd takes as a guest, and what Linerate and a logger take.
const TESTPMD_MIB: u64 = 128;
const LINERATE_MIB: u64 = 258;
const LOGGER_MIB: u64 = 144;

/// The least and the most memory of the switch. Its buffers are one pool for all ports, of 3008 bytes each: Open vSwitch asks for
/// 262,144 and halves that until the pool fits.
const SWITCH_MIB: u64 = 256;
const MOST_SWITCH_MIB: u64 = 1024;

/// Buffers of the pool that fits into the least memory.
const LEAST_BUFFERS: u64 = 65_536;

/// Descriptors of each ring of a NIC: the two-VM document, 5.1. They hold buffers; vhost-user ports hold none.
pub const NIC_RING: u64 = 2048;

/// Buffers that are on their way, and in the caches of the threads.
const MOVING: u64 = 16_384;

/// The memory of the switch. It is a limit as well: else the switch takes what is free for buffers, and the tester and the next
/// lab have none. In ordinary memory all that it asks for must fit: a smaller pool is not tried (Open vSwitch 3.1).
pub fn switch_mib(options: &LabOptions) -> u64 {
    if !options.hugepages {
        return MOST_SWITCH_MIB;
    }
    let threads = u64::from(options.pmds).max(options.pmd_cpus.len() as u64) + 1;
    let held = options.phy.len() as u64 * NIC_RING * (u64::from(options.queues) + threads);
    let mut mib = SWITCH_MIB;
    let mut buffers = LEAST_BUFFERS;
    while buffers < held + MOVING && mib < MOST_SWITCH_MIB {
        buffers *= 2;
        mib *= 2;
    }
    mib
}

/// The hugepages that the switch and the guests of a topology take.
pub fn needed_mib(topology: &Topology, options: &LabOptions) -> u64 {
    if !options.hugepages {
        return 0;
    }
    let switch = if topology.switch.is_empty() { 0 } else { switch_mib(options) };
    let guests = match options.guests.accelerator() {
        None => topology.guest.iter().map(process_mib).sum(),
        Some("kvm") => topology.guest.len() as u64 * u64::from(options.guest_mib),
        Some(_) => 0,
    };
    switch + guests
}

/// The ordinary memory that the switch and virtual machines take.
pub fn ordinary_mib(topology: &Topology, options: &LabOptions) -> u64 {
    let switch = if topology.switch.is_empty() || options.hugepages { 0 } else { switch_mib(options) };
    let nodes = [(options.guests, topology.guest.len()), (options.kernels, topology.kernel.len())];
    let in_machines = nodes.iter().filter(|(kind, _)| match kind.accelerator() {
        None => false,
        // KVM's guests are among the hugepages.
        Some(accelerator) => accelerator != "kvm" || !options.hugepages,
    });
    switch + in_machines.map(|(_, nodes)| *nodes as u64 * u64::from(options.guest_mib)).sum::<u64>()
}

fn process_mib(guest: &Guest) -> u64 {
    match guest.application {
        application if application.testpmd_mode().is_some() => TESTPMD_MIB,
        Application::Flowlog => LOGGER_MIB,
        _ => LINERATE_MIB,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::GuestKind;

    #[test]
    fn each_guest_has_its_memory_from_where_its_kind_takes_it() {
        let topology = |name: &str| crate::topology::load(name).unwrap();
        let needed = |name: &str, options: &LabOptions| needed_mib(&topology(name), options);
        let usual = LabOptions::default();
        let switch = switch_mib(&usual);
        assert_eq!(needed("phy-vm-vm-phy", &usual), switch + 2 * TESTPMD_MIB);
        let application = |application| LabOptions { application: Some(application), ..LabOptions::default() };
        let of = |own| {
            let options = application(own);
            needed_mib(&options.applied_to(topology("phy-vm-vm-phy")), &options) - switch
        };
        assert_eq!(of(Application::Flowlog), 2 * LOGGER_MIB);
        assert_eq!(of(Application::L2), 2 * LINERATE_MIB);
        // KVM's guests have hugepages behind them, emulated ones and those without hugepages ordinary memory.
        let kvm = LabOptions { guests: GuestKind::Kvm, guest_mib: 3000, ..LabOptions::default() };
        assert_eq!(needed("phy-vm-vm-phy", &kvm), switch + 6000);
        assert_eq!(needed("phy-vm-vm-phy", &LabOptions { guests: GuestKind::Tcg, ..kvm.clone() }), switch);
        let ordinary = LabOptions { hugepages: false, ..kvm.clone() };
        assert_eq!(needed("phy-vm-vm-phy", &ordinary), 0);
        // All that is not among the hugepages.
        let mib = |name: &str, options: &LabOptions| ordinary_mib(&topology(name), options);
        assert_eq!(mib("phy-vm-vm-phy", &ordinary), MOST_SWITCH_MIB + 6000);
        assert_eq!([mib("phy-vm-vm-phy", &kvm), mib("phy-vm-vm-phy", &usual)], [0, 0]);
        let emulated = LabOptions { guests: GuestKind::Tcg, kernels: GuestKind::Tcg, ..LabOptions::default() };
        assert_eq!([mib("phy-vm-vm-phy", &emulated), mib("kernel-bridge", &emulated)], [2048, 1024]);
        assert_eq!(mib("kernel-bridge", &usual), 0, "this machine's own kernel");
        assert_eq!(needed("phy-phy", &LabOptions { hugepages: false, ..usual.clone() }), 0);
        assert!(needed("phy-phy", &usual) > 0, "a process, no switch");
    }

    #[test]
    fn the_switch_has_buffers_for_the_rings_of_its_nics() {
        assert_eq!(switch_mib(&LabOptions::default()), 256);
        assert_eq!(
            switch_mib(&LabOptions { hugepages: false, ..LabOptions::default() }),
            1024,
            "no smaller pool is tried"
        );
        assert_eq!(switch_mib(&LabOptions { queues: 16, ..LabOptions::default() }), 256, "vhost-user holds none");
        let nics =
            |queues, pmds| LabOptions { phy: vec!["a".into(), "b".into()], queues, pmds, ..LabOptions::default() };
        assert_eq!(
            // 8 queues, 3 threads and 1: 24 rings of 2,048 and 16,384 are 65,536, just what fits.
            [nics(1, 1), nics(8, 3), nics(8, 4), nics(16, 16), nics(16, 64)].map(|o| switch_mib(&o)),
            [256, 256, 512, 1024, 1024]
        );
    }
}
