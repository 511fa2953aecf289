//! Exact figures for scripts: the schema's names and base units.

use measure::{result::RunResult, search::mlr::GoalResult};

use crate::{
    figures::{self, Rates},
    sections::power,
    table::Table,
    text::field,
    words,
};

/// The columns of a goal, behind the others.
const GOAL_COLUMNS: &str = "goal,goal_regularity,goal_lower_fps,goal_conditional_throughput_fps,goal_upper_fps,\
                            goal_trials,goal_trial_s";

/// The figures of a run: its answers by frame size, or of a run that has none, such as a single trial, its trials.
pub(crate) fn figures(result: &RunResult) -> Table {
    match result.sizes.is_empty() && result.tests.is_empty() && !result.trials.is_empty() {
        true => trials(result),
        false => sizes(result),
    }
}

/// One line a frame size, or with search goals one a goal of it, with more columns. `throughput_fps` and what follows from
/// it are per direction unless named `_sum`; an outcome other than `found`, `at_maximum` or `tester_limited` leaves them
/// empty.
pub(crate) fn sizes(result: &RunResult) -> Table {
    let mut t = Table::default();
    t.data_columns(
        "frame_size_bytes,outcome,throughput_fps,throughput_sum_fps,l2_sum_bps,l1_sum_bps,line_rate_percent,\
         upper_bound_fps,loss_ratio,latency_min_ns,latency_avg_ns,latency_max_ns,duplicates,reordered,\
         invalid_trials,standard,departures,compliance,latency_compliance,latency_departures",
    );
    let goals = result.sizes.iter().any(|s| !s.goals.is_empty());
    if goals {
        t.data_columns(GOAL_COLUMNS);
    }
    if result.dut_name.is_some() {
        t.data("dut_name");
    }
    let name: Vec<String> = result.dut_name.iter().map(|name| field(name)).collect();
    for size in &result.sizes {
        let rates = figures::Shown::of(size, result.link_bps)
            .rate()
            .map(|r| Rates::new(r, size.frame_size_bytes, result.directions, result.link_bps));
        let latency = rates.and(figures::latency(&size.at_throughput));
        let loss = rates.and(figures::loss(&size.at_throughput));
        let count = |f: fn(&measure::trial::DirectionCounts) -> u64| size.at_throughput.iter().map(f).sum::<u64>();
        let fields = vec![
            size.frame_size_bytes.written(),
            snake(&size.outcome),
            number(rates.map(|r| r.per_direction.get())),
            number(rates.map(|r| r.sum.get())),
            number(rates.map(|r| r.l2_bps)),
            number(rates.map(|r| r.l1_bps)),
            number(rates.and_then(|r| r.line_percent)),
            number(size.upper_bound_fps.map(|f| f.get())),
            number(loss.map(|l| l.get())),
            number(latency.map(|l| l.0 as f64)),
            number(latency.map(|l| l.1)),
            number(latency.map(|l| l.2 as f64)),
            count(|d| d.duplicates).to_string(),
            count(|d| d.reordered).to_string(),
            size.invalid_trials.to_string(),
            field(&size.standard.name),
            field(&size.standard.departures.join("; ")),
            // Without a figure there is nothing that could meet the standard.
            rates.and(size.compliance).as_ref().map_or_else(String::new, snake),
            rates.and(size.latency_compliance).as_ref().map_or_else(String::new, snake),
            size.latency_standard.as_ref().map_or_else(String::new, |label| field(&label.departures.join("; "))),
        ];
        for goal in &size.goals {
            t.data_row([fields.clone(), goal_fields(goal), name.clone()].concat());
        }
        if size.goals.is_empty() {
            let none = if goals { vec![String::new(); GOAL_COLUMNS.split(',').count()] } else { Vec::new() };
            t.data_row([fields, none, name.clone()].concat());
        }
    }
    t
}

