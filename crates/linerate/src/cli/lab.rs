//! Flags of `linerate lab`.

use std::{ops::RangeInclusive, path::PathBuf};

use clap::{builder::RangedI64ValueParser, Args, Subcommand};
use failure::Failure;
use lab::{
    options::{GuestKind, GUEST_MIB, PMDS, QUEUES, RINGS},
    topology::Application,
    LabOptions,
};

/// `linerate lab`
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct LabArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: LabCommand,
}

/// The subcommands of `linerate lab`.
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// List the topologies: what each is, what it needs, and whether this machine can run it.
    List,
    /// Show a topology before it is started: its picture, its ports and its CPUs.
    Show(ShowArgs),
    /// Bring a topology up and return when it is ready.
    Up(UpArgs),
    /// Show the labs that are up: their programs, and the CPUs of every thread as read back.
    Status(StatusArgs),
    /// Check that a lab is what was asked for, and print each command that was run for it.
    Check(NameArgs),
    /// Print the counters of every port of a lab.
    Counters(NameArgs),
    /// End a lab: everything in it is gone when this returns.
    Down(DownArgs),
    /// Bring a topology up, run `linerate bench` with the flags that follow, and end it.
    Run(RunArgs),
    /// Make something fail in a lab: kill or restart the switch, restart or reboot a guest, take a link down. Without a name: what
    /// there is.
    Fault(FaultArgs),
    /// Run a command at a node of a lab: in a virtual machine, in a kernel's namespace, or among the lab's own programs. It is
    /// ended after 35 s.
    Exec(ExecArgs),
    /// Make or ask one virtual machine: what the script of a lab (show --script) uses.
    #[command(subcommand)]
    Guest(GuestCommand),
    /// Speak with a lab's process on another host, over standard input and output.
    #[command(hide = true)]
    Serve,
}

/// `linerate lab guest`
#[derive(Debug, Subcommand)]
pub enum GuestCommand {
    /// Make the image that a guest boots: this program, what the guest's programs need of this machine, and modules of its
    /// kernel.
    Image {
        /// What the guest is told, as JSON.
        #[arg(long, value_name = "FILE")]
        spec: PathBuf,
        /// Where the image goes.
        #[arg(long, value_name = "FILE")]
        initrd: PathBuf,
        /// Where a link to its kernel goes.
        #[arg(long, value_name = "FILE")]
        kernel: PathBuf,
    },
    /// Ask a guest whether it is up.
    Check {
        /// The socket of its virtio-serial port.
        socket: PathBuf,
    },
    /// Let each virtual CPU run on one CPU only.
    Pin {
        /// The socket of its QEMU (QMP).
        socket: PathBuf,
        /// The CPU of QEMU's other threads. Default: they stay where they are.
        #[arg(long, value_name = "CPU")]
        emulator: Option<u32>,
        /// Virtual CPU and CPU, such as 1:3.
        #[arg(value_name = "VCPU:CPU", required = true)]
        pins: Vec<String>,
    },
    /// Reset a virtual machine, as its button does.
    Reset {
        /// The socket of its QEMU (QMP).
        socket: PathBuf,
    },
    /// Take the carrier of a port away, or give it back.
    Link {
        /// The socket of its QEMU (QMP).
        socket: PathBuf,
        /// The port, from 0.
        port: u32,
        /// up or down.
        #[arg(value_parser = ["up", "down"])]
        state: String,
    },
    /// Print the CPUs on which each virtual CPU may run.
    Vcpus {
        /// The socket of its QEMU (QMP).
        socket: PathBuf,
    },
}

/// What guests are to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum GuestsArg {
    /// Virtual machines where KVM runs them, else processes.
    Auto,
    /// Processes at the guest's end of vhost-user.
    Process,
    /// Virtual machines: by KVM where it runs them, else emulated.
    Vm,
    /// Virtual machines by KVM.
    Kvm,
    /// Emulated virtual machines: their rates mean nothing.
    Tcg,
}

/// Where kernels that forward are to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum KernelInArg {
    /// On this machine where its kernel can, else in a virtual machine.
    Auto,
    /// On this machine.
    Host,
    /// In a virtual machine.
    Vm,
}

