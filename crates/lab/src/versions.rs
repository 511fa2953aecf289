//! The versions of programs, as they say them.

use std::process::Command;

/// dpdk-testpmd knows no `--version`: DPDK says its own for `-v`, before the next flag ends the program.
const TESTPMD: &str = "dpdk-testpmd";
const DPDK: [&str; 2] = ["-v", "--only-the-version"];
const DPDK_SAYS: &str = "RTE Version:";

/// The version of a program: at most so many lines. None if it does not say it.
pub fn of(program: &str, lines: usize) -> Vec<String> {
    let arguments = match program {
        TESTPMD => &DPDK[..],
        "uname" => &["-sr"],
        _ => &["--version"],
    };
    let Ok(out) = Command::new(program).args(arguments).output() else { return Vec::new() };
    let [printed, errors] = [&out.stdout, &out.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    match program {
        TESTPMD => dpdk(&(printed + &errors)).into_iter().collect(),
        _ if !out.status.success() => Vec::new(),
        _ => printed.lines().map(str::trim).filter(|line| !line.is_empty()).take(lines).map(str::to_owned).collect(),
    }
}

/// `EAL: RTE Version: 'DPDK 22.11.11'`
fn dpdk(text: &str) -> Option<String> {
    let (_, version) = text.lines().find_map(|line| line.split_once(DPDK_SAYS))?;
    let version = version.trim().trim_matches('\'');
    (!version.is_empty()).then(|| format!("{TESTPMD} ({version})"))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    #[test]
    fn what_a_program_says_of_wrong_flags_is_not_its_version() {
        let dir = tempfile::tempdir().unwrap();
        let program = |text: &str| {
            let path = dir.path().join("program");
            fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            of(path.to_str().unwrap(), 2)
        };
        assert_eq!(program("echo; echo switch 3.1; echo DPDK 22; echo more"), ["switch 3.1", "DPDK 22"]);
        assert_eq!(program("echo 'Usage: program [options]'; exit 1"), Vec::<String>::new());
        assert_eq!(of("/nowhere/program", 1), Vec::<String>::new());
        let said = "EAL: Detected NUMA nodes: 1\nEAL: RTE Version: 'DPDK 22.11.11'\nUsage: dpdk-testpmd [options]\n";
        assert_eq!(dpdk(said).as_deref(), Some("dpdk-testpmd (DPDK 22.11.11)"));
        assert_eq!(dpdk("Usage: dpdk-testpmd [options]"), None);
    }
}