fn goal_fields(goal: &GoalResult) -> Vec<String> {
    vec![
        field(&goal.goal.name),
        snake(&goal.regularity),
        number(goal.lower_fps.map(|f| f.get())),
        number(goal.conditional_throughput_fps.map(|f| f.get())),
        number(goal.upper_fps.map(|f| f.get())),
        goal.trials.len().to_string(),
        number(Some(goal.trial_s)),
    ]
}

/// One line a figure of each test beside the throughput, under the schema's own names: `points.3.loss_ratio`.
pub(crate) fn tests(result: &RunResult) -> Table {
    let mut t = Table::default();
    t.data_columns("frame_size_bytes,test,outcome,compliance,figure,value");
    for test in &result.tests {
        let key =
            [test.frame_size_bytes.written(), test.test.to_string(), snake(&test.outcome), snake(&test.compliance)];
        let mut figures = Vec::new();
        // The kind of the test is the one key of what was found.
        if let Ok(serde_json::Value::Object(found)) = serde_json::to_value(&test.found) {
            found.values().for_each(|value| leaves(value, "", &mut figures));
        }
        for (name, value) in figures {
            t.data_row([&key[..], &[field(&name), field(&value)]].concat());
        }
    }
    t
}

/// Every value of a tree with the way to it.
fn leaves(value: &serde_json::Value, path: &str, found: &mut Vec<(String, String)>) {
    let under = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match value {
        serde_json::Value::Object(map) => map.iter().for_each(|(name, v)| leaves(v, &under(name), found)),
        serde_json::Value::Array(all) => {
            all.iter().enumerate().for_each(|(i, v)| leaves(v, &under(&i.to_string()), found));
        }
        serde_json::Value::Null => {}
        serde_json::Value::String(text) => found.push((path.to_owned(), text.clone())),
        other => found.push((path.to_owned(), other.to_string())),
    }
}

/// One line a trial and direction, counts in frames; with columns for power if the machine has sensors.
pub(crate) fn trials(result: &RunResult) -> Table {
    let mut t = Table::default();
    t.data_columns(
        "number,attempt,purpose,frame_size_bytes,load_fps,duration_s,real_duration_s,from,to,intended,sent,refused,\
         skipped,received,duplicates,reordered,lost,foreign,wrong_length,misdirected,latency_min_ns,latency_avg_ns,\
         latency_p99_ns,latency_max_ns,placement,validity",
    );
    let with_power = result.trials.iter().any(|trial| trial.power.is_some());
    if with_power {
        t.data_columns(power::COLUMNS);
    }
    for trial in &result.trials {
        for d in &trial.directions {
            let latency = d.latency.as_ref();
            let mut fields = vec![
                trial.number.to_string(),
                trial.attempt.to_string(),
                field(words::purpose(trial.spec.purpose)),
                trial.spec.frame_size_bytes.written(),
                number(Some(trial.spec.load_fps.get())),
                number(Some(trial.spec.duration_s)),
                number(Some(trial.real_duration_s)),
                field(&d.from),
                field(&d.to),
            ];
            let counts = [
                d.intended,
                d.sent,
                d.refused,
                d.skipped,
                d.received,
                d.duplicates,
                d.reordered,
                d.lost,
                d.foreign,
                d.wrong_length,
                d.misdirected,
            ];
            fields.extend(counts.iter().map(ToString::to_string));
            fields.extend([
                number(latency.map(|l| l.min_ns as f64)),
                number(latency.map(|l| l.avg_ns)),
                number(latency.map(|l| l.p99_ns as f64)),
                number(latency.map(|l| l.max_ns as f64)),
                trial.interference.placement.map_or_else(String::new, |p| p.to_string()),
                field(&words::validity(trial)),
            ]);
            if with_power {
                fields.extend(power::values(trial.power.as_ref()).into_iter().map(number));
            }
            t.data_row(fields);
        }
    }
    t
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(String::new, |v| v.to_string())
}

/// The schema's own name of a value of a closed list.
fn snake(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(s)) => s,
        _ => String::new(),
    }
}
