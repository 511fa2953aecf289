//! IPFIX from anybody: nothing panics or goes on without end, what is read is bounded by what came, and whatever flow is
//! read is one that we can send and read again.
//!
//! The input is messages, each behind its length in two bytes. Lengths inside are put right every other time, so that
//! libFuzzer comes past them.
#![no_main]

use flow::{
    ipfix::{Decoder, EncodeSpec, Encoder, Limits, HEADER},
    Record,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&mend, mut rest)) = data.split_first() else { return };
    let mut decoder = Decoder::new(Limits { templates: 20, fields: 50, domains: 3 });
    let mut flows: Vec<Record> = Vec::new();
    while let Some((length, bytes)) = rest.split_first_chunk() {
        let (message, behind) = bytes.split_at(bytes.len().min(usize::from(u16::from_be_bytes(*length))));
        rest = behind;
        let mut message = message.to_vec();
        if mend % 2 == 0 && message.len() >= HEADER {
            let [high, low] = (message.len() as u16).to_be_bytes();
            message[..4].copy_from_slice(&[0, 10, high, low]);
        }
        let before = flows.len();
        let _ = decoder.message(&message, &mut |flow| flows.push(*flow));
        assert!(flows.len() - before <= message.len(), "more records than bytes");
    }
    let counts = decoder.counts();
    assert_eq!(counts.flows, flows.len() as u64);
    let spec = EncodeSpec { domain: 1, biflow: true, message_bytes: 65535, ..EncodeSpec::default() };
    let mut again = Decoder::new(Limits::default());
    let (mut out, mut n) = (Vec::new(), 0);
    for flow in flows.iter().take(100) {
        let made = Encoder::new(spec.clone()).message(1, true, None, std::slice::from_ref(flow), &mut out);
        assert_eq!(made.records, 1);
        let read = again.message(&out, &mut |back| {
            n += 1;
            assert_eq!((back.forward, back.back, back.end), (flow.forward, flow.back, flow.end));
            assert_eq!(back.key.addresses, flow.key.addresses);
        });
        assert_eq!(read, Ok(()));
    }
    assert_eq!(n, flows.len().min(100));
});
