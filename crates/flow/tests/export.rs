//! The exporter against real sockets and files, and their failures.
#![allow(clippy::unwrap_used, clippy::panic)]

mod ipfix_support;

use std::{
    fs,
    io::{ErrorKind, Write},
    net::{SocketAddr, TcpListener, UdpSocket},
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use flow::{
    export::{Change, ExportEvent, ExportSpec, Exporter, FileSpec, SinkSpec, SinkStats, TcpSpec, UdpSpec},
    ipfix::{Collector, CollectorSpec, Counts, Decoder, Limits},
    protocol::ExportTotals,
    Record,
};
use ipfix_support::{as_collected, record, wait_for, Given};

type Flows = Arc<Mutex<Vec<Record>>>;
type Events = Arc<Mutex<Vec<ExportEvent>>>;

const ANY: &str = "127.0.0.1:0";
const SECONDS: Duration = Duration::from_secs(20);

fn collector(udp: Option<&str>, tcp: Option<&str>) -> (Collector, Flows) {
    let flows = Flows::default();
    let spec = CollectorSpec {
        udp: udp.map(|at| at.parse().unwrap()),
        tcp: tcp.map(|at| at.parse().unwrap()),
        ..CollectorSpec::default()
    };
    let into = Arc::clone(&flows);
    (Collector::start(spec, move |_, records| into.lock().unwrap().extend(records)).unwrap(), flows)
}

fn spec(sinks: &[SinkSpec]) -> ExportSpec {
    ExportSpec { sinks: sinks.to_vec(), biflow: true, message_bytes: Some(1400), ..ExportSpec::default() }
}

fn start(spec: &ExportSpec) -> (Exporter, Given, Events) {
    let (given, events) = (Given::default(), Events::default());
    let into = Arc::clone(&events);
    let log = Arc::new(move |event: &ExportEvent| into.lock().unwrap().push(event.clone()));
    (Exporter::start(spec, given.boxed(), log).unwrap(), given, events)
}

fn some(n: u64) -> Vec<Record> {
    (0..n).map(|n| record(n, n % 3 == 0, true)).collect()
}

fn totals(records: u64, sent: u64, dropped: u64) -> ExportTotals {
    ExportTotals { records, sent, dropped, ..ExportTotals::default() }
}

fn udp(to: SocketAddr) -> SinkSpec {
    SinkSpec::Udp(UdpSpec { records_per_s: None, ..UdpSpec::new(to.to_string()) })
}

fn tcp(to: SocketAddr) -> SinkSpec {
    SinkSpec::Tcp(TcpSpec::new(to.to_string()))
}

/// How many of the events are such a change.
fn count(log: &Events, is: impl Fn(&Change) -> bool) -> usize {
    log.lock().unwrap().iter().filter(|event| is(&event.change)).count()
}

fn ups(log: &Events) -> usize {
    count(log, |change| *change == Change::Up)
}

fn downs(log: &Events) -> usize {
    count(log, |change| matches!(change, Change::Down { .. }))
}

fn downs_by(log: &Events, why: ErrorKind) -> usize {
    count(log, |change| matches!(change, Change::Down { kind, .. } if *kind == why))
}

#[test]
fn every_sink_gets_every_record() {
    let (collector, flows) = collector(Some(ANY), Some(ANY));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flows.jsonl");
    let sinks = [udp(collector.udp().unwrap()), tcp(collector.tcp().unwrap()), SinkSpec::Json(FileSpec::new(&path))];
    let (exporter, given, _) = start(&spec(&sinks));
    let records = some(5000);
    given.put(records.clone());
    let stats = exporter.finish(SECONDS);
    for sink in &stats {
        assert_eq!(sink.totals, totals(5000, 5000, 0), "{}", sink.name);
    }
    let counts = collector.stop();
    // Templates over UDP with three messages at the begin and at the end, over TCP once, with four more for records that are sent
    // again and one for what these are. Statistics at the begin and at the end of each session, two records each; over TCP the
    // reliability of eight templates.
    let wanted = Counts {
        messages: stats[0].messages + stats[1].messages,
        flows: 10_000,
        options: 8 + 8,
        templates: 6 * 4 + 11,
        sessions: 2,
        ..Counts::default()
    };
    assert_eq!(counts, wanted);
    let key = |record: &Record| (record.first, record.key.sport);
    let mut flows = flows.lock().unwrap().clone();
    flows.sort_by_key(key);
    let mut twice = [as_collected(&records), as_collected(&records)].concat();
    twice.sort_by_key(key);
    assert_eq!(flows, twice);
    let text = fs::read_to_string(path).unwrap();
    let read: Vec<Record> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(read, records);
}

#[test]
fn templates_are_sent_again() {
    let socket = UdpSocket::bind(ANY).unwrap();
    socket.set_read_timeout(Some(SECONDS)).unwrap();
    let refresh = Duration::from_millis(200);
    let spec = ExportSpec { refresh, refresh_messages: 3, ..spec(&[udp(socket.local_addr().unwrap())]) };
    let (exporter, given, _) = start(&spec);
    let mut decoder = Decoder::new(Limits::default());
    let mut bytes = [0; 65536];
    let mut read = |decoder: &mut Decoder| {
        let n = socket.recv(&mut bytes).unwrap();
        assert!(n <= 1400);
        decoder.message(&bytes[..n], &mut |_| ()).unwrap();
        decoder.counts()
    };
    // By time, with nothing to send; statistics with them.
    for n in 1..=3 {
        let counts = read(&mut decoder);
        assert_eq!((counts.templates, counts.options, counts.flows), (6 * n, 2 * n, 0));
    }
    // By number: of many messages, at least one in four has them.
    given.put(some(400));
    let mut counts = decoder.counts();
    while counts.flows < 400 {
        counts = read(&mut decoder);
    }
    let with_data = counts.messages - 3;
    assert!(with_data > 20 && counts.templates / 6 > 3 + with_data / 5, "{counts:?}");
    assert_eq!((counts.lost, counts.late), (0, 0));
    assert_eq!(exporter.finish(SECONDS)[0].totals, totals(400, 400, 0));
}

#[test]
fn nobody_listens_over_udp() {
    let to = UdpSocket::bind(ANY).unwrap().local_addr().unwrap();
    let (exporter, given, events) = start(&spec(&[udp(to)]));
    given.put(some(1000));
    wait_for("the refusal", || downs_by(&events, ErrorKind::ConnectionRefused) == 1);
    assert!(!exporter.stats()[0].up);
    // Somebody does: what was queued arrives.
    let (collector, flows) = collector(Some(&to.to_string()), None);
    wait_for("the records", || flows.lock().unwrap().len() == 1000);
    wait_for("the line", || ups(&events) == 1);
    // And ends: what goes out then is lost, but for the message after which the refusal came it is known.
    collector.stop();
    given.put(some(100));
    let stats = exporter.finish(Duration::from_millis(500));
    assert_eq!(stats[0].totals, totals(1100, 1000, 100));
    assert_eq!(events.lock().unwrap().len(), 3, "{events:?}");
}

#[test]
fn a_collector_over_tcp_dies_and_comes_back() {
    let (first, flows) = collector(None, Some(ANY));
    let to = first.tcp().unwrap();
    let (exporter, given, events) = start(&spec(&[tcp(to)]));
    given.put(some(100));
    wait_for("records", || flows.lock().unwrap().len() == 100);
    assert!(exporter.stats()[0].up);
    assert_eq!(first.stop().lost, 0);
    wait_for("the end to be seen", || downs(&events) >= 1);
    given.put(some(200));
    let (second, flows) = collector(None, Some(&to.to_string()));
    wait_for("records", || flows.lock().unwrap().len() == 200);
    assert_eq!(exporter.finish(SECONDS)[0].totals, totals(300, 300, 0));
    let counts = second.stop();
    // A new session: templates again, and the sequence anew.
    assert_eq!((counts.flows, counts.templates, counts.lost, counts.without_template), (200, 11, 0, 0));
    assert_eq!(ups(&events), 2, "{events:?}");
}

/// One that accepts and reads nothing dies, and so does the next one, half way through what is sent again to it.
#[test]
fn what_nobody_read_is_sent_until_somebody_reads_it() {
    let listener = TcpListener::bind(ANY).unwrap();
    let to = listener.local_addr().unwrap();
    let (exporter, given, events) = start(&spec(&[tcp(to)]));
    let totals = || exporter.stats()[0].totals.clone();
    let first = listener.accept().unwrap();
    given.put(some(3000));
    wait_for("the kernels to take them", || totals().sent == 3000);
    drop(first);
    wait_for("the break", || totals().uncertain == 3000);
    let second = listener.accept().unwrap();
    wait_for("what is sent again", || totals().resent > 0);
    drop((second, listener));
    wait_for("the second break", || downs(&events) >= 2);
    given.put(some(500));
    let (third, flows) = collector(None, Some(&to.to_string()));
    wait_for("records", || flows.lock().unwrap().len() == 3500);
    let totals = exporter.finish(SECONDS)[0].totals.clone();
    assert_eq!((totals.records, totals.sent, totals.dropped, totals.uncertain), (3500, 3500, 0, 0));
    assert!((3000..=6000).contains(&totals.resent), "{totals:?}");
    assert_eq!((third.stop().lost, flows.lock().unwrap().len()), (0, 3500));
    assert!(count(&events, |change| *change == Change::Uncertain { records: 3000 }) >= 1, "{events:?}");
    assert!(count(&events, |change| matches!(change, Change::Resent { .. })) >= 1, "{events:?}");
}

/// A collector that does not end its side at the end: what it may not have read is said.
#[test]
fn what_may_not_have_been_read_at_the_end_is_uncertain() {
    let listener = TcpListener::bind(ANY).unwrap();
    let (exporter, given, events) = start(&spec(&[tcp(listener.local_addr().unwrap())]));
    let held = listener.accept().unwrap();
    given.put(some(100));
    wait_for("the kernels to take them", || exporter.stats()[0].totals.sent == 100);
    let totals = exporter.finish(SECONDS)[0].totals.clone();
    drop(held);
    assert_eq!((totals.sent, totals.dropped, totals.uncertain), (100, 0, 100));
    assert_eq!(count(&events, |change| *change == Change::Unread { records: 100 }), 1, "{events:?}");
}

/// One that accepts and never reads, beside one that works.
#[test]
fn a_slow_collector_costs_itself_only() {
    let stuck = TcpListener::bind(ANY).unwrap();
    let (collector, flows) = collector(None, Some(ANY));
    let sinks = [tcp(stuck.local_addr().unwrap()), tcp(collector.tcp().unwrap())];
    let (exporter, given, events) = start(&ExportSpec { queue: 20_000, ..spec(&sinks) });
    let held = stuck.accept().unwrap();
    // Far more than the kernel's buffers and the queue hold.
    let mut sent = 0;
    while count(&events, |change| matches!(change, Change::QueueFull { .. })) == 0 {
        given.put(some(10_000));
        sent += 10_000;
        wait_for("the other", || flows.lock().unwrap().len() == sent);
    }
    let stats = exporter.finish(Duration::from_millis(300));
    drop(held);
    let n = sent as u64;
    assert_eq!(stats[1].totals, totals(n, n, 0));
    let ExportTotals { records, sent, dropped, .. } = stats[0].totals;
    assert_eq!((records, sent + dropped), (n, n));
    assert!(dropped > 0);
}

#[test]
fn a_directory_that_is_missing_and_comes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("later").join("flows.jsonl");
    let (exporter, given, events) = start(&spec(&[SinkSpec::Json(FileSpec::new(&path))]));
    given.put(some(10));
    wait_for("the line", || downs_by(&events, ErrorKind::NotFound) == 1);
    fs::create_dir(path.parent().unwrap()).unwrap();
    wait_for("the file", || exporter.stats()[0].totals.sent == 10);
    // Removed under our hands: what comes later is in the new one.
    fs::remove_file(&path).unwrap();
    wait_for("the new file", || path.exists());
    given.put(some(5));
    assert_eq!(exporter.finish(SECONDS)[0].totals, totals(15, 15, 0));
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 5);
}

