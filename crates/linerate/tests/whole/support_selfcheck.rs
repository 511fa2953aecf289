//! Brings every system under test up and down, pushes real frames through it with `dpdk-testpmd` in the tester's
//! place, and checks that its counters agree and that nothing of it stays.

// The helpers below are test code too; clippy knows only functions marked as tests.
#![allow(clippy::unwrap_used)]

use crate::support;

use std::path::PathBuf;
use std::time::Duration;

use support::{
    exclusive, require, run, wait_until, Forward, KernelDut, Memory, Needs, Netns, OvsDpdk, Tbf, Testpmd, TestpmdSetup,
};

/// A testpmd in the tester's place, on the tester's CPU: it sends what it receives, so a few first frames go round.
fn stand_in(vdevs: &[&str], memory: Memory, netns: Option<&Netns>) -> Testpmd {
    Testpmd::start(&TestpmdSetup { vdevs, forward: Forward::Io, memory, cpu: 1, netns })
}

/// Sends a few bursts round for a while; the sums over both ports of what the stand-in sent and received.
fn go_round(tester: &mut Testpmd) -> (u64, u64) {
    tester.command("stop");
    tester.clear_counters();
    tester.command("start tx_first 2");
    std::thread::sleep(Duration::from_millis(300));
    tester.command("stop");
    // What is still under way stays in the rings: neither side loses it.
    std::thread::sleep(Duration::from_millis(100));
    let counters = tester.counters();
    assert_eq!(counters.len(), 2);
    (counters.iter().map(|c| c.tx_packets).sum(), counters.iter().map(|c| c.rx_packets).sum())
}

/// What the machine has of ours: processes, namespaces, files of DPDK and of the fixtures.
#[derive(Debug, PartialEq)]
struct Leftovers {
    namespaces: String,
    runtime_dirs: Vec<PathBuf>,
    temp_dirs: Vec<PathBuf>,
    children: Vec<String>,
}

impl Leftovers {
    fn now() -> Self {
        let pid = format!("{}x", std::process::id());
        let list = |dir: &str, ours: &dyn Fn(&str) -> bool| -> Vec<PathBuf> {
            let entries = std::fs::read_dir(dir).map(|d| d.flatten().map(|e| e.path()).collect()).unwrap_or_default();
            let mut entries: Vec<PathBuf> = entries;
            entries.retain(|p| p.file_name().is_some_and(|n| ours(&n.to_string_lossy())));
            entries
        };
        let namespaces = run(&["ip", "netns", "list"]);
        let temp = std::env::temp_dir().display().to_string();
        Self {
            namespaces: namespaces.lines().filter(|l| l.contains(&pid)).collect(),
            runtime_dirs: ["/run/dpdk", "/tmp/dpdk", "/dev/hugepages"]
                .iter()
                .flat_map(|d| list(d, &|n| n.contains(&pid)))
                .collect(),
            temp_dirs: list(&temp, &|n| n.starts_with("lrpmd") || n.starts_with("lrovs")),
            children: children(),
        }
    }
}

/// The processes that this one is the parent of, as /proc tells it.
fn children() -> Vec<String> {
    let me = std::process::id().to_string();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let stats = processes.filter_map(|p| std::fs::read_to_string(p.path().join("stat")).ok());
    // "PID (NAME) STATE PPID ...": the name may hold blanks.
    stats.filter(|s| s.rsplit(") ").next().and_then(|t| t.split(' ').nth(1)) == Some(me.as_str())).collect()
}

/// Runs `body`, then sees that everything it made is gone.
fn leaves_nothing(body: impl FnOnce()) {
    let _machine = exclusive();
    let before = Leftovers::now();
    body();
    // Files and namespaces go with their owners, at once.
    assert_eq!(Leftovers::now(), before);
}

fn testpmd_counts_agree(dut: &mut Testpmd, tester: &mut Testpmd) {
    // A stand-in forwards from its start: what an earlier one left behind must not count.
    tester.command("stop");
    std::thread::sleep(Duration::from_millis(50));
    dut.clear_counters();
    let (sent, received) = go_round(tester);
    assert!(sent >= 128 && received > 0, "sent {sent}, received {received}");
    let counters = dut.counters();
    assert_eq!(counters.len(), 2);
    assert_eq!(counters.iter().map(|c| c.rx_packets).sum::<u64>(), sent);
    assert_eq!(counters[0].rx_packets, counters[1].tx_packets + counters[1].tx_errors);
}

