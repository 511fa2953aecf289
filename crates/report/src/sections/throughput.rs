//! The throughput found at each frame size, and what the search goals of MLRsearch say.

use measure::{
    answer::IntervalAnswer,
    result::{RunResult, SizeResult},
    search::mlr::Regularity,
};
use units::{Fps, Frames, LinkSpeed};

use crate::{
    document::{Audience, Block, Note, Section, Topic},
    figures::{self, Rates, Shown},
    num,
    style::Paint,
    table::{Cell, Table},
    text, words,
};

/// Over the table of an MLRsearch's goals.
const GOALS: &str = "Search goals (RFC 9971); figures of irregular results in brackets";
/// Share by which the rate as measured differs from that of the undisturbed time when it is told.
const DIFFERS: f64 = 0.01;
/// Fewest lines that notes may take in a short text.
const NOTE_LINES: usize = 2;

/// The throughputs, and why a size has none.
pub(crate) fn section(result: &RunResult) -> Section {
    let title = if result.directions > 1 { "Throughput, both ways" } else { "Throughput" };
    let whole = |text: String| Note::new(text, Paint::Warn);
    let notes: Vec<Note> = notes(result).into_iter().map(whole).collect();
    let section = Section::new(Topic::Throughput, title).short_title("");
    // What the goals of MLRsearch say holds the same figures.
    let section = match goals(result).is_empty() {
        true => section.with(Audience::SHORT, Block::Table(short(result))),
        false => section,
    };
    section
        .with(Audience::DETAILS, Block::Table(table(result)))
        .with(Audience::SHORT, Block::Notes(brief(&notes, result)))
        .with(Audience::DETAILS, Block::Notes(notes))
}

/// What MLRsearch found for each goal.
pub(crate) fn goals_section(result: &RunResult) -> Section {
    Section::new(Topic::Goals, GOALS).with(Audience::READERS, Block::Table(goals(result)))
}

/// The notes within the lines that a short text has for them: those that rows of delays would take otherwise. One whole
/// note says more than the beginnings of several.
fn brief(notes: &[Note], result: &RunResult) -> Vec<Note> {
    let without = result.sizes.len() - figures::shown(result).count();
    let lines = without.saturating_sub(1).max(NOTE_LINES);
    let most = (lines / 3).clamp(1, notes.len().max(1));
    let more = notes.len().saturating_sub(most);
    // Of two lines, both are the note's.
    let counted = usize::from(more > 0 && lines > NOTE_LINES);
    let each = ((lines - counted) / most).max(1);
    let mut brief: Vec<Note> = notes.iter().take(most).map(|n| Note { lines: Some(each), ..n.clone() }).collect();
    if counted > 0 {
        brief.push(Note::plain(format!("and {more} more: --verbose")));
    }
    brief
}

/// The columns that a terminal of 80 has room for.
fn short(result: &RunResult) -> Table {
    let both = result.directions > 1;
    let mut t = Table::default();
    // One line of names leaves a line for a row.
    t.right(0, "frame", "");
    t.right(1, if both { "pps each way" } else { "pps" }, "");
    t.right(1, "up to", "");
    t.right(1, "pps in all", "");
    t.right(1, "L1 Mbit/s", "");
    t.right(1, "line rate %", "");
    t.right(1, "loss", "");
    t.left(1, "result", "");
    for size in &result.sizes {
        let shown = Shown::of(size, result.link_bps);
        let rates = shown.rate().map(|r| Rates::new(r, size.frame_size_bytes, result.directions, result.link_bps));
        t.row(vec![
            size.frame_size_bytes.to_string().into(),
            rate_cell(shown),
            up_to(size, shown),
            rates.filter(|_| both).map(|r| num::pps(r.sum)).into(),
            rates.map(|r| num::mbps(r.l1_bps)).into(),
            rates.and_then(|r| r.line_percent).map(|p| format!("{p:.2}")).into(),
            rates.and(figures::loss_at(result, size)).map(|l| l.to_string()).into(),
            outcome(size, result.link_bps),
        ]);
    }
    t
}