#[test]
fn files_are_rotated_and_the_oldest_go() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flows.jsonl");
    let file = FileSpec { max_bytes: 40_000, keep: 3, ..FileSpec::new(&path) };
    let (exporter, given, _) = start(&spec(&[SinkSpec::Json(file)]));
    let records = some(1000);
    given.put(records.clone());
    assert_eq!(exporter.finish(SECONDS)[0].totals, totals(1000, 1000, 0));
    let mut names: Vec<_> = fs::read_dir(&directory).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["flows.jsonl", "flows.jsonl.1", "flows.jsonl.2", "flows.jsonl.3"]);
    // Oldest first they are the last records, in order.
    let mut read: Vec<Record> = Vec::new();
    for name in names.iter().rev().map(|name| directory.path().join(name)).filter(|path| path.exists()) {
        let text = fs::read_to_string(&name).unwrap();
        assert!(text.len() <= 40_000 && text.ends_with('\n'));
        read.extend(text.lines().map(|line| serde_json::from_str::<Record>(line).unwrap()));
    }
    assert_eq!(read, records[1000 - read.len()..]);
    assert!(read.len() > 300);
}

#[test]
fn files_are_rotated_by_age_if_something_is_in_them() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flows.jsonl");
    let file = FileSpec { max_age: Duration::from_millis(1), ..FileSpec::new(&path) };
    let (exporter, given, _) = start(&spec(&[SinkSpec::Json(file)]));
    given.put(some(3));
    let rotated = directory.path().join("flows.jsonl.1");
    wait_for("rotation", || rotated.exists());
    // Longer than it looks again.
    thread::sleep(Duration::from_millis(1300));
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 2);
    exporter.finish(SECONDS);
}

