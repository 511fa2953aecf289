//! What was changed, and what was taken back.

use std::path::Path;

use host::tuning::{Applied, Reverted, Status};

/// What `host apply` did.
pub fn applied(applied: &Applied) -> String {
    let mut out = String::new();
    applied.made.iter().for_each(|change| out += &format!("{change}\n"));
    applied.files.iter().for_each(|path| out += &format!("made {}\n", path.display()));
    for (change, why) in &applied.refused {
        out += &format!("not made: {change}: {why}\n");
    }
    if !applied.until_boot.is_empty() {
        let many = applied.until_boot.len();
        out += &format!(
            "changes of interrupts that no file keeps: {many}; they have other numbers after a boot: make and apply a plan again\n"
        );
    }
    if !applied.left.is_empty() {
        out += "left to you:\n";
        applied.left.iter().for_each(|change| out += &format!("  {change}\n"));
    }
    // What reads a file of ours.
    for (part, command) in
        [("grub.d", "update-grub, then boot"), ("linerate-host.service", "systemctl enable linerate-host")]
    {
        if applied.files.iter().any(|path| path.to_string_lossy().contains(part)) {
            out += &format!("still to do: {command}\n");
        }
    }
    let were = match applied.already.len() {
        1 => "1 was so already".to_owned(),
        many => format!("{many} were so already"),
    };
    let back = match applied.made.is_empty() && applied.files.is_empty() {
        true => "",
        false => "; take them back with linerate host revert",
    };
    out + &format!("{} changed, {were}{back}\n", applied.made.len())
}

/// A number of things, as in "1 file" and "2 files".
fn count(many: usize, of: &str) -> String {
    format!("{many} {of}{}", if many == 1 { "" } else { "s" })
}

/// What `bench --tune` did: how much, or every change of it.
pub fn tuned(applied: &Applied, verbose: bool) -> String {
    let refused = match applied.refused.len() {
        0 => String::new(),
        more => format!(", {more} refused"),
    };
    let made = count(applied.made.len(), "change");
    let mut out = format!("--tune: {made} made{refused}; taken back at the end");
    if verbose {
        applied.made.iter().for_each(|change| out += &format!("\n  {change}"));
        applied.refused.iter().for_each(|(change, why)| out += &format!("\n  not made: {change}: {why}"));
    }
    out
}

/// What `host revert` did.
pub fn reverted(reverted: &Reverted) -> String {
    if reverted.nothing {
        return "nothing is applied\n".to_owned();
    }
    let mut out = String::new();
    reverted.back.iter().for_each(|change| out += &format!("{change}\n"));
    reverted.files.iter().for_each(|path| out += &format!("removed {}\n", path.display()));
    for (change, now) in &reverted.left {
        out += &format!("left alone: {change}: somebody changed it since, to {now}\n");
    }
    for (change, why) in &reverted.failed {
        out += &format!("failed: {change}: {why}\n");
    }
    for (part, command) in
        [("grub.d", "update-grub, then boot"), ("linerate-host.service", "systemctl disable linerate-host")]
    {
        if reverted.files.iter().any(|path| path.to_string_lossy().contains(part)) {
            out += &format!("still to do: {command}\n");
        }
    }
    for (path, lines) in &reverted.damaged {
        out += &format!("{}: what it changed was not taken back\n", unreadable(path, lines));
    }
    if reverted.cut {
        out += "the last line of the journal is cut off: a crash leaves it so before the change is made\n";
    }
    if reverted.rebooted {
        out += "the machine was booted since: the rest is as the kernel started\n";
    }
    let failed = match reverted.failed.is_empty() {
        true => String::new(),
        false => format!(", {} failed: say linerate host revert again", reverted.failed.len()),
    };
    out + &format!("{} taken back{failed}\n", reverted.back.len() + reverted.files.len())
}

/// Lines of a journal that cannot be read.
fn unreadable(path: &Path, lines: &[usize]) -> String {
    let plural = if lines.len() == 1 { "" } else { "s" };
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    format!("{}: line{plural} {} cannot be read", path.display(), lines.join(", "))
}

/// What `host status` prints.
pub fn status(status: &Status) -> String {
    let Status { runtime, files, held, damaged, kept } = status;
    let mut out = match status.is_nothing() {
        true => "nothing is applied\n".to_owned(),
        false => format!(
            "{} until the next boot, {} beyond it\n",
            count(runtime.len(), "change"),
            count(files.len(), "file")
        ),
    };
    runtime.iter().for_each(|change| out += &format!("  {change}\n"));
    files.iter().for_each(|path| out += &format!("  {}\n", path.display()));
    for (path, lines) in damaged {
        out += &format!("{}: what it changed is not known\n", unreadable(path, lines));
    }
    for path in kept {
        out +=
            &format!("{}: of before, with lines that could not be read: these were not taken back\n", path.display());
    }
    if !status.is_nothing() {
        out += match held {
            true => "of a program that still runs (apply, revert, effect, or bench --tune): the last two take them back at their end\n",
            false => "to take them back: linerate host revert\n",
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_of_a_journal_is_told() {
        let nothing = Status::default();
        assert_eq!(status(&nothing), "nothing is applied\n");
        let kept = Status { kept: vec!["/j/host.damaged".into()], ..Status::default() };
        insta::assert_snapshot!(status(&kept), @r"
        nothing is applied
        /j/host.damaged: of before, with lines that could not be read: these were not taken back
        ");
        let damaged = Status {
            runtime: vec!["sysctl -w a=1".to_owned()],
            damaged: vec![("/j/host.journal".into(), vec![2, 5])],
            ..Status::default()
        };
        insta::assert_snapshot!(status(&damaged), @r"
        1 change until the next boot, 0 files beyond it
          sysctl -w a=1
        /j/host.journal: lines 2, 5 cannot be read: what it changed is not known
        to take them back: linerate host revert
        ");
    }

    #[test]
    fn what_changed_nothing_has_nothing_to_take_back() {
        let already = Applied { already: vec!["sysctl -w a=1".to_owned()], ..Applied::default() };
        insta::assert_snapshot!(applied(&already), @"0 changed, 1 was so already");
    }

    #[test]
    fn what_is_not_kept_beyond_a_boot_is_told() {
        let made = vec!["sysctl -w a=1".to_owned(), "echo 0 > /proc/irq/24/smp_affinity_list".to_owned()];
        let until_boot = made[1..].to_vec();
        insta::assert_snapshot!(applied(&Applied { made, until_boot, ..Applied::default() }), @r"
        sysctl -w a=1
        echo 0 > /proc/irq/24/smp_affinity_list
        changes of interrupts that no file keeps: 1; they have other numbers after a boot: make and apply a plan again
        2 changed, 0 were so already; take them back with linerate host revert
        ");
    }
}
