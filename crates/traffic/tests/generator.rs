//! Every generated frame is what its stream says, byte for byte, with etherparse as the judge of checksums.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::collections::HashSet;

use common::{five_tuple, l3, v4_udp, v6_udp, verify};
use packet::{
    frame::{HeaderSpec, L4Spec, MplsLabel, Template, VlanTag},
    heap::{HeapBuf, HeapPool},
    stamp::Stamp,
    Buffer,
};
use proptest::prelude::*;
use traffic::{
    generator::Generator,
    stream::{Field, FieldSpec, StreamError, StreamSpec, Values},
    Mask,
};
use units::{FrameSize, Imix};

/// The next `n` frames, made in bursts of at most `burst`.
fn frames(generator: &mut Generator, n: usize, burst: usize, prefill: bool) -> Vec<Vec<u8>> {
    let pool = HeapPool::new(n, 9300);
    let start = if prefill { generator.template().to_vec() } else { vec![0xee; generator.frame_len()] };
    let mut bufs: Vec<HeapBuf> = (0..n).filter_map(|_| pool.frame(&start)).collect();
    for chunk in bufs.chunks_mut(burst) {
        generator.fill(chunk, 0x0123_4567_89ab_cdef);
    }
    bufs.iter().map(|buf| buf.data().to_vec()).collect()
}

fn stream(headers: HeaderSpec, bytes: u32, fields: Vec<(Field, Values)>) -> StreamSpec {
    let fields = fields.into_iter().map(|(field, values)| FieldSpec { field, values }).collect();
    StreamSpec { headers, frame_size: FrameSize::new(bytes).unwrap().into(), fields, flows: None, seed: 42 }
}

fn increment(start: u128, count: u64, step: u64) -> Values {
    Values::Increment { start: Some(start), count, step }
}

/// Where a field stands, its width in bytes and the bits of them that are its own: written anew for the test.
fn place(headers: &HeaderSpec, field: Field) -> (usize, usize, u128, u32) {
    let l3 = l3(headers);
    let v4 = matches!(headers.ip, packet::frame::IpSpec::V4 { .. });
    let l4 = l3 + if v4 { 20 } else { 40 };
    let whole = |at, width: usize| (at, width, u128::MAX >> (128 - 8 * width), 0);
    match field {
        Field::DstMac => whole(0, 6),
        Field::SrcMac => whole(6, 6),
        Field::SrcIp if v4 => whole(l3 + 12, 4),
        Field::DstIp if v4 => whole(l3 + 16, 4),
        Field::SrcIp => whole(l3 + 8, 16),
        Field::DstIp => whole(l3 + 24, 16),
        Field::SrcPort => whole(l4, 2),
        Field::DstPort => whole(l4 + 2, 2),
        Field::VlanId(i) => (14 + 4 * i, 2, 0xfff, 0),
        Field::MplsLabel(i) => (14 + 4 * headers.vlans.len() + 4 * i, 4, 0xf_ffff, 12),
        Field::Raw { offset, width } => whole(offset, width),
    }
}

fn value_of(frame: &[u8], headers: &HeaderSpec, field: Field) -> u128 {
    let (at, width, mask, shift) = place(headers, field);
    frame[at..at + width].iter().fold(0, |n, b| n << 8 | u128::from(*b)) >> shift & mask
}

/// Takes out what may differ from the template: varied fields, checksums and the stamp.
fn blank(frame: &[u8], spec: &StreamSpec) -> Vec<u8> {
    let mut out = frame.to_vec();
    let template = Template::new(&spec.headers, spec.frame_size.largest()).unwrap();
    let at = template.offsets();
    for field in &spec.fields {
        let (from, width, mask, shift) = place(&spec.headers, field.field);
        for (i, byte) in out[from..from + width].iter_mut().enumerate() {
            *byte &= !((mask << shift >> (8 * (width - 1 - i))) as u8);
        }
    }
    if spec.headers.ip_is_v4() {
        out[at.l3 + 10..at.l3 + 12].fill(0);
    }
    if let Some(at) = at.l4_checksum {
        out[at..at + 2].fill(0);
    }
    out[at.stamp..].fill(0);
    out
}

