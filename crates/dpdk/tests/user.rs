//! The default job as a user without any right: no root, no huge pages asked for. The real test runs as a child.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{
    os::unix::fs::PermissionsExt,
    process::{Command, Stdio},
};

use common::{eal_with, full, open, pass, pool, refused};
use dpdk::{DpdkError, Memory, PortConfig, Wire};
use packet::{Buffer, Burst, Rx, Tx};

#[test]
fn without_root() {
    // The build directory may be closed to others.
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let exe = dir.path().join("user");
    std::fs::copy(std::env::current_exe().unwrap(), &exe).unwrap();
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0);
    let mut command = if is_root { Command::new("setpriv") } else { Command::new(&exe) };
    if is_root {
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]).arg(&exe);
    }
    command.args(["--ignored", "--exact", "inside", "--nocapture"]).current_dir(dir.path());
    command.env_remove("XDG_RUNTIME_DIR").env("TMPDIR", dir.path()).stdin(Stdio::null());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    println!("{text}");
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    // Nothing of DPDK's on the terminal, and no directory left of it.
    assert!(!text.contains("EAL:"), "{text}");
    let runs = text.lines().find_map(|l| l.strip_prefix("prefix ")).unwrap();
    for dir in ["/tmp/dpdk", "/var/run/dpdk", dir.path().to_str().unwrap()] {
        assert!(!std::path::Path::new(dir).join(runs).exists(), "{dir}/{runs}");
    }
}

#[test]
#[ignore = "run as another user by `without_root`"]
fn inside() {
    let eal = eal_with(Memory::NoHuge { mib: 64 });
    println!("prefix {}", eal.args().iter().find_map(|a| a.strip_prefix("--file-prefix=")).unwrap());
    let pool = pool(eal, 2047);
    let (mut a, mut b) = Wire::pair(eal, "t", 256, &PortConfig::new(&pool)).unwrap();
    pass(&pool, &mut a.take_tx(0).unwrap(), &mut b.take_rx(0).unwrap(), 2000, 1514);
    let mut null = open(eal, "null", &pool);
    let mut burst = Burst::new();
    assert_eq!(null.take_rx(0).unwrap().rx(&mut burst), 64);
    assert_eq!(null.take_tx(0).unwrap().tx(&mut burst), 64);
    assert!(burst.iter().all(|f: &dpdk::Mbuf| !f.is_empty()));
    // What needs a right says which.
    let error = refused(eal, "eth:lo", &pool);
    assert!(error.machine_lacks() && matches!(error, DpdkError::NoPermission { .. }), "{error}");
    full(&pool);
}
