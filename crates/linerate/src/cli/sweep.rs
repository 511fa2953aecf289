//! Sweeps.

use clap::Args;

/// A plan for several values of some keys.
#[derive(Debug, Args, Default)]
#[command(next_help_heading = "Sweep")]
pub struct SweepArgs {
    /// Run the plan once for each value: flows=1,1k,64k. Keys: flows, frame-sizes, routes (of the built-in l3), and with
    /// --sweep-command cores and queues of the device. Repeat for more keys: every combination is run, at most 64.
    #[arg(long = "sweep", value_name = "KEY=VALUE,...", conflicts_with = "flow_logger")]
    pub axes: Vec<String>,
    /// Run before each point, by `sh -c`, to bring the device to it; {cores}, {queues}, {routes}, {flows} and {frame_sizes}
    /// are its values, also in the environment as LINERATE_CORES and so on.
    #[arg(long, value_name = "COMMAND", conflicts_with = "flow_logger")]
    pub sweep_command: Option<String>,
    /// The one point that is to be run.
    #[arg(long, hide = true, value_name = "POINT")]
    pub point: Option<String>,
}
