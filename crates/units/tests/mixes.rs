//! How many mixes a program may name: in a program of its own, since those named stay known.
#![allow(missing_docs, clippy::unwrap_used)]

use units::Imix;

#[test]
fn a_file_of_ever_new_mixes_is_refused_at_some_point() {
    let named = |n: u32| format!("{n}x64").parse::<Imix>();
    for n in 1..=1024 {
        named(n).unwrap();
    }
    insta::assert_snapshot!(named(1025).unwrap_err(), @r#"IMIX "1025x64": must be one of at most 1024 different mixes"#);
    assert_eq!(named(7).unwrap().sizes().len(), 7, "those known are still read");
}
