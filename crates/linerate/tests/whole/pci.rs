//! NICs on a PCI bus: the drivers of DPDK for QEMU's NICs, in a guest that this program is the first process of. Two NICs hang
//! on one hub, so that what one sends the other receives.

// Fixtures report by panicking.
#![allow(clippy::panic, clippy::unwrap_used)]

use std::time::Duration;

use lab::vm::INIT;
use serde_json::Value;

use crate::support::{
    guest::{Guest, Parts},
    require,
    tester::{ended, BINARY},
    wait_until, Needs, Netns,
};

/// Where QEMU puts the two NICs.
const NICS: [&str; 2] = ["0000:00:03.0", "0000:00:04.0"];

/// Frames that teach the network where the tester is, before a trial, each way.
const LEARNING_FRAMES: u64 = 8;

/// A guest whose NICs hang on hubs in it.
fn guest(nic: &str, netdevs: &[&str], programs: &[&str], hugepages: u32, mib: u32) -> Guest {
    Guest::boot(&Parts { machine: "q35", nic, netdevs, programs, hugepages, mib, ..Parts::default() })
}

#[test]
fn every_nic_of_qemu_carries_frames_and_counts_them() {
    require(&[Needs::Machines]);
    for nic in ["e1000", "e1000e", "vmxnet3", "virtio-net-pci,disable-legacy=on,vectors=0"] {
        let guest = guest(nic, &["hubport,hubid=0"; 2], &["cat", "ip"], 200, 1100);
        let [a, b] = NICS;
        let listed = guest.does(&format!("{INIT} ports"));
        assert!(
            listed.contains(a) && listed.contains(&format!("linerate ports --bind uio_pci_generic {b}")),
            "{listed}"
        );
        // A NIC that the kernel has, or nobody, is refused with the command that binds it.
        let (taken, said) = guest.run(&format!("{INIT} trial --port {a} --port {b} --load 1kpps"));
        assert!(!taken && said.contains("linerate ports --bind"), "{nic}: {said}");
        guest.does(&format!("{INIT} ports --bind uio_pci_generic {a} {b}"));
        let listed = guest.does(&format!("{INIT} ports --json"));
        let listed: Value = serde_json::from_str(&listed).unwrap();
        assert!(
            listed.as_array().unwrap().iter().all(|nic| nic["driver"] == "uio_pci_generic" && nic["free"] == true),
            "{listed}"
        );
        // Without hugepages nothing knows where frames are.
        let (done, said) = guest.run(&format!("{INIT} trial --port {a} --port {b} --load 1kpps --memory no-hugepages"));
        assert!(!done && said.contains("hugepages"), "{nic}: {said}");
        let trial = "trial --load 500pps --frame-size 128 --duration 1s --memory-mib 128 --json /run/result -q";
        let (_, said) = guest.run(&format!("{INIT} {trial} --port {a} --port {b}"));
        let result = guest.does("cat /run/result");
        let result: Value = serde_json::from_str(&result).unwrap_or_else(|e| panic!("{nic}: {e}: {said}{result}"));
        let direction = &result["trials"][0]["directions"][0];
        let sent = direction["sent"].as_u64().unwrap();
        assert!(sent > 0, "{nic}: {direction}");
        assert_eq!(direction["received"], sent, "{nic}: {direction}");
        // A NIC may count a frame of before the trial a little later, as an emulated one does on a busy machine.
        for count in ["port_tx", "port_rx"] {
            let counted = direction[count].as_u64().unwrap_or(sent);
            let beside = direction["foreign"].as_u64().unwrap() + LEARNING_FRAMES;
            assert!((sent..=sent + beside).contains(&counted), "{nic}: {count}: {counted} of {sent}: {direction}");
        }
        // And back: virtio's own driver takes it again, the others have none in this kernel.
        let back = guest.does(&format!("{INIT} ports --give-back {a} {b}"));
        assert!(
            back.contains(if nic.starts_with("virtio") { "virtio-pci has it" } else { "no driver" }),
            "{nic}: {back}"
        );
    }
}

/// The driver of each NIC of the guest, in the order of the bus.
fn drivers(guest: &Guest) -> Vec<String> {
    let listed: Value = serde_json::from_str(&guest.does(&format!("{INIT} ports --json"))).unwrap();
    listed.as_array().unwrap().iter().map(|nic| nic["driver"].as_str().unwrap_or("none").to_owned()).collect()
}

