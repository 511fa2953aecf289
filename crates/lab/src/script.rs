//! A lab as a shell script: the same steps, for a terminal without Linerate.

use crate::{
    build::Build,
    line::{quoted, CommandLine, SCRIPT_DIR},
    step::{Program, Question, Step, Want},
};

/// The network namespace of the script.
const NAMESPACE: &str = "lab";

/// `await` repeats a test for half a minute. The others compare what a command prints, blanks and quotes aside: `is` with the
/// whole, `has` with parts, `times` with a number of parts.
const HELPERS: &str = r#"bare() { eval "$1" 2>/dev/null | tr -d ' \n\t"'; }
await() { n=0; until "$@" >/dev/null 2>&1; do n=$((n + 1)); [ $n -lt 600 ] || { echo "not so: $*"; break; }; sleep 0.05; done; }
is() { [ "$(bare "$1")" = "$2" ]; }
has() { out=$(bare "$1"); shift; for part; do case $out in *"$part"*) ;; *) return 1 ;; esac; done; }
times() { [ "$(bare "$2" | grep -oF -- "$3" | wc -l)" = "$1" ]; }

"#;

/// Programs that act on the network namespace they run in.
const IN_NAMESPACE: [&str; 2] = ["ethtool", "sysctl"];

/// The script that brings the lab up. Pasted into a shell of root, it leaves the shell with the lab running; its last lines
/// say how to measure and how to end it.
pub fn render(build: &Build) -> String {
    let mut out = format!(
        "# {}: {}\n# For a shell of root. Everything stays in the directory $d and the network namespace {NAMESPACE}.\n",
        build.topology.name, build.topology.description
    );
    out.push_str(&format!("d=$(mktemp -d /tmp/lab.XXXX); ip netns add {NAMESPACE}; pids=\n"));
    out.push_str(
        "export OVS_RUNDIR=$d OVS_LOGDIR=$d OVS_DBDIR=$d OVS_SYSCONFDIR=$d RUNTIME_DIRECTORY=$d XDG_RUNTIME_DIR=$d\n",
    );
    out.push_str(HELPERS);
    for nic in &build.options.phy {
        out.push_str(&format!("linerate ports --bind vfio-pci {nic}    # uio_pci_generic where there is no IOMMU\n"));
    }
    for step in &build.steps {
        out.push_str(&match step {
            Step::Write { path, text } => format!("cat >{path} <<'EOF'\n{text}\nEOF\n"),
            Step::Run(line) => format!("{}\n", in_namespace(line)),
            Step::Start(program) => start(program),
            Step::Await(question) => format!("# {}\nawait {}\n", question.what, test(question)),
        });
    }
    out.push_str(&format!("\n# Measure:\n# {}\n", measure(build)));
    let nics = match build.options.phy.as_slice() {
        [] => String::new(),
        nics => format!("linerate ports --give-back {}; ", nics.join(" ")),
    };
    out.push_str(&format!(
        "# End:\n# kill $pids; sleep 1; {nics}{}ip netns del {NAMESPACE}; rm -r $d\n",
        namespaces(build)
    ));
    out
}

fn measure(build: &Build) -> String {
    let ports: Vec<String> =
        build.tester.ports.iter().map(|port| format!("--port {}", port.replace(SCRIPT_DIR, "$d"))).collect();
    let mac = match build.tester.dst_mac.as_slice() {
        [] => String::new(),
        macs => format!(" --dst-mac {}", macs.join(",")),
    };
    let inside = if build.topology.kernel.is_empty() { String::new() } else { format!("ip netns exec {NAMESPACE} ") };
    format!("{inside}linerate bench --quick {}{mac} --tester-cpu {}", ports.join(" "), build.cpus.tester)
}

fn namespaces(build: &Build) -> String {
    build.topology.kernel.iter().map(|node| format!("ip netns del {}; ", node.name)).collect()
}

fn start(program: &Program) -> String {
    let cpus: Vec<String> = program.cpus.iter().map(u32::to_string).collect();
    let pinned = if cpus.is_empty() { String::new() } else { format!("taskset -c {} ", cpus.join(",")) };
    let name = &program.name;
    // A program that ends with its input gets one that stays open.
    let (make, input) = match program.wants_input {
        true => (format!("mkfifo {SCRIPT_DIR}/{name}.in\n"), format!("<>{SCRIPT_DIR}/{name}.in ")),
        false => (String::new(), "</dev/null ".to_owned()),
    };
    format!(
        "{make}ip netns exec {NAMESPACE} {pinned}{} {input}>{SCRIPT_DIR}/{name}.log 2>&1 & pids=\"$pids $!\"\n",
        program.line
    )
}

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
    // Read by `eval`, which expands $d.
    let command = format!("'{}'", line.to_string().replace('\'', r"'\''"));
    let bare = |text: &str| quoted(&text.chars().filter(|c| !c.is_whitespace() && *c != '"').collect::<String>());
    match &question.want {
        Want::Success => line.to_string(),
        Want::Prints(text) => format!("is {command} {}", bare(text)),
        Want::Holds(parts) => {
            format!("has {command} {}", parts.iter().map(|part| bare(part)).collect::<Vec<_>>().join(" "))
        }
        Want::Times(times, part) => format!("times {times} {command} {}", bare(part)),
        Want::Rings { ports, rings, .. } => {
            format!("times {} {command} {}", ports.len(), bare(&format!("num_of_vrings={rings},")))
        }
        Want::Queues(queues) => {
            let part = |(port, queue, _): &(String, u32, u32)| bare(&format!("port:{port}queue-id:{queue}"));
            format!("has {command} {}", queues.iter().map(part).collect::<Vec<_>>().join(" "))
        }
    }
}
