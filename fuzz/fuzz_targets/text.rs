//! Changes and configurations as text: what is read is written as it would be read again, what is not is an error, and
//! a plane takes it or is as before.
#![no_main]

use dataplane::{fib::Small, impair::ImpairSpec, model::Op, spec::PlaneSpec, Plane, PortInfo, TxPolicy};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let ops: Vec<Op> = text.lines().take(50).filter_map(|line| line.parse().ok()).collect();
    for op in &ops {
        assert_eq!(op.to_string().parse().as_ref(), Ok(op), "{op}");
    }
    if let Ok(impair) = text.parse::<ImpairSpec>() {
        assert_eq!(impair.to_string().parse::<ImpairSpec>().map(|again| again.to_string()), Ok(impair.to_string()));
    }
    if let Ok(policy) = text.parse::<TxPolicy>() {
        assert_eq!(policy.to_string().parse(), Ok(policy));
    }
    if !ops.is_empty() {
        let kind = ["l3", "mpls", "vxlan", "bridge"][text.len() % 4];
        let spec = PlaneSpec::new(kind.parse().unwrap());
        let mut plane = Plane::new(&spec, &[PortInfo::default(); 2], Box::new(Small)).unwrap();
        let before: Vec<_> = plane.config().collect();
        if plane.apply(&ops).is_err() {
            assert!(plane.config().eq(before), "a batch was refused and changed something");
        }
        for op in &ops {
            let before: Vec<_> = plane.config().collect();
            if plane.apply(std::slice::from_ref(op)).is_err() {
                assert!(plane.config().eq(before), "{op} was refused and changed something");
            }
        }
    }
    if let Ok(spec) = toml::from_str::<PlaneSpec>(text) {
        let written = toml::to_string(&spec).unwrap();
        assert_eq!(toml::from_str::<PlaneSpec>(&written).as_ref(), Ok(&spec), "{written}");
        // A table of stations is as large as it is asked to be: too large to make one for each input.
        if spec.bridge_entries.is_none_or(|n| n < 100_000) {
            let _ = Plane::new(&spec, &[PortInfo::default(); 2], Box::new(Small));
        }
    }
});
