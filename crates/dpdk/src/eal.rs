//! DPDK's environment: started once, cleaned up at the end.

use std::{
    collections::BTreeSet,
    ffi::{c_char, CStr, CString},
    path::{Path, PathBuf},
    sync::{
        atomic::{AtomicBool, Ordering},
        Mutex, MutexGuard, PoisonError,
    },
};

use dpdk_sys as sys;
use host::Roots;

use crate::{error::reason, iova::Iova, log, DpdkError, Memory, MemoryKind};

/// Prefix of the names of our run directories; the pid follows.
const PREFIX: &str = "linerate";

/// A worker lcore and the CPU it is pinned to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lcore {
    /// DPDK's number for it, from 1; 0 is the main lcore.
    pub id: u32,
    /// The CPU, as Linux counts them.
    pub cpu: u32,
}

/// Options of DPDK's start.
#[derive(Debug, Clone)]
pub struct EalOptions {
    /// The worker lcores. The main lcore 0 is the calling thread, which stays free to run on every CPU it may.
    pub lcores: Vec<Lcore>,
    /// Which memory, and how much.
    pub memory: Memory,
    /// Addresses of the PCI devices that will be opened. Empty: the PCI bus is not scanned.
    pub pci: Vec<String>,
}

impl Default for EalOptions {
    fn default() -> Self {
        Self { lcores: Vec::new(), memory: Memory::Auto { mib: 256 }, pci: Vec::new() }
    }
}

/// DPDK's environment. A process has one and can start it only once.
#[derive(Debug)]
pub struct Eal {
    kind: MemoryKind,
    lcores: Vec<Lcore>,
    args: Vec<String>,
    run_dir: Option<PathBuf>,
    // getopt permutes the pointers and EAL may keep some, so the strings live as long as the process.
    _argv: Vec<CString>,
}

#[derive(Clone, Copy)]
enum State {
    Fresh,
    Failed,
    Running(&'static Eal),
    Done,
}

struct Global {
    state: State,
    /// Pools, ports and tables whose memory is DPDK's.
    live: usize,
}

/// Errnos of `rte_eal_init` where it gets no memory: ENOMEM, and EACCES for the facts of huge pages.
const OF_MEMORY: [i32; 2] = [12, 13];

static LOST_HUGEPAGES: AtomicBool = AtomicBool::new(false);

/// Whether DPDK did not start because huge pages that were free a moment before were not there any more, where ordinary
/// pages would have done as well ([`Memory::Auto`]). This process cannot start DPDK again; the program can.
pub fn lost_hugepages() -> bool {
    LOST_HUGEPAGES.load(Ordering::Relaxed)
}

fn has_lost_hugepages(wanted: Memory, kind: MemoryKind, errno: i32) -> bool {
    matches!((wanted, kind), (Memory::Auto { .. }, MemoryKind::Huge)) && OF_MEMORY.contains(&errno)
}

static GLOBAL: Mutex<Global> = Mutex::new(Global { state: State::Fresh, live: 0 });

fn global() -> MutexGuard<'static, Global> {
    GLOBAL.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Eal {
    /// Starts DPDK. Errors when it runs already, when the options are wrong, and when the machine lacks what they ask for.
    ///
    /// DPDK's log does not reach the terminal; [`crate::log_tail`] returns it.
    pub fn init(options: EalOptions) -> Result<&'static Self, DpdkError> {
        let mut global = global();
        match global.state {
            State::Fresh => {}
            State::Failed | State::Running(_) => return Err(DpdkError::AlreadyInitialised),
            State::Done => return Err(DpdkError::CleanedUp),
        }
        check_version()?;
        check_lcores(&options.lcores)?;
        let iova = Iova::of(&options.pci, &Roots::default())?;
        let memory = iova.memory(options.memory)?;
        let (kind, mib) = memory.decide()?;
        let args = arguments(&options, iova, kind, mib);
        let argv: Vec<CString> = args.iter().filter_map(|a| CString::new(a.as_str()).ok()).collect();
        // A list of its own for C to permute, ended by NULL.
        let mut pointers: Vec<*mut c_char> = argv.iter().map(|a| a.as_ptr().cast_mut()).collect();
        pointers.push(std::ptr::null_mut());

        // From here on a failure is final: rte_eal_init cannot always be called again.
        global.state = State::Failed;
        let before = open_files();
        // SAFETY: argv is NULL-terminated and its strings outlive the process's use of them (kept in the static Eal,
        // or read only during the call when it fails).
        let ret = unsafe {
            sys::lr_log_capture();
            sys::lr_log_mark();
            sys::lr_eal_init(argv.len() as i32, pointers.as_mut_ptr())
        };
        if ret < 0 {
            let errno = log::errno();
            let failed = DpdkError::EalInit { reason: reason(&log::error_line(), ret), args: args.join(" ") };
            if has_lost_hugepages(memory, kind, errno) {
                // What DPDK opened holds huge pages. It must not outlive this program.
                for fd in open_files().difference(&before) {
                    // SAFETY: sets a flag of a descriptor, or fails.
                    unsafe { sys::lr_close_on_exec(*fd) };
                }
                LOST_HUGEPAGES.store(true, Ordering::Relaxed);
            }
            return Err(failed);
        }
        // SAFETY: the EAL runs; the directory's name is a NUL-terminated static string.
        let run_dir = unsafe {
            sys::lr_quiet_bpf();
            sys::lr_at_exit(Some(at_exit));
            CStr::from_ptr(sys::lr_runtime_dir())
        };
        let run_dir = Some(PathBuf::from(run_dir.to_string_lossy().into_owned()));
        remove_stale(run_dir.as_deref());
        let eal = Box::leak(Box::new(Self { kind, lcores: options.lcores, args, run_dir, _argv: argv }));
        global.state = State::Running(eal);
        Ok(eal)
    }

