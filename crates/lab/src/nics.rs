//! NICs that a lab takes from the kernel for as long as it is up. Namespaces do not undo a binding: a [`journal`] does.

use std::{io::ErrorKind, path::Path};

use failure::Failure;
use host::{
    journal::{self, Change, Journal, Undone},
    pci::{self, BindError, PciDevice, USER_SPACE},
    Roots,
};
use rustix::process::getuid;

/// The journal of a lab.
fn journal_of(lab: &str) -> String {
    format!("lab-{lab}")
}

/// Binds these NICs to a driver for user space, those that have none such yet. What was bound before a failure is given back. The
/// journal, if there was anything to bind: nobody gives it back while it is held, which is until the lab is known to be up.
///
/// # Errors
///
/// (usage) for a NIC that is not there or in use; (machine) for what the machine lacks, or what an earlier lab of this name
/// left.
pub fn take(roots: &Roots, dir: &Path, lab: &str, nics: &[String]) -> Result<Option<Journal>, Failure> {
    let mut wanted = Vec::new();
    for nic in nics {
        let device = PciDevice::read(roots, nic).ok_or_else(|| told(&BindError::NoDevice, nic, ""))?;
        if !device.is_free() {
            wanted.push(device);
        }
    }
    if wanted.is_empty() {
        return Ok(None);
    }
    let mut journal = Journal::begin(roots, dir, &journal_of(lab)).map_err(|e| match e.kind() {
        ErrorKind::AlreadyExists => Failure::machine(format!(
            "lab {lab}: an earlier lab of this name has not given its NICs back: linerate lab down --all"
        )),
        _ => Failure::machine(format!("{}: {e}: run it as root", dir.display())),
    })?;
    for device in wanted {
        let PciDevice { address, driver, iommu, .. } = device;
        let new = if iommu { "vfio-pci" } else { "uio_pci_generic" };
        let change = Change::Driver { address: address.clone(), old: driver, new: new.to_owned() };
        let written = journal.note(&change).map_err(|e| Failure::machine(format!("{}: {e}", journal.path().display())));
        let bound = written.and_then(|()| pci::bind(roots, &address, new, false).map_err(|e| told(&e, &address, new)));
        if let Err(failure) = bound {
            drop(journal);
            let _ = give_back(roots, dir, lab);
            return Err(failure);
        }
    }
    Ok(Some(journal))
}

/// Gives the NICs of a lab back to the drivers that had them. What was done, in a line each; none if the lab had no NIC.
///
/// # Errors
///
/// (failed) for a NIC that could not be given back: the journal stays, so that it can be tried again.
pub fn give_back(roots: &Roots, dir: &Path, lab: &str) -> Result<Vec<String>, Failure> {
    let path = journal::path_of(dir, &journal_of(lab));
    let undone = match journal::undo(roots, &path) {
        // A lab that is coming up, or is being mended.
        Err(e) if e.kind() == ErrorKind::WouldBlock => Undone::default(),
        // Root's: an ordinary user's lab has no NIC, as nobody else binds one.
        Err(e) if e.kind() == ErrorKind::PermissionDenied && !getuid().is_root() => Undone::default(),
        other => {
            other.map_err(|e| Failure::failed(format!("{}: {e}: what is in it was not undone", path.display())))?
        }
    };
    let Undone { back, left, failed, rebooted, kept, stays, .. } = undone;
    if let Some((change, why)) = failed.first() {
        return Err(Failure::failed(format!("{}: could not be given back: {why}; {}", name(change), path.display())));
    }
    let mut lines: Vec<String> = back.iter().map(|change| format!("{}: given back", name(change))).collect();
    lines.extend(left.iter().map(|(change, now)| format!("{}: left alone, {now} has it", name(change))));
    lines.extend(kept.map(|kept| format!("{}: some lines cannot be read", kept.display())));
    lines.extend(stays.map(|why| format!("{}: cannot be removed: {why}", path.display())));
    if rebooted {
        lines.push(format!("lab {lab}: the machine was booted since, so the kernel has its NICs"));
    }
    Ok(lines)
}

/// The labs that have taken NICs and not given them back.
pub fn owners(dir: &Path) -> Vec<String> {
    journal::names(dir).iter().filter_map(|name| name.strip_prefix("lab-")).map(str::to_owned).collect()
}

fn name(change: &Change) -> String {
    match change {
        Change::Driver { address, .. } => address.clone(),
        Change::File { path, .. } | Change::Made { path, .. } => path.display().to_string(),
        Change::Service { unit } => unit.clone(),
    }
}

/// What went wrong at a NIC, in one line, and what mends it.
pub fn told(error: &BindError, nic: &str, driver: &str) -> Failure {
    match error {
        BindError::NoDevice => Failure::usage(format!("{nic}: is not there: list them with linerate ports")),
        BindError::InUse(interface) => Failure::usage(format!(
            "{nic}: its interface {interface} is up: if nobody needs it, ip link set {interface} down, or add --force to \
             linerate ports --bind"
        )),
        BindError::NoDriver if USER_SPACE.contains(&driver) => {
            Failure::machine(format!("{nic}: the kernel has no driver {driver} loaded: modprobe {driver}"))
        }
        BindError::NoDriver => Failure::usage(format!(
            "{nic}: the kernel has no driver {driver} for PCI: drivers for user space are {}",
            USER_SPACE.join(", ")
        )),
        BindError::Refused(has) => {
            let has = has.as_deref().unwrap_or("no driver");
            let remedy = match driver {
                "vfio-pci" => "it needs an IOMMU (intel_iommu=on or amd_iommu=on in the boot line); without one: --bind uio_pci_generic",
                _ => "it does not know such a device, or the device has no interrupt line",
            };
            Failure::machine(format!("{nic}: {driver} does not take it, {has} has it: {remedy}"))
        }
        BindError::Io(path, kind) if *kind == ErrorKind::PermissionDenied => {
            Failure::machine(format!("{path}: {kind}: run it as root"))
        }
        BindError::Io(path, kind) => Failure::machine(format!("{nic}: {path}: {kind}")),
    }
}