#[test]
fn a_symbolic_link_is_refused_and_never_renamed() {
    let directory = tempfile::tempdir().unwrap();
    let [file, link] = ["flows.jsonl", "link"].map(|name| directory.path().join(name));
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let refused = || FileSpec::new(&link).check().unwrap_err();
    // The file is not there; it is.
    assert_eq!(refused().kind(), ErrorKind::InvalidInput);
    let spec = spec(&[SinkSpec::Json(FileSpec { max_bytes: 4000, ..FileSpec::new(&link) })]);
    let (exporter, given, _) = start(&spec);
    given.put(some(100));
    assert_eq!(exporter.finish(SECONDS)[0].totals, totals(100, 100, 0));
    assert_eq!(refused().kind(), ErrorKind::InvalidInput);
    assert!(refused().to_string().ends_with(file.to_str().unwrap()), "{}", refused());
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 100);
    assert_eq!(fs::read_link(&link).unwrap(), file);
    // A device has no size and no age.
    std::os::unix::fs::symlink("/dev/null", directory.path().join("null")).unwrap();
    FileSpec::new(directory.path().join("null")).check().unwrap();

    // A link that takes the place of the file meanwhile.
    let (moved, name) = (directory.path().join("moved"), directory.path().join("late"));
    let file = FileSpec { max_age: Duration::from_millis(1300), ..FileSpec::new(&name) };
    let (exporter, given, _) = start(&ExportSpec { sinks: vec![SinkSpec::Json(file)], ..spec });
    given.put(some(3));
    wait_for("records", || exporter.stats()[0].totals.sent == 3);
    fs::rename(&name, &moved).unwrap();
    std::os::unix::fs::symlink(&moved, &name).unwrap();
    thread::sleep(Duration::from_millis(2500));
    given.put(some(3));
    assert_eq!(exporter.finish(SECONDS)[0].totals, totals(6, 6, 0));
    assert_eq!((fs::read_link(&name).unwrap(), fs::read_to_string(&moved).unwrap().lines().count()), (moved, 6));
}

