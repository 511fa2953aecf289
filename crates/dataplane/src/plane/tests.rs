use packet::{heap::HeapPool, Burst, FakeClock, MacAddr};

use super::*;
use crate::{fib::Small, node::NodeTimer, tables::Next, Dispatch, Function, Outputs};

const STATIONS: [MacAddr; 2] = [MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2])];

fn plane(spec: &PlaneSpec) -> Result<Plane, SpecError> {
    Plane::new(spec, &[PortInfo::default(); 2], Box::new(Small))
}

#[test]
fn every_benchmark_is_a_plane_that_survives_its_file() {
    for kind in FunctionKind::ALL {
        assert_eq!(kind.to_string().parse(), Ok(kind));
        let spec = PlaneSpec::benchmark(kind, STATIONS);
        let text = toml::to_string(&spec.effective()).unwrap();
        assert_eq!(toml::from_str::<PlaneSpec>(&text).unwrap(), spec.effective(), "{text}");
        let plane = plane(&spec.effective()).unwrap();
        assert_eq!(plane.config().collect::<Vec<_>>().len(), spec.items().count());
    }
    let plane = plane(&PlaneSpec::benchmark(FunctionKind::Mpls, STATIONS)).unwrap();
    let shown: Vec<_> = plane.config().map(|item| item.to_string()).collect();
    assert_eq!(
        shown,
        [
            "198.18.0.0/16 port 0 mac 02:00:00:00:00:01",
            "198.19.0.0/16 port 1 mac 02:00:00:00:00:02",
            "2001:2:0:1::/64 port 0 mac 02:00:00:00:00:01",
            "2001:2:0:2::/64 port 1 mac 02:00:00:00:00:02",
            "16 swap 17 port 1 mac 02:00:00:00:00:02",
            "17 swap 16 port 0 mac 02:00:00:00:00:01",
        ]
    );
    let tables = plane.tables();
    let to = tables.adjacencies[tables.route4([198, 19, 7, 7].into(), 0) as usize];
    assert_eq!((to.next, to.port, to.macs[5]), (Next::Forward, 1, 2));
}

#[test]
fn a_file_says_what_is_wrong_with_it() {
    let mut shown = String::new();
    for text in [
        "kind = 'l4'",
        "kind = 'l3'\nrouts = []",
        "kind = 'l3'\nroutes = ['10.0.0.0/8 to 1.2.3.4']",
        "kind = 'l3'\nneighbour_age = '0s'",
    ] {
        let error = toml::from_str::<PlaneSpec>(text).unwrap_err();
        shown += &format!("{text}\n    {}\n", error.message());
    }
    for (text, what) in [
        ("kind = 'l2'\nroutes = ['10.0.0.0/8 drop']", "key"),
        ("kind = 'l3'\nlabels = ['16 drop']", "key"),
        ("kind = 'bridge'\nfdb = ['10 02:00:00:00:00:01 1.2.3.4']", "fdb[0]"),
        ("kind = 'bridge'\nbridge_entries = 0", "bridge_entries"),
        ("kind = 'l3'\nroutes = ['10.0.0.0/8 drop', '11.0.0.0/8 via 1.2.3.4']", "routes[1]"),
    ] {
        let error = plane(&toml::from_str(text).unwrap()).unwrap_err();
        assert_eq!(error.what, what, "{error}");
        shown += &format!("{text}\n    {error}\n");
    }
    insta::assert_snapshot!("wrong_files", shown);
}

#[test]
fn changes_fit_the_function() {
    let mut plane = plane(&PlaneSpec::new(FunctionKind::Bridge)).unwrap();
    let learned = packet::MacAddr([2, 0, 0, 0, 0, 2]);
    plane.fdb().learn(0, learned, 1, 1_000);
    let mut shown = String::new();
    for (line, kind) in [
        ("route add 10.0.0.0/8 drop", OpErrorKind::Invalid),
        ("fdb add 10 02:00:00:00:00:01 1.2.3.4", OpErrorKind::Invalid),
        ("fdb del 10 02:00:00:00:00:01", OpErrorKind::Invalid),
        ("fdb del 02:00:00:00:00:02", OpErrorKind::Learned),
        ("fdb del 02:00:00:00:00:03", OpErrorKind::NotThere),
    ] {
        let error = plane.apply(&[line.parse().unwrap()]).unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        shown += &format!("{error}\n");
    }
    insta::assert_snapshot!("refused_changes", shown);
    assert_eq!(plane.fdb().lookup(0, learned, 1_000), Some(1), "what is learned stays");
    plane.apply(&["fdb add 02:00:00:00:00:01 1".parse().unwrap()]).unwrap();
    assert_eq!(plane.config().map(|item| item.to_string()).collect::<Vec<_>>(), ["02:00:00:00:00:01 1"]);
}

