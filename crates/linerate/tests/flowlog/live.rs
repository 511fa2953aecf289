//! Loggers between interfaces, read while they run.

use std::time::Duration;

use serde_json::Value;

use crate::between::{Between, STATION};
use crate::logger::{directory, flowlog, records, sum, Logger};
use crate::support::{
    ending::Ending,
    exclusive,
    frames::{eth, ip4, mac, udp, IPV4, UDP},
    require, run,
    tester::{ended, BINARY},
    wait_until,
    words::FLOWS_AT,
    Needs, Words,
};

const IDLE: [&str; 6] = ["--port", "null,no-rx=1", "--flows", "1k", "--memory", "no-hugepages"];

/// Datagram `i` of one of 50 flows, from one host to the other.
fn datagram(way: usize, i: u16) -> Vec<u8> {
    let (src, dst) = (format!("10.1.0.{}", way + 1), format!("10.1.0.{}", 2 - way));
    let body = udp(&src, &dst, 2000 + i % 50, &[&i.to_be_bytes()[..], &vec![9; usize::from(i)]].concat());
    eth(mac(STATION[1 - way]), mac(STATION[way]), IPV4, &ip4(&src, &dst, UDP, &body))
}

#[test]
fn what_passes_is_what_is_read_and_recorded() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let (bench, dir) = (Between::new(), directory());
    let json = dir.path().join("flows.jsonl");
    let more = ["--name", "between", "--biflow", "off", "--json", json.to_str().unwrap()];
    let logger = bench.logger(dir.path(), &more);
    let mut client = logger.client();
    assert_eq!((&client.hello["name"], &client.hello["auth"]), (&"between".into(), &false.into()));

    let mut sent = [(0, 0); 2];
    for way in [0, 1] {
        for i in 0..500 - 100 * way as u16 {
            let frame = datagram(way, i);
            bench.pass(way, &frame);
            sent[way].0 += 1;
            sent[way].1 += frame.len() as u64;
        }
    }
    let flows = client.flows();
    assert_eq!(flows.len(), 100);
    for way in [0, 1] {
        let own: Vec<Value> = flows.iter().filter(|f| f["ingress"] == way).cloned().collect();
        assert_eq!((own.len(), sum(&own, "packets"), sum(&own, "frame_bytes")), (50, sent[way].0, sent[way].1));
        assert!(own.iter().all(|f| f["src"] == format!("10.1.0.{}", way + 1) && f["end"].is_null()), "{own:?}");
    }
    // The links are looked at each second.
    let up = |totals: Value| [0, 1].iter().all(|&n: &usize| totals["interfaces"][n]["up"] == true);
    wait_until("the links are seen", Duration::from_secs(20), || up(client.totals()));
    let totals = client.totals();
    for way in [0, 1] {
        let interface = &totals["interfaces"][way];
        assert_eq!(
            (&interface["packets"], &interface["bytes"]),
            (&sent[way].0.into(), &sent[way].1.into()),
            "{totals}"
        );
        assert_eq!((&interface["name"], &interface["up"]), (&format!("eth:d{way}").into(), &true.into()), "{totals}");
    }
    let shown = logger.operator(&["show", "runtime"]);
    assert!(shown.code == 0 && shown.stdout.contains("flow-table"), "{shown:?}");
    let routes = logger.operator(&["show", "routes", "--name", "between"]);
    let mut words = Words::new();
    words.refused(2, &["show", "routes"], &routes);
    insta::assert_snapshot!(words);

    let (status, said) = logger.end_by("TERM");
    assert_eq!(status.and_then(|s| s.code()), Some(0), "{said}");
    let records = records(&json);
    assert!(records.iter().all(|r| r["end"] == "forced"), "{records:?}");
    assert_eq!((records.len(), sum(&records, "packets")), (100, 900), "{said}");
    let ending = Ending::of(&said);
    assert_eq!((ending.forced, ending.lack, ending.exported, ending.dropped), (100, 0, 100, 0), "{said}");
    // What jq makes of the lines: each has the kernel's numbers and names of its interfaces.
    let sums = "group_by(.ingress)[] | [.[0].ingress_name, .[0].ingress_interface, .[0].egress_interface, \
                (map(.forward.ip_bytes) | add), (map(.forward.frame_bytes) | add)] | @tsv";
    let jq = run(&["jq", "-rs", sums, json.to_str().unwrap()]);
    let index = |n: usize| bench.middle.run(&["cat", &format!("/sys/class/net/d{n}/ifindex")]).trim().to_owned();
    let line = |n: usize| {
        let (frames, bytes) = sent[n];
        format!("d{n}\t{}\t{}\t{}\t{bytes}\n", index(n), index(1 - n), bytes - 14 * frames)
    };
    assert_eq!(jq, line(0) + &line(1));
}

