//! Making the changes of a plan, and taking them back.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use super::{
    host_plan::{HostPlan, Step},
    persist,
};
use crate::{
    audit::Mend,
    interrupt_table,
    journal::{self, chosen, Change, Journal, Undone},
    Fact, Roots,
};

/// The journal of what lasts until the next boot.
pub const NAME: &str = "host";
/// The journal of files that outlive it.
pub const PERSISTENT: &str = "host-persistent";

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Applied {
    /// Changes made, as commands.
    pub made: Vec<String>,
    /// Changes that were there already.
    pub already: Vec<String>,
    /// Changes that the kernel refused or took in part, and what it said. Interrupts that a driver manages refuse.
    pub refused: Vec<(String, String)>,
    /// Files that were made.
    pub files: Vec<PathBuf>,
    /// Changes made that the files do not keep: interrupts have other numbers after a boot.
    pub until_boot: Vec<String>,
    /// What is left to a person: the boot line's words if they were not made a file, commands, the firmware.
    pub left: Vec<String>,
}

/// Why nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApplyError {
    /// Changes of an earlier plan have not been taken back.
    Earlier(PathBuf),
    /// The journal cannot be written, or somebody else writes or reads it just now: nothing may be changed.
    Journal(PathBuf, String),
    /// A change failed. Those before it were taken back, or were not if this says why.
    Failed {
        /// The change.
        change: String,
        /// What the system said.
        why: String,
        /// What could not be taken back.
        kept: Vec<String>,
    },
    /// The plan cannot be kept as a file.
    Plan(String),
}

/// What was taken back.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reverted {
    /// Changes taken back.
    pub back: Vec<String>,
    /// Left alone, and what is there now: somebody else changed it since.
    pub left: Vec<(String, String)>,
    /// Could not be taken back, and why.
    pub failed: Vec<(String, String)>,
    /// Files that were removed.
    pub files: Vec<PathBuf>,
    /// The machine was booted since: what lasts until then is gone by itself.
    pub rebooted: bool,
    /// There was nothing to take back.
    pub nothing: bool,
    /// Journals with lines that cannot be read, where they are kept, and the lines: what these changed is not known.
    pub damaged: Vec<(PathBuf, Vec<usize>)>,
    /// The last line of a journal has no end. A crash leaves it so before the change is made.
    pub cut: bool,
    /// Changes in a network namespace that is gone: they went with it.
    pub gone: Vec<String>,
    /// Journals that could not be removed, and why. Everything in them that could be taken back was.
    pub stays: Vec<(PathBuf, String)>,
}

/// What is applied now: of the changes that were made, those in force. A setting that has its old value again is not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// Until the next boot, as commands.
    pub runtime: Vec<String>,
    /// Files, which are beyond it.
    pub files: Vec<PathBuf>,
    /// A program applies them or takes them back now, or will when it ends.
    pub held: bool,
    /// Journals with lines that cannot be read, and the lines: what these changed is not known.
    pub damaged: Vec<(PathBuf, Vec<usize>)>,
    /// Journals of before with such lines.
    pub kept: Vec<PathBuf>,
}

impl Status {
    /// Whether nothing of ours is applied, as far as is known.
    pub fn is_nothing(&self) -> bool {
        self.runtime.is_empty() && self.files.is_empty() && self.damaged.is_empty()
    }
}

/// Makes the changes of a plan. `persist` is the path of this program if they are to outlive a boot. `may_go_on` is asked
/// before each change: where it says no, those before are taken back.
///
/// # Errors
///
/// Nothing is changed then, but for what [`ApplyError::Failed`] names.
pub fn apply(
    roots: &Roots,
    dir: &Path,
    plan: &HostPlan,
    persist: Option<&str>,
    mut may_go_on: impl FnMut() -> bool,
) -> Result<Applied, ApplyError> {
    // Elsewhere nothing reads a drop-in.
    let drop_ins = roots.of_machine("/usr/sbin/update-grub").exists();
    let files = persist.map(|program| persist::files(plan, program, drop_ins)).transpose().map_err(ApplyError::Plan)?;
    let mut journal = begin(roots, dir, NAME)?;
    let mut applied = Applied::default();
    for step in &plan.steps {
        if let Some(why) = another_interrupt(roots, step) {
            applied.refused.push((step.change.text(), why));
            continue;
        }
        let done = match may_go_on() {
            true => one(roots, &mut journal, &step.change, files.is_some() && drop_ins, &mut applied),
            false => Err("stopped".to_owned()),
        };
        if let Err(why) = done {
            return Err(take_back(roots, dir, journal, &step.change.text(), why));
        }
    }
    if let Some(files) = files {
        let made = make_files(roots, dir, &files);
        match made {
            Ok(paths) => {
                applied.files = paths;
                let of_an_interrupt = plan.steps.iter().filter(|step| persist::is_of_an_interrupt(&step.change));
                let texts = of_an_interrupt.map(|step| step.change.text());
                applied.until_boot = texts.filter(|text| applied.made.contains(text)).collect();
            }
            Err(error) => {
                let ApplyError::Failed { change, why, .. } = error else {
                    return Err(drop_and(roots, dir, journal, error));
                };
                let _ = journal::undo(roots, &journal::path_of(dir, PERSISTENT));
                return Err(take_back(roots, dir, journal, &change, why));
            }
        }
    }
    if applied.made.is_empty() && applied.files.is_empty() {
        // Nothing is applied, so nothing has to be taken back before the next plan.
        drop(journal);
        let _ = journal::undo(roots, &journal::path_of(dir, NAME));
    }
    Ok(applied)
}

