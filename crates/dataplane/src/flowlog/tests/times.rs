//! The times that frames have.

use packet::heap::HeapPool;

use super::*;

const SYN: u8 = 2;
const ACK: u8 = 0x10;
/// Ticks that a frame takes to the server, and its answer back.
const TRIP: u64 = 800;

fn tcp(from: u8, to: u8, flags: u8, sequence: u8) -> Vec<u8> {
    let mut frame = udp(from, to, 53);
    frame[23] = 6;
    frame[38..48].copy_from_slice(&[0, 0, 0, sequence, 0, 0, 0, 0, 0x50, flags]);
    frame
}

/// A cable whose other end is a server that answers while the frame is sent, as the kernel does over veth.
struct Server {
    cable: HeapWire,
    far: HeapWire,
    pool: HeapPool,
    clock: FakeClock,
}

impl Tx for Server {
    type Buf = HeapBuf;
    fn tx(&mut self, burst: &mut Burst<HeapBuf>) -> usize {
        let syn = burst.iter().any(|frame: &HeapBuf| frame.data()[47] == SYN);
        let sent = self.cable.tx(burst);
        if syn {
            self.clock.advance(TRIP);
            self.far.tx(&mut self.pool.frame(&tcp(2, 1, SYN | ACK, 9)).into_iter().collect());
        }
        sent
    }
}

#[test]
fn an_answer_that_comes_while_a_frame_is_sent_has_a_time_of_its_own() {
    // Nodes timed in every poll, in few, in none.
    for (node_clocks, node_sample) in [(true, 1), (true, 1000), (false, 1)] {
        let spec = TableSpec { details: true, ..TableSpec::new(1024) };
        let base = Timebase::new(0, 0, 1_000_000_000);
        let (worker, _reader, mut ended) = table(&spec, Heap::new(spec.words()), base, 64).unwrap();
        let decode = DecodeSpec { biflow: true, ..DecodeSpec::default() };
        let function = FlowLog::new(2, false, decode, worker, NoPrefetch);
        let ((mut client, near), (far, cable)) = (HeapWire::pair(64), HeapWire::pair(64));
        let (pool, clock) = (HeapPool::new(64, 2048), FakeClock::new(1_000_000_000));
        let server = |cable: &HeapWire| Server {
            cable: cable.clone(),
            far: far.clone(),
            pool: pool.clone(),
            clock: clock.clone(),
        };
        let inputs = [&near, &cable].into_iter().enumerate();
        let inputs = inputs.map(|(port, queue)| Input { port, queue_id: 0, queue: queue.clone() }).collect();
        let settings = Settings { node_clocks, node_sample, ..Settings::default() };
        let mut loops = Forwarder::new(function, inputs, vec![server(&near), server(&cable)], clock.clone(), settings);
        clock.advance(5000);
        client.tx(&mut pool.frame(&tcp(1, 2, SYN, 3)).into_iter().collect());
        assert_eq!(loops.poll_once(), 2, "SYN and answer in one poll");
        clock.advance(320);
        client.tx(&mut pool.frame(&tcp(1, 2, ACK, 4)).into_iter().collect());
        assert_eq!(loops.poll_once(), 1);
        loops.finish();
        while !loops.function_mut().flush(256) {}
        let found = records(&mut ended);
        let [flow] = found[..] else { panic!("{found:?}") };
        let details = flow.details.unwrap();
        assert_eq!(
            (details.server_rtt_ns, details.client_rtt_ns),
            (Some(TRIP), Some(320)),
            "{node_clocks} {node_sample}"
        );
        assert_eq!((flow.first, flow.last), (5000, 5000 + TRIP + 320));
    }
}

#[test]
fn frames_of_several_captures_have_the_lengths_on_the_wire_and_the_times_of_reading() {
    for details in [false, true] {
        let spec = TableSpec { details, ..TableSpec::new(1024) };
        let base = Timebase::new(0, 0, 1_000_000_000);
        let (worker, reader, _ended) = table(&spec, Heap::new(spec.words()), base, 64).unwrap();
        let mut function = FlowLog::new(3, false, DecodeSpec::default(), worker, NoPrefetch);
        for (port, on_wire) in [(0, 1000), (1, 2000)] {
            let captured = Arc::new(Captured::default());
            (0..packet::BURST).for_each(|i| captured.set(i, 77_000_000_000, on_wire));
            function = function.captured_lengths(port, captured);
        }
        let counters = function.ports();
        let (ends, inner): (Vec<_>, Vec<_>) = (0..3).map(|_| HeapWire::pair(100)).unzip();
        let inputs =
            inner.iter().cloned().enumerate().map(|(port, queue)| Input { port, queue_id: 0, queue }).collect();
        let clock = FakeClock::new(1_000_000_000);
        let mut loops = Forwarder::new(function, inputs, inner.clone(), clock.clone(), Settings::default());
        let pool = HeapPool::new(100, 2048);
        clock.advance(5000);
        for (port, mut end) in (1u16..).zip(ends) {
            end.tx(&mut (0..2).filter_map(|_| pool.frame(&udp(1, 2, port))).collect());
        }
        while loops.poll_once() > 0 {}
        let mut flows = Vec::new();
        reader.scan(0, u64::MAX, &mut |_, f| flows.push((f.key.dport, f.forward.frame_bytes, f.first)));
        flows.sort_unstable();
        assert_eq!(flows, [(1, 2000, 5000), (2, 4000, 5000), (3, 120, 5000)], "details: {details}");
        assert_eq!([0, 1, 2].map(|port: usize| counters[port].read().bytes), [2000, 4000, 120]);
    }
}
