//! What a setting is worth, as text.

use measure::effect::{Change, EffectFigure, EffectResult};

use units::Fps;

use crate::text;

/// The figures without and with a setting.
pub fn render(effect: &EffectResult) -> String {
    let mut out = format!(
        "{}: {}\n",
        text::clean(&effect.id),
        effect.changes.iter().map(|c| text::clean(c)).collect::<Vec<_>>().join("; ")
    );
    out += &format!("{}\n\n", text::clean(&effect.test));
    let width = effect.figures.iter().map(|figure| figure.name.chars().count()).max().unwrap_or(0);
    out += &format!("{:width$}  {:>12}  {:>12}  difference\n", "", "without", "with");
    for figure in &effect.figures {
        let mean = |of: Option<f64>| of.map_or_else(|| "-".to_owned(), |of| value(figure, of));
        out += &format!(
            "{:width$}  {:>12}  {:>12}  {}\n",
            figure.name,
            mean(figure.change.map(|change| change.without)),
            mean(figure.change.map(|change| change.with)),
            figure.change.map_or_else(|| "too few figures".to_owned(), |change| difference(figure, &change))
        );
    }
    let tested = effect.figures.iter().filter(|figure| figure.change.is_some() && figure.is_enough()).count();
    if tested > 1 {
        out += &format!("each of the {tested} figures is called better or worse by chance once in twenty times\n");
    }
    for failure in &effect.failures {
        out += &format!("note: {}\n", text::clean(failure));
    }
    out
}

/// What was measured here, in one line for an audit: the first figure, which is what the tester found. The best of several
/// would differ by chance.
pub fn line(effect: &EffectResult) -> Option<String> {
    let (figure, change) = effect.figures.iter().find_map(|figure| Some((figure, figure.change?)))?;
    let day = effect.measured_at.split('T').next().unwrap_or_default();
    Some(format!("{}: {} ({})", figure.name, difference(figure, &change), text::clean(day)))
}

fn value(figure: &EffectFigure, of: f64) -> String {
    match figure.unit.as_str() {
        "fps" => Fps::from_raw(of).to_string(),
        "1/s" => format!("{of:.1}/s"),
        unit => format!("{of:.2} {unit}"),
    }
}

fn difference(figure: &EffectFigure, change: &Change) -> String {
    let size = match change.percent() {
        Some((percent, plus_minus)) => format!("{percent:+.1} % ± {plus_minus:.1} %"),
        None => {
            let sign = if change.difference() > 0.0 { "+" } else { "" };
            format!("{sign}{} ± {}", value(figure, change.difference()), value(figure, change.plus_minus))
        }
    };
    let better = (change.difference() > 0.0) == figure.more_is_better;
    let verdict = match (change.is_noise(), figure.is_enough(), better) {
        (true, ..) => "within noise",
        (_, false, _) => "may be chance: it takes three rounds",
        (false, _, true) => "better",
        (false, _, false) => "worse",
    };
    format!("{size}, {verdict}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect() -> EffectResult {
        let figure = |name: &str, unit: &str, more_is_better, without: [f64; 2], with: [f64; 2]| EffectFigure {
            name: name.into(),
            unit: unit.into(),
            more_is_better,
            without: without.to_vec(),
            with: with.to_vec(),
            change: Change::of(&without, &with),
        };
        EffectResult {
            schema: measure::effect::EFFECT_SCHEMA.into(),
            linerate_version: "0.1.0".into(),
            id: "kernel.watchdog".into(),
            changes: vec!["sysctl -w kernel.watchdog=0".into()],
            measured_at: "2026-11-26T12:00:00Z".into(),
            kernel: "6.1".into(),
            cpu_model: "CPU".into(),
            test: "plan rfc2544 (quick), l2".into(),
            figures: vec![
                figure("throughput at 64 B", "fps", true, [10e6, 10.2e6], [10.1e6, 10.2e6]),
                {
                    let (without, with) =
                        (vec![9e6, 9.1e6, 9e6, 9.1e6, 9e6, 9.1e6], vec![8e6, 8.1e6, 8e6, 8.1e6, 8e6, 8.1e6]);
                    let change = Change::of(&without, &with);
                    EffectFigure {
                        without,
                        with,
                        change,
                        ..figure("throughput at 128 B", "fps", true, [0.0; 2], [0.0; 2])
                    }
                },
                figure("longest gap of a core", "us", false, [100.0, 102.0], [50.0, 51.0]),
                figure("interrupts of a core", "1/s", false, [0.0, 0.0], [2.0, 2.0]),
                EffectFigure { with: Vec::new(), change: None, ..figure("away", "%", false, [1.0, 1.0], [1.0, 1.0]) },
            ],
            failures: vec!["leg 2 says of itself that it cannot be trusted".into()],
        }
    }

    #[test]
    fn an_effect_reads_as_a_table_and_as_a_line() {
        insta::assert_snapshot!(format!("{}\n{}", render(&effect()), line(&effect()).unwrap()));
    }
}
