//! Whether KVM runs a guest here: shown by booting one, since `/dev/kvm` is there on machines where guests hang.

use std::{
    fs,
    io::Read,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    time::Duration,
};

use lab::vm::kernel::Kernel;

const QEMU: &str = "qemu-system-x86_64";

/// How long a kernel may take to its first line: well below a second where it runs.
const FIRST_LINE: Duration = Duration::from_secs(5);

/// What every Linux says first.
const WORDS: &[u8] = b"Linux version";

/// Whether KVM runs a guest, and why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kvm {
    /// A guest came to its first line.
    Runs,
    /// Not, for this reason.
    Not(String),
}

/// Boots a kernel under KVM to its first line. What was found is kept in the directory that `kept` makes, if it does, for this boot
/// of the machine, this kernel and this QEMU. It is made only where there is something to keep.
pub fn kvm(kept: impl FnOnce() -> Option<PathBuf>) -> Kvm {
    if fs::OpenOptions::new().read(true).write(true).open("/dev/kvm").is_err() {
        return Kvm::Not("/dev/kvm is not there, or may not be opened".to_owned());
    }
    let Some(kernel) = Kernel::find() else { return Kvm::Not("no kernel to boot".to_owned()) };
    let Some(key) = key(&kernel) else {
        return Kvm::Not("qemu-system-x86_64 is missing: sudo apt-get install -y qemu-system-x86".to_owned());
    };
    let kept = kept();
    if let Some(found) = kept
        .as_ref()
        .and_then(|dir| fs::read_to_string(dir.join("kvm")).ok())
        .as_deref()
        .and_then(|text| recall(text, &key))
    {
        return found;
    }
    let found = boot(&kernel);
    if let Some(dir) = kept {
        let word = match &found {
            Kvm::Runs => "runs",
            Kvm::Not(why) => why,
        };
        // Only a saving of time.
        let _ = fs::write(dir.join("kvm"), format!("{key}\n{word}\n"));
    }
    found
}

fn recall(text: &str, key: &str) -> Option<Kvm> {
    let (of, word) = text.split_once('\n')?;
    (of == key).then(|| match word.trim() {
        "runs" => Kvm::Runs,
        why => Kvm::Not(why.to_owned()),
    })
}

/// What the answer depends on; `None` without QEMU.
fn key(kernel: &Kernel) -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let version = Command::new(QEMU).arg("--version").output().ok()?.stdout;
    let version = String::from_utf8_lossy(&version).lines().next().unwrap_or_default().to_owned();
    Some(format!("{} {} {version}", boot.trim(), kernel.release))
}

fn boot(kernel: &Kernel) -> Kvm {
    let line =
        "-nodefaults -no-user-config -nographic -no-reboot -machine q35,accel=kvm -cpu host,migratable=off -m 256M \
                -serial stdio -append";
    // A guest that hangs ends with this process, also when that is killed.
    let started = Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "--", QEMU])
        .args(line.split_ascii_whitespace())
        .args(["console=ttyS0 earlyprintk=serial panic=-1", "-kernel"])
        .arg(&kernel.image)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    match started {
        Ok(child) => watch(child),
        Err(e) => Kvm::Not(format!("cannot run setpriv: {e}: sudo apt-get install -y util-linux")),
    }
}

/// Waits for the first line, the end, or the deadline, and ends the guest.
fn watch(mut child: Child) -> Kvm {
    let (tell, told) = mpsc::channel();
    if let Some(mut out) = child.stdout.take() {
        std::thread::spawn(move || {
            let (mut all, mut bytes) = (Vec::new(), [0; 1024]);
            while let Ok(n @ 1..) = out.read(&mut bytes) {
                all.extend_from_slice(bytes.get(..n).unwrap_or_default());
                if all.windows(WORDS.len()).any(|window| window == WORDS) {
                    let _ = tell.send(());
                    return;
                }
            }
        });
    }
    let heard = told.recv_timeout(FIRST_LINE);
    let _ = child.kill();
    let _ = child.wait();
    if heard.is_ok() {
        return Kvm::Runs;
    }
    let mut errors = String::new();
    if let Some(pipe) = child.stderr.take() {
        let _ = pipe.take(1 << 16).read_to_string(&mut errors);
    }
    let said = errors.lines().find(|line| !line.trim().is_empty()).unwrap_or("it ended").trim().to_owned();
    Kvm::Not(match heard {
        // Its output is closed: it ended, whether or not the kernel has it as a zombie yet.
        Err(RecvTimeoutError::Disconnected) => format!("QEMU ends under KVM: {said}"),
        _ => format!("KVM is there, but a kernel does not come to its first line within {} s", FIRST_LINE.as_secs()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str) -> Kvm {
        let child = Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        watch(child.unwrap())
    }

    #[test]
    fn a_guest_that_speaks_runs_and_others_are_told_apart() {
        assert_eq!(run("printf 'SeaBIOS\\nLinux ver'; sleep 0.1; echo 'sion 6.1'; exec sleep 30"), Kvm::Runs);
        let Kvm::Not(ended) = run("echo 'failed to set MSR' >&2; exit 1") else { unreachable!() };
        assert!(ended.contains("MSR"), "{ended}");
        let Kvm::Not(hung) = run("exec sleep 30") else { unreachable!() };
        assert!(!hung.contains("ends"), "{hung}");
    }

    #[test]
    fn what_was_found_is_kept_for_the_same_machine_only() {
        assert_eq!(recall("a b\nruns\n", "a b"), Some(Kvm::Runs));
        assert_eq!(recall("a b\nno reason\n", "a b"), Some(Kvm::Not("no reason".to_owned())));
        assert_eq!(recall("a b\nruns\n", "a c"), None);
        assert_eq!(recall("", "a"), None);
    }
}
