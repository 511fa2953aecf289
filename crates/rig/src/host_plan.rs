//! Plans of the host's cores, read from files; and the findings that are open while a run measures.

use std::{collections::BTreeSet, fs, io::Read, path::Path};

use dpdk::PortSpec;
use failure::Failure;
use host::{
    audit::{Finding, Group, Mend, Verdict},
    core_plan::CorePlan,
    cpu_set::CpuSet,
    machine::Machine,
    rules,
    tuning::HostPlan,
    Roots,
};
use measure::result::{FindingLevel, HostFinding};

use crate::{cpus::CpuPlan, device::Device, facts, machine::MachineOptions, tester_port::parse_ports};

/// Longest plan of the host that is read.
const MAX_PLAN_BYTES: u64 = 1 << 20;

/// Findings that a refusal names.
const NAMED: usize = 3;

/// Reads a plan of the host that is for this machine.
///
/// # Errors
///
/// (usage) when it cannot be read, is not a plan, or does not fit the machine.
pub fn read_host_plan(file: &Path, machine: &Machine) -> Result<HostPlan, Failure> {
    let wrong = |why: String| Failure::usage(format!("{}: {why}", file.display()));
    let mut text = String::new();
    let read = fs::File::open(file).and_then(|file| file.take(MAX_PLAN_BYTES + 1).read_to_string(&mut text));
    read.map_err(|e| wrong(failure::unreadable(&e)))?;
    if text.len() as u64 > MAX_PLAN_BYTES {
        return Err(wrong("longer than 1 MiB, so not a plan of linerate host plan".to_owned()));
    }
    let plan = HostPlan::parse(&text).map_err(wrong)?;
    match plan.cores.misfit(machine) {
        Some(why) => Err(wrong(why)),
        None => Ok(plan),
    }
}

/// The cores of a plan of the host, for this machine.
///
/// # Errors
///
/// As [`read_host_plan`].
pub fn read_core_plan(file: &Path) -> Result<CorePlan, Failure> {
    Ok(read_host_plan(file, &Machine::read(&Roots::default()))?.cores)
}

/// CPUs of the data plane of a plan of the host.
///
/// # Errors
///
/// (usage) for a plan that cannot be read, that does not fit this machine, or that has no data plane.
pub fn read_data_plane(file: &Path) -> Result<Vec<u32>, Failure> {
    let plan = read_core_plan(file)?;
    match plan.data_plane.is_empty() {
        true => Err(Failure::usage(format!(
            "--core-plan {}: it has no cores for a data plane: linerate host plan --for flowlog, or --data-plane N",
            file.display()
        ))),
        false => Ok(plan.data_plane.into_iter().collect()),
    }
}

/// The plan of the cores of a run: the one that was given, or the cores that it polls on.
fn cores_of_run(options: &MachineOptions, cpus: CpuPlan, built_in: bool, machine: &Machine) -> CorePlan {
    match &options.core_plan {
        Some(plan) => plan.clone(),
        None => {
            let device: CpuSet = cpus.other.filter(|_| built_in).or(options.dut_cpu).into_iter().collect();
            CorePlan::of_run(machine, [cpus.tester].into(), device)
        }
    }
}

/// The NICs behind these ports, by address.
fn nics_behind(specs: &[PortSpec], machine: &Machine) -> BTreeSet<String> {
    let of_interface = |name: &str| {
        let nic = machine.nics.iter().find(|nic| nic.interfaces.iter().any(|i| i.name == name))?;
        Some(nic.address.clone())
    };
    let address = |spec: &PortSpec| match spec {
        PortSpec::Pci { address, .. } => Some(address.clone()),
        PortSpec::Eth { iface, .. } => of_interface(iface),
        _ => None,
    };
    specs.iter().filter_map(address).collect()
}

/// What is open on a machine for a run on these cores, through these NICs: the worst first.
fn open_findings(roots: &Roots, machine: &Machine, cores: &CorePlan, nics: &BTreeSet<String>) -> Vec<Finding> {
    let nics: Vec<String> = nics.iter().cloned().collect();
    let mut open = rules::audit(roots, machine, cores, &nics);
    // Without a NIC in the path, none spoils it.
    open.retain(|finding| finding.is_open() && !(nics.is_empty() && finding.group == Group::Nic));
    open.sort_by_key(|finding| (finding.verdict, finding.effect.is_none()));
    open
}

/// The cores of a run on this machine, and what is open for them: the worst first.
pub fn audit_of_run(
    options: &MachineOptions,
    cpus: CpuPlan,
    built_in: bool,
    specs: &[PortSpec],
) -> (CorePlan, Vec<Finding>) {
    let roots = Roots::default();
    let machine = Machine::read(&roots);
    let cores = cores_of_run(options, cpus, built_in, &machine);
    let open = open_findings(&roots, &machine, &cores, &nics_behind(specs, &machine));
    (cores, open)
}

/// What is open on this machine for a measurement from these CPUs, through these ports; on all that this process may use, if none
/// is named. The worst first.
pub fn open_for(cpus: CpuSet, specs: &[PortSpec]) -> Vec<Finding> {
    let roots = Roots::default();
    let machine = Machine::read(&roots);
    let cpus = if cpus.is_empty() { host::may_run_on().unwrap_or_default() } else { cpus };
    let cores = CorePlan::of_run(&machine, cpus, CpuSet::new());
    open_findings(&roots, &machine, &cores, &nics_behind(specs, &machine))
}

