//! The Linux kernel as a DUT: a bridge or a router between two veth pairs.
//!
//! ```text
//!   tester namespace        DUT namespace
//!        t0 -------------------- d0 \
//!                                    bridge br0, or ip_forward
//!        t1 -------------------- d1 /
//! ```

use super::process::run;
use super::Netns;

/// The kernel forwarding between `t0` and `t1`.
#[derive(Debug)]
pub struct KernelDut {
    tester: Netns,
    dut: Netns,
}

/// A token bucket on the DUT's egress (`tc tbf`). It counts Ethernet headers but no FCS, so a frame of `FrameSize` S
/// costs `S - 4 + overhead` bytes.
#[derive(Debug, Clone, Copy)]
pub struct Tbf {
    /// Bits per second.
    pub rate_bps: u64,
    /// Bytes that may pass at once.
    pub burst: u32,
    /// Bytes that may wait. More than the tester's largest burst, and `burst + limit` under 1 % of what the rate lets
    /// through in a trial: that much more than the rate passes in each.
    pub limit: u32,
    /// Bytes added to each frame: 4 for the FCS, 24 for the rate of layer 1.
    pub overhead: u32,
}

/// An interface's counters. Bytes are without the FCS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IfCounters {
    pub rx_packets: u64,
    pub tx_packets: u64,
    pub rx_dropped: u64,
    pub tx_dropped: u64,
}

impl KernelDut {
    /// A learning bridge without STP or multicast snooping.
    pub fn bridge() -> Self {
        let dut = Self::cabled();
        dut.dut.ip("link add br0 type bridge stp_state 0 mcast_snooping 0");
        dut.dut.ip("link set d0 master br0");
        dut.dut.ip("link set d1 master br0");
        dut.dut.ip("link set br0 up");
        dut
    }

    /// A router with the benchmark's routes: 198.18.0.0/16 and 2001:2:0:1::/64 behind port 0, 198.19.0.0/16 and
    /// 2001:2:0:2::/64 behind port 1. Neighbours are static, so it never asks for one.
    pub fn router() -> Self {
        let dut = Self::cabled();
        let ns = &dut.dut;
        ns.sysctl(&[
            "net.ipv4.ip_forward=1",
            "net.ipv4.conf.all.rp_filter=0",
            "net.ipv4.conf.default.rp_filter=0",
            "net.ipv4.conf.all.send_redirects=0",
            "net.ipv4.conf.default.send_redirects=0",
        ]);
        for port in 0..2 {
            ns.sysctl(&[
                &format!("net.ipv4.conf.d{port}.rp_filter=0"),
                &format!("net.ipv4.conf.d{port}.send_redirects=0"),
                &format!("net.ipv6.conf.d{port}.addr_gen_mode=1"),
                &format!("net.ipv6.conf.d{port}.accept_dad=0"),
                &format!("net.ipv6.conf.d{port}.autoconf=0"),
                &format!("net.ipv6.conf.d{port}.router_solicitations=0"),
                &format!("net.ipv6.conf.d{port}.disable_ipv6=0"),
            ]);
            let station = Self::station_mac(port);
            ns.ip(&format!("addr add 10.255.{port}.1/30 dev d{port}"));
            ns.ip(&format!("neigh add 10.255.{port}.2 lladdr {station} dev d{port} nud permanent"));
            ns.ip(&format!("route add 198.{}.0.0/16 via 10.255.{port}.2", 18 + port));
            ns.ip(&format!("-6 neigh add fe80::{port}:2 lladdr {station} dev d{port} nud permanent"));
            ns.ip(&format!("-6 route add 2001:2:0:{}::/64 via fe80::{port}:2 dev d{port} onlink", port + 1));
        }
        // Last: an interface that forwards IPv6 joins the routers' group, and its report would be a foreign frame.
        ns.sysctl(&["net.ipv6.conf.all.forwarding=1"]);
        dut
    }