fn outcome(size: &SizeResult, link: Option<LinkSpeed>) -> Cell {
    Cell::painted(words::outcome(size, link), words::outcome_paint(size, link))
}

/// Throughput, bit rates, share of the line, loss and latency: a row a frame size, as the source documents lay it out.
fn table(result: &RunResult) -> Table {
    let both = result.directions > 1;
    let mut t = Table::default();
    t.right(0, "frame", "B");
    t.right(1, "throughput", if both { "pps each way" } else { "pps" });
    t.right(1, "up to", if both { "pps each way" } else { "pps" });
    t.right(1, "likeliest", if both { "pps each way" } else { "pps" });
    t.right(1, "sum", "pps");
    t.right(1, "L2", "Mbit/s");
    t.right(1, "L1", "Mbit/s");
    t.right(1, "line", "rate %");
    t.right(1, "loss", "at it");
    t.left(1, "result", "");
    t.right(2, "lat min", "us");
    t.right(2, "lat avg", "us");
    t.right(2, "lat max", "us");
    for size in &result.sizes {
        let shown = Shown::of(size, result.link_bps);
        let rates = shown.rate().map(|r| Rates::new(r, size.frame_size_bytes, result.directions, result.link_bps));
        let latency = rates.and(figures::latency(&size.at_throughput));
        t.row(vec![
            size.frame_size_bytes.to_string().into(),
            rate_cell(shown),
            up_to(size, shown),
            size.answer.filter(|_| rates.is_some()).and_then(|a| a.point_fps).map(num::pps).into(),
            rates.filter(|_| both).map(|r| num::pps(r.sum)).into(),
            rates.map(|r| num::mbps(r.l2_bps)).into(),
            rates.map(|r| num::mbps(r.l1_bps)).into(),
            rates.and_then(|r| r.line_percent).map(|p| format!("{p:.2}")).into(),
            rates.and(figures::loss_at(result, size)).map(|l| l.to_string()).into(),
            outcome(size, result.link_bps),
            latency.map(|l| num::us(l.0 as f64)).into(),
            latency.map(|l| num::us(l.1)).into(),
            latency.map(|l| num::us(l.2 as f64)).into(),
        ]);
    }
    t
}

/// What MLRsearch found: a row a frame size and goal. Figures of an irregular result stand in brackets.
fn goals(result: &RunResult) -> Table {
    let mut t = Table::default();
    t.right(0, "frame", "B");
    t.left(0, "goal", "");
    t.right(1, "lower bound", "pps");
    t.right(1, "conditional", "throughput pps");
    t.right(1, "upper bound", "pps");
    t.left(1, "result", "");
    t.right(1, "trials", "");
    t.right(1, "trial", "seconds");
    for size in &result.sizes {
        for goal in &size.goals {
            let (word, paint) = words::regularity(goal.regularity);
            let regular = goal.regularity == Regularity::Regular;
            let figure = |fps: Option<Fps>| match fps.map(num::pps) {
                None => "-".into(),
                Some(text) if regular => text.into(),
                Some(text) => Cell::from(format!("({text})")),
            };
            t.row(vec![
                size.frame_size_bytes.to_string().into(),
                text::clip(&text::clean(&goal.goal.name), 24).into(),
                figure(goal.lower_fps),
                figure(goal.conditional_throughput_fps),
                figure(goal.upper_fps),
                Cell::painted(word, paint),
                goal.trials.len().to_string().into(),
                num::trim(goal.trial_s, 3).into(),
            ]);
        }
    }
    t
}

/// The lowest load shown to fail, of an answer with an interval.
fn up_to(size: &SizeResult, shown: Shown) -> Cell {
    match shown {
        Shown::Exactly(_) => size.answer.and_then(|answer| answer.upper_fps).map(num::pps).into(),
        Shown::AtLeast(_) | Shown::Nothing => Cell::default(),
    }
}