trait IsV4 {
    fn ip_is_v4(&self) -> bool;
}

impl IsV4 for HeaderSpec {
    fn ip_is_v4(&self) -> bool {
        matches!(self.ip, packet::frame::IpSpec::V4 { .. })
    }
}

fn any_headers() -> impl Strategy<Value = HeaderSpec> {
    let udp = v4_udp().l4;
    let l4 = prop_oneof![Just(udp), Just(L4Spec::Tcp { src: 1024, dst: 80, flags: 0x10 }), Just(L4Spec::None)];
    (any::<bool>(), l4, 0usize..=2, 0usize..=4).prop_map(|(v4, l4, vlans, labels)| {
        let mut headers = if v4 { v4_udp() } else { v6_udp() };
        headers.vlans = vec![VlanTag { tpid: 0x8100, vid: 100, pcp: 5 }; vlans];
        headers.mpls = vec![MplsLabel { label: 0x12345, tc: 3, ttl: 9 }; labels];
        headers.l4 = l4;
        headers
    })
}

/// Fields that do not overlap, each in some mode; the value a mode gives for frame `n` is checked in the test.
fn any_fields(headers: &HeaderSpec) -> impl Strategy<Value = Vec<(Field, Values)>> {
    let v4 = headers.ip_is_v4();
    let mut fields = vec![Field::SrcMac, Field::DstMac, Field::SrcIp, Field::DstIp];
    if headers.l4 != L4Spec::None {
        fields.extend([Field::SrcPort, Field::DstPort]);
    }
    fields.extend((0..headers.vlans.len()).map(Field::VlanId));
    fields.extend((0..headers.mpls.len()).map(Field::MplsLabel));
    fields.push(Field::Raw { offset: l3(headers) + if v4 { 8 } else { 7 }, width: 1 });
    proptest::sample::subsequence(fields.clone(), 0..=fields.len()).prop_flat_map(|fields| {
        let modes: Vec<_> = fields
            .into_iter()
            .map(|field| {
                let high = if matches!(field, Field::SrcIp | Field::DstIp) { 0 } else { 1 };
                let mask = match field {
                    Field::VlanId(_) => "0000000XX01XX101",
                    Field::MplsLabel(_) => "000000000000XXXX0000X111X10X0000",
                    Field::Raw { .. } => "1XX0X01X",
                    Field::SrcPort | Field::DstPort => "X1XX0000XXXX000X",
                    _ => "0000101000000000XXXX000000000001",
                };
                prop_oneof![
                    (0u128..100, 1u64..100, 1u64..2).prop_map(|(start, count, step)| increment(start, count, step)),
                    (0u128..100, 1u64..100).prop_map(|(start, count)| Values::Random { start: Some(start), count }),
                    Just(Values::Masked(mask.parse::<Mask>().unwrap())),
                    proptest::collection::vec(0u128..200 + high, 1..10).prop_map(Values::List),
                ]
                .prop_map(move |values| (field, values))
            })
            .collect();
        modes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn every_frame_is_what_the_stream_says(
        (headers, fields) in any_headers().prop_flat_map(|h| (Just(h.clone()), any_fields(&h))),
        extra in 0u32..300,
        burst in 1usize..100,
        seed: u64,
    ) {
        let size = Template::min_frame_size(&headers).bytes() + extra;
        let mut spec = stream(headers, size, fields);
        spec.seed = seed;
        let template = Template::new(&spec.headers, spec.frame_size.largest()).unwrap();
        let plain = blank(template.bytes(), &spec);
        let mut generator = Generator::new(&spec, 7, 3, true).unwrap();
        let made = frames(&mut generator, 130, burst, true);
        for (n, frame) in made.iter().enumerate() {
            verify(&frame[l3(&spec.headers)..]);
            let want = Stamp { epoch: 3, stream: 7, sequence: n as u32, departure: 0x0123_4567_89ab_cdef };
            prop_assert_eq!(Stamp::read(frame), Some(want));
            let mut blanked = blank(frame, &spec);
            // The upper half of an IPv6 address is the start's.
            blanked.truncate(plain.len());
            prop_assert_eq!(&blanked, &plain);
            for field in &spec.fields {
                let value = value_of(frame, &spec.headers, field.field);
                let own = value_of(template.bytes(), &spec.headers, field.field);
                match &field.values {
                    Values::Increment { start, count, step } => {
                        prop_assert_eq!(value, start.unwrap() + u128::from(n as u64 % count * step));
                    }
                    Values::Random { start, count } => {
                        prop_assert!((start.unwrap()..start.unwrap() + u128::from(*count)).contains(&value));
                    }
                    Values::List(list) => prop_assert_eq!(value, list[n % list.len()]),
                    Values::OfFlow { .. } => prop_assert!(false, "not among these"),
                    Values::Masked(mask) => {
                        let covered = u128::MAX >> (128 - mask.bits());
                        prop_assert_eq!(value & covered & !u128::from(mask.random()), u128::from(mask.fixed()));
                        prop_assert_eq!(value & !covered, own & !covered);
                    }
                }
            }
        }
        // Neither the bursts nor what was in the buffers make a difference.
        let mut whole = Generator::new(&spec, 7, 3, false).unwrap();
        prop_assert_eq!(&frames(&mut whole, 130, 64, false), &made);
    }

    #[test]
    fn a_frame_of_a_mix_is_what_its_size_alone_would_be(
        (headers, fields) in any_headers().prop_flat_map(|h| (Just(h.clone()), any_fields(&h))),
        extra in proptest::collection::vec(0u32..400, 1..7),
        bursts in proptest::collection::vec((1usize..=64, 0usize..64), 1..8),
        prefilled: bool,
    ) {
        let least = Template::min_frame_size(&headers).bytes();
        let sizes: Vec<u32> = extra.iter().map(|extra| least + extra).collect();
        let counts: Vec<String> = sizes.iter().map(|bytes| format!("1x{bytes}")).collect();
        let mut spec = stream(headers, least, fields);
        let alone: Vec<Vec<Vec<u8>>> = sizes.iter().map(|&bytes| {
            let spec = StreamSpec { frame_size: FrameSize::new(bytes).unwrap().into(), ..spec.clone() };
            frames(&mut Generator::new(&spec, 7, 3, true).unwrap(), 512, 64, true)
        }).collect();
        spec.frame_size = counts.join(":").parse::<Imix>().unwrap().into();
        spec.validate().unwrap();
        let mut generator = Generator::new(&spec, 7, 3, prefilled).unwrap();
        prop_assert_eq!(generator.frame_len() + 4, *sizes.iter().max().unwrap() as usize);
        // The same buffers again and again, so that each meets what another size left in it.
        let pool = HeapPool::new(64, 9300);
        let start = if prefilled { generator.template().to_vec() } else { vec![0xee; generator.frame_len()] };
        let mut bufs: Vec<HeapBuf> = (0..64).filter_map(|_| pool.frame(&start)).collect();
        for (offered, refused) in bursts {
            let first = generator.made() as usize;
            generator.fill(&mut bufs[..offered], 0x0123_4567_89ab_cdef);
            for (n, buf) in (first..).zip(&bufs[..offered]) {
                prop_assert_eq!(buf.data(), &alone[n % sizes.len()][n][..], "frame {}", n);
            }
            generator.unsent(refused.min(offered));
            bufs.rotate_left(offered / 2 + 1);
        }
        // And so are learning frames, whose stamp is another.
        let mut learning = generator.learning();
        learning.fill(&mut bufs, 0);
        for (n, buf) in bufs.iter().enumerate() {
            prop_assert_eq!(buf.len() + 4, sizes[n % sizes.len()] as usize);
            prop_assert_eq!(Stamp::read(buf.data()), None);
            verify(&buf.data()[l3(&spec.headers)..]);
        }
    }

    #[test]
    fn refused_frames_come_again(taken in proptest::collection::vec((1usize..64, 0usize..64), 1..20)) {
        let random = (Field::DstIp, Values::Random { start: None, count: 1000 });
        let spec = stream(v4_udp(), 64, vec![(Field::SrcPort, increment(0, 77, 3)), random]);
        let total = 2000;
        let all = frames(&mut Generator::new(&spec, 0, 0, true).unwrap(), total, 64, true);
        let mut generator = Generator::new(&spec, 0, 0, true).unwrap();
        let mut sent = 0;
        for (offered, refused) in taken {
            let refused = refused.min(offered);
            let made = frames(&mut generator, offered, 64, true);
            prop_assert_eq!(&made[..], &all[sent..sent + offered]);
            generator.unsent(refused);
            sent += offered - refused;
        }
        prop_assert_eq!(generator.made(), sent as u64);
    }
}

#[test]
fn flows_are_exactly_as_many_as_asked_ports_first() {
    for (headers, bytes) in [(v4_udp(), 64), (v6_udp(), 84)] {
        let mut spec = stream(headers, bytes, vec![]);
        let ports = 65536 - 0xc020;
        for flows in [1, 3, 1000, ports, ports + 1, 40_000] {
            spec.flows = Some(flows);
            let mut generator = Generator::new(&spec, 0, 0, true).unwrap();
            let made = frames(&mut generator, flows as usize * 2 + 3, 64, true);
            let tuples: Vec<_> = made.iter().map(|f| five_tuple(&f[14..])).collect();
            assert_eq!(tuples[..flows as usize].iter().collect::<HashSet<_>>().len(), flows as usize);
            assert_eq!(tuples.iter().collect::<HashSet<_>>().len(), flows as usize);
            assert_eq!(tuples[0], tuples[flows as usize]);
            made.iter().step_by(97).for_each(|f| verify(&f[14..]));
            let address = |frame: &[u8]| value_of(frame, &spec.headers, Field::SrcIp);
            let moved = address(&made[flows as usize - 1]) - address(&made[0]);
            assert_eq!(moved, u128::from((flows - 1) / ports));
        }
    }
}

#[test]
fn without_ports_every_flow_has_its_own_address() {
    let bare =
        |headers| HeaderSpec { mpls: vec![MplsLabel { label: 16, tc: 0, ttl: 64 }], l4: L4Spec::None, ..headers };
    for (headers, bytes) in [(bare(v4_udp()), 64), (bare(v6_udp()), 80)] {
        let mut spec = stream(headers, bytes, vec![]);
        for flows in [1, 3, 16_384] {
            spec.flows = Some(flows);
            let mut generator = Generator::new(&spec, 0, 0, true).unwrap();
            let made = frames(&mut generator, flows as usize * 2 + 3, 64, true);
            let address = |frame: &[u8]| value_of(frame, &spec.headers, Field::SrcIp);
            let first = address(generator.template());
            for (n, frame) in made.iter().enumerate() {
                assert_eq!(address(frame), first + u128::from(n as u64 % flows));
                assert_eq!(Stamp::read(frame).unwrap().sequence, n as u32);
            }
            made.iter().step_by(97).for_each(|frame| verify(&frame[l3(&spec.headers)..]));
        }
    }
    // 198.18.1.2 is this far from the last address.
    let most = (1 << 32) - u64::from(u32::from_be_bytes([198, 18, 1, 2]));
    let mut spec = stream(bare(v4_udp()), 64, vec![]);
    spec.flows = Some(most);
    spec.validate().unwrap();
    spec.flows = Some(most + 1);
    let refused = StreamError::Flows { asked: most + 1, most, from: "address" };
    assert_eq!(spec.validate(), Err(refused));
    for field in [Field::SrcPort, Field::DstPort] {
        let spec = stream(bare(v4_udp()), 64, vec![(field, increment(0, 1, 1))]);
        let headers = "Ethernet/MPLS/IPv4".to_owned();
        assert_eq!(spec.validate(), Err(StreamError::NoTransport { field, headers }));
    }
}

#[test]
fn a_raw_field_behind_the_ip_header_is_payload_without_a_transport_header() {
    let headers = HeaderSpec { l4: L4Spec::None, ..v4_udp() };
    let field = |offset, width| vec![(Field::Raw { offset, width }, increment(0, 200, 1))];
    let spec = stream(headers.clone(), 64, field(38, 4));
    for (n, frame) in frames(&mut Generator::new(&spec, 0, 0, true).unwrap(), 300, 64, true).iter().enumerate() {
        verify(&frame[14..]);
        assert_eq!(value_of(frame, &spec.headers, spec.fields[0].field), (n as u64 % 200).into());
    }
    // From the IP header into the payload, and into the stamp.
    let mut shown = String::new();
    for offset in [32, 40] {
        let error = stream(headers.clone(), 64, field(offset, 4)).validate().unwrap_err();
        assert!(matches!(error, StreamError::Raw { .. }), "{error}");
        shown += &format!("{error}\n");
    }
    insta::assert_snapshot!("raw_field_errors", shown);
}

#[test]
fn a_random_field_takes_all_its_values_evenly() {
    let spec = stream(v4_udp(), 64, vec![(Field::SrcPort, Values::Random { start: Some(5), count: 10 })]);
    let mut generator = Generator::new(&spec, 0, 0, true).unwrap();
    let mut seen = [0usize; 10];
    for frame in frames(&mut generator, 10_000, 64, true) {
        seen[value_of(&frame, &spec.headers, Field::SrcPort) as usize - 5] += 1;
    }
    assert!(seen.iter().all(|n| (850..1150).contains(n)), "{seen:?}");
}

#[test]
fn another_seed_or_field_draws_other_values() {
    let random = || Values::Random { start: Some(0), count: 60_000 };
    let mut spec = stream(v4_udp(), 64, vec![(Field::SrcPort, random()), (Field::DstPort, random())]);
    let draw = |spec: &StreamSpec| {
        let made = frames(&mut Generator::new(spec, 0, 0, true).unwrap(), 100, 64, true);
        let of = |field| made.iter().map(|f| value_of(f, &spec.headers, field)).collect::<Vec<_>>();
        (of(Field::SrcPort), of(Field::DstPort))
    };
    let first = draw(&spec);
    assert_ne!(first.0, first.1);
    assert_eq!(draw(&spec), first);
    spec.seed += 1;
    assert_ne!(draw(&spec).0, first.0);
}

#[test]
fn a_raw_field_in_the_payload_is_covered_by_the_checksum() {
    for (offset, width, frame) in [(60, 4, 128), (63, 4, 129), (61, 1, 128), (62, 1, 128), (65, 2, 131), (124, 4, 200)]
    {
        let count = if width == 1 { 256 } else { 60_000 };
        let spec = stream(v4_udp(), frame, vec![(Field::Raw { offset, width }, increment(0, count, 1))]);
        let mut generator = Generator::new(&spec, 0, 0, true).unwrap();
        for (n, frame) in frames(&mut generator, 300, 64, true).iter().enumerate() {
            verify(&frame[14..]);
            assert_eq!(value_of(frame, &spec.headers, Field::Raw { offset, width }), (n as u64 % count).into());
        }
    }
}

#[test]
fn an_ipv6_start_brings_its_own_upper_half() {
    let start: u128 = 0x2001_0db8_0000_0007_0000_0000_0000_0001;
    let spec = stream(v6_udp(), 84, vec![(Field::DstIp, increment(start, 300, 5))]);
    for (n, frame) in frames(&mut Generator::new(&spec, 0, 0, true).unwrap(), 300, 64, true).iter().enumerate() {
        verify(&frame[14..]);
        assert_eq!(value_of(frame, &spec.headers, Field::DstIp), start + 5 * n as u128);
    }
}

#[test]
fn learning_frames_are_whole_but_foreign() {
    let spec = stream(v4_udp(), 64, vec![(Field::SrcMac, increment(0x0200_0000_0001, 4, 1))]);
    let mut generator = Generator::new(&spec, 9, 9, true).unwrap();
    frames(&mut generator, 10, 64, true);
    for (n, frame) in frames(&mut generator.learning(), 8, 64, true).iter().enumerate() {
        verify(&frame[14..]);
        assert_eq!(Stamp::read(frame), None);
        assert_eq!(frame[11], 1 + (n % 4) as u8);
    }
    assert_eq!(generator.made(), 10);
}

/// The name of an error's variant.
fn variant(error: &StreamError) -> &'static str {
    match error {
        StreamError::Frame(_) => "Frame",
        StreamError::Absent { .. } => "Absent",
        StreamError::NoTransport { .. } => "NoTransport",
        StreamError::Values { .. } => "Values",
        StreamError::Overlap { .. } => "Overlap",
        StreamError::Raw { .. } => "Raw",
        StreamError::Flows { .. } => "Flows",
    }
}

#[test]
fn what_cannot_be_sent_is_refused_and_named() {
    let mask = |text: &str| Values::Masked(text.parse().unwrap());
    let raw = |offset, width| Field::Raw { offset, width };
    let one = || increment(0, 1, 1);
    let cases = [
        (vec![(Field::VlanId(0), one())], "Absent"),
        (vec![(Field::MplsLabel(2), one())], "Absent"),
        (vec![(Field::SrcPort, increment(60_000, 10_000, 1))], "Values"),
        (vec![(Field::SrcPort, increment(0, 0, 1))], "Values"),
        (vec![(Field::SrcPort, increment(0, 2, 0))], "Values"),
        (vec![(Field::DstIp, increment(0, 2, u64::MAX))], "Values"),
        (vec![(Field::DstIp, increment(1 << 32, 1, 1))], "Values"),
        (vec![(Field::DstPort, Values::Random { start: Some(1), count: 65536 })], "Values"),
        (vec![(Field::DstPort, Values::List(vec![]))], "Values"),
        (vec![(Field::DstPort, Values::List(vec![1, 65536]))], "Values"),
        (vec![(Field::DstPort, mask("00000000000000010000000000000000"))], "Values"),
        (vec![(raw(30, 4), mask("XXXXXXXX"))], "Values"),
        (vec![(Field::DstIp, one()), (raw(30, 2), one())], "Overlap"),
        (vec![(raw(12, 2), one())], "Raw"),
        (vec![(raw(24, 1), one())], "Raw"),
        (vec![(raw(32, 4), one())], "Raw"),
        (vec![(raw(30, 3), one())], "Raw"),
        (vec![(raw(41, 2), one())], "Raw"),
        (vec![(raw(usize::MAX, 4), one())], "Raw"),
    ];
    let mut shown = String::new();
    for (fields, kind) in cases {
        let spec = stream(v4_udp(), 64, fields);
        let error = spec.validate().unwrap_err();
        assert_eq!(variant(&error), kind, "{error}");
        assert!(Generator::new(&spec, 0, 0, true).is_err());
        shown += &format!("{error}\n");
    }
    insta::assert_snapshot!("stream_errors", shown);
    let mut spec = stream(v4_udp(), 64, vec![(Field::SrcPort, one())]);
    spec.flows = Some(2);
    assert!(matches!(spec.validate(), Err(StreamError::Overlap { .. })));
    spec.fields.clear();
    for flows in [0, u64::MAX] {
        spec.flows = Some(flows);
        assert!(matches!(spec.validate(), Err(StreamError::Flows { .. })));
    }
}

#[test]
fn a_value_of_each_flow_makes_no_more_flows() {
    let start = 0x0a00_0000;
    for (flows, count, values) in [(1, 1000, 1), (10, 1000, 10), (1000, 10, 10), (10, 7, 7), (7, 10, 7), (5, 5, 5)] {
        let of_flow = Values::OfFlow { start, count };
        let spec = StreamSpec { flows: Some(flows), ..stream(v4_udp(), 64, vec![(Field::DstIp, of_flow)]) };
        let mut generator = Generator::new(&spec, 0, 0, false).unwrap();
        let frames = frames(&mut generator, 3000, 32, false);
        let tuples: HashSet<_> = frames.iter().map(|f| five_tuple(&f[14..])).collect();
        let hit: HashSet<_> = frames.iter().map(|f| value_of(f, &spec.headers, Field::DstIp)).collect();
        assert_eq!((tuples.len() as u64, hit.len()), (flows, values), "{flows} over {count}");
        let (least, most) = (hit.iter().min().unwrap() - start, hit.iter().max().unwrap() - start);
        assert!(least == 0 && most < u128::from(count) && (flows < 2 || most * 2 >= u128::from(count) - 1), "{most}");
        frames.iter().for_each(|f| verify(&f[14..]));
    }
    let many = Values::OfFlow { start: 0xffff_ffff, count: 2 };
    assert!(Generator::new(&stream(v4_udp(), 64, vec![(Field::DstIp, many)]), 0, 0, false).is_err());
}
