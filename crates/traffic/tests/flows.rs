//! Flow programs: every frame is of the flow the program says, and the tally is what really went out.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    ops::ControlFlow,
    sync::Arc,
};

use common::{five_tuple, v4_udp, v6_udp, verify};
use packet::{
    frame::{HeaderSpec, L4Spec},
    heap::{HeapBuf, HeapPool, HeapWire},
    Buffer, Burst, FakeClock, Rx,
};
use proptest::prelude::*;
use traffic::{
    control::{Control, Timing},
    flows::{FlowSpec, Program, Share, Tuple},
    generator::Generator,
    pacer::Pacer,
    stream::{StreamError, StreamSpec},
    worker::{RxTask, TxTask, Worker},
};
use units::{Fps, FrameSize};

fn stream(headers: HeaderSpec) -> StreamSpec {
    StreamSpec { seed: 7, ..StreamSpec::constant(headers, FrameSize::new(128).unwrap()) }
}

fn tcp(headers: HeaderSpec) -> HeaderSpec {
    HeaderSpec { l4: L4Spec::Tcp { src: 1000, dst: 80, flags: 0x10 }, ..headers }
}

fn program(text: &str, stream: &StreamSpec) -> Arc<Program> {
    Arc::new(Program::new(&text.parse::<FlowSpec>().unwrap(), stream).unwrap())
}

/// What a frame says, read anew.
fn read(frame: &[u8]) -> Tuple {
    let bytes = five_tuple(&frame[14..]);
    let word = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    if bytes.len() == 13 {
        let address = |at: usize| IpAddr::V4(Ipv4Addr::new(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]));
        Tuple { src: address(0), dst: address(4), sport: word(8), dport: word(10), protocol: bytes[12] }
    } else {
        let address = |at: usize| IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(&bytes[at..at + 16]).unwrap()));
        Tuple { src: address(0), dst: address(16), sport: word(32), dport: word(34), protocol: bytes[36] }
    }
}

/// The next frames of a generator, made in bursts of this size.
fn frames(generator: &mut Generator, n: usize, burst: usize) -> Vec<Vec<u8>> {
    let pool = HeapPool::new(n, 256);
    let template = generator.template().to_vec();
    let mut bufs: Vec<HeapBuf> = (0..n).filter_map(|_| pool.frame(&template)).collect();
    for chunk in bufs.chunks_mut(burst) {
        generator.fill(chunk, 99);
    }
    bufs.iter().map(|buf| buf.data().to_vec()).collect()
}

const PROGRAMS: [&str; 7] = [
    "constant:13",
    "constant:1",
    "zipf:50,s=1.1",
    "churn:1000,packets=1",
    "churn:1000,packets=5",
    "churn:1000,packets=4,life=12ms",
    "scan:3,5",
];

#[test]
fn every_frame_is_of_its_flow() {
    for text in PROGRAMS {
        for headers in [v4_udp(), v6_udp(), tcp(v4_udp()), tcp(v6_udp())] {
            let stream = stream(headers);
            let program = program(text, &stream);
            let mut generator = Generator::with_flows(&stream, &program, 1, 1, true).unwrap();
            let made = frames(&mut generator, 300, 7);
            let mut n = 0;
            program.replay(300, |frame, flow| {
                assert_eq!(frame, n as u64);
                verify(&made[n][14..]);
                let tuple = read(&made[n]);
                assert_eq!(tuple, program.keys().tuple(flow), "{text}, frame {n}");
                assert_eq!(program.keys().find(&tuple), Some(flow), "{text}, frame {n}");
                n += 1;
                ControlFlow::Continue(())
            });
            assert_eq!(n, 300);
        }
    }
}

/// Frames of each flow, counted one by one.
fn counted(program: &Program, frames: u64) -> HashMap<u64, Share> {
    let mut shares: HashMap<u64, Share> = HashMap::new();
    program.replay(frames, |n, flow| {
        let share = shares.entry(flow).or_insert(Share { packets: 0, first: n, last: n });
        (share.packets, share.last) = (share.packets + 1, n);
        ControlFlow::Continue(())
    });
    shares
}

proptest! {
    #[test]
    fn the_tally_is_what_counting_gives(
        kind in 0usize..4, a in 1u64..40, b in 1u64..9, life in 1u64..30, frames in 0u64..600
    ) {
        let text = match kind {
            0 => format!("constant:{a}"),
            1 => format!("zipf:{a},s=0.{b}"),
            2 => format!("churn:1000,packets={b},life={life}ms"),
            _ => format!("scan:{a},{b}"),
        };
        let program = program(&text, &stream(v4_udp()));
        let (want, tally) = (counted(&program, frames), program.tally(frames));
        prop_assert!(want.keys().all(|flow| *flow < tally.flows()));
        let mut sum = 0;
        for flow in 0..tally.flows() + 3 {
            let share = tally.share(flow);
            prop_assert_eq!(share, want.get(&flow).copied().unwrap_or_default(), "{} of {} in {}", flow, frames, text);
            sum += share.packets;
        }
        prop_assert_eq!(sum, frames);
    }

    #[test]
    fn a_key_that_was_never_sent_is_of_no_flow_sent(sport: u16, host: u8, dport: u16) {
        let stream = stream(v4_udp());
        for text in ["constant:100", "scan:3,5"] {
            let program = program(text, &stream);
            let sent: HashMap<Tuple, u64> = (0..program.flows(100)).map(|i| (program.keys().tuple(i), i)).collect();
            let near = program.keys().tuple(0);
            for tuple in [Tuple { sport, ..near }, Tuple { dport, ..near }, Tuple { dst: [198, 19, 1, host].into(), ..near }] {
                let found = program.keys().find(&tuple).filter(|flow| *flow < program.flows(100));
                prop_assert_eq!(found, sent.get(&tuple).copied());
            }
        }
    }
}

