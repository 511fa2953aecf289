//! Frames of which only the beginning is here: their length is in their first IP header.

use super::build::*;
use crate::decode::*;

#[test]
fn the_first_ip_header_tells_the_length_of_a_cut_frame() {
    let long = |ip: &dyn Fn(&[u8]) -> Vec<u8>, segment: Vec<u8>| ip(&[segment, vec![7; 20_000]].concat());
    let [a, b] = [[10, 0, 0, 1], [10, 0, 0, 2]];
    let four = |payload: &[u8]| ip4(a, b, 6, payload);
    let six = |payload: &[u8]| ip6([1; 16], [2; 16], 6, payload);
    let plain4 = ether(0x800, &long(&four, tcp(1, 2, 16)));
    let plain6 = ether(0x86dd, &long(&six, tcp(1, 2, 16)));
    let in_vxlan = ether(0x800, &ip4(a, b, 17, &vxlan(7, &plain4)));
    for whole in [plain4.clone(), plain6, tagged(&plain4, &[(0x88a8, 5), (0x8100, 6)]), in_vxlan] {
        let length = whole.len() as u32;
        assert_eq!(Decoder::claimed_length(&whole), None);
        assert_eq!(Decoder::claimed_length(&whole[..1968]), Some(length));
        // And then all bytes count, of whichever packet.
        for vxlan in [Layer::Outer, Layer::Inner] {
            let decoder = Decoder::new(DecodeSpec { vxlan, ..DecodeSpec::default() });
            assert_eq!(decoder.decode_cut(&whole[..1968], length, 0), decoder.decode(&whole, 0));
        }
    }
    // A length of zero, padding, and what is not IP say nothing.
    let mut without = plain4;
    without[16..18].fill(0);
    let arp = ether(0x806, &[0; 2000]);
    for frame in [&without[..1968], &[&ether(0x800, &four(&[]))[..], &[0; 2000]].concat(), &arp, &arp[..13]] {
        assert_eq!(Decoder::claimed_length(frame), None);
    }
}
