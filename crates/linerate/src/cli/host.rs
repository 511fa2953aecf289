//! Flags of `linerate host`.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use host::{
    core_plan::Purpose,
    cpu_set::{self, CpuSet},
    pcie::{Link, NicKind},
    tuning::Format,
};

/// `linerate host`
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct HostArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: HostCommand,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum HostCommand {
    /// Find what spoils figures on this machine: what each finding costs, and what mends it.
    Audit(AuditArgs),
    /// Say which core does what, and what is to be changed for it.
    Plan(PlanArgs),
    /// Make the changes of a plan. Each is written down before it is made; revert takes them back.
    Apply {
        /// The plan, made by `host plan --out FILE`.
        #[arg(long, value_name = "FILE")]
        plan: PathBuf,
        /// Keep the changes beyond a boot, in files of ours only: grub.d, sysctl.d, a systemd unit.
        #[arg(long)]
        persist: bool,
        /// Print the changes as commands and make none.
        #[arg(long)]
        dry_run: bool,
    },
    /// Say what is applied.
    Status,
    /// Take everything back that was applied, after a crash and after a boot too.
    Revert {
        /// Only what lasts until the next boot.
        #[arg(long)]
        runtime: bool,
        /// Wait for the end of standard input first: what `bench --tune` leaves behind for the case that it dies.
        #[arg(long, hide = true)]
        when_input_ends: bool,
    },
    /// Measure what one setting is worth here: without and with it in turn, through apply and revert. As root.
    Effect(EffectArgs),
    /// Show who interrupts which core, how often, for how long and by what, until Ctrl-C.
    Watch {
        /// The cores.
        #[command(flatten)]
        cores: CoresArgs,
        /// CPUs to watch. Default: the busy ones of the plan.
        #[arg(long, value_name = "CPU,...", value_delimiter = ',', value_parser = cpu_set::parse)]
        cpus: Vec<CpuSet>,
        /// Time between two looks: 100ms to 1h.
        #[arg(long, value_name = "TIME", default_value = "1s")]
        interval: String,
        /// Looks. Default: until Ctrl-C.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        count: Option<u64>,
        /// Print a line of JSON for each look.
        #[arg(long)]
        json: bool,
    },
    /// Say what the slot of a NIC can carry, and what another slot could.
    Pcie {
        /// NICs by PCI address or interface. Default: all.
        nics: Vec<String>,
        /// Bytes of a frame, FCS included: 64 to 16383.
        #[arg(long, value_name = "BYTES", default_value = "64", value_parser = clap::value_parser!(u32).range(64..=16383))]
        frame_size: u32,
        /// A slot that is not here, by GT/s of a lane and lanes, instead of NICs. Repeat for more.
        #[arg(long, value_name = "GT/SxLANES", conflicts_with_all = ["nics", "root"])]
        link: Vec<Link>,
        /// How the card moves descriptors: intel-vector, intel-scalar, unbatched, mlx5 or mlx5-uncompressed. Default: by its
        /// ID, otherwise intel-vector.
        #[arg(long, value_name = "KIND")]
        card: Option<NicKind>,
        /// A recorded machine: a file or a directory.
        #[arg(long, value_name = "FILE|DIR")]
        root: Option<PathBuf>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// What the machine is to be used for.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum PurposeArg {
    /// A tester and a data plane.
    Bench,
    /// Open vSwitch with DPDK and two virtual machines.
    NfviTwoVm,
    /// Applications that spin on a core each.
    LowLatency,
    /// The flow logger.
    Flowlog,
}

impl From<PurposeArg> for Purpose {
    fn from(arg: PurposeArg) -> Self {
        match arg {
            PurposeArg::Bench => Self::Bench,
            PurposeArg::NfviTwoVm => Self::NfviTwoVm,
            PurposeArg::LowLatency => Self::LowLatency,
            PurposeArg::Flowlog => Self::Flowlog,
        }
    }
}

/// Which core does what.
#[derive(Debug, Args)]
#[command(next_help_heading = "Cores")]
pub struct CoresArgs {
    /// What the machine is for.
    #[arg(long = "for", value_enum, value_name = "PURPOSE", default_value = "bench")]
    pub purpose: PurposeArg,
    /// NICs of the test, by PCI address or interface; cores are taken from the first one's NUMA node. Default: all.
    #[arg(long, value_name = "NIC", value_delimiter = ',')]
    pub nic: Vec<String>,
    /// Cores of the switch's polling threads.
    #[arg(long, value_name = "N")]
    pub pmds: Option<u8>,
    /// Virtual machines.
    #[arg(long, value_name = "N")]
    pub guests: Option<u8>,
    /// Virtual CPUs of each.
    #[arg(long, value_name = "N")]
    pub vcpus: Option<u8>,
    /// Lcores of the data plane.
    #[arg(long, value_name = "N")]
    pub data_plane: Option<u8>,
    /// Lcores of the tester, or applications that spin.
    #[arg(long, value_name = "N")]
    pub tester: Option<u8>,
    /// Use both threads of a core, instead of keeping one idle.
    #[arg(long)]
    pub smt: bool,
    /// A plan that was made before, instead of a new one.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["purpose", "pmds", "guests", "vcpus", "data_plane", "tester", "smt"])]
    pub core_plan: Option<PathBuf>,
    /// A recorded machine: a file of `host audit --record`, or a directory with proc and sys in it. Default: this machine.
    #[arg(long, value_name = "FILE|DIR")]
    pub root: Option<PathBuf>,
}

impl CoresArgs {
    /// These flags again, for another command of the same cores.
    pub fn flags(&self) -> String {
        let mut flags = Vec::new();
        let file = |path: &PathBuf| path.display().to_string();
        match &self.core_plan {
            Some(plan) => flags.push(format!("--core-plan {}", file(plan))),
            None => flags.push(format!("--for {}", Purpose::from(self.purpose).name())),
        }
        if !self.nic.is_empty() {
            flags.push(format!("--nic {}", self.nic.join(",")));
        }
        let counts = [
            ("--pmds", self.pmds),
            ("--guests", self.guests),
            ("--vcpus", self.vcpus),
            ("--data-plane", self.data_plane),
            ("--tester", self.tester),
        ];
        flags.extend(counts.iter().filter_map(|(flag, count)| count.map(|count| format!("{flag} {count}"))));
        if self.smt {
            flags.push("--smt".to_owned());
        }
        if let Some(root) = &self.root {
            flags.push(format!("--root {}", file(root)));
        }
        flags.join(" ")
    }
}

/// `linerate host audit`
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// The cores.
    #[command(flatten)]
    pub cores: CoresArgs,
    /// Show also what is as it should be, what is only kept, and what the machine does not have.
    #[arg(long, short)]
    pub all: bool,
    /// Also measure what comes of the settings, on the cores that are to poll: does the tick stop, who interrupts them, how long
    /// they are away, their clock, how long they take to wake up.
    #[arg(long, conflicts_with = "root")]
    pub outcome: bool,
    /// How long cores are polled for that: 100ms to 1h.
    #[arg(long, value_name = "TIME", default_value = "10s", requires = "outcome")]
    pub duration: String,
    /// Write the findings as JSON (`-` for standard output, without the text).
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the findings for a CI server, in the form of JUnit (`-` for standard output).
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write everything that was read, for a report of a fault: without names, addresses and serial numbers.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
}

