use std::net::IpAddr;

use crate::local::{Event, Events};

/// Tunnel ends remembered.
const SEEN: usize = 64;

/// Tells the control side of tunnel ends that are not known, each at most once a second.
#[derive(Debug)]
pub(super) struct Heard {
    events: Events,
    /// Network, end, and the second it was told of.
    seen: Box<[Option<(u32, IpAddr, u32)>; SEEN]>,
}

impl Heard {
    pub(super) fn new(events: Events) -> Self {
        Self { events, seen: Box::new([None; SEEN]) }
    }

    /// A frame of this network came from this end.
    pub(super) fn from(&mut self, vni: u32, addr: IpAddr, now_s: u32) {
        let low = match addr {
            IpAddr::V4(addr) => addr.to_bits(),
            IpAddr::V6(addr) => addr.to_bits() as u32,
        };
        let slot = (low ^ vni.rotate_left(3)) as usize % SEEN;
        let Some(seen) = self.seen.get_mut(slot) else { return };
        if *seen != Some((vni, addr, now_s)) {
            *seen = Some((vni, addr, now_s));
            // Lossy by contract: the next second tells it again.
            let _ = self.events.try_send(Event::Remote { vni, addr });
        }
    }
}
