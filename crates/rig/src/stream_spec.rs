//! From the plan's traffic section to what the generator sends, one stream a direction.

use std::net::IpAddr;

use dataplane::spec::PlaneSpec;
use measure::plan::{FieldMode, FieldPlan, IpVersion, Traffic, L4};
use packet::{
    frame::{HeaderSpec, IpSpec, L4Spec, MplsLabel, VlanTag},
    headers::{ethertype, tcp},
    MacAddr,
};
use traffic::stream::{Field, FieldSpec, StreamSpec, Values};
use units::Frames;

use failure::Failure;

/// The stream sent by port `direction` (0 or 1); the second swaps addresses and ports of the first.
///
/// `macs` are the MACs of both tester ports, used where the plan gives none: a frame goes from its own port's address
/// to the other port's, as a bridge or a cross-connect wants it.
pub fn stream(
    t: &Traffic,
    frames: impl Into<Frames>,
    direction: usize,
    macs: [MacAddr; 2],
) -> Result<StreamSpec, Failure> {
    let (near, far) = (direction, 1 - direction);
    let mac = |list: &[String], at: usize, default: MacAddr| match list.get(at) {
        Some(text) => text.parse().map_err(Failure::usage),
        None => Ok(default),
    };
    let (src, dst) = match (t.addresses(), direction) {
        ((src, dst), 0) => (src, dst),
        ((src, dst), _) => (dst, src),
    };
    let (src_port, dst_port) = if direction == 0 { (t.src_port, t.dst_port) } else { (t.dst_port, t.src_port) };
    let (ttl, dscp) = (t.ttl, t.dscp);
    let labels = if direction == 1 && !t.mpls_back.is_empty() { &t.mpls_back } else { &t.mpls };
    let ip = match (src, dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => IpSpec::V4 { src, dst, ttl, dscp },
        (IpAddr::V6(src), IpAddr::V6(dst)) => IpSpec::V6 { src, dst, hop_limit: ttl, dscp, flow_label: 0 },
        _ => return Err(Failure::usage(format!("traffic.src_ip {src} and traffic.dst_ip {dst} are of two versions"))),
    };
    let headers = HeaderSpec {
        src_mac: mac(&t.src_mac, near, macs[near])?,
        dst_mac: mac(&t.dst_mac, near, macs[far])?,
        vlans: vlan_tags(&t.vlan),
        mpls: labels.iter().map(|&label| MplsLabel { label, tc: 0, ttl }).collect(),
        ip,
        l4: match t.l4 {
            L4::Udp => L4Spec::Udp { src: src_port, dst: dst_port },
            L4::Tcp => L4Spec::Tcp { src: src_port, dst: dst_port, flags: tcp::ACK },
            L4::None => L4Spec::None,
        },
    };
    let spec = StreamSpec {
        headers,
        frame_size: frames.into(),
        fields: t.field.iter().map(|f| field(f, t, direction)).collect::<Result<_, _>>()?,
        flows: (t.flows > 1).then_some(t.flows),
        seed: t.seed.wrapping_add(direction as u64),
    };
    spec.validate().map_err(Failure::usage)?;
    Ok(spec)
}

/// Spreads the destinations of a stream's flows over the host routes behind port 0 or 1.
pub fn over_routes(spec: &mut StreamSpec, port: usize, routes: u64) {
    let first = PlaneSpec::first_host(port);
    if let IpSpec::V4 { dst, .. } = &mut spec.headers.ip {
        *dst = first;
    }
    // What does not vary costs the generator nothing.
    if routes > 1 && spec.flows.is_some() {
        let values = Values::OfFlow { start: u128::from(first.to_bits()), count: routes };
        spec.fields.push(FieldSpec { field: Field::DstIp, values });
    }
}

/// The outer of two tags is a service tag (IEEE 802.1ad).
fn vlan_tags(ids: &[u16]) -> Vec<VlanTag> {
    let tag = |(i, &vid): (usize, &u16)| VlanTag {
        tpid: if i == 0 && ids.len() > 1 { ethertype::QINQ } else { ethertype::VLAN },
        vid,
        pcp: 0,
    };
    ids.iter().enumerate().map(tag).collect()
}

/// A field of the plan. For the second direction source and destination trade places.
fn field(plan: &FieldPlan, t: &Traffic, direction: usize) -> Result<FieldSpec, Failure> {
    let err = |what: String| Failure::usage(format!("field {}: {what}", plan.field));
    let mask = plan.mask.as_deref().map(|m| m.parse::<traffic::Mask>()).transpose().map_err(|e| err(e.to_string()))?;
    let name = match (plan.field.as_str(), direction) {
        (name, 0) => name.to_owned(),
        (name, _) => match (name.strip_prefix("src_"), name.strip_prefix("dst_")) {
            (Some(rest), _) => format!("dst_{rest}"),
            (_, Some(rest)) => format!("src_{rest}"),
            _ => name.to_owned(),
        },
    };
    let field = match name.as_str() {
        "src_mac" => Field::SrcMac,
        "dst_mac" => Field::DstMac,
        "src_ip" => Field::SrcIp,
        "dst_ip" => Field::DstIp,
        "src_port" => Field::SrcPort,
        "dst_port" => Field::DstPort,
        "vlan" => Field::VlanId(0),
        "mpls" => Field::MplsLabel(0),
        name => {
            let offset = name.strip_prefix("raw@").and_then(|n| n.parse().ok());
            let width = mask.map(|m| m.bits() as usize / 8);
            match (offset, width) {
                (Some(offset), Some(width)) => Field::Raw { offset, width },
                (Some(_), None) => return Err(err("a raw field is varied by a mask".to_owned())),
                (None, _) => {
                    return Err(err("is none of src_mac, dst_mac, src_ip, dst_ip, src_port, dst_port, vlan, mpls \
                                    and raw@OFFSET"
                        .to_owned()))
                }
            }
        }
    };
    let number = |text: &String| value(text, field, t.ip).ok_or_else(|| err(format!("{text:?} is no value of it")));
    let start = plan.start.as_ref().map(number).transpose()?;
    let count = plan.count.unwrap_or(1);
    let values = match plan.mode {
        FieldMode::Increment => Values::Increment { start, count, step: plan.step.unwrap_or(1) },
        FieldMode::Random => Values::Random { start, count },
        FieldMode::Mask => Values::Masked(mask.ok_or_else(|| err("mode mask needs a mask".to_owned()))?),
        FieldMode::List => Values::List(plan.values.iter().map(number).collect::<Result<_, _>>()?),
    };
    Ok(FieldSpec { field, values })
}

