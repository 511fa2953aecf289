//! `--sweep` and `--sweep-command` for a plan.

use failure::Failure;
use measure::plan::{Axis, Plan, SweepKey};

use crate::cli::BenchArgs;

/// Applies the flags of a sweep to a plan.
pub fn over(plan: &mut Plan, args: &BenchArgs) -> Result<(), Failure> {
    let axes = args.sweep.axes.iter().map(|text| text.parse::<Axis>()).collect::<Result<_, _>>()?;
    plan.sweep.over(axes)?;
    if let Some(command) = &args.sweep.sweep_command {
        if command.trim().is_empty() {
            let keys = SweepKey::ALL.map(|key| format!("{{{key}}}")).join(", ");
            return Err(Failure::usage(format!(
                "--sweep-command {command:?}: must be a command for sh -c, with placeholders for keys of the sweep ({keys}), \
                 such as './set-cores {{cores}}'"
            )));
        }
        plan.sweep.command = ["sh", "-c", command].map(str::to_owned).to_vec();
    }
    let beside = [
        (SweepKey::Flows, "--flows", args.traffic.flows.is_some()),
        (SweepKey::FrameSizes, "--frame-sizes", !args.frame_sizes.is_empty()),
    ];
    match beside.iter().find(|(key, _, given)| *given && plan.sweep.keys().contains(key)) {
        Some((key, flag, _)) => Err(Failure::usage(format!("{flag}: contradicts the sweep over {key}: leave one out"))),
        None => Ok(()),
    }
}
