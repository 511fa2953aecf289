//! `linerate lab`: real systems under test that Linerate brings up itself.

mod far;
mod guest;
mod guests;
mod join;
mod start;

use std::{ffi::OsStr, io};

use failure::{Exit, Failure, Stop};
use lab::{
    client,
    cpus::allowed_cpus,
    diagram, hidden, hold,
    line::{CommandLine, SCRIPT_DIR},
    needs::Machine,
    protocol::{Answer, Ask, Spec},
    script,
    start::{check_logs, far_spec_of, give_nics_back, mend, spec_of},
    topology::{self, Topology},
    view,
    vm::libvirt,
    within::run_within,
    Build,
};

use crate::{
    cli::{
        lab::{
            DownArgs, ExecArgs, FaultArgs, LabArgs, LabCommand, NameArgs, RunArgs, ShowArgs, StatusArgs, TopologyArgs,
            UpArgs,
        },
        parsing,
    },
    out,
};
use campaign::plans::{named_by, needs_of};
use rig::lab_plan::ForPlan;

pub use join::join;
use start::{bring_up, told};

/// Runs the command.
pub fn run(args: &LabArgs) -> Result<Exit, Failure> {
    match &args.command {
        LabCommand::List => out::print(&view::list(&Machine::read(), &guests::kernels_here)),
        LabCommand::Show(args) => show(args)?,
        LabCommand::Up(args) => {
            let up = bring_up(&spec(args, &|_| Ok(None))?, false, &Stop::on_signals()?)?;
            out::print(&up_line(&up.status));
        }
        LabCommand::Status(args) => status(args)?,
        LabCommand::Check(args) => return check(args),
        LabCommand::Counters(args) => counters(args)?,
        LabCommand::Down(args) => down(args)?,
        LabCommand::Run(args) => return whole_run(args),
        LabCommand::Fault(args) => fault(args)?,
        LabCommand::Exec(args) => return exec(args),
        LabCommand::Guest(command) => return guest::run(command),
        LabCommand::Serve => return far::serve(),
    }
    Ok(Exit::Passed)
}

/// The hidden command of the process that holds a lab: standard input is the socket that it answers on.
pub fn hold(spec: &str) -> Result<Exit, Failure> {
    let spec: Spec = serde_json::from_str(spec).map_err(|e| Failure::usage(format!("not the spec of a lab: {e}")))?;
    let listener = io::stdin().lock();
    let socket =
        rustix::io::dup(&listener).map_err(|e| Failure::usage(format!("standard input is not a socket: {e}")))?;
    hold::run(spec, socket.into(), &Stop::on_signals()?)
}

fn show(args: &ShowArgs) -> Result<(), Failure> {
    let topology = topology::load(&args.topology.topology)?;
    let options = guests::options(&args.topology, &topology, None)?;
    if args.toml {
        let text = toml::to_string_pretty(&options.applied_to(topology)).map_err(Failure::failed)?;
        out::print(&text);
        return Ok(());
    }
    let dir = if args.script { SCRIPT_DIR } else { hold::DIR };
    let build = Build::for_show(topology, options, &allowed_cpus(), dir, &mut out::note)?;
    if let Some(guest) = &args.libvirt {
        out::print(&libvirt::xml(build.machine("--libvirt", guest)?).map_err(Failure::failed)?);
        return Ok(());
    }
    if let Some(guest) = &args.guest_spec {
        let spec = &build.machine("--guest-spec", guest)?.spec;
        out::print(&serde_json::to_string(spec).map_err(Failure::failed)?);
        return Ok(());
    }
    out::print(&match (args.script, args.diagram) {
        (true, _) => script::render(&build),
        (_, true) => diagram::render(&build.topology),
        _ => view::show(&build),
    });
    Ok(())
}

/// What a lab is started with, if this machine can run it. `plan` says what is measured in it, if that is known.
fn spec(args: &UpArgs, plan: &dyn Fn(&Topology) -> Result<Option<ForPlan>, Failure>) -> Result<Spec, Failure> {
    let TopologyArgs { topology, .. } = &args.topology;
    let topology = topology::load(topology)?;
    if let Some(on) = far::on(args)? {
        let name = args.name.clone().unwrap_or_else(|| topology.name.clone());
        let options = guests::with_testers_ports(args.topology.options()?);
        let options = guests::with_plan(options, &args.topology, &topology, plan(&topology)?.as_ref(), &[])?;
        return far_spec_of(name, topology, options, on);
    }
    let options = guests::options(&args.topology, &topology, plan(&topology)?.as_ref())?;
    let name = args.name.clone().unwrap_or_else(|| topology.name.clone());
    let logs = args.logs.as_deref().map(std::path::absolute).transpose().map_err(Failure::usage)?;
    logs.as_deref().map_or(Ok(()), check_logs)?;
    Ok(Spec { logs, fail_at: args.fail_at, ..spec_of(name, topology, options)? })
}