/// `linerate host effect`
#[derive(Debug, Args)]
pub struct EffectArgs {
    /// The rule's id, as `host audit` prints it: `kernel.watchdog`.
    pub id: String,
    /// The value to compare with the present one. Default: the one that mends the finding.
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    pub value: Option<String>,
    /// Rounds: in each the setting is off, on, on, off. 1 to 100.
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
    /// Write every figure as JSON (`-` for standard output).
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// What to measure: flags of bench. Default: --frame-sizes 64 --no-latency.
    #[arg(last = true, value_name = "BENCH FLAGS")]
    pub bench: Vec<OsString>,
}

/// `linerate host plan`
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// The cores.
    #[command(flatten)]
    pub cores: CoresArgs,
    /// As configuration of others.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<FormatArg>,
    /// Write the plan for `host apply` and `--core-plan`.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// How a plan is printed.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum FormatArg {
    /// What --out writes.
    Plan,
    /// A drop-in for /etc/default/grub.d.
    Grub,
    /// A file for /etc/sysctl.d.
    Sysctl,
    /// A profile of tuned.
    Tuned,
    /// A unit of systemd.
    Systemd,
    /// Commands for a shell.
    Shell,
    /// Settings of Open vSwitch.
    Ovs,
    /// Pinning of QEMU's threads.
    Qemu,
    /// Elements of libvirt's domains.
    Libvirt,
    /// Flags of Linerate.
    Flags,
}

impl From<FormatArg> for Format {
    fn from(arg: FormatArg) -> Self {
        match arg {
            FormatArg::Plan => Self::Plan,
            FormatArg::Grub => Self::Grub,
            FormatArg::Sysctl => Self::Sysctl,
            FormatArg::Tuned => Self::Tuned,
            FormatArg::Systemd => Self::Systemd,
            FormatArg::Shell => Self::Shell,
            FormatArg::Ovs => Self::Ovs,
            FormatArg::Qemu => Self::Qemu,
            FormatArg::Libvirt => Self::Libvirt,
            FormatArg::Flags => Self::Flags,
        }
    }
}

const EXIT_CODES: &str =
    "Exit codes: 0 nothing bad was found, or done; 1 bad findings, or something could not be changed; \
2 the command or a file is wrong; 4 a right is missing, or nothing could be read. Page: docs/host.md";

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{HostArgs, HostCommand};

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        host: HostArgs,
    }

    #[test]
    fn cores_are_asked_for_again_in_the_same_words() {
        for words in [
            "--for bench",
            "--for nfvi-two-vm --nic 0000:37:00.0,eth1 --pmds 4 --guests 1 --vcpus 5 --data-plane 2 --tester 3 --smt",
            "--core-plan plan.toml --root machine.txt",
        ] {
            let all = ["linerate", "audit"].into_iter().chain(words.split(' '));
            let HostCommand::Audit(args) = Only::parse_from(all).host.command else { panic!("{words}") };
            assert_eq!(args.cores.flags(), words);
        }
    }
}
