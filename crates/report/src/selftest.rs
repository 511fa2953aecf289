//! What the tester can do with no DUT: the table of `linerate selftest`.

use measure::result::SelfTestPoint;
use units::LinkSpeed;

use crate::{figures::Rates, num, style::Style, table::Table};

/// A row a frame size: the most frames/s one lcore sends, receives and checks, and what a frame costs it.
pub fn render(points: &[SelfTestPoint], link: Option<LinkSpeed>, style: &Style) -> String {
    let mut t = Table::default();
    t.right(0, "frame", "B");
    t.right(1, "tester", "pps");
    t.right(1, "L2", "Mbit/s");
    t.right(1, "L1", "Mbit/s");
    t.right(1, "line", "rate %");
    t.right(1, "cost", "cycles/frame");
    for p in points {
        let rates = Rates::new(p.max_fps, p.frame_size_bytes, 1, link);
        t.row(vec![
            p.frame_size_bytes.to_string().into(),
            num::pps(p.max_fps).into(),
            num::mbps(rates.l2_bps).into(),
            num::mbps(rates.l1_bps).into(),
            rates.line_percent.map(|p| format!("{p:.2}")).into(),
            format!("{:.1}", p.cycles_per_frame).into(),
        ]);
    }
    t.text(style)
}
