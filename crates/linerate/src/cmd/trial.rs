//! `linerate trial`: one trial with raw counts.

use std::{path::Path, time::Duration};

use campaign::{display::Display, Controller, RigTestbed, Testbed};
use measure::{
    plan::Plan,
    result::{Standing, Warning, WarningKind},
    shape::{LoadShape, MAX_WINDOWS, MIN_WINDOW_S},
    timeline::Timeline,
    trial::{Purpose, TrialRecord, TrialSpec},
};
use report::{progress::Line, write};
use units::{Fps, LinkSpeed, Load};

use super::{blame::as_flags, lab, output, plan, progress::Progress, replay, times::time};
use crate::cli::TrialArgs;
use failure::{Exit, Failure, Stop};
use rig::{Device, Streams};

/// Runs the command.
pub fn run(args: &mut TrialArgs) -> Result<Exit, Failure> {
    if let Some(exit) = lab::join(&mut args.ports, &mut args.traffic, &mut args.machine, None, &|| Ok(None))? {
        return Ok(exit);
    }
    let args = &*args;
    let capture = replay::Asked::read(args)?;
    let frame_size = capture.as_ref().map_or(args.frame_size, replay::Asked::longest);
    let spec = |duration_s, link| -> Result<_, Failure> {
        Ok(match &capture {
            Some(capture) => capture.spec(link).map(|(spec, sent)| (spec, Some(sent)))?,
            None => (spec(args, duration_s, link)?, None),
        })
    };
    let mut wanted = Plan {
        name: "trial".to_owned(),
        description: match &capture {
            Some(capture) => format!("Replay of {}", capture.path.display()),
            None => "One trial".to_owned(),
        },
        source: String::new(),
        frame_sizes: vec![frame_size],
        ..Plan::default()
    };
    plan::traffic(&mut wanted, &args.traffic)?;
    plan::link(&mut wanted, &args.ports);
    wanted.search.duration = time("--duration", args.duration.as_deref().unwrap_or("5s"))?;
    wanted.trust.residual = time("--residual", &args.residual)?;
    wanted.trust.settle = Duration::ZERO;
    wanted.trust.selftest = false;
    wanted.latency.enabled = false;
    let duration_s = wanted.search.duration.as_secs_f64();
    let plan = wanted.validate().map_err(|e| Failure::usage(as_flags(&e, "--frame-size")))?;
    if args.output.csv_tests.is_some() {
        return Err(Failure::usage("--csv-tests: a trial runs no tests: use --csv FILE for its counts"));
    }
    output::check(&args.output)?;
    if let Some(path) = &args.slices {
        if args.replay.replay.is_some() {
            return Err(Failure::usage("--slices: a replay has no slices: leave one of them out"));
        }
        output::check_file(path)?;
    }
    let by_link = [args.load, args.shape.step.map(|s| s.then), args.shape.bursts.and_then(|b| b.rate)];
    let by_link = by_link.iter().flatten().any(|l| matches!(l, Load::LinePercent(_)));
    if plan.link.speed.is_some() || !(by_link || args.shape.bursts.is_some()) {
        // Errors in the flags come before anything is opened.
        spec(duration_s, plan.link.speed)?;
    }
    let device = Device::parse(&args.ports.options()?, &plan)?;
    let stop = Stop::on_signals()?;
    let mut testbed = RigTestbed::new(plan.clone(), &device, &args.machine.options()?, &stop)?;
    let (spec, replay) = spec(duration_s, testbed.link())?;
    let (load_fps, duration_s) = (spec.load_fps, spec.duration_s);
    testbed.streams = Some(Streams { replay, ..testbed.make_streams(frame_size)? });
    let progress = Progress::new(args.output.quiet);
    let mut line = Line {
        phase: "trial".to_owned(),
        frame_size: Some((spec.frame_size_bytes, 1, 1)),
        load: Some(load_fps),
        bounds: (None, None),
        trials: 0,
        invalid: 0,
        left_s: None,
    };
    let mut controller = Controller::new(testbed, plan, &progress);
    let record = controller.measure(spec, 1, None, &mut |elapsed| {
        line.left_s = Some((duration_s - elapsed).max(0.0));
        progress.show(&line);
    })?;
    progress.clear();
    if let Some(path) = &args.slices {
        write_slices(path, &controller.testbed.timeline, &spec)?;
    }
    let standing = match &record {
        None => Standing::Stopped,
        Some(r) if !r.valid() => Standing::NotTrustworthy,
        Some(_) => Standing::Completed,
    };
    let gone = controller.testbed.gone().filter(|_| record.is_some());
    let standing = if gone.is_some() { Standing::Interrupted } else { standing };
    let mut warnings: Vec<Warning> = record.iter().flat_map(foreign).collect();
    if let Some(cut) = controller.testbed.cut.take() {
        let text = "interrupted: the counts end at the interruption".to_owned();
        warnings.insert(0, Warning { kind: WarningKind::Stopped, text });
        controller.trials.push(cut);
    }
    let exit = output::finish(&controller.result(Vec::new(), warnings, standing), &args.output)?;
    match gone {
        // That is the cause, whatever the counts show.
        Some(why) => Err(Failure::failed(format!("{why}; the counts are kept"))),
        None => Ok(exit),
    }
}

