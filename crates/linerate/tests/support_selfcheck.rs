//! Brings every system under test up and down, pushes real frames through it with `dpdk-testpmd` in the tester's
//! place, and checks that its counters agree and that nothing of it stays.

// The helpers below are test code too; clippy knows only functions marked as tests.
#![allow(clippy::unwrap_used)]

mod support;

use std::path::{Path, PathBuf};
use std::time::Duration;

use support::{
    exclusive, free_hugepages, require, run, wait_until, Forward, KernelDut, Memory, Needs, Netns, OvsDpdk, Tbf,
    Testpmd, TestpmdSetup,
};

/// A testpmd in the tester's place, on CPU 0: it sends what it receives, so a few first frames go round.
fn stand_in(vdevs: &[&str], memory: Memory, netns: Option<&Netns>) -> Testpmd {
    Testpmd::start(&TestpmdSetup { vdevs, forward: Forward::Io, memory, cpu: 0, netns })
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

/// What the machine has of ours: files of DPDK, namespaces, hugepages in use.
#[derive(Debug, PartialEq)]
struct Leftovers {
    namespaces: String,
    runtime_dirs: Vec<PathBuf>,
    temp_dirs: Vec<PathBuf>,
    hugepages_free: usize,
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
            hugepages_free: free_hugepages(),
        }
    }
}

/// Runs `body`, then sees that everything it made is gone.
fn leaves_nothing(body: impl FnOnce()) {
    let _machine = exclusive();
    let before = Leftovers::now();
    body();
    // The kernel takes a namespace's interfaces down, and a process's hugepages back, shortly after the last user left.
    wait_until("the end of everything this test made", Duration::from_secs(5), || Leftovers::now() == before);
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
        let port =
            |n: usize| format!("net_memif{n},role=client,id=0,socket={},socket-abstract=no", dut.socket(n).display());
        let (a, b) = (port(0), port(1));
        let mut tester = stand_in(&[&a, &b], Memory::NoHuge, None);
        testpmd_counts_agree(&mut dut, &mut tester);
        // A second tester can follow the first.
        drop(tester);
        let mut tester = stand_in(&[&a, &b], Memory::Huge, None);
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
        let mut ovs = OvsDpdk::bring_up(1);
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
            let (sent, received) = go_round(&mut tester);
            let counted = ovs.counters();
            assert!(sent >= 128 && received > 0, "sent {sent}, received {received}");
            assert_eq!(counted.received.iter().sum::<u64>(), sent, "{counted:?}");
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
        let tester = stand_in(&["net_af_packet0,iface=t0"], Memory::NoHuge, Some(dut.tester()));
        let mut tester = tester;
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

/// Sends `packets` (made by the pcap writer below) from one interface and returns how many leave by the other.
fn routed(dut: &KernelDut, from: usize, frame: &[u8], count: u64) -> u64 {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("frames.pcap");
    write_pcap(&file, frame, count);
    let before = dut.counters(1 - from).tx_packets;
    // testpmd reads the file and forwards it out of the interface.
    let (replay, port) =
        (format!("net_pcap0,rx_pcap={},tx_pcap=/dev/null", file.display()), format!("net_af_packet0,iface=t{from}"));
    let _tester = stand_in(&[&replay, &port], Memory::NoHuge, Some(dut.tester()));
    wait_until("routed frames", Duration::from_secs(3), || dut.counters(1 - from).tx_packets - before >= count);
    dut.counters(1 - from).tx_packets - before
}

fn write_pcap(path: &Path, frame: &[u8], count: u64) {
    let mut bytes = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        bytes.extend(word.to_le_bytes());
    }
    let len = u32::try_from(frame.len()).unwrap();
    for _ in 0..count {
        for word in [0, 0, len, len] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(frame);
    }
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn kernel_router_forwards_both_ip_versions() {
    require(&[Needs::Root, Needs::Testpmd, Needs::Network]);
    leaves_nothing(|| {
        let dut = KernelDut::router();
        let mac = |text: String| -> Vec<u8> { text.split(':').map(|b| u8::from_str_radix(b, 16).unwrap()).collect() };
        let header = |from: usize, ethertype: [u8; 2]| -> Vec<u8> {
            [mac(KernelDut::dut_mac(from)), mac(KernelDut::station_mac(from)), ethertype.to_vec()].concat()
        };
        // IPv4/UDP 198.18.0.2 -> 198.19.0.2, header checksum worked out by hand (RFC 791).
        let mut v4 = header(0, [8, 0]);
        v4.extend([0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0xee, 0x95, 198, 18, 0, 2, 198, 19, 0, 2]);
        v4.extend([0, 7, 0, 7, 0, 26, 0, 0]);
        v4.extend([0; 18]);
        assert_eq!(routed(&dut, 0, &v4, 20), 20);
        // IPv6/UDP 2001:2:0:2::2 -> 2001:2:0:1::2: forwarding does not look at the UDP checksum.
        let mut v6 = header(1, [0x86, 0xdd]);
        v6.extend([0x60, 0, 0, 0, 0, 8, 17, 64]);
        v6.extend([0x20, 1, 0, 2, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 2]);
        v6.extend([0x20, 1, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2]);
        v6.extend([0, 7, 0, 7, 0, 8, 0, 1]);
        assert_eq!(routed(&dut, 1, &v6, 20), 20);
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
