//! IPFIX messages: ours there and back, those of RFC 7011, and what nobody should send.
#![allow(clippy::unwrap_used, clippy::panic)]

mod ipfix_support;

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, TcpStream, UdpSocket},
    sync::{Arc, Mutex},
    time::Duration,
};

use flow::{
    ipfix::{
        Collector, CollectorSpec, Counts, DecodeError, Decoder, EncodeSpec, Encoder, Limits, Port, Statistics, Version,
    },
    Addresses, Details, Distinguish, Link, Record, Sampling, SamplingMode, Way, WayDetails,
};
use ipfix_support::{any_record, as_collected, record, wait_for, T0};
use proptest::prelude::*;

fn ours() -> EncodeSpec {
    EncodeSpec { domain: 7, ..EncodeSpec::default() }
}

/// Every port as the interface of its number, so that records come back as they were.
fn ports() -> Vec<Port> {
    let port = |index| Port { index, egress: 9, name: format!("port{index}"), description: String::new() };
    (0..256).map(port).collect()
}

fn decode(decoder: &mut Decoder, bytes: &[u8]) -> Result<Vec<Record>, DecodeError> {
    let mut flows = Vec::new();
    decoder.message(bytes, &mut |record| flows.push(*record)).map(|()| flows)
}

/// A message: header, then sets of ID and body.
fn message(sequence: u32, sets: &[(u16, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![0, 10, 0, 0, 0, 0, 0, 1];
    bytes.extend(sequence.to_be_bytes());
    bytes.extend([0, 0, 0, 7]);
    for (id, body) in sets {
        bytes.extend(id.to_be_bytes());
        bytes.extend((body.len() as u16 + 4).to_be_bytes());
        bytes.extend(*body);
    }
    let length = (bytes.len() as u16).to_be_bytes();
    bytes[2..4].copy_from_slice(&length);
    bytes
}

fn words(words: &[u16]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn what_is_encoded_is_decoded(
        (biflow, distinguish, message_bytes, records) in (any::<bool>(), 0..4usize, 0..3000usize).prop_flat_map(|(biflow, d, size)| {
            let distinguish = [Distinguish::None, Distinguish::Vlan, Distinguish::Vni, Distinguish::Label][d];
            (Just(biflow), Just(distinguish), Just(size), proptest::collection::vec(any_record(biflow, distinguish), 0..100))
        }),
        (details, sampled, templates_again) in (any::<bool>(), any::<bool>(), 0..3usize),
    ) {
        let sampling = sampled.then_some(Sampling { interval: 10, mode: SamplingMode::Random });
        let spec = EncodeSpec { domain: 1, biflow, distinguish, message_bytes, ports: ports(), details, sampling, ..ours() };
        let mut encoder = Encoder::new(EncodeSpec { templates_again, ..spec });
        let mut decoder = Decoder::new(Limits::default());
        let (mut out, mut back, mut rest) = (Vec::new(), Vec::new(), &records[..]);
        let (mut first, mut names) = (true, 0);
        while first || !rest.is_empty() {
            let statistics = first.then(Statistics::default);
            let made = encoder.message(9, first, statistics.as_ref(), rest, &mut out);
            prop_assert!(first || made.records + made.interfaces > 0);
            prop_assert!(out.len() <= message_bytes.max(1200));
            back.extend(decode(&mut decoder, &out).unwrap());
            encoder.sent(&made);
            rest = &rest[made.records..];
            names += made.interfaces;
            first = false;
        }
        prop_assert_eq!(&back, &records);
        let counts = decoder.counts();
        // Flows without an identifier have forms of their own.
        let templates = if distinguish == Distinguish::None { 7 } else { 11 } + u64::from(sampled);
        let options = 2 + names as u64 + u64::from(sampled);
        prop_assert_eq!((counts.flows, counts.options), (records.len() as u64, options));
        // Messages without room for all templates have some with the records that need them, up to three times.
        let all_fit = message_bytes >= 1400 || !details;
        prop_assert!(counts.templates == templates || !all_fit && counts.templates < 3 * templates, "{counts:?}");
        prop_assert_eq!((counts.lost, counts.late, counts.without_template, counts.malformed), (0, 0, 0, 0));
        prop_assert_eq!(encoder.sequence() as usize, records.len() + options as usize);
    }

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let mut decoder = Decoder::new(Limits::default());
        let _ = decode(&mut decoder, &bytes);
        // With a good header, and as the body of each kind of set.
        for id in [2, 3, 256] {
            let _ = decode(&mut decoder, &message(0, &[(id, &bytes)]));
        }
    }

    #[test]
    fn a_message_with_some_bytes_wrong_is_survived(
        wrong in proptest::collection::vec((0..1400usize, any::<u8>()), 1..20), cut in 0..1400usize,
    ) {
        let records: Vec<_> = (0..40).map(|n| record(n, n % 2 == 0, false)).collect();
        let mut out = Vec::new();
        Encoder::new(ours()).message(9, true, Some(&Statistics::default()), &records, &mut out);
        let n = out.len();
        wrong.iter().for_each(|&(at, byte)| out[at % n] = byte);
        let mut decoder = Decoder::new(Limits::default());
        let _ = decode(&mut decoder, &out);
        let _ = decode(&mut decoder, &out[..cut.min(n)]);
    }
}

/// RFC 7011 A.2.1, A.2.2, A.3, A.4.1 to A.4.4: one message as A.1 has it, and the others' templates.
#[test]
fn the_examples_of_rfc_7011() {
    let template = words(&[256, 5, 8, 4, 12, 4, 15, 4, 2, 4, 1, 4]);
    let mut data = Vec::new();
    for (src, dst, hop, packets, octets) in
        [(12, 254, 1, 5009u32, 5_344_385u32), (27, 23, 2, 748, 388_934), (56, 65, 3, 5, 6534)]
    {
        [src, dst, hop].iter().for_each(|&last| data.extend([192, 0, 2, last]));
        data.extend(packets.to_be_bytes());
        data.extend(octets.to_be_bytes());
    }
    let options = words(&[258, 3, 1, 141, 4, 41, 2, 42, 2, 0]);
    let statistics = words(&[0, 1, 345, 10201, 0, 2, 690, 20402]);
    let bytes = message(0, &[(2, &template), (256, &data), (3, &options), (258, &statistics)]);
    assert_eq!(bytes.len(), 152, "A.1 says so");
    let mut decoder = Decoder::new(Limits::default());
    let flows = decode(&mut decoder, &bytes).unwrap();
    let v4 = |last| Ipv4Addr::new(192, 0, 2, last);
    let expected = [
        (v4(12), v4(254), Way { packets: 5009, ip_bytes: 5_344_385, ..Way::default() }),
        (v4(27), v4(23), Way { packets: 748, ip_bytes: 388_934, ..Way::default() }),
        (v4(56), v4(65), Way { packets: 5, ip_bytes: 6534, ..Way::default() }),
    ];
    let found: Vec<_> = flows.iter().map(|r| (r.key.addresses, r.forward)).collect();
    assert_eq!(found, expected.map(|(src, dst, way)| (Addresses::V4 { src, dst }, way)));
    let wanted = Counts { messages: 1, flows: 3, options: 2, templates: 2, sessions: 1, ..Counts::default() };
    assert_eq!(decoder.counts(), wanted);

    // A.2.2, A.4.2 and A.4.3: enterprise-specific elements, here in one set each, padded.
    let enterprise = words(&[257, 5, 8, 4, 12, 4, 0x8000 | 15, 4, 0, 9999, 2, 4, 1, 4]);
    let option = words(&[259, 3, 1, 141, 4, 41, 2, 0x8000 | 42, 4, 0, 9999, 0]);
    let scope = words(&[260, 3, 1, 0x8000 | 123, 4, 0, 9999, 41, 2, 42, 2, 0]);
    let sets = [(2, &enterprise[..]), (3, &option[..]), (3, &scope[..]), (257, &data[..20]), (260, &statistics[..])];
    let flows = decode(&mut decoder, &message(5, &sets)).unwrap();
    assert_eq!(flows[0].forward, Way { packets: 5009, ip_bytes: 5_344_385, ..Way::default() });
    assert_eq!((decoder.counts().templates, decoder.counts().options), (5, 4));
    assert_eq!((decoder.counts().lost, decoder.counts().refused), (0, 0));
}

#[test]
fn of_a_malformed_message_nothing_is_taken_and_over_udp_withdrawals_are_ignored() {
    let template = words(&[256, 1, 2, 4]);
    let data = 7u32.to_be_bytes();
    let sets = [(2, &template[..]), (256, &data[..]), (5, &data[..])];
    let mut decoder = Decoder::new(Limits::default());
    let mut taken = 0;
    assert!(decoder.message(&message(0, &sets), &mut |_| taken += 1).is_err());
    assert_eq!((taken, decoder.counts().templates, decoder.counts().malformed), (0, 0, 1));

    let withdrawal = words(&[256, 0]);
    for (decoder, flows) in [(Decoder::new(Limits::default()), 0), (Decoder::new(Limits::default()).over_udp(), 1)] {
        let mut decoder = decoder;
        decode(&mut decoder, &message(0, &[(2, &template), (2, &withdrawal)])).unwrap();
        assert_eq!(decode(&mut decoder, &message(0, &[(256, &data)])).unwrap().len(), flows);
    }
}

/// RFC 7011 A.5: fields that carry their length, of less than 255 bytes and more, before one we read.
#[test]
fn variable_lengths_are_passed_over() {
    let template = words(&[300, 3, 82, 0xffff, 2, 8, 83, 0xffff]);
    let mut data = vec![5, 1, 2, 3, 4, 5];
    data.extend(77u64.to_be_bytes());
    data.extend([255, 3, 232]);
    data.extend([0xaa; 1000]);
    data.extend([0]);
    data.extend(78u64.to_be_bytes());
    data.extend([255, 0, 2, 9, 9]);
    let mut decoder = Decoder::new(Limits::default());
    let flows = decode(&mut decoder, &message(0, &[(2, &template), (300, &data)])).unwrap();
    assert_eq!(flows.iter().map(|r| r.forward.packets).collect::<Vec<_>>(), [77, 78]);
    // Three bytes of padding are no record; a length that reaches over the end is none either.
    data.extend([0; 3]);
    assert_eq!(decode(&mut decoder, &message(2, &[(300, &data)])).unwrap().len(), 2);
    let broken = [vec![200; 1], vec![0; 30]].concat();
    assert_eq!(decode(&mut decoder, &message(4, &[(300, &broken)])).unwrap().len(), 0);
    assert_eq!((decoder.counts().lost, decoder.counts().late), (0, 0));
}

#[test]
fn other_exporters_forms_of_the_same() {
    // Milliseconds, microseconds before the export (second 1), uptime; short counters; ICMP in parts; totals.
    let mut decoder = Decoder::new(Limits::default());
    let icmp = words(&[400, 6, 4, 1, 178, 1, 179, 1, 158, 4, 159, 4, 86, 1]);
    let data = [58, 128, 3, 0, 0, 0, 200, 0, 0, 0, 100, 42];
    let flow = decode(&mut decoder, &message(0, &[(2, &icmp), (400, &data)])).unwrap()[0];
    assert_eq!((flow.key.protocol, flow.key.dport, flow.forward.packets), (58, 128 << 8 | 3, 42));
    assert_eq!((flow.first, flow.last), (999_800_000, 999_900_000));
    // The exporter says in options data when it began; softflowd does.
    let init = words(&[401, 2, 1, 143, 4, 160, 8]);
    let began = [&[0, 0, 0, 1][..], &1_700_000_000_000u64.to_be_bytes()].concat();
    let uptime = words(&[402, 3, 22, 4, 21, 4, 58, 2]);
    let data = [0, 0, 0, 5, 0, 0, 0, 9, 0x0f, 0xff];
    let flow = decode(&mut decoder, &message(1, &[(3, &init), (401, &began), (2, &uptime), (402, &data)])).unwrap()[0];
    assert_eq!((flow.first, flow.last), (1_700_000_000_005_000_000, 1_700_000_000_009_000_000));
    assert_eq!(flow.key.scope, Some(4095));
    // Both directions' times: the flow's are the earliest start and the latest end.
    let biflow = words(&[403, 4, 152, 8, 153, 8, 0x8000 | 152, 8, 0, 29305, 0x8000 | 153, 8, 0, 29305]);
    let data: Vec<u8> = [50u64, 90, 60, 95].iter().flat_map(|ms| ms.to_be_bytes()).collect();
    let flow = decode(&mut decoder, &message(3, &[(2, &biflow), (403, &data)])).unwrap()[0];
    assert_eq!((flow.first, flow.last), (50_000_000, 95_000_000));
}

#[test]
fn sequence_numbers_show_what_is_missing() {
    let mut encoder = Encoder::new(ours());
    let records: Vec<_> = (0..90).map(|n| record(n, false, false)).collect();
    let mut messages = Vec::new();
    for (n, chunk) in records.chunks(10).enumerate() {
        let mut out = Vec::new();
        let made = encoder.message(9, n == 0, None, chunk, &mut out);
        assert_eq!(out[8..12], (10 * n as u32).to_be_bytes());
        encoder.sent(&made);
        messages.push(out);
    }
    let mut decoder = Decoder::new(Limits::default());
    let mut read = |n: usize| {
        decode(&mut decoder, &messages[n]).unwrap();
        (decoder.counts().lost, decoder.counts().late)
    };
    assert_eq!([read(0), read(1), read(3), read(4)], [(0, 0), (0, 0), (10, 0), (10, 0)]);
    // The missing one was late; the next is not there at all, then the exporter begins again.
    assert_eq!([read(2), read(7), read(0), read(1)], [(0, 1), (20, 1), (20, 1), (20, 1)]);
}

/// A record of frames with a VLAN tag.
fn tagged(n: u64) -> Record {
    let frame = [&[2; 12][..], &[0x81, 0, 0, 30, 8, 0, 0x45]].concat();
    let forward = WayDetails { link: Some(Link::read(&frame)), ..WayDetails::default() };
    Record { details: Some(Details { forward, ..Details::default() }), ..record(4 * n, false, false) }
}

#[test]
fn a_template_that_a_record_needs_survives_lost_messages_and_goes_with_the_refresh() {
    let spec = EncodeSpec { details: true, templates_again: 2, ..ours() };
    let mut encoder = Encoder::new(spec);
    let mut made = |templates: bool, records: &[Record]| {
        let mut out = Vec::new();
        let message = encoder.message(9, templates, None, records, &mut out);
        assert_eq!(message.records, records.len());
        encoder.sent(&message);
        out
    };
    let first = made(true, &[]);
    // Messages without its records do not have it.
    let needed: Vec<_> = (0..5).map(|n| (made(false, &[tagged(n)]), made(false, &[record(n, false, false)]))).collect();
    let refresh = made(true, &[]);
    let after = made(false, &[tagged(9)]);
    let read = |messages: &[&Vec<u8>]| {
        let mut decoder = Decoder::new(Limits::default());
        let read = messages.iter().map(|bytes| decode(&mut decoder, bytes).unwrap().len()).collect::<Vec<_>>();
        (read, decoder.counts().templates)
    };
    let [(a, b), (c, _), (d, _), (e, _), ..] = &needed[..] else { panic!() };
    assert_eq!(read(&[&first]).1, 6, "four forms, two of statistics");
    assert_eq!(read(&[&first, a, b, c, d, e]), (vec![0, 1, 1, 1, 1, 1], 6 + 3));
    // The first two that have it are lost; all three are.
    assert_eq!(read(&[&first, d, e]), (vec![0, 1, 1], 6 + 1));
    assert_eq!(read(&[&first, e]), (vec![0, 0], 6));
    assert_eq!(read(&[&first, e, &refresh, &after]), (vec![0, 0, 0, 1], 6 + 6 + 1));
}

#[test]
fn a_message_that_was_not_sent_does_not_count() {
    let mut encoder = Encoder::new(ours());
    let records = [record(1, false, false)];
    let mut out = Vec::new();
    let made = encoder.message(9, true, None, &records, &mut out);
    assert_eq!((made.records, encoder.sequence()), (1, 0));
    encoder.sent(&made);
    assert_eq!(encoder.sequence(), 1);
    encoder.restart();
    assert_eq!(encoder.sequence(), 0);
}

#[test]
fn data_without_a_template_and_templates_withdrawn() {
    let (mut encoder, mut decoder) = (Encoder::new(ours()), Decoder::new(Limits::default()));
    let records = [record(1, false, false)];
    let (mut bare, mut whole) = (Vec::new(), Vec::new());
    let made = encoder.message(9, false, None, &records, &mut bare);
    encoder.sent(&made);
    encoder.message(9, true, None, &records, &mut whole);
    assert_eq!(decode(&mut decoder, &bare).unwrap(), []);
    assert_eq!(decoder.counts().without_template, 1);
    assert_eq!(decode(&mut decoder, &whole).unwrap(), as_collected(&records));
    // Ours by its ID, then all of a kind, then again.
    for (withdrawal, n) in [(words(&[256, 0]), 1), (words(&[2, 0]), 4), (words(&[2, 0]), 4)] {
        decode(&mut decoder, &message(2, &[(2, &withdrawal)])).unwrap();
        assert_eq!(decoder.counts().withdrawn, n);
    }
    decode(&mut decoder, &message(2, &[(3, &words(&[3, 0]))])).unwrap();
    assert_eq!(decoder.counts().withdrawn, 6);
    assert_eq!(decode(&mut decoder, &bare).unwrap(), []);
    assert_eq!(decoder.counts().without_template, 2);
    assert_eq!(decoder.counts().lost, 0);
}

#[test]
fn what_a_sender_can_make_us_keep_is_bounded() {
    let limits = Limits { templates: 3, fields: 4, domains: 1 };
    let mut decoder = Decoder::new(limits);
    let set: Vec<u8> = (256..270).flat_map(|id| words(&[id, 1, 2, 8])).collect();
    decode(&mut decoder, &message(0, &[(2, &set)])).unwrap();
    assert_eq!((decoder.counts().templates, decoder.counts().refused), (3, 11));
    // Too many fields, no bytes in a record, an ID that is none, one that breaks off.
    for template in [
        words(&[256, 5, 2, 8, 2, 8, 2, 8, 2, 8, 2, 8]),
        words(&[256, 1, 2, 0]),
        words(&[255, 1, 2, 8]),
        words(&[256, 2, 2, 8]),
    ] {
        let before = decoder.counts();
        decode(&mut decoder, &message(0, &[(2, &template)])).unwrap();
        assert_eq!((decoder.counts().refused, decoder.counts().templates), (before.refused + 1, before.templates));
    }
    let mut other = message(0, &[]);
    other[15] = 8;
    assert_eq!(decode(&mut decoder, &other), Err(DecodeError::Domains));
}

#[test]
fn what_breaks_the_format_is_said() {
    let mut decoder = Decoder::new(Limits::default());
    let good = message(0, &[]);
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes
    };
    for (bytes, error) in [
        (vec![], DecodeError::Short),
        (vec![0, 10, 0, 16, 0], DecodeError::Short),
        (with(1, 9), DecodeError::Version(9)),
        (with(3, 15), DecodeError::Length { says: 15, has: 16 }),
        (with(3, 17), DecodeError::Length { says: 17, has: 16 }),
        (message(0, &[(4, &[])]), DecodeError::SetId(4)),
        ([&with(3, 20)[..], &[1, 0, 0, 3]].concat(), DecodeError::Set { id: 256, length: 3 }),
        ([&with(3, 20)[..], &[1, 0, 0, 5]].concat(), DecodeError::Set { id: 256, length: 5 }),
    ] {
        assert_eq!(decode(&mut decoder, &bytes), Err(error));
    }
    assert_eq!((decoder.counts().malformed, decoder.counts().messages), (8, 0));
}

