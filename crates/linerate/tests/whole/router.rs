//! What an operator does with `linerate forward l3`: pings it and through it, traces a route, looks at its tables, and
//! changes them while frames flow.

// The helpers below are test code too; clippy knows only functions marked as tests.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::support;

use std::{
    collections::HashSet,
    fs,
    net::Ipv4Addr,
    os::unix::fs::PermissionsExt,
    path::Path,
    time::{Duration, Instant},
};

use support::{
    exclusive,
    forwarder::Forwarder,
    frames::{eth, ip4, mac, udp, IPV4, UDP},
    raw::{cable, RawPort},
    require, run, Needs, Netns, Words,
};

const STATION: [&str; 2] = ["02:4c:52:00:00:00", "02:4c:52:00:00:01"];
const ROUTER: [&str; 2] = ["02:4c:52:00:01:00", "02:4c:52:00:01:01"];
const PORTS: [&str; 5] = ["l3", "--port", "eth:d0", "--port", "eth:d1"];

/// Two hosts with their own kernels, each on a link of its own, and a namespace between them for a router.
struct Bench {
    hosts: [Netns; 2],
    router: Netns,
}

impl Bench {
    /// Hosts with addresses and default routes only: neighbours are for ARP and ND to find.
    fn new() -> Self {
        let (hosts, router) = ([Netns::new(), Netns::new()], Netns::new());
        for (n, host) in hosts.iter().enumerate() {
            cable((host, "eth0", STATION[n]), (&router, &format!("d{n}"), ROUTER[n]));
            host.sysctl(&[
                "net.ipv6.conf.eth0.accept_dad=0",
                "net.ipv6.conf.eth0.accept_ra=0",
                "net.ipv6.conf.eth0.disable_ipv6=0",
            ]);
            host.ip(&format!("addr add 10.0.{n}.2/24 dev eth0"));
            host.ip(&format!("addr add 2001:db8:0:{n}::2/64 dev eth0 nodad"));
            host.ip(&format!("route add default via 10.0.{n}.1"));
            host.ip(&format!("-6 route add default via 2001:db8:0:{n}::1"));
        }
        Self { hosts, router }
    }

    fn forwarder(&self, more: &[&str]) -> Forwarder {
        let addresses = ["0 10.0.0.1/24", "1 10.0.1.1/24", "0 2001:db8::1/64", "1 2001:db8:0:1::1/64"];
        let addresses = addresses.iter().flat_map(|a| ["--address", a]);
        Forwarder::start(
            &self.router,
            &PORTS.into_iter().chain(addresses).chain(more.iter().copied()).collect::<Vec<_>>(),
        )
    }
}

/// Three pings, all answered, with what more `ping` is told.
#[track_caller]
fn ping(host: &Netns, to: &str, more: &[&str]) {
    let said = host.run(&[&["ping", "-n", "-c", "3", "-i", "0.2", "-W", "5"], more, &[to]].concat());
    assert!(said.contains(" 3 received"), "{to}: {said}");
}

/// The hops that a traceroute names.
fn hops(host: &Netns, args: &[&str]) -> Vec<String> {
    let said = host.run(&[&["traceroute", "-n", "-q", "1", "-w", "5", "-m", "5"], args].concat());
    said.lines().skip(1).filter_map(|l| l.split_whitespace().nth(1).map(str::to_owned)).collect()
}

#[test]
fn ping_and_traceroute_see_a_router() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let bench = Bench::new();
    let forwarder = bench.forwarder(&[]);
    let [near, far] = &bench.hosts;
    // Through it first, with no neighbour known to anybody.
    ping(near, "10.0.1.2", &[]);
    ping(far, "2001:db8:0:0::2", &[]);
    ping(near, "10.0.0.1", &[]);
    ping(near, "10.0.1.1", &[]);
    ping(near, "2001:db8::1", &[]);
    ping(far, "2001:db8:0:1::1", &[]);
    ping(far, "fe80::4c:52ff:fe00:101%eth0", &[]);
    ping(near, "10.0.1.2", &["-M", "do", "-s", "1472"]);
    ping(near, "2001:db8:0:1::2", &["-M", "do", "-s", "1452"]);

    for method in [&[][..], &["-I"]] {
        assert_eq!(hops(near, &[method, &["10.0.1.2"]].concat()), ["10.0.0.1", "10.0.1.2"], "{method:?}");
        let v6 = hops(far, &[method, &["-6", "2001:db8::2"]].concat());
        assert_eq!(v6, ["2001:db8:0:1::1", "2001:db8::2"], "{method:?}");
    }
    tables_are_shown(&forwarder);
    let (left, right) = forwarder.ledger();
    assert_eq!(left, right, "the ledger of every frame");
}

