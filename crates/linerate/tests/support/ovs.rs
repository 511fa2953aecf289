//! Open vSwitch with DPDK as a DUT: its own `ovsdb-server` and `ovs-vswitchd` in a temporary directory and a namespace
//! of its own, so that it neither meets nor leaves anything of the system's (a netdev bridge makes tap interfaces).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use super::process::{path_with_sbin, run, wait_until};
use super::{unique, Netns, Process, DUT_CPU};

/// Debian's `ovs-vswitchd` built with DPDK; the one on PATH may be the other build.
pub const VSWITCHD: &str = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk";
const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";

/// A running OVS with a netdev bridge of two `dpdkvhostuserclient` ports, joined by one flow each way.
#[derive(Debug)]
pub struct OvsDpdk {
    // In the order they must go.
    vswitchd: Process,
    ovsdb: Process,
    netns: Netns,
    sockets: [PathBuf; 2],
    dir: TempDir,
}

/// What OVS counted at its two ports since the flows were set; it survives testers that come and go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OvsCounters {
    /// Frames that came in by port 0 and 1 (matched its flow).
    pub received: [u64; 2],
    /// Frames OVS could not hand to the peer of port 0 and 1.
    pub tx_dropped: [u64; 2],
}

impl OvsDpdk {
    /// Brings OVS up on `DUT_CPU`. Its ports connect, about once a second, to `socket(0)` and `socket(1)`, which the
    /// tester serves (`virtio:SOCKET,server=1`).
    pub fn bring_up() -> Self {
        Self::with_ports(|ovs, n| {
            let path = ovs.socket(n).display().to_string();
            ovs.vsctl(&format!(
                "add-port br0 p{n} -- set Interface p{n} type=dpdkvhostuserclient \
                 options:vhost-server-path={path} ofport_request={}",
                n + 1
            ));
        })
    }

    /// The same between two kernel interfaces, whose other ends are the tester's `t0` and `t1`: these outlive the switch.
    pub fn between_veth(tester: &Netns) -> Self {
        Self::with_ports(|ovs, n| {
            tester.ip(&format!("link add t{n} type veth peer name d{n} netns {}", ovs.netns.name()));
            tester.ip(&format!("link set t{n} up"));
            ovs.netns.ip(&format!("link set d{n} up"));
            tester.wait_for_links(&[&format!("t{n}")]);
            ovs.vsctl(&format!("add-port br0 d{n} -- set Interface d{n} ofport_request={}", n + 1));
        })
    }

    fn with_ports(add: impl Fn(&Self, usize)) -> Self {
        let dir = tempfile::Builder::new().prefix("lrovs").tempdir().expect("a temporary directory");
        let at = dir.path();
        let netns = Netns::new();
        let file = |name: &str| at.join(name).display().to_string();
        run(&["ovsdb-tool", "create", &file("conf.db"), SCHEMA]);
        let argv = [
            "ovsdb-server".to_owned(),
            file("conf.db"),
            format!("--remote=punix:{}", file("db.sock")),
            format!("--unixctl={}", file("ovsdb.ctl")),
            format!("--pidfile={}", file("ovsdb.pid")),
        ];
        let ovsdb = Process::spawn(&argv, None, &environment(at), &at.join("ovsdb.out"));
        wait_until("ovsdb-server's socket", Duration::from_secs(5), || at.join("db.sock").exists());
        let sockets = [at.join("0.sock"), at.join("1.sock")];
        vsctl(at, "--no-wait init");
        let vswitchd = Self::start_vswitchd(at, &netns);
        let mut ovs = Self { vswitchd, ovsdb, netns, sockets, dir };
        ovs.vsctl("add-br br0 -- set bridge br0 datapath_type=netdev fail-mode=secure");
        for n in 0..2 {
            add(&ovs, n);
        }
        ovs.set_flows();
        ovs
    }

    fn start_vswitchd(at: &Path, netns: &Netns) -> Process {
        let mask = format!("{:#x}", 1_u64 << DUT_CPU);
        // OVS adds --in-memory itself.
        let extra = format!("--no-pci --no-telemetry --file-prefix={}", unique("lrovs"));
        vsctl_args(
            at,
            &[
                "--no-wait",
                "set",
                "Open_vSwitch",
                ".",
                "other_config:dpdk-init=true",
                "other_config:dpdk-socket-mem=128",
                &format!("other_config:pmd-cpu-mask={mask}"),
                &format!("other_config:dpdk-lcore-mask={mask}"),
                &format!("other_config:dpdk-extra=\"{extra}\""),
            ],
        );
        let file = |name: &str| at.join(name).display().to_string();
        let argv = [
            VSWITCHD.to_owned(),
            format!("unix:{}", file("db.sock")),
            format!("--unixctl={}", file("vswitchd.ctl")),
            format!("--pidfile={}", file("vswitchd.pid")),
        ];
        let mut process = Process::spawn(&argv, Some(netns), &environment(at), &at.join("vswitchd.out"));
        process.wait_output("DPDK", Duration::from_secs(15), |text| text.contains("DPDK Enabled - initialized"));
        process
    }

