//! The flow logger: frames pass from port to port unchanged, and every flow they belong to is counted.

mod counters;
#[cfg(test)]
mod tests;

use std::{
    ops::Deref,
    sync::{atomic::AtomicU64, Arc},
};

use flow::{
    decode::{DecodeSpec, Decoded, Decoder, NotIp, Packet4, Packet6},
    table::{Prefetch, Worker},
    PacketDetails, Sampler,
};
use packet::{Buffer, Burst, Captured, Clock};

pub use self::counters::{PortCounters, PortCounts};
use crate::{
    node::{NodeStats, NodeTimer},
    pass::PREFETCH_AHEAD,
    Dispatch, DropReason, Function, Outputs,
};

/// Most places of the table looked at in one go for flows that have ended: some 20 us when all of them have to be fetched.
const AGE_BUDGET: usize = 256;
/// Ageing goes on once every `AGE_EVERY` polls. A table of 2^24 places has to go on by ten places in each busy poll.
const AGE_EVERY: u32 = 4;
/// Where the packet begins in a plain frame.
const PLAIN: usize = 14;
/// Which frames a random sample has: the same in each run over a capture.
const SAMPLER_SEED: u64 = 0;

/// Counts the flows of all frames one lcore receives, and passes the frames on.
///
/// Frames of each port leave by the other of its pair: 0 and 1, 2 and 3. A last port without another drops what it has
/// counted ([`DropReason::Logged`]), or sends it back by itself.
pub struct FlowLog<M, P> {
    /// By port; none for a port that only receives.
    egress: Vec<Option<usize>>,
    decoder: Decoder,
    /// If not all frames are counted.
    sampler: Option<Sampler>,
    worker: Worker<M>,
    prefetch: P,
    packets: Box<Packets>,
    ports: Vec<Arc<PortCounters>>,
    /// By port: what its capture says of its frames, if it reads one.
    captured: Vec<Option<Arc<Captured>>>,
    /// Whether flows have the times of the capture.
    timed: bool,
    /// By port: the length from which on a frame may have been cut.
    cut_lengths: Vec<u32>,
    polls: u32,
    decode: NodeStats,
    table: NodeStats,
    age: NodeStats,
}

/// The port at which frames leave that came in at `port`, of `ports`: the other one of its pair, or for a last port
/// without another itself, if it sends back.
pub fn egress(port: usize, ports: usize, reflect: bool) -> Option<usize> {
    if port ^ 1 < ports {
        Some(port ^ 1)
    } else {
        reflect.then_some(port)
    }
}

/// What was decoded of a burst.
#[derive(Default)]
struct Packets {
    v4: Burst<Packet4>,
    v6: Burst<Packet6>,
    /// When each of them was captured.
    times4: Burst<u64>,
    times6: Burst<u64>,
    /// The details of each, if they are recorded.
    more4: Burst<PacketDetails>,
    more6: Burst<PacketDetails>,
}

impl Packets {
    #[inline]
    fn clear(&mut self) {
        self.v4.clear();
        self.v6.clear();
        self.times4.clear();
        self.times6.clear();
        self.more4.clear();
        self.more6.clear();
    }
}

impl<M, P> std::fmt::Debug for FlowLog<M, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FlowLog").field("egress", &self.egress).finish_non_exhaustive()
    }
}

