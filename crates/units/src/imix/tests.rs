//! What mixes are and how they show.

use super::Imix;
use crate::{rate, Fps, FrameSize, Frames, LinkSpeed};

fn imix(text: &str) -> Imix {
    text.parse().unwrap()
}

#[test]
fn a_genome_is_a_sequence() {
    let bytes = |text| -> Vec<u32> { imix(text).sizes().iter().map(|s| s.bytes()).collect() };
    assert_eq!(bytes("aaafg"), [64, 64, 64, 1280, 1518]);
    assert_eq!(bytes("aaz:z=9000"), [64, 64, 9000]);
    assert_eq!(bytes("ABA,A=78,B=1400"), [78, 1400, 78]);
    for (text, shown) in [
        ("aaafg", "IMIX - aaafg"),
        ("aaz:z=9000", "IMIX - aaz (z=9000)"),
        ("AB,A=78,B=1400", "CUSTOM IMIX - AB (A=78, B=1400)"),
        ("7x64:1x1518", "CUSTOM IMIX - AAAAAAAB (A=64, B=1518)"),
        (Imix::SIMPLE, "CUSTOM IMIX - AAAAAAABBBBC (A=64, B=570, C=1518)"),
    ] {
        assert_eq!(imix(text).to_string(), shown);
    }
    let v4 = imix("IMIX_v4").to_string();
    assert!(v4.starts_with("CUSTOM IMIX - AAAA") && v4.ends_with("CCCC (A=64, B=570, C=1518)"), "{v4}");
    let many: Vec<String> = (64..91).map(|bytes| format!("1x{bytes}")).collect();
    assert_eq!(imix(&many.join(":")).to_string(), many.join(":"), "27 sizes are more than letters");
}

#[test]
fn a_mix_is_what_it_was_named() {
    assert_eq!(imix("AB,A=78,B=1400"), imix("AB:A=78:B=1400"));
    assert!(std::ptr::eq(imix("aabbc").0, imix("aabbc").0));
    assert_ne!(imix("aab"), imix("2x64:1x128"), "the same sizes, told another way");
    assert_ne!(imix("AB,A=78,B=1400"), imix("AB:A=78:B=1401"));
}

#[test]
fn rates_of_a_mix_are_those_of_its_frames() {
    // 28 x 64, 16 x 570 and 4 x 1518 bytes: 16,984 in 48 frames, 17,944 with what the wire adds.
    let csit: Frames = imix("IMIX_v4").into();
    assert_eq!((csit.sizes().len(), csit.average_bytes() * 48.0), (48, 16_984.0));
    let ten: LinkSpeed = "10G".parse().unwrap();
    let line: Fps = ten.line_rate(csit);
    assert!((line.get() - 10e9 / (17_944.0 / 48.0 * 8.0)).abs() < 1e-3);
    assert!((rate::l1_bps(line, csit) - 10e9).abs() < 1.0);
    assert!((rate::l2_bps(line, csit) / rate::l1_bps(line, csit) - 16_984.0 / 17_944.0).abs() < 1e-12);
    assert_eq!(ten.line_rate(imix("aaa")), ten.line_rate(FrameSize::MIN));
}

#[test]
fn a_long_mix_is_short_for_people() {
    for short in ["aaafg", Imix::SIMPLE, "IMIX_v4"] {
        assert_eq!(imix(short).brief(), imix(short).to_string());
    }
    let brief = imix(&"ab".repeat(2000)).brief();
    assert!(brief.starts_with("IMIX - abab") && brief.ends_with("... (4000 frames)"), "{brief}");
    assert!(brief.len() < 120 && imix(&"ab".repeat(2000)).to_string().len() > 4000);
}

#[test]
fn what_is_not_written_out_is_told() {
    let mut algorithms = Vec::new();
    for (text, frames, shown, has_algorithm, seed) in [
        ("aaafg", 5, "IMIX - aaafg", false, None),
        ("64-1518", 1455, "64 to 1518 bytes, rising by 1 (1455 frames)", true, None),
        ("64-128:step=30", 3, "64 to 128 bytes, rising by 30 (3 frames)", true, None),
        ("64-9216:seed=7", 4096, "4096 sizes drawn by SplitMix64, seed 7, from 64 to 9216 bytes by 1", true, Some(7)),
        ("25%x64:75%x570", 4, "4 frames evenly spread: 25%x64:75%x570", true, None),
        ("7x64:1x570:seed=0", 4096, "4096 frames shuffled by SplitMix64, seed 0: 512 times 7x64:1x570", true, Some(0)),
        (
            "99.9%x64:0.1%x570:seed=1",
            4000,
            "4000 frames shuffled by SplitMix64, seed 1: 4 times 99.9%x64:0.1%x570",
            true,
            Some(1),
        ),
    ] {
        let mix = imix(text);
        assert_eq!((mix.sizes().len(), mix.to_string().as_str(), mix.seed()), (frames, shown, seed), "{text}");
        assert_eq!(mix.algorithm().is_some(), has_algorithm, "{text}");
        algorithms.extend(mix.algorithm().map(|algorithm| format!("{text}\n    {algorithm}")));
    }
    insta::assert_snapshot!(algorithms.join("\n"));
    let table = |text| imix(text).frames_by_size().into_iter().map(|(s, n)| (s.bytes(), n)).collect::<Vec<_>>();
    assert_eq!(table("23%x64:67%x128:10%x1000"), [(64, 23), (128, 67), (1000, 10)]);
    assert_eq!(table("64-1518:seed=3"), []);
    assert_eq!(table("aaafg:seed=3"), [(64, 3 * 819), (1280, 819), (1518, 819)]);
}