#[test]
fn tcp_flags_tell_where_a_flow_begins_and_ends() {
    let stream = stream(tcp(v4_udp()));
    let flags = |text: &str, n: usize| -> Vec<u8> {
        let mut generator = Generator::with_flows(&stream, &program(text, &stream), 1, 1, false).unwrap();
        frames(&mut generator, n, 64).iter().map(|frame| frame[14 + 20 + 13]).collect()
    };
    let (syn, ack, fin) = (2, 0x10, 0x11);
    assert_eq!(flags("constant:3", 6), [syn, syn, syn, ack, ack, ack]);
    assert_eq!(flags("scan:2,2", 3), [syn; 3]);
    assert_eq!(flags("zipf:9", 3), [ack; 3]);
    // Steps 0 and 1 have nothing to end yet.
    assert_eq!(flags("churn:9,packets=3", 9), [syn, ack, ack, syn, ack, ack, syn, ack, fin]);
}

#[test]
fn what_a_full_port_refuses_is_sent_later_and_counted_once() {
    let stream = stream(v4_udp());
    let program = program("churn:1000,packets=3", &stream);
    let generator = Generator::with_flows(&stream, &program, 0, 1, true).unwrap();
    let (near, mut far) = HeapWire::pair(10);
    let (pool, clock) = (HeapPool::new(256, 256), FakeClock::new(1_000_000));
    let task = TxTask::new(near, pool.clone(), generator, Pacer::new(Fps::from_raw(1e5), 1_000_000, 10_000, 10_000));
    let control = Control::new(Timing { residual: 0, settle: 0 }, 1);
    let mut worker: Worker<_, RxTask<HeapWire>> = Worker::new(vec![task], vec![], 1000);
    control.start_at(0);
    let mut got: Vec<(Tuple, u64)> = Vec::new();
    loop {
        let goes_on = worker.turn(&clock, &control);
        if clock_at(&clock).is_multiple_of(300) || !goes_on {
            let mut burst = Burst::new();
            far.rx(&mut burst);
            got.extend(burst.iter().map(|frame| (read(frame.data()), departure(frame.data()))));
        }
        if !goes_on {
            break;
        }
        clock.advance(50);
    }
    let task = &worker.tx[0];
    let counters = task.counters();
    assert!(counters.refused > 0 && counters.sent == got.len() as u64, "{counters:?}");
    let tally = program.tally(counters.sent);
    let mut by_key: HashMap<Tuple, u64> = HashMap::new();
    for (n, (tuple, tick)) in got.iter().enumerate() {
        *by_key.entry(*tuple).or_default() += 1;
        let left = task.generator().departures().unwrap().left(n as u64, counters.sent, counters.last_tick);
        assert_eq!((left.earliest, left.latest), (*tick, *tick), "frame {n}");
    }
    for flow in 0..tally.flows() {
        let tuple = program.keys().tuple(flow);
        assert_eq!(by_key.remove(&tuple).unwrap_or(0), tally.share(flow).packets, "{flow}");
    }
    assert!(by_key.is_empty());
}

fn clock_at(clock: &FakeClock) -> u64 {
    packet::Clock::now(clock)
}

fn departure(frame: &[u8]) -> u64 {
    packet::stamp::Stamp::read(frame).unwrap().departure
}

#[test]
fn the_port_below_a_scan_is_not_of_it() {
    let program = program("scan:3,5", &stream(v4_udp()));
    let first = program.keys().tuple(0);
    assert_eq!(program.keys().find(&Tuple { sport: first.sport - 1, ..first }), None);
    let last = program.most_frames() - 1;
    assert_eq!(program.keys().find(&program.keys().tuple(last)), Some(last));
}

#[test]
fn what_cannot_be_is_refused() {
    let new = |text: &str, stream: &StreamSpec| Program::new(&text.parse().unwrap(), stream).map(|_| ());
    let bare = stream(HeaderSpec { l4: L4Spec::None, ..v4_udp() });
    assert!(matches!(new("constant:5", &bare), Err(StreamError::NoTransport { .. })));
    let busy = StreamSpec { flows: Some(4), ..stream(v4_udp()) };
    assert!(matches!(new("constant:5", &busy), Err(StreamError::Flows { asked: 4, most: 1, .. })));
    let mut high = stream(v4_udp());
    high.headers.ip =
        packet::frame::IpSpec::V4 { src: [1; 4].into(), dst: [255, 255, 255, 250].into(), ttl: 1, dscp: 0 };
    assert!(new("scan:6,1", &high).is_ok());
    assert!(matches!(new("scan:7,1", &high), Err(StreamError::Values { .. })));
}