#[test]
fn the_disk_is_full() {
    let (exporter, given, events) = start(&spec(&["json:/dev/full".parse().unwrap()]));
    given.put(some(10));
    wait_for("the line", || downs_by(&events, ErrorKind::StorageFull) == 1);
    // However often it is tried, it is said once, and a device is left where it is.
    thread::sleep(Duration::from_millis(700));
    assert_eq!(downs_by(&events, ErrorKind::StorageFull), 1, "{events:?}");
    assert_eq!(exporter.finish(Duration::from_millis(100))[0].totals, totals(10, 0, 10));
    assert!(Path::new("/dev/full").exists());
}

/// Runs one of the tests below, which do nothing in an ordinary run, in a process of its own.
fn child(test: &str, path: &Path, before: &[&str]) -> Command {
    let this = std::env::current_exe().unwrap();
    let mut command = match before.split_first() {
        Some((program, args)) => {
            let mut command = Command::new(program);
            command.args(args).arg(this);
            command
        }
        None => Command::new(this),
    };
    command.args(["--exact", test, "--nocapture"]).env("LINERATE_EXPORT_CHILD", path).stdout(Stdio::null());
    command
}

fn child_path() -> Option<std::path::PathBuf> {
    std::env::var_os("LINERATE_EXPORT_CHILD").map(Into::into)
}

