//! Sweeps: a plan once for each combination of the values of some keys, as a plan of several runs is run, and one table,
//! one result and one curve of all.

use std::{
    env,
    ffi::OsString,
    io,
    path::Path,
    process::{Command, Stdio},
    time::{Instant, SystemTime},
};

use measure::{
    plan::{Axis, Plan, Point, SweepKey, ValidPlan},
    result::Verdict,
    sweep::{SweepPoint, SweepResult, SWEEP_SCHEMA},
};
use report::{layout, layout::Sheet};

use super::{command, rehearse, set};
use crate::{
    cli::BenchArgs,
    cmd::{
        output::{self, Documents},
        runs, stored,
    },
    out,
};
use dataplane::spec::FunctionKind;
use failure::{Exit, Failure, Stop};
use rig::Device;

/// Options that concern the sweep as a whole.
const WHOLE: [&str; 1] = ["--layout"];

/// The flags of a sweep over a plan, or the one point that this process is for.
pub fn over(plan: &mut Plan, args: &BenchArgs) -> Result<(), Failure> {
    if let Some(point) = &args.sweep.point {
        point.parse::<Point>()?.apply(plan);
        return Ok(());
    }
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

/// Runs every point, or rehearses them.
pub fn run(args: &BenchArgs, plan: &ValidPlan) -> Result<Exit, Failure> {
    let points = plan.sweep.points();
    if args.dry_run {
        let at = |point: &Point| {
            let mut plan = Plan::clone(plan);
            point.apply(&mut plan);
            Ok((point.to_string(), plan.validate()?))
        };
        return rehearse::all(&points.iter().map(at).collect::<Result<Vec<_>, Failure>>()?, args);
    }
    if plan.tests_addresses() {
        return Err(Failure::usage(
            "sweep: the address tests are not swept: they search over the addresses themselves",
        ));
    }
    if args.tables.baseline.is_some() {
        return Err(Failure::usage(
            "--baseline: compare two stored sweeps: linerate runs show new.json --baseline old.json",
        ));
    }
    output::check(&args.output)?;
    let begun = (Instant::now(), SystemTime::now());
    let (exit, measured, ended) = all(args, plan, &points)?;
    if measured.is_empty() {
        return ended.map(|()| exit);
    }
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
        verdict: match exit {
            Exit::Passed => Verdict::Passed,
            Exit::Untrusted => Verdict::Inconclusive,
            Exit::Stopped => Verdict::Stopped,
            _ => Verdict::Failed,
        },
    };
    show(&result, args)?;
    // What ended it half way is said after what it measured before.
    ended.map(|()| exit)
}

/// The worst exit code of all points, and those measured; also what ended it before the last.
type Measured = (Exit, Vec<SweepPoint>, Result<(), Failure>);

fn all(args: &BenchArgs, plan: &ValidPlan, points: &[Point]) -> Result<Measured, Failure> {
    let stop = Stop::on_signals()?;
    let kept =
        set::Kept::new().map_err(|e| Failure::machine(format!("no directory for the results of points: {e}")))?;
    let to_stdout = args.output.json.as_deref() == Some(Path::new("-"));
    let say = |text: String| match (to_stdout, args.output.quiet) {
        (false, _) => out::print(&text),
        (true, false) => out::note(text.trim_end()),
        (true, true) => {}
    };
    let axes: Vec<_> = plan.sweep.axes.iter().map(Axis::to_string).collect();
    let plural = if points.len() == 1 { "" } else { "s" };
    say(format!("{} point{plural}: {}\n", points.len(), axes.join("; ")));
    let (mut exit, mut measured) = (Exit::Passed, Vec::new());
    for (i, point) in points.iter().enumerate() {
        say(format!("{} of {}: {point}\n", i + 1, points.len()));
        if let Err(e) = bring(plan, point, &stop) {
            return Ok(if stop.requested() {
                (Exit::Stopped, measured, Ok(()))
            } else {
                (Exit::Failed, measured, Err(e))
            });
        }
        let keep = kept.0.join(format!("{i}.json"));
        let code = one(point, &keep, &stop).map_err(|e| Failure::failed(format!("point {point}: {e}")))?;
        exit = set::worse(exit, code);
        if let Ok(result) = stored::read(&keep) {
            say(report::sweep::lines(&result));
            measured.push(SweepPoint { values: point.values(), result });
        }
        if stop.requested() || exit == Exit::Stopped {
            return Ok((Exit::Stopped, measured, Ok(())));
        }
        if matches!(exit, Exit::Usage | Exit::Machine) {
            // What is wrong with the command or the machine is so for the next point, too; it has said what.
            break;
        }
    }
    Ok((exit, measured, Ok(())))
}

