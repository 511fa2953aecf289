//! The hash that keeps a flow on one of several equal paths (RFC 2992), and makes tunnels' source ports differ.

/// An odd number without structure (the golden ratio's fraction) and another one (from SplitMix64).
const MULTIPLIERS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9];

/// A hash of what makes packets a flow: addresses, protocol, the IPv6 flow label (RFC 6438), and the ports of TCP, UDP
/// and SCTP. IPv4 fragments are hashed without ports, since only the first one has them; behind IPv6 extension headers
/// none are looked for. Zero for other packets than IP. All 32 bits are good.
#[inline]
pub(crate) fn flow_hash(packet: &[u8]) -> u32 {
    match packet.first().map(|byte| byte >> 4) {
        Some(4) => ip4(packet),
        Some(6) => ip6(packet),
        _ => None,
    }
    .unwrap_or(0)
}

fn ip4(packet: &[u8]) -> Option<u32> {
    let [ihl, _, _, _, _, _, f0, f1, _, protocol, _, _, addresses @ ..] = packet.first_chunk::<20>()?;
    let whole = f0 & 0x3f | f1 == 0;
    let ports = if whole { ports(packet, usize::from(ihl & 0xf) * 4, *protocol) } else { 0 };
    let upper = u64::from(ports) << 8 | u64::from(*protocol);
    Some(finish(mix(mix(0, u64::from_be_bytes(*addresses)), upper)))
}

fn ip6(packet: &[u8]) -> Option<u32> {
    let [head @ .., _, _, next_header, _] = packet.first_chunk::<8>()?;
    let label = u64::from(u32::from_be_bytes(*head) & 0xf_ffff);
    let addresses: &[u8; 32] = packet.get(8..)?.first_chunk()?;
    let words = addresses.chunks_exact(8).filter_map(|word| word.first_chunk().map(|w| u64::from_be_bytes(*w)));
    let upper = u64::from(ports(packet, 40, *next_header)) << 28 | u64::from(*next_header) << 20 | label;
    Some(finish(mix(words.fold(0, mix), upper)))
}

/// Source and destination port, if this protocol has any.
#[inline]
fn ports(packet: &[u8], at: usize, protocol: u8) -> u32 {
    if !matches!(protocol, 6 | 17 | 132) {
        return 0;
    }
    packet.get(at..).and_then(|upper| upper.first_chunk()).map_or(0, |ports| u32::from_be_bytes(*ports))
}

/// A multiplication carries every bit upwards only, the shift brings the upper half down.
#[inline]
fn mix(hash: u64, word: u64) -> u64 {
    let product = (hash ^ word).wrapping_mul(MULTIPLIERS[0]);
    product ^ product >> 32
}

#[inline]
fn finish(hash: u64) -> u32 {
    (hash.wrapping_mul(MULTIPLIERS[1]) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn udp4() -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 198, 18, 0, 1, 198, 19, 0, 1];
        packet.extend([4, 0, 0, 7, 0, 8, 0, 0]);
        packet
    }

    fn udp6() -> Vec<u8> {
        let mut packet = vec![0; 48];
        (packet[0], packet[5], packet[6], packet[7]) = (0x60, 8, 17, 64);
        (packet[8], packet[24]) = (0x20, 0x20);
        packet
    }

    /// 4096 packets that differ by a counter in two bytes, over 16 buckets of the lowest, middle and highest bits.
    fn assert_spread(base: &[u8], at: usize) {
        for shift in [0, 14, 28] {
            let mut buckets = [0u32; 16];
            for i in 0..4096u16 {
                let mut packet = base.to_vec();
                packet[at..at + 2].copy_from_slice(&i.to_be_bytes());
                buckets[(flow_hash(&packet) >> shift) as usize & 15] += 1;
            }
            // 256 are expected, with a standard deviation of 16 if random: fewer than twelve deviations show no cluster.
            assert!(buckets.iter().all(|n| n.abs_diff(256) < 192), "byte {at} bit {shift}: {buckets:?}");
        }
    }

    #[test]
    fn every_field_of_a_flow_spreads() {
        for at in [12, 14, 16, 18, 20, 22] {
            assert_spread(&udp4(), at);
        }
        for at in [2, 8, 14, 22, 24, 38, 40, 42] {
            assert_spread(&udp6(), at);
        }
    }

    #[test]
    fn what_varies_within_a_flow_does_not_count() {
        for (base, same, other) in
            [(udp4(), vec![1, 3, 5, 8, 11, 24], vec![9]), (udp6(), vec![0, 5, 7, 44], vec![3, 6, 9, 30])]
        {
            let change = |at: usize| {
                let mut packet = base.clone();
                packet[at] ^= 1;
                flow_hash(&packet)
            };
            assert!(same.into_iter().all(|at| change(at) == flow_hash(&base)));
            assert!(other.into_iter().all(|at| change(at) != flow_hash(&base)));
        }
    }

    #[test]
    fn all_fragments_of_a_packet_stay_together() {
        let mut first = udp4();
        first[6] = 0x20;
        let mut second = udp4();
        (second[7], second[20], second[22]) = (3, 99, 77);
        assert_eq!(flow_hash(&first), flow_hash(&second));
        let mut whole = udp4();
        whole[6] = 0x40;
        assert_eq!(flow_hash(&whole), flow_hash(&udp4()), "DF makes no fragment");
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(mut bytes in prop::collection::vec(any::<u8>(), 0..80), version in 0u8..16) {
            if let Some(first) = bytes.first_mut() {
                *first = version << 4 | *first & 0xf;
            }
            let hash = flow_hash(&bytes);
            prop_assert!(matches!(version, 4 | 6) || hash == 0);
        }
    }
}