/// Everything that can be shown, of a router that has been pinged, as data and as text.
fn tables_are_shown(forwarder: &Forwarder) {
    let rows = |what: &str| forwarder.show(what)["rows"].as_array().unwrap().clone();
    let row = |what: &str, key: &str, value: &str| {
        let found = rows(what).into_iter().find(|r| r[key] == value);
        found.unwrap_or_else(|| panic!("no {value} in {:?}", rows(what)))
    };
    for (addr, station, link) in [("10.0.0.2", STATION[0], "0"), ("2001:db8:0:1::2", STATION[1], "1")] {
        let neighbour = row("neighbours", "address", addr);
        assert_eq!((&neighbour["mac"], &neighbour["link"]), (&station.into(), &link.into()), "{neighbour}");
    }
    assert_eq!(row("routes", "prefix", "10.0.1.0/24")["origin"], "connected");
    assert_eq!(row("routes", "prefix", "10.0.1.1/32")["origin"], "local");
    let interface = row("interfaces", "link", "0");
    assert_eq!(interface["mac"], ROUTER[0]);
    let addresses = interface["addresses"].to_string();
    assert!(addresses.contains("10.0.0.1/24") && addresses.contains("fe80::4c:52ff:fe00:100/64"), "{addresses}");

    let ports = forwarder.show("ports");
    for (n, port) in ports.as_array().unwrap().iter().enumerate() {
        assert_eq!((&port["mac"], &port["link_up"]), (&ROUTER[n].into(), &true.into()), "{port}");
        assert!(port["rx_frames"].as_u64().unwrap() >= 12 && port["tx_frames"].as_u64().unwrap() >= 12, "{port}");
    }
    // Of every frame that came in the first node has seen; the runtime table adds up to the ports.
    let runtime = forwarder.does(&["show", "runtime", "--json", "--interval", "0"]).json();
    let nodes = runtime["lcores"][0]["nodes"].as_array().unwrap().clone();
    let vectors = |name: &str| nodes.iter().find(|n| n["name"] == name).map(|n| n["vectors"].as_u64().unwrap());
    let received: u64 =
        forwarder.show("ports").as_array().unwrap().iter().map(|p| p["rx_frames"].as_u64().unwrap()).sum();
    assert!(vectors("rx").unwrap() <= received && vectors("ip-local").unwrap() > 12, "{runtime}");
    let drops = forwarder.show("drops");
    // Three traces of two hops, each of whose first probes died here.
    assert!(drops["drops"]["ip4-ttl"].as_u64().unwrap() >= 2, "{drops}");
    assert!(drops["drops"]["ip6-hop-limit"].as_u64().unwrap() >= 2, "{drops}");

    for (what, word) in [
        ("runtime", "clocks/vector"),
        ("ports", "eth:d1"),
        ("drops", "ip4-ttl"),
        ("interfaces", "10.0.1.1/24"),
        ("routes", "2001:db8:0:1::/64"),
        ("neighbours", STATION[1]),
    ] {
        let text = forwarder.does(&["show", what]).stdout;
        assert!(text.contains(word), "{what}: {text}");
    }
    let mut words = Words::new();
    for what in ["labels", "networks", "fdb"] {
        assert!(rows(what).is_empty(), "{what}");
        words.add(what, &forwarder.does(&["show", what]).stdout);
    }
    insta::assert_snapshot!(words);
    let few = forwarder.does(&["show", "routes", "--json", "--limit", "2"]).json();
    assert_eq!(few["rows"].as_array().unwrap().len(), 2);
    assert!(few["of"].as_u64().unwrap() > 2, "{few}");
    // As its help says: the sum since the start.
    forwarder.does(&["show", "runtime", "--interval", "0"]);
}

/// Numbered frames from the first host's port to the second's, by way of the router.
struct Stream {
    from: RawPort,
    to: RawPort,
    sent: u32,
    seen: HashSet<u32>,
}

impl Stream {
    fn new(bench: &Bench) -> Self {
        let [from, to] = [0, 1].map(|n: usize| RawPort::open(&bench.hosts[n], "eth0"));
        Self { from, to, sent: 0, seen: HashSet::new() }
    }

    /// Sends 2,000 frames a second for as long as `while_` runs elsewhere, and takes in what arrives.
    fn run(&mut self, dst: &str, while_: impl FnOnce() + Send) {
        std::thread::scope(|s| {
            let job = s.spawn(while_);
            while !job.is_finished() {
                self.send(dst);
                self.take();
                std::thread::sleep(Duration::from_micros(500));
            }
            job.join().unwrap();
        });
    }

