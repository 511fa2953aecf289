//! A whole test frame from what its headers should say: the template that a stream's frames are copies of.

use std::{
    fmt,
    net::{Ipv4Addr, Ipv6Addr},
};

use units::{FrameSize, FCS_BYTES};

use crate::{
    checksum,
    headers::{
        eth::{self, Eth},
        ethertype,
        ipv4::{self, Ipv4},
        ipv6::{self, Ipv6},
        mpls::{self, Mpls},
        protocol,
        tcp::{self, Tcp},
        udp::{self, Udp},
        vlan::{self, Vlan},
    },
    stamp, MacAddr,
};

/// The most VLAN tags of a frame.
pub const MAX_VLANS: usize = 2;
/// The most MPLS labels of a frame.
pub const MAX_LABELS: usize = 4;
/// IP protocol of frames without a transport header: for experiments (RFC 3692 §2.1).
pub const NO_TRANSPORT: u8 = 253;

/// What the headers of a frame say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderSpec {
    /// Destination MAC.
    pub dst_mac: MacAddr,
    /// Source MAC.
    pub src_mac: MacAddr,
    /// VLAN tags from the outermost, at most [`MAX_VLANS`].
    pub vlans: Vec<VlanTag>,
    /// MPLS labels from the top of the stack, at most [`MAX_LABELS`].
    pub mpls: Vec<MplsLabel>,
    /// The IP header.
    pub ip: IpSpec,
    /// The transport header.
    pub l4: L4Spec,
}

/// One VLAN tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VlanTag {
    /// 0x8100, or 0x88a8 for a service tag.
    pub tpid: u16,
    /// VLAN identifier, 0 to 4094.
    pub vid: u16,
    /// Priority, 0 to 7.
    pub pcp: u8,
}

/// One MPLS label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MplsLabel {
    /// Label, 20 bits.
    pub label: u32,
    /// Traffic class, 0 to 7.
    pub tc: u8,
    /// Time to live.
    pub ttl: u8,
}

/// The IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IpSpec {
    /// IPv4, without options or fragments.
    V4 {
        /// Source.
        src: Ipv4Addr,
        /// Destination.
        dst: Ipv4Addr,
        /// Time to live.
        ttl: u8,
        /// Differentiated services code point, 0 to 63.
        dscp: u8,
    },
    /// IPv6, without extension headers.
    V6 {
        /// Source.
        src: Ipv6Addr,
        /// Destination.
        dst: Ipv6Addr,
        /// Hop limit.
        hop_limit: u8,
        /// Differentiated services code point, 0 to 63.
        dscp: u8,
        /// Flow label, 20 bits.
        flow_label: u32,
    },
}

/// The transport header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum L4Spec {
    /// UDP.
    Udp {
        /// Source port.
        src: u16,
        /// Destination port.
        dst: u16,
    },
    /// TCP without options.
    Tcp {
        /// Source port.
        src: u16,
        /// Destination port.
        dst: u16,
        /// Flags, such as [`tcp::ACK`].
        flags: u8,
    },
    /// No transport header: the payload follows the IP header, whose protocol is [`NO_TRANSPORT`]. So a 64-byte frame
    /// holds IPv4 and the stamp behind an MPLS label, which with UDP it does not.
    None,
}

impl L4Spec {
    /// Length of the header in bytes.
    fn len(self) -> usize {
        match self {
            Self::Udp { .. } => udp::LEN,
            Self::Tcp { .. } => tcp::LEN,
            Self::None => 0,
        }
    }

    /// What the IP header calls it: IPv4's protocol, IPv6's next header.
    pub fn protocol(self) -> u8 {
        match self {
            Self::Udp { .. } => protocol::UDP,
            Self::Tcp { .. } => protocol::TCP,
            Self::None => NO_TRANSPORT,
        }
    }

    /// Source port; `None` without a transport header.
    pub fn src_port(self) -> Option<u16> {
        match self {
            Self::Udp { src, .. } | Self::Tcp { src, .. } => Some(src),
            Self::None => None,
        }
    }

    /// Where in the header its checksum stands.
    fn checksum(self) -> Option<usize> {
        match self {
            Self::Udp { .. } => Some(udp::CHECKSUM),
            Self::Tcp { .. } => Some(tcp::CHECKSUM),
            Self::None => None,
        }
    }
}

/// Headers that cannot be, or do not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The frame size is too small for its headers and the stamp.
    #[error(
        "frame size {asked}: {headers} and the {}-byte stamp need at least {least} bytes, FCS included",
        stamp::LEN
    )]
    TooSmall {
        /// The headers, outermost first.
        headers: String,
        /// The least frame size in bytes, FCS included.
        least: u32,
        /// The size asked for.
        asked: u32,
    },
    /// A value does not fit its header field.
    #[error("{field} {value}: must be {legal}")]
    Field {
        /// Which field.
        field: &'static str,
        /// The value given.
        value: u32,
        /// The legal range.
        legal: &'static str,
    },
}