    /// Ends DPDK. Call it last before the process exits. It leaves no run directory, file or huge page. A normal exit calls
    /// it, an abort does not.
    ///
    /// While pools, ports or tables exist, or lcores run, their memory stays mapped: only the files are removed, and the
    /// kernel frees the rest at exit.
    pub fn cleanup() {
        let mut global = global();
        let State::Running(eal) = global.state else { return };
        global.state = State::Done;
        if global.live == 0 && !crate::busy::any_busy() {
            // SAFETY: nothing of ours points into DPDK's memory any more, and nothing can be made from now on.
            unsafe { sys::lr_eal_cleanup() };
        }
        if let Some(dir) = &eal.run_dir {
            // Its name carries our pid; that it is gone already is fine.
            let _ = std::fs::remove_dir_all(dir);
        }
    }

    /// Which memory DPDK got.
    pub fn memory_kind(&self) -> MemoryKind {
        self.kind
    }

    /// Bytes of DPDK's memory in use: pools, tables, rings. None after [`Eal::cleanup`].
    pub fn memory_used(&self) -> u64 {
        // SAFETY: the EAL runs as long as something of it is alive.
        self.alive().map_or(0, |_alive| unsafe { sys::lr_heap_used() })
    }

    /// The worker lcores, as asked for.
    pub fn lcores(&self) -> &[Lcore] {
        &self.lcores
    }

    /// The arguments DPDK was started with, for a report.
    pub fn args(&self) -> &[String] {
        &self.args
    }

    /// The version of the DPDK library, such as `DPDK 22.11.11`.
    pub fn version() -> String {
        // SAFETY: returns a NUL-terminated static string.
        unsafe { CStr::from_ptr(sys::lr_version()) }.to_string_lossy().into_owned()
    }

    /// Counts in one more object made of DPDK's memory. Errors after [`Eal::cleanup`].
    pub(crate) fn alive(&self) -> Result<Alive, DpdkError> {
        let mut global = global();
        let State::Running(_) = global.state else { return Err(DpdkError::CleanedUp) };
        global.live += 1;
        Ok(Alive { leaked: false })
    }
}

extern "C" fn at_exit() {
    Eal::cleanup();
}

/// Held by every object in DPDK's memory. While one exists, [`Eal::cleanup`] leaves the memory mapped.
pub(crate) struct Alive {
    leaked: bool,
}

impl Alive {
    /// Counts as alive for ever: its memory may be used again at any time.
    pub(crate) fn leak(&mut self) {
        self.leaked = true;
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        if !self.leaked {
            global().live -= 1;
        }
    }
}