#[test]
fn times_survive_to_the_nanosecond() {
    let mut out = Vec::new();
    Encoder::new(ours()).message(9, true, None, &[record(5, true, false)], &mut out);
    let flows = decode(&mut Decoder::new(Limits::default()), &out).unwrap();
    assert_eq!((flows[0].first, flows[0].last), (T0 + 5, T0 + 5 + 1_234_567_890));
}

#[test]
fn a_collector_outlives_whoever_sends_to_it() {
    let any = Some("127.0.0.1:0".parse().unwrap());
    let spec = CollectorSpec { udp: any, tcp: any, sessions: 2, ..CollectorSpec::default() };
    let flows = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&flows);
    let collector = Collector::start(spec, move |_, new| into.lock().unwrap().extend(new.iter().copied())).unwrap();
    let mut good = Vec::new();
    Encoder::new(ours()).message(9, true, None, &[record(1, false, false)], &mut good);
    // More senders than sessions: each is heard, the oldest go.
    for n in 1..=5 {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.send_to(b"garbage", collector.udp().unwrap()).unwrap();
        socket.send_to(&good, collector.udp().unwrap()).unwrap();
        wait_for("the flow", || flows.lock().unwrap().len() == n);
    }
    assert_eq!((collector.counts().malformed, collector.counts().sessions), (5, 5));
    let connect = || {
        let stream = TcpStream::connect(collector.tcp().unwrap()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    };
    // Garbage ends its connection, a message in single bytes is read, and one too many is shut out.
    let mut garbage = connect();
    garbage.write_all(&[0; 100]).unwrap();
    assert!(matches!(garbage.read(&mut [0]), Ok(0) | Err(_)));
    let mut slow = connect();
    for byte in &good {
        slow.write_all(&[*byte]).unwrap();
    }
    wait_for("the flow", || flows.lock().unwrap().len() == 6);
    let mut other = connect();
    other.write_all(&good).unwrap();
    wait_for("the flow", || flows.lock().unwrap().len() == 7);
    assert!(matches!(connect().read(&mut [0]), Ok(0) | Err(_)));
    other.write_all(&good[..20]).unwrap();
    let counts = collector.stop();
    assert_eq!((counts.flows, counts.malformed, counts.sessions), (7, 6, 8));
}

