//! Plans by name or file, and suites of them.

use std::{borrow::Cow, fs, path::Path};

use failure::Failure;
use measure::plan::{
    library,
    suite::{member as suite_member, read as read_suite, Suite},
    Needs, Plan,
};
use report::layout::Layout;

/// Largest plan file read: a plan is a page of text.
const MAX_PLAN_BYTES: u64 = 1 << 20;

/// A plan by its name or file, as written; `PLAN:RUN` is one run of a plan that has several.
pub fn load(name: &str) -> Result<Plan, Failure> {
    match (text_of(name), name.rsplit_once(':')) {
        (Ok(_), _) | (Err(_), None) => {}
        (Err(_), Some((plan, run))) => return member(plan, run),
    }
    if let Some(set) = suite(name)? {
        let runs: Vec<_> = set.runs.iter().map(|run| format!("{name}:{run}")).collect();
        return Err(Failure::usage(format!("plan {name}: has several runs: name one of {}", runs.join(", "))));
    }
    let text = text_of(name)?;
    let plan = Plan::from_toml(&text);
    plan.map_err(|e| if library::text(name).is_some() { e.into() } else { Failure::usage(format!("plan {name}: {e}")) })
}

/// What a plan needs of the testbed; of one with several runs, what all of them need.
pub fn needs_of(name: &str) -> Result<Needs, Failure> {
    match suite(name) {
        Ok(Some(suite)) => Ok(suite.base.needs),
        _ => Ok(load(name)?.needs),
    }
}

/// The plan that flags of `linerate bench` name.
pub fn named_by(bench: &[String]) -> Option<String> {
    let at = bench.iter().position(|word| word == "--plan" || word.starts_with("--plan="))?;
    let own = bench[at].strip_prefix("--plan=").map(str::to_owned);
    // A flag without its value is bench's to refuse.
    Some(own.or_else(|| bench.get(at + 1).cloned()).unwrap_or_default())
}

/// The text of a plan, embedded or in a file.
fn text_of(name: &str) -> Result<Cow<'static, str>, Failure> {
    if let Some(text) = library::text(name) {
        return Ok(text.into());
    }
    let path = Path::new(name);
    let at = |e: String| Failure::usage(format!("plan {name}: {e}"));
    if !path.exists() {
        if name.contains('/') || name.ends_with(".toml") {
            return Err(at("no such file: check the path, or choose a plan of --list".to_owned()));
        }
        if let Some(plan) = latency::plans::plan(name) {
            return Err(at(format!(
                "it is one of linerate latency: linerate latency {} --plan {name}",
                plan.command()
            )));
        }
        let names: Vec<&str> = library::names().collect();
        return Err(at(format!("no such file, nor an embedded plan (these are: {})", names.join(", "))));
    }
    match fs::metadata(path) {
        Ok(m) if m.is_file() && m.len() <= MAX_PLAN_BYTES => {}
        Ok(_) => return Err(at("must be a regular file of at most 1 MiB".to_owned())),
        Err(e) => return Err(at(failure::unreadable(&e))),
    }
    let text = fs::read_to_string(path).map_err(|e| at(failure::unreadable(&e)))?;
    let says_something = |line: &str| !line.trim().is_empty() && !line.trim().starts_with('#');
    if !text.lines().any(says_something) {
        return Err(at("is empty: linerate bench --print-config writes a plan to begin with".to_owned()));
    }
    Ok(text.into())
}

/// A plan of several runs.
#[derive(Debug)]
pub struct SuitePlan {
    /// What the file says of itself: its own sections, without the runs.
    pub base: Plan,
    /// Names of the runs, in order.
    pub runs: Vec<String>,
    /// How the table of all of them is laid out.
    pub layout: Layout,
}

/// The runs of a plan, if it has several; `name` is a plan's, never `PLAN:RUN`.
pub fn suite(name: &str) -> Result<Option<SuitePlan>, Failure> {
    let Some(Suite { base, runs, layout: given }) = read_suite(name, text_of)? else { return Ok(None) };
    Ok(Some(SuitePlan { base, runs, layout: layout(name, given)? }))
}

/// One run of a plan of several.
fn member(name: &str, run: &str) -> Result<Plan, Failure> {
    suite_member(name, run, text_of)
}

