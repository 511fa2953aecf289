//! What a machine can measure: the text and the JSON of `linerate check`. At most 25 lines of 80 columns.

use std::path::PathBuf;

use measure::{
    check::{Cause, CheckLoad, CheckResult, CoreNoise, TogetherNoise},
    result,
};

use crate::{
    document::{Audience, Block, Detail, Document, Fact, Section, Topic},
    num,
    standing::{self, Standing},
    style::{Paint, Style},
    table::{Cell, Table},
    terminal, text,
};

/// CPUs shown: the noisiest.
const CORES: usize = 3;
/// Loads shown: the highest that is clean, and those around it.
const LOADS: usize = 3;
/// Causes shown: with few CPUs there is room for one more.
const CAUSES: usize = 2;

/// The result as JSON, with a newline at its end.
///
/// # Errors
/// Never for figures that are numbers; the signature says what the serialiser says.
pub fn json(result: &CheckResult) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string_pretty(result)? + "\n")
}

/// The result as text. `files` are the documents already written.
pub fn render(result: &CheckResult, style: &Style, files: &[PathBuf]) -> String {
    terminal::render(&document(result), Detail::Short, style, files)
}

/// Title, cores, loads, what follows, what to improve, conclusion.
fn document(result: &CheckResult) -> Document {
    let section =
        |topic, title: &str, table: Table| Section::new(topic, title).with(Audience::READERS, Block::Table(table));
    let mut all = vec![
        Section::new(Topic::Setting, "").with(Audience::READERS, Block::Title(title(result))),
        section(Topic::Interference, "", cores(result)),
        section(Topic::Trials, "", loads(result)),
        Section::new(Topic::Trust, "").with(Audience::READERS, Block::Statements(statements(result))),
    ];
    let (_, paint) = standing::word(result.answer.standing);
    let paint = if result.answer.standing == result::Standing::Completed { Paint::Good } else { paint };
    let conclusion = Standing { text: result.answer.conclusion.clone(), paint };
    all.push(Section::new(Topic::Standing, "").with(Audience::READERS, Block::Standing(conclusion)));
    Document::of(all)
}

fn title(result: &CheckResult) -> String {
    let host = &result.host;
    let mut parts = vec![text::clean(&host.cpu_model)];
    parts.extend(host.hypervisor.as_deref().map(|h| match text::clean(h) {
        // The vendor is not known.
        h if h == "virtual machine" => h,
        vendor => format!("virtual ({vendor})"),
    }));
    parts.push(num::duration(result.elapsed_s));
    format!("Linerate {}: check; {}", text::clean(&result.linerate_version), parts.join(", "))
}

/// A row a core, and one for both at once.
fn cores(result: &CheckResult) -> Table {
    let mut t = Table::default();
    t.left(0, "CPU", "");
    t.right(1, "gaps", "/s");
    t.right(1, "p50", "us");
    t.right(1, "p99", "us");
    t.right(1, "largest", "us");
    t.right(1, "away", "%");
    t.right(1, "steal", "%");
    t.right(1, "clean at most", "ms");
    let mut noisiest: Vec<&CoreNoise> = result.cores.iter().collect();
    if noisiest.len() > CORES {
        noisiest.sort_by(|a, b| b.away_share.total_cmp(&a.away_share));
        noisiest.truncate(CORES);
    }
    for core in noisiest {
        t.row(core_row(core));
    }
    t.row_of(result.together.as_ref().map(together_row));
    t
}

impl Table {
    /// A row, if there is one.
    fn row_of(&mut self, row: Option<Vec<Cell>>) {
        row.into_iter().for_each(|row| self.row(row));
    }
}

fn core_row(core: &CoreNoise) -> Vec<Cell> {
    let us = |ns: Option<u64>| Cell::from(ns.map(|ns| num::us(ns as f64)));
    vec![
        core.cpu.to_string().into(),
        num::thousands(core.gaps_per_s.round().max(0.0) as u64).into(),
        us(core.p50_ns),
        us(core.p99_ns),
        us(core.largest_ns),
        share(core.away_share),
        core.steal_share.map_or_else(Cell::default, share),
        ms(core.longest_clean_s),
    ]
}