#[test]
fn flows_of_another_day_go_into_messages_of_netflow_v9_that_were_sent_then() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as u32;
    let old = [0, 1, 2].map(|n| record(n, false, false));
    let today = u64::from(now) * 1_000_000_000;
    let new = Record { first: today - 5, last: today - 1, ..old[0] };
    let records = [old[0], old[1], new, old[2]];
    let encoder = Encoder::new(EncodeSpec { version: Version::NetFlow9, ..EncodeSpec::default() });
    let (mut rest, mut told) = (&records[..], Vec::new());
    while !rest.is_empty() {
        let mut bytes = Vec::new();
        let made = encoder.message(now, false, None, rest, &mut bytes);
        let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        // RFC 3954 5.1: uptime in ms, then the time in seconds.
        told.push((made.records, word(8), word(4)));
        rest = &rest[made.records..];
    }
    let end = (old[1].last / 1_000_000_000) as u32 + 1;
    let day = 24 * 3600 * 1000;
    assert_eq!(told.iter().map(|&(records, at, _)| (records, at)).collect::<Vec<_>>(), [(2, end), (1, now), (1, end)]);
    assert_eq!((told[0].2, told[2].2), (1 << 31, 1 << 31));
    assert!((day..day + 60_000).contains(&told[1].2), "{told:?}");
}
