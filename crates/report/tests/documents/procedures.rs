//! The sections of the tests beside the throughput.

use measure::{procedure::*, result::RunResult};
use report::{csv, markdown, svg, terminal, Style};

use crate::fixtures::*;

#[test]
fn each_test_has_a_table_its_standard_and_its_departures() {
    let result = tests();
    let (text, page) = (terminal::render(&result, &Style::PIPE, &[]), markdown::render(&result));
    for part in [
        "Frame loss rate by load",
        "32.8",
        "no figure",
        "Back-to-back frames",
        "3,121",
        "System recovery",
        "Reset",
        "trial 1: the command: exit status: 0 after 0.40 s",
        "Bursty traffic",
        "Forwarding rate",
        "One-way delay by load",
        "latency 60 s into the stream at the throughput: mean 12.5 us of 20 trials",
        "Delay variation",
        "Soak",
        "failed: 9 frames were lost",
        "RFC 0000 (conditionally met)",
        "departs: software ports",
    ] {
        assert!(text.contains(part), "{part}: {text}");
        assert!(page.contains(part.trim_start_matches("RFC 0000 ")), "{part}: {page}");
    }
    assert!(!text.contains("trial 0"), "no single trial is shown instead");
}

#[test]
fn the_loss_curve_is_drawn_and_every_figure_is_a_line() {
    let picture = svg::render(&tests()).unwrap();
    assert!(picture.contains("Frame loss rate by load") && picture.contains("load, % of the theoretical rate"));
    let lines = csv::tests(&tests());
    assert!(lines.starts_with("frame_size_bytes,test,outcome,compliance,figure,value\n"), "{lines}");
    assert!(lines.contains("64,frame-loss,done,conditional,points.0.loss_ratio,0.328\n"), "{lines}");
    assert!(lines.contains("64,frame-loss,done,conditional,without_figure.0.reason,away\n"), "{lines}");
    assert!(lines.contains("64,back-to-back,done,conditional,frames.mean,3121.0\n"), "{lines}");
}

#[test]
fn names_from_outside_stay_text() {
    let mut result: RunResult = tests();
    for test in &mut result.tests {
        test.reason = Some("\u{1b}[31m<script>|`=1".to_owned());
        if let Found::Pdv(pdv) = &mut test.found {
            pdv.directions[0].from = "a\u{1b}|b\n".to_owned();
        }
    }
    assert!(!terminal::render(&result, &Style::PIPE, &[]).contains('\u{1b}'));
    assert!(!markdown::render(&result).contains("<script>"));
    assert!(!csv::tests(&result).contains('\u{1b}'));
}
