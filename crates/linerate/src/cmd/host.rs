//! `linerate host`: what spoils figures on this machine, and mending it.

use std::{
    io,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use campaign::{
    effect::{not_applied, KEPT},
    tuned::guard,
};
use failure::{Exit, Failure, Stop};
use host::{
    audit::Verdict,
    core_plan::{CorePlan, Shape},
    cpu_set::{self, CpuSet},
    journal,
    machine::Machine,
    outcome::{self, NotMeasured, Outcome},
    pcie::{NicKind, PciePath, PcieReport},
    rules,
    tuning::{self, ApplyError, Format, HostPlan},
    watch::Watch,
    Place, Roots,
};
use rig::host_plan::read_host_plan;

use super::{effect, output, ports, times::time};
use crate::{
    cli::host::{AuditArgs, CoresArgs, HostArgs, HostCommand, PlanArgs},
    out,
};

/// Runs the command.
pub fn run(args: &HostArgs) -> Result<Exit, Failure> {
    match &args.command {
        HostCommand::Audit(args) => audit(args),
        HostCommand::Plan(args) => plan(args),
        HostCommand::Apply { plan, persist, dry_run } => apply(plan, *persist, *dry_run),
        HostCommand::Status => {
            let status = tuning::status(&Roots::default(), Path::new(journal::DIR)).map_err(journal_failed)?;
            out::print(&report::host::status(&status));
            Ok(Exit::Passed)
        }
        HostCommand::Revert { when_input_ends: true, .. } => guard(),
        HostCommand::Revert { runtime, .. } => revert(*runtime),
        HostCommand::Effect(args) => effect::run(args),
        HostCommand::Watch { cores, cpus, interval, count, json } => watch(cores, cpus, interval, *count, *json),
        HostCommand::Pcie { nics, frame_size, link, card, root, json } => {
            let reports = match link.is_empty() {
                true => pcie(nics, *frame_size, *card, root.as_deref())?,
                false => vec![PcieReport::of_slots(link, *frame_size, *card)],
            };
            out::print(&report::host::pcie(&reports, *json, &output::style()).map_err(Failure::failed)?);
            Ok(Exit::Passed)
        }
    }
}

fn place(root: Option<&Path>) -> Result<Place, Failure> {
    let Some(root) = root else { return Ok(Place::here()) };
    Place::at(root).map_err(|why| Failure::usage(format!("--root {}: {why}", root.display())))
}

/// The NICs that were named, by address, and the plan of the cores.
fn cores(args: &CoresArgs, machine: &Machine) -> Result<(Vec<String>, CorePlan), Failure> {
    if machine.cpus.is_empty() {
        return Err(Failure::machine("neither /sys nor /proc can be read: nothing is known of this machine"));
    }
    let nics: Vec<String> = args.nic.iter().map(|nic| ports::address(&machine.nics, nic)).collect::<Result<_, _>>()?;
    if let Some(file) = &args.core_plan {
        return Ok((nics, read_host_plan(file, machine)?.cores));
    }
    let shape = Shape::of(args.purpose.into());
    let count = |asked: Option<u8>, usual: usize| asked.map_or(usual, usize::from);
    let shape = Shape {
        node: machine.node_of_nics(&nics),
        pmds: count(args.pmds, shape.pmds),
        guests: count(args.guests, shape.guests),
        vcpus: count(args.vcpus, shape.vcpus),
        data_plane: count(args.data_plane, shape.data_plane),
        tester: count(args.tester, shape.tester),
        smt: args.smt,
        ..shape
    };
    let plain = Shape { node: None, smt: false, ..shape };
    match CorePlan::make(machine, &shape) {
        Ok(plan) if plan.busy().is_empty() => {
            Err(Failure::usage("no core is busy in this plan: --tester 1 is the least"))
        }
        Ok(plan) => Ok((nics, plan)),
        // The usual purpose on a small machine: cores are shared, as bench shares them.
        Err(_) if plain == Shape::of(Default::default()) => Ok((nics, CorePlan::squeezed(machine, shape.node))),
        Err(short) => Err(Failure::machine(format!("{}: {short}", shape.purpose.name()))),
    }
}

fn audit(args: &AuditArgs) -> Result<Exit, Failure> {
    let documents = [&args.json, &args.junit, &args.record];
    output::apart(documents.into_iter().flatten())?;
    let place = place(args.cores.root.as_deref())?;
    let roots = if args.record.is_some() { place.roots().clone().recording() } else { place.roots().clone() };
    let machine = Machine::read(&roots);
    let (nics, plan) = cores(&args.cores, &machine)?;
    let mut findings = rules::audit(&roots, &machine, &plan, &nics);
    if let Some(file) = &args.record {
        output::file(file, &roots.recorded().to_text())?;
    }
    let outcome = if args.outcome { Some(measured(&args.duration, &roots, &plan)?) } else { None };
    if let Some(outcome) = &outcome {
        let more = outcome::findings(outcome, &machine, &plan, &findings);
        // What comes of settings says more than they do.
        findings.splice(0..0, more);
    }
    let mut audit = report::host::Audit::new(&machine, &plan, &findings);
    audit.outcome = outcome.as_ref();
    audit.flags = args.cores.flags();
    if place.roots().is_here() {
        audit.applied = campaign::effect::is_applied(Path::new(journal::DIR));
        audit.measured = audit
            .open_ids()
            .filter_map(|id| {
                let kept = campaign::effect::kept(Path::new(KEPT), id, &machine)?;
                Some((id.to_owned(), report::host::effect_line(&kept)?))
            })
            .collect();
    }
    let failed = |e: serde_json::Error| Failure::failed(e);
    if let Some(file) = &args.json {
        output::file(file, &audit.json().map_err(failed)?)?;
    }
    if let Some(file) = &args.junit {
        output::file(file, &report::host::junit(&findings))?;
    }
    output::table(documents.into_iter().flatten(), || report::host::audit(&audit, args.all, &output::style()));
    Ok(if findings.iter().any(|finding| finding.verdict == Verdict::Bad) { Exit::Failed } else { Exit::Passed })
}

/// What comes of the settings, measured.
fn measured(duration: &str, roots: &Roots, plan: &CorePlan) -> Result<Outcome, Failure> {
    let time = in_range("--duration", duration)?;
    let stop = Stop::on_signals()?;
    outcome::measure(roots, plan, time, &|| !stop.requested()).map_err(|e| match e {
        NotMeasured::Stopped => Failure::stopped("stopped before the cores were measured"),
        NotMeasured::Cpu(cpu, why) => Failure::machine(format!("CPU {cpu} cannot be measured: {why}")),
    })
}

fn in_range(flag: &str, text: &str) -> Result<Duration, Failure> {
    let time = time(flag, text)?;
    match (Duration::from_millis(100)..=Duration::from_secs(3600)).contains(&time) {
        true => Ok(time),
        false => Err(Failure::usage(format!("{flag}: must be 100ms to 1h"))),
    }
}

fn plan(args: &PlanArgs) -> Result<Exit, Failure> {
    let place = place(args.cores.root.as_deref())?;
    let machine = Machine::read(place.roots());
    let (nics, cores) = cores(&args.cores, &machine)?;
    let plan = HostPlan::new(cores.clone(), &rules::audit(place.roots(), &machine, &cores, &nics));
    let format =
        |format: Format| tuning::render(&plan, format, &program(format == Format::Systemd)).map_err(Failure::failed);
    if let Some(file) = &args.out {
        output::file(file, &format(Format::Plan)?)?;
    }
    out::print(&match args.format {
        Some(chosen) => format(chosen.into())?,
        None => report::host::plan(&plan),
    });
    Ok(Exit::Passed)
}

/// The path of this program. If a unit of systemd is to name it, says so where it should not.
fn program(of_a_unit: bool) -> String {
    let program = std::env::current_exe().map_or_else(|_| "linerate".to_owned(), |path| path.display().to_string());
    if let Some(why) = tuning::why_not_for_a_unit(Path::new(&program)).filter(|_| of_a_unit) {
        out::note(&format!("linerate: the unit of systemd names {program}, and {why}: install it first"));
    }
    program
}

fn apply(file: &Path, persist: bool, dry_run: bool) -> Result<Exit, Failure> {
    let roots = Roots::default();
    let plan = read_host_plan(file, &Machine::read(&roots))?;
    let program = persist.then(|| program(true));
    if dry_run {
        out::print(&tuning::render(&plan, Format::Shell, "").map_err(Failure::failed)?);
        return Ok(Exit::Passed);
    }
    let stop = Stop::on_signals()?;
    let applied = tuning::apply(&roots, Path::new(journal::DIR), &plan, program.as_deref(), || !stop.requested());
    let applied = applied.map_err(|e| match &e {
        ApplyError::Failed { kept, .. } if stop.requested() && kept.is_empty() => {
            Failure::stopped("stopped: everything was taken back")
        }
        other => not_applied(other),
    })?;
    out::print(&report::host::applied(&applied));
    Ok(if applied.refused.is_empty() { Exit::Passed } else { Exit::Failed })
}

fn revert(runtime: bool) -> Result<Exit, Failure> {
    let reverted = tuning::revert(&Roots::default(), Path::new(journal::DIR), runtime).map_err(journal_failed)?;
    out::print(&report::host::reverted(&reverted));
    if !reverted.gone.is_empty() {
        out::print(&format!("gone with their network namespace: {}\n", reverted.gone.join("; ")));
    }
    if let Some((path, why)) = reverted.stays.first() {
        return Err(Failure::failed(format!("{}: the journal cannot be removed: {why}", path.display())));
    }
    let whole = reverted.failed.is_empty() && reverted.damaged.is_empty();
    Ok(if whole { Exit::Passed } else { Exit::Failed })
}

fn journal_failed(e: io::Error) -> Failure {
    match e.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Unsupported => Failure::machine(e),
        io::ErrorKind::PermissionDenied => Failure::machine(format!("{e}: run it as root")),
        _ => Failure::failed(e),
    }
}

