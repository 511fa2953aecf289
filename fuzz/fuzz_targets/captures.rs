//! Capture files, pcap and pcapng, by both readers: frames and times, or one line that says what is wrong.
#![no_main]

use libfuzzer_sys::fuzz_target;
use packet::{capture, pcap};

fuzz_target!(|file: &[u8]| {
    match capture::Capture::read(file) {
        Ok(read) => {
            assert_eq!(read.len(), read.times().len());
            let bytes: usize = (0..read.len()).map(|n| read.frame(n).len()).sum();
            assert!(bytes <= file.len() && read.longest() <= file.len());
        }
        Err(why) => assert!(!why.to_string().contains('\n'), "{why}"),
    }
    if let Ok(frames) = pcap::read(file) {
        for frame in frames {
            match frame {
                Ok(frame) => assert!(frame.bytes.len() <= file.len()),
                Err(why) => {
                    assert!(!why.to_string().contains('\n'), "{why}");
                    break;
                }
            }
        }
    }
    if let Some(why) = capture::not_a_capture(file) {
        assert!(!why.contains('\n'), "{why}");
    }
});
