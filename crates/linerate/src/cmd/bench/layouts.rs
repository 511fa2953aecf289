//! The tables a bench prints beside its own: a document's layout, and the result against an old one.

use measure::{plan::ValidPlan, result::RunResult};
use report::{layout, layout::Sheet};

use super::needs;
use crate::{
    cli::{layout::LayoutArgs, BenchArgs},
    cmd::{output, stored},
};
use failure::{Exit, Failure};

/// The old result, read and held against the plan before anything is measured.
pub fn old(args: &LayoutArgs, plan: &ValidPlan, simulated: bool) -> Result<Option<RunResult>, Failure> {
    let Some(path) = &args.baseline else { return Ok(None) };
    let old = stored::read(path)?;
    match layout::plan_against(&plan.name, &plan.to_json(), simulated, &old).as_slice() {
        [] => Ok(Some(old)),
        why => Err(Failure::usage(format!("--baseline {}: does not compare: {}", path.display(), why.join("; ")))),
    }
}

/// Shows and writes a result with the tables asked for.
pub fn finish(
    mut result: RunResult,
    plan: &ValidPlan,
    old: Option<&RunResult>,
    args: &BenchArgs,
) -> Result<Exit, Failure> {
    let unmet = needs::unmet(plan, &result);
    result.warnings.extend(unmet);
    let mut sheets = Vec::new();
    if let Some(layout) = args.tables.layout {
        sheets.push(layout::sheet(&[&result], layout.layout()));
    }
    if let Some(old) = old {
        sheets.push(match layout::compare(&result, old) {
            Ok(sheet) => sheet,
            Err(why) => Sheet::words("Not compared with the old result", why),
        });
    }
    if let Some(path) = &args.tables.keep {
        let json = report::json::render(&result).map_err(Failure::failed)?;
        report::write::write_atomic(path, json.as_bytes()).map_err(Failure::machine)?;
    }
    output::finish_with(&result, &sheets, &args.output)
}
