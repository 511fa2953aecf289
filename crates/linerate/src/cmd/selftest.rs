//! `linerate selftest`: the maximum of this tester on this machine.

use std::time::Duration;

use campaign::{display::Display, RigTestbed, Testbed};
use failure::{Exit, Failure, Stop};
use measure::{plan::Plan, result::SelfTestKind};
use report::progress::Line;
use rig::{device::DeviceOptions, Device};

use super::{output, plan, progress::Progress};
use crate::{
    cli::{PairArg, SelftestArgs},
    out,
};

/// Sending time of a pass.
const RUN: Duration = Duration::from_millis(200);

/// Runs the command.
pub fn run(args: &SelftestArgs) -> Result<Exit, Failure> {
    let mut wanted = Plan { frame_sizes: args.frame_sizes.clone(), ..Plan::default() };
    plan::traffic(&mut wanted, &args.traffic)?;
    let sizes = wanted.frame_sizes.clone();
    let device = Device::parse(&DeviceOptions::default(), &wanted)?;
    let stop = Stop::on_signals()?;
    // The cable of the default rig is unused and costs a few pages.
    let mut testbed = RigTestbed::new(wanted.validate()?, &device, &args.machine.options()?, &stop)?;
    let kind = match args.pair {
        PairArg::SoftwareCable => SelfTestKind::SoftwareCable,
        PairArg::Memif => SelfTestKind::Memif,
        PairArg::VhostUser => SelfTestKind::VhostUser,
        PairArg::Veth => SelfTestKind::Veth,
    };
    testbed.rig.selftest_over(kind);
    let progress = Progress::new(args.json);
    for (i, &size) in sizes.iter().enumerate() {
        if stop.requested() {
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
        testbed.prepare(size, RUN)?;
        // A pair that was asked for is not replaced.
        let fallback = testbed.selftest.last().and_then(|point| point.pair.as_ref()?.fallback.clone());
        if let Some(why) = fallback.filter(|_| kind != SelfTestKind::SoftwareCable) {
            progress.clear();
            return Err(Failure::machine(format!("--pair {}: {why}", kind.name())));
        }
    }
    progress.clear();
    if args.json {
        out::print(&serde_json::to_string_pretty(&testbed.selftest).map_err(Failure::failed)?);
    } else {
        out::print(&report::selftest::render(&testbed.selftest, None, &output::style()));
    }
    if stop.requested() {
        let made = testbed.selftest.len();
        return Err(Failure::stopped(format!(
            "stopped by a signal: {made} of {} frame sizes were measured",
            sizes.len()
        )));
    }
    Ok(Exit::Passed)
}