#[test]
fn a_small_disk_keeps_whole_lines() {
    let directory = tempfile::tempdir().unwrap();
    let mount = format!("mount -t tmpfs -o size=64k none {} && exec \"$@\"", directory.path().display());
    let unshare = ["unshare", "-rm", "sh", "-c", &mount, "sh"];
    let can = Command::new(unshare[0]).args(&unshare[1..]).arg("true").status();
    if !can.is_ok_and(|status| status.success()) {
        assert!(std::env::var_os("CI").is_none(), "no namespace to mount in");
        eprintln!("skipped: no namespace to mount in");
        return;
    }
    assert!(child("small_disk_child", directory.path(), &unshare).status().unwrap().success());
}

#[test]
fn small_disk_child() {
    let Some(directory) = child_path() else { return };
    let path = directory.join("flows.jsonl");
    let (exporter, given, events) = start(&spec(&[SinkSpec::Json(FileSpec::new(&path))]));
    let mut n = 0;
    while downs_by(&events, ErrorKind::StorageFull) == 0 {
        given.put(some(50));
        n += 50;
        thread::sleep(Duration::from_millis(5));
    }
    let held = fs::read_to_string(&path).unwrap();
    assert!(held.ends_with('\n') && held.lines().all(|line| serde_json::from_str::<Record>(line).is_ok()));
    assert_eq!(held.lines().count() as u64, exporter.stats()[0].totals.sent);
    // Room again: it goes on.
    fs::File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
    wait_for("the rest", || ups(&events) == 2);
    let stats: Vec<SinkStats> = exporter.finish(Duration::from_millis(200));
    let ExportTotals { records, sent, dropped, .. } = stats[0].totals;
    assert_eq!((records, sent + dropped), (n, n));
}

