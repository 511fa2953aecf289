//! The tables of the source documents from their own pps.

use measure::result::RunResult;
use report::{csv, Style};

use crate::fixtures::*;

/// Table 3 of the two-VM document, Gen10, one queue, two PMDs: frame size, pps and Mbps over both ports, and percent
/// of both 25G ports.
const TABLE_3: [(u32, u32, u32, &str); 7] = [
    (64, 5_837_092, 3922, "7.85"),
    (128, 5_333_702, 6315, "12.63"),
    (256, 4_629_236, 10221, "20.44"),
    (512, 3_893_095, 16569, "33.14"),
    (1024, 2_839_343, 23714, "47.43"),
    (1280, 2_547_826, 26497, "52.99"),
    (1518, 2_374_471, 29215, "58.43"),
];

#[test]
fn table_3_of_the_two_vm_document() {
    let sizes = TABLE_3.iter().map(|(bytes, pps, ..)| found(*bytes, f64::from(*pps) / 2.0, 2)).collect();
    let run = RunResult { link_bps: link("25G"), directions: 2, ..result(sizes) };
    let text = verbose(&run, &Style { width: 120, ..Style::PIPE });
    let rows: Vec<Vec<&str>> = text
        .lines()
        .skip_while(|l| !l.trim_start().starts_with('─'))
        .skip(1)
        .take(TABLE_3.len())
        .map(|l| l.split_whitespace().collect())
        .collect();
    for (row, (bytes, pps, mbps, percent)) in rows.iter().zip(TABLE_3) {
        // frame, each way, sum, L2, L1, %: the document cuts Mbps to whole ones.
        assert_eq!(row[0], bytes.to_string());
        assert_eq!(row[2].replace(',', ""), pps.to_string());
        assert_eq!(row[4].replace(',', "").split('.').next(), Some(mbps.to_string().as_str()), "{row:?}");
        assert_eq!(row[5], percent);
    }
    assert_eq!(rows.len(), TABLE_3.len());
}

#[test]
fn the_onp_report_rounds_the_same_figures() {
    // Table 7-2 of the ONP report: four 10G ports, here as one direction of 40G.
    for (bytes, pps, mbps) in
        [(64, 42_950_430.0, 28_863.0), (72, 42_840_797.0, 31_531.0), (128, 33_783_767.0, 40_000.0)]
    {
        let run = RunResult { link_bps: link("40G"), ..result(vec![found(bytes, pps, 1)]) };
        let line = csv::sizes(&run).lines().nth(1).unwrap().to_owned();
        let l1: f64 = line.split(',').nth(5).unwrap().parse().unwrap();
        assert_eq!((l1 / 1e6).round(), mbps);
    }
}