    fn send(&mut self, dst: &str) {
        let payload = [&b"numbered"[..], &self.sent.to_be_bytes()].concat();
        let src = "10.0.0.99";
        let packet = ip4(src, dst, UDP, &udp(src, dst, 9, &payload));
        self.from.send(&eth(mac(ROUTER[0]), mac(STATION[0]), IPV4, &packet));
        self.sent += 1;
    }

    fn take(&mut self) {
        while let Some(frame) = self.to.recv() {
            if frame.get(42..50) == Some(&b"numbered"[..]) {
                assert!(self.seen.insert(u32::from_be_bytes(frame[50..54].try_into().unwrap())), "twice");
            }
        }
    }

    /// Waits for the last ones: how many were sent, and how many did not arrive.
    fn lost(&mut self) -> (u32, usize) {
        let end = Instant::now() + Duration::from_secs(5);
        while self.seen.len() < self.sent as usize && Instant::now() < end {
            self.take();
            std::thread::sleep(Duration::from_millis(5));
        }
        (self.sent, self.sent as usize - self.seen.len())
    }
}

#[test]
fn changes_stop_no_frame() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let bench = Bench::new();
    let neighbour = format!("1 10.0.1.2 {}", STATION[1]);
    let forwarder = bench.forwarder(&["--neighbour", &neighbour, "--route", "198.19.0.0/16 via 10.0.1.2"]);
    let mut stream = Stream::new(&bench);
    stream.run("198.19.3.4", || {
        for n in 0..10 {
            let prefix = format!("203.0.{n}.0/24");
            forwarder.does(&["route", "add", &prefix, "via", "10.0.0.2"]);
            forwarder.does(&["route", "replace", &prefix, "via", "10.0.1.2", "weight", "2", "via", "10.0.0.2"]);
            forwarder.does(&["neighbour", "add", "0", "10.0.0.77", "02:00:00:00:00:77"]);
            forwarder.does(&["neighbour", "del", "0", "10.0.0.77"]);
            forwarder.does(&["route", "del", &prefix]);
            // The route in use, replaced by another to the same place.
            forwarder.does(&["route", "replace", "198.19.0.0/16", "via", "10.0.1.2"]);
        }
    });
    let (sent, lost) = stream.lost();
    assert!(sent > 100 && lost == 0, "{lost} of {sent} frames were lost while routes changed");

    // A hundred thousand at once, while frames go on.
    let before = forwarder.show("routes")["of"].as_u64().unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    let route = |n: u32| format!("route add {}/26 via 10.0.1.2", Ipv4Addr::from(20 << 24 | n << 6));
    let routes: Vec<String> = (0..100_000).map(route).collect();
    fs::write(file.path(), routes.join("\n")).unwrap();
    let mut done = None;
    stream.run("198.19.3.4", || done = Some(forwarder.does(&["load", file.path().to_str().unwrap()])));
    let mut words = Words::new();
    words.hide(file.path().display(), "file");
    let done = done.unwrap();
    assert!(done.stderr.contains(&routes.len().to_string()), "{}", done.stderr);
    words.add_without_figures("applied", &done.stderr);
    let (sent, lost) = stream.lost();
    assert_eq!(lost, 0, "of {sent} frames, during a load of {} routes", routes.len());
    assert_eq!(forwarder.show("routes")["of"].as_u64().unwrap(), before + routes.len() as u64);
    // They are there: frames to one of them arrive.
    stream.run("20.0.1.1", || std::thread::sleep(Duration::from_millis(50)));
    assert_eq!(stream.lost().1, 0);

    // All or none: one bad line at the end, and the route in use is still there.
    fs::write(
        file.path(),
        "route del 198.19.0.0/16\nroute add 203.0.113.0/24 via 10.0.1.2\nroute add 1.2.3.4 nonsense\n",
    )
    .unwrap();
    let refused = forwarder.operator(&["load", file.path().to_str().unwrap()]);
    words.refused_in_a_line(2, &["load"], &refused);
    insta::assert_snapshot!(words);
    stream.run("198.19.3.4", || std::thread::sleep(Duration::from_millis(50)));
    assert_eq!(stream.lost().1, 0);
    assert_eq!(forwarder.show("routes")["of"].as_u64().unwrap(), before + routes.len() as u64);
    let (left, right) = forwarder.ledger();
    assert_eq!(left, right, "the ledger of every frame");
}

