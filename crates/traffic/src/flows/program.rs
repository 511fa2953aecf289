use std::ops::ControlFlow;

use packet::{
    frame::{IpSpec, L4Spec},
    headers::tcp,
};

use super::{keys::Columns, zipf::Draw, FlowSpec, Keys};
use crate::{
    hash::{mix, GOLDEN},
    stream::{Field, StreamError, StreamSpec},
};

/// A flow program ready to be sent: of each frame's number its flow, of each flow its 5-tuple.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    pub(super) order: Order,
    keys: Keys,
    tcp: bool,
}

/// Which flow each frame is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Order {
    /// `n mod flows`.
    Turns { flows: u64 },
    /// Drawn by the hash of `n`.
    Drawn { draw: Draw, key: u64 },
    /// Step `t = n / packets` sends packet `j = n mod packets` of flow `t - j * apart`. Where that flow would have
    /// begun before the trial, the frame is of flow 0: no flow is cut, and none begins early.
    Steps { packets: u64, apart: u64 },
    /// `n`.
    Once,
}

/// A varying field of the frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    Field(Field),
    TcpFlags,
}

/// The fields that flows may differ in, and the flags that tell how far a flow is.
pub(crate) const COLUMNS: [Column; 5] = [
    Column::Field(Field::SrcIp),
    Column::Field(Field::DstIp),
    Column::Field(Field::SrcPort),
    Column::Field(Field::DstPort),
    Column::TcpFlags,
];

impl Program {
    /// The program for frames of this stream, whose source (or for a scan destination) is where addresses begin.
    ///
    /// Errors when the stream has no ports, varies by itself, or has fewer addresses than a scan takes. A churn without a
    /// rate is paced as at one flow a second.
    pub fn new(spec: &FlowSpec, stream: &StreamSpec) -> Result<Self, StreamError> {
        let absent = || StreamError::NoTransport { field: Field::SrcPort, headers: stream.headers.to_string() };
        if let Some(field) = stream.fields.first() {
            return Err(StreamError::Overlap { first: field.field, second: Field::SrcIp });
        }
        if let Some(asked) = stream.flows {
            return Err(StreamError::Flows { asked, most: 1, from: "with a flow program" });
        }
        let (headers, seed) = (&stream.headers, stream.seed);
        let by_source = || Keys::by_source(headers, mix(seed ^ GOLDEN)).ok_or_else(absent);
        let (order, keys) = match *spec {
            FlowSpec::Constant { flows } => (Order::Turns { flows }, by_source()?),
            FlowSpec::Zipf { flows, exponent } => {
                (Order::Drawn { draw: Draw::zipf(flows, exponent), key: mix(seed) }, by_source()?)
            }
            FlowSpec::Churn { rate, packets, life } => {
                let steps = life.map_or(0.0, |life| life.as_secs_f64() * rate.unwrap_or(1.0));
                let apart = (steps / packets.saturating_sub(1).max(1) as f64).round().clamp(1.0, 1e9) as u64;
                (Order::Steps { packets, apart }, by_source()?)
            }
            FlowSpec::Scan { hosts, ports } => (Order::Once, Keys::scan(headers, hosts, ports).ok_or_else(absent)?),
        };
        let last = keys.last_destination();
        let most = if matches!(headers.ip, IpSpec::V4 { .. }) { u32::MAX.into() } else { u64::MAX };
        if last > u128::from(most) {
            let what = format!("a scan up to {} addresses above", last);
            return Err(StreamError::values(Field::DstIp, what, "within the address space: begin lower"));
        }
        Ok(Self { order, keys, tcp: matches!(headers.l4, L4Spec::Tcp { .. }) })
    }

    /// Which flow has which 5-tuple.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The most frames before a 5-tuple is used by a second flow.
    pub fn most_frames(&self) -> u64 {
        match &self.order {
            Order::Turns { .. } | Order::Drawn { .. } => u64::MAX,
            Order::Steps { packets, .. } => self.keys.room() * packets,
            Order::Once => self.keys.room(),
        }
    }