/// The trial over time: a picture in a file named .svg, CSV in any other.
fn write_slices(path: &Path, timeline: &Timeline, spec: &TrialSpec) -> Result<(), Failure> {
    let text = match path.extension().is_some_and(|extension| extension == "svg") {
        true => {
            let title = format!("{} at {}", spec.frame_size_bytes.with_unit("B"), spec.load_fps);
            report::svg::timeline(timeline, &title).map_err(Failure::failed)?
        }
        false => report::slices::csv(timeline),
    };
    write::write_atomic(path, text.as_bytes()).map_err(Failure::machine)
}

/// Warnings about frames that are not in the replayed capture.
fn foreign(record: &TrialRecord) -> Vec<Warning> {
    let replayed = record.directions.iter().filter(|d| d.replay.is_some() && d.foreign > 0);
    let warning = |d: &measure::trial::DirectionCounts| Warning {
        kind: WarningKind::Foreign,
        text: format!(
            "port {}: {} frames came that are none of the capture's, by their last 24 bytes: somebody else's (ARP, \
             neighbour discovery), or changed by the device; each that is somebody else's may hide a lost one",
            d.to, d.foreign
        ),
    };
    replayed.map(warning).collect()
}

/// The requested trial over links of this speed. Errors name the flag, the value and the legal range.
fn spec(args: &TrialArgs, duration_s: f64, link: Option<LinkSpeed>) -> Result<TrialSpec, Failure> {
    let rate = |flag: &str, load: Load| -> Result<Fps, Failure> {
        let fps = load.resolve(args.frame_size, link).map_err(Failure::usage)?;
        if fps.get() <= 0.0 {
            return Err(Failure::usage(format!("{flag} {load}: must be more than 0, such as 1Mpps or 50%")));
        }
        match link.map(|l| l.line_rate(args.frame_size)).filter(|most| fps > *most) {
            None => Ok(fps),
            Some(most) => Err(Failure::usage(format!(
                "{flag} {load}: {fps} is beyond the link, which carries at most {most} of {}",
                args.frame_size.with_unit("bytes")
            ))),
        }
    };
    let asked_load = args.load.ok_or_else(|| Failure::usage("--load is missing: say how fast to send"))?;
    let load = rate("--load", asked_load)?;
    let (mut spec, asked) = (TrialSpec::steady(args.frame_size, load, duration_s, Purpose::Single), &args.shape);
    if let Some(frames) = asked.burst {
        spec.shape = LoadShape::Burst { frames };
        spec.duration_s = frames as f64 / load.get();
        if spec.duration_s.is_nan() || spec.duration_s > 30.0 * 86_400.0 {
            return Err(Failure::usage(format!(
                "--burst {frames}: takes longer than 30 days at --load {}: send fewer frames, or faster",
                asked_load
            )));
        }
    } else if let Some(bursts) = asked.bursts {
        let burst_fps = match (bursts.rate, link) {
            (Some(load), _) => rate("--bursts @", load)?,
            (None, Some(link)) => link.line_rate(args.frame_size),
            (None, None) => {
                return Err(Failure::usage(format!(
                    "--bursts {}: the link speed, which is the rate within a burst, is not known: add @RATE \
                     ({0}@10Mpps) or --link 10G",
                    bursts.frames
                )))
            }
        };
        if burst_fps < load {
            return Err(Failure::usage(format!(
                "--bursts {}@{burst_fps}: must be at least the load, {load}",
                bursts.frames
            )));
        }
        spec.shape = LoadShape::Bursts { frames: bursts.frames, burst_fps };
    } else if let Some(step) = asked.step {
        let (then_fps, step_s) = (rate("--step", step.then)?, step.at.as_secs_f64());
        if step_s >= duration_s {
            return Err(Failure::usage(format!(
                "--step {}@{step_s}s: must be within the {duration_s} s of --duration",
                step.then
            )));
        }
        spec.shape = LoadShape::Step { step_s, then_fps };
    }
    if let Some(text) = &asked.windows {
        let window_s = time("--windows", text)?.as_secs_f64();
        if window_s < MIN_WINDOW_S || spec.duration_s / window_s > f64::from(MAX_WINDOWS) {
            return Err(Failure::usage(format!(
                "--windows {text}: must be at least 1ms, with at most {MAX_WINDOWS} windows in the {} s of the trial",
                spec.duration_s
            )));
        }
        spec.window_s = Some(window_s);
    }
    Ok(spec)
}
