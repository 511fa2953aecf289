//! Reports of tunnel ends to the control side, limited in number.

use std::net::IpAddr;

use crate::model::{Event, Events};

/// Slots that tunnel ends share; also the most reports in a second.
const SLOTS: usize = 64;

/// Reports tunnel ends that are not known to the control side: each about once a second, and at most [`SLOTS`] of them.
#[derive(Debug)]
pub(super) struct RemoteReporter {
    events: Events,
    /// The second of the last report of an end that falls into the slot.
    reported_in: Box<[Option<u32>; SLOTS]>,
}

impl RemoteReporter {
    pub(super) fn new(events: Events) -> Self {
        Self { events, reported_in: Box::new([None; SLOTS]) }
    }

    /// A frame of this network came from this end.
    pub(super) fn report(&mut self, vni: u32, addr: IpAddr, now_s: u32) {
        let low = match addr {
            IpAddr::V4(addr) => addr.to_bits(),
            IpAddr::V6(addr) => addr.to_bits() as u32,
        };
        // Another share of the slots each second, so that no two ends always meet.
        let slot = (low ^ vni).wrapping_add(now_s).wrapping_mul(0x9e37_79b9) >> 26;
        let Some(reported_in) = self.reported_in.get_mut(slot as usize) else { return };
        if *reported_in != Some(now_s) {
            *reported_in = Some(now_s);
            // When the queue is full, the report is lost and sent again in another second.
            let _ = self.events.try_send(Event::Remote { vni, addr });
        }
    }
}
