//! Sweeps: a plan once for each combination of the values of some keys, each in a process of its own, and one result of all.

use std::time::{Instant, SystemTime};

use dataplane::spec::FunctionKind;
use failure::{Exit, Failure, Stop};
use measure::{
    plan::{Plan, Point, SweepKey, ValidPlan},
    result::{RunResult, Standing},
    standing,
    sweep::{SweepPoint, SweepResult, SWEEP_SCHEMA},
};
use rig::Device;

use crate::{command, job::Job, process::Launcher, suite::worst_exit};

/// Shows a sweep.
pub trait SweepView {
    /// Point `number` of `of`, counted from 1, begins.
    fn begins(&mut self, number: usize, of: usize, point: &Point);
    /// A point has a result.
    fn measured(&mut self, result: &RunResult);
    /// A point was not measured to its end.
    fn failed(&mut self, failure: &Failure);
}

/// What came of a sweep.
pub struct Swept {
    /// The worst exit code of its points.
    pub exit: Exit,
    /// The points measured; `None` when none was.
    pub result: Option<SweepResult>,
    /// What ended it before the last point.
    pub ended: Result<(), Failure>,
}

/// Refuses what this device cannot be brought to. Only a command can change a device that is not built in.
pub fn check_device(plan: &Plan, device: &Device) -> Result<(), Failure> {
    let by_command = !plan.sweep.command.is_empty();
    let of_device = |value| match device {
        Device::Ports(_) => None,
        Device::Plane { .. } | Device::FlowLog(_) | Device::Simulated(_) => value,
    };
    let of_plan =
        [(SweepKey::Cores, plan.dut.cores), (SweepKey::Queues, plan.dut.queues), (SweepKey::Routes, plan.dut.routes)];
    let of_plan = of_plan.into_iter().filter_map(|(key, value)| Some((key, of_device(value)?)));
    let of_sweep = plan.sweep.axes.iter().flat_map(|axis| axis.values.iter().map(|&value| (axis.key, value)));
    for (key, value) in of_plan.chain(of_sweep) {
        if matches!(key, SweepKey::Flows | SweepKey::FrameSizes) {
            continue;
        }
        let why = match device {
            Device::Ports(_) | Device::Simulated(_) if by_command => continue,
            Device::Plane { kind: FunctionKind::L3, .. } if key == SweepKey::Routes => continue,
            Device::Plane { .. } | Device::FlowLog(_) if key == SweepKey::Routes => {
                format!("the {} has none: use --dut l3", device.name())
            }
            Device::Plane { .. } | Device::FlowLog(_) if value == 1 => continue,
            Device::Plane { .. } | Device::FlowLog(_) => {
                "the built-in device of a benchmark is one lcore with one queue a port: start \
                 linerate forward --cpus ... --rx-queues ... in --sweep-command, and measure it through --port"
                    .to_owned()
            }
            Device::Simulated(_) => {
                "a simulated device has none: leave it out, or say what would set them (--sweep-command)".to_owned()
            }
            Device::Ports(_) => format!(
                "the tester cannot change them in an outside device: say what does (--sweep-command '... {{{key}}}')"
            ),
        };
        return Err(Failure::usage(format!("{key} {value}: {why}")));
    }
    Ok(())
}

/// The plan of one point: no sweep any more.
pub fn plan_of(plan: &Plan, point: &Point) -> Plan {
    let mut one = plan.clone();
    point.apply(&mut one);
    one
}

