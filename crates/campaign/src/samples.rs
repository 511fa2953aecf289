//! One line on a frame that was not as expected, for the diagnosis of a run in which nothing came back.

use traffic::checker::{Odd, Sample};

/// Such as `foreign ARP, 60 bytes from 02:00:00:00:00:01`.
pub(crate) fn describe(sample: &Sample) -> String {
    let what = match sample.what {
        Odd::Foreign => "foreign",
        Odd::Misdirected => "misdirected",
        Odd::WrongLength => "wrong length",
    };
    let b = &sample.bytes;
    let kind = match b.get(12..14) {
        Some([0x08, 0x00]) => "IPv4",
        Some([0x08, 0x06]) => "ARP",
        Some([0x86, 0xdd]) => "IPv6",
        Some([0x81, 0x00] | [0x88, 0xa8]) => "VLAN",
        Some([0x88, 0x47]) => "MPLS",
        Some([0x88, 0xcc]) => "LLDP",
        Some([high, _]) if *high < 6 => "LLC",
        _ => "other",
    };
    let from = b.get(6..12).map_or(String::new(), |mac| {
        format!(" from {}", mac.iter().map(|x| format!("{x:02x}")).collect::<Vec<_>>().join(":"))
    });
    format!("{what} {kind}, {} bytes{from}", sample.frame_len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_frames_are_named() {
        let mut bytes = vec![0xff; 6];
        bytes.extend([2, 0, 0, 0, 0, 9, 0x08, 0x06]);
        let sample = Sample { what: Odd::Foreign, frame_len: 42, bytes };
        assert_eq!(describe(&sample), "foreign ARP, 42 bytes from 02:00:00:00:00:09");
        let short = Sample { what: Odd::Foreign, frame_len: 3, bytes: vec![1, 2, 3] };
        assert_eq!(describe(&short), "foreign other, 3 bytes");
    }
}