impl<M, P> FlowLog<M, P>
where
    M: Deref<Target = [AtomicU64]> + Send + Sync,
    P: Prefetch,
{
    /// A logger between so many ports, whose flows go to this table. `reflect`: a port without another sends back.
    pub fn new(ports: usize, reflect: bool, spec: DecodeSpec, worker: Worker<M>, prefetch: P) -> Self {
        Self {
            egress: (0..ports).map(|port| egress(port, ports, reflect)).collect(),
            decoder: Decoder::new(spec),
            sampler: spec.sampling.map(|sampling| Sampler::new(sampling, SAMPLER_SEED)),
            worker,
            prefetch,
            packets: Box::default(),
            ports: (0..ports).map(|_| Arc::default()).collect(),
            captured: vec![None; ports],
            timed: false,
            cut_lengths: vec![u32::MAX; ports],
            polls: 0,
            decode: NodeStats::new("flow-decode"),
            table: NodeStats::new("flow-table"),
            age: NodeStats::new("flow-age"),
        }
    }

    /// Flows have the times at which a port's frames were captured, as the port tells them of the burst it handed out
    /// last, and timeouts follow them; the table's ticks are nanoseconds since the Unix epoch. Frames of other ports have
    /// the latest of these times.
    #[must_use]
    pub fn captured(self, port: usize, captured: Arc<Captured>) -> Self {
        Self { timed: true, ..self.captured_lengths(port, captured) }
    }

    /// Frames of a port have the lengths that its capture tells, of which it may hold fewer bytes. Their times are those at
    /// which they are read: for several captures at once.
    #[must_use]
    pub fn captured_lengths(mut self, port: usize, captured: Arc<Captured>) -> Self {
        if let Some(at) = self.captured.get_mut(port) {
            *at = Some(captured);
        }
        self
    }

    /// No frame passes: each port only receives, also one of a pair.
    #[must_use]
    pub fn receive_only(mut self) -> Self {
        self.egress.fill(None);
        self
    }

    /// A port cuts longer frames, and does not say which: those of this length or more are of the length in their IP header.
    #[must_use]
    pub fn cut_length(mut self, port: usize, length: u32) -> Self {
        if let Some(at) = self.cut_lengths.get_mut(port) {
            *at = length;
        }
        self
    }

    /// The counters of each port, to be read by other threads.
    pub fn ports(&self) -> Vec<Arc<PortCounters>> {
        self.ports.clone()
    }

    /// Ends some flows because the logger does, as [`Worker::flush`]; no frames may come any more. `true` when all have
    /// ended.
    pub fn flush(&mut self, budget: usize) -> bool {
        self.worker.flush(budget)
    }

    /// Decodes a burst, noting which frames had packets; returns what there was to count of its port.
    ///
    /// Each kind out of line, and in each what is rare: one loop with all of it needs more registers than there are.
    #[inline(never)]
    fn decode<B: Buffer, const LENGTHS: bool, const TIMES: bool, const SAMPLED: bool, const DETAILS: bool>(
        &mut self,
        ingress: usize,
        burst: &Burst<B>,
    ) -> PortCounts {
        self.packets.clear();
        self.worker.begin();
        let latest = self.worker.latest();
        let mut counts = PortCounts { packets: burst.len() as u64, ..PortCounts::default() };
        let mut bytes = 0;
        burst.iter().take(PREFETCH_AHEAD).for_each(Buffer::prefetch);
        for (i, frame) in burst.iter().enumerate() {
            if let Some(ahead) = burst.get(i + PREFETCH_AHEAD) {
                ahead.prefetch();
            }
            let frame = frame.data();
            let length = frame.len() as u32;
            let (time, on_wire) = if LENGTHS {
                let captured = self.captured.get(ingress).and_then(Option::as_ref);
                captured.and_then(|captured| captured.get(i)).unwrap_or((latest, length))
            } else {
                (0, length)
            };
            if TIMES {
                self.worker.follow(time);
            }
            bytes += u64::from(on_wire);
            if SAMPLED && !self.sampler.as_mut().is_none_or(Sampler::takes) {
                continue;
            }
            if DETAILS {
                self.detailed::<TIMES>(frame, on_wire, time, ingress, &mut counts);
                continue;
            }
            match self.decoder.decode_plain(frame, on_wire, ingress as u8) {
                Some(packet) => self.expect4::<TIMES>(packet, time),
                None => self.other::<TIMES>(frame, on_wire, time, ingress, &mut counts),
            }
        }
        counts.bytes += bytes;
        counts
    }

    #[inline(always)]
    fn expect4<const TIMES: bool>(&mut self, packet: Packet4, time: u64) {
        // There is room: as many as frames in a burst.
        let _ = self.packets.v4.try_push(packet);
        self.worker.expect4(&packet, &self.prefetch);
        let _ = TIMES.then(|| self.packets.times4.try_push(time));
    }

    /// A frame of any kind, whose details are recorded.
    #[inline(never)]
    fn detailed<const TIMES: bool>(
        &mut self,
        frame: &[u8],
        on_wire: u32,
        time: u64,
        ingress: usize,
        counts: &mut PortCounts,
    ) {
        let plain = self.decoder.decode_plain(frame, on_wire, ingress as u8);
        let (decoded, packet) = match plain {
            Some(packet) => (Decoded::Ip4(packet), frame.get(PLAIN..).unwrap_or_default()),
            None => {
                let on_wire = self.uncut(frame, on_wire, ingress, counts);
                self.decoder.decode_with_packet(frame, on_wire, ingress as u8)
            }
        };
        match decoded {
            Decoded::Ip4(ip4) => {
                let _ = self.packets.more4.try_push(PacketDetails::read(frame, packet));
                self.expect4::<TIMES>(ip4, time);
            }
            Decoded::Ip6(ip6) => {
                let _ = self.packets.more6.try_push(PacketDetails::read(frame, packet));
                self.expect6::<TIMES>(ip6, time);
            }
            Decoded::NotIp(kind) => self.not_ip(kind, frame, ingress, counts),
            Decoded::Malformed => counts.malformed += 1,
        }
    }

    #[inline(always)]
    fn expect6<const TIMES: bool>(&mut self, packet: Packet6, time: u64) {
        self.worker.expect6(&packet, &self.prefetch);
        let _ = self.packets.v6.try_push(packet);
        let _ = TIMES.then(|| self.packets.times6.try_push(time));
    }

    /// Bytes on the wire of a frame that is not a whole plain one: more than it has if the port has cut it.
    #[inline(always)]
    fn uncut(&self, frame: &[u8], on_wire: u32, ingress: usize, counts: &mut PortCounts) -> u32 {
        let at = self.cut_lengths.get(ingress).copied().unwrap_or(u32::MAX);
        if (frame.len() as u32) < at {
            on_wire
        } else {
            claimed(frame, on_wire, counts)
        }
    }

    /// A frame other than IP.
    fn not_ip(&self, kind: NotIp, frame: &[u8], ingress: usize, counts: &mut PortCounts) {
        counts.not_ip(kind);
        if kind == NotIp::Other {
            if let Some((port, ether_type)) = self.ports.get(ingress).zip(Decoder::ether_type(frame)) {
                port.add_type(ether_type);
            }
        }
    }

    /// A frame other than plain IPv4.
    #[inline(never)]
    fn other<const TIMES: bool>(
        &mut self,
        frame: &[u8],
        on_wire: u32,
        time: u64,
        ingress: usize,
        counts: &mut PortCounts,
    ) {
        let on_wire = self.uncut(frame, on_wire, ingress, counts);
        match self.decoder.decode_other(frame, on_wire, ingress as u8) {
            Decoded::Ip4(packet) => self.expect4::<TIMES>(packet, time),
            Decoded::Ip6(packet) => self.expect6::<TIMES>(packet, time),
            Decoded::NotIp(kind) => self.not_ip(kind, frame, ingress, counts),
            Decoded::Malformed => counts.malformed += 1,
        }
    }
}

