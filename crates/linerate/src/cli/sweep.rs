//! Sweeps.

use clap::Args;

/// A plan run for several values of some keys.
#[derive(Debug, Args, Default)]
#[command(next_help_heading = "Sweep")]
pub struct SweepArgs {
    /// Run the plan once for each value: flows=1,1k,64k. Keys: flows, frame-sizes, routes (of the built-in l3), and with
    /// --sweep-command cores and queues of the device. Repeat for more keys: every combination is run, at most 64.
    #[arg(long = "sweep", value_name = "KEY=VALUE,...")]
    pub axes: Vec<String>,
    /// Command (`sh -c`) run before each point to configure the device. {cores}, {queues}, {routes}, {flows} and
    /// {frame_sizes} are the values of the point, also in the environment as LINERATE_CORES and so on.
    #[arg(long, value_name = "COMMAND")]
    pub sweep_command: Option<String>,
}
