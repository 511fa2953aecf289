//! Bringing a lab up, with the NICs that it takes, and giving these back.

use std::path::Path;

use failure::{Failure, Stop};
use host::{
    journal::{self, Journal},
    PciDevice, Roots,
};

use crate::{
    client::{self, Up},
    cpus::allowed_cpus,
    hidden, hold,
    needs::Machine,
    nics,
    options::LabOptions,
    protocol::{On, Spec},
    topology::Topology,
    Build,
};

/// What a lab is started with, if this machine can run it.
///
/// # Errors
///
/// (usage) for a name or a choice that cannot be; (machine) for what is missing.
pub fn spec_of(name: String, topology: Topology, options: LabOptions) -> Result<Spec, Failure> {
    let linerate = free(&name)?;
    let cpus = allowed_cpus();
    // What cannot be built is said before anything is started.
    let build = Build::new(topology.clone(), options.clone(), &cpus, &linerate, hold::DIR)?;
    let machine = Machine::read();
    let options = machine.memory_for(&build.topology, options);
    for disk in build.topology.guest.iter().filter_map(|guest| guest.disk.as_ref()) {
        hidden::check("--disk", Path::new(disk))?;
    }
    if let Some(need) = machine.needs(&build.topology, &options).into_iter().find(|need| !need.met) {
        return Err(Failure::machine(format!("topology {}: needs {}: {}", topology.name, need.what, need.remedy)));
    }
    Ok(Spec { name, topology, options, cpus, linerate, logs: None, on: None, fail_at: None })
}

/// Makes the directory that logs are kept in.
///
/// # Errors
///
/// (usage) for one that cannot be made or written to, or that a lab hides.
pub fn check_logs(to: &Path) -> Result<(), Failure> {
    hidden::check("--logs", to)?;
    let wrong = |e: std::io::Error| Failure::usage(format!("--logs {}: {e}: choose another directory", to.display()));
    std::fs::create_dir_all(to).map_err(wrong)?;
    let tried = to.join(format!(".linerate-{}", std::process::id()));
    // A new file: in a directory of many users, one of this name may be somebody's link.
    std::fs::File::create_new(&tried).and_then(|_| std::fs::remove_file(&tried)).map_err(wrong)
}

/// What a lab on another host is started with. Whether that host can run it is said there.
///
/// # Errors
///
/// (usage) for a name that cannot be.
pub fn far_spec_of(name: String, topology: Topology, options: LabOptions, on: On) -> Result<Spec, Failure> {
    let linerate = free(&name)?;
    Ok(Spec { name, topology, options, cpus: Vec::new(), linerate, logs: None, on: Some(on), fail_at: None })
}

/// Checks that no lab has this name. The path of this program.
fn free(name: &str) -> Result<String, Failure> {
    client::check_name(name)?;
    if client::running().iter().any(|lab| lab == name) {
        return Err(client::is_up(name));
    }
    let program = std::env::current_exe().map_err(|e| Failure::machine(format!("where this program is: {e}")))?;
    Ok(program.to_string_lossy().into_owned())
}

/// Starts a lab and waits until it is up; `done` is called with each step and the milliseconds since the start. If `bound`, it
/// ends with the calling thread.
///
/// # Errors
///
/// What did not come up. Its NICs are given back then.
pub fn bring_up(spec: &Spec, bound: bool, stop: &Stop, done: &mut dyn FnMut(&str, u64)) -> Result<Up, Failure> {
    let journal = take_nics(spec)?;
    let taken = journal.is_some();
    let up = client::start(spec, bound).and_then(|starting| starting.wait(stop, done));
    drop(journal);
    if up.is_err() && taken {
        give_nics_back(&spec.name)?;
    }
    up
}

/// Before a lab takes NICs: what labs have taken that were killed is given back, since it may be one of them. As [`mend`].
pub fn mend_before(spec: &Spec) -> Vec<Result<Vec<String>, Failure>> {
    if spec.options.phy.is_empty() {
        Vec::new()
    } else {
        mend()
    }
}

/// Takes the NICs of a lab from the kernel.
fn take_nics(spec: &Spec) -> Result<Option<Journal>, Failure> {
    let LabOptions { phy, tester_ports, .. } = &spec.options;
    if phy.is_empty() {
        return Ok(None);
    }
    let roots = Roots::default();
    // Of a lab on another host each host takes its own.
    let on_bus = |port: &&String| PciDevice::read(&roots, port).is_some() && !spec.options.tester_elsewhere;
    let phy = phy.iter().filter(|_| spec.on.is_none());
    let all: Vec<String> = phy.chain(tester_ports.iter().filter(on_bus)).cloned().collect();
    nics::take(&roots, Path::new(journal::DIR), &spec.name, &all)
}

/// Gives the NICs of a lab back that has ended. What was done, in a line each.
///
/// # Errors
///
/// A NIC that could not be given back.
pub fn give_nics_back(lab: &str) -> Result<Vec<String>, Failure> {
    nics::give_back(&Roots::default(), Path::new(journal::DIR), lab)
}

/// The same for each lab that ended without it: all are gone through, also behind one that fails.
pub fn mend() -> Vec<Result<Vec<String>, Failure>> {
    let running = client::running();
    let dead = nics::owners(Path::new(journal::DIR)).into_iter().filter(|lab| !running.contains(lab));
    dead.map(|lab| give_nics_back(&lab)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_go_to_a_directory_that_can_be_written_to() {
        let dir = std::env::temp_dir().join(format!("lrlogs{}", std::process::id()));
        check_logs(&dir.join("a/b")).unwrap();
        let made: Vec<_> = std::fs::read_dir(dir.join("a/b")).unwrap().collect();
        assert!(made.is_empty(), "{made:?}");
        std::fs::remove_dir_all(&dir).unwrap();
        for wrong in ["/proc/x", "/dev/null/x"] {
            assert!(check_logs(Path::new(wrong)).is_err(), "{wrong}");
        }
    }
}