/// A value as the generator counts it: addresses are numbers in network order.
fn value(text: &str, field: Field, ip: IpVersion) -> Option<u128> {
    let hex_or_decimal = |t: &str| match t.strip_prefix("0x") {
        Some(hex) => u128::from_str_radix(hex, 16).ok(),
        None => t.parse().ok(),
    };
    match field {
        Field::SrcMac | Field::DstMac => text
            .parse::<MacAddr>()
            .ok()
            .map(|m| m.0.iter().fold(0, |n, &b| n << 8 | u128::from(b)))
            .or_else(|| hex_or_decimal(text)),
        Field::SrcIp | Field::DstIp => match (text.parse::<IpAddr>(), ip) {
            (Ok(IpAddr::V4(a)), IpVersion::V4) => Some(u128::from(a.to_bits())),
            (Ok(IpAddr::V6(a)), IpVersion::V6) => Some(a.to_bits()),
            (Ok(_), _) => None,
            (Err(_), _) => hex_or_decimal(text),
        },
        _ => hex_or_decimal(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACS: [MacAddr; 2] = [MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2])];

    #[test]
    fn the_second_direction_mirrors_the_first() {
        let mut t = Traffic { flows: 8, ..Traffic::default() };
        t.field.push(FieldPlan {
            field: "dst_ip".into(),
            mode: FieldMode::Increment,
            start: Some("198.19.0.9".into()),
            count: Some(4),
            step: None,
            mask: None,
            values: vec![],
        });
        let size = units::FrameSize::MIN;
        let there = stream(&t, size, 0, MACS).unwrap();
        assert_eq!(there.fields[0].field, Field::DstIp);
        assert_eq!((there.headers.src_mac, there.headers.dst_mac), (MACS[0], MACS[1]));
        t.flows = 1;
        let back = stream(&t, size, 1, MACS).unwrap();
        assert_eq!((back.headers.src_mac, back.headers.dst_mac), (MACS[1], MACS[0]));
        assert_eq!(back.fields[0].field, Field::SrcIp);
    }

    #[test]
    fn destinations_lie_within_the_routes_of_the_port() {
        let t = Traffic { flows: 8, ..Traffic::default() };
        let mut spec = stream(&t, units::FrameSize::MIN, 1, MACS).unwrap();
        over_routes(&mut spec, 0, 1 << 20);
        spec.validate().unwrap();
        let IpSpec::V4 { dst, .. } = spec.headers.ip else { panic!("IPv4") };
        assert_eq!((dst, spec.fields[0].field), ([10, 128, 0, 0].into(), Field::DstIp));
        for (flows, routes) in [(1, 1 << 20), (8, 1)] {
            let mut spec = stream(&Traffic { flows, ..Traffic::default() }, units::FrameSize::MIN, 0, MACS).unwrap();
            over_routes(&mut spec, 1, routes);
            assert!(spec.fields.is_empty(), "{flows} flows to {routes} routes have one destination");
        }
    }

    #[test]
    fn without_a_transport_header_both_directions_have_none() {
        let t = Traffic { l4: L4::None, mpls: vec![16], mpls_back: vec![17], flows: 16_384, ..Traffic::default() };
        for (direction, label) in [(0, 16), (1, 17)] {
            let spec = stream(&t, units::FrameSize::MIN, direction, MACS).unwrap();
            assert_eq!((spec.headers.l4, spec.headers.mpls[0].label), (L4Spec::None, label));
        }
        // The plan has counted on 2^24 at most, and from here there are but 256.
        let t = Traffic { src_ip: Some([255, 255, 255, 0].into()), ..t };
        let text = stream(&t, units::FrameSize::MIN, 0, MACS).unwrap_err().text;
        assert_eq!(text, "flows 16384: must be 1 to 256 from this source address");
    }

    #[test]
    fn the_masked_field_of_the_two_vm_document_is_taken() {
        let mut t = Traffic::default();
        t.field.push(FieldPlan {
            field: "raw@30".into(),
            mode: FieldMode::Mask,
            start: None,
            count: None,
            step: None,
            mask: Some("0000101000000000XXXX000000000001".into()),
            values: vec![],
        });
        let spec = stream(&t, units::FrameSize::MIN, 0, MACS).unwrap();
        assert_eq!(spec.fields[0].field, Field::Raw { offset: 30, width: 4 });
    }
}