fn up_line(status: &lab::protocol::Status) -> String {
    let name = &status.name;
    let plan = status.topology.plan.as_ref().map(|plan| format!(" --plan {plan}")).unwrap_or_default();
    let machines = view::machines(&status.topology, &status.options);
    format!(
        "lab {name} is up after {:.1} s\n{machines}measure    linerate bench --lab {name}{plan} --quick\nlook       linerate lab status {name}; \
         linerate lab check {name}\nend        linerate lab down {name}",
        status.ready_ms as f64 / 1e3
    )
}

fn status(args: &StatusArgs) -> Result<(), Failure> {
    let (mut all, mut silent) = (Vec::new(), Vec::new());
    match &args.name {
        Some(name) => all.push(client::status(&client::named(Some(name))?)?),
        None => {
            for name in client::running() {
                match client::status_soon(&name) {
                    Ok(status) => all.push(status),
                    // A lab that ended meanwhile is not up.
                    Err(_) if !client::running().contains(&name) => {}
                    Err(_) => silent.push(format!("{name}: coming up, or does not answer")),
                }
            }
        }
    }
    if args.json {
        silent.iter().for_each(|line| out::note(line));
        out::print(&serde_json::to_string_pretty(&all).map_err(Failure::failed)?);
    } else if all.is_empty() && silent.is_empty() {
        out::print("no lab is up; linerate lab list shows what there is");
    } else {
        out::print(&all.iter().map(view::status).chain(silent).collect::<Vec<_>>().join("\n"));
    }
    Ok(())
}

fn check(args: &NameArgs) -> Result<Exit, Failure> {
    let name = client::named(args.name.as_deref())?;
    let Answer::Checked(all) = client::ask(&name, &Ask::Check)? else {
        return Err(Failure::failed(format!("lab {name}: another answer than its checks")));
    };
    if args.json {
        out::print(&serde_json::to_string_pretty(&all).map_err(Failure::failed)?);
    } else {
        out::print(&view::checked(&all));
        // What starts a program again that has ended.
        if let Err(ended) = client::check_running(&client::status(&name)?) {
            out::note(&format!("linerate: {}", ended.text));
        }
    }
    Ok(if all.iter().all(|check| check.met || check.only_while_measured) { Exit::Passed } else { Exit::Failed })
}

fn counters(args: &NameArgs) -> Result<(), Failure> {
    let name = client::named(args.name.as_deref())?;
    let Answer::Counters(all) = client::ask(&name, &Ask::Counters)? else {
        return Err(Failure::failed(format!("lab {name}: another answer than its counters")));
    };
    if args.json {
        out::print(&serde_json::to_string_pretty(&all).map_err(Failure::failed)?);
    } else {
        out::print(&view::counters(&all));
    }
    Ok(())
}

fn fault(args: &FaultArgs) -> Result<(), Failure> {
    // A plan's command runs inside the lab that it measures.
    let inside = std::env::var_os(client::INSIDE).is_some() && args.lab.is_none();
    let lab = if inside { None } else { Some(client::named(args.lab.as_deref())?) };
    let ask = |name: Option<String>| {
        let ask = Ask::Fault { name };
        match lab.as_ref().map_or_else(|| client::ask_inside(&ask), |lab| client::ask(lab, &ask))? {
            Answer::Faults { done, took_ms } => Ok((done, took_ms)),
            _ => Err(Failure::failed("the lab gave another answer than that of a fault")),
        }
    };
    let (mut done, mut took_ms) = ask(None)?;
    if let Some(name) = &args.fault {
        if done.iter().all(|(known, _)| known != name) {
            let known: Vec<String> = done.into_iter().map(|(known, _)| known).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(Failure::usage(format!("no fault {name} in this lab: there is {known}")));
        }
        (done, took_ms) = ask(Some(name.clone()))?;
    }
    match &args.fault {
        Some(name) => out::print(&format!("{name}: done in {:.2} s", took_ms as f64 / 1e3)),
        None if done.is_empty() => out::print("nothing can be made to fail in this lab"),
        None => {
            out::print(&done.iter().map(|(name, what)| format!("{name:<20} {what}")).collect::<Vec<_>>().join("\n"))
        }
    }
    Ok(())
}