fn begin(roots: &Roots, dir: &Path, name: &str) -> Result<Journal, ApplyError> {
    let path = journal::path_of(dir, name);
    Journal::begin(roots, dir, name).map_err(|e| match e.kind() {
        io::ErrorKind::AlreadyExists => ApplyError::Earlier(path),
        io::ErrorKind::PermissionDenied => ApplyError::Journal(path, format!("{e}: run it as root")),
        _ => ApplyError::Journal(path, e.to_string()),
    })
}

fn drop_and(roots: &Roots, dir: &Path, journal: Journal, error: ApplyError) -> ApplyError {
    drop(journal);
    let _ = journal::undo(roots, &journal::path_of(dir, NAME));
    error
}

/// Ends an application that failed: everything back.
fn take_back(roots: &Roots, dir: &Path, journal: Journal, change: &str, why: String) -> ApplyError {
    drop(journal);
    let kept = match journal::undo(roots, &journal::path_of(dir, NAME)) {
        Ok(undone) => {
            let failed = undone.failed.iter().map(|(change, why)| format!("{}: {why}", text(change)));
            failed.chain(undone.stays).collect()
        }
        Err(e) => vec![e.to_string()],
    };
    ApplyError::Failed { change: change.to_owned(), why, kept }
}

/// Makes one change. What a kernel refuses for good reason is told and does not end the rest.
fn one(
    roots: &Roots,
    journal: &mut Journal,
    change: &Mend,
    boot_is_kept: bool,
    applied: &mut Applied,
) -> Result<(), String> {
    match change {
        Mend::Write { path, value } => write(roots, journal, path, value, change, applied),
        Mend::Stop { service } => {
            if roots.command("systemctl", &["is-active", service]).known().is_none() {
                match runs(roots, service) {
                    true => applied.refused.push((change.text(), "no unit of systemd runs it: stop it by hand".into())),
                    false => applied.already.push(change.text()),
                }
                return Ok(());
            }
            journal.note(&Change::Service { unit: service.clone() }).map_err(|e| e.to_string())?;
            match roots.command("systemctl", &["stop", service]) {
                Fact::Known(_) => {
                    applied.made.push(change.text());
                    Ok(())
                }
                _ => Err("it does not stop".to_owned()),
            }
        }
        Mend::Boot { .. } if boot_is_kept => Ok(()),
        Mend::Boot { word } if roots.of_machine("/usr/sbin/grubby").exists() => {
            applied.left.push(format!("grubby --update-kernel=ALL --args=\"{word}\""));
            Ok(())
        }
        Mend::Boot { .. } | Mend::Command { .. } | Mend::Hand { .. } => {
            applied.left.push(change.text());
            Ok(())
        }
    }
}