#[test]
fn a_lab_takes_nics_and_they_come_back_also_after_a_crash() {
    require(&[Needs::Machines]);
    // The tester's two NICs, each on a hub with one of the device's.
    let programs = ["cat", "sh", "ip", "setpriv", "setsid", "unshare", "nsenter", "kill"];
    let hubs = ["hubport,hubid=0", "hubport,hubid=1", "hubport,hubid=0", "hubport,hubid=1"];
    let guest = guest("virtio-net-pci,disable-legacy=on,vectors=0", &hubs, &programs, 300, 1400);
    let of_kernel = vec!["virtio-pci".to_owned(); 4];
    let of_lab = vec!["uio_pci_generic".to_owned(); 4];
    assert_eq!(drivers(&guest), of_kernel);
    let nics = "--phy 0000:00:05.0,0000:00:06.0 --tester-ports 0000:00:03.0,0000:00:04.0";
    let up = format!("{INIT} lab up phy-phy --application l2 {nics} --name nics");
    guest.does(&up);
    assert_eq!(drivers(&guest), of_lab);
    let trial = "trial --lab nics --load 500pps --frame-size 128 --duration 1s --memory-mib 128 --json /result -q";
    let (_, said) = guest.run(&format!("{INIT} {trial}"));
    let result = guest.does("cat /result");
    let result: Value = serde_json::from_str(&result).unwrap_or_else(|e| panic!("{e}: {said}{result}"));
    let hops = result["trials"][0]["directions"][0]["hops"].as_array().unwrap();
    let at: Vec<&str> = hops.iter().map(|hop| hop["at"].as_str().unwrap()).collect();
    assert_eq!(at, ["tester:0", "fwd:0", "fwd:1", "tester:1"]);
    assert!(hops.iter().all(|hop| hop["frames"].as_u64() > Some(0)), "{hops:?}");
    let down = guest.does(&format!("{INIT} lab down nics"));
    assert_eq!(down.matches("given back").count(), 4, "{down}");
    assert_eq!(drivers(&guest), of_kernel);
    // Its holder is killed: nobody is left to give anything back, until the next lab is brought up, or somebody asks for it.
    let killed = |up: &str| {
        let said = guest.does(up);
        let status: Value = serde_json::from_str(&guest.does(&format!("{INIT} lab status --json"))).unwrap();
        guest.does(&format!("kill -9 {}", status[0]["holder"]));
        assert_eq!(drivers(&guest), of_lab);
        said.matches("given back").count()
    };
    assert_eq!(killed(&up), 0);
    assert_eq!(killed(&up), 4, "the second took them anew");
    let mended = guest.does(&format!("{INIT} lab down --all"));
    assert_eq!(mended.matches("given back").count(), 4, "{mended}");
    assert_eq!(drivers(&guest), of_kernel);
    assert!(!guest.does(&format!("{INIT} lab down --all")).contains("given back"));
    // One that does not come up gives back what it took: somebody uses the last of its NICs.
    guest.does("ip link set eth3 up");
    let (up, said) = guest.run(&up);
    assert!(!up && said.contains("eth3"), "{said}");
    assert_eq!(drivers(&guest), of_kernel);
}

