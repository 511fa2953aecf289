//! What stands before the IP packet of a frame: MAC addresses, VLAN tags, MPLS labels.

use packet::{headers::ethertype, MacAddr};
use serde::{Deserialize, Serialize};

use crate::decode::{MPLS_MULTICAST, OLD_QINQ, PPPOE_SESSION, PPP_MPLS};

/// Most tags, and most labels, that are kept of a frame.
pub const MOST_TAGS: usize = 4;
/// See [`MOST_TAGS`].
pub const MOST_LABELS: usize = 10;

/// Bytes of a [`Link`].
pub(crate) const BYTES: usize = 14 + 2 * MOST_TAGS + 3 * MOST_LABELS;
/// Where in a [`Link`] the numbers of tags and labels stand, the tags, and the labels.
const COUNTS: usize = 12;
const TAGS: usize = 14;
const LABELS: usize = TAGS + 2 * MOST_TAGS;

/// The link layer of a frame: of a flow, that of the first frame of a direction since its last record.
///
/// As bytes: destination and source address, the number of tags and that of labels, the tags (2 bytes each) and the labels (3
/// bytes each) as they stood in the frame. All zero: none is known.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "LinkFields", into = "LinkFields")]
pub struct Link(pub(crate) [u8; BYTES]);

impl Default for Link {
    fn default() -> Self {
        Self([0; BYTES])
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        LinkFields::from(*self).fmt(f)
    }
}

impl Link {
    /// Reads a frame from its Ethernet header on. Of more tags or labels than are kept, the outer ones are.
    #[inline]
    pub fn read(frame: &[u8]) -> Self {
        let mut link = Self::default();
        let Some((head, rest)) = frame.split_first_chunk::<14>() else { return link };
        if let Some(addresses) = link.0.first_chunk_mut::<COUNTS>() {
            addresses.copy_from_slice(&head[..COUNTS]);
        }
        match u16::from_be_bytes([head[12], head[13]]) {
            ethertype::IPV4 | ethertype::IPV6 => {}
            kind => link.read_tags(kind, rest),
        }
        link
    }

    #[inline(never)]
    fn read_tags(&mut self, mut kind: u16, mut rest: &[u8]) {
        while let ethertype::VLAN | ethertype::QINQ | OLD_QINQ = kind {
            let Some(([t0, t1, k0, k1], behind)) = rest.split_first_chunk() else { return };
            if !self.push(0, &[*t0, *t1], (TAGS, MOST_TAGS)) {
                return;
            }
            (kind, rest) = (u16::from_be_bytes([*k0, *k1]), behind);
        }
        let stack = match (kind, rest) {
            (ethertype::MPLS | MPLS_MULTICAST, stack) => stack,
            (PPPOE_SESSION, [0x11, 0, _, _, _, _, p0, p1, stack @ ..])
                if u16::from_be_bytes([*p0, *p1]) == PPP_MPLS =>
            {
                stack
            }
            _ => return,
        };
        for [l0, l1, l2, _] in stack.as_chunks::<4>().0 {
            // Label, traffic class, and the bit of the last one (RFC 3032 2.1).
            if !self.push(1, &[*l0, *l1, *l2], (LABELS, MOST_LABELS)) || l2 & 1 == 1 {
                return;
            }
        }
    }

    /// Adds a tag (0) or a label (1), where there is room for one more.
    fn push(&mut self, which: usize, bytes: &[u8], (from, most): (usize, usize)) -> bool {
        let Some(count) = self.0.get_mut(COUNTS + which).filter(|count| usize::from(**count) < most) else {
            return false;
        };
        let at = from + usize::from(*count) * bytes.len();
        *count += 1;
        if let Some(to) = self.0.get_mut(at..at + bytes.len()) {
            to.copy_from_slice(bytes);
        }
        true
    }

    /// The destination, and the source.
    pub fn addresses(&self) -> [MacAddr; 2] {
        let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, ..] = self.0;
        [MacAddr([d0, d1, d2, d3, d4, d5]), MacAddr([s0, s1, s2, s3, s4, s5])]
    }

    /// The tag control information of each tag, the outer one first: priority 3 bits, drop eligible 1, VLAN 12 (IEEE 802.1Q 9.6).
    pub fn tags(&self) -> impl ExactSizeIterator<Item = u16> + '_ {
        let tags = self.0.get(TAGS..LABELS).unwrap_or_default().as_chunks::<2>().0;
        tags.iter().take(usize::from(self.0[COUNTS])).map(|tag| u16::from_be_bytes(*tag))
    }

    /// Each label, the top one first, as IPFIX has it (`mplsTopLabelStackSection`, information element 70): label 20 bits,
    /// traffic class 3, bottom of the stack 1.
    pub fn labels(&self) -> impl ExactSizeIterator<Item = [u8; 3]> + '_ {
        let labels = self.0.get(LABELS..).unwrap_or_default().as_chunks::<3>().0;
        labels.iter().take(usize::from(self.0[COUNTS + 1])).copied()
    }
}

