//! Numbers of processes in namespaces: `/proc` is the machine's, also in a lab.

use std::{fs, path::Path};

/// The number of a process or thread in the innermost namespace that it is in, by its directory in `/proc`: the kernel lists one
/// for each namespace (`NSpid`).
pub fn inner(dir: &Path) -> Option<u32> {
    let status = fs::read_to_string(dir.join("status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_whitespace().last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_is_the_innermost() {
        let dir = tempfile::tempdir().unwrap();
        let said = |status: &str| {
            fs::write(dir.path().join("status"), status).unwrap();
            inner(dir.path())
        };
        assert_eq!(said("Name:\tx\nNSpid:\t4711\t12\t3\n"), Some(3));
        assert_eq!((said("NSpid:\t4711\n"), said("Pid:\t1\n"), said("NSpid:\tx\n")), (Some(4711), None, None));
        assert_eq!(inner(&dir.path().join("gone")), None);
    }
}