impl HeaderSpec {
    /// Length of all headers in bytes.
    pub fn len(&self) -> usize {
        let ip = match self.ip {
            IpSpec::V4 { .. } => ipv4::LEN,
            IpSpec::V6 { .. } => ipv6::LEN,
        };
        eth::LEN + self.vlans.len() * vlan::LEN + self.mpls.len() * mpls::LEN + ip + self.l4.len()
    }

    /// Never: there is always an Ethernet header.
    pub fn is_empty(&self) -> bool {
        false
    }

    fn validate(&self) -> Result<(), FrameError> {
        let check = |field, value: u32, max: u32, legal| {
            if value <= max {
                Ok(())
            } else {
                Err(FrameError::Field { field, value, legal })
            }
        };
        check("number of VLAN tags", self.vlans.len() as u32, MAX_VLANS as u32, "0 to 2")?;
        check("number of MPLS labels", self.mpls.len() as u32, MAX_LABELS as u32, "0 to 4")?;
        for tag in &self.vlans {
            check("VLAN id", tag.vid.into(), vlan::MAX_VID.into(), "0 to 4094")?;
            check("VLAN priority", tag.pcp.into(), 7, "0 to 7")?;
            // Anything else would not be read as a tag by the DUT.
            if !matches!(tag.tpid, ethertype::VLAN | ethertype::QINQ | 0x9100 | 0x9200) {
                let legal = "0x8100 (33024), 0x88a8 (34984), 0x9100 (37120) or 0x9200 (37376)";
                return Err(FrameError::Field { field: "VLAN TPID", value: tag.tpid.into(), legal });
            }
        }
        for entry in &self.mpls {
            check("MPLS label", entry.label, mpls::MAX_LABEL, "0 to 1048575")?;
            check("MPLS traffic class", entry.tc.into(), 7, "0 to 7")?;
        }
        match self.ip {
            IpSpec::V4 { dscp, .. } => check("DSCP", dscp.into(), 63, "0 to 63"),
            IpSpec::V6 { dscp, flow_label, .. } => {
                check("DSCP", dscp.into(), 63, "0 to 63")?;
                check("flow label", flow_label, 0xf_ffff, "0 to 1048575")
            }
        }
    }
}

impl fmt::Display for HeaderSpec {
    /// `Ethernet/VLAN/MPLS/IPv4/UDP`, or `Ethernet/IPv4` without a transport header.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ethernet")?;
        self.vlans.iter().try_for_each(|_| f.write_str("/VLAN"))?;
        self.mpls.iter().try_for_each(|_| f.write_str("/MPLS"))?;
        f.write_str(match self.ip {
            IpSpec::V4 { .. } => "/IPv4",
            IpSpec::V6 { .. } => "/IPv6",
        })?;
        f.write_str(match self.l4 {
            L4Spec::Udp { .. } => "/UDP",
            L4Spec::Tcp { .. } => "/TCP",
            L4Spec::None => "",
        })
    }
}

/// Where things stand in a frame: bytes from its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offsets {
    /// The first VLAN tag's control information, when there is one: tag `i` is 4 bytes further each.
    pub vlan: usize,
    /// The first MPLS label, when there is one.
    pub mpls: usize,
    /// The IP header.
    pub l3: usize,
    /// What follows the IP header: the transport header, or the payload when there is none.
    pub l4: usize,
    /// The transport checksum; `None` without a transport header.
    pub l4_checksum: Option<usize>,
    /// The first byte behind the headers.
    pub payload: usize,
    /// The stamp, at the end.
    pub stamp: usize,
}

/// A complete frame, without FCS: lengths and checksums are right, the stamp area is zero, and the payload before it
/// holds the incrementing octets of RFC 2544 C.2.6.4.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    bytes: Vec<u8>,
    offsets: Offsets,
}

impl Template {
    /// Builds the frame. Errors when a value does not fit its field, or the headers and a stamp the size.
    pub fn new(spec: &HeaderSpec, size: FrameSize) -> Result<Self, FrameError> {
        spec.validate()?;
        let least = least_bytes(spec);
        if size.bytes() < least {
            return Err(FrameError::TooSmall { headers: spec.to_string(), least, asked: size.bytes() });
        }
        let mut bytes = vec![0; size.without_fcs()];
        let offsets = offsets(spec, bytes.len());
        if let Some(payload) = bytes.get_mut(offsets.payload..offsets.stamp) {
            payload.iter_mut().enumerate().for_each(|(i, byte)| *byte = i as u8);
        }
        write_l2(spec, &mut bytes);
        write_l3_l4(spec, &offsets, &mut bytes);
        Ok(Self { bytes, offsets })
    }

