//! Lines of the flow logger's read protocol: what is understood is written as it would be understood again, and a
//! filter is taken or refused in one line.
#![no_main]

use flow::{
    protocol::{Answer, Ask, Request},
    serve::Matcher,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &[u8]| {
    if let Ok(request) = serde_json::from_slice::<Request>(line) {
        let written = serde_json::to_vec(&request).unwrap();
        assert_eq!(serde_json::from_slice::<Request>(&written).as_ref().ok(), Some(&request));
        if let Ask::Flows { filter, .. } | Ask::Top { filter, .. } | Ask::Subscribe { filter, .. } = &request.ask {
            if let Err(why) = Matcher::new(filter) {
                assert!(why.len() < 1000 && !why.contains('\n'), "{why}");
            }
        }
    }
    if let Ok(answer) = serde_json::from_slice::<Answer>(line) {
        let written = serde_json::to_vec(&answer).unwrap();
        // Rates may differ in their last bit.
        assert!(serde_json::from_slice::<Answer>(&written).is_ok_and(|again| again.id == answer.id));
    }
});