/// Bytes on the wire of a frame that the port may have cut; counts it if so.
#[cold]
fn claimed(frame: &[u8], on_wire: u32, counts: &mut PortCounts) -> u32 {
    let Some(claimed) = Decoder::claimed_length(frame).filter(|claimed| *claimed > on_wire) else { return on_wire };
    counts.cut += 1;
    counts.bytes += u64::from(claimed - on_wire);
    claimed
}

impl<B, M, P> Function<B> for FlowLog<M, P>
where
    B: Buffer,
    M: Deref<Target = [AtomicU64]> + Send + Sync,
    P: Prefetch,
{
    #[inline]
    fn process<C: Clock>(
        &mut self,
        ingress: usize,
        burst: &mut Burst<B>,
        out: &mut Outputs<B>,
        timer: &mut NodeTimer<'_, C>,
    ) -> Dispatch {
        let timed = self.timed;
        let lengths = timed || self.captured.get(ingress).is_some_and(Option::is_some);
        // Not the time of the poll: sending the burst of one port can take until the answer arrives at the other.
        let now = if timed { 0 } else { timer.began() };
        let details = self.worker.has_details();
        let counts = match (lengths, timed, self.sampler.is_some(), details) {
            (false, _, false, false) => self.decode::<B, false, false, false, false>(ingress, burst),
            (false, _, true, false) => self.decode::<B, false, false, true, false>(ingress, burst),
            (false, _, _, true) => self.decode::<B, false, false, true, true>(ingress, burst),
            (true, false, _, false) => self.decode::<B, true, false, true, false>(ingress, burst),
            (true, false, _, true) => self.decode::<B, true, false, true, true>(ingress, burst),
            (true, true, _, false) => self.decode::<B, true, true, true, false>(ingress, burst),
            (true, true, _, true) => self.decode::<B, true, true, true, true>(ingress, burst),
        };
        if let Some(port) = self.ports.get(ingress) {
            port.add(counts);
        }
        timer.end_node(&mut self.decode, burst.len());
        let Packets { v4, v6, times4, times6, more4, more6 } = &*self.packets;
        if details && timed {
            self.worker.count4_at_with(v4, more4, times4, ingress as u8, &self.prefetch);
            self.worker.count6_at_with(v6, more6, times6, ingress as u8, &self.prefetch);
        } else if details {
            self.worker.count4_with(v4, more4, ingress as u8, now, &self.prefetch);
            self.worker.count6_with(v6, more6, ingress as u8, now, &self.prefetch);
        } else if timed {
            self.worker.count4_at(v4, times4, ingress as u8, &self.prefetch);
            self.worker.count6_at(v6, times6, ingress as u8, &self.prefetch);
        } else {
            if !v4.is_empty() {
                self.worker.count4(v4, ingress as u8, now, &self.prefetch);
            }
            if !v6.is_empty() {
                self.worker.count6(v6, ingress as u8, now, &self.prefetch);
            }
        }
        timer.end_node(&mut self.table, v4.len() + v6.len());
        match self.egress.get(ingress) {
            Some(&Some(egress)) => out.all(egress, burst),
            Some(None) => {
                out.drops.drop_all(burst, DropReason::Logged);
                Dispatch::Split
            }
            None => out.all(usize::MAX, burst),
        }
    }

    #[inline]
    fn due(&mut self) -> bool {
        self.polls = if self.polls + 1 < AGE_EVERY { self.polls + 1 } else { 0 };
        self.polls == 0
    }

    #[inline]
    fn poll<C: Clock>(
        &mut self,
        _burst: &mut Burst<B>,
        _out: &mut Outputs<B>,
        timer: &mut NodeTimer<'_, C>,
    ) -> Dispatch {
        let now = if self.timed { self.worker.latest() } else { timer.now() };
        let looked = self.worker.age(now, AGE_BUDGET);
        if looked > 0 {
            timer.end_node(&mut self.age, looked);
        }
        Dispatch::Split
    }

    fn nodes(&self, visit: &mut dyn FnMut(&NodeStats)) {
        [&self.decode, &self.table, &self.age].into_iter().for_each(visit);
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        let mut all = PortCounts::default();
        self.ports.iter().for_each(|port| all += port.read());
        let counts = self.worker.counts();
        visit("flow: not IP", all.not_ip.iter().sum());
        visit("flow: malformed", all.malformed);
        visit("flow: cut frames", all.cut);
        visit("flow: packets refused", counts.refused_packets);
        visit("flow: flows evicted", counts.evicted);
        visit("flow: records dropped", counts.dropped_records);
    }
}
