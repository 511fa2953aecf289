//! Facts about a frame before its packet is read.

use super::spec::TUNNELS;

/// Facts about a frame before its packet is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) bytes: u32,
    pub(super) port: u8,
    /// Number of tunnels that may still be decoded.
    tunnels: u8,
    pub(super) scope: u32,
}

impl Seen {
    #[inline(always)]
    pub(super) fn new(frame: &[u8], port: u8) -> Self {
        // Every frame is shorter than 4 GiB.
        Self { bytes: frame.len() as u32, port, tunnels: TUNNELS, scope: 0 }
    }

    /// Keeps the first identifier of the kind that distinguishes flows, other than zero (a priority tag, IEEE 802.1Q 9.6).
    pub(super) fn set_scope(&mut self, applies: bool, scope: u32) {
        if applies && self.scope == 0 {
            self.scope = scope;
        }
    }

    /// Facts for the content of the next tunnel; `None` when tunnels are nested too deep.
    pub(super) fn inside(self) -> Option<Self> {
        Some(Self { tunnels: self.tunnels.checked_sub(1)?, ..self })
    }
}