/// Runs every point of the job's plan.
///
/// # Errors
///
/// (usage) for a plan that cannot be swept.
pub fn run(
    plan: &ValidPlan,
    job: &Job,
    launcher: &Launcher,
    stop: &Stop,
    view: &mut dyn SweepView,
) -> Result<Swept, Failure> {
    if plan.tests_addresses() {
        return Err(Failure::usage(
            "sweep: the address tests are not swept: they search over the addresses themselves",
        ));
    }
    let begun = (Instant::now(), SystemTime::now());
    let points = plan.sweep.points();
    let (mut exit, mut measured, mut ended) = (Exit::Passed, Vec::new(), Ok(()));
    for (number, point) in (1..).zip(&points) {
        view.begins(number, points.len(), point);
        if let Err(e) = run_command(plan, point, stop) {
            (exit, ended) = if stop.requested() { (Exit::Stopped, Ok(())) } else { (Exit::Failed, Err(e)) };
            break;
        }
        let answer = launcher.run(&Job { plan: plan_of(plan, point), ..job.clone() }, stop);
        exit = worst_exit(exit, answer.exit());
        if let Some(result) = answer.result {
            view.measured(&result);
            measured.push(SweepPoint { values: point.values(), result });
        }
        if let Some(failure) = answer.failure {
            view.failed(&failure);
        }
        if stop.requested() {
            exit = Exit::Stopped;
        }
        if matches!(exit, Exit::Stopped | Exit::Usage | Exit::Machine) {
            // What is wrong with the command or the machine is wrong for the next point, too.
            break;
        }
    }
    let of_points = standing::of_several(measured.iter().map(|point: &SweepPoint| point.result.standing));
    let standing = standing_of(exit, of_points);
    let result = SweepResult {
        schema: SWEEP_SCHEMA.to_owned(),
        linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
        plan_name: plan.name.clone(),
        started_at: humantime::format_rfc3339_seconds(begun.1).to_string(),
        elapsed_s: begun.0.elapsed().as_secs_f64(),
        effective_plan: plan.to_json(),
        keys: plan.sweep.keys(),
        planned: points.len(),
        points: measured,
        standing,
    };
    Ok(Swept { exit, result: Some(result).filter(|r| !r.points.is_empty()), ended })
}

/// How several runs stand: as all together, unless something ended them before the last.
pub(crate) fn standing_of(exit: Exit, of_points: Option<Standing>) -> Standing {
    match (exit, of_points) {
        (Exit::Stopped, _) => Standing::Stopped,
        (Exit::Untrusted, _) => Standing::NotTrustworthy,
        (Exit::Passed, Some(standing)) => standing,
        (_, Some(Standing::CriterionMissed)) => Standing::CriterionMissed,
        _ => Standing::Interrupted,
    }
}

/// Runs the user's command for a point, if there is one.
fn run_command(plan: &ValidPlan, point: &Point, stop: &Stop) -> Result<(), Failure> {
    let sweep = &plan.sweep;
    if sweep.command.is_empty() {
        return Ok(());
    }
    let argv: Vec<String> = sweep.command.iter().map(|word| point.fill(word)).collect();
    let name = |key: SweepKey| format!("LINERATE_{}", key.name().to_uppercase());
    let env: Vec<_> = point.0.iter().map(|(key, value)| (name(*key), value.to_string())).collect();
    command::run_first(&argv, &env, sweep.command_timeout, &|| stop.requested())
        .map_err(|how| Failure::failed(format!("point {point}: sweep.command: {how}")))
}

#[cfg(test)]
mod tests {
    use rig::device::DeviceOptions;

    use super::*;
    use crate::process::tests::{job, launcher};

    #[test]
    fn a_sweep_stands_as_its_points_unless_it_ended_early() {
        use Standing::*;
        for (exit, of_points, standing) in [
            (Exit::Passed, Some(CriterionMet), CriterionMet),
            (Exit::Passed, Some(NotDeviceLimit), NotDeviceLimit),
            (Exit::Passed, None, Interrupted),
            (Exit::Stopped, Some(CriterionMissed), Stopped),
            (Exit::Untrusted, Some(CriterionMissed), NotTrustworthy),
            (Exit::Failed, Some(CriterionMissed), CriterionMissed),
            (Exit::Failed, Some(Completed), Interrupted),
            (Exit::Machine, None, Interrupted),
        ] {
            assert_eq!(standing_of(exit, of_points), standing, "{exit:?} {of_points:?}");
        }
    }