#[test]
fn testpmd_over_memif() {
    require(&[Needs::Root, Needs::Testpmd, Needs::Hugepages(128)]);
    leaves_nothing(|| {
        let mut dut = Testpmd::memif(Memory::Huge);
        assert_eq!(children().len(), 1, "the check of what stays sees what is there");
        let port =
            |n: usize| format!("net_memif{n},role=client,id=0,socket={},socket-abstract=no", dut.socket(n).display());
        let (a, b) = (port(0), port(1));
        let mut tester = stand_in(&[&a, &b], Memory::NoHuge, None);
        testpmd_counts_agree(&mut dut, &mut tester);
        // A second tester can follow the first. DPDK 22.11 may crash where it polls a memif port as its peer goes.
        dut.command("stop");
        drop(tester);
        let mut tester = stand_in(&[&a, &b], Memory::Huge, None);
        dut.command("start");
        testpmd_counts_agree(&mut dut, &mut tester);
    });
}

#[test]
fn testpmd_over_vhost_user() {
    require(&[Needs::Root, Needs::Testpmd, Needs::Hugepages(128)]);
    leaves_nothing(|| {
        let mut dut = Testpmd::vhost_server(Memory::Huge);
        let port = |n: usize| format!("net_virtio_user{n},path={},queues=1,queue_size=1024", dut.socket(n).display());
        let (a, b) = (port(0), port(1));
        let mut tester = stand_in(&[&a, &b], Memory::Huge, None);
        testpmd_counts_agree(&mut dut, &mut tester);
        drop(tester);
        drop(dut);

        let mut dut = Testpmd::vhost_client(Memory::NoHuge);
        let port =
            |n: usize| format!("net_virtio_user{n},path={},queues=1,queue_size=1024,server=1", dut.socket(n).display());
        let (a, b) = (port(0), port(1));
        let mut tester = stand_in(&[&a, &b], Memory::NoHuge, None);
        testpmd_counts_agree(&mut dut, &mut tester);
    });
}

#[test]
fn ovs_with_dpdk() {
    require(&[Needs::Root, Needs::Testpmd, Needs::OvsDpdk, Needs::Network, Needs::Hugepages(192)]);
    leaves_nothing(|| {
        let mut ovs = OvsDpdk::bring_up();
        for restart in [false, true] {
            if restart {
                ovs.restart();
            }
            let port = |n: usize| {
                format!("net_virtio_user{n},path={},queues=1,queue_size=1024,server=1", ovs.socket(n).display())
            };
            let (a, b) = (port(0), port(1));
            let mut tester = stand_in(&[&a, &b], Memory::Huge, None);
            wait_until("OVS's links", Duration::from_secs(10), || ovs.links_up());
            // Its counters start again some time after the first peer connected, and come in from its flows now and then.
            go_round(&mut tester);
            let sum = || ovs.counters().received.iter().sum::<u64>();
            let mut before = sum();
            wait_until("OVS to have counted the first frames", Duration::from_secs(10), || {
                std::thread::sleep(Duration::from_secs(1));
                std::mem::replace(&mut before, sum()) == before
            });
            let (sent, received) = go_round(&mut tester);
            assert!(sent >= 128 && received > 0, "sent {sent}, received {received}");
            wait_until("OVS to have counted", Duration::from_secs(10), || sum() >= before + sent);
            let counted = ovs.counters();
            assert_eq!(counted.received.iter().sum::<u64>(), before + sent, "{counted:?}");
            drop(tester);
            assert_eq!(ovs.counters(), counted, "the counters survive the tester");
        }
    });
}

fn kernel_forwards(dut: &KernelDut, vdev: &str) {
    let before = [dut.counters(0), dut.counters(1)];
    let port = |n: usize| format!("{vdev}{n},iface=t{n}");
    let (a, b) = (port(0), port(1));
    let mut tester = stand_in(&[&a, &b], Memory::NoHuge, Some(dut.tester()));
    let (sent, received) = go_round(&mut tester);
    assert!(sent >= 128 && received > 0, "{vdev}: sent {sent}, received {received}");
    let after = [dut.counters(0), dut.counters(1)];
    let counted: u64 = (0..2).map(|n| after[n].rx_packets - before[n].rx_packets).sum();
    assert_eq!(counted, sent, "{vdev}");
}

