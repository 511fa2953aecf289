//! Requests to the metrics of the flow logger, as their bytes come in.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for token in [None, Some("correct-horse")] {
        if let Some(status) = flow::metrics::status(bytes, token) {
            assert!(["200", "400", "401", "404", "405", "431"].contains(&&status[..3]), "{status}");
        }
    }
    // More bytes never turn an answer into a wait.
    if let Some((_, begin)) = bytes.split_last() {
        let (before, after) = (flow::metrics::status(begin, None), flow::metrics::status(bytes, None));
        assert!(before.is_none() || after.is_some());
    }
});