/// Removes the run directories of earlier Linerate processes that were killed. The name of a directory ends with the pid.
fn remove_stale(own: Option<&Path>) {
    let Some(entries) = own.and_then(Path::parent).and_then(|dir| std::fs::read_dir(dir).ok()) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX)).and_then(|pid| pid.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// The numbers of this process's open files.
fn open_files() -> BTreeSet<i32> {
    let names = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    names.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Errors when the DPDK library has another minor version than the headers: its structures may differ.
fn check_version() -> Result<(), DpdkError> {
    // SAFETY: these return constants.
    let (year, month) = unsafe { (sys::lr_version_header_year(), sys::lr_version_header_month()) };
    let built = format!("{year}.{month:02}");
    let runtime = Eal::version();
    let number = runtime.split_whitespace().last().unwrap_or_default();
    if number == built || number.starts_with(&format!("{built}.")) {
        Ok(())
    } else {
        Err(DpdkError::Version { runtime, built })
    }
}

fn check_lcores(lcores: &[Lcore]) -> Result<(), DpdkError> {
    // Each process may go to an isolated CPU, and none begins there.
    let isolated = std::fs::read_to_string("/sys/devices/system/cpu/isolated").unwrap_or_default();
    let allowed = match isolated.trim() {
        "" => allowed_cpus(),
        isolated => format!("{},{isolated}", allowed_cpus()),
    };
    let mut seen = BTreeSet::new();
    for &Lcore { id, cpu } in lcores {
        let why = if id == 0 || id >= sys::LR_MAX_LCORE {
            format!("not a worker: must be 1 to {}", sys::LR_MAX_LCORE - 1)
        } else if !seen.insert(id) {
            "given twice".to_string()
        } else if !cpus(&allowed).any(|c| c == cpu) {
            format!("cannot run on CPU {cpu}: this process may use CPUs {allowed}")
        } else {
            continue;
        };
        return Err(DpdkError::Lcore { lcore: id, why });
    }
    Ok(())
}

/// The CPUs this process may run on, as the kernel writes them: `0-3,8`.
fn allowed_cpus() -> String {
    let text = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let list = text.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:")).unwrap_or_default().trim();
    if list.is_empty() { "0" } else { list }.to_string()
}

fn cpus(list: &str) -> impl Iterator<Item = u32> + '_ {
    list.split(',').flat_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        first.trim().parse().unwrap_or(1)..=last.trim().parse().unwrap_or(0)
    })
}

fn arguments(options: &EalOptions, iova: Iova, kind: MemoryKind, mib: u32) -> Vec<String> {
    // The main lcore keeps every CPU it had: EAL pins the calling thread, and threads made later inherit that.
    let mut lcores = format!("0@({})", allowed_cpus());
    for lcore in &options.lcores {
        lcores.push_str(&format!(",{}@{}", lcore.id, lcore.cpu));
    }
    let prefix = format!("--file-prefix={PREFIX}{}", std::process::id());
    let mut args: Vec<String> =
        ["linerate", "--no-telemetry", iova.argument(), "--main-lcore=0"].map(String::from).into();
    args.extend([prefix, format!("--lcores={lcores}"), "-m".into(), mib.to_string()]);
    args.extend(match kind {
        MemoryKind::Huge => ["--in-memory", "--single-file-segments"].map(String::from),
        // Together with --in-memory, --no-huge is refused up to 24.11.
        MemoryKind::NoHuge => ["--no-huge", "--no-shconf"].map(String::from),
    });
    if options.pci.is_empty() {
        args.push("--no-pci".into());
    }
    for address in &options.pci {
        args.extend(["-a".into(), address.clone()]);
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_be_in_ordinary_pages_is_started_again() {
        let (auto, huge) = (Memory::Auto { mib: 256 }, Memory::Huge { mib: 256 });
        assert!([12, 13].into_iter().all(|errno| has_lost_hugepages(auto, MemoryKind::Huge, errno)));
        assert!(!has_lost_hugepages(auto, MemoryKind::Huge, 22), "an argument is wrong");
        assert!(!has_lost_hugepages(auto, MemoryKind::NoHuge, 12), "there is nothing else");
        assert!(!has_lost_hugepages(huge, MemoryKind::Huge, 12), "hugepages are asked for");
        assert!(!lost_hugepages());
    }

    #[test]
    fn the_kernels_cpu_lists_are_read() {
        assert_eq!(cpus("0-2,5, 7-8").collect::<Vec<_>>(), [0, 1, 2, 5, 7, 8]);
        assert_eq!(cpus("").count(), 0);
        assert_eq!(cpus("x-y").count(), 0);
    }

    #[test]
    fn lcores_are_checked_before_dpdk_sees_them() {
        let bad = |id, cpu| check_lcores(&[Lcore { id: 1, cpu: first() }, Lcore { id, cpu }]).unwrap_err();
        fn first() -> u32 {
            cpus(&allowed_cpus()).next().unwrap()
        }
        for (id, cpu) in [(0, first()), (1, first()), (2, 4000)] {
            assert!(matches!(bad(id, cpu), DpdkError::Lcore { lcore, .. } if lcore == id), "{id}");
        }
        insta::assert_snapshot!(bad(0, first()).to_string(), @"lcore 0: not a worker: must be 1 to 127");
        insta::assert_snapshot!(bad(1, first()).to_string(), @"lcore 1: given twice");
    }
}
