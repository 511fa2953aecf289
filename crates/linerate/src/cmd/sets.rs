//! Plans of several runs: `runs = [...]` in the file, each another plan or this one with some keys changed.
//!
//! `router-all` is eight plans; `onp-phy-ovs-phy` is one with two numbers of flows. One run is named `PLAN:RUN`.

use measure::plan::Plan;
use report::layout::Layout;
use toml::{Table, Value};

use super::plan::text_of;
use failure::Failure;

/// Most runs of a plan.
const MAX_RUNS: usize = 64;

/// A plan of several runs.
#[derive(Debug)]
pub struct Set {
    /// What the file says of itself: its own sections, without the runs.
    pub base: Plan,
    /// Names of the runs, in order.
    pub runs: Vec<String>,
    /// How the table of all of them is laid out.
    pub layout: Layout,
}

/// The runs of a plan, if it has several; `name` is a plan's, never `PLAN:RUN`.
pub fn of(name: &str) -> Result<Option<Set>, Failure> {
    let text = text_of(name)?;
    if !text.contains("runs") {
        return Ok(None);
    }
    // What is no TOML is for the plan itself to say.
    let Ok(mut table) = text.parse::<Table>() else { return Ok(None) };
    let Some(runs) = table.remove("runs") else { return Ok(None) };
    let layout = layout(name, table.remove("layout"))?;
    let base = Plan::from_toml(&table.to_string()).map_err(|e| at(name, &e))?;
    let runs = list(name, runs)?;
    let names = runs.iter().map(|run| run_name(name, run)).collect::<Result<Vec<_>, _>>()?;
    if let Some(twice) = names.iter().enumerate().find(|(i, run)| names[..*i].contains(run)) {
        return Err(at(name, format!("runs: {:?} stands there twice: give each a name of its own", twice.1)));
    }
    for run in &names {
        // Each must be a plan before the first is run.
        member(name, run)?;
    }
    Ok(Some(Set { base, runs: names, layout }))
}

/// One run of a plan of several.
pub fn member(name: &str, run: &str) -> Result<Plan, Failure> {
    let mut own: Table = text_of(name)?.parse().map_err(|e: toml::de::Error| at(name, e.message()))?;
    let Some(runs) = own.remove("runs") else {
        return Err(at(name, format!("has no runs, so none named {run:?}")));
    };
    own.remove("layout");
    let runs = list(name, runs)?;
    let named = |table: &&Table| run_name(name, table).is_ok_and(|n| n == run);
    let Some(mut changes) = runs.iter().find(named).cloned() else {
        let names: Vec<_> = runs.iter().filter_map(|r| run_name(name, r).ok()).collect();
        return Err(at(name, format!("has no run {run:?}: must be one of {}", names.join(", "))));
    };
    let other = changes.remove("plan");
    let renamed = changes.remove("name").is_some();
    let mut table = match &other {
        None => own,
        Some(other) => {
            let other = other.as_str().unwrap_or_default();
            let table: Table = text_of(other)?.parse().map_err(|e: toml::de::Error| at(other, e.message()))?;
            if table.contains_key("runs") {
                return Err(at(name, format!("runs: plan {other:?} has runs itself: list those")));
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
        return Err(at_run(&"has a sweep, and runs of a plan have none: make it a plan of its own"));
    }
    Ok(plan)
}

fn at(name: &str, what: impl std::fmt::Display) -> Failure {
    Failure::usage(format!("plan {name}: {what}"))
}

fn list(name: &str, runs: Value) -> Result<Vec<Table>, Failure> {
    let legal = || at(name, format!("runs: must be 1 to {MAX_RUNS} tables, like {{ plan = \"router-u1\" }}"));
    let Value::Array(runs) = runs else { return Err(legal()) };
    if runs.is_empty() || runs.len() > MAX_RUNS {
        return Err(legal());
    }
    runs.into_iter().map(|run| run.try_into::<Table>().map_err(|_| legal())).collect()
}

fn layout(name: &str, given: Option<Value>) -> Result<Layout, Failure> {
    let Some(given) = given else { return Ok(Layout::Onp) };
    let found = Layout::ALL.into_iter().find(|l| given.as_str() == Some(l.name()));
    found.ok_or_else(|| at(name, format!("layout {given}: must be nfvi, onp, router or flowlog")))
}

/// The name of a run: its own, or that of its plan. It becomes part of file names.
fn run_name(plan: &str, run: &Table) -> Result<String, Failure> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, String) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("set.toml");
        std::fs::write(&path, text).unwrap();
        let name = path.to_str().unwrap().to_owned();
        (dir, name)
    }

    #[test]
    fn runs_are_the_plan_with_some_keys_changed() {
        let (_dir, name) = file(
            "name = 'mine'\nframe_sizes = [64]\nruns = [{ name = 'a' }, { name = 'b', traffic.flows = 9 }, \
             { plan = 'router-u3' }, { plan = 'ci', name = 'c', frame_sizes = [1518] }]\n[traffic]\nttl = 9",
        );
        let set = of(&name).unwrap().unwrap();
        assert_eq!((set.runs, set.layout), (vec!["a".into(), "b".into(), "router-u3".into(), "c".into()], Layout::Onp));
        let b = member(&name, "b").unwrap();
        assert_eq!((b.name.as_str(), b.traffic.flows, b.traffic.ttl), ("mine:b", 9, 9));
        assert_eq!(member(&name, "router-u3").unwrap(), crate::cmd::plan::load("router-u3").unwrap());
        let c = member(&name, "c").unwrap();
        assert_eq!((c.name.as_str(), c.frame_sizes.len()), ("ci:c", 1));
        assert!(of("rfc2544").unwrap().is_none());
    }

    #[test]
    fn what_is_wrong_with_runs_is_said() {
        for (text, says) in [
            ("runs = []", "1 to 64 tables"),
            ("runs = 5", "1 to 64 tables"),
            ("runs = ['router-u1']", "like { plan"),
            ("runs = [{ traffic.flows = 1 }]", "of each run"),
            ("runs = [{ name = '../x' }]", "letters, digits"),
            ("runs = [{ plan = 'ci' }, { plan = 'ci' }]", "twice"),
            ("runs = [{ plan = 'router-all' }]", "has runs itself"),
            ("runs = [{ plan = 'nope' }]", "no such file"),
            ("runs = [{ name = 'a', colour = 1 }]", "colour"),
            ("runs = [{ name = 'a' }]\n[sweep]\nflows = [1]", "has a sweep"),
            ("layout = 'red'\nruns = [{ name = 'a' }]", "must be nfvi"),
        ] {
            let (_dir, name) = file(text);
            let error = of(&name).unwrap_err().text;
            assert!(error.contains(says) && !error.contains('\n'), "{text}: {error}");
        }
    }
}