fn layout(name: &str, given: Option<String>) -> Result<Layout, Failure> {
    let Some(given) = given else { return Ok(Layout::Onp) };
    let found = Layout::ALL.into_iter().find(|l| given == l.name());
    found.ok_or_else(|| Failure::usage(format!("plan {name}: layout {given:?}: must be nfvi, onp, router or flowlog")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_of_a_run_is_found_in_either_form() {
        let named = |text: &str| named_by(&text.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(named("--quick --plan ci -q").as_deref(), Some("ci"));
        assert_eq!(named("--plan=ci").as_deref(), Some("ci"));
        assert_eq!(named("--quick"), None);
    }

    #[test]
    fn every_embedded_plan_is_valid_and_named_as_listed() {
        let mut several = Vec::new();
        for (name, text) in library::PLANS {
            if let Some(set) = suite(name).unwrap() {
                assert_eq!(set.base.name, *name);
                for run in set.runs {
                    load(&format!("{name}:{run}")).unwrap().validate().unwrap();
                }
                let error = load(name).unwrap_err();
                assert_eq!(error.exit, failure::Exit::Usage);
                several.push(error.text);
                continue;
            }
            let plan = Plan::from_toml(text).unwrap();
            assert_eq!(plan.name, *name);
            if *name == "rfc2544" {
                assert_eq!(plan, Plan::default(), "the embedded default is the default");
            }
            plan.validate().unwrap();
        }
        insta::assert_snapshot!(several.join("\n"));
    }

    #[test]
    fn old_names_still_work() {
        assert_eq!(load("small-router-b4").unwrap(), load("router-b4").unwrap());
        let errors = ["router-b4:x", "onp-phy-ovs-phy:x", "nope:x"].map(|name| load(name).unwrap_err());
        assert!(errors.iter().all(|error| error.exit == failure::Exit::Usage));
        insta::assert_snapshot!(errors.map(|error| error.text).join("\n"), @r#"
        plan router-b4: has no runs, so none named "x"
        plan onp-phy-ovs-phy: has no run "x": must be one of 1-flow, 1000-flows
        plan nope: no such file, nor an embedded plan (these are: rfc2544, ci, nfvi-two-vm-1q2pmd, nfvi-two-vm-2q4pmd, router-u1, router-u2, router-u3, router-u4, router-b1, router-b2, router-b3, router-b4, router-all, onp-phy-phy, onp-phy-ovs-phy, onp-phy-vm-phy, onp-phy-vm-vm-phy, onp-vxlan, onp-core-scaling, onp-40g-scenario-1, onp-40g-scenario-2, onp-40g-scenario-3, rfc2544-all, rfc9004, rfc2889-addresses, soak, flowlog-64b, flow-loggers-12, reset, recovery, vxlan-forward)
        "#);
    }

    #[test]
    fn a_file_that_says_nothing_is_no_plan() {
        for text in ["", "\n  \n", "# a plan\n\n # to come\n"] {
            let (_dir, name) = file(text);
            let error = load(&name).unwrap_err();
            assert_eq!(error.exit, failure::Exit::Usage, "{text:?}");
            assert_eq!(suite(&name).unwrap_err().text, error.text);
        }
    }

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
        let set = suite(&name).unwrap().unwrap();
        assert_eq!((set.runs, set.layout), (vec!["a".into(), "b".into(), "router-u3".into(), "c".into()], Layout::Onp));
        let b = member(&name, "b").unwrap();
        assert_eq!((b.name.as_str(), b.traffic.flows, b.traffic.ttl), ("mine:b", 9, 9));
        assert_eq!(member(&name, "router-u3").unwrap(), load("router-u3").unwrap());
        let c = member(&name, "c").unwrap();
        assert_eq!((c.name.as_str(), c.frame_sizes.len()), ("ci:c", 1));
        assert!(suite("rfc2544").unwrap().is_none());
    }

    #[test]
    fn what_is_wrong_with_runs_is_said() {
        let all = [
            "runs = []",
            "runs = 5",
            "runs = ['router-u1']",
            "runs = [{ traffic.flows = 1 }]",
            "runs = [{ name = '../x' }]",
            "runs = [{ plan = 'ci' }, { plan = 'ci' }]",
            "runs = [{ plan = 'router-all' }]",
            "runs = [{ plan = 'nope' }]",
            "runs = [{ name = 'a', colour = 1 }]",
            "runs = [{ name = 'a' }]\n[sweep]\nflows = [1]",
            "layout = 'red'\nruns = [{ name = 'a' }]",
        ];
        let refused = |text: &str| {
            let (dir, name) = file(text);
            let error = suite(&name).unwrap_err();
            assert!(error.exit == failure::Exit::Usage && !error.text.contains('\n'), "{text}: {error:?}");
            error.text.replace(dir.path().to_str().unwrap(), "[dir]")
        };
        insta::assert_snapshot!(all.map(refused).join("\n"));
    }
}