#[test]
fn killed_it_leaves_whole_lines() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flows.jsonl");
    for wait_ms in [0, 3, 7] {
        let mut process = child("killed_child", &path, &[]).process_group(0).spawn().unwrap();
        let size = || fs::metadata(&path).map_or(0, |meta| meta.len());
        let before = size();
        wait_for("lines", || size() > before + 100_000);
        thread::sleep(Duration::from_millis(wait_ms));
        process.kill().unwrap();
        process.wait().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        // A line counts when its newline is there.
        let whole = &text[..text.rfind('\n').unwrap()];
        assert!(whole.lines().all(|line| serde_json::from_str::<Record>(line).is_ok()));
    }
    // What a crash may leave is cut off when it is opened again, and what follows is whole.
    fs::File::options().append(true).open(&path).unwrap().write_all(b"{\"src\":\"10.0.").unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let before = text.lines().count();
    // The kill may have left the begin of it.
    let half = text.len() - text.rfind('\n').unwrap() - 1;
    let (exporter, given, events) = start(&spec(&[SinkSpec::Json(FileSpec::new(&path))]));
    given.put(some(7));
    assert_eq!(exporter.finish(SECONDS)[0].totals, totals(7, 7, 0));
    assert_eq!(count(&events, |change| *change == Change::LineRemoved { bytes: half as u64 }), 1, "{events:?}");
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), before - 1 + 7);
    assert!(text.lines().all(|line| serde_json::from_str::<Record>(line).is_ok()));
}