/// The fields of a [`Link`], as JSON has them.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct LinkFields {
    src_mac: String,
    dst_mac: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    vlan_tags: Vec<Tag>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    mpls_labels: Vec<Label>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Tag {
    vlan_id: u16,
    priority: u8,
    drop_eligible: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Label {
    label: u32,
    traffic_class: u8,
    bottom: bool,
}

impl From<Link> for LinkFields {
    fn from(link: Link) -> Self {
        let [dst_mac, src_mac] = link.addresses().map(|mac| mac.to_string());
        let tag =
            |tag: u16| Tag { vlan_id: tag & 0xfff, priority: (tag >> 13) as u8, drop_eligible: tag >> 12 & 1 == 1 };
        let label = |[l0, l1, l2]: [u8; 3]| Label {
            label: u32::from_be_bytes([0, l0, l1, l2]) >> 4,
            traffic_class: l2 >> 1 & 7,
            bottom: l2 & 1 == 1,
        };
        Self {
            src_mac,
            dst_mac,
            vlan_tags: link.tags().map(tag).collect(),
            mpls_labels: link.labels().map(label).collect(),
        }
    }
}

impl From<LinkFields> for Link {
    /// Addresses that cannot be read are zero; of too many tags or labels the outer ones stay.
    fn from(fields: LinkFields) -> Self {
        let mut link = Self::default();
        let [dst, src] =
            [&fields.dst_mac, &fields.src_mac].map(|text| text.parse::<MacAddr>().map_or([0; 6], |mac| mac.0));
        link.0.iter_mut().zip(dst.into_iter().chain(src)).for_each(|(to, byte)| *to = byte);
        for tag in fields.vlan_tags {
            let tci = u16::from(tag.priority & 7) << 13 | u16::from(tag.drop_eligible) << 12 | tag.vlan_id & 0xfff;
            link.push(0, &tci.to_be_bytes(), (TAGS, MOST_TAGS));
        }
        for label in fields.mpls_labels {
            let [_, l0, l1, l2] =
                (label.label << 4 | u32::from(label.traffic_class & 7) << 1 | u32::from(label.bottom)).to_be_bytes();
            link.push(1, &[l0, l1, l2], (LABELS, MOST_LABELS));
        }
        link
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACS: [u8; 12] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];

    fn frame(rest: &[&[u8]]) -> Vec<u8> {
        [&MACS[..], &rest.concat(), &[0; 20]].concat()
    }

    fn json(link: Link) -> String {
        serde_json::to_string(&link).unwrap()
    }

    #[test]
    fn a_plain_frame_has_addresses_alone() {
        let link = Link::read(&frame(&[&[8, 0, 0x45]]));
        assert_eq!(json(link), r#"{"src_mac":"02:00:00:00:00:02","dst_mac":"02:00:00:00:00:01"}"#);
        assert_eq!((link.tags().len(), link.labels().len()), (0, 0));
        // Cut before its type, and in the middle of a tag.
        assert_eq!(Link::read(&MACS), Link::default());
        assert_eq!(Link::read(&[&MACS[..], &[0x81, 0, 0, 5, 8]].concat()).tags().len(), 0);
    }

    #[test]
    fn tags_and_labels_are_kept_as_they_stand() {
        let outer = [0x88, 0xa8, 0xe0, 100, 0x91, 0, 0x1f, 0xff, 0x81, 0, 0, 0];
        let stack = [0, 1, 0x0e, 64, 0, 2, 0x01, 64, 9, 9, 9, 9];
        let link = Link::read(&frame(&[&outer, &[0x88, 0x47], &stack]));
        assert_eq!(link.tags().collect::<Vec<_>>(), [0xe064, 0x1fff, 0]);
        assert_eq!(link.labels().collect::<Vec<_>>(), [[0, 1, 0x0e], [0, 2, 1]]);
        insta::assert_snapshot!(json(link), @r#"{"src_mac":"02:00:00:00:00:02","dst_mac":"02:00:00:00:00:01","vlan_tags":[{"vlan_id":100,"priority":7,"drop_eligible":false},{"vlan_id":4095,"priority":0,"drop_eligible":true},{"vlan_id":0,"priority":0,"drop_eligible":false}],"mpls_labels":[{"label":16,"traffic_class":7,"bottom":false},{"label":32,"traffic_class":0,"bottom":true}]}"#);
        assert_eq!(serde_json::from_str::<Link>(&json(link)).unwrap(), link);
        // In a session of PPPoE.
        let session = [0x88, 0x64, 0x11, 0, 0, 1, 0, 12, 2, 0x81];
        let link = Link::read(&frame(&[&session, &stack]));
        assert_eq!((link.tags().len(), link.labels().len()), (0, 2));
        let ip = [0x88, 0x64, 0x11, 0, 0, 1, 0, 12, 0, 0x21];
        assert_eq!(Link::read(&frame(&[&ip, &stack])).labels().len(), 0);
    }

    #[test]
    fn of_too_many_the_outer_ones_stay() {
        let tags: Vec<u8> = (1..=5).flat_map(|vlan| [0x81, 0, 0, vlan]).collect();
        let link = Link::read(&frame(&[&tags, &[8, 0]]));
        assert_eq!(link.tags().collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert_eq!(link.labels().len(), 0);
        let stack: Vec<u8> = (1..=12).flat_map(|label| [0, label, 0, 64]).collect();
        let link = Link::read(&frame(&[&[0x88, 0x48], &stack]));
        assert_eq!(link.labels().map(|l| l[1]).collect::<Vec<_>>(), (1..=10).collect::<Vec<_>>());
        // A result of another make may claim more.
        let many = r#"{"src_mac":"?","dst_mac":"02:00:00:00:00:01","vlan_tags":[1,2,3,4,5],"mpls_labels":[]}"#;
        let tag = r#"{"vlan_id":1,"priority":0,"drop_eligible":false}"#;
        let many = many.replace("1,2,3,4,5", &[tag; 5].join(","));
        let link: Link = serde_json::from_str(&many).unwrap();
        assert_eq!((link.tags().len(), link.addresses().map(|mac| mac.0[5])), (4, [1, 0]));
    }
}