#[test]
fn functions_are_of_their_kind() {
    let pool = HeapPool::new(8, 64);
    for (kind, swapped) in [(FunctionKind::Pass, false), (FunctionKind::L2, false), (FunctionKind::L2MacSwap, true)] {
        let mut function = plane(&PlaneSpec::new(kind)).unwrap().function(pool.clone(), 1_000, 0);
        let frame = [[1u8; 6], [2; 6], [8; 6]].concat();
        let mut burst: Burst<_> = pool.frame(&frame).into_iter().collect();
        let clock = FakeClock::new(1_000);
        let mut out = Outputs::new(2);
        let dispatch = function.process(0, &mut burst, &mut out, &mut NodeTimer::start(&clock, 0, true));
        assert_eq!(dispatch, Dispatch::All(1));
        assert_eq!(packet::Buffer::data(&burst[0])[0] == 2, swapped);
    }
    assert_eq!(pool.in_use(), 0);
}

/// An IPv4 UDP frame to this address, with a right header checksum.
fn udp(dst: [u8; 4]) -> Vec<u8> {
    let mut frame = Vec::new();
    etherparse::PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 9])
        .ipv4([198, 18, 0, 1], dst, 64)
        .udp(1, 2)
        .write(&mut frame, &[0; 18])
        .unwrap();
    frame
}

#[test]
fn the_benchmarks_forward() {
    let pool = HeapPool::new(64, 256);
    for kind in [FunctionKind::L3, FunctionKind::Mpls, FunctionKind::Vxlan] {
        let plane = plane(&PlaneSpec::benchmark(kind, STATIONS)).unwrap();
        let mut function = plane.function(pool.clone(), 1_000_000, 0);
        let clock = FakeClock::new(1_000);
        let mut out = Outputs::new(2);
        let mut burst: Burst<_> = pool.frame(&udp([198, 19, 0, 9])).into_iter().collect();
        Function::<packet::heap::HeapBuf>::due(&mut function);
        let dispatch = function.process(0, &mut burst, &mut out, &mut NodeTimer::start(&clock, 0, true));
        let frame = match dispatch {
            Dispatch::All(1) => burst.pop().unwrap(),
            _ => out.port(1).unwrap().pop().unwrap_or_else(|| panic!("{kind}: {:?}", out.drops.counters())),
        };
        assert_eq!(packet::Buffer::data(&frame)[5], 2, "{kind}: to station 1");
    }
}

#[test]
fn a_neighbour_that_answers_is_learned_and_forwarded_to() {
    let spec = "kind = 'l3'\naddresses = ['0 198.18.0.254/16', '1 198.19.0.254/16']\ncheck_mac = false";
    let mut plane = plane(&toml::from_str(spec).unwrap()).unwrap();
    let pool = HeapPool::new(64, 256);
    let mut function = plane.function(pool.clone(), 1_000_000, 0);
    let mut out = Outputs::new(2);
    let clock = FakeClock::new(1_000_000);
    let mut run = |function: &mut AnyFunction<HeapPool>, ingress, frame: &[u8]| {
        let mut burst: Burst<_> = pool.frame(frame).into_iter().collect();
        Function::<packet::heap::HeapBuf>::due(function);
        let dispatch = function.process(ingress, &mut burst, &mut out, &mut NodeTimer::start(&clock, 0, true));
        let mut sent: Vec<Vec<u8>> = burst.drain(..).map(|f| packet::Buffer::data(&f).to_vec()).collect();
        for port in 0..2 {
            sent.extend(out.port(port).unwrap().drain(..).map(|f| packet::Buffer::data(&f).to_vec()));
        }
        (dispatch, sent)
    };
    let (_, asked) = run(&mut function, 0, &udp([198, 19, 0, 9]));
    assert_eq!(asked.len(), 1, "an ARP request");
    assert_eq!(asked[0][12..14], [8, 6]);
    assert_eq!(Function::<packet::heap::HeapBuf>::held(&function), 1);
    let mut reply = asked[0].clone();
    reply[21] = 2;
    let (ours, theirs) = (asked[0][22..32].to_vec(), [2, 0, 0, 0, 0, 7, 198, 19, 0, 9]);
    reply[22..32].copy_from_slice(&theirs);
    reply[32..42].copy_from_slice(&ours);
    reply[0..6].copy_from_slice(&ours[..6]);
    reply[6..12].copy_from_slice(&theirs[..6]);
    run(&mut function, 1, &reply);
    plane.tick(Duration::from_secs(1));
    assert_eq!(plane.neighbours().map(|n| n.addr.to_string()).collect::<Vec<_>>(), ["198.19.0.9"]);
    let error = plane.apply(&["neighbour del 1 198.19.0.9".parse().unwrap()]).unwrap_err();
    assert_eq!(error.kind, OpErrorKind::Learned, "{error}");
    let (_, sent) = run(&mut function, 0, &udp([198, 19, 0, 9]));
    assert_eq!((sent.len(), sent[0][5]), (1, 7));
}