#[test]
fn kernel_bridge_over_af_packet_and_af_xdp() {
    require(&[Needs::Root, Needs::Testpmd, Needs::Network]);
    leaves_nothing(|| {
        let dut = KernelDut::bridge();
        assert_eq!(Leftovers::now().namespaces.matches("lr").count(), 2, "the check of what stays sees what is there");
        kernel_forwards(&dut, "net_af_packet");
        kernel_forwards(&dut, "net_af_xdp");
    });
}

#[test]
fn kernel_bridge_with_a_limit_drops_and_counts() {
    require(&[Needs::Root, Needs::Testpmd, Needs::Network]);
    leaves_nothing(|| {
        let dut = KernelDut::bridge();
        dut.limit_egress(1, Tbf { rate_bps: 8_000_000, burst: 3200, limit: 16_000, overhead: 4 });
        let before = dut.counters(1).tx_packets;
        let mut tester = stand_in(&["net_af_packet0,iface=t0"], Memory::NoHuge, Some(dut.tester()));
        tester.command("stop");
        tester.command("set fwd txonly");
        tester.clear_counters();
        tester.command("start");
        std::thread::sleep(Duration::from_millis(200));
        tester.command("stop");
        let sent = tester.counters()[0].tx_packets;
        wait_until("every frame passed or dropped", Duration::from_secs(2), || {
            dut.counters(1).tx_packets - before + dut.limit_drops(1) == sent
        });
        assert!(dut.limit_drops(1) > 0);
    });
}

/// Sends `count` datagrams from the tester's namespace to `to`, and waits until the DUT has sent as many out of port 1.
/// Returns how many it says it forwarded: its port counts its own multicast reports too, whenever they come.
fn routed(dut: &KernelDut, to: &str, count: u64) -> u64 {
    let (before, sent) = (dut.forwarded(to.contains(':')), dut.counters(1).tx_packets);
    let script = format!("exec 3>/dev/udp/{to}/7; for i in $(seq {count}); do echo $i >&3; done");
    dut.tester().run(&["bash", "-c", &script]);
    wait_until("routed frames", Duration::from_secs(10), || dut.counters(1).tx_packets - sent >= count);
    dut.forwarded(to.contains(':')) - before
}

#[test]
fn kernel_router_forwards_both_ip_versions() {
    require(&[Needs::Root, Needs::Network]);
    leaves_nothing(|| {
        let dut = KernelDut::router();
        // The kernel of the tester's namespace is the sender, with the stations' addresses of the benchmark.
        let (tester, router) = (dut.tester(), KernelDut::dut_mac(0));
        tester.sysctl(&["net.ipv6.conf.t0.addr_gen_mode=1", "net.ipv6.conf.t0.disable_ipv6=0"]);
        tester.ip("addr add 198.18.0.2/16 dev t0");
        tester.ip(&format!("neigh add 198.18.0.1 lladdr {router} dev t0 nud permanent"));
        tester.ip("route add 198.19.0.0/16 via 198.18.0.1");
        tester.ip("-6 addr add 2001:2:0:1::2/64 dev t0 nodad");
        tester.ip(&format!("-6 neigh add fe80::1 lladdr {router} dev t0 nud permanent"));
        tester.ip("-6 route add 2001:2:0:2::/64 via fe80::1 dev t0 onlink");
        assert_eq!(routed(&dut, "198.19.3.4", 20), 20);
        assert_eq!(routed(&dut, "2001:2:0:2::9", 20), 20);
    });
}

#[test]
fn a_panicking_test_leaves_nothing() {
    require(&[Needs::Root, Needs::Testpmd, Needs::Network]);
    leaves_nothing(|| {
        let died = std::panic::catch_unwind(|| {
            let _dut = Testpmd::memif(Memory::NoHuge);
            let _kernel = KernelDut::bridge();
            panic!("on purpose");
        });
        assert!(died.is_err());
    });
}

#[test]
fn a_fixture_that_cannot_start_says_why() {
    require(&[Needs::Testpmd]);
    leaves_nothing(|| {
        let died = std::panic::catch_unwind(|| stand_in(&["net_memif0,rsize=15"], Memory::NoHuge, None));
        let text = died.err().and_then(|e| e.downcast::<String>().ok()).map(|t| *t).unwrap_or_default();
        assert!(text.contains("Invalid ring size: 15"), "{text}");
    });
}
