//! Files of ours that make changes outlive a boot.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use rustix::fs::statfs;

use super::host_plan::{HostPlan, Step};
use crate::{audit::Mend, journal::OURS};

/// The command that the service runs: it applies the plan of [`OURS`] at each boot.
pub const EARLY_BOOT: &str = "host apply --plan /etc/linerate/host-plan.toml";

/// Each file and what is in it. `program` is the path of Linerate, for the service; `grub`: whether the boot loader has drop-ins
/// (Debian and what comes of it). A file that would be empty is not made.
///
/// # Errors
///
/// The plan cannot be written as a file.
pub fn files(plan: &HostPlan, program: &str, grub_has_drop_ins: bool) -> Result<Vec<(&'static str, String)>, String> {
    let [grub, sysctl, service, saved] = OURS;
    let mut files = Vec::new();
    let words = plan.boot_words();
    if !words.is_empty() && grub_has_drop_ins {
        files.push((grub, grub_text(&words)));
    }
    let keys = sysctls(&plan.steps);
    if !keys.is_empty() {
        files.push((sysctl, sysctl_text(&keys)));
    }
    if plan.steps.iter().any(|step| needs_service(&step.change)) {
        files.push((service, service_text(program)));
        // Interrupts have other numbers after a boot.
        let mut kept = plan.clone();
        kept.steps.retain(|step| !is_of_an_interrupt(&step.change));
        files.push((saved, kept.to_text()?));
    }
    Ok(files)
}

/// File systems in memory (`statfs(2)`): tmpfs, ramfs.
const IN_MEMORY: [i64; 2] = [0x0102_1994, 0x8584_58f6];

/// Why a program should not be named by a unit of systemd, which starts it as root at each boot: others may put another one in
/// its place, or a boot takes it away. `None` if neither.
pub fn why_not_for_a_unit(program: &Path) -> Option<String> {
    let others_may_write = |dir: &&Path| fs::metadata(dir).is_ok_and(|meta| meta.mode() & 0o002 != 0);
    if let Some(dir) = program.ancestors().find(others_may_write) {
        return Some(format!("others may write to {}", dir.display()));
    }
    let in_memory = statfs(program).is_ok_and(|found| IN_MEMORY.contains(&found.f_type));
    in_memory.then(|| "it is on a file system that a boot empties".to_owned())
}

/// Whether it names an interrupt by its number.
pub(super) fn is_of_an_interrupt(change: &Mend) -> bool {
    let Mend::Write { path, .. } = change else { return false };
    let name = path.strip_prefix("/proc/irq").ok().and_then(|rest| rest.iter().next()?.to_str());
    name.is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
}

/// What `sysctl.d` cannot do: other files of the kernel, services.
fn needs_service(change: &Mend) -> bool {
    match change {
        Mend::Write { path, .. } => !path.starts_with("/proc/sys") && !is_of_an_interrupt(change),
        Mend::Stop { .. } => true,
        Mend::Boot { .. } | Mend::Command { .. } | Mend::Hand { .. } => false,
    }
}

/// Keys of `sysctl` and their values.
pub(super) fn sysctls(steps: &[Step]) -> Vec<(String, String)> {
    let of = |step: &Step| match &step.change {
        Mend::Write { path, value } => {
            let key = path.to_str()?.strip_prefix("/proc/sys/")?.replace('/', ".");
            Some((key, value.clone()))
        }
        _ => None,
    };
    steps.iter().filter_map(of).collect()
}

pub(super) fn grub_text(words: &[&str]) -> String {
    let line = words.join(" ");
    format!("# Made by linerate host; what apply --persist has put here, linerate host revert removes.\nGRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT {line}\"\n")
}

pub(super) fn sysctl_text(keys: &[(String, String)]) -> String {
    let lines: String = keys.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
    format!("# Made by linerate host; what apply --persist has put here, linerate host revert removes.\n{lines}")
}

pub(super) fn service_text(program: &str) -> String {
    format!(
        "# Made by linerate host; what apply --persist has put here, linerate host revert removes.
[Unit]
Description=Settings of this machine for packet forwarding (linerate host)
After=systemd-sysctl.service irqbalance.service

[Service]
Type=oneshot
# 1: a change was refused, the others are made.
SuccessExitStatus=1
ExecStart={program} {EARLY_BOOT}
ExecStop={program} host revert --runtime
RemainAfterExit=yes

[Install]
WantedBy=multi-user.target
"
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_program_that_others_may_replace_or_a_boot_takes_away_is_not_for_a_unit() {
        assert_eq!(why_not_for_a_unit(Path::new("/usr/bin/env")), None);
        // Below a directory of all users; the sticky bit protects the directory, not a path that is made anew.
        let dir = tempfile::tempdir().unwrap();
        let open = dir.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        let why = why_not_for_a_unit(&open.join("linerate")).unwrap();
        assert!(why.contains("may write"), "{why}");
        // In memory, and nobody else may write to it.
        let root = fs::metadata("/run").unwrap();
        if root.mode() & 0o002 == 0 && statfs("/run").unwrap().f_type == IN_MEMORY[0] {
            let why = why_not_for_a_unit(Path::new("/run")).unwrap();
            assert!(why.contains("boot"), "{why}");
        }
    }
}