fn watch(args: &CoresArgs, cpus: &[CpuSet], interval: &str, count: Option<u64>, json: bool) -> Result<Exit, Failure> {
    if let Some(root) = &args.root {
        return Err(Failure::usage(format!("--root {}: watch looks at this machine", root.display())));
    }
    let cpus: CpuSet = cpus.iter().flatten().copied().collect();
    let machine = Machine::read(&Roots::default());
    let interval = in_range("--interval", interval)?;
    let cpus: CpuSet = match cpus.iter().find(|cpu| machine.cpu(**cpu).is_none()) {
        Some(cpu) => {
            return Err(Failure::usage(format!(
                "--cpus {cpu}: not here or off (on: {})",
                cpu_set::to_list(&machine.online())
            )))
        }
        None if cpus.is_empty() => cores(args, &machine)?.1.busy(),
        None => cpus,
    };
    let stop = Stop::on_signals()?;
    let mut watch = Watch::begin(&Roots::default(), &cpus);
    let mut due = Instant::now();
    for n in 0..count.unwrap_or(u64::MAX) {
        due += interval;
        while !stop.requested() && Instant::now() < due {
            thread::sleep(due.saturating_duration_since(Instant::now()).min(Duration::from_millis(50)));
        }
        if stop.requested() {
            break;
        }
        let cores = watch.look();
        out::print(&match json {
            true => serde_json::to_string(&cores).map_err(Failure::failed)?,
            false => ["", "\n"][usize::from(n > 0)].to_owned() + &report::host::watch(&cores, &output::style()),
        });
        if out::is_closed() {
            break;
        }
    }
    Ok(Exit::Passed)
}

fn pcie(nics: &[String], size: u32, card: Option<NicKind>, root: Option<&Path>) -> Result<Vec<PcieReport>, Failure> {
    let place = place(root)?;
    let all = Machine::read(place.roots()).nics;
    let mut named: Vec<String> = nics.iter().map(|nic| ports::address(&all, nic)).collect::<Result<_, _>>()?;
    if named.is_empty() {
        named = all.iter().map(|nic| nic.address.clone()).collect();
    }
    let paths = named.iter().filter_map(|nic| PciePath::read(place.roots(), nic));
    let reports: Vec<PcieReport> = paths.map(|path| PcieReport::new(path, size, card)).collect();
    match reports.is_empty() {
        true => Err(Failure::machine("no NIC on a PCI bus: list them with linerate ports, or give a slot with --link")),
        false => Ok(reports),
    }
}
