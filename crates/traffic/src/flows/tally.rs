//! What was sent of each flow.

use std::ops::ControlFlow;

use super::program::{Order, Program};

/// What was sent of one flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Share {
    /// Frames.
    pub packets: u64,
    /// Number of the first of them; nothing when there are none.
    pub first: u64,
    /// Number of the last of them.
    pub last: u64,
}

/// What of each flow is among the first frames of a program: worked out, or for drawn flows counted by running the
/// program again.
#[derive(Debug)]
pub struct Tally<'a> {
    program: &'a Program,
    frames: u64,
    /// Of drawn flows.
    counted: Box<[Share]>,
    /// Of flow 0 of a churn, which has the frames of flows that would have begun before the trial.
    zero: Share,
}

impl Program {
    /// What of each flow is among the first `frames` frames.
    pub fn tally(&self, frames: u64) -> Tally<'_> {
        Tally::new(self, frames)
    }
}

impl<'a> Tally<'a> {
    pub(super) fn new(program: &'a Program, frames: u64) -> Self {
        let mut counted: Box<[Share]> = Box::default();
        let mut zero = Share::default();
        match &program.order {
            Order::Drawn { draw, .. } => {
                counted = vec![Share::default(); draw.len() as usize].into();
                program.replay(frames, |n, flow| {
                    if let Some(share) = counted.get_mut(flow as usize) {
                        let first = if share.packets == 0 { n } else { share.first };
                        *share = Share { packets: share.packets + 1, first, last: n };
                    }
                    ControlFlow::Continue(())
                });
            }
            Order::Steps { packets, apart } => zero = flow_zero(frames, *packets, *apart),
            _ => {}
        }
        Self { program, frames, counted, zero }
    }

    /// Frames in all.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Flows are numbered below this; some of them may have no frames.
    pub fn flows(&self) -> u64 {
        self.program.flows(self.frames)
    }

    /// Which flow has which 5-tuple.
    pub fn keys(&self) -> &'a super::Keys {
        self.program.keys()
    }

    /// What was sent of this flow.
    pub fn share(&self, flow: u64) -> Share {
        if flow >= self.flows() {
            return Share::default();
        }
        match &self.program.order {
            Order::Turns { flows } => {
                let packets = (self.frames - flow).div_ceil(*flows);
                Share { packets, first: flow, last: flow + (packets - 1) * flows }
            }
            Order::Drawn { .. } => self.counted.get(flow as usize).copied().unwrap_or_default(),
            Order::Steps { .. } if flow == 0 => self.zero,
            Order::Steps { packets, apart } => {
                // Packet j is frame (flow + j * apart) * packets + j.
                let (first, step) = (flow * packets, apart * packets + 1);
                let sent = (self.frames - first).div_ceil(step).min(*packets);
                Share { packets: sent, first, last: first + (sent - 1) * step }
            }
            Order::Once => Share { packets: 1, first: flow, last: flow },
        }
    }
}

/// Packet j of steps 0 to j * apart.
fn flow_zero(frames: u64, packets: u64, apart: u64) -> Share {
    let mut share = Share::default();
    for j in 0..packets.min(frames) {
        // Steps whose packet j was sent.
        let steps = (frames - j).div_ceil(packets).min(j * apart + 1);
        share.packets += steps;
        share.last = share.last.max((steps - 1) * packets + j);
    }
    share
}