/// Both at once: gaps of 20 us and more, of either.
fn together_row(together: &TogetherNoise) -> Vec<Cell> {
    let cpus: Vec<String> = together.cores.iter().map(|core| core.cpu.to_string()).collect();
    let mut row = vec![Cell::default(); 8];
    if let [name, .., away, _, clean] = row.as_mut_slice() {
        *name = cpus.join("+").into();
        *away = share(1.0 - together.both_there_share);
        *clean = ms(together.longest_clean_s);
    }
    row
}

fn share(share: f64) -> Cell {
    format!("{:.2}", share * 100.0).into()
}

fn ms(seconds: f64) -> Cell {
    num::trim(seconds * 1e3, 1).into()
}

/// The loads around the highest one that is clean.
fn loads(result: &CheckResult) -> Table {
    let mut t = Table::default();
    t.right(0, "load", "pps");
    t.right(1, "offered", "pps");
    t.right(1, "trials", "");
    t.right(1, "passed", "");
    t.right(1, "clean", "% of time");
    t.right(1, "lost in it", "frames");
    let all = result.trials.as_ref().map(|trials| trials.loads.as_slice()).unwrap_or_default();
    let highest = all.iter().rposition(CheckLoad::is_clean).unwrap_or(0);
    let from = (highest + 2).min(all.len()).saturating_sub(LOADS);
    for load in all.iter().skip(from).take(LOADS) {
        t.row(vec![
            num::pps(load.load_fps).into(),
            num::pps(load.offered_fps).into(),
            load.trials.to_string().into(),
            Cell::painted(load.passed.to_string(), if load.is_clean() { Paint::Good } else { Paint::Warn }),
            format!("{:.1}", load.clean_share * 100.0).into(),
            num::thousands(load.lost).into(),
        ]);
    }
    t
}

/// The precision, and what to improve.
fn statements(result: &CheckResult) -> Vec<Fact> {
    let percent = |share: f64| num::trim(share * 100.0, 2);
    let answer = &result.answer;
    let mut facts = Vec::new();
    if let (Some(precision), Some(clean)) = (answer.precision, answer.clean_share) {
        let text = format!(
            "{} % within {} (clean {} %; trials tell {} %, slices {} %)",
            percent(precision.width),
            num::duration(precision.within_s),
            num::trim(clean * 100.0, 0),
            percent(2.0 * precision.by_trials),
            percent(2.0 * precision.by_slices),
        );
        facts.push(Fact::new("precision", text, Paint::Plain));
    }
    let named = result.causes.iter().take(CAUSES + usize::from(result.cores.len() < CORES));
    facts.extend((1..).zip(named).flat_map(|(number, cause)| improve(number, cause)));
    facts
}

/// What was seen, and what to do: a line each.
fn improve(number: usize, cause: &Cause) -> [Fact; 2] {
    let line = |label: String, text: &str| Fact::new(label, text, Paint::Plain).in_one_line("");
    [line(format!("improve {number}"), &cause.text), line("  do".to_owned(), &cause.remedy)]
}

#[cfg(test)]
mod tests {
    use measure::check::{self, CheckTrials, FullLoad, MachineState, OtherThread};
    use units::Fps;

    use super::*;

    fn noisy(cpu: u32) -> CoreNoise {
        CoreNoise {
            cpu,
            seconds: 1.25,
            gaps: 1250,
            gaps_per_s: 1000.0,
            p50_ns: Some(3_100),
            p99_ns: Some(41_000),
            largest_ns: Some(3_950_000),
            away_share: 0.0613,
            absence_share: 0.05,
            longest_clean_s: 0.0423,
            steal_share: Some(0.031),
            waited_share: Some(0.01),
            interrupts_per_s: Some(400.0),
            timer_per_s: Some(300.0),
            governor: Some("powersave".into()),
            ..CoreNoise::default()
        }
    }

