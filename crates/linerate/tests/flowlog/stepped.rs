//! The wall clock is stepped while flows go on: that of the logger alone, by Debian's libfaketime.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use serde_json::Value;

use crate::between::{frame, Between, PATIENCE};
use crate::collectors::Nfcapd;
use crate::logger::{directory, records, sum};
use crate::support::{exclusive, require, Needs};

const S: u64 = 1_000_000_000;
const HOUR: i64 = 3600;

/// The library, wherever this machine's architecture has it.
fn faketime() -> PathBuf {
    let found = fs::read_dir("/usr/lib").unwrap().flatten().map(|dir| dir.path().join("faketime/libfaketimeMT.so.1"));
    found.into_iter().find(|path| path.exists()).expect("scripts/setup.sh --test installs libfaketime")
}

/// How far a program's wall clock is ahead of ours, in seconds.
struct Ahead(PathBuf);

impl Ahead {
    fn set(&self, seconds: i64) {
        // The program reads it whenever it asks for the time: never half of it.
        let new = self.0.with_extension("new");
        fs::write(&new, format!("{seconds:+}\n")).unwrap();
        fs::rename(new, &self.0).unwrap();
    }
}

/// The sender's address of flow `n`.
fn src(n: u16) -> String {
    format!("10.1.{}.{}", n >> 8, n & 255)
}

fn of(records: &[Value], n: u16) -> Vec<Value> {
    records.iter().filter(|r| r["src"] == src(n)).cloned().collect()
}

fn ns(record: &Value, what: &str) -> u64 {
    record[what].as_u64().unwrap_or_else(|| panic!("no {what} in {record}"))
}

/// Whether a time is ours, so many seconds ahead.
fn is_ahead(time: u64, seconds: i64) -> bool {
    let ours = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() as i64;
    ((time / S) as i64 - seconds).abs_diff(ours) < 1000
}

/// One flow that goes on, flow 0, beside others of one frame each.
struct Sending<'a> {
    bench: &'a Between,
    json: &'a Path,
    sent: u64,
}

impl Sending<'_> {
    /// Goes on until the records are such.
    #[track_caller]
    fn until(&mut self, what: &str, such: impl Fn(&[Value]) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !such(&records(self.json)) {
            assert!(Instant::now() < end, "{what}: {:#?}", records(self.json));
            self.bench.pass(0, &frame(0));
            self.sent += 1;
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_stepped_clock_loses_no_flow_and_lets_no_time_run_backwards() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let (bench, dir, begun) = (Between::new(), directory(), Instant::now());
    let nfcapd = Nfcapd::start(&bench.middle, dir.path());
    let (json, ahead) = (dir.path().join("flows.jsonl"), Ahead(dir.path().join("ahead")));
    ahead.set(0);
    // CLOCK_MONOTONIC goes on, as it does on a machine whose clock is set.
    let preload = format!("LD_PRELOAD={}", faketime().display());
    let file = format!("FAKETIME_TIMESTAMP_FILE={}", ahead.0.display());
    let how = ["env", &preload, &file, "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1"];
    let more = ["--idle", "2s", "--active", "2s", "--ipfix", "udp://127.0.0.1:4739", "--json", json.to_str().unwrap()];
    let logger = bench.logger_by(&how, dir.path(), &more);
    let mut sending = Sending { bench: &bench, json: &json, sent: 0 };
    let ended = |records: &[Value], n: u16| of(records, n).iter().any(|r| r["end"] == "idle");
    let active = |records: &[Value]| of(records, 0).len();

    bench.send(1, 10);
    sending.until("the first record", |r| active(r) > 0);
    ahead.set(HOUR);
    bench.send(11, 10);
    sending.until("flows age, and records follow the clock", |r| {
        (1..21).all(|n| ended(r, n)) && of(r, 0).iter().any(|r| is_ahead(ns(r, "first_unix_ns"), HOUR))
    });
    let before = active(&records(&json));
    ahead.set(-HOUR);
    bench.send(21, 10);
    sending.until("flows age", |r| (21..31).all(|n| ended(r, n)) && active(r) >= before + 2);
    bench.send(31, 10);
    let (status, said) = logger.end_by("TERM");
    assert_eq!(status.and_then(|s| s.code()), Some(0), "{said}");

    let records = records(&json);
    assert_eq!(sum(&records, "packets"), sending.sent + 40, "{said}");
    assert!(records.iter().all(|r| ns(r, "first_unix_ns") <= ns(r, "last_unix_ns")), "{records:#?}");
    let long = of(&records, 0);
    assert_eq!(sum(&long, "packets"), sending.sent);
    // Nothing may have come of it since it was cut last.
    assert!(
        long.iter().all(|r| r["end"] == "active" || r == &long[long.len() - 1] && r["end"] == "forced"),
        "{long:#?}"
    );
    assert!(long.windows(2).all(|w| ns(&w[0], "last_unix_ns") < ns(&w[1], "first_unix_ns")), "{long:#?}");
    // No record has an hour in it.
    let seen: u64 = long.iter().map(|r| ns(r, "last_unix_ns") - ns(r, "first_unix_ns")).sum();
    assert!(Duration::from_nanos(seen) < begun.elapsed(), "{long:#?}");
    // Those that begin by a clock are told by it; the second in which it was stepped is in doubt.
    for (flows, seconds) in [(1..11, 0), (31..41, -HOUR)] {
        for n in flows {
            let [one] = &of(&records, n)[..] else { panic!("flow {n} in {records:#?}") };
            assert!(is_ahead(ns(one, "first_unix_ns"), seconds), "{one}");
        }
    }
    // The collector has the same, in the milliseconds it keeps.
    let mut ours: Vec<_> = records
        .iter()
        .map(|r| {
            let ms = |what| ns(r, what) / 1_000_000;
            (
                r["src"].as_str().unwrap().to_owned(),
                ms("first_unix_ns"),
                ms("last_unix_ns"),
                ns(&r["forward"], "packets"),
            )
        })
        .collect();
    let ms = |text: &String| text.replace('.', "").parse::<u64>().unwrap_or_else(|e| panic!("{text}: {e}"));
    // The end as it prints it (%ter) lacks a digit, so the duration is asked for.
    let rows = nfcapd.rows("fmt:%sa %tsr %td %pkt");
    let row = |row: &Vec<String>| (row[0].clone(), ms(&row[1]), ms(&row[1]) + ms(&row[2]), ms(&row[3]));
    let mut theirs: Vec<_> = rows.iter().map(row).collect();
    ours.sort();
    theirs.sort();
    assert_eq!(ours, theirs);
}