    /// Flows that can be among the first `frames` frames: their numbers are below this.
    pub fn flows(&self, frames: u64) -> u64 {
        match &self.order {
            Order::Turns { flows } => frames.min(*flows),
            Order::Drawn { draw, .. } => draw.len(),
            Order::Steps { packets, .. } => frames.div_ceil(*packets),
            Order::Once => frames,
        }
    }

    /// The flows of frames `n`, `n + 1`, ...
    #[inline]
    pub(super) fn numbers(&self, n: u64, out: &mut [u64]) {
        match &self.order {
            Order::Turns { flows } => {
                let mut k = n % flows;
                for flow in out {
                    *flow = k;
                    k = if k + 1 == *flows { 0 } else { k + 1 };
                }
            }
            Order::Drawn { draw, key } => {
                let mut x = key.wrapping_add(n.wrapping_mul(GOLDEN));
                for flow in out {
                    *flow = draw.draw(mix(x));
                    x = x.wrapping_add(GOLDEN);
                }
            }
            Order::Steps { packets, apart } => {
                let (mut t, mut j) = (n / packets, n % packets);
                for flow in out {
                    *flow = t.saturating_sub(j * apart);
                    (t, j) = if j + 1 == *packets { (t + 1, 0) } else { (t, j + 1) };
                }
            }
            Order::Once => out.iter_mut().zip(n..).for_each(|(flow, n)| *flow = n),
        }
    }

    /// TCP flags of frames `n`, `n + 1`, ...: SYN on the first frame of a flow, FIN on its last, where the program
    /// knows them; drawn flows are seen in their midst.
    fn flags(&self, n: u64, out: &mut [u64]) {
        const ACK: u64 = tcp::ACK as u64;
        const SYN: u64 = tcp::SYN as u64;
        const FIN: u64 = (tcp::FIN | tcp::ACK) as u64;
        match &self.order {
            Order::Turns { flows } => {
                out.iter_mut().zip(n..).for_each(|(flags, n)| *flags = if n < *flows { SYN } else { ACK });
            }
            Order::Drawn { .. } => out.fill(ACK),
            Order::Steps { packets, apart } => {
                let (mut t, mut j) = (n / packets, n % packets);
                for flags in out {
                    *flags = match j {
                        0 => SYN,
                        _ if j + 1 == *packets && t >= j * apart => FIN,
                        _ => ACK,
                    };
                    (t, j) = if j + 1 == *packets { (t + 1, 0) } else { (t, j + 1) };
                }
            }
            Order::Once => out.fill(SYN),
        }
    }

    /// Whether this column varies from frame to frame.
    pub(crate) fn varies(&self, column: Column) -> bool {
        let scan = matches!(self.order, Order::Once);
        match column {
            Column::Field(Field::SrcIp) => !scan,
            Column::Field(Field::DstIp | Field::DstPort) => scan,
            Column::Field(_) => true,
            Column::TcpFlags => self.tcp,
        }
    }

    /// The column's values of frames `n`, `n + 1`, ...
    #[inline]
    pub(crate) fn values(&self, column: Column, n: u64, out: &mut [u64]) {
        let Column::Field(field) = column else { return self.flags(n, out) };
        self.numbers(n, out);
        let pick: fn(Columns) -> u64 = match field {
            Field::SrcIp => |c| c.src,
            Field::DstIp => |c| c.dst,
            Field::SrcPort => |c| c.sport,
            _ => |c| c.dport,
        };
        out.iter_mut().for_each(|flow| *flow = pick(self.keys.columns(*flow)));
    }

    /// Shows the flow of each of the first `frames` frames in turn: the program run again, without frames.
    pub fn replay(&self, frames: u64, mut visit: impl FnMut(u64, u64) -> ControlFlow<()>) {
        let mut flows = [0; packet::BURST];
        let mut n = 0;
        while n < frames {
            self.numbers(n, &mut flows);
            for flow in flows.iter().take(usize::try_from(frames - n).unwrap_or(usize::MAX)) {
                if visit(n, *flow).is_break() {
                    return;
                }
                n += 1;
            }
        }
    }
}