    struct NoView;

    impl SweepView for NoView {
        fn begins(&mut self, _: usize, _: usize, _: &Point) {}
        fn measured(&mut self, _: &RunResult) {}
        fn failed(&mut self, _: &Failure) {}
    }

    #[test]
    fn a_sweep_without_a_point_that_was_measured_has_no_result() {
        let plan = Plan::from_toml("[sweep]\nflows = [1, 2]").unwrap().validate().unwrap();
        for (stopped, exit) in [(false, Exit::Failed), (true, Exit::Stopped)] {
            let stop = Stop::simulated(stopped);
            let swept = run(&plan, &job(), &launcher("/bin/false"), &stop, &mut NoView).unwrap();
            assert!(swept.exit == exit && swept.result.is_none() && swept.ended.is_ok(), "{:?}", swept.exit);
        }
    }

    #[test]
    fn the_command_of_a_sweep_gets_the_values_of_the_point() {
        let ran = |script: &str| {
            let toml = format!("[sweep]\ncores = [2]\nflows = [7]\ncommand = ['sh', '-c', '{script}']");
            let plan = Plan::from_toml(&toml).unwrap().validate().unwrap();
            run_command(&plan, &plan.sweep.points()[0], &Stop::simulated(false)).map_err(|e| e.exit)
        };
        assert_eq!(ran("test $LINERATE_CORES = 2 && test {flows} = 7"), Ok(()));
        assert_eq!(ran("exit 1"), Err(Exit::Failed));
    }

    #[test]
    fn only_what_can_be_changed_is_swept() {
        let check = |toml: &str, dut: Option<&str>, port: bool| {
            let plan = Plan::from_toml(toml).unwrap().validate().unwrap();
            let ports = if port { vec!["null".to_owned(); 2] } else { Vec::new() };
            let options = DeviceOptions { dut: dut.map(str::to_owned), ports, ..DeviceOptions::default() };
            check_device(&plan, &Device::parse(&options, &plan).unwrap()).map_err(|e| e.text)
        };
        let told = "[sweep]\ncores = [1, 2]\nroutes = [9]\ncommand = ['true']";
        assert_eq!(check("[sweep]\ncores = [1]\nqueues = [1]\nroutes = [1, 9]", None, false), Ok(()));
        assert_eq!(check(told, Some("sim:capacity=1M"), false), Ok(()));
        assert_eq!(check(told, None, true), Ok(()));
        assert_eq!(check("dut.cores = 4", None, true), Ok(()), "not looked at");
        let refused = [
            ("[sweep]\ncores = [1, 2]", None, false),
            (told, None, false),
            ("dut.queues = 4", None, false),
            ("[sweep]\nroutes = [1]", Some("l2"), false),
            ("[sweep]\nroutes = [1]", Some("sim"), false),
            ("[sweep]\nqueues = [1]", None, true),
        ]
        .map(|(toml, dut, port)| check(toml, dut, port).unwrap_err());
        assert!(!refused.iter().any(|error| error.contains('\n')), "{refused:?}");
        insta::assert_snapshot!(refused.join("\n"), @r"
        cores 2: the built-in device of a benchmark is one lcore with one queue a port: start linerate forward --cpus ... --rx-queues ... in --sweep-command, and measure it through --port
        cores 2: the built-in device of a benchmark is one lcore with one queue a port: start linerate forward --cpus ... --rx-queues ... in --sweep-command, and measure it through --port
        queues 4: the built-in device of a benchmark is one lcore with one queue a port: start linerate forward --cpus ... --rx-queues ... in --sweep-command, and measure it through --port
        routes 1: the built-in l2 has none: use --dut l3
        routes 1: a simulated device has none: leave it out, or say what would set them (--sweep-command)
        queues 1: the tester cannot change them in an outside device: say what does (--sweep-command '... {queues}')
        ");
    }
}