#[test]
fn malformed_requests_change_nothing() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let bench = Bench::new();
    let forwarder =
        bench.forwarder(&["--route", "198.19.0.0/16 via 10.0.1.2", "--neighbour", "0 10.0.0.9 02:00:00:00:00:09"]);
    // What was configured: neighbours are learned meanwhile, and become routes and next hops.
    let tables = || {
        let rows = |what: &str| forwarder.show(what)["rows"].as_array().unwrap().clone();
        let routes = rows("routes").into_iter().filter(|r| r["origin"] != "neighbour");
        let routes = routes.map(|r| [&r["prefix"], &r["origin"], &r["paths"]].map(ToString::to_string));
        let fixed = rows("neighbours").into_iter().filter(|n| n["state"] == "static");
        (routes.collect::<Vec<_>>(), fixed.collect::<Vec<_>>(), rows("interfaces"))
    };
    let before = tables();
    assert_eq!(before.1.len(), 1);
    let (long, deep) = (vec![b'x'; 100_000], vec![b'['; 60_000]);
    let many = [&b"{\"load\":2}\nroute add 203.0.113.0/24 drop\n"[..], &long, b"\n"].concat();
    let line = |text: &str| format!("{text}\n").into_bytes();
    for bytes in [
        line("hello"),
        line("{}"),
        line("null"),
        line("[]"),
        line("\"show\""),
        line("{\"frobnicate\":1}"),
        line("{\"show\":{\"what\":\"secrets\"}}"),
        line("{\"show\":{\"what\":\"runtime\",\"more\":1}}"),
        line("{\"apply\":\"route add 203.0.113.0/24 drop\"}"),
        line("{\"apply\":[\"route add\"]}"),
        line("{\"apply\":[\"reboot now\"]}"),
        line("{\"apply\":[\"route add 203.0.113.0/24 drop\",\"route add bogus\"]}"),
        line("{\"apply\":[\"route del 198.19.0.0/16\",\"route del 198.20.0.0/16\"]}"),
        line("{\"apply\":[\"route add 203.0.113.0/24 drop\",\"address add 7 10.9.9.9/24\"]}"),
        line("{\"apply\":[\"neighbour del 0 10.0.0.9\",\"neighbour del 0 10.0.0.9\"]}"),
        line("{\"load\":-1}"),
        line("{\"load\":99999999999}"),
        line("{\"load\":3}\nroute add 203.0.113.0/24 drop"),
        line("{\"load\":1}\nroute add 203.0.113.0/24"),
        line("{\"stop\":\"now\"}"),
        line("\0\0\0\0"),
        vec![0xff, 0xfe, b'\n'],
        [&long[..], b"\n"].concat(),
        [&deep[..], b"\n"].concat(),
        many,
    ] {
        let answers = forwarder.raw_request("forward", &bytes);
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(90)]).into_owned();
        assert_eq!(answers.len(), 1, "{shown:?}: {answers:?}");
        let answer: serde_json::Value = serde_json::from_str(&answers[0]).unwrap();
        assert!(answer["error"].as_str().is_some_and(|e| !e.is_empty()), "{shown:?}: {answer}");
        assert_eq!(answer.get("ok"), None, "{shown:?}");
    }
    // Half a line is not a request and gets no answer.
    for half in ["", "{\"apply\":[\"route add 203.0.113.0/24 drop\"]}", "{\"stop\":true}", "{\"load\":5"] {
        assert!(forwarder.raw_request("forward", half.as_bytes()).is_empty(), "{half}");
    }
    // After a refusal the same client may go on.
    let answers = forwarder.raw_request("forward", b"what?\n{\"show\":{\"what\":\"drops\",\"json\":true}}\n");
    assert!(answers.len() == 2 && answers[1].starts_with("{\"ok\":"), "{answers:?}");

    let mut words = Words::new();
    for (args, told) in [
        (&["route", "add", "198.19.0.0/16", "via", "10.0.1.2"][..], "198.19.0.0/16"),
        (&["route", "add", "203.0.113.0/33", "drop"], "203.0.113.0/33"),
        (&["route", "add", "203.0.113.7/24", "drop"], "203.0.113.7/24"),
        (&["route", "add", "203.0.113.0/24", "via", "172.16.0.1"], "172.16.0.1"),
        (&["route", "add", "203.0.113.0/24", "port", "9"], "9"),
        (&["route", "del", "203.0.113.0/24"], "203.0.113.0/24"),
        (&["route", "change", "203.0.113.0/24", "drop"], "change"),
        (&["address", "add", "0", "10.0.0.1/24"], "10.0.0.1"),
        (&["neighbour", "add", "0", "10.0.0.5", "ff:ff:ff:ff:ff:ff"], "ff:ff:ff:ff:ff:ff"),
        (&["label", "add", "16", "swap", "2000000", "via", "10.0.1.2"], "2000000"),
        (&["route", "add", "10.7.0.0/16"], "10.7.0.0/16"),
        (&["show", "runtime", "--interval", "61s"], "61s"),
    ] {
        let refused = forwarder.operator(args);
        assert!(refused.stderr.contains(told), "{args:?}: {refused:?}");
        words.refused(2, args, &refused);
    }
    assert_eq!(tables(), before);
    insta::assert_snapshot!(words);
}

