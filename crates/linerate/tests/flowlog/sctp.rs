//! IPFIX over SCTP, in a guest whose kernel has it: `ncat --sctp` takes the messages, and the PyPI package `netflow` reads them.

use std::{
    fs,
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use crate::between::PATIENCE;
use crate::logger::directory;
use crate::streams::{collector, read, sources, AGAIN};
use crate::support::{
    ending::Ending,
    exclusive,
    guest::{Guest, Parts},
    require, run, wait_until, Needs, Netns,
};

/// The collector and the logger in the guest.
const COLLECTOR: &str = "ncat --sctp --recv-only -l 127.0.0.1 4739";
/// What ncat reads meanwhile: it ends with its input.
const SILENCE: &str = "sleep 1000";
const LOGGER: &str = "/init flowlog --listen off --flows 1k --memory no-hugepages --biflow off --idle 1s \
                      --ipfix sctp://127.0.0.1:4739";

/// Starts something there in the background; its output goes to a file, its id into another.
fn start(guest: &Guest, line: &str, out: &str) {
    guest.script(&format!("{SILENCE} </dev/null 2>/dev/null | {line} >{out} 2>{out}.errors & echo $! >{out}.pid"));
}

/// Bytes that the collector's kernel holds for it: RX_QUEUE of the association whose own port is the collector's.
fn unread(guest: &Guest) -> u64 {
    let list = guest.does("cat /proc/net/sctp/assocs");
    let mut lines = list.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let heads = lines.next().unwrap();
    let at = |name: &str| heads.iter().position(|&head| head == name).unwrap();
    let line = lines.find(|line| line[at("LPORT")] == "4739").unwrap_or_else(|| panic!("{list}"));
    line[at("RX_QUEUE")].parse().unwrap()
}

/// What the collector in the guest got, as `netflow` reads it on this machine: the source and the set of each record.
fn received(netns: &Netns, dir: &Path, stream: &Path) -> Vec<(String, u64)> {
    let reads = collector(netns, &dir.join("reads"), &[]);
    let mut sent = netns.command("nc");
    let bytes = fs::File::open(stream).unwrap();
    assert!(sent.args(["-N", "127.0.0.1", "4740"]).stdin(Stdio::from(bytes)).status().unwrap().success());
    read(&reads)
}

#[test]
fn sctp_carries_records_and_what_was_not_read_is_sent_again() {
    require(&[Needs::Root, Needs::Network, Needs::Machines]);
    let _machine = exclusive();
    let (netns, dir) = (Netns::new(), directory());
    netns.ip("link set lo up");
    let disk = dir.path().join("disk");
    fs::File::create(&disk).unwrap().set_len(16 << 20).unwrap();
    run(&["mkfs.ext4", "-q", "-F", disk.to_str().unwrap()]);
    let guest = Guest::boot(&Parts {
        machine: "q35",
        modules: &["sctp", "veth"],
        programs: &["sh", "mount", "umount", "cat", "grep", "kill", "ip", "ncat", "mkdir", "sleep"],
        mib: 1024,
        disk: Some(&disk),
        ..Parts::default()
    });
    guest.script(
        "mkdir -p /mnt; mount -t ext4 /dev/vda /mnt; echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6; ip link set lo up; ip link add name va type veth peer name vb; ip link set va up; \
         ip link set vb up; ip addr add 10.0.0.1/24 dev vb; ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev vb",
    );
    let says = |file: &str, text: &str| guest.run_words(&["grep", "-q", text, file]).0;
    // A datagram for each port, which nobody answers.
    let flows = |ports: std::ops::Range<u16>| {
        ports.for_each(|port| drop(guest.script(&format!("echo x | ncat -u --send-only 10.0.0.2 {port}"))));
    };

    // A collector that reads nothing, and is killed.
    start(&guest, COLLECTOR, "/mnt/hangs");
    start(&guest, &format!("{LOGGER} --receive-only --port eth:va"), "/tmp/logger");
    wait_until("the collector is connected", PATIENCE, || says("/proc/net/sctp/assocs", "4739"));
    guest.script("kill -STOP $(cat /mnt/hangs.pid)");
    let before = unread(&guest);
    flows(2000..2005);
    // They end after a second without frames; for two seconds no more come.
    let mut seen = (before, Instant::now());
    wait_until("records wait in the collector's kernel", PATIENCE, || {
        let now = unread(&guest);
        seen = if now == seen.0 { seen } else { (now, Instant::now()) };
        now > before && seen.1.elapsed() > Duration::from_secs(2)
    });
    guest.script("kill -KILL $(cat /mnt/hangs.pid)");
    wait_until("they are uncertain", PATIENCE, || says("/tmp/logger.errors", "may not have been read"));
    // Another one reads everything.
    start(&guest, COLLECTOR, "/mnt/reads");
    wait_until("they are sent again", PATIENCE, || says("/tmp/logger.errors", "records sent again"));
    flows(3000..3003);
    guest.script("kill -TERM $(cat /tmp/logger.pid)");
    let said = || guest.does("cat /tmp/logger /tmp/logger.errors");
    wait_until("the logger ends", PATIENCE, || said().contains("sctp:127.0.0.1:4739: "));
    guest.script("umount /mnt");
    let ended = Ending::of(&said());
    let [records, sent, dropped] = ended.exports["sctp:127.0.0.1:4739"];
    assert_eq!([records, sent, dropped], [8, 8, 0], "{}", said());
    assert!(!said().contains("of the sent uncertain"), "{}", said());
    let stream = dir.path().join("reads.ipfix");
    run(&["debugfs", "-R", &format!("dump /reads {}", stream.display()), disk.to_str().unwrap()]);
    let all = received(&netns, dir.path(), &stream);
    let (again, first): (Vec<_>, Vec<_>) = all.into_iter().partition(|&(_, set)| set >= AGAIN);
    assert_eq!((again.len(), first.len()), (5, 3), "{}", said());
    assert_eq!(sources(&first), 1);
}