fn write(
    roots: &Roots,
    journal: &mut Journal,
    path: &Path,
    value: &str,
    change: &Mend,
    applied: &mut Applied,
) -> Result<(), String> {
    let old = match roots.fact(path) {
        Fact::Known(old) => chosen(&old).to_owned(),
        // The plan was made when it was there, or on another machine.
        Fact::Absent => {
            applied.refused.push((change.text(), "this machine does not have it".to_owned()));
            return Ok(());
        }
        Fact::Unreadable(_) if is_write_only(roots, path) => return Err("cannot be read, so not taken back".to_owned()),
        Fact::Unreadable(why) => return Err(why),
    };
    if old == value {
        applied.already.push(change.text());
        return Ok(());
    }
    let noted = Change::File {
        path: path.to_owned(),
        old: old.clone(),
        new: value.to_owned(),
        first: carrier(roots, path, &old),
    };
    if !journal::is_sound(&noted) {
        return Err("a plan may not write it".to_owned());
    }
    journal.note(&noted).map_err(|e| e.to_string())?;
    let written = roots.write(path, value);
    let now = roots.fact(path).known().map(|now| chosen(&now).to_owned());
    if let Some(now) = &now {
        journal.became(now).map_err(|e| e.to_string())?;
    }
    match written {
        Ok(()) if now.as_ref() == Some(&old) && value != old => {
            applied.refused.push((change.text(), format!("it is still {old}")));
            Ok(())
        }
        // Made in part, as with hugepages of a memory that is in pieces.
        Ok(()) if now.as_ref().is_some_and(|now| differs(now, value)) => {
            applied.refused.push((change.text(), format!("it became {}", now.unwrap_or_default())));
            Ok(())
        }
        Ok(()) => {
            applied.made.push(change.text());
            Ok(())
        }
        // EIO, EINVAL, EBUSY, ERANGE, EOVERFLOW, EOPNOTSUPP: this one cannot be changed, such as an interrupt that the driver manages, for which newer
        // kernels answer EPERM; so does a policy of ASPM that the firmware keeps. Without the right to it at all the file does not
        // open (EACCES).
        Err(e) if matches!(e.raw_os_error(), Some(1 | 5 | 16 | 22 | 34 | 75 | 95)) => {
            applied.refused.push((change.text(), refusal(path, &e)));
            Ok(())
        }
        Err(e) => Err(e.to_string()),
    }
}

/// Why a step is not of an interrupt of this machine.
fn another_interrupt(roots: &Roots, step: &Step) -> Option<String> {
    let (wanted, Mend::Write { path, .. }) = (step.interrupt.as_ref()?, &step.change) else { return None };
    let number = path.strip_prefix("/proc/irq").ok()?.iter().next()?.to_str()?;
    let rows = interrupt_table::rows(&roots.proc("interrupts")?);
    match rows.into_iter().find(|row| row.key == number) {
        Some(row) if row.name == *wanted => None,
        Some(row) => Some(format!("interrupt {number} is {}, and the plan means {wanted}: make a plan here", row.name)),
        None => Some(format!("this machine has no interrupt {number} ({wanted}): make a plan here")),
    }
}

/// The CPU that an interrupt goes to, of several that it may go to, as its `smp_affinity_list` is written.
fn carrier(roots: &Roots, path: &Path, old: &str) -> Option<String> {
    let list = path.strip_prefix("/proc/irq").is_ok() && path.ends_with("smp_affinity_list");
    let at = path.with_file_name("effective_affinity_list");
    let carrier = roots.fact(&at).known().filter(|_| list)?;
    (!carrier.is_empty() && carrier != old).then_some(carrier)
}

/// Whether nobody may read it, not even root.
fn is_write_only(roots: &Roots, path: &Path) -> bool {
    fs::metadata(roots.of_machine(path))
        .is_ok_and(|meta| std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o444 == 0)
}

/// Whether a program with the name of a unit runs.
fn runs(roots: &Roots, service: &str) -> bool {
    let name = service.strip_suffix(".service").unwrap_or(service);
    // The kernel keeps 15 characters of a name.
    let name: String = name.chars().take(15).collect();
    let is = |pid: u32| roots.proc(&format!("{pid}/comm")).is_some_and(|comm| comm.trim() == name);
    roots.proc_numbers("").into_iter().any(is)
}

/// Whether both are numbers, and not the same.
fn differs(now: &str, wanted: &str) -> bool {
    let number = |text: &str| text.trim().parse::<i64>().ok();
    number(now).zip(number(wanted)).is_some_and(|(now, wanted)| now != wanted)
}

fn refusal(path: &Path, error: &io::Error) -> String {
    match path.starts_with("/proc/irq") && matches!(error.raw_os_error(), Some(1 | 5)) {
        true => format!("{error}: its driver manages it (isolcpus=managed_irq moves it at boot)"),
        false => error.to_string(),
    }
}