/// What can be changed at once for a run on this device: settings that a reboot or a person has to change are left out.
///
/// # Errors
///
/// (usage) for CPUs or ports that cannot be, and for a simulated device; (machine) for too few CPUs.
pub fn for_run(options: &MachineOptions, device: &Device) -> Result<HostPlan, Failure> {
    if matches!(device, Device::Simulated(_)) {
        return Err(Failure::usage("a simulated device runs in virtual time: no setting of this machine changes it"));
    }
    let outside = matches!(device, Device::Ports(_));
    let cpus = CpuPlan::choose(&facts::read().cpus_allowed, options.tester_cpu, options.dut_cpu, !outside)?;
    let specs = match device {
        Device::Ports(outside) => parse_ports(&outside.names, outside.names.len() > 2)?,
        _ => Vec::new(),
    };
    let (cores, open) = audit_of_run(options, cpus, !outside, &specs);
    let mut plan = HostPlan::new(cores, &open);
    plan.steps.retain(|step| matches!(step.change, Mend::Write { .. } | Mend::Stop { .. }));
    Ok(plan)
}

/// Findings as a result keeps them.
pub fn for_result(open: &[Finding]) -> Vec<HostFinding> {
    let one = |finding: &Finding| HostFinding {
        id: finding.id.clone(),
        level: if finding.verdict == Verdict::Bad { FindingLevel::Bad } else { FindingLevel::Warn },
        place: finding.place.clone(),
        got: finding.got.clone(),
        want: finding.want.clone(),
    };
    open.iter().map(one).collect()
}

/// Refuses a machine with bad findings.
///
/// # Errors
///
/// (machine) that names them.
pub fn require_none_bad(open: &[Finding]) -> Result<(), Failure> {
    let mut bad: Vec<&str> = open.iter().filter(|f| f.verdict == Verdict::Bad).map(|f| f.id.as_str()).collect();
    bad.dedup();
    if bad.is_empty() {
        return Ok(());
    }
    let more = bad.len().saturating_sub(NAMED);
    bad.truncate(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Err(Failure::machine(format!(
        "--require-audit: bad: {}{more}; what they cost and what mends them: linerate host audit",
        bad.join(", ")
    )))
}

#[cfg(test)]
mod tests {
    use host::audit::Out;

    use super::*;

    fn finding(id: &'static str, group: Group, verdict: Verdict, effect: Option<&'static str>) -> Finding {
        let mut out = Out::new(id, group, "why", effect);
        out.found(verdict, "here", "1", "0");
        out.into_findings().remove(0)
    }

    #[test]
    fn bad_ones_are_refused_by_name_and_others_pass() {
        let bad = |id| finding(id, Group::Cores, Verdict::Bad, None);
        let warn = finding("a.warn", Group::Cores, Verdict::Warn, None);
        require_none_bad(std::slice::from_ref(&warn)).unwrap();
        let refused = require_none_bad(&[bad("a.b"), bad("a.b"), bad("a.c"), bad("a.d"), bad("a.e"), warn]);
        let refused = refused.unwrap_err();
        assert_eq!(refused.exit, failure::Exit::Machine);
        insta::assert_snapshot!(refused.text, @"--require-audit: bad: a.b, a.c, a.d and 1 more; what they cost and what mends them: linerate host audit");
    }

    #[test]
    fn a_result_keeps_place_and_values() {
        let kept = for_result(&[finding("a.b", Group::Nic, Verdict::Bad, None)]);
        assert_eq!((kept[0].id.as_str(), kept[0].level, kept[0].place.as_str()), ("a.b", FindingLevel::Bad, "here"));
        assert_eq!((kept[0].got.as_str(), kept[0].want.as_str()), ("1", "0"));
        assert_eq!(for_result(&[finding("a", Group::Nic, Verdict::Warn, None)])[0].level, FindingLevel::Warn);
    }

    #[test]
    fn this_machine_s_findings_stand_worst_first_and_without_nics_nobody_uses() {
        let (roots, options) = (Roots::default(), MachineOptions::default());
        let machine = Machine::read(&roots);
        let allowed: Vec<u32> = machine.allowed.iter().copied().collect();
        let cpus = CpuPlan::choose(&allowed, None, None, false).unwrap();
        let cores = cores_of_run(&options, cpus, false, &machine);
        assert_eq!(cores.misfit(&machine), None);
        assert_eq!(cores.tester, [cpus.tester].into());
        let open = open_findings(&roots, &machine, &cores, &BTreeSet::new());
        assert!(open.iter().all(|finding| finding.is_open() && finding.group != Group::Nic));
        assert!(open.is_sorted_by_key(|finding| (finding.verdict, finding.effect.is_none())));
        let given = CorePlan { node: 7, ..CorePlan::default() };
        let options = MachineOptions { core_plan: Some(given.clone()), ..options };
        assert_eq!(cores_of_run(&options, cpus, true, &machine), given);
    }
}
