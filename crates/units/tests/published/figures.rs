//! Single figures: rules over printed inputs.

use serde::Deserialize;
use units::{derived, rate, Fps, FrameSize, LinkSpeed};

use super::printed::{Finding, Printed};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    figure: Vec<Figure>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Figure {
    name: String,
    place: String,
    rule: String,
    inputs: Vec<String>,
    printed: String,
    computed: Option<String>,
    cause: Option<String>,
}

pub fn check(toml: &str) -> Vec<Finding> {
    let file: File = toml::from_str(toml).unwrap();
    file.figure.into_iter().map(one).collect()
}

fn one(f: Figure) -> Finding {
    let printed = Printed::read(&f.printed);
    let inputs: Vec<Printed> = f.inputs.iter().map(|t| Printed::read(t.trim_start_matches('~'))).collect();
    let ours = compute(&f.rule, &inputs.iter().map(|i| i.value).collect::<Vec<_>>());
    // Every rule rises or falls with each of its inputs: the ends of what a rounded one may be are enough.
    let end = |low: bool| {
        let at = |(input, text): (&Printed, &String)| match (text.starts_with('~'), low) {
            (false, _) => input.value,
            (true, true) => input.range().0,
            (true, false) => input.range().1,
        };
        compute(&f.rule, &inputs.iter().zip(&f.inputs).map(at).collect::<Vec<_>>())
    };
    let ends = (end(true).min(end(false)), end(true).max(end(false)));
    Finding {
        table: f.place,
        row: f.name,
        ours: printed.like(ours),
        reproduced: printed.covers(ends),
        printed: f.printed,
        listed: f.computed.map(|c| (c, f.cause.unwrap_or_else(|| panic!("a cause is missing")))),
    }
}

fn compute(rule: &str, inputs: &[f64]) -> f64 {
    let fps = |v: f64| Fps::new(v).unwrap();
    let size = |v: f64| FrameSize::new(v as u32).unwrap();
    let link = |v: f64| LinkSpeed::new(v as u64).unwrap();
    match (rule, inputs) {
        ("sum", all) => all.iter().sum(),
        ("product", all) => all.iter().product(),
        ("quotient", &[a, b]) => a / b,
        ("half_of_quotient", &[a, b]) => a / b / 2.0,
        ("gain", &[new, old]) => derived::gain_percent(new, old).unwrap(),
        ("drop", &[new, old]) => -derived::gain_percent(new, old).unwrap(),
        ("share", &[part, whole]) => derived::share_percent(part, whole).unwrap(),
        ("switching", &[pps, operations]) => derived::switching_rate(fps(pps), operations as u32).get(),
        ("cycles_per_frame", &[cycles, frames]) => derived::cycles_per_frame(cycles, frames).unwrap(),
        ("core_clocks", &[pps, cycles]) => derived::core_clocks(fps(pps), cycles),
        ("pcie", &[transfers, lanes]) => derived::pcie_bps(transfers, lanes as u32) / 1e9,
        ("line_rate", &[bps, bytes]) => link(bps).line_rate(size(bytes)).get(),
        ("line_percent", &[pps, bytes, bps]) => rate::line_percent(fps(pps), size(bytes), link(bps)),
        ("l1", &[pps, bytes]) => rate::l1_bps(fps(pps), size(bytes)),
        ("l2", &[pps, bytes]) => rate::l2_bps(fps(pps), size(bytes)),
        _ => panic!("rule {rule} of {} inputs", inputs.len()),
    }
}
