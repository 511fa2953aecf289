//! TCP (RFC 9293).

use super::write_front;

/// Length in bytes without options.
pub const LEN: usize = 20;
/// Where the checksum stands.
pub const CHECKSUM: usize = 16;
/// The FIN flag.
pub const FIN: u8 = 0x01;
/// The SYN flag.
pub const SYN: u8 = 0x02;
/// The RST flag.
pub const RST: u8 = 0x04;
/// The PSH flag.
pub const PSH: u8 = 0x08;
/// The ACK flag.
pub const ACK: u8 = 0x10;

/// A TCP header; options are skipped when read and never written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tcp {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// The eight flags from CWR to FIN.
    pub flags: u8,
    /// Window.
    pub window: u16,
    /// Checksum as on the wire.
    pub checksum: u16,
    /// Urgent pointer.
    pub urgent: u16,
}

impl Tcp {
    /// Takes a header, options included, off the front.
    pub fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (&[s0, s1, d0, d1, q0, q1, q2, q3, a0, a1, a2, a3, offset, flags, w0, w1, c0, c1, u0, u1], _) =
            bytes.split_first_chunk::<LEN>()?;
        let header_len = usize::from(offset >> 4) * 4;
        if header_len < LEN {
            return None;
        }
        let word = |a, b| u16::from_be_bytes([a, b]);
        let header = Self {
            src_port: word(s0, s1),
            dst_port: word(d0, d1),
            seq: u32::from_be_bytes([q0, q1, q2, q3]),
            ack: u32::from_be_bytes([a0, a1, a2, a3]),
            flags,
            window: word(w0, w1),
            checksum: word(c0, c1),
            urgent: word(u0, u1),
        };
        Some((header, bytes.get(header_len..)?))
    }

    /// Writes the header to the front.
    #[must_use]
    pub fn write(self, to: &mut [u8]) -> bool {
        let ([s0, s1], [d0, d1]) = (self.src_port.to_be_bytes(), self.dst_port.to_be_bytes());
        let ([q0, q1, q2, q3], [a0, a1, a2, a3]) = (self.seq.to_be_bytes(), self.ack.to_be_bytes());
        let ([w0, w1], [c0, c1]) = (self.window.to_be_bytes(), self.checksum.to_be_bytes());
        let [u0, u1] = self.urgent.to_be_bytes();
        let flags = self.flags;
        write_front(to, [s0, s1, d0, d1, q0, q1, q2, q3, a0, a1, a2, a3, 0x50, flags, w0, w1, c0, c1, u0, u1])
    }
}
