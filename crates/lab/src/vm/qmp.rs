//! Questions to QEMU itself over its machine protocol (QMP).

use std::{fs, os::unix::net::UnixStream, path::Path, time::Duration};

use failure::Failure;
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use qapi::{qmp, Qmp};
use rustix::{
    process::Pid,
    thread::{sched_getaffinity, sched_setaffinity, CpuSet},
};

use crate::numbers;

/// How long QEMU may take to answer.
const ANSWER: Duration = Duration::from_secs(10);

/// The control of one machine.
pub struct Machine {
    qmp: Qmp<qapi::Stream<std::io::BufReader<UnixStream>, UnixStream>>,
    socket: String,
    pid: u32,
}

impl Machine {
    /// Connects to the QEMU that serves this socket.
    ///
    /// # Errors
    ///
    /// (machine) when it does not answer.
    pub fn connect(socket: &Path) -> Result<Self, Failure> {
        let name = socket.display().to_string();
        let open = || -> std::io::Result<_> {
            let stream = UnixStream::connect(socket)?;
            stream.set_read_timeout(Some(ANSWER))?;
            stream.set_write_timeout(Some(ANSWER))?;
            let pid = getsockopt(&stream, PeerCredentials)?.pid();
            let reader = std::io::BufReader::new(stream.try_clone()?);
            let mut qmp = Qmp::new(qapi::Stream::new(reader, stream));
            qmp.handshake()?;
            Ok((qmp, pid.unsigned_abs()))
        };
        match open() {
            Ok((qmp, pid)) => Ok(Self { qmp, socket: name, pid }),
            Err(e) => Err(Failure::machine(format!("QEMU does not answer at {name}: {e}"))),
        }
    }

    fn run<C: qmp::QmpCommand>(&mut self, command: C) -> Result<C::Ok, Failure> {
        let Self { qmp, socket, .. } = self;
        qmp.execute(&command).map_err(|e| Failure::machine(format!("QEMU at {socket}: {}: {e}", C::NAME)))
    }

    /// The thread of each virtual CPU, in order.
    ///
    /// # Errors
    ///
    /// (machine) when QEMU does not say.
    pub fn vcpu_threads(&mut self) -> Result<Vec<u32>, Failure> {
        let all = self.run(qmp::query_cpus_fast {})?;
        let mut cpus: Vec<(i64, i64)> = all
            .iter()
            .filter_map(|cpu| match cpu {
                qmp::CpuInfoFast::x86_64(cpu) | qmp::CpuInfoFast::i386(cpu) | qmp::CpuInfoFast::aarch64(cpu) => {
                    Some((cpu.cpu_index, cpu.thread_id))
                }
                _ => None,
            })
            .collect();
        cpus.sort_unstable();
        Ok(cpus.into_iter().filter_map(|(_, thread)| u32::try_from(thread).ok()).collect())
    }

    /// Lets the threads of QEMU that are not virtual CPUs run on one CPU only: its main loop, its I/O threads.
    ///
    /// # Errors
    ///
    /// (machine) when QEMU does not say its virtual CPUs, the kernel does not show its threads, or refuses.
    pub fn pin_emulator(&mut self, cpu: u32) -> Result<(), Failure> {
        let vcpus = self.vcpu_threads()?;
        let all = || {
            threads_of(Path::new("/proc"), self.pid)
                .ok_or_else(|| Failure::machine(format!("QEMU at {}: its threads are not in /proc", self.socket)))
        };
        for thread in all()?.into_iter().filter(|thread| !vcpus.contains(thread)) {
            let pinned = pin(thread, &[cpu]);
            // One that has just ended needs no CPU.
            if pinned.is_err() && all()?.contains(&thread) {
                return pinned;
            }
        }
        Ok(())
    }

    /// Starts the machine again, as its reset button does.
    ///
    /// # Errors
    ///
    /// (machine) when QEMU refuses.
    pub fn reset(&mut self) -> Result<(), Failure> {
        // It was started to end instead of booting again by itself, so that a kernel that fails is seen.
        let action =
            qmp::set_action { reboot: Some(qmp::RebootAction::reset), shutdown: None, panic: None, watchdog: None };
        self.run(action)?;
        self.run(qmp::system_reset {}).map(drop)
    }

    /// Takes the carrier of a port away, or gives it back.
    ///
    /// # Errors
    ///
    /// (machine) when QEMU refuses.
    pub fn set_link(&mut self, port: u32, up: bool) -> Result<(), Failure> {
        self.run(qmp::set_link { name: device(port), up }).map(drop)
    }
}

/// The name of a guest's network device in QEMU.
pub fn device(port: u32) -> String {
    format!("port{port}")
}

/// The threads of a process. Its number and theirs are of this process namespace; `/proc` may be that of the machine, as in a lab.
fn threads_of(proc: &Path, pid: u32) -> Option<Vec<u32>> {
    let namespace = |dir: &Path| fs::read_link(dir.join("ns/pid")).ok();
    let own = namespace(&proc.join("self"))?;
    let entries = |dir: &Path| Some(fs::read_dir(dir).ok()?.flatten().map(|entry| entry.path()));
    let process =
        entries(proc)?.find(|dir| numbers::inner(dir) == Some(pid) && namespace(dir).as_ref() == Some(&own))?;
    Some(entries(&process.join("task"))?.filter_map(|dir| numbers::inner(&dir)).collect())
}

/// Lets a thread of this process namespace run on these CPUs only.
///
/// # Errors
///
/// (machine) when the kernel refuses.
pub fn pin(thread: u32, cpus: &[u32]) -> Result<(), Failure> {
    let mut set = CpuSet::new();
    cpus.iter().filter(|&&cpu| (cpu as usize) < CpuSet::MAX_CPU).for_each(|&cpu| set.set(cpu as usize));
    let pid = i32::try_from(thread).ok().and_then(Pid::from_raw);
    sched_setaffinity(pid, &set).map_err(|e| Failure::machine(format!("thread {thread} on CPUs {cpus:?}: {e}")))
}

/// The CPUs that a thread of this process namespace may run on.
///
/// # Errors
///
/// (machine) when the kernel does not say.
pub fn cpus_of(thread: u32) -> Result<Vec<u32>, Failure> {
    let pid = i32::try_from(thread).ok().and_then(Pid::from_raw);
    let set = sched_getaffinity(pid).map_err(|e| Failure::machine(format!("CPUs of thread {thread}: {e}")))?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).filter_map(|cpu| u32::try_from(cpu).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_its_threads_and_no_others() {
        let (send, receive) = std::sync::mpsc::channel::<()>();
        let waits = std::thread::spawn(move || receive.recv());
        let own = std::process::id();
        let all = threads_of(Path::new("/proc"), own).unwrap();
        assert!(all.contains(&own) && all.len() > 1, "{all:?}");
        assert!(all.iter().all(|thread| Path::new(&format!("/proc/{own}/task/{thread}")).exists()), "{all:?}");
        drop(send);
        waits.join().unwrap().unwrap_err();
        // No process has this number.
        assert_eq!(threads_of(Path::new("/proc"), u32::MAX), None);
    }
}