fn rate_cell(shown: Shown) -> Cell {
    match shown {
        Shown::Exactly(fps) => Cell::bold(num::pps(fps)),
        Shown::AtLeast(fps) => Cell::bold(format!(">= {}", num::pps(fps))),
        Shown::Nothing => "-".into(),
    }
}

/// What the words in the result column mean, the bounds known so far and the diagnoses; sizes of one kind together.
fn notes(result: &RunResult) -> Vec<String> {
    let note = |size| note(size, result.link_bps).into_iter().collect();
    let merged = figures::by_sizes(result, note);
    merged.into_iter().map(|(text, sizes)| format!("{}: {text}", Frames::list(&sizes))).collect()
}

/// What the device forwarded with the times in which somebody was away, where that is another figure.
fn as_measured(answer: &IntervalAnswer) -> Option<String> {
    let (measured, point) = (answer.as_measured?, answer.point_fps?);
    let differs = (measured.point_fps.get() / point.get() - 1.0).abs() > DIFFERS;
    let forwarded = match measured.lower_fps > Fps::ZERO {
        true => format!("{} to {} pps", num::pps(measured.lower_fps), num::pps(measured.upper_fps)),
        false => format!("about {} pps, and not the same from pass to pass", num::pps(measured.point_fps)),
    };
    differs.then(|| {
        format!(
            "the figure is that of the undisturbed time; as measured, whoever took a core away, the busy device \
             forwarded {forwarded}"
        )
    })
}

fn note(size: &SizeResult, link: Option<LinkSpeed>) -> Option<String> {
    let meaning = words::outcome_meaning(size, link);
    let mut text = meaning.map_or_else(String::new, |m| format!("{}: {m}", words::outcome(size, link)));
    if Shown::of(size, link) == Shown::Nothing {
        match (size.throughput_fps, size.upper_bound_fps) {
            (Some(low), Some(high)) => text.push_str(&format!("; bounds so far {low} and {high}")),
            (Some(low), None) => text.push_str(&format!("; {low} met the goal so far")),
            (None, Some(high)) => text.push_str(&format!("; {high} did not meet it")),
            (None, None) => {}
        }
    }
    if let Some(both) = size.answer.as_ref().and_then(as_measured) {
        text.push_str(if text.is_empty() { "" } else { "; " });
        text.push_str(&both);
    }
    if let Some(diagnosis) = &size.diagnosis {
        text.push_str(if text.is_empty() { "" } else { "; " });
        text.push_str(&text::clean(diagnosis));
    }
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use measure::answer::AsMeasured;

    use super::*;

    #[test]
    fn the_rate_as_measured_is_told_where_it_differs() {
        let fps = Fps::from_raw;
        let of = |point: f64| IntervalAnswer {
            lower_fps: Some(fps(0.99e6)),
            upper_fps: Some(fps(1.01e6)),
            point_fps: Some(fps(1e6)),
            standing: None,
            confidence: Some(0.95),
            clean_seconds: 1.0,
            passes: 3,
            aside_share: 0.5,
            as_measured: Some(AsMeasured {
                lower_fps: fps(point * 0.99),
                upper_fps: fps(point * 1.01),
                point_fps: fps(point),
            }),
        };
        assert_eq!(as_measured(&of(0.995e6)), None);
        let text = as_measured(&of(0.8e6)).unwrap();
        assert!(text.contains("792,000 to 808,000 pps"), "{text}");
        assert_eq!(as_measured(&IntervalAnswer { as_measured: None, ..of(0.8e6) }), None);
        let measured = AsMeasured { lower_fps: Fps::ZERO, upper_fps: fps(5e6), point_fps: fps(0.7e6) };
        let text = as_measured(&IntervalAnswer { as_measured: Some(measured), ..of(1e6) }).unwrap();
        assert!(text.contains("about 700,000 pps") && !text.contains("5,000,000"), "{text}");
    }
}
