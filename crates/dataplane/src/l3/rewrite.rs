use packet::{Buffer, Burst, MacAddr};

use super::{
    input::{ETHERNET, VLAN},
    Scratch,
};
use crate::{DropReason, Outputs};

/// What a next hop number stands for. 16 bytes, so that four share a cache line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Adjacency {
    /// Destination and source address, as they stand in the frame.
    macs: [u8; 12],
    port: u16,
    /// Set when frames with this next hop are dropped.
    drop: Option<DropReason>,
}

impl Adjacency {
    pub(super) fn new(port: u16, dst: MacAddr, src: MacAddr) -> Self {
        let ([a, b, c, d, e, f], [g, h, i, j, k, l]) = (dst.0, src.0);
        Self { macs: [a, b, c, d, e, f, g, h, i, j, k, l], port, drop: None }
    }

    pub(super) fn drop(reason: DropReason) -> Self {
        Self { macs: [0; 12], port: 0, drop: Some(reason) }
    }
}

impl Scratch {
    /// Rewrites every frame that has a next hop. `Some(port)` when all frames of the burst leave by that port.
    #[inline]
    pub(super) fn rewrite<B: Buffer>(&mut self, burst: &mut Burst<B>, adjacencies: &[Adjacency]) -> Option<usize> {
        let hops = &self.hops[..burst.len()];
        let first = *hops.first()?;
        let same = hops.iter().fold(0, |diff, hop| diff | hop ^ first) == 0;
        if same & ((self.bad | self.tagged | self.ip6) == 0) {
            if let Some(to @ Adjacency { drop: None, .. }) = adjacencies.get(first as usize).copied() {
                for frame in burst.iter_mut() {
                    plain_ip4(frame.data_mut(), &to);
                }
                return Some(usize::from(to.port));
            }
        }
        self.rewrite_each(burst, adjacencies)
    }

    fn rewrite_each<B: Buffer>(&mut self, burst: &mut Burst<B>, adjacencies: &[Adjacency]) -> Option<usize> {
        let mut differ = 0;
        for (i, frame) in burst.iter_mut().enumerate() {
            if self.bad >> i & 1 != 0 {
                continue;
            }
            // A table from outside may hold numbers that mean nothing here.
            let to = match adjacencies.get(self.hops[i] as usize) {
                Some(to @ Adjacency { drop: None, .. }) => to,
                Some(Adjacency { drop: Some(reason), .. }) => {
                    self.fail(i, *reason);
                    continue;
                }
                None => {
                    self.fail(i, DropReason::NoRoute);
                    continue;
                }
            };
            let data = frame.data_mut();
            if (self.tagged | self.ip6) >> i & 1 == 0 {
                plain_ip4(data, to);
            } else {
                other(data, to, self.tagged >> i & 1 != 0, self.ip6 >> i & 1 != 0);
            }
            self.ports[i] = to.port;
            differ |= to.port ^ self.ports[0];
        }
        (self.bad == 0 && differ == 0).then_some(usize::from(self.ports[0]))
    }

    /// Moves each frame to its egress port or to the trash.
    pub(super) fn sort<B: Buffer>(&mut self, burst: &mut Burst<B>, out: &mut Outputs<B>) {
        for (i, frame) in burst.drain(..).enumerate() {
            if self.bad >> i & 1 != 0 {
                out.trash.drop(frame, self.reasons[i]);
            } else {
                out.push(usize::from(self.ports[i]), frame);
            }
        }
    }
}

/// An untagged IPv4 frame.
#[inline(always)]
fn plain_ip4(data: &mut [u8], to: &Adjacency) {
    if let Some(frame) = data.first_chunk_mut::<{ ETHERNET + 20 }>() {
        frame[..12].copy_from_slice(&to.macs);
        let [.., ttl, _, c0, c1, _, _, _, _, _, _, _, _] = frame;
        age_ip4(ttl, c0, c1);
    }
}

fn other(data: &mut [u8], to: &Adjacency, tagged: bool, ip6: bool) {
    let Some((ethernet, packet)) = data.split_first_chunk_mut::<ETHERNET>() else { return };
    ethernet[..12].copy_from_slice(&to.macs);
    let packet = if tagged { packet.get_mut(VLAN..) } else { Some(packet) };
    match packet {
        Some([_, _, _, _, _, _, _, hop_limit, ..]) if ip6 => *hop_limit = hop_limit.saturating_sub(1),
        Some([_, _, _, _, _, _, _, _, ttl, _, c0, c1, ..]) => age_ip4(ttl, c0, c1),
        _ => {}
    }
}

/// One TTL less, and the header checksum with it (RFC 1624 equation 3: `HC' = ~(~HC + ~m + m')`, where the word
/// that changes falls by 0x0100, so `~m + m'` is 0xfeff whatever it was).
#[inline(always)]
fn age_ip4(ttl: &mut u8, c0: &mut u8, c1: &mut u8) {
    *ttl = ttl.wrapping_sub(1);
    let sum = u32::from(!u16::from_be_bytes([*c0, *c1])) + 0xfeff;
    let folded = (sum as u16).wrapping_add((sum >> 16) as u16);
    [*c0, *c1] = (!folded).to_be_bytes();
}
