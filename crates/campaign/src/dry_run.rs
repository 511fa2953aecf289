//! `linerate bench --dry-run`: what a plan may be expected to take, from a hundred simulated runs of it.

use failure::{Failure, Stop};
use measure::{plan::ValidPlan, result::Outcome, sim::SimSetup, standing};
use report::dry_run::{DryRun, DryRunAnswer, DryRunOutcome};
use rig::Device;
use units::{Fps, FrameSize, Frames};

use crate::{controller::Controller, display::Hidden, sim_testbed::SimTestbed};

/// Runs, each with a seed of its own.
const SEEDS: u64 = 100;
/// What a device is assumed to forward where nothing is known of it: this share of the highest load, or this many
/// frames/s.
const SHARE: f64 = 0.6;
const CAPACITY: f64 = 5e6;

/// What this plan takes, from one simulated run for each seed. Ends early when a signal comes.
///
/// # Errors
///
/// (usage) for a plan that no device can be simulated for, or what a run of it says.
pub fn run(plan: &ValidPlan, device: &Device, stop: &Stop) -> Result<DryRun, Failure> {
    if plan.tests_addresses() {
        return Err(Failure::usage(
            "--dry-run: the address tests are rounds between three ports, each after addresses.age: no simulated device can \
             take part",
        ));
    }
    let (setup, assumed) = match device {
        Device::Simulated(setup) => (setup.clone(), ""),
        Device::Ports(_) | Device::Plane { .. } | Device::FlowLog(_) => {
            (assumed(plan), " (assumed; --dut sim:... says another)")
        }
    };
    let mut runs = Vec::new();
    for seed in 0..SEEDS {
        let seeded = SimSetup { seed: setup.seed.wrapping_add(seed), ..setup.clone() };
        let testbed = SimTestbed::new(plan.clone(), seeded, stop);
        let mut controller = Controller::new(testbed, plan.clone(), &Hidden);
        let (results, ended) = controller.all();
        ended?;
        if stop.requested() {
            break;
        }
        runs.push(DryRunOutcome {
            trials: controller.trials.len(),
            seconds: controller.testbed.now_s(),
            standing: standing::of_run(&results, &controller.tests, false),
            answers: results.iter().filter(|r| r.outcome.has_figure()).filter_map(answered).collect(),
        });
    }
    Ok(DryRun {
        plan: format!("{}: {} ({})", plan.name, plan.description, Frames::list(&plan.frame_sizes)),
        dut: format!("{setup}{assumed}"),
        capacity: capacity(&setup),
        runs,
    })
}

fn answered(size: &measure::result::SizeResult) -> Option<DryRunAnswer> {
    let (frame_size, of_device) = (size.frame_size_bytes, size.outcome == Outcome::Found);
    Some(DryRunAnswer { frame_size, throughput_fps: size.throughput_fps?, of_device })
}

/// What a simulated device forwards, where that is one figure: not of a loss that sets in softly, nor of one that drifts
/// or depends on where the cores are.
fn capacity(setup: &SimSetup) -> Option<Fps> {
    let one = setup.placements.len() == 1 && setup.onset == 0.0 && setup.drift_per_min == 0.0;
    (one && setup.inversion.is_none()).then(|| Fps::from_raw(setup.capacity(0, 0.0, 0.0)))
}

/// A device below the highest load, that loses a few frames in one trial of fifty as machines do.
fn assumed(plan: &ValidPlan) -> SimSetup {
    let link = plan.link.speed;
    let smallest = plan.frame_sizes.iter().min().copied().unwrap_or(FrameSize::MIN.into());
    let asked = plan.search.upper.and_then(|load| load.resolve(smallest, link).ok());
    let highest = asked.or(link.map(|l| l.line_rate(smallest)));
    let capacity = highest.map_or(CAPACITY, |fps| (fps.get() * SHARE).round());
    SimSetup { accidents: (0.02, 50), directions: plan.traffic.directions(), ..SimSetup::new(capacity, 1) }
}
