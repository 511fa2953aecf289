//! What is counted of a packet, in a word that the table adds up as it is.

/// What is counted of a packet, besides its flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Facts {
    /// Bytes of the frame on the wire, without FCS.
    pub frame_bytes: u32,
    /// Bytes of the IP packet, by its length field, but not more than the frame has.
    pub ip_bytes: u32,
    /// Type of service, or traffic class.
    pub tos: u8,
    /// The nine TCP flags (RFC 9293 3.1; AE is 0x100); zero for all but TCP.
    pub tcp_flags: u16,
    /// Whether it goes from the destination of the key to the source; only with biflows.
    pub reversed: bool,
}

/// [`Facts`] in a word. From the top: TCP flags 9 bits, a zero, bytes of the frame around the IP packet 16, five zeros,
/// reversed 1, ToS 8, IP bytes 24.
///
/// Flags, bytes around and IP bytes stand where a way of a slot has them. More around than [`PackedFacts::MOST_AROUND`]
/// counts as that, and more IP bytes than [`PackedFacts::MOST_IP`] as that: no link has such frames, but a capture may
/// claim them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackedFacts(pub(crate) u64);

/// Position of the TCP flags; of the bytes around; of the ToS; of the direction.
pub(crate) const FLAGS: u32 = 55;
pub(crate) const AROUND: u32 = 38;
pub(crate) const TOS: u32 = 24;
const REVERSED: u32 = 32;
/// The bits between, which are not added up.
const BETWEEN: u64 = (1 << AROUND) - (1 << TOS);

impl PackedFacts {
    /// Most bytes around a packet.
    pub const MOST_AROUND: u32 = 0xffff;
    /// Most bytes of a packet.
    pub const MOST_IP: u32 = (1 << TOS) - 1;

    /// Of a packet that is shorter than its frame by what is around it: at most 64 KiB long, ToS in the top byte of a word
    /// and flags in the low bits of another.
    #[inline(always)]
    pub(crate) fn plain(frame_bytes: u32, ip_bytes: u32, tos: u32, flags: u64, reversed: bool) -> Self {
        let around = u64::from(frame_bytes.wrapping_sub(ip_bytes).min(Self::MOST_AROUND)) << AROUND;
        let rest = u64::from(tos & 0xff << TOS | ip_bytes);
        Self(flags << FLAGS | around | u64::from(reversed) << REVERSED | rest)
    }

    /// The bits of the flags, and of the bytes of both kinds.
    #[inline(always)]
    pub(crate) fn to_add(self) -> u64 {
        self.0 & !BETWEEN
    }

    /// The bytes of both kinds.
    #[inline(always)]
    pub(crate) fn bytes(self) -> u64 {
        self.0 & !BETWEEN & ((1 << FLAGS) - 1)
    }

    /// The type of service.
    #[inline(always)]
    pub(crate) fn tos(self) -> u64 {
        self.0 >> TOS & 0xff
    }

    /// One of a packet that goes against its key.
    #[inline(always)]
    pub(crate) fn back(self) -> u64 {
        self.0 >> REVERSED & 1
    }
}

impl From<Facts> for PackedFacts {
    #[inline(always)]
    fn from(facts: Facts) -> Self {
        let Facts { frame_bytes, ip_bytes, tos, tcp_flags, reversed } = facts;
        let around = frame_bytes.saturating_sub(ip_bytes).min(Self::MOST_AROUND);
        let tos_and_way = u64::from(tos) << TOS | u64::from(reversed) << REVERSED;
        let bytes = u64::from(around) << AROUND | u64::from(ip_bytes.min(Self::MOST_IP));
        // Bits above the nine flags fall out at the top.
        Self(u64::from(tcp_flags) << FLAGS | tos_and_way | bytes)
    }
}

impl From<PackedFacts> for Facts {
    #[inline(always)]
    fn from(PackedFacts(word): PackedFacts) -> Self {
        let ip_bytes = word as u32 & PackedFacts::MOST_IP;
        Self {
            frame_bytes: ip_bytes + (word >> AROUND & u64::from(PackedFacts::MOST_AROUND)) as u32,
            ip_bytes,
            tos: (word >> TOS) as u8,
            tcp_flags: (word >> FLAGS) as u16,
            reversed: word >> REVERSED & 1 == 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_packed_and_unpacked_whole() {
        let facts = Facts { frame_bytes: 1518, ip_bytes: 1500, tos: 0xb8, tcp_flags: 0x1c2, reversed: true };
        assert_eq!(Facts::from(PackedFacts::from(facts)), facts);
        let [none, all] = [0, u16::MAX].map(|tcp_flags| Facts { tcp_flags, ..Facts::default() });
        assert_eq!(PackedFacts::from(none).0, 0);
        assert_eq!(Facts::from(PackedFacts::from(all)).tcp_flags, 0x1ff);
        let most = Facts { frame_bytes: u32::MAX, ip_bytes: 0, tos: 0xff, ..facts };
        assert_eq!(Facts::from(PackedFacts::from(most)), Facts { frame_bytes: 65_535, ..most });
        let longest = Facts { frame_bytes: 10, ip_bytes: u32::MAX, ..facts };
        let kept = Facts { frame_bytes: PackedFacts::MOST_IP, ip_bytes: PackedFacts::MOST_IP, ..facts };
        assert_eq!(Facts::from(PackedFacts::from(longest)), kept);
    }

    #[test]
    fn only_flags_and_bytes_are_added_up() {
        let facts = Facts { frame_bytes: 64, ip_bytes: 46, tos: 0xff, tcp_flags: 0x1ff, reversed: true };
        let packed = PackedFacts::from(facts);
        assert_eq!(packed.to_add(), 0x1ff << FLAGS | 18 << AROUND | 46);
        assert_eq!((packed.bytes(), packed.back()), (18 << AROUND | 46, 1));
    }
}
