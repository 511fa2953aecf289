//! What was changed, and what was taken back.

use host::tuning::{Applied, Reverted, Status};

/// What `host apply` did.
pub fn applied(applied: &Applied) -> String {
    let mut out = String::new();
    applied.made.iter().for_each(|change| out += &format!("{change}\n"));
    applied.files.iter().for_each(|path| out += &format!("made {}\n", path.display()));
    for (change, why) in &applied.refused {
        out += &format!("not made: {change}: {why}\n");
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
    let already = applied.already.len();
    out + &format!(
        "{} changed, {already} were so already; take them back with linerate host revert\n",
        applied.made.len()
    )
}

/// What `bench --tune` did: how much, or every change of it.
pub fn tuned(applied: &Applied, verbose: bool) -> String {
    let refused = match applied.refused.len() {
        0 => String::new(),
        more => format!(", {more} refused"),
    };
    let mut out = format!("--tune: {} changes made{refused}; taken back at the end", applied.made.len());
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
        let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
        let path = path.display();
        out += &format!("{path}: line {} cannot be read: what it changed was not taken back\n", lines.join(", "));
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

/// What `host status` prints.
pub fn status(status: &Status) -> String {
    match status {
        Status::Nothing => "nothing is applied\n".to_owned(),
        Status::Applied { runtime, files, held } => {
            let mut out = format!("{} changes until the next boot, {} files beyond it\n", runtime.len(), files.len());
            runtime.iter().for_each(|change| out += &format!("  {change}\n"));
            files.iter().for_each(|path| out += &format!("  {}\n", path.display()));
            out += match held {
                true => "of a program that still runs (apply, revert, effect, or bench --tune): the last two take them back at their end\n",
                false => "to take them back: linerate host revert\n",
            };
            out
        }
    }
}
