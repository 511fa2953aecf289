//! `linerate selftest`: what this tester can do on this machine.

use std::time::Duration;

use measure::plan::Plan;
use report::progress::Line;

use super::{output, plan, progress::Progress, run::Run};
use crate::{cli::SelftestArgs, out};
use failure::{Exit, Failure};
use rig::{device::DeviceOptions, Device};

/// Sending time of each of the three runs a size.
const RUN: Duration = Duration::from_millis(200);

/// Runs the command.
pub fn run(args: &SelftestArgs) -> Result<Exit, Failure> {
    let mut wanted = Plan { frame_sizes: args.frame_sizes.clone(), ..Plan::default() };
    plan::traffic(&mut wanted, &args.traffic)?;
    let sizes = wanted.frame_sizes.clone();
    // The cable of the default rig is not used; it costs a few pages.
    let device = Device::parse(&DeviceOptions::default(), &wanted)?;
    let mut run = Run::new(wanted.validate()?, &device, &args.machine.options())?;
    let progress = Progress::new(args.json);
    for (i, &size) in sizes.iter().enumerate() {
        if run.stop.requested() {
            break;
        }
        progress.show(&Line {
            phase: "self-test".to_owned(),
            frame_size: Some((size, i + 1, sizes.len())),
            load: None,
            bounds: (None, None),
            trials: i as u32,
            invalid: 0,
            left_s: None,
        });
        let streams = run.streams(size)?;
        run.selftest(&streams, RUN)?;
    }
    progress.clear();
    if args.json {
        out::print(&serde_json::to_string_pretty(&run.selftest).map_err(Failure::failed)?);
    } else {
        out::print(&report::selftest::render(&run.selftest, None, &output::style()));
    }
    Ok(if run.stop.requested() { Exit::Stopped } else { Exit::Passed })
}
