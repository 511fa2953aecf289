//! What is known of a frame before its packet is read.

use super::spec::TUNNELS;

/// What is known before the packet itself is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) bytes: u32,
    pub(super) port: u8,
    /// Tunnels that may still be looked into.
    tunnels: u8,
    pub(super) scope: u32,
}

impl Seen {
    #[inline(always)]
    pub(super) fn new(frame: &[u8], port: u8) -> Self {
        // No frame has 4 GiB.
        Self { bytes: frame.len() as u32, port, tunnels: TUNNELS, scope: 0 }
    }

    /// Takes the first number of the kind that tells flows apart; zero is none (a priority tag, IEEE 802.1Q 9.6).
    pub(super) fn tell(&mut self, told: bool, scope: u32) {
        if told && self.scope == 0 {
            self.scope = scope;
        }
    }

    /// What is known inside the next tunnel; `None` when it is one too many.
    pub(super) fn inside(self) -> Option<Self> {
        Some(Self { tunnels: self.tunnels.checked_sub(1)?, ..self })
    }
}