    fn cabled() -> Self {
        let (tester, dut) = (Netns::new(), Netns::new());
        for port in 0..2 {
            let link = format!(
                "ip link add t{port} netns {} address {} type veth peer name d{port} netns {} address {}",
                tester.name(),
                Self::station_mac(port),
                dut.name(),
                Self::dut_mac(port)
            );
            run(&link.split(' ').collect::<Vec<_>>());
            for (ns, name) in [(&tester, format!("t{port}")), (&dut, format!("d{port}"))] {
                // Offloads would merge frames and leave checksums empty: the DUT must see what was sent.
                ns.run(&["ethtool", "-K", &name, "tso", "off", "gso", "off", "gro", "off", "tx", "off", "rx", "off"]);
                ns.ip(&format!("link set {name} up"));
            }
        }
        tester.wait_for_links(&["t0", "t1"]);
        dut.wait_for_links(&["d0", "d1"]);
        Self { tester, dut }
    }

    /// The namespace to run the tester in; its ports are `eth:t0` and `eth:t1`.
    pub fn tester(&self) -> &Netns {
        &self.tester
    }

    /// The namespace of the kernel under test, with `d0` and `d1`.
    #[allow(dead_code)] // Only some tests look into it.
    pub fn device(&self) -> &Netns {
        &self.dut
    }

    /// The MAC address of the tester's interface `port`.
    pub fn station_mac(port: usize) -> String {
        format!("02:4c:52:00:00:0{port}")
    }

    /// The MAC address of the DUT's interface `port`: where frames for the router go.
    pub fn dut_mac(port: usize) -> String {
        format!("02:4c:52:00:01:0{port}")
    }

    /// Limits what the DUT sends out of `port`, in place of any earlier limit.
    pub fn limit_egress(&self, port: usize, tbf: Tbf) {
        let Tbf { rate_bps, burst, limit, overhead } = tbf;
        let shape = format!("rate {rate_bps}bit burst {burst} limit {limit} overhead {overhead}");
        let mut argv = vec!["tc", "-n", self.dut.name(), "qdisc", "replace", "dev"];
        let dev = format!("d{port}");
        argv.extend([dev.as_str(), "root", "tbf"]);
        argv.extend(shape.split(' '));
        run(&argv);
    }

    /// Frames the limit on `port`'s egress has dropped.
    pub fn limit_drops(&self, port: usize) -> u64 {
        let text = run(&["tc", "-n", self.dut.name(), "-s", "qdisc", "show", "dev", &format!("d{port}")]);
        let dropped = text.split("(dropped ").nth(1).and_then(|t| t.split(',').next()).and_then(|t| t.parse().ok());
        dropped.unwrap_or_else(|| panic!("no drop count in {text}"))
    }

    /// The counters of the DUT's interface `port`.
    pub fn counters(&self, port: usize) -> IfCounters {
        let dev = format!("d{port}");
        let text = run(&["ip", "-n", self.dut.name(), "-s", "-j", "link", "show", "dev", &dev]);
        let json: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
        let count = |way: &str, what: &str| {
            let pointer = format!("/0/stats64/{way}/{what}");
            json.pointer(&pointer).and_then(serde_json::Value::as_u64).unwrap_or_else(|| panic!("no {pointer}: {text}"))
        };
        IfCounters {
            rx_packets: count("rx", "packets"),
            tx_packets: count("tx", "packets"),
            rx_dropped: count("rx", "dropped"),
            tx_dropped: count("tx", "dropped"),
        }
    }

    /// Datagrams the DUT has forwarded, as its own SNMP counters have it (RFC 4293: `ipSystemStatsOutForwDatagrams`).
    pub fn forwarded(&self, ipv6: bool) -> u64 {
        let count = if ipv6 {
            let text = self.dut.run(&["cat", "/proc/net/snmp6"]);
            let line = text.lines().find_map(|l| l.strip_prefix("Ip6OutForwDatagrams")).map(str::trim);
            line.and_then(|t| t.parse().ok())
        } else {
            let text = self.dut.run(&["cat", "/proc/net/snmp"]);
            let mut rows = text.lines().filter_map(|l| l.strip_prefix("Ip: ")).map(|l| l.split(' '));
            let (names, values) = (rows.next(), rows.next());
            let mut pairs = names.into_iter().flatten().zip(values.into_iter().flatten());
            pairs.find(|(name, _)| *name == "ForwDatagrams").and_then(|(_, value)| value.parse().ok())
        };
        count.unwrap_or_else(|| panic!("the kernel counts no forwarded datagrams"))
    }

    /// Takes the DUT's interface `port` down or up: the tester sees its link go.
    pub fn set_link(&self, port: usize, up: bool) {
        self.dut.ip(&format!("link set d{port} {}", if up { "up" } else { "down" }));
    }
}