fn make_files(roots: &Roots, dir: &Path, files: &[(&'static str, String)]) -> Result<Vec<PathBuf>, ApplyError> {
    let mut journal = begin(roots, dir, PERSISTENT)?;
    let mut made = Vec::new();
    for (path, text) in files {
        let at = roots.of_machine(path);
        let write = || -> io::Result<()> {
            if at.exists() {
                return Err(io::Error::new(
                    io::ErrorKind::AlreadyExists,
                    "is there already, and not of linerate host: move it away, or go without --persist",
                ));
            }
            if let Some(parent) = at.parent() {
                fs::DirBuilder::new().recursive(true).mode(0o755).create(parent)?;
            }
            Ok(())
        };
        let noted = write().and_then(|()| journal.note(&Change::Made { path: path.into(), text: text.clone() }));
        let written = noted.and_then(|()| {
            let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o644).open(&at)?;
            io::Write::write_all(&mut file, text.as_bytes())?;
            file.sync_all()
        });
        if let Err(e) = written {
            drop(journal);
            return Err(ApplyError::Failed { change: (*path).to_owned(), why: e.to_string(), kept: Vec::new() });
        }
        made.push(PathBuf::from(path));
    }
    Ok(made)
}

/// Takes back what was applied, the last change first. `runtime_only`: files that outlive a boot stay.
///
/// # Errors
///
/// A journal cannot be read, somebody else is at it (`WouldBlock`), or it is of another network namespace (`Unsupported`). Each
/// error names the journal. Nothing of it was taken back.
pub fn revert(roots: &Roots, dir: &Path, runtime_only: bool) -> io::Result<Reverted> {
    let mut reverted = Reverted { nothing: true, ..Reverted::default() };
    // First the one that may be refused.
    for name in [NAME, PERSISTENT].into_iter().filter(|&name| !(runtime_only && name == PERSISTENT)) {
        let path = journal::path_of(dir, name);
        let undone = journal::undo(roots, &path).map_err(|e| at(&path, &e))?;
        reverted.nothing &= undone == Undone::default();
        let Undone { back, left, failed, rebooted, damaged, cut, kept, gone, stays } = undone;
        reverted.stays.extend(stays.map(|why| (path.clone(), why)));
        reverted.gone.extend(gone.iter().map(text));
        reverted.cut |= cut && !rebooted;
        if !damaged.is_empty() {
            reverted.damaged.push((kept.unwrap_or(path), damaged));
        }
        reverted.rebooted |= rebooted && name == NAME;
        for change in back {
            match change {
                Change::Made { path, .. } => reverted.files.push(path),
                other => reverted.back.push(text(&other)),
            }
        }
        reverted.left.extend(left.into_iter().map(|(change, now)| (text(&change), now)));
        reverted.failed.extend(failed.into_iter().map(|(change, why)| (text(&change), why)));
    }
    Ok(reverted)
}

/// What is applied.
///
/// # Errors
///
/// A journal cannot be read: which.
pub fn status(roots: &Roots, dir: &Path) -> io::Result<Status> {
    let mut status = Status { kept: journal::put_aside(dir), ..Status::default() };
    for name in [NAME, PERSISTENT] {
        let path = journal::path_of(dir, name);
        let (changes, damaged) = journal::in_force(roots, &path).map_err(|e| at(&path, &e))?;
        if !damaged.is_empty() {
            status.damaged.push((path, damaged));
        }
        for change in changes {
            match change {
                Change::Made { path, .. } => status.files.push(path),
                Change::File { path, new, .. } => status.runtime.push(Mend::Write { path, value: new }.text()),
                Change::Service { unit } => status.runtime.push(Mend::Stop { service: unit }.text()),
                Change::Driver { .. } => {}
            }
        }
    }
    status.held = journal::is_held(&journal::path_of(dir, NAME));
    Ok(status)
}

/// An error with the file that it is of.
fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// A change that is taken back, as a command.
fn text(change: &Change) -> String {
    match change {
        Change::File { path, old, .. } => Mend::Write { path: path.clone(), value: old.clone() }.text(),
        Change::Service { unit } => format!("systemctl start {unit}"),
        Change::Made { path, .. } => format!("rm {}", path.display()),
        Change::Driver { address, .. } => address.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_in_part_is_seen_and_other_writings_of_a_value_are_not_it() {
        assert!(differs("37", "512") && differs("-1", "950000"));
        assert!(!differs("512", "512") && !differs("00000001", "1"));
        assert!(!differs("0-3", "0,1,2,3") && !differs("madvise", "never") && !differs("3", "ff"));
    }

    #[test]
    fn a_program_that_no_unit_runs_is_seen() {
        let own = fs::read_to_string("/proc/self/comm").unwrap();
        let here = Roots::default();
        assert!(runs(&here, &format!("{}.service", own.trim())) && !runs(&here, "no-such-program.service"));
    }
}