#[test]
fn a_nic_that_is_pulled_out_is_a_loss_and_not_a_crash() {
    require(&[Needs::Machines]);
    // A machine whose slots are hot: those of q35 are not.
    let guest = Guest::boot(&Parts {
        machine: "pc",
        nic: "e1000",
        netdevs: &["hubport,hubid=0"; 2],
        programs: &["cat", "sh", "sleep"],
        hugepages: 200,
        mib: 1100,
        ..Parts::default()
    });
    let [a, b] = NICS;
    guest.does(&format!("{INIT} ports --bind uio_pci_generic {a} {b}"));
    let trial = "trial --load 300pps --frame-size 128 --duration 30s --memory-mib 128 --json /run/result -q";
    guest.script(&format!(
        "( set +e; {INIT} {trial} --port {a} --port {b} >/run/said 2>&1; echo $? >/run/code ) </dev/null >/dev/null 2>&1 &"
    ));
    // While frames pass.
    wait_until("a trial that runs", Duration::from_secs(30), || guest.run("cat /run/said").0);
    std::thread::sleep(Duration::from_secs(16));
    guest.pull("port1");
    wait_until("its end", Duration::from_secs(90), || guest.run("cat /run/code").0);
    let (code, said) = (guest.does("cat /run/code"), guest.does("cat /run/said"));
    assert!(["0", "1", "3", "4"].contains(&code.trim()) && !said.contains("panicked"), "{code}: {said}");
    let result: Value = serde_json::from_str(&guest.does("cat /run/result")).unwrap_or_else(|e| panic!("{e}: {said}"));
    let direction = &result["trials"][0]["directions"][0];
    let (sent, received) = (direction["sent"].as_u64().unwrap(), direction["received"].as_u64().unwrap());
    assert!(received > 0 && received < sent, "{direction}");
    let left: Value = serde_json::from_str(&guest.does(&format!("{INIT} ports --json"))).unwrap();
    assert_eq!(left.as_array().unwrap().len(), 1, "{left}");
    // It is named when it is asked for again.
    let (used, said) = guest.run(&format!("{INIT} trial --port {a} --port {b} --load 1kpps"));
    assert!(!used && said.contains(b), "{said}");
}

/// Frames that each lcore of the data plane in a guest has received.
fn received_by_lcore(guest: &Guest) -> Vec<u64> {
    let (up, text) = guest.run(&format!("{INIT} forward show runtime --json --interval 0"));
    if !up {
        return Vec::new();
    }
    let runtime: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    let of = |lcore: &Value| {
        let nodes = lcore["nodes"].as_array().unwrap();
        let rx = nodes.iter().find(|node| node["name"] == "rx").unwrap_or_else(|| panic!("{nodes:?}"));
        rx["vectors"].as_u64().unwrap()
    };
    runtime["lcores"].as_array().unwrap().iter().map(of).collect()
}

#[test]
fn a_nic_spreads_flows_over_its_queues_or_is_said_not_to() {
    require(&[Needs::Root, Needs::Machines, Needs::Network]);
    let netns = Netns::new();
    let tap = |name: &str, queues: &str| format!("tap,ifname={name},script=no,downscript=no{queues}");
    // QEMU hashes for virtio; DPDK's driver of e1000e leaves all frames in the first queue.
    for (nic, queues, spreads) in [
        ("virtio-net-pci,disable-legacy=on,vectors=0,mq=on,rss=on", (" multi_queue", ",queues=2"), true),
        ("e1000e", ("", ""), false),
    ] {
        let (of_kernel, queues) = queues;
        for port in ["t0", "t1"] {
            netns.ip(&format!("tuntap add {port} mode tap{of_kernel}"));
            netns.ip(&format!("link set {port} up"));
        }
        let guest = Guest::boot(&Parts {
            machine: "q35",
            nic,
            netdevs: &[&tap("t0", queues), &tap("t1", queues)],
            programs: &["cat", "sh"],
            hugepages: 200,
            mib: 1100,
            netns: Some(&netns),
            ..Parts::default()
        });
        let [a, b] = NICS;
        guest.does(&format!("{INIT} ports --bind uio_pci_generic {a} {b}"));
        let forward = format!("{INIT} forward l2 --port {a} --port {b} --rx-queues 2 --cpus 0,1 --memory-mib 128");
        guest.script(&format!("{forward} </dev/null >/run/said 2>&1 &"));
        wait_until("a data plane that runs", Duration::from_secs(60), || !received_by_lcore(&guest).is_empty());
        let trial = "trial --port eth:t0 --port eth:t1 --load 500pps --frame-size 128 --duration 1s --flows 64 -q";
        let trial = netns.command(BINARY).args(trial.split(' ')).output().unwrap();
        let trial = ended(&trial);
        assert!(matches!(trial.code, 0 | 3), "{nic}: {}", trial.stderr);
        let (received, said) = (received_by_lcore(&guest), guest.does("cat /run/said"));
        assert!(received[0] > 0, "{nic}: {received:?}: {said}");
        assert_eq!((received[1] > 0, said.contains("RSS")), (spreads, !spreads), "{nic}: {received:?}: {said}");
        drop(guest);
        ["t0", "t1"].iter().for_each(|port| netns.ip(&format!("link del {port}")));
    }
}