fn exec(args: &ExecArgs) -> Result<Exit, Failure> {
    let name = client::named(args.lab.as_deref())?;
    let ask = Ask::Run { node: args.node.clone(), line: CommandLine(args.command.clone()) };
    match client::ask(&name, &ask)? {
        Answer::Ran { succeeded, printed, errors } => {
            out::print(printed.trim_end());
            if !errors.is_empty() {
                out::note(errors.trim_end());
            }
            Ok(if succeeded { Exit::Passed } else { Exit::Failed })
        }
        _ => Err(Failure::failed(format!("lab {name}: another answer than that of the command"))),
    }
}

fn down(args: &DownArgs) -> Result<(), Failure> {
    let names = match args.all {
        true => client::running(),
        false => vec![client::named(args.name.as_deref())?],
    };
    if names.is_empty() {
        out::print("no lab is up");
    }
    let one = |name: String| {
        // A lab that ended by itself meanwhile is gone as well.
        let gone = |e| if client::running().contains(&name) { Err(e) } else { Ok(Vec::new()) };
        let killed = client::down(&name).or_else(gone)?;
        out::print(&match killed.as_slice() {
            [] => format!("lab {name} is gone"),
            killed => format!("lab {name} did not answer: killed ({killed:?}), and all it started with it"),
        });
        told(give_nics_back(&name))
    };
    let ended = all_of(names.into_iter().map(one));
    let mended = if args.all { all_of(mend().into_iter().map(told)) } else { Ok(()) };
    all_of([ended, mended].into_iter())
}

/// Does all, also behind one that fails. The first failure; further ones are said at once.
fn all_of(all: impl Iterator<Item = Result<(), Failure>>) -> Result<(), Failure> {
    let mut first = Ok(());
    for one in all {
        match (&first, one) {
            (_, Ok(())) => {}
            (Ok(()), failed) => first = failed,
            (Err(_), Err(failure)) => out::note(&format!("linerate: {}", failure.text)),
        }
    }
    first
}

fn whole_run(args: &RunArgs) -> Result<Exit, Failure> {
    let stop = Stop::on_signals()?;
    let named = named_by(&args.bench);
    let spec = spec(&args.up, &|topology| {
        let plan = named.clone().or_else(|| topology.plan.clone());
        plan.map(|plan| Ok(ForPlan { needs: needs_of(&plan)?, plan })).transpose()
    })?;
    let mut bench = vec!["bench".to_owned(), "--lab".to_owned()];
    if let Some(plan) = spec.topology.plan.as_ref().filter(|_| named.is_none()) {
        bench.extend(["--plan".to_owned(), plan.clone()]);
    }
    bench.extend(args.bench.iter().cloned());
    if spec.on.is_none() {
        hidden::check_command(bench.iter().map(OsStr::new))?;
    }
    // A wrong flag is found before anything comes up.
    let words = ["linerate"].into_iter().chain(bench.iter().map(String::as_str));
    if let Some(e) = parsing::parse(words.map(Into::into)).err().filter(|e| e.use_stderr()) {
        let wrong = parsing::one_line(&e);
        return Err(Failure::usage(format!("{wrong}; flags of the lab come first, then those of linerate bench")));
    }
    let mut up = bring_up(&spec, true, &stop)?;
    let exit = run_within(&up.status, bench.into_iter().map(Into::into).collect(), &stop);
    up.down();
    told(give_nics_back(&spec.name))?;
    exit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_done_behind_a_failure_and_the_first_one_counts() {
        let mut done = 0;
        let mut one = |exit: Option<Exit>| {
            done += 1;
            exit.map_or(Ok(()), |exit| Err(Failure { exit, text: "x".to_owned() }))
        };
        let all = [None, Some(Exit::Machine), None, Some(Exit::Failed)];
        let first = all_of(all.into_iter().map(&mut one));
        assert_eq!((first.unwrap_err().exit, done), (Exit::Machine, 4));
        assert!(all_of(std::iter::once(Ok(()))).is_ok());
    }
}
