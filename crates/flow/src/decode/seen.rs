//! Facts about a frame before its packet is read.

use std::cell::Cell;

use super::spec::TUNNELS;
use crate::packed::SCOPED;

/// Facts about a frame before its packet is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen<'a> {
    /// Bytes of the frame on the wire.
    pub(super) bytes: u32,
    /// Bytes of it that a capture does not hold.
    cut: u32,
    pub(super) port: u8,
    /// Number of tunnels that may still be decoded.
    tunnels: u8,
    /// As in the packed keys.
    pub(super) scope: u32,
    /// Takes the address of the packet that was decoded, if somebody wants it.
    packet: Option<&'a Cell<usize>>,
}

impl<'a> Seen<'a> {
    #[inline(always)]
    pub(super) fn new(frame: &[u8], on_wire: u32, port: u8) -> Self {
        // Every frame is shorter than 4 GiB.
        let bytes = on_wire.max(frame.len() as u32);
        Self { bytes, cut: bytes - frame.len() as u32, port, tunnels: TUNNELS, scope: 0, packet: None }
    }

    /// The same, for somebody who wants the packet.
    pub(super) fn with_packet(self, packet: &'a Cell<usize>) -> Self {
        Self { packet: Some(packet), ..self }
    }

    /// The packet that is decoded, from its IP header on. The last one counts: that of the innermost tunnel.
    #[inline(always)]
    pub(super) fn found(self, packet: &[u8]) {
        if let Some(cell) = self.packet {
            cell.set(packet.as_ptr() as usize);
        }
    }

    /// Bytes on the wire from the byte at `from` of the rest of the frame to its end.
    #[inline(always)]
    pub(super) fn left(self, rest: &[u8], from: u32) -> u32 {
        self.cut + (rest.len() as u32).saturating_sub(from)
    }

    /// Keeps the first identifier of the kind that distinguishes flows, where there is one, other than zero (a priority tag,
    /// IEEE 802.1Q 9.6).
    pub(super) fn set_scope(&mut self, applies: bool, scope: u32) {
        if applies && self.scope & !SCOPED == 0 {
            self.scope = SCOPED | scope;
        }
    }

    /// Facts for the content of the next tunnel; `None` when tunnels are nested too deep.
    pub(super) fn inside(self) -> Option<Self> {
        Some(Self { tunnels: self.tunnels.checked_sub(1)?, ..self })
    }
}
