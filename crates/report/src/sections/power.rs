//! Power and temperature of the machine that Linerate ran on: without frames, and at the load of each figure.

use std::collections::BTreeMap;

use measure::{
    power::Power,
    result::{RunResult, SizeResult},
    trial::TrialRecord,
};

use crate::{
    document::{Audience, Block, Note, Section, Topic},
    figures, num,
    style::Paint,
    table::{Cell, Table},
    text,
};

/// A row for the idle machine and for each frame size, or for the single trial; and the temperatures of all trials.
pub(crate) fn section(result: &RunResult) -> Section {
    Section::new(Topic::Power, "Power of this machine: tester, and device if it runs here")
        .with(Audience::DETAILS, Block::Table(table(result)))
        .with(Audience::DETAILS, Block::Notes(notes(result)))
}

fn table(result: &RunResult) -> Table {
    let mut t = Table::default();
    t.right(0, "frame", "B");
    t.right(0, "load", "pps");
    t.right(1, "processors", "W");
    t.right(1, "memory", "W");
    t.right(1, "machine", "W");
    t.right(2, "energy", "mJ a frame");
    t.right(2, "above idle", "mJ a frame");
    t.right(2, "hottest", "C");
    t.right(2, "throttled", "times");
    let idle = result.host.idle_power.iter().map(|power| ("idle".to_owned(), None, power));
    let loaded = shown(result).into_iter().filter_map(|trial| {
        Some((trial.spec.frame_size_bytes.to_string(), Some(num::pps(trial.spec.load_fps)), trial.power.as_ref()?))
    });
    for (frame, load, power) in idle.chain(loaded) {
        let watts = |watts: Option<f64>| Cell::from(watts.map(|watts| format!("{watts:.1}")));
        let millijoules = |mj: Option<f64>| Cell::from(mj.map(significant));
        t.row(vec![
            frame.into(),
            load.into(),
            watts(power.package_watts),
            watts(power.dram_watts),
            watts(power.system_watts),
            millijoules(power.frame_millijoules),
            millijoules(power.frame_above_idle_millijoules),
            power.hottest().map(|(_, celsius)| format!("{celsius:.1}")).into(),
            power.throttle_events.map(num::thousands).into(),
        ]);
    }
    t
}

/// The trials with a row of their own: of each frame size that of its latency, or the valid one nearest to its throughput.
fn shown(result: &RunResult) -> Vec<&TrialRecord> {
    if result.sizes.is_empty() {
        return figures::single(result).filter(|_| result.tests.is_empty()).into_iter().collect();
    }
    let of = |size: &SizeResult| {
        let own = || result.trials.iter().filter(|t| t.power.is_some() && t.valid() && size.trials.contains(&t.number));
        let at = result.trials.iter().find(|t| t.power.is_some() && Some(t.number) == size.at_throughput_trial);
        let wanted = size.throughput_fps?.get();
        let off = |t: &TrialRecord| (t.spec.load_fps.get() - wanted).abs();
        at.or_else(|| own().min_by(|a, b| off(a).total_cmp(&off(b))))
    };
    result.sizes.iter().filter_map(of).collect()
}

/// The highest temperatures of all trials, other sensors of power, and how often processors were slowed down.
fn notes(result: &RunResult) -> Vec<Note> {
    let all = || result.trials.iter().filter_map(|trial| trial.power.as_ref());
    let listed = |most: BTreeMap<&str, f64>, unit: &str| {
        let one = |(name, value): (&str, f64)| format!("{} {value:.1} {unit}", text::clean(name));
        most.into_iter().map(one).collect::<Vec<_>>().join(", ")
    };
    let temperatures = most(all().map(|power| &power.temperatures_celsius));
    let sensors = most(all().chain(&result.host.idle_power).map(|power| &power.sensor_watts));
    let throttled = all().filter_map(|power| power.throttle_events).fold(0, u64::saturating_add);
    let hot = all().filter(|power| power.throttle_events.is_some_and(|events| events > 0)).count();
    let mut notes = Vec::new();
    if !temperatures.is_empty() {
        notes.push(Note::plain(format!("highest temperatures of all trials: {}", listed(temperatures, "C"))));
    }
    if !sensors.is_empty() {
        notes.push(Note::plain(format!("highest at other power sensors: {}", listed(sensors, "W"))));
    }
    if throttled > 0 {
        let text = format!(
            "processors were slowed down {} times in {hot} trial{} because they were too hot: improve the cooling",
            num::thousands(throttled),
            if hot == 1 { "" } else { "s" }
        );
        notes.push(Note::new(text, Paint::Warn));
    }
    notes
}

/// The highest value of each name.
fn most<'a>(all: impl Iterator<Item = &'a BTreeMap<String, f64>>) -> BTreeMap<&'a str, f64> {
    let mut most = BTreeMap::new();
    for (name, value) in all.flatten() {
        most.entry(name.as_str()).and_modify(|most: &mut f64| *most = most.max(*value)).or_insert(*value);
    }
    most
}

/// Three digits that count: `0.00170`, `1.25`, `120`.
fn significant(value: f64) -> String {
    let first = if value == 0.0 { 0.0 } else { value.abs().log10().floor() };
    let digits = (2.0 - first).clamp(0.0, 9.0) as usize;
    format!("{value:.digits$}")
}

/// The columns of a trial for scripts, behind the others.
pub(crate) const COLUMNS: &str =
    "package_watts,dram_watts,system_watts,frame_millijoules,frame_above_idle_millijoules,\
                                  hottest_celsius,throttle_events";

/// Their values.
pub(crate) fn values(power: Option<&Power>) -> Vec<Option<f64>> {
    let of = |figure: fn(&Power) -> Option<f64>| power.and_then(figure);
    vec![
        of(|p| p.package_watts),
        of(|p| p.dram_watts),
        of(|p| p.system_watts),
        of(|p| p.frame_millijoules),
        of(|p| p.frame_above_idle_millijoules),
        of(|p| p.hottest().map(|(_, celsius)| celsius)),
        of(|p| p.throttle_events.map(|events| events as f64)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn energies_have_three_digits() {
        let texts = [0.0017, 0.02134, 1.25, 120.4, -0.5, 0.0].map(significant);
        assert_eq!(texts, ["0.00170", "0.0213", "1.25", "120", "-0.500", "0.00"]);
    }
}