/// A topology and its variables.
#[derive(Debug, Args)]
pub struct TopologyArgs {
    /// A topology: the name of a built-in one (linerate lab list), or a TOML file.
    #[arg(value_name = "TOPOLOGY")]
    pub topology: String,
    /// Receive queues of each port, 1 to 16. Default: those of the plan (lab run), else 1.
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = within(QUEUES))]
    pub queues: Option<u32>,
    /// Poll-mode threads of the switch. Their CPUs are chosen. Default: the fewest of the plan (lab run), else 1.
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = within(PMDS), conflicts_with = "pmd_cpus")]
    pub pmds: Option<u32>,
    /// Poll-mode threads in pairs on the two hardware threads of a core. Default: a core for each, as long as there are enough.
    #[arg(long)]
    pub smt: bool,
    /// CPUs of the switch's poll-mode threads, one thread on each.
    #[arg(long, value_name = "CPU,...", value_delimiter = ',', value_parser = cpu)]
    pub pmd_cpus: Vec<u32>,
    /// CPU of the tester. Default: the last one allowed.
    #[arg(long, value_name = "CPU", allow_hyphen_values = true, value_parser = cpu)]
    pub tester_cpu: Option<u32>,
    /// Which core does what: a plan of `linerate host plan --for nfvi-two-vm --out FILE`. Default: the usual plan, where the machine
    /// has enough cores.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pmds", "pmd_cpus", "tester_cpu", "smt"])]
    pub core_plan: Option<PathBuf>,
    /// What guests are. auto: virtual machines where KVM runs them, or where the application needs a kernel of its own; else
    /// processes.
    #[arg(long, value_name = "KIND", value_enum, default_value = "auto")]
    pub guests: GuestsArg,
    /// Where kernels that forward are. auto: on this machine where its kernel can (native Open vSwitch needs its module), else in
    /// a virtual machine.
    #[arg(long, value_name = "WHERE", value_enum, default_value = "auto")]
    pub kernel_in: KernelInArg,
    /// Virtual CPUs of each virtual machine. Default: one, and one for each queue of a port.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub vcpus: Option<u32>,
    /// Memory of each virtual machine, MiB.
    #[arg(long, value_name = "MIB", allow_hyphen_values = true, value_parser = within(GUEST_MIB), default_value = "1024")]
    pub guest_memory: u32,
    /// What every guest runs, in place of what the topology says: testpmd-mac, testpmd-io, testpmd-macswap, l2, l2-macswap,
    /// l3, vxlan or vxlan-far (linerate forward), flowlog (linerate flowlog), kernel-bridge or ovs-kernel (virtual machines only).
    #[arg(long, value_name = "APPLICATION", value_parser = application)]
    pub application: Option<Application>,
    /// A bootable disk for a guest, raw or qcow2, in place of the image that is made on the spot. It is not written to. Its
    /// application is its own, and nothing in it is counted.
    #[arg(long = "disk", value_name = "GUEST=FILE", value_parser = disk)]
    pub disks: Vec<(String, String)>,
    /// Switch off the exact-match cache of Open vSwitch.
    #[arg(long)]
    pub no_emc: bool,
    /// Switch on the signature-match cache of Open vSwitch.
    #[arg(long)]
    pub smc: bool,
    /// Descriptors of each virtio ring, a power of two from 64 to 1024.
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = within(RINGS), default_value = "1024")]
    pub ring: u32,
    /// NICs of the device under test behind the tester's two ports: PCI addresses or interfaces. They are bound to a driver for
    /// user space while the lab is up.
    #[arg(long, value_name = "NIC,NIC", value_delimiter = ',', requires = "tester_ports")]
    pub phy: Vec<String>,
    /// The tester's own two ports, cabled to these NICs, as --port takes them; its NICs are bound as well.
    #[arg(long, value_name = "PORT,PORT", value_delimiter = ',', requires = "phy")]
    pub tester_ports: Vec<String>,
    /// Open vSwitch (1 GiB) and guests take ordinary memory. Default: for ordinary users where hugepages are missing.
    #[arg(long)]
    pub no_huge: bool,
}

fn within(range: RangeInclusive<u32>) -> RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(i64::from(*range.start())..=i64::from(*range.end()))
}

fn cpu(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "must be the number of a CPU, from 0; several with a comma between".to_owned())
}

/// A guest and its disk.
fn disk(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(guest, file)| !guest.is_empty() && !file.is_empty());
    let (guest, file) = parts.ok_or("must be GUEST=FILE, such as vm1=disk.qcow2")?;
    let file = std::path::absolute(file).map_err(|e| e.to_string())?;
    Ok((guest.to_owned(), file.to_string_lossy().into_owned()))
}

fn application(text: &str) -> Result<Application, String> {
    let names = Application::ALL.map(Application::name).join(", ");
    Application::named(text).ok_or_else(|| format!("must be one of {names}"))
}

impl TopologyArgs {
    /// The variables.
    ///
    /// # Errors
    ///
    /// (usage) for a value that is not legal.
    pub fn options(&self) -> Result<LabOptions, Failure> {
        let guests: Vec<&String> = self.disks.iter().map(|(guest, _)| guest).collect();
        if let Some(twice) = (1..guests.len()).find(|&n| guests[..n].contains(&guests[n])) {
            return Err(Failure::usage(format!("--disk {}=...: this guest has a disk already", guests[twice])));
        }
        let options = LabOptions {
            queues: self.queues.unwrap_or(1),
            pmds: self.pmds.unwrap_or(1),
            pmd_cpus: self.pmd_cpus.clone(),
            tester_cpu: self.tester_cpu,
            guest_cpus: Vec::new(),
            vcpus: self.vcpus,
            control_cpu: None,
            application: self.application,
            emc: !self.no_emc,
            smc: self.smc,
            ring: self.ring,
            hugepages: !self.no_huge,
            guests: GuestKind::Process,
            kernels: GuestKind::Process,
            guest_mib: self.guest_memory,
            phy: self.phy.clone(),
            tester_ports: self.tester_ports.clone(),
            tester_elsewhere: false,
            disks: self.disks.iter().cloned().collect(),
            smt: self.smt,
            siblings: lab::cpus::siblings(),
        };
        options.check()?;
        Ok(options)
    }
}

