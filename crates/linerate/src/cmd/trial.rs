//! `linerate trial`: one trial, raw counts.

use measure::{
    plan::Plan,
    result::Verdict,
    trial::{Purpose, TrialSpec},
};
use report::progress::Line;

use super::{output, plan, progress::Progress, run::Run};
use crate::{
    cli::TrialArgs,
    failure::{Exit, Failure},
};

/// Runs the command.
pub fn run(args: &TrialArgs) -> Result<Exit, Failure> {
    let mut wanted = Plan {
        name: "trial".to_owned(),
        description: "One trial".to_owned(),
        source: String::new(),
        frame_sizes: vec![args.frame_size],
        ..Plan::default()
    };
    plan::traffic(&mut wanted, &args.traffic)?;
    plan::link(&mut wanted, &args.ports);
    wanted.search.duration = units::parse_duration(&args.duration)?;
    wanted.trust.residual = units::parse_duration(&args.residual)?;
    wanted.trust.settle = std::time::Duration::ZERO;
    wanted.trust.selftest = false;
    wanted.latency.enabled = false;
    let duration_s = wanted.search.duration.as_secs_f64();
    let plan = wanted.validate()?;
    output::check(&args.output)?;
    if let Some(link) = plan.link.speed {
        args.load.resolve(args.frame_size, Some(link))?;
    }
    let mut run = Run::new(plan, &args.ports, &args.machine)?;
    let load_fps = args.load.resolve(args.frame_size, run.link())?;
    if let Some(most) = run.link().map(|l| l.line_rate(args.frame_size)).filter(|most| load_fps > *most) {
        return Err(Failure::usage(format!(
            "--load {}: {load_fps} is beyond the link, which carries at most {most} of {} bytes",
            args.load, args.frame_size
        )));
    }
    let spec = TrialSpec::steady(args.frame_size, load_fps, duration_s, Purpose::Single);
    let streams = run.streams(args.frame_size)?;
    let progress = Progress::new(args.output.quiet);
    let mut line = Line {
        phase: "trial".to_owned(),
        frame_size: Some((args.frame_size, 1, 1)),
        load: Some(load_fps),
        bounds: (None, None),
        trials: 0,
        invalid: 0,
        left_s: None,
    };
    let record = run.trial(&streams, spec, 1, None, &mut |elapsed| {
        line.left_s = Some((duration_s - elapsed).max(0.0));
        progress.show(&line);
    })?;
    progress.clear();
    let verdict = match &record {
        None => Verdict::Stopped,
        Some(r) if !r.valid() => Verdict::Inconclusive,
        Some(_) => Verdict::Passed,
    };
    let down = run.links_down();
    let verdict = if record.is_some() && !down.is_empty() { Verdict::Failed } else { verdict };
    let exit = output::finish(&run.result(Vec::new(), Vec::new(), verdict), &args.output)?;
    if verdict == Verdict::Failed {
        // Whatever the counts say of the tester, this is why.
        return Err(Failure::failed(format!(
            "port {}: its link went down during the trial: the peer ended or was disconnected; the counts are kept",
            down.join(" and ")
        )));
    }
    Ok(exit)
}
