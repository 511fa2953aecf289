//! A lab as a shell script: the same steps, for a terminal without Linerate.

use std::collections::BTreeSet;

use crate::{
    build::Build,
    line::{quoted, CommandLine, SCRIPT_DIR},
    step::{Program, Question, Step, Want},
    view,
};

/// The network namespace of the script.
const NAMESPACE: &str = "lab";

/// Before anything is made: what is missing, and what an earlier script left. `CHECKED` are the programs.
const FIRST: &str = r#"[ "$(id -u)" = 0 ] || { echo "lab: this script needs root" >&2; exit 4; }
for program in CHECKED; do
    command -v "$program" >/dev/null || { echo "lab: $program is not installed" >&2; exit 4; }
done
if ip netns list | grep -q '^NAMESPACE\>'; then
    echo "lab: the network namespace NAMESPACE is there already: end the lab that has it, or ip netns del NAMESPACE" >&2
    exit 4
fi
"#;

/// `$d/end` ends the lab. A script that fails or is stopped runs it. `await` repeats a test so many seconds. The other tests
/// compare what a command prints, blanks and quotes aside: `is` with the whole, `has` with parts, `count` with a number of parts.
const HELPERS: &str = r#"cat >"$d/end" <<'EOF'
d=${0%/*}
alive() {
    for pid in $(cat "$d/pids"); do
        grep -q '^State:.[^ZX]' "/proc/$pid/status" 2>/dev/null && echo "$pid"
    done
}
kill $(alive) 2>/dev/null
for tenth in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
    [ "$(alive)" ] || break
    [ $tenth -lt 20 ] || kill -9 $(alive) 2>/dev/null
    sleep 0.1
done
. "$d/undo"
rm -r "$d"
EOF
: >"$d/pids"
: >"$d/undo"
up=
gone() { tail -n 2 "$d"/*.log || :; echo "lab: it did not come up, and nothing is left of it"; sh "$d/end"; }
trap '[ "$up" ] || gone >&2' EXIT
bare() { eval "$1" 2>/dev/null | tr -d ' \n\t"'; }
await() {
    by=$(($(date +%s) + $1)); shift
    until "$@" >/dev/null 2>&1; do
        [ "$(date +%s)" -lt "$by" ] || { echo "lab: not in time: $*" >&2; return 1; }
        sleep 0.05
    done
}
is() { [ "$(bare "$1")" = "$2" ]; }
has() { out=$(bare "$1"); shift; for part; do case $out in *"$part"*) ;; *) return 1 ;; esac; done; }
count() { [ "$(bare "$2" | grep -oF -- "$3" | wc -l)" -eq "$1" ]; }

"#;

/// Programs that act on the network namespace they run in.
const IN_NAMESPACE: [&str; 2] = ["ethtool", "sysctl"];

/// The script that brings the lab up, for a POSIX shell. Its body is a subshell: pasted into a terminal, a failure does not end
/// the shell there, and `$d` stays. What it prints last says how to measure and how to end it.
pub fn render(build: &Build) -> String {
    let mut out = format!(
        "#!/bin/sh\n# {}: {}\n# For root: sh FILE, or paste it into a shell. Everything stays in the directory $d and the network \
         namespace {NAMESPACE}.\n",
        comment(&build.topology.name),
        comment(&build.topology.description)
    );
    view::cpus(build).lines().for_each(|line| out.push_str(&format!("# {line}\n")));
    out.push_str("d=$(mktemp -d /tmp/lab.XXXXXX) && (\nset -eu\n");
    out.push_str("trap 'rm -r \"$d\"' EXIT\ntrap 'exit 130' INT\ntrap 'exit 143' TERM HUP\n");
    out.push_str(&FIRST.replace("CHECKED", &programs(build).join(" ")).replace("NAMESPACE", NAMESPACE));
    out.push_str("export OVS_RUNDIR=\"$d\" OVS_LOGDIR=\"$d\" OVS_DBDIR=\"$d\" OVS_SYSCONFDIR=\"$d\"\n");
    out.push_str("export RUNTIME_DIRECTORY=\"$d\" XDG_RUNTIME_DIR=\"$d\"\n");
    out.push_str(HELPERS);
    out.push_str(&namespace(NAMESPACE));
    for nic in &build.options.phy {
        let nic = quoted(nic);
        out.push_str(&format!("echo linerate ports --give-back {nic} >>\"$d/undo\"\n"));
        out.push_str(&format!("linerate ports --bind vfio-pci {nic}    # uio_pci_generic where there is no IOMMU\n"));
    }
    for step in &build.steps {
        out.push_str(&match step {
            Step::Write { path, text } => format!("cat >{} <<'EOF'\n{text}\nEOF\n", quoted(path)),
            Step::Run(line) => match line.0.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
                ["ip", "netns", "add", name] => namespace(name),
                _ => format!("{}\n", in_namespace(line)),
            },
            Step::Start(program) => start(program),
            Step::Await(question) => {
                let within = question.within.as_secs();
                format!("# {}\nawait {within} {}\n", comment(&question.what), test(question))
            }
        });
    }
    out.push_str(&format!(
        "\nup=yes\ncat <<EOF\nlab {} is up in $d\n# Measure:\n{}\n# End:\nsh $d/end\nEOF\n)\n",
        build.topology.name,
        measure(build)
    ));
    out
}

/// A text that stays in its line.
fn comment(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Makes a network namespace, which the end removes.
fn namespace(name: &str) -> String {
    let name = quoted(name);
    format!("ip netns add {name}\necho ip netns del {name} >>\"$d/undo\"\n")
}

/// The programs that the script calls.
fn programs(build: &Build) -> Vec<String> {
    let mut all = vec!["ip".to_owned()];
    if !build.options.phy.is_empty() {
        all.push("linerate".to_owned());
    }
    for step in &build.steps {
        let (line, pinned) = match step {
            Step::Run(line) | Step::Await(Question { line, .. }) => (line, false),
            Step::Start(Program { line, cpus, .. }) => (line, !cpus.is_empty()),
            Step::Write { .. } => continue,
        };
        let pin = pinned.then(|| "taskset".to_owned());
        all.extend(pin.into_iter().chain(line.0.first().map(|program| quoted(program))));
    }
    let mut seen = BTreeSet::new();
    all.retain(|program| seen.insert(program.clone()));
    all
}

fn measure(build: &Build) -> String {
    let ports: Vec<String> = build.tester.ports.iter().map(|port| format!("--port {port}")).collect();
    let mac = match build.tester.dst_mac.as_slice() {
        [] => String::new(),
        macs => format!(" --dst-mac {}", macs.join(",")),
    };
    let inside = if build.topology.kernel.is_empty() { String::new() } else { format!("ip netns exec {NAMESPACE} ") };
    // As `bench --lab` measures such a lab.
    let evidence = if build.cpus.takes_turns() { " --evidence whole-trial" } else { "" };
    format!("{inside}linerate bench --quick {}{mac} --tester-cpu {}{evidence}", ports.join(" "), build.cpus.tester)
}

fn start(program: &Program) -> String {
    let cpus: Vec<String> = program.cpus.iter().map(u32::to_string).collect();
    let pinned = if cpus.is_empty() { String::new() } else { format!("taskset -c {} ", cpus.join(",")) };
    let file = |end: &str| quoted(&format!("{SCRIPT_DIR}/{}.{end}", program.name));
    // A program that ends with its input gets one that stays open.
    let (make, input) = match program.wants_input {
        true => (format!("mkfifo {}\n", file("in")), format!("<>{} ", file("in"))),
        false => (String::new(), "</dev/null ".to_owned()),
    };
    format!(
        "{make}ip netns exec {NAMESPACE} {pinned}{} {input}>{} 2>&1 &\necho $! >>\"$d/pids\"\n",
        program.line,
        file("log")
    )
}

/// A command that acts on the script's network namespace.
fn in_namespace(line: &CommandLine) -> CommandLine {
    let words: Vec<&str> = line.0.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["ip", "netns" | "-n", ..] => line.clone(),
        ["ip", rest @ ..] => CommandLine::words("ip -n").with([NAMESPACE]).with(rest.iter().copied()),
        [program, ..] if IN_NAMESPACE.contains(program) => {
            CommandLine::words("ip netns exec").with([NAMESPACE]).with(words.iter().copied())
        }
        _ => line.clone(),
    }
}

/// The question as a test that `await` repeats.
fn test(question: &Question) -> String {
    let line = in_namespace(&question.line);
    let text = match line.0.as_slice() {
        [shell, option, script] if shell == "sh" && option == "-c" => script.clone(),
        _ => line.to_string(),
    };
    // Read by `eval`, which expands $d.
    let command = format!("'{}'", text.replace('\'', r"'\''"));
    let bare = |text: &str| quoted(&text.chars().filter(|c| !c.is_whitespace() && *c != '"').collect::<String>());
    match &question.want {
        Want::Success => line.to_string(),
        Want::Prints(text) => format!("is {command} {}", bare(text)),
        Want::Holds(parts) => {
            format!("has {command} {}", parts.iter().map(|part| bare(part)).collect::<Vec<_>>().join(" "))
        }
        Want::Times(times, part) => format!("count {times} {command} {}", bare(part)),
        Want::Rings { ports, rings, .. } => {
            format!("count {} {command} {}", ports.len(), bare(&format!("num_of_vrings={rings},")))
        }
        Want::Queues(queues) => {
            let part = |(port, queue, _): &(String, u32, u32)| bare(&format!("port:{port}queue-id:{queue}"));
            format!("has {command} {}", queues.iter().map(part).collect::<Vec<_>>().join(" "))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        io::Write,
        os::unix::fs::PermissionsExt,
        path::Path,
        process::{Command, Output, Stdio},
    };

    use super::*;
    use crate::{options::GuestKind, topology, LabOptions};

    fn script(name: &str, options: LabOptions) -> String {
        let topology = topology::load(name).unwrap();
        render(&Build::new(topology, options, &[0, 1], "linerate", SCRIPT_DIR).unwrap())
    }

    #[test]
    fn every_script_is_one_of_a_posix_shell() {
        for name in topology::names() {
            for guests in [GuestKind::Process, GuestKind::Tcg] {
                if guests == GuestKind::Tcg && ["phy-phy", "flow-loggers-12", "vxlan-forward"].contains(&name) {
                    continue;
                }
                let topology = topology::load(name).unwrap();
                let process = GuestKind::Process;
                let kernels = if topology.kernel.is_empty() { process } else { guests };
                let guests = if topology.guest.is_empty() { process } else { guests };
                let text = script(name, LabOptions { guests, kernels, ..LabOptions::default() });
                assert!(text.starts_with("#!/bin/sh\n"), "{text}");
                for shell in ["dash", "bash"] {
                    let mut child = Command::new(shell).arg("-n").stdin(Stdio::piped()).spawn().unwrap();
                    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
                    assert!(child.wait().unwrap().success(), "{shell}: {text}");
                }
            }
        }
    }

    #[test]
    fn a_lab_whose_threads_take_turns_is_measured_by_whole_trials() {
        assert!(script("phy-vm-phy", LabOptions::default()).contains(" --tester-cpu 1 --evidence whole-trial\n"));
        assert!(script("phy-ovs-phy", LabOptions::default()).contains(" --tester-cpu 1\n"));
    }

    /// Programs that stand for those of a machine: `ip` fails if its arguments hold `fails`.
    fn stand_ins(dir: &Path, fails: &str) {
        let ip = format!(
            "echo \"$*\" >>{0}/called\ncase \"$*\" in *'{fails}'*) echo made to fail >&2; exit 1 ;; 'netns list') exit ;; \
             *taskset*) exec sleep 600 ;; *show*) ;; *) exit ;; esac\necho state UP state forwarding state forwarding",
            dir.display()
        );
        let mktemp = format!("mkdir {0}/lab && echo {0}/lab", dir.display());
        for (name, text) in [
            ("ip", ip.as_str()),
            ("mktemp", &mktemp),
            ("id", "echo 0"),
            ("ethtool", ""),
            ("sysctl", ""),
            ("linerate", ""),
        ] {
            let path = dir.join(name);
            fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    /// Runs a script, then these lines, in a shell that reads them from its input.
    fn run(dir: &Path, shell: &[&str], text: &str) -> Output {
        let path = format!("{}:/usr/bin:/bin", dir.display());
        let mut command = Command::new(shell[0]);
        command.args(&shell[1..]).env("PATH", path).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    const SHELLS: [&[&str]; 3] = [&["dash"], &["bash", "--posix"], &["bash", "--norc", "-i"]];

    #[test]
    fn a_script_brings_up_and_its_end_leaves_nothing() {
        for (topology, shell) in ["phy-phy", "kernel-bridge"].into_iter().flat_map(|t| SHELLS.map(|shell| (t, shell))) {
            let dir = tempfile::tempdir().unwrap();
            stand_ins(dir.path(), "never");
            // Pasted, the directory is still known.
            let text = script(topology, LabOptions::default()) + "\ncat $d/pids | wc -w; sh $d/end; echo after $?\n";
            let out = run(dir.path(), shell, &text);
            let printed = String::from_utf8_lossy(&out.stdout).into_owned();
            let programs = if topology == "phy-phy" { "1" } else { "0" };
            let lab = dir.path().join("lab");
            for wanted in [
                format!("lab {topology} is up in {}\n# Measure:\n", lab.display()),
                format!("# End:\nsh {}/end\n{programs}\nafter 0", lab.display()),
            ] {
                assert!(printed.contains(&wanted), "{shell:?}: {printed}{}", String::from_utf8_lossy(&out.stderr));
            }
            assert!(!lab.exists(), "{shell:?}");
            assert!(fs::read_to_string(dir.path().join("called")).unwrap().contains("netns del lab"));
        }
    }

    #[test]
    fn a_script_that_fails_leaves_nothing_and_does_not_end_the_shell_it_was_pasted_into() {
        // A namespace that is another lab's stays; of a later step what came before is undone.
        for (fails, undone) in [("netns add lab", false), ("link set t0 up", true), ("netns list", false)] {
            for shell in SHELLS {
                let dir = tempfile::tempdir().unwrap();
                stand_ins(dir.path(), fails);
                let text = script("kernel-bridge", LabOptions::default()) + "\necho after $?\n";
                let out = run(dir.path(), shell, &text);
                let printed = String::from_utf8_lossy(&out.stdout).into_owned();
                let went_on = fails == "netns list";
                assert_eq!(printed.contains("after 0"), went_on, "{shell:?} {fails}: {printed}");
                assert_eq!(printed.contains("is up"), went_on, "{shell:?} {fails}: {printed}");
                assert!(printed.contains("after "), "{shell:?}: {printed}");
                assert_eq!(dir.path().join("lab").exists(), went_on, "{shell:?} {fails}");
                let called = fs::read_to_string(dir.path().join("called")).unwrap();
                assert_eq!(called.contains("netns del lab"), undone, "{shell:?}: {called}");
            }
        }
    }

    #[test]
    fn a_namespace_of_another_lab_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        stand_ins(dir.path(), "never");
        let ip = format!("#!/bin/sh\necho \"$*\" >>{}/called\necho 'lab (id: 3)'\n", dir.path().display());
        fs::write(dir.path().join("ip"), ip).unwrap();
        let out = run(dir.path(), &["dash"], &script("kernel-bridge", LabOptions::default()));
        assert_eq!(out.status.code(), Some(4));
        assert!(String::from_utf8_lossy(&out.stderr).contains("is there already"));
        assert_eq!(fs::read_to_string(dir.path().join("called")).unwrap(), "netns list\n");
        assert!(!dir.path().join("lab").exists());
    }
}
