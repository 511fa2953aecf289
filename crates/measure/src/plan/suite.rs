//! A plan of several runs: each is the plan with some keys changed, or another plan.

use std::borrow::Cow;

use toml::{Table, Value};

use super::{document::Plan, error::PlanError};

/// Gives the text of a plan by its name or file.
pub trait TextOf<E>: Fn(&str) -> Result<Cow<'static, str>, E> {}

impl<E, F: Fn(&str) -> Result<Cow<'static, str>, E>> TextOf<E> for F {}

/// Most runs of a plan.
const MAX_RUNS: usize = 64;

/// A plan of several runs.
#[derive(Debug)]
pub struct Suite {
    /// What the file says of itself: its own sections, without the runs.
    pub base: Plan,
    /// Names of the runs, in order.
    pub runs: Vec<String>,
    /// How the table of all of them is laid out, as the file names it.
    pub layout: Option<String>,
}

/// The runs of a plan, if it has several. `name` is a plan's, never `PLAN:RUN`; `text_of` gives the text of a plan.
pub fn read<E: From<PlanError>>(name: &str, text_of: impl TextOf<E>) -> Result<Option<Suite>, E> {
    let text = text_of(name)?;
    if !text.contains("runs") {
        return Ok(None);
    }
    // The plan itself reports text that is not TOML.
    let Ok(mut table) = text.parse::<Table>() else { return Ok(None) };
    let Some(runs) = table.remove("runs") else { return Ok(None) };
    let layout = table.remove("layout").map(|given| given.as_str().map_or_else(|| given.to_string(), str::to_owned));
    // Lines of the text without the runs are not those of the file.
    let base = Plan::from_toml(&table.to_string()).map_err(|e| at(name, e.without_place()))?;
    let runs = list(name, runs)?;
    let names = runs.iter().map(|run| run_name(name, run)).collect::<Result<Vec<_>, _>>()?;
    if let Some(twice) = names.iter().enumerate().find(|(i, run)| names[..*i].contains(run)) {
        return Err(at(name, format!("runs: {:?} is listed twice: give each run a name of its own", twice.1)).into());
    }
    for run in &names {
        // Each must be a plan before the first is run.
        member(name, run, &text_of)?;
    }
    Ok(Some(Suite { base, runs: names, layout }))
}

/// One run of a plan of several.
pub fn member<E: From<PlanError>>(name: &str, run: &str, text_of: impl TextOf<E>) -> Result<Plan, E> {
    let mut own: Table = text_of(name)?.parse().map_err(|e: toml::de::Error| at(name, e.message()))?;
    let Some(runs) = own.remove("runs") else {
        return Err(at(name, format!("has no runs, so none named {run:?}")).into());
    };
    own.remove("layout");
    let runs = list(name, runs)?;
    let named = |table: &&Table| run_name(name, table).is_ok_and(|n| n == run);
    let Some(mut changes) = runs.iter().find(named).cloned() else {
        let names: Vec<_> = runs.iter().filter_map(|r| run_name(name, r).ok()).collect();
        return Err(at(name, format!("has no run {run:?}: must be one of {}", names.join(", "))).into());
    };
    let other = changes.remove("plan");
    let renamed = changes.remove("name").is_some();
    let mut table = match &other {
        None => own,
        Some(other) => {
            let other = other.as_str().unwrap_or_default();
            let table: Table = text_of(other)?.parse().map_err(|e: toml::de::Error| at(other, e.message()))?;
            if table.contains_key("runs") {
                return Err(at(name, format!("runs: plan {other:?} has runs itself: list those")).into());
            }
            table
        }
    };
    if other.is_none() || renamed {
        let title = table.get("name").and_then(Value::as_str).unwrap_or(name).to_owned();
        table.insert("name".to_owned(), Value::String(format!("{title}:{run}")));
    }
    merge(&mut table, changes);
    let at_run = |e: &dyn std::fmt::Display| at(&format!("{name}:{run}"), e);
    let plan = Plan::from_toml(&table.to_string()).map_err(|e| at_run(&e))?;
    if !plan.sweep.is_empty() {
        return Err(at_run(&"has a sweep, and runs of a plan have none: make it a plan of its own").into());
    }
    Ok(plan)
}

fn at(name: &str, what: impl ToString) -> PlanError {
    PlanError::Suite { plan: name.to_owned(), problem: what.to_string() }
}

fn list(name: &str, runs: Value) -> Result<Vec<Table>, PlanError> {
    let legal = || at(name, format!("runs: must be 1 to {MAX_RUNS} tables, like {{ plan = \"router-u1\" }}"));
    let Value::Array(runs) = runs else { return Err(legal()) };
    if runs.is_empty() || runs.len() > MAX_RUNS {
        return Err(legal());
    }
    runs.into_iter().map(|run| run.try_into::<Table>().map_err(|_| legal())).collect()
}

/// The name of a run: its own, or that of its plan. It becomes part of file names.
fn run_name(plan: &str, run: &Table) -> Result<String, PlanError> {
    let name = run.get("name").or(run.get("plan")).and_then(Value::as_str).unwrap_or_default();
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > 40 || !name.chars().all(legal) || name.starts_with('.') {
        return Err(at(plan, format!("runs: name {name:?}: must be 1 to 40 letters, digits, - _ and ., of each run")));
    }
    Ok(name.to_owned())
}

/// Keys of a table over those of another, section by section.
fn merge(into: &mut Table, changes: Table) {
    for (key, value) in changes {
        match (into.get_mut(&key), value) {
            (Some(Value::Table(section)), Value::Table(changes)) => merge(section, changes),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}
