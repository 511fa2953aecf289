//! Two lcores, each with a queue of every port and a table of its own.

use std::time::Duration;

use crate::logger::{directory, records, sum, Logger};
use crate::support::{
    ending::Ending,
    exclusive,
    frames::{eth, ip4, mac, udp, IPV4, UDP},
    wait_until,
};

/// A frame of flow `n`.
fn frame(n: u16) -> Vec<u8> {
    let src = format!("10.9.{}.{}", n >> 8, n & 255);
    let body = ip4(&src, "192.0.2.1", UDP, &udp(&src, "192.0.2.1", 53, &[7; 30]));
    eth(mac("02:4c:52:00:00:01"), mac("02:4c:52:00:00:00"), IPV4, &body)
}

#[test]
fn two_queues_of_a_capture_are_logged_by_two_lcores() {
    const EACH: u16 = 300;
    let _machine = exclusive();
    let dir = directory();
    let at = |name: &str| dir.path().join(name);
    // The two files are the two queues; every flow is in one of them, five times.
    let files = [0, 1].map(|queue| {
        let path = at(&format!("queue{queue}.pcap"));
        let mut writer = packet::pcap::Writer::new(std::fs::File::create(&path).unwrap()).unwrap();
        for i in 0..5 * EACH {
            writer.write(Duration::from_micros(i.into()), &frame(queue * EACH + i % EACH)).unwrap();
        }
        path
    });
    let rx = files.map(|file| format!("rx_pcap={}", file.display())).join(",");
    let port = format!("raw:net_pcap0,{rx},tx_pcap=/dev/null,tx_pcap=/dev/null");
    let json = at("flows.jsonl");
    let args = ["--port", &port, "--port", "null,no-rx=1", "--rx-queues", "2", "--cpus", "0,1", "--flows", "4k"];
    let more = ["--memory", "no-hugepages", "--check-pools", "--json", json.to_str().unwrap()];
    let logger = Logger::start(None, dir.path(), &[&args[..], &more].concat());
    let mut client = logger.client();
    let all = u64::from(EACH) * 2;
    wait_until("both queues are read", Duration::from_secs(60), || {
        client.totals()["interfaces"][0]["packets"] == 5 * all
    });
    let flows = client.flows();
    assert_eq!((flows.len() as u64, sum(&flows, "packets")), (all, 5 * all));
    let shown = logger.operator(&["show", "ports", "--json"]);
    let ports = shown.json();
    let queues = ports[0]["queues"].as_array().unwrap();
    let by: Vec<_> =
        queues.iter().map(|q| (q["queue"].as_u64(), q["lcore"].as_u64(), q["rx_frames"].as_u64())).collect();
    let read = Some(u64::from(5 * EACH));
    assert_eq!(by, [(Some(0), Some(1), read), (Some(1), Some(2), read)], "{shown:?}");
    let (status, said) = logger.end_by("TERM");
    assert_eq!(status.and_then(|s| s.code()), Some(0), "{said}");
    assert_eq!(Ending::of(&said).forced, all, "{said}");
    let records = records(&json);
    assert_eq!((records.len() as u64, sum(&records, "packets")), (all, 5 * all));
    assert!(records.iter().all(|r| r["forward"]["packets"] == 5), "{records:?}");
}