/// `linerate lab show`
#[derive(Debug, Args)]
pub struct ShowArgs {
    #[command(flatten)]
    pub topology: TopologyArgs,
    /// Print a shell script that builds the same testbed.
    #[arg(long, conflicts_with_all = ["diagram", "toml"])]
    pub script: bool,
    /// Print a virtual machine of it as an XML of libvirt: the guest's name.
    #[arg(long, value_name = "GUEST", conflicts_with_all = ["script", "diagram", "toml"])]
    pub libvirt: Option<String>,
    /// Print what a virtual machine of it is told, as linerate lab guest image --spec reads it: the guest's name.
    #[arg(long, value_name = "GUEST", conflicts_with_all = ["libvirt", "script", "diagram", "toml"])]
    pub guest_spec: Option<String>,
    /// Print the picture only.
    #[arg(long, conflicts_with = "toml")]
    pub diagram: bool,
    /// Print the topology as a file, to begin one of your own with.
    #[arg(long)]
    pub toml: bool,
}

/// `linerate lab up`
#[derive(Debug, Args)]
pub struct UpArgs {
    #[command(flatten)]
    pub topology: TopologyArgs,
    /// The lab's name. Default: the topology's.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Keep the logs of its programs in this directory when it ends or does not come up. Else they are gone with it.
    #[arg(long, value_name = "DIR")]
    pub logs: Option<PathBuf>,
    /// Bring it up on another host, with --phy as that host's NICs and --tester-ports as this one's ports. The system's ssh
    /// reaches it, with a key that asks nothing; root is needed there.
    #[arg(long, value_name = "ssh://USER@HOST")]
    pub on: Option<String>,
    /// The command that reaches the other host, with its flags.
    #[arg(long, value_name = "COMMAND", default_value = "ssh", requires = "on")]
    pub ssh: String,
    /// Where Linerate is there, of the same version. Default: it is copied to ~/.cache/linerate there.
    #[arg(long, value_name = "PATH", requires = "on")]
    pub remote_program: Option<String>,
    /// Fail in place of this step.
    #[arg(long, hide = true)]
    pub fail_at: Option<usize>,
}

/// The lab that is meant.
#[derive(Debug, Args)]
pub struct NameArgs {
    /// The lab's name. Default: the only one that is up.
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `linerate lab fault`
#[derive(Debug, Args)]
pub struct FaultArgs {
    /// The lab's name. Default: the only one that is up, or the one that this command runs inside of.
    #[arg(long, value_name = "NAME")]
    pub lab: Option<String>,
    /// The fault, such as restart-switch or reboot:vm1. Default: list them.
    #[arg(value_name = "FAULT")]
    pub fault: Option<String>,
}

/// `linerate lab exec`
#[derive(Debug, Args)]
pub struct ExecArgs {
    /// The lab's name. Default: the only one that is up.
    #[arg(long, value_name = "NAME")]
    pub lab: Option<String>,
    /// The node, such as vm1 or br0 (linerate lab status).
    #[arg(value_name = "NODE")]
    pub node: String,
    /// The command and its arguments.
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<String>,
}

/// `linerate lab status`
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// The lab's name. Default: all labs.
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Print JSON: a list of labs.
    #[arg(long)]
    pub json: bool,
}

/// `linerate lab down`
#[derive(Debug, Args)]
pub struct DownArgs {
    /// The lab's name. Default: the only one that is up.
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// End all labs of this user.
    #[arg(long, conflicts_with = "name")]
    pub all: bool,
}

/// `linerate lab run`
#[derive(Debug, Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub up: UpArgs,
    /// Flags of `linerate bench`, behind those of the lab.
    #[arg(value_name = "BENCH FLAGS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub bench: Vec<String>,
}

/// `--lab [NAME]`, for commands that measure.
#[derive(Debug, Args, Default)]
pub struct LabChoice {
    /// The lab between the ports: its name; without one, the only lab that is up, or else the topology that the plan names,
    /// brought up for this run.
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = false, conflicts_with_all = ["ports", "dut", "impair"],
          help_heading = "Device under test")]
    pub lab: Option<Option<String>>,
    /// The counters of a lab are read around each trial: set where this process is in it.
    #[arg(skip)]
    pub inside: Option<PathBuf>,
}

const EXAMPLES: &str = "Examples:
  linerate lab list
  linerate lab up phy-vm-phy
  linerate bench --lab phy-vm-phy --quick --frame-sizes 64
  linerate lab down
  linerate lab run phy-vm-vm-phy --plan nfvi-two-vm-1q2pmd --quick      up, bench, down
  linerate lab show phy-vm-vm-phy --queues 2 --pmd-cpus 2,3,4,5 --script
Exit codes: 0 done; 1 a check failed; 2 the command or a file is wrong; 4 the machine lacks something; 130 stopped. Page:
docs/lab.md";