    fn set_flows(&mut self) {
        wait_until("the bridge's OpenFlow socket", Duration::from_secs(5), || self.file("br0.mgmt").exists());
        self.ofctl(&["add-flow", "", "in_port=1,actions=output:2"]);
        self.ofctl(&["add-flow", "", "in_port=2,actions=output:1"]);
    }

    /// Lets no more than `rate_fps` frames/s of port 0 through, and `burst` at once: an OpenFlow meter drops the others.
    pub fn limit(&self, rate_fps: u32, burst: u32) {
        let meter = format!("meter=1,pktps,burst,stats,band=type=drop,rate={rate_fps},burst_size={burst}");
        self.ofctl(&["add-meter", "", &meter]);
        self.ofctl(&["add-flow", "", "in_port=1,actions=meter:1,output:2"]);
    }

    /// The socket its port `n` connects to.
    pub fn socket(&self, n: usize) -> &Path {
        &self.sockets[n]
    }

    /// The `ovs-vswitchd` process, to freeze or end it.
    pub fn process(&mut self) -> &mut Process {
        &mut self.vswitchd
    }

    /// Whether both ports are connected to a tester.
    pub fn links_up(&self) -> bool {
        self.vsctl("get Interface p0 link_state -- get Interface p1 link_state").split_whitespace().all(|s| s == "up")
    }

    /// Its counters, at this moment.
    pub fn counters(&self) -> OvsCounters {
        // OpenFlow statistics are read from the datapath when asked for. The Interface table is up to 5 s old, and a
        // port's own packet counters start again with every tester that connects.
        let flows = self.ofctl(&["dump-flows", ""]);
        let ports = self.ofctl(&["dump-ports", ""]);
        let number = |text: &str, after: &str| -> u64 {
            let digits = text.split(after).nth(1).and_then(|t| t.split(|c: char| !c.is_ascii_digit()).next());
            digits.and_then(|d| d.parse().ok()).unwrap_or_else(|| panic!("no {after} in {text}"))
        };
        let flow = |port: usize| {
            let line = flows.lines().find(|l| l.contains(&format!("in_port={port} ")));
            number(line.unwrap_or_else(|| panic!("no flow of port {port} in {flows}")), "n_packets=")
        };
        let drops = |port: usize| {
            let block = ports.split("  port ").find(|b| b.trim_start().starts_with(&format!("{port}:")));
            number(block.unwrap_or_else(|| panic!("no port {port} in {ports}")), "ovs_tx_failure_drops=")
        };
        OvsCounters { received: [flow(1), flow(2)], tx_dropped: [drops(1), drops(2)] }
    }

    /// Kills `ovs-vswitchd` and starts it again on the same database; its counters start at zero.
    pub fn restart(&mut self) {
        self.vswitchd.signal("KILL");
        self.vswitchd.wait_end(Duration::from_secs(5));
        for stale in ["br0.mgmt", "br0.snoop", "vswitchd.ctl", "vswitchd.pid"] {
            let _ = std::fs::remove_file(self.file(stale));
        }
        // The taps persist in the namespace; the bridge makes its own again.
        for tap in ["br0", "ovs-netdev"] {
            let _ = self.netns.command("ip").args(["link", "del", tap]).output();
        }
        self.vswitchd = Self::start_vswitchd(self.dir.path(), &self.netns);
        self.set_flows();
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    #[track_caller]
    fn vsctl(&self, arguments: &str) -> String {
        vsctl(self.dir.path(), arguments)
    }

    /// `ovs-ofctl`; the bridge goes in place of the empty argument.
    #[track_caller]
    fn ofctl(&self, arguments: &[&str]) -> String {
        let bridge = format!("unix:{}", self.file("br0.mgmt").display());
        let mut argv = vec!["ovs-ofctl", "--timeout=10", "-O", "OpenFlow14"];
        argv.extend(arguments.iter().map(|a| if a.is_empty() { bridge.as_str() } else { a }));
        run(&argv)
    }
}

fn vsctl(at: &Path, arguments: &str) -> String {
    vsctl_args(at, &arguments.split_whitespace().collect::<Vec<_>>())
}

#[track_caller]
fn vsctl_args(at: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("ovs-vsctl");
    command.arg(format!("--db=unix:{}/db.sock", at.display())).arg("--timeout=15").args(arguments);
    let out = command.env("PATH", path_with_sbin()).output().unwrap_or_else(|e| panic!("cannot run ovs-vsctl: {e}"));
    let log = || super::process::tail(&std::fs::read_to_string(at.join("vswitchd.out")).unwrap_or_default());
    assert!(out.status.success(), "ovs-vsctl {arguments:?}: {}\n{}", String::from_utf8_lossy(&out.stderr), log());
    String::from_utf8_lossy(&out.stdout).into_owned()
}

fn environment(at: &Path) -> [(&'static str, &Path); 5] {
    ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR", "RUNTIME_DIRECTORY"].map(|name| (name, at))
}
