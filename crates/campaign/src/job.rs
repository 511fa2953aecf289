//! One plan over one device: all that a process of ours needs to know to run it, and what it answers.

use failure::{Failure, Stop};
use measure::{
    plan::{Plan, ValidPlan},
    result::{RunResult, SizeResult, Standing},
    standing,
};
use rig::{device::DeviceOptions, Device, MachineOptions};
use serde::{Deserialize, Serialize};

use crate::{
    addresses, controller::Controller, display::Display, job_answer::JobAnswer, requirements::unmet,
    rig_testbed::RigTestbed, sim_testbed::SimTestbed, testbed::Testbed,
};

/// A plan, and what it is run on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The plan with every flag over it.
    pub plan: Plan,
    /// The device under test.
    pub device: DeviceOptions,
    /// Cores and memory.
    pub machine: MachineOptions,
    /// Trials are shorter than the standard's, and the result says so.
    pub quick: bool,
    /// Progress is not shown.
    pub quiet: bool,
}

impl Job {
    /// Runs it in this process.
    pub fn run(&self, stop: &Stop, display: &dyn Display) -> JobAnswer {
        self.try_run(stop, display).unwrap_or_else(|failure| JobAnswer { result: None, failure: Some(failure) })
    }

    /// The plan and the device, checked.
    ///
    /// # Errors
    ///
    /// (usage) for a plan or a device that cannot be.
    pub fn check(&self) -> Result<(ValidPlan, Device), Failure> {
        let plan = self.plan.clone().validate()?;
        let device = Device::parse(&self.device, &plan)?;
        Ok((plan, device))
    }

    fn try_run(&self, stop: &Stop, display: &dyn Display) -> Result<JobAnswer, Failure> {
        let (plan, device) = self.check()?;
        let mut answer = if plan.tests_addresses() {
            addresses::run(plan.clone(), &device, &self.machine, self.quick, stop, display)?
        } else {
            match &device {
                Device::Simulated(setup) => {
                    let testbed = SimTestbed::new(plan.clone(), setup.clone(), stop);
                    measured(Controller::new(testbed, plan.clone(), display), self.quick)?
                }
                Device::Ports(_) | Device::Plane { .. } | Device::FlowLog(_) => {
                    check_reset(&plan)?;
                    let testbed = RigTestbed::new(plan.clone(), &device, &self.machine, stop)?;
                    measured(Controller::new(testbed, plan.clone(), display), self.quick)?
                }
            }
        };
        if let Some(result) = &mut answer.result {
            result.warnings.extend(unmet(&plan, &device, &result.ports, result.lab.as_ref()));
        }
        Ok(answer)
    }
}

/// Nothing resets a real device but the plan's command.
fn check_reset(plan: &ValidPlan) -> Result<(), Failure> {
    if plan.reset.as_ref().is_some_and(|t| t.command.is_empty()) {
        return Err(Failure::usage(
            "reset.command: must name the program that causes the event, such as [\"systemctl\", \"restart\", \
             \"vswitch\"]: nothing else is run (or use --dut sim:dead=FROM-TO)",
        ));
    }
    Ok(())
}

/// Runs the plan on this testbed.
fn measured<T: Testbed>(mut controller: Controller<'_, T>, quick: bool) -> Result<JobAnswer, Failure> {
    controller.check()?;
    let (sizes, ended) = controller.all();
    if controller.trials.is_empty() {
        // Nothing was measured: there is nothing to keep.
        ended?;
        return Ok(JobAnswer { result: Some(result(&controller, sizes, quick, true)), failure: None });
    }
    let well = ended.is_ok();
    Ok(JobAnswer { result: Some(result(&controller, sizes, quick, well)), failure: ended.err() })
}

fn result<T: Testbed>(controller: &Controller<'_, T>, sizes: Vec<SizeResult>, quick: bool, well: bool) -> RunResult {
    let mut standing = standing::of_run(&sizes, &controller.tests, controller.testbed.stopped());
    if !well && standing.is_good() {
        standing = Standing::Interrupted;
    }
    controller.result(sizes, controller.warnings(quick), standing)
}