#[test]
fn killed_child() {
    let Some(path) = child_path() else { return };
    let (_exporter, given, _) = start(&spec(&[SinkSpec::Json(FileSpec::new(path))]));
    loop {
        given.put(some(2000));
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_file_that_is_none_of_ours_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("important");
    for content in [vec![b'x'; 10_000], b"a line\nand a half".to_vec()] {
        fs::write(&path, &content).unwrap();
        // Before the exporter has it: while that looks at it, it is busy.
        assert_eq!(FileSpec::new(&path).check().unwrap_err().kind(), ErrorKind::InvalidData);
        let (exporter, given, events) = start(&spec(&[SinkSpec::Json(FileSpec::new(&path))]));
        given.put(some(3));
        wait_for("the line", || downs(&events) == 1);
        assert_eq!(exporter.finish(Duration::ZERO)[0].totals, totals(3, 0, 3));
        assert_eq!(fs::read(&path).unwrap(), content);
    }
}

#[test]
fn a_file_that_another_logger_writes_is_left_to_it() {
    let directory = tempfile::tempdir().unwrap();
    let file = FileSpec::new(directory.path().join("flows"));
    let (one, given, _) = start(&spec(&[SinkSpec::Json(file.clone())]));
    given.put(some(3));
    wait_for("records", || one.stats()[0].totals.sent == 3);
    assert_eq!(file.check().unwrap_err().kind(), ErrorKind::ResourceBusy);
    let (other, given, events) = start(&spec(&[SinkSpec::Json(file.clone())]));
    given.put(some(5));
    wait_for("the line", || downs(&events) == 1);
    assert_eq!(other.finish(Duration::ZERO)[0].totals, totals(5, 0, 5));
    assert_eq!(one.finish(SECONDS)[0].totals, totals(3, 3, 0));
    assert_eq!(fs::read_to_string(&file.path).unwrap().lines().count(), 3);
    file.check().unwrap();
}

/// At the end a queue that is smaller than the number of records loses none of them.
#[test]
fn the_end_is_patient() {
    let (collector, flows) = collector(None, Some(ANY));
    let (exporter, given, _) = start(&ExportSpec { queue: 100, ..spec(&[tcp(collector.tcp().unwrap())]) });
    exporter.patient(SECONDS);
    given.put(some(20_000));
    assert_eq!(exporter.finish(SECONDS)[0].totals, totals(20_000, 20_000, 0));
    collector.stop();
    assert_eq!(flows.lock().unwrap().len(), 20_000);
}

#[test]
fn a_paced_collector_gets_all() {
    let (collector, flows) = collector(Some(ANY), None);
    let to = UdpSpec { records_per_s: Some(10_000), ..UdpSpec::new(collector.udp().unwrap().to_string()) };
    let (exporter, given, _) = start(&spec(&[SinkSpec::Udp(to)]));
    given.put(some(2000));
    assert_eq!(exporter.finish(SECONDS)[0].totals, totals(2000, 2000, 0));
    collector.stop();
    assert_eq!(flows.lock().unwrap().len(), 2000);
}

#[test]
fn each_event_is_a_line() {
    let changes = [
        Change::Up,
        Change::Down { kind: ErrorKind::StorageFull, why: "No space left on device (os error 28)".into() },
        Change::QueueFull { room: 262_144 },
        Change::QueueDrained { dropped: 17 },
        Change::LineRemoved { bytes: 12 },
        Change::Uncertain { records: 200 },
        Change::Resent { records: 200 },
        Change::Unread { records: 12 },
        Change::RateRaised { left: 1999, from: 1, to: 625 },
    ];
    let line = |change| ExportEvent { sink: "udp:10.0.0.1:4739".into(), change }.to_string();
    insta::assert_snapshot!(changes.map(line).join("\n"));
}

/// A pace that would take hours is lifted at the end, so that what is left leaves in time; with no time at all it is
/// dropped, and counted.
#[test]
fn the_end_lifts_the_pace() {
    let (collector, flows) = collector(Some(ANY), None);
    let to = collector.udp().unwrap().to_string();
    let slow = UdpSpec { records_per_s: Some(1), ..UdpSpec::new(to.clone()) };
    let (exporter, given, _) = start(&spec(&[SinkSpec::Udp(slow.clone())]));
    given.put(some(2000));
    wait_for("the first message", || exporter.stats()[0].messages > 1);
    let raised = exporter.hasten(2000, Duration::from_secs(4));
    let [ExportEvent { change: Change::RateRaised { left, from: 1, to: rate }, .. }] = raised[..] else {
        panic!("{raised:?}");
    };
    // How many are left depends on what has been sent.
    assert!((1..=2000).contains(&left) && (left / 4..=left).contains(&rate), "{left} {rate}");
    assert_eq!(exporter.hasten(2000, SECONDS), []);
    assert_eq!(exporter.finish(SECONDS)[0].totals, totals(2000, 2000, 0));

    let (exporter, given, _) = start(&spec(&[SinkSpec::Udp(slow)]));
    given.put(some(2000));
    wait_for("the first message", || exporter.stats()[0].messages > 1);
    let end = exporter.finish(Duration::ZERO)[0].totals.clone();
    assert!(end.records == 2000 && end.sent + end.dropped == 2000 && end.dropped > 0, "{end:?}");
    collector.stop();
    assert!(flows.lock().unwrap().len() >= 2000);
}

#[test]
fn sinks_are_read_from_text() {
    for good in [
        "udp:10.0.0.1:4739",
        "tcp:[::1]:4739",
        "sctp:[::1]:4739",
        "udp:collector.example:2055",
        "netflow9:[::1]:2055",
        "json:/tmp/a:b",
    ] {
        assert_eq!(good.parse::<SinkSpec>().unwrap().to_string(), good);
    }
    for bad in [
        "",
        "udp:",
        "udp:10.0.0.1",
        "udp::4739",
        "tcp:::1:4739",
        "udp:a:0",
        "udp:a:70000",
        "netflow9:",
        "json:",
        "xml:a",
    ] {
        let error = bad.parse::<SinkSpec>().unwrap_err().to_string();
        assert!(error.contains(&format!("\"{bad}\"")), "{error}");
    }
    insta::assert_snapshot!("xml:a".parse::<SinkSpec>().unwrap_err(), @r#"export "xml:a": must be udp:HOST:PORT, netflow9:HOST:PORT, tcp:HOST:PORT, sctp:HOST:PORT or json:FILE"#);
}
