use std::net::IpAddr;

use crate::model::{Event, Events};

/// Tunnel ends told apart; also the most that are told of in a second.
const SLOTS: usize = 64;

/// Tells the control side of tunnel ends that are not known, each about once a second and few at all, whatever comes in.
#[derive(Debug)]
pub(super) struct RemoteReporter {
    events: Events,
    /// The second in which an end that falls into the slot was told of.
    told: Box<[Option<u32>; SLOTS]>,
}

impl RemoteReporter {
    pub(super) fn new(events: Events) -> Self {
        Self { events, told: Box::new([None; SLOTS]) }
    }

    /// A frame of this network came from this end.
    pub(super) fn report(&mut self, vni: u32, addr: IpAddr, now_s: u32) {
        let low = match addr {
            IpAddr::V4(addr) => addr.to_bits(),
            IpAddr::V6(addr) => addr.to_bits() as u32,
        };
        // Another share of the slots each second, so that no two ends always meet.
        let slot = (low ^ vni).wrapping_add(now_s).wrapping_mul(0x9e37_79b9) >> 26;
        let Some(told) = self.told.get_mut(slot as usize) else { return };
        if *told != Some(now_s) {
            *told = Some(now_s);
            // Lossy by contract: another second tells it again.
            let _ = self.events.try_send(Event::Remote { vni, addr });
        }
    }
}
