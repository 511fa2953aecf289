//! What the tester can do with no DUT: the table of `linerate selftest`.

use measure::result::{SelfTestKind, SelfTestPair, SelfTestPoint};
use units::LinkSpeed;

use crate::{figures::Rates, num, style::Style, table::Table};

/// A row a frame size: the most frames/s one lcore sends, receives and checks, what a frame costs it, and the range over a
/// pair of ports.
pub fn render(points: &[SelfTestPoint], link: Option<LinkSpeed>, style: &Style) -> String {
    let mut t = Table::default();
    t.right(0, "frame", "B");
    t.right(1, "tester", "pps");
    t.right(1, "L2", "Mbit/s");
    t.right(1, "L1", "Mbit/s");
    t.right(1, "line", "rate %");
    t.right(1, "cost", "cycles/frame");
    t.left(1, "pair", "");
    t.right(1, "from", "pps");
    t.right(1, "to", "pps");
    t.right(2, "passes", "");
    for p in points {
        let rates = Rates::new(p.max_fps, p.frame_size_bytes, 1, link);
        t.row(vec![
            p.frame_size_bytes.to_string().into(),
            num::pps(p.max_fps).into(),
            num::mbps(rates.l2_bps).into(),
            num::mbps(rates.l1_bps).into(),
            rates.line_percent.map(|p| format!("{p:.2}")).into(),
            format!("{:.1}", p.cycles_per_frame).into(),
            p.pair.as_ref().map(|pair| name(pair.kind).to_owned()).into(),
            p.pair.as_ref().map(|pair| num::pps(pair.lower_fps)).into(),
            p.pair.as_ref().map(|pair| num::pps(pair.upper_fps)).into(),
            p.pair.as_ref().map(passes).into(),
        ]);
    }
    let mut text = t.text(style);
    let why = points.iter().find_map(|p| p.pair.as_ref()?.fallback.as_ref());
    why.into_iter().for_each(|why| text.push_str(&format!("The pair is the software cable: {why}\n")));
    text
}

/// Short, for a narrow column.
fn name(kind: SelfTestKind) -> &'static str {
    match kind {
        SelfTestKind::SoftwareCable => "cable",
        kind => kind.name(),
    }
}

fn passes(pair: &SelfTestPair) -> String {
    match pair.stable {
        true => pair.passes.to_string(),
        false => format!("{} (not stable)", pair.passes),
    }
}
