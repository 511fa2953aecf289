//! Messages of sockperf: datagrams and streams. An answer has as many bytes as its message, and a stream gives what was put in.
#![no_main]

use latency::message::{answer, reply, Header, Reply, Stream, HEADER, MOST_TCP};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut message = bytes.to_vec();
    if answer(&mut message) {
        assert_eq!(message.len(), bytes.len());
        assert_eq!(message[HEADER..], bytes[HEADER..]);
        let sequence = Header::read(bytes).map(|header| header.sequence);
        assert_eq!(Some(reply(&message)), sequence.map(Reply::To));
    } else {
        assert_eq!(message, bytes);
    }
    let step = usize::from(bytes.first().copied().unwrap_or(1)).max(1);
    let (mut stream, mut taken) = (Stream::new(MOST_TCP), 0);
    for part in bytes.chunks(step) {
        stream.add(part);
        loop {
            match stream.take() {
                Ok(Some(message)) => {
                    assert_eq!(message, &bytes[taken..taken + message.len()]);
                    taken += message.len();
                }
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
    assert_eq!(taken + stream.waiting(), bytes.len());
});
