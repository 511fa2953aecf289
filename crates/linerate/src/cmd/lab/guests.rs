//! What guests are, where the user leaves it open.

use failure::Failure;
use guest::probe::{kvm, Kvm};
use host::{machine::Machine, PciDevice, Roots};
use lab::{
    cpus::{allowed_cpus, by_plan, by_usual_plan},
    needs::lacks_kernel,
    options::GuestKind,
    topology::Topology,
    LabOptions,
};

use crate::{
    cli::lab::{GuestsArg, KernelInArg, TopologyArgs},
    cmd::ports,
    out,
};
use rig::lab_plan::{filled, ForPlan, Given};

/// The variables of a topology; what guests and kernels are is decided here.
///
/// # Errors
///
/// (usage) for a value that is not legal; (machine) where virtual machines were asked for and cannot be.
pub fn options(args: &TopologyArgs, topology: &Topology, for_plan: Option<&ForPlan>) -> Result<LabOptions, Failure> {
    let options = with_nics(args.options()?)?;
    let options = with_plan(options, args, topology, for_plan, &allowed_cpus())?;
    let options = match &args.core_plan {
        Some(file) => by_plan(options, topology, &rig::host_plan::read_core_plan(file)?),
        None => usual(options, topology),
    };
    let guests = kind(args.guests, &options.applied_to(topology.clone()))?;
    Ok(LabOptions { guests, kernels: kernels(args.kernel_in, topology)?, ..options })
}

/// These variables with those of the plan that the lab is brought up for, where the user gave none.
///
/// # Errors
///
/// As [`filled`].
pub fn with_plan(
    options: LabOptions,
    args: &TopologyArgs,
    topology: &Topology,
    for_plan: Option<&ForPlan>,
    cpus: &[u32],
) -> Result<LabOptions, Failure> {
    let chosen = !args.pmd_cpus.is_empty() || args.core_plan.is_some();
    let given = Given { queues: args.queues.is_some(), pmds: chosen || args.pmds.is_some() };
    for_plan.map_or(Ok(options.clone()), |for_plan| filled(options, topology, for_plan, given, cpus))
}

/// The same of choices that were made elsewhere: the NICs are named as this machine has them.
///
/// # Errors
///
/// As [`options`].
pub fn decided(
    options: LabOptions,
    topology: &Topology,
    guests: GuestsArg,
    kernel_in: KernelInArg,
) -> Result<LabOptions, Failure> {
    let all = PciDevice::all(&Roots::default());
    let phy = options.phy.iter().map(|nic| ports::address(&all, nic)).collect::<Result<_, _>>()?;
    let guests = kind(guests, &options.applied_to(topology.clone()))?;
    let siblings = lab::cpus::siblings();
    let options = LabOptions { phy, guests, siblings, kernels: kernels(kernel_in, topology)?, ..options };
    Ok(usual(options, topology))
}

/// The same of a lab that is brought up for a plan, where the user chose nothing.
///
/// # Errors
///
/// As [`options`], and [`filled`].
pub fn chosen(topology: &Topology, for_plan: &ForPlan) -> Result<LabOptions, Failure> {
    let none = Given { queues: false, pmds: false };
    let options = filled(LabOptions::default(), topology, for_plan, none, &allowed_cpus())?;
    let guests = kind(GuestsArg::Auto, &options.applied_to(topology.clone()))?;
    let siblings = lab::cpus::siblings();
    let options = LabOptions { guests, siblings, kernels: kernels(KernelInArg::Auto, topology)?, ..options };
    Ok(usual(options, topology))
}

/// The CPUs of the usual plan, where the user chose none.
fn usual(options: LabOptions, topology: &Topology) -> LabOptions {
    by_usual_plan(options, topology, &Machine::read(&Roots::default()))
}

/// The NICs by their addresses, also where an interface was named.
fn with_nics(options: LabOptions) -> Result<LabOptions, Failure> {
    if options.phy.is_empty() {
        return Ok(options);
    }
    let all = PciDevice::all(&Roots::default());
    let phy = options.phy.iter().map(|nic| ports::address(&all, nic)).collect::<Result<_, _>>()?;
    let options = LabOptions { phy, ..with_testers_ports(options) };
    options.check()?;
    Ok(options)
}

/// The tester's ports by their addresses, where they are on the bus here: others are of another kind.
pub fn with_testers_ports(options: LabOptions) -> LabOptions {
    let all = PciDevice::all(&Roots::default());
    let port = |port: &String| ports::address(&all, port).unwrap_or_else(|_| port.clone());
    let tester_ports = options.tester_ports.iter().map(port).collect();
    LabOptions { tester_ports, ..options }
}

/// What the guests of a topology are.
///
/// # Errors
///
/// (machine) where KVM was asked for and does not run guests.
fn kind(asked: GuestsArg, topology: &Topology) -> Result<GuestKind, Failure> {
    let needs_machine = topology.guest.iter().any(|guest| guest.application.needs_a_machine() || guest.disk.is_some());
    match asked {
        GuestsArg::Auto if topology.guest.is_empty() || topology.guest_at_tester().is_some() => Ok(GuestKind::Process),
        // Refused when the lab is built; what they would be does not matter.
        GuestsArg::Vm | GuestsArg::Kvm if topology.guest.is_empty() => Ok(GuestKind::Tcg),
        GuestsArg::Process => Ok(GuestKind::Process),
        GuestsArg::Tcg => Ok(GuestKind::Tcg),
        GuestsArg::Kvm => match here() {
            Kvm::Runs => Ok(GuestKind::Kvm),
            Kvm::Not(why) => {
                Err(Failure::machine(format!("--guests kvm: {why}: --guests vm emulates where KVM does not run")))
            }
        },
        GuestsArg::Auto if !needs_machine && here() != Kvm::Runs => Ok(GuestKind::Process),
        GuestsArg::Auto | GuestsArg::Vm => Ok(machine()),
    }
}

/// Where the kernels of a topology are.
///
/// # Errors
///
/// (machine) where this machine's kernel was asked for and cannot do it.
fn kernels(asked: KernelInArg, topology: &Topology) -> Result<GuestKind, Failure> {
    match (asked, lacks_kernel(topology)) {
        // Refused when the lab is built.
        (KernelInArg::Vm, _) if topology.kernel.is_empty() => Ok(GuestKind::Tcg),
        (KernelInArg::Host, true) => Err(Failure::machine(
            "--kernel-in host: this machine's kernel has no module openvswitch: --kernel-in vm boots one that has it",
        )),
        (KernelInArg::Host | KernelInArg::Auto, false) => Ok(GuestKind::Process),
        (KernelInArg::Vm, _) | (KernelInArg::Auto, true) => Ok(machine()),
    }
}

/// Where the kernels of a topology would be, for the list of topologies.
pub fn kernels_here(topology: &Topology) -> LabOptions {
    let kernels = match lacks_kernel(topology) {
        true if here() == Kvm::Runs => GuestKind::Kvm,
        true => GuestKind::Tcg,
        false => GuestKind::Process,
    };
    LabOptions { kernels, ..LabOptions::default() }
}

/// Whether KVM runs guests here. It is tried once a boot.
fn here() -> Kvm {
    kvm(|| control::private_directory().ok())
}

/// A virtual machine, as fast as this machine has it.
fn machine() -> GuestKind {
    match here() {
        Kvm::Runs => GuestKind::Kvm,
        Kvm::Not(why) => {
            out::note(&format!("linerate: virtual machines are emulated, so their rates mean nothing: {why}"));
            GuestKind::Tcg
        }
    }
}
