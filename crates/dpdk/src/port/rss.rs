//! Receive side scaling: what a device spreads frames over its queues by.

use dpdk_sys as sys;

/// What frames are spread by over receive queues: hashes of these fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rss {
    /// IP addresses.
    pub ip: bool,
    /// TCP ports.
    pub tcp: bool,
    /// UDP ports.
    pub udp: bool,
    /// MPLS labels.
    pub mpls: bool,
    /// What is inside of VXLAN.
    pub vxlan: bool,
    /// The device says that it hashes with a key by which both ways of a conversation have the same hash.
    pub symmetric: bool,
}

/// A key of the Toeplitz hash by which source and destination may change places, as its bits repeat after 16 (Woo, Park:
/// Scalable TCP Session Monitoring with Symmetric Receive-side Scaling, 2012).
pub(super) const SYMMETRIC_KEY: [u8; sys::LR_RSS_KEY as usize] = {
    let mut key = [0x6d; sys::LR_RSS_KEY as usize];
    let mut odd = 1;
    while odd < key.len() {
        key[odd] = 0x5a;
        odd += 2;
    }
    key
};

impl Rss {
    pub(super) fn from_bits(bits: u32) -> Self {
        let has = |bit: u32| bits & bit != 0;
        Self {
            ip: has(sys::LR_RSS_IP),
            tcp: has(sys::LR_RSS_TCP),
            udp: has(sys::LR_RSS_UDP),
            mpls: has(sys::LR_RSS_MPLS),
            vxlan: has(sys::LR_RSS_VXLAN),
            symmetric: has(sys::LR_RSS_SYMMETRIC),
        }
    }

    /// Whether anything is on.
    pub fn is_on(self) -> bool {
        Self { symmetric: false, ..self } != Self::default()
    }
}

impl std::fmt::Display for Rss {
    /// `ip, udp`, or `off`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let fields =
            [(self.ip, "ip"), (self.tcp, "tcp"), (self.udp, "udp"), (self.mpls, "mpls"), (self.vxlan, "vxlan")];
        let on: Vec<&str> = fields.into_iter().filter(|f| f.0).map(|f| f.1).collect();
        f.write_str(&if on.is_empty() { "off".to_string() } else { on.join(", ") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The Toeplitz hash as devices have it: for each bit of the input that is set, the 32 bits of the key from there on.
    fn toeplitz(key: &[u8], input: &[u8]) -> u32 {
        let bit = |bytes: &[u8], n: usize| bytes[n / 8] >> (7 - n % 8) & 1 == 1;
        let window = |at: usize| (0..32).fold(0, |word: u32, n| word << 1 | u32::from(bit(key, at + n)));
        (0..input.len() * 8).filter(|&n| bit(input, n)).fold(0, |hash, n| hash ^ window(n))
    }

    #[test]
    fn both_ways_of_a_conversation_have_one_hash() {
        // Microsoft's verification suite: 66.9.149.187:2794 to 161.142.100.80:1766.
        let known: [u8; 40] = [
            0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca,
            0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b,
            0xbe, 0xac, 0x01, 0xfa,
        ];
        let input = [66, 9, 149, 187, 161, 142, 100, 80, 0x0a, 0xea, 0x06, 0xe6];
        assert_eq!(toeplitz(&known, &input), 0x51cc_c178);
        let mut spread = std::collections::BTreeSet::new();
        for n in 0..1000u32 {
            let v4 = |n: u32| n.wrapping_mul(0x9e37_79b9).to_be_bytes().to_vec();
            let port = |n: u32| (n.wrapping_mul(40_503) as u16).to_be_bytes().to_vec();
            for words in [1, 4] {
                let address = |n: u32| (0..words).flat_map(|i| v4(n + i)).collect::<Vec<u8>>();
                let [a, b] = [(address(n), port(n)), (address(n + 7), port(n + 1))];
                let there = toeplitz(&SYMMETRIC_KEY, &[&a.0[..], &b.0, &a.1, &b.1].concat());
                assert_eq!(there, toeplitz(&SYMMETRIC_KEY, &[&b.0[..], &a.0, &b.1, &a.1].concat()));
                spread.insert(there % 16);
            }
        }
        assert_eq!(spread.len(), 16, "all queues are used");
        assert_eq!(SYMMETRIC_KEY[..4], [0x6d, 0x5a, 0x6d, 0x5a]);
    }
}