#[test]
fn sockets_are_private_and_end_with_their_owner() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let benches = [Bench::new(), Bench::new()];
    let dir = tempfile::tempdir().unwrap();
    let mut first = Forwarder::start_in(&benches[0].router, dir.path(), &PORTS);
    let socket = first.socket("forward");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&socket), mode(socket.parent().unwrap())), (0o600, 0o700));

    // Another one beside it, without a name, is found under its process id; then a name must be said.
    let mut second = Forwarder::start_in(&benches[1].router, dir.path(), &[&PORTS[..], &["--cpus", "0"]].concat());
    let name = format!("forward-{}", second.process().id());
    assert_eq!(mode(&second.socket(&name)), 0o600);
    let refused = first.operator(&["show", "drops"]);
    assert!(refused.code == 2 && refused.stderr.contains(&name), "{refused:?}");
    second.does(&["show", "drops", "--name", &name]);
    let nobody = first.operator(&["show", "drops", "--name", "nobody"]);
    assert!(nobody.code == 4 && nobody.stderr.contains(&name), "{nobody:?}");
    let mut words = Words::new();
    words.hide(&name, "second");
    words.hide(dir.path().display(), "dir");
    words.refused_in_a_line(2, &["several"], &refused);
    words.refused_in_a_line(4, &["nobody"], &nobody);
    first.does(&["show", "drops", "--socket", socket.to_str().unwrap()]);
    let taken = first.operator(&["l3", "--port", "eth:nothere", "--port", "eth:d1", "--name", "../x"]);
    assert!(matches!(taken.code, 2 | 4) && !dir.path().join("x.sock").exists(), "{taken:?}");

    // Asked to end by a signal, it leaves neither its socket nor anything on the interfaces.
    let files =
        |name: &str| fs::read_dir(name).map(|d| d.flatten().map(|e| e.path()).collect::<Vec<_>>()).unwrap_or_default();
    let quiet = |ns: &Netns| !run(&["ip", "-n", ns.name(), "-d", "link"]).contains("xdp");
    assert_eq!(second.end_by("TERM").unwrap().code(), Some(0), "{}", second.process().tail());
    assert!(quiet(&benches[1].router), "{}", run(&["ip", "-n", benches[1].router.name(), "-d", "link"]));
    first.does(&["show", "drops"]);
    let id = first.process().id();
    assert_eq!(first.end_by("INT").unwrap().code(), Some(0), "{}", first.process().tail());
    assert!(quiet(&benches[0].router));
    assert!(files(dir.path().join("linerate").to_str().unwrap()).is_empty());
    let ours = |path: &Path| path.to_string_lossy().contains(&id.to_string());
    assert!(!files("/run/dpdk").iter().chain(&files("/dev/hugepages")).any(|p| ours(p)), "DPDK's files");
    let none = first.operator(&["show", "drops"]);
    words.refused_in_a_line(4, &["none"], &none);
    insta::assert_snapshot!(words);

    // One that is killed cannot clean up: the next one takes its place, and its name.
    let mut killed = Forwarder::start_in(&benches[0].router, dir.path(), &PORTS);
    assert_eq!(killed.end_by("KILL").unwrap().code(), None);
    assert!(socket.exists());
    // DPDK's runtime directory of a killed process stays; it is ours to remove.
    let left = format!("/run/dpdk/linerate{}", killed.process().id());
    fs::remove_dir_all(&left).unwrap_or_else(|e| panic!("{left}: {e}"));
    let mut next = Forwarder::start_in(&benches[0].router, dir.path(), &PORTS);
    let mut sockets = files(dir.path().join("linerate").to_str().unwrap());
    sockets.retain(|path| path.extension().is_some_and(|e| e == "sock"));
    assert_eq!(sockets, std::slice::from_ref(&socket));
    next.does(&["stop"]);
    assert!(files(dir.path().join("linerate").to_str().unwrap()).is_empty(), "it has ended");
    assert_eq!(next.process().wait_end(Duration::from_secs(1)).unwrap().code(), Some(0));
}