/// Runs the user's command for a point, if there is one.
fn bring(plan: &ValidPlan, point: &Point, stop: &Stop) -> Result<(), Failure> {
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

/// Measures one point in a process of its own, and gives its exit code; its report is in the file.
fn one(point: &Point, keep: &Path, stop: &Stop) -> io::Result<u8> {
    let mut command = Command::new(env::current_exe()?);
    command.args(of_point(env::args_os().skip(1)));
    command.arg("--point").arg(point.name()).arg("--keep").arg(keep).stdout(Stdio::null());
    set::ended(command, stop)
}

/// The command line without what concerns the sweep as a whole.
fn of_point(given: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let whole = |option: &str| set::FILES.contains(&option) || WHOLE.contains(&option);
    let (mut out, mut skip) = (Vec::new(), false);
    for arg in given {
        let text = arg.to_string_lossy();
        let option = text.split_once('=').map_or(&*text, |(option, _)| option);
        match (skip, whole(option)) {
            (true, _) => skip = false,
            (false, true) => skip = !text.contains('='),
            (false, false) => out.push(arg),
        }
    }
    out
}

/// Prints the table and writes the files asked for.
fn show(result: &SweepResult, args: &BenchArgs) -> Result<(), Failure> {
    let results: Vec<_> = result.points.iter().map(|p| &p.result).collect();
    let mut sheets = vec![report::sweep::sheet(result)];
    sheets.extend(args.tables.layout.map(|layout| layout::sheet(&results, layout.layout())));
    let json = || report::sweep::json(result).map_err(|e| e.to_string());
    let csv = || match sheets.get(1..) {
        Some(layouts @ [_, ..]) => runs::csv(layouts),
        _ => report::sweep::csv(result),
    };
    let markdown = || Ok(sheets.iter().map(Sheet::markdown).collect::<String>().trim_start().to_owned());
    output::write(
        &Documents {
            json: &json,
            markdown: &markdown,
            svg: &|| report::svg::sweep(result).map_err(|e| e.to_string()),
            csv: &|| Ok(csv()),
            csv_tests: &|| Ok(report::sweep::csv_tests(result)),
            table: &|written| {
                let files: String = written.iter().map(|p| format!("\nwritten {}", p.display())).collect();
                runs::text(&sheets) + &files
            },
        },
        &args.output,
    )
}

#[cfg(test)]
mod tests {
    use rig::device::DeviceOptions;

    use super::*;

    #[test]
    fn a_point_writes_no_files_of_the_whole() {
        let given = "bench --json=a.json --csv t.csv --quick --layout onp --sweep flows=1,2 --svg s.svg --plan p";
        let out = of_point(given.split(' ').map(OsString::from));
        assert_eq!(out.join(&OsString::from(" ")), "bench --quick --sweep flows=1,2 --plan p");
    }

    #[test]
    fn only_what_can_be_changed_is_swept() {
        let check = |toml: &str, dut: Option<&str>, port: bool| {
            let plan = Plan::from_toml(toml).unwrap().validate().unwrap();
            let ports = if port { vec!["null".to_owned(); 2] } else { Vec::new() };
            let options = DeviceOptions { dut: dut.map(str::to_owned), ports, ..DeviceOptions::default() };
            check_device(&plan, &Device::parse(&options, &plan).unwrap()).map_err(|e| e.text)
        };
        let refused = |toml, dut, port, says: &str| {
            let error = check(toml, dut, port).unwrap_err();
            assert!(error.contains(says) && !error.contains('\n'), "{error}");
        };
        let told = "[sweep]\ncores = [1, 2]\nroutes = [9]\ncommand = ['true']";
        assert_eq!(check("[sweep]\ncores = [1]\nqueues = [1]\nroutes = [1, 9]", None, false), Ok(()));
        assert_eq!(check(told, Some("sim:capacity=1M"), false), Ok(()));
        assert_eq!(check(told, None, true), Ok(()));
        assert_eq!(check("dut.cores = 4", None, true), Ok(()), "not looked at");
        refused("[sweep]\ncores = [1, 2]", None, false, "cores 2: the built-in device of a benchmark is one lcore");
        refused(told, None, false, "cores 2: the built-in");
        refused("dut.queues = 4", None, false, "queues 4: the built-in");
        refused("[sweep]\nroutes = [1]", Some("l2"), false, "routes 1: the built-in l2 has none");
        refused("[sweep]\nroutes = [1]", Some("sim"), false, "routes 1: a simulated device has none");
        refused(
            "[sweep]\nqueues = [1]",
            None,
            true,
            "cannot change them in an outside device: say what does (--sweep-command '... {queues}')",
        );
    }
}
