//! A result in the layout of a document, and compared with an earlier result.

use campaign::stored;
use failure::{Exit, Failure};
use measure::{plan::ValidPlan, result::RunResult};
use report::{layout, sheet};
use rig::Device;

use crate::{
    cli::{
        layout::{LayoutArg, LayoutArgs},
        OutputArgs,
    },
    cmd::output,
};

/// The earlier result. Checks before the measurement that it can be compared with the plan.
pub fn read(args: &LayoutArgs, plan: &ValidPlan, device: &Device) -> Result<Option<RunResult>, Failure> {
    let Some(path) = &args.baseline else { return Ok(None) };
    let old = stored::read(path)?;
    match layout::plan_against(&plan.name, &plan.to_json(), device.is_simulated(), &old).as_slice() {
        [] => Ok(Some(old)),
        why => Err(Failure::usage(format!("--baseline {}: does not compare: {}", path.display(), why.join("; ")))),
    }
}

/// Shows and writes a result with the requested tables.
pub fn finish(
    result: &RunResult,
    baseline: Option<&RunResult>,
    layout: Option<LayoutArg>,
    files: &OutputArgs,
) -> Result<Exit, Failure> {
    let mut sheets = Vec::new();
    if let Some(layout) = layout {
        sheets.push(layout::sheet(&[result], layout.layout()));
    }
    if let Some(old) = baseline {
        sheets.push(match layout::compare(result, old) {
            Ok(sheet) => sheet,
            Err(why) => sheet::words("Not compared with the old result", why),
        });
    }
    output::finish_with(result, &sheets, files)
}