    /// The smallest legal frame that holds these headers and a stamp.
    pub fn min_frame_size(spec: &HeaderSpec) -> FrameSize {
        FrameSize::new(least_bytes(spec)).unwrap_or(FrameSize::MIN)
    }

    /// The frame's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where things stand in it.
    pub fn offsets(&self) -> &Offsets {
        &self.offsets
    }
}

fn least_bytes(spec: &HeaderSpec) -> u32 {
    ((spec.len() + stamp::LEN) as u32 + FCS_BYTES).max(FrameSize::MIN.bytes())
}

fn offsets(spec: &HeaderSpec, len: usize) -> Offsets {
    let mpls = eth::LEN + spec.vlans.len() * vlan::LEN;
    let l3 = mpls + spec.mpls.len() * mpls::LEN;
    let l4 = l3
        + match spec.ip {
            IpSpec::V4 { .. } => ipv4::LEN,
            IpSpec::V6 { .. } => ipv6::LEN,
        };
    let l4_checksum = spec.l4.checksum().map(|at| l4 + at);
    Offsets { vlan: eth::LEN, mpls, l3, l4, l4_checksum, payload: spec.len(), stamp: len - stamp::LEN }
}

// Every `write` below has room: the frame was made to hold its headers.
fn write_l2(spec: &HeaderSpec, bytes: &mut [u8]) {
    let inner = match (spec.mpls.is_empty(), &spec.ip) {
        (false, _) => ethertype::MPLS,
        (true, IpSpec::V4 { .. }) => ethertype::IPV4,
        (true, IpSpec::V6 { .. }) => ethertype::IPV6,
    };
    let types: Vec<u16> = spec.vlans.iter().map(|tag| tag.tpid).chain([inner]).collect();
    let _ =
        Eth { dst: spec.dst_mac, src: spec.src_mac, ether_type: types.first().copied().unwrap_or(inner) }.write(bytes);
    let mut at = eth::LEN;
    for (tag, &ether_type) in spec.vlans.iter().zip(types.iter().skip(1)) {
        let _ = Vlan { pcp: tag.pcp, dei: false, vid: tag.vid, ether_type }.write(&mut bytes[at..]);
        at += vlan::LEN;
    }
    for (i, entry) in spec.mpls.iter().enumerate() {
        let bottom = i + 1 == spec.mpls.len();
        let _ = Mpls { label: entry.label, tc: entry.tc, bottom, ttl: entry.ttl }.write(&mut bytes[at..]);
        at += mpls::LEN;
    }
}

fn write_l3_l4(spec: &HeaderSpec, at: &Offsets, bytes: &mut [u8]) {
    let (l3_len, l4_len) = ((bytes.len() - at.l3) as u16, (bytes.len() - at.l4) as u16);
    let protocol = spec.l4.protocol();
    let pseudo = match spec.ip {
        IpSpec::V4 { src, dst, ttl, dscp } => {
            let header = Ipv4 {
                dscp,
                ecn: 0,
                total_len: l3_len,
                id: 0,
                dont_fragment: false,
                more_fragments: false,
                fragment_offset: 0,
                ttl,
                protocol,
                checksum: 0,
                src,
                dst,
            };
            let _ = header.write(&mut bytes[at.l3..]);
            let checksum = checksum::finish(checksum::sum(&bytes[at.l3..at.l4]));
            let _ = Ipv4 { checksum, ..header }.write(&mut bytes[at.l3..]);
            checksum::pseudo_v4(src, dst, protocol, l4_len)
        }
        IpSpec::V6 { src, dst, hop_limit, dscp, flow_label } => {
            let header = Ipv6 {
                traffic_class: dscp << 2,
                flow_label,
                payload_len: l4_len,
                next_header: protocol,
                hop_limit,
                src,
                dst,
            };
            let _ = header.write(&mut bytes[at.l3..]);
            checksum::pseudo_v6(src, dst, protocol, l4_len.into())
        }
    };
    match spec.l4 {
        L4Spec::Udp { src, dst } => {
            let header = Udp { src_port: src, dst_port: dst, len: l4_len, checksum: 0 };
            let _ = header.write(&mut bytes[at.l4..]);
            let checksum = checksum::finish_udp(pseudo + checksum::sum(&bytes[at.l4..]));
            let _ = Udp { checksum, ..header }.write(&mut bytes[at.l4..]);
        }
        L4Spec::Tcp { src, dst, flags } => {
            let header =
                Tcp { src_port: src, dst_port: dst, seq: 0, ack: 0, flags, window: 0xffff, checksum: 0, urgent: 0 };
            let _ = header.write(&mut bytes[at.l4..]);
            let checksum = checksum::finish(pseudo + checksum::sum(&bytes[at.l4..]));
            let _ = Tcp { checksum, ..header }.write(&mut bytes[at.l4..]);
        }
        L4Spec::None => {}
    }
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
