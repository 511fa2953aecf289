//! Plans of several runs, read by name or file.

use measure::plan::{
    suite::{self, Suite},
    Plan,
};
use report::layout::Layout;

use super::plan::text_of;
use crate::failure::Failure;

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
    let Some(Suite { base, runs, layout: given }) = suite::read(name, text_of)? else { return Ok(None) };
    Ok(Some(Set { base, runs, layout: layout(name, given)? }))
}

/// One run of a plan of several.
pub fn member(name: &str, run: &str) -> Result<Plan, Failure> {
    suite::member(name, run, text_of)
}

fn layout(name: &str, given: Option<String>) -> Result<Layout, Failure> {
    let Some(given) = given else { return Ok(Layout::Onp) };
    let found = Layout::ALL.into_iter().find(|l| given == l.name());
    found.ok_or_else(|| Failure::usage(format!("plan {name}: layout {given:?}: must be nfvi, onp, router or flowlog")))
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
            ("runs = [{ plan = 'ci' }, { plan = 'ci' }]", "listed twice"),
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