#[test]
fn a_ping_is_one_flow_with_both_its_ways() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let (bench, dir) = (Between::new(), directory());
    let logger = bench.logger(dir.path(), &[]);
    let said = bench.hosts[0].run(&["ping", "-n", "-c", "3", "-i", "0.2", "-W", "20", "10.0.0.2"]);
    assert!(said.contains(" 3 received"), "{said}");
    let mut client = logger.client();
    let flows = client.flows();
    let [ping] = &flows[..] else { panic!("{flows:?}") };
    assert_eq!((&ping["src"], &ping["dst"]), (&"10.0.0.1".into(), &"10.0.0.2".into()));
    assert_eq!((&ping["protocol"], &ping["dport"]), (&1.into(), &0x0800.into()));
    for way in ["forward", "back"] {
        assert_eq!((&ping[way]["packets"], &ping[way]["frame_bytes"]), (&3.into(), &(3 * 98).into()), "{ping}");
        assert_eq!(ping[way]["ip_bytes"], 3 * 84, "{ping}");
    }
    let interface = &client.totals()["interfaces"][0];
    assert!(interface["not_ip"].as_u64() >= Some(1), "{interface}");
    assert!(interface["not_ip_kinds"]["ARP"].as_u64() >= Some(1), "{interface}");
    let (status, _) = logger.end_by("INT");
    assert_eq!(status.and_then(|s| s.code()), Some(0));
}

#[test]
fn loggers_run_side_by_side_and_names_and_places_are_not_shared() {
    let dir = directory();
    let start = |name| Logger::start(None, dir.path(), &[&IDLE[..], &["--name", name]].concat());
    let (a, b) = (start("a"), start("b"));
    assert_eq!([&a, &b].map(|l| l.client().hello["name"].clone()), ["a", "b"]);
    let address = a.process.output().split_once(FLOWS_AT).unwrap().1.split(';').next().unwrap().to_owned();

    let same_name = flowlog(dir.path(), &[&IDLE[..], &["--name", "a", "--listen", "127.0.0.1:0"]].concat());
    let mut words = Words::new();
    words.hide(&address, "address");
    words.hide(a.process.id(), "pid");
    words.hide(dir.path().display(), "dir");
    let same_place = flowlog(dir.path(), &[&IDLE[..], &["--name", "c", "--listen", &address]].concat());
    // It may first be told that others poll its CPU.
    for (what, code, ended) in [("the same name", 2, same_name), ("the same place", 4, same_place)] {
        assert_eq!(ended.code, code, "{ended:?}");
        let errors: Vec<_> = ended.stderr.lines().filter(|l| l.starts_with("linerate: ")).collect();
        assert_eq!(errors.len(), 1, "{ended:?}");
        words.add(what, errors[0]);
    }

    let several = a.operator(&["stop"]);
    words.refused_in_a_line(2, &["stop"], &several);
    // A request to `forward` is not for a logger.
    let mut forward = std::process::Command::new(BINARY);
    let forward = ended(&forward.args(["forward", "stop"]).env("XDG_RUNTIME_DIR", dir.path()).output().unwrap());
    words.refused_in_a_line(4, &["forward", "stop"], &forward);
    insta::assert_snapshot!(words);
    assert_eq!(a.operator(&["stop", "--name", "a"]).code, 0);
    let mut a = a.process;
    assert_eq!(a.wait_end(Duration::from_secs(60)).and_then(|s| s.code()), Some(0), "{}", a.output());
    b.client().totals();
    // A closed terminal sends more than one signal. The logger still removes its socket.
    ["TERM", "HUP", "TERM"].iter().for_each(|signal| b.process.signal(signal));
    assert_eq!(b.end_by("TERM").0.and_then(|s| s.code()), Some(0));
    assert_eq!(std::fs::read_dir(dir.path().join("linerate")).unwrap().count(), 0);
}

#[test]
fn after_a_kill_everything_written_is_whole_and_the_place_is_free() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let (bench, dir) = (Between::new(), directory());
    let json = dir.path().join("flows.jsonl");
    let more = ["--name", "again", "--idle", "1s", "--listen", "127.0.0.1:19395", "--json", json.to_str().unwrap()];
    let logger = bench.logger(dir.path(), &more);
    let port = &bench.ends[0];
    (0..200).for_each(|i| port.send(&datagram(0, i)));
    let text = || std::fs::read_to_string(&json).unwrap_or_default();
    wait_until("flows have ended", Duration::from_secs(60), || text().lines().count() == 50);
    (0..200).for_each(|i| port.send(&datagram(0, i)));
    let (status, _) = logger.end_by("KILL");
    assert_eq!(status.and_then(|s| s.code()), None);
    // The driver has made them receive frames for others, and nobody took that back.
    let promiscuous = || ["d0", "d1"].map(|name| bench.middle.run(&["ip", "link", "show", name]).contains("PROMISC"));
    assert_eq!(promiscuous(), [true; 2]);

    let logger = bench.logger(dir.path(), &more);
    assert!(logger.client().flows().len() <= 50);
    port.send(&datagram(0, 7));
    let mut client = logger.client();
    wait_until("it logs again", Duration::from_secs(20), || !client.flows().is_empty());
    let (status, said) = logger.end_by("TERM");
    assert_eq!(status.and_then(|s| s.code()), Some(0), "{said}");
    let records = records(&json);
    assert!(records.len() >= 51, "{}", records.len());
    assert!(records.iter().take(50).all(|r| r["end"] == "idle"), "{records:?}");
    assert_eq!(records.last().unwrap()["forward"]["packets"], 1);
    assert_eq!(promiscuous(), [false; 2], "as before the one that was killed");
}
