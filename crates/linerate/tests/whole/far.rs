//! A lab on another host: a guest with an ssh server, whose NICs are cabled to the tester here.

// Fixtures report by panicking.
#![allow(clippy::panic, clippy::unwrap_used)]

use std::{fs, process::Command, time::Duration};

use serde_json::Value;

use crate::support::{
    guest::{Guest, Parts},
    require, run,
    tester::{ended, Ended, BINARY},
    wait_until, Needs, Netns,
};

/// Where its ssh server is reached from the namespace.
const PORT: u16 = 2222;

/// A host with an ssh server, two NICs, and a tester cabled to them.
struct TwoHosts {
    guest: Guest,
    netns: Netns,
    dir: tempfile::TempDir,
}

impl TwoHosts {
    fn new() -> Self {
        let (netns, dir) = (Netns::new(), tempfile::tempdir().unwrap());
        netns.ip("link set lo up");
        for port in ["t0", "t1"] {
            netns.ip(&format!("tuntap add {port} mode tap"));
            netns.ip(&format!("link set {port} up"));
        }
        let forward = format!("user,hostfwd=tcp:127.0.0.1:{PORT}-:22");
        let tap = |name: &str| format!("tap,ifname={name},script=no,downscript=no");
        let (t0, t1) = (tap("t0"), tap("t1"));
        let programs = "cat sh ip ls ps mkdir chmod mv test setpriv setsid unshare nsenter kill dropbear";
        let guest = Guest::boot(&Parts {
            machine: "q35",
            nic: "virtio-net-pci,disable-legacy=on,vectors=0",
            netdevs: &[&forward, &t0, &t1],
            programs: &programs.split(' ').collect::<Vec<_>>(),
            hugepages: 200,
            mib: 1400,
            netns: Some(&netns),
            ..Parts::default()
        });
        let key = dir.path().join("key");
        run(&["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key.to_str().unwrap()]);
        let public = fs::read_to_string(key.with_extension("pub")).unwrap();
        guest.script(&format!(
            "ip addr add 10.0.2.15/24 dev eth0; ip link set eth0 up; ip link set lo up
             mkdir -p /root/.ssh /etc/dropbear; chmod 700 /root /root/.ssh
             echo 'root:x:0:0:root:/root:/bin/sh' >/etc/passwd; echo /bin/sh >/etc/shells
             echo '{}' >/root/.ssh/authorized_keys
             dropbear -R -s -p 22 >/dev/null 2>&1 </dev/null",
            public.trim()
        ));
        // A small program is copied in seconds, also through an emulated machine.
        let program = dir.path().join("linerate");
        run(&["objcopy", "--strip-debug", BINARY, program.to_str().unwrap()]);
        Self { guest, netns, dir }
    }

    fn ssh(&self) -> String {
        let key = self.dir.path().join("key");
        format!(
            "ssh -i {} -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR",
            key.display()
        )
    }

    fn command(&self) -> Command {
        self.netns.command(self.dir.path().join("linerate").to_str().unwrap())
    }

    fn linerate(&self, args: &[&str]) -> Ended {
        ended(&self.command().args(args).output().unwrap())
    }

    /// The flags of a lab there.
    fn lab(&self, more: &[&str]) -> Vec<String> {
        let words = format!(
            "phy-phy --application l2 --name far --phy 0000:00:04.0,0000:00:05.0 --tester-ports eth:t0,eth:t1 --on \
             ssh://root@127.0.0.1:{PORT}"
        );
        let ssh = ["--ssh".to_owned(), self.ssh()];
        let more = more.iter().map(|word| (*word).to_owned());
        words.split(' ').map(str::to_owned).chain(ssh).chain(more).collect()
    }

    /// The drivers of the guest's two NICs, and whether a lab is up there.
    fn there(&self) -> (Vec<String>, bool) {
        let listed: Value = serde_json::from_str(&self.guest.does("/init ports --json")).unwrap();
        let drivers = listed.as_array().unwrap()[1..].iter();
        let drivers = drivers.map(|nic| nic["driver"].as_str().unwrap_or("none").to_owned()).collect();
        (drivers, self.guest.does("ps -eo args").contains("lab-hold"))
    }

    fn nothing_there(&self) -> bool {
        self.there() == (vec!["virtio-pci".to_owned(); 2], false)
    }
}

#[test]
fn a_lab_on_another_host_is_measured_hop_by_hop_and_gone() {
    require(&[Needs::Root, Needs::Machines, Needs::Network, Needs::Ssh]);
    let hosts = TwoHosts::new();
    let call = |first: &[&str], flags: &[String]| {
        let flags: Vec<&str> = first.iter().copied().chain(flags.iter().map(String::as_str)).collect();
        hosts.linerate(&flags)
    };
    // The program is copied there the first time.
    let up = call(&["lab", "up"], &hosts.lab(&[]));
    assert_eq!(up.code, 0, "{}{}", up.stdout, up.stderr);
    assert_eq!(hosts.there(), (vec!["uio_pci_generic".to_owned(); 2], true));
    assert!(hosts.guest.does("ls /root/.cache/linerate").contains("linerate-"));
    let trial =
        ["trial", "--lab", "far", "--load", "300pps", "--frame-size", "128", "--duration", "1s", "--json", "-", "-q"];
    let trial = hosts.linerate(&trial);
    assert!(matches!(trial.code, 0 | 3), "{}{}", trial.stdout, trial.stderr);
    let result = trial.json();
    assert_eq!(result["lab"]["on"], format!("ssh://root@127.0.0.1:{PORT}"));
    let hops = result["trials"][0]["directions"][0]["hops"].as_array().unwrap();
    let at: Vec<&str> = hops.iter().map(|hop| hop["at"].as_str().unwrap()).collect();
    assert_eq!(at, ["tester:0", "fwd:0", "fwd:1", "tester:1"]);
    assert!(hops.iter().all(|hop| hop["frames"].as_u64() > Some(0)), "{hops:?}");
    for command in [&["lab", "status", "far"][..], &["lab", "check", "far"], &["lab", "counters", "far"]] {
        assert_eq!(hosts.linerate(command).code, 0, "{command:?}");
    }
    assert_eq!(hosts.linerate(&["lab", "down", "far"]).code, 0);
    wait_until("nothing is there", Duration::from_secs(20), || hosts.nothing_there());
    // The process here is killed: the connection goes, and with it the lab there.
    let up = call(&["lab", "up"], &hosts.lab(&["--remote-program", "/init"]));
    assert_eq!(up.code, 0, "{}{}", up.stdout, up.stderr);
    let status: Value = hosts.linerate(&["lab", "status", "--json"]).json();
    run(&["kill", "-9", &status[0]["holder"].to_string()]);
    wait_until("nothing is there", Duration::from_secs(20), || hosts.nothing_there());
    assert_eq!(hosts.linerate(&["lab", "status", "far"]).code, 4);
    // What cannot be is said in a line, with where it was said.
    let wrong: [(&[&str], i32, &str); 4] = [
        (&["--remote-program", "/no/such"], 4, "127.0.0.1"),
        (&["--phy", "0000:00:04.0,0000:00:09.0"], 2, "0000:00:09.0"),
        (&["--on", "ssh://root@127.0.0.1:1"], 4, "127.0.0.1"),
        (&["--on", "ssh://-x"], 2, "ssh://"),
    ];
    for (more, code, said) in wrong {
        let mut flags = hosts.lab(&["--remote-program", "/init"]);
        // The last of two flags counts.
        for pair in more.chunks(2) {
            let place = flags.iter().position(|word| word == pair[0]).unwrap();
            pair[1].clone_into(&mut flags[place + 1]);
        }
        let refused = call(&["lab", "up"], &flags);
        assert_eq!((refused.code, refused.stderr.lines().count()), (code, 1), "{more:?}: {}", refused.stderr);
        assert!(refused.stderr.contains(said), "{more:?}: {}", refused.stderr);
        assert!(hosts.nothing_there(), "{more:?}");
    }
}