    fn result(cpus: u32) -> CheckResult {
        let load = |mpps: f64, passed| CheckLoad {
            load_fps: Fps::from_raw(mpps * 1e6),
            offered_fps: Fps::from_raw(mpps * 1e6),
            trials: 3,
            passed,
            clean_share: 0.81,
            lost: u64::from(passed == 0) * 812_345,
        };
        let full = |mpps: f64| FullLoad {
            fps: Fps::from_raw(mpps * 1e6),
            deviation: 0.03,
            slice_s: 1e-4,
            clean_s: 0.08,
            aside_s: 0.02,
        };
        let other =
            OtherThread { pid: 812, name: "a\u{1b}[31mvery-long-na".into(), cpu: 1, share: 0.01, kernel: false };
        let mut result = CheckResult {
            linerate_version: "0.1.0".into(),
            elapsed_s: 10.4,
            cpus: (0..cpus).collect(),
            cores: (0..cpus).map(noisy).collect(),
            together: (cpus > 1).then(|| TogetherNoise {
                cores: vec![noisy(1), noisy(0)],
                both_there_share: 0.9,
                longest_clean_s: 0.031,
            }),
            trials: (cpus > 1).then(|| CheckTrials {
                loads: [(1.0, 3), (2.0, 3), (5.0, 3), (10.0, 3), (20.0, 2), (30.0, 0), (50.0, 0)]
                    .map(|(mpps, passed)| load(mpps, passed))
                    .into(),
                full_load: [31.0, 31.4, 30.2].map(full).into(),
                ..CheckTrials::default()
            }),
            state: MachineState { others: vec![other], ..MachineState::default() },
            ..CheckResult::default()
        };
        result.host.cpu_model = "AMD EPYC 7B13".into();
        result.host.hypervisor = Some("KVM".into());
        check::judge(&mut result, false);
        result
    }

    #[track_caller]
    fn fits(text: &str) {
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        assert!(
            text.lines().count() <= 25 && widest <= 80,
            "{} lines, {widest} columns:\n{text}",
            text.lines().count()
        );
    }

    #[test]
    fn the_text_fits_a_terminal() {
        let style = Style { width: 80, ..Style::PIPE };
        let text = render(&result(2), &style, &[]);
        fits(&text);
        insta::assert_snapshot!(text);
        fits(&render(&result(64), &style, &[PathBuf::from("/a/long/way/to/the/file/that/was/written.json")]));
        let one = render(&result(1), &style, &[]);
        fits(&one);
        insta::assert_snapshot!("one_cpu", one);
        let mut stopped = CheckResult::default();
        check::judge(&mut stopped, true);
        fits(&render(&stopped, &style, &[]));
    }

    fn names(value: &serde_json::Value, all: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(fields) => fields.iter().for_each(|(name, field)| {
                all.push(name.clone());
                names(field, all);
            }),
            serde_json::Value::Array(entries) => entries.iter().for_each(|entry| names(entry, all)),
            _ => {}
        }
    }

    #[test]
    fn the_page_describes_every_field() {
        const PAGE: &str = include_str!("../../../docs/check.md");
        let mut result = result(2);
        (result.state.real_time, result.state.rt_throttle_share) = (Some(true), Some(0.05));
        let mut value = serde_json::to_value(&result).unwrap();
        // As in a result.
        value["host"] = serde_json::Value::Null;
        let mut all = Vec::new();
        names(&value, &mut all);
        all.retain(|name| !PAGE.contains(&format!("`{name}`")) && !PAGE.contains(&format!("`{name}[]`")));
        assert!(all.is_empty(), "docs/check.md does not describe {all:?}");
        let kinds = result.causes.iter().map(|cause| serde_json::to_value(cause.kind).unwrap());
        let kinds: Vec<String> = kinds.map(|kind| kind.as_str().unwrap().to_owned()).collect();
        assert!(kinds.iter().all(|kind| PAGE.contains(&format!("`{kind}`"))), "{kinds:?}");
        for cause in &result.causes {
            let section = cause.page.split('#').nth(1).unwrap().replace('-', " ");
            assert!(PAGE.to_lowercase().contains(&format!("\n### {section}\n")), "no section {section}");
        }
    }

    #[test]
    fn json_is_read_back_as_it_was() {
        let result = result(2);
        assert_eq!(serde_json::from_str::<CheckResult>(&json(&result).unwrap()).unwrap(), result);
    }
}
