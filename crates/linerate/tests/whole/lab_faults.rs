//! Parts of a lab that die while it is measured, and commands that die while they bring one up.

// Fixtures report by panicking.
#![allow(clippy::panic, clippy::unwrap_used)]

use std::{thread, time::Duration};

use serde_json::Value;

use crate::{
    lab::{traces, ALL},
    support::{
        self, exclusive,
        labs::{does, EndOfLabs},
        require, send_signal,
        tester::{linerate, start},
        wait_until,
    },
};

/// The process of a program of a lab.
fn process_of(lab: &str, program: &str) -> u32 {
    let status: Value = does(&["lab", "status", lab, "--json"]).json();
    let status = if status.is_array() { status[0].clone() } else { status };
    let all = status["programs"].as_array().unwrap_or_else(|| panic!("no programs: {status}"));
    let found = all.iter().find(|one| one["name"] == program).unwrap_or_else(|| panic!("no {program}: {status}"));
    found["pid"].as_u64().unwrap() as u32
}

#[test]
fn a_part_that_dies_ends_the_run_and_is_named() {
    let _alone = exclusive();
    let _end = EndOfLabs;
    require(&ALL);
    let dir = tempfile::tempdir().unwrap();
    for (program, mend) in [("vm1", "restart:vm1"), ("ovsdb", "lab down"), ("vswitchd", "restart-switch")] {
        let name = support::unique("lab");
        does(&["lab", "up", "phy-vm-phy", "--guests", "process", "--name", &name]);
        let (json, log) = (dir.path().join(program), dir.path().join(format!("{program}.log")));
        let flags = ["--quick", "--frame-sizes", "64,128,256", "--no-latency", "-q", "--json", json.to_str().unwrap()];
        let mut run = start(&[&["bench", "--lab", &name][..], &flags].concat(), None, &log);
        thread::sleep(Duration::from_secs(4));
        send_signal(process_of(&name, program), "KILL");
        let code =
            run.wait_end(Duration::from_secs(60)).unwrap_or_else(|| panic!("{program}: no end: {}", run.output()));
        let said = run.output();
        assert_eq!(code.code(), Some(1), "{program}: {said}");
        assert!(said.contains(&format!("{program} has ended")) && said.contains(mend), "{program}: {said}");
        let result: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
        let last = result["trials"].as_array().unwrap().last().unwrap_or_else(|| panic!("{program}: no trial is kept"));
        if program == "vm1" {
            // What the switch counted on the tester's side is known all the same.
            let hops = last["directions"][0]["hops"].as_array().unwrap();
            let first = hops.iter().find(|hop| hop["at"] == "br0:1").unwrap_or_else(|| panic!("no br0:1: {hops:?}"));
            assert!(first["frames"].is_u64(), "{hops:?}");
        }
        does(&["lab", "down", &name]);
    }
}

#[test]
fn a_switch_that_hangs_is_wrong() {
    let _alone = exclusive();
    let _end = EndOfLabs;
    require(&ALL);
    let name = support::unique("lab");
    does(&["lab", "up", "phy-ovs-phy", "--name", &name]);
    assert_eq!(linerate(&["lab", "check", &name]).code, 0);
    let switch = process_of(&name, "vswitchd");
    send_signal(switch, "STOP");
    let hung = linerate(&["lab", "check", &name]);
    send_signal(switch, "CONT");
    assert_eq!(hung.code, 1, "{}", hung.stdout);
    does(&["lab", "fault", "--lab", &name, "kill-switch"]);
    let dead = linerate(&["lab", "check", &name]);
    assert_eq!((dead.code, dead.stdout.contains("ok     br0")), (1, false), "{}", dead.stdout);
}

#[test]
fn a_lab_goes_with_the_command_that_was_bringing_it_up() {
    let _alone = exclusive();
    let _end = EndOfLabs;
    require(&ALL);
    let (before, dir) = (traces(), tempfile::tempdir().unwrap());
    for after_ms in [50, 200, 500, 900] {
        let name = support::unique("lab");
        let up = ["lab", "up", "phy-vm-vm-phy", "--guests", "process", "--name", &name];
        let mut up = start(&up, None, &dir.path().join("log"));
        thread::sleep(Duration::from_millis(after_ms));
        up.signal("KILL");
        up.wait_end(Duration::from_secs(5));
        wait_until("nothing is left", Duration::from_secs(10), || traces() == before);
    }
}
