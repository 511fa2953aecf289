//! The programs of a lab: started, asked, watched, ended.

use std::{
    ffi::OsStr,
    fs::{self, File},
    hash::{DefaultHasher, Hasher},
    io::{Read, Seek, SeekFrom, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    time::{Duration, Instant},
};

use failure::Failure;
use rustix::{
    fs::{fcntl_add_seals, memfd_create, MemfdFlags, SealFlags},
    process::{kill_process_group, Pid, Signal},
    thread::{sched_setaffinity, CpuSet},
};

use crate::{line::CommandLine, numbers, protocol::ProgramStatus, step::Program};

/// Most bytes read of what a command prints or a log holds.
const MAX_TEXT: u64 = 1 << 20;

/// How long a command may take: all of them only ask or set.
pub const COMMAND: Duration = Duration::from_secs(20);

/// How long a program may take to answer on its input, and all of them to end by themselves.
const ANSWER: Duration = Duration::from_secs(3);
const QUIT: Duration = Duration::from_millis(700);

/// What a machine says on its console that will never boot; and how many lines are looked at for it.
const USELESS: [&str; 2] = ["No bootable device", "Kernel panic - not syncing"];
const LAST: usize = 12;

/// The PATH of a process that has none, such as the first one of a guest.
const BIN: &str = "/usr/local/bin:/usr/bin:/bin";

/// What the first process of a guest writes before a line.
pub const GUEST_SAYS: &str = "linerate: guest: ";

/// How Open vSwitch marks an error in its log.
const ERROR: &str = "|ERR|";

/// The programs of a switch. Without its database it answers questions after many seconds, if at all (seen in Open vSwitch 3.1).
pub const SWITCH: [&str; 2] = ["vswitchd", "ovsdb"];

/// Directories of administrators' programs, which a user's PATH lacks.
const SBIN: &str = "/usr/local/sbin:/usr/sbin:/sbin";

/// The programs that a lab has started.
pub struct Programs {
    dir: String,
    all: Vec<Running>,
}

struct Running {
    program: Program,
    child: Child,
    input: Option<ChildStdin>,
    log: PathBuf,
    ended: Option<String>,
    asked: u32,
}

/// What a command printed, and whether it succeeded.
pub struct Output {
    /// Whether it ended with 0.
    pub succeeded: bool,
    /// Standard output.
    pub printed: String,
    /// Standard error.
    pub errors: String,
}

impl Output {
    /// The line that says most.
    pub fn last_line(&self) -> String {
        let text = if self.errors.trim().is_empty() { &self.printed } else { &self.errors };
        let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("nothing");
        line.trim().chars().take(300).collect()
    }
}

impl Programs {
    /// No programs yet; logs go to this directory.
    pub fn new(dir: &str) -> Self {
        Self { dir: dir.to_owned(), all: Vec::new() }
    }

    /// A command in the lab's environment: private directories for everything that has some.
    fn command(&self, line: &CommandLine) -> Result<Command, Failure> {
        let (program, arguments) = line.0.split_first().ok_or_else(|| Failure::failed("an empty command"))?;
        let mut command = Command::new(program);
        command.args(arguments);
        for name in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR", "RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"]
        {
            command.env(name, &self.dir);
        }
        let path = std::env::var("PATH").unwrap_or_else(|_| BIN.to_owned());
        command.env("PATH", format!("{path}:{SBIN}")).env("LC_ALL", "C");
        Ok(command)
    }

    /// Runs a command to its end.
    ///
    /// # Errors
    ///
    /// (machine) when it is not there, or does not end.
    pub fn output(&self, line: &CommandLine) -> Result<Output, Failure> {
        self.output_within(line, COMMAND)
    }

    /// The same within a time of one's own.
    ///
    /// # Errors
    ///
    /// As [`Self::output`].
    pub fn output_within(&self, line: &CommandLine, within: Duration) -> Result<Output, Failure> {
        let mut command = self.command(line)?;
        let [mut out, mut errors] = [in_memory(line)?, in_memory(line)?];
        let to = |file: &File| file.try_clone().map_err(|e| missing(line, &e));
        command.stdin(Stdio::null()).stdout(to(&out)?).stderr(to(&errors)?).process_group(0);
        let mut child = command.spawn().map_err(|e| missing(line, &e))?;
        let until = Instant::now() + within;
        let status = loop {
            let too_long = [&out, &errors].iter().any(|file| file.metadata().is_ok_and(|meta| meta.len() > MAX_TEXT));
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if Instant::now() < until && !too_long => std::thread::sleep(Duration::from_millis(1)),
                _ => {
                    end_group(&mut child);
                    return Err(Failure::machine(match too_long {
                        true => format!("{line}: printed more than 1 MiB"),
                        false => format!("{line}: did not end within {} s", within.as_secs()),
                    }));
                }
            }
        };
        Ok(Output { succeeded: status.success(), printed: printed(&mut out), errors: printed(&mut errors) })
    }

    /// Starts a program, its output going to a log in the lab's directory.
    ///
    /// # Errors
    ///
    /// (machine) when it is not there.
    pub fn start(&mut self, program: &Program) -> Result<(), Failure> {
        let log = PathBuf::from(self.log_of(&program.name));
        let fail = |e: std::io::Error| Failure::machine(format!("{}: {e}", log.display()));
        let out = File::create(&log).map_err(fail)?;
        let errors = out.try_clone().map_err(fail)?;
        let mut command = self.command(&in_session(&program.line))?;
        let path = command.get_envs().find_map(|(name, value)| if name == "PATH" { value } else { None });
        let named = program.line.0.first().map_or("", String::as_str);
        // In a guest, setsid and env may be missing: the program runs without them. A missing program is named by the error.
        if ["setsid", "env", named].iter().any(|name| !is_there(name, path.unwrap_or_default())) {
            command = self.command(&program.line)?;
        }
        command.stdin(if program.wants_input { Stdio::piped() } else { Stdio::null() });
        let mut child = command.stdout(out).stderr(errors).spawn().map_err(|e| missing(&program.line, &e))?;
        pin(child.id(), &program.cpus);
        let input = child.stdin.take();
        self.all.push(Running { program: program.clone(), child, input, log, ended: None, asked: 0 });
        Ok(())
    }

    /// The first program that has ended, in words.
    pub fn dead(&mut self) -> Option<String> {
        self.all.iter_mut().find_map(|running| {
            running.look();
            let how = running.ended.as_ref()?;
            Some(format!("{} has ended ({how}): {}", running.program.name, running.last_words()))
        })
    }

    /// The line of a program's log that says most, in words: its last error, else its last line. `None` if no such program was
    /// started.
    pub fn last_line(&self, name: &str) -> Option<String> {
        let running = self.all.iter().find(|running| running.program.name == name)?;
        // A switch goes on telling its news after an error.
        Some(format!("{name} said last: {}", running.last_with(&[GUEST_SAYS, ERROR])))
    }

    /// What one of these programs has said that makes waiting for it useless: on the console of a machine.
    pub fn hopeless(&self, names: &[String]) -> Option<String> {
        let mut all = self.all.iter().filter(|running| names.contains(&running.program.name));
        all.find_map(|running| {
            let text = tail(&running.log, 0);
            let line = text.lines().rev().take(LAST).find(|line| USELESS.iter().any(|words| line.contains(words)))?;
            Some(format!("{} cannot boot: its console says {:?}", running.program.name, plain(line)))
        })
    }

    /// Where a program's output goes.
    pub fn log_of(&self, name: &str) -> String {
        format!("{}/{name}.log", self.dir)
    }

    /// Kills a program and waits for its end.
    ///
    /// # Errors
    ///
    /// (usage) when no such program was started.
    pub fn kill(&mut self, name: &str) -> Result<(), Failure> {
        let running = self.named(name)?;
        let _ = running.child.kill();
        let ended = running.child.wait().map_err(Failure::failed)?;
        running.ended = Some(ended.to_string());
        Ok(())
    }

    /// Starts a program again that has ended, as it was started first. Its log is begun anew.
    ///
    /// # Errors
    ///
    /// (usage) when no such program was started; (machine) when it cannot be run any more.
    pub fn start_again(&mut self, name: &str) -> Result<(), Failure> {
        self.kill(name)?;
        let program = self.named(name)?.program.clone();
        self.all.retain(|running| running.program.name != name);
        self.start(&program)
    }

    fn named(&mut self, name: &str) -> Result<&mut Running, Failure> {
        let wrong = || Failure::usage(format!("no program {name} was started here"));
        self.all.iter_mut().find(|running| running.program.name == name).ok_or_else(wrong)
    }

    /// Whether a program was started here and has ended.
    pub fn has_ended(&mut self, name: &str) -> bool {
        self.all.iter_mut().find(|running| running.program.name == name).is_some_and(|running| {
            running.look();
            running.ended.is_some()
        })
    }

    /// Whether the lab's switch, or its database, has ended.
    pub fn switch_has_ended(&mut self) -> bool {
        SWITCH.iter().any(|program| self.has_ended(program))
    }

    /// Which run of a program this is, as a number that another run of it does not have, nor one of another boot; `None` if it
    /// was not started here.
    pub fn run_of(&self, name: &str) -> Option<u64> {
        let running = self.all.iter().find(|running| running.program.name == name)?;
        let mut hasher = DefaultHasher::new();
        hasher.write_u32(running.child.id());
        hasher.write(boot_id().unwrap_or_default().as_bytes());
        Some(hasher.finish())
    }

    /// Which boot of the kernel here this is, as a number that another boot does not have.
    pub fn boot() -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        hasher.write(boot_id()?.as_bytes());
        Some(hasher.finish())
    }

    /// How each program is.
    pub fn status(&mut self) -> Vec<ProgramStatus> {
        self.all.iter_mut().map(Running::status).collect()
    }

    /// Writes a line to the input of dpdk-testpmd and returns what it printed.
    pub fn ask(&mut self, name: &str, line: &str) -> Option<String> {
        self.all.iter_mut().find(|running| running.program.name == name)?.ask(line)
    }

    /// Tells the programs to end, and gives them a moment: what is left ends with the lab.
    pub fn quit(&mut self) {
        for running in &mut self.all {
            if let (Some(word), Some(input)) = (&running.program.quits_by, &mut running.input) {
                let _ = writeln!(input, "{word}").and_then(|()| input.flush());
            }
        }
        let until = Instant::now() + QUIT;
        let wanted = |running: &Running| running.program.quits_by.is_some();
        while Instant::now() < until && self.all.iter_mut().any(|r| wanted(r) && r.look().is_none()) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Running {
    /// How it ended; `None` while it runs.
    fn look(&mut self) -> Option<&String> {
        if self.ended.is_none() {
            if let Ok(Some(status)) = self.child.try_wait() {
                self.ended = Some(status.to_string());
            }
        }
        self.ended.as_ref()
    }

    fn status(&mut self) -> ProgramStatus {
        let ended = self.look().cloned();
        let pid = if ended.is_none() { host_pid(self.child.id()) } else { None };
        let threads = pid.map(threads).unwrap_or_default();
        ProgramStatus { name: self.program.name.clone(), pid, threads, ended }
    }

    /// The last line of its log.
    fn last_words(&self) -> String {
        // A guest's kernel has the last word on its console, but not the one that says why.
        self.last_with(&[GUEST_SAYS])
    }

    /// The last line of its log that has one of these marks, the first of them first; if none has, the last.
    fn last_with(&self, marks: &[&str]) -> String {
        let text = tail(&self.log, 0);
        let mut lines = text.lines().rev().map(plain).filter(|line| !line.is_empty());
        let marked = marks.iter().find_map(|mark| lines.clone().find(|line| line.contains(mark)));
        marked.or_else(|| lines.next()).unwrap_or_else(|| "it printed nothing".to_owned())
    }

    fn ask(&mut self, line: &str) -> Option<String> {
        // It echoes a line when it comes to it: an echoed second line ends the answer to the first.
        self.asked += 1;
        let mark = format!("end_of_answer_{}_", self.asked);
        let before = fs::metadata(&self.log).ok()?.len();
        let input = self.input.as_mut()?;
        writeln!(input, "{line}\n{mark}").and_then(|()| input.flush()).ok()?;
        let until = Instant::now() + ANSWER;
        loop {
            let text = tail(&self.log, before);
            if let Some((answer, _)) = text.split_once(&mark) {
                return Some(answer.to_owned());
            }
            if Instant::now() >= until || self.look().is_some() {
                return None;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// A file for what a command prints. A program that it leaves behind may keep its output open: a pipe would be waited for then,
/// and a file is not.
fn in_memory(line: &CommandLine) -> Result<File, Failure> {
    let file = memfd_create("output", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).map(File::from);
    file.map_err(|e| missing(line, &e.into()))
}

/// What a command has printed until its end.
fn printed(file: &mut File) -> String {
    // A program that was left behind takes no more memory.
    let _ = fcntl_add_seals(&*file, SealFlags::GROW);
    let mut bytes = Vec::new();
    if file.rewind().is_ok() {
        let _ = file.take(MAX_TEXT).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn boot_id() -> Option<String> {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()
}

/// Kills a command with what it has started.
fn end_group(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// A line of a log without what moves the cursor and sets colours: a console has such.
fn plain(line: &str) -> String {
    let mut out = String::new();
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            if chars.next() == Some('[') {
                chars.by_ref().find(|c| ('@'..='~').contains(c));
            }
        } else if !c.is_control() {
            out.push(c);
        }
    }
    out.trim().chars().take(300).collect()
}

/// The text of a log from this byte on, or its end.
fn tail(log: &PathBuf, from: u64) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(from.max(length.saturating_sub(MAX_TEXT))))?;
        let mut bytes = Vec::new();
        file.take(MAX_TEXT).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
}

fn missing(line: &CommandLine, e: &std::io::Error) -> Failure {
    let program = line.0.first().map_or("", String::as_str);
    let package = match line.program() {
        "stdbuf" => "coreutils",
        "dpdk-testpmd" => "dpdk-dev",
        "ovs-vswitchd-dpdk" | "ovsdb-server" | "ovsdb-tool" | "ovs-vsctl" | "ovs-ofctl" | "ovs-appctl" => {
            "openvswitch-switch-dpdk"
        }
        "ip" => "iproute2",
        "ethtool" => "ethtool",
        "sysctl" => "procps",
        _ => "",
    };
    match package {
        "" => Failure::machine(format!("cannot run {program}: {e}")),
        _ => Failure::machine(format!("cannot run {program}: {e}: sudo apt-get install -y {package}")),
    }
}

/// Whether a program can be found, by its path or in the directories of `path`.
fn is_there(program: &str, path: &OsStr) -> bool {
    program.contains('/') && Path::new(program).exists()
        || std::env::split_paths(path).any(|dir| dir.join(program).exists())
}

/// A program in a session of its own. Kernels with `sched_autogroup` share a CPU by session, and give a session on several CPUs a
/// new weight each time one of its threads wakes up. On a CPU that takes turns among threads which sleep often, such a session then
/// keeps the CPU (seen in Linux 6.18): neither the tester in another one nor the kernel's own threads ran, for up to 430 s. One
/// program on one CPU keeps its weight.
///
/// And one that writes to a switch which has just gone gets an error: dpdk-testpmd would end by SIGPIPE.
fn in_session(line: &CommandLine) -> CommandLine {
    CommandLine::words("setsid env --ignore-signal=PIPE").with(line.0.iter().cloned())
}

/// Lets a process run on these CPUs only. Programs that pin their threads do so later.
fn pin(pid: u32, cpus: &[u32]) {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return };
    if cpus.is_empty() {
        return;
    }
    let mut set = CpuSet::new();
    cpus.iter().filter(|&&cpu| (cpu as usize) < CpuSet::MAX_CPU).for_each(|&cpu| set.set(cpu as usize));
    let _ = sched_setaffinity(Some(pid), &set);
}

/// A process of the lab as the machine counts it: `/proc` is the machine's, and `NSpid` has both numbers.
fn host_pid(pid: u32) -> Option<u32> {
    let own = fs::read_link("/proc/self").ok()?;
    let own = own.to_str()?.to_owned();
    // Children of the holder only: other labs have the same numbers.
    let children = fs::read_to_string(format!("/proc/{own}/task/{own}/children")).ok()?;
    children
        .split_whitespace()
        .filter_map(|child| child.parse::<u32>().ok())
        .find(|child| numbers::inner(Path::new(&format!("/proc/{child}"))) == Some(pid))
}

/// The threads of a process, with the CPUs that each may use, as read back.
fn threads(pid: u32) -> Vec<(String, String)> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let one = |entry: fs::DirEntry| {
        let name = fs::read_to_string(entry.path().join("comm")).ok()?.trim().to_owned();
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.trim().to_owned();
        Some((name, cpus))
    };
    entries.flatten().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(line: &str) -> (tempfile::TempDir, Programs) {
        let dir = tempfile::tempdir().unwrap();
        let mut programs = Programs::new(dir.path().to_str().unwrap());
        let line = CommandLine::words("sh -c").with([line]);
        let program = Program { name: "vm1".into(), line, cpus: Vec::new(), wants_input: false, quits_by: None };
        programs.start(&program).unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        while programs.dead().is_none() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        (dir, programs)
    }

    #[test]
    fn a_command_is_waited_for_and_not_what_it_leaves_behind() {
        let programs = Programs::new("/tmp");
        let sh = |text: &str, within: u64| {
            programs.output_within(&CommandLine::words("sh -c").with([text]), Duration::from_millis(within))
        };
        let begun = Instant::now();
        let out = sh("sleep 30 & echo said; echo more >&2", 10_000).unwrap();
        assert_eq!((out.succeeded, out.printed.as_str(), out.errors.as_str()), (true, "said\n", "more\n"));
        let ended = |text: &str, within: u64| sh(text, within).map(|out| out.printed).unwrap_err().exit;
        assert_eq!(ended("sleep 30 & sleep 30", 50), failure::Exit::Machine);
        assert_eq!(ended("yes", 10_000), failure::Exit::Machine);
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        assert!(!sh("exit 3", 10_000).unwrap().succeeded);
    }

    #[test]
    fn a_program_is_a_session_of_its_own() {
        // The sixth number of a process is its session (proc(5)).
        let (dir, programs) = ran("read -r own rest </proc/self/stat; echo $$; cut -d' ' -f6 /proc/$$/stat");
        let said = fs::read_to_string(dir.path().join("vm1.log")).unwrap();
        let lines: Vec<&str> = said.lines().collect();
        assert!(matches!(lines[..], [own, session] if own == session), "{lines:?}");
        drop(programs);
        // What is not there is named, with or without one.
        let mut programs = Programs::new(dir.path().to_str().unwrap());
        let line = CommandLine::words("/no/such/program");
        let program = Program { name: "x".into(), line, cpus: Vec::new(), wants_input: false, quits_by: None };
        assert!(programs.start(&program).unwrap_err().text.contains("cannot run /no/such/program"));
    }

    #[test]
    fn a_console_that_will_never_boot_is_not_waited_for() {
        let names = ["vm1".to_owned()];
        let (_dir, programs) =
            ran(r"printf 'SeaBIOS\033[2J\nBooting from Hard Disk...\nBoot failed\n\033[1mNo bootable device.\r\n\n'");
        assert_eq!(
            programs.hopeless(&names).as_deref(),
            Some("vm1 cannot boot: its console says \"No bootable device.\"")
        );
        assert_eq!((programs.hopeless(&[]), programs.last_line("vm2")), (None, None));
        let (_dir, programs) = ran("echo GRUB loading; echo; echo 'linerate: guest: no eth0'; echo reboot");
        assert_eq!(programs.hopeless(&names), None);
        assert_eq!(programs.last_line("vm1").as_deref(), Some("vm1 said last: linerate: guest: no eth0"));
    }

    #[test]
    fn an_error_of_a_switch_says_more_than_its_news() {
        let (_dir, mut programs) = ran("echo 'a|ERR|x'; echo 'b|ERR|y'; echo 'c|INFO|rules:8'");
        assert_eq!(programs.last_line("vm1").as_deref(), Some("vm1 said last: b|ERR|y"));
        // Of one that has ended the last line counts.
        assert!(programs.dead().unwrap().ends_with("c|INFO|rules:8"));
    }
}
