use packet::{Alloc, Buffer, Burst};

use super::{counters::BridgeCounters, scratch::BridgeScratch};
use crate::{Dispatch, Outputs};

impl BridgeScratch {
    /// Moves every frame of a burst to its port or to all other ports, or drops it. No port is sent more frames than
    /// there were in the burst, so none is sent too many.
    #[inline(never)]
    pub fn sort_and_flood<A: Alloc>(
        &self,
        burst: &mut Burst<A::Buf>,
        out: &mut Outputs<A::Buf>,
        ingress: usize,
        ports: usize,
        alloc: &mut A,
        counters: &mut BridgeCounters,
    ) -> Dispatch {
        // The frame itself goes to the last port, its copies to those before.
        let last = if ingress + 1 == ports { ports.saturating_sub(2) } else { ports - 1 };
        for (i, frame) in burst.drain(..).enumerate() {
            if self.flood >> i & 1 == 0 {
                self.place(i, frame, out);
                continue;
            }
            for port in (0..last).filter(|&port| port != ingress) {
                match copy(&frame, alloc) {
                    Some(copy) => out.originate(port, copy),
                    None => counters.copies_missing += 1,
                }
            }
            out.push(last, frame);
        }
        Dispatch::Split
    }
}

/// Another buffer with the same bytes, if there is one.
fn copy<A: Alloc>(frame: &A::Buf, alloc: &mut A) -> Option<A::Buf> {
    let mut room = Burst::new();
    alloc.alloc(&mut room, 1, frame.len());
    let mut copy = room.pop()?;
    copy.data_mut().get_mut(..frame.len())?.copy_from_slice(frame.data());
    Some(copy)
}
