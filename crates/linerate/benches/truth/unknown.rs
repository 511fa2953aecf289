//! Devices whose truth nobody knows: two runs have to agree.

use crate::{
    options::Options,
    runs::{self, Rule, Run},
    support::{
        self,
        tester::{linerate, linerate_in, Ended},
        KernelDut, Memory, OvsDpdk, Testpmd,
    },
};

/// Runs all that are wanted, and prints their table.
pub fn all(options: &Options) {
    println!();
    println!(
        "| device | evidence | answers | median Mpps | range Mpps | median width | pairs that overlap | of one placement | of three runs each | median, longest |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let with = |name: &str, start: &dyn Fn()| {
        if options.wants(name) {
            start();
        }
    };
    with("testpmd over memif", &|| {
        let dut = Testpmd::memif(Memory::Huge);
        let ports = [0, 1].map(|n| format!("memif:{}", dut.socket(n).display()));
        measure(options, "testpmd over memif", &ports, &[], &|args| linerate(args));
    });
    with("testpmd over vhost-user", &|| {
        let dut = Testpmd::vhost_client(Memory::Huge);
        let ports = [0, 1].map(|n| format!("virtio:{},server=1,queue_size=1024", dut.socket(n).display()));
        measure(options, "testpmd over vhost-user", &ports, &[], &|args| linerate(args));
    });
    if !support::is_root() {
        return;
    }
    with("Open vSwitch over vhost-user", &|| {
        let dut = OvsDpdk::bring_up();
        let ports = [0, 1].map(|n| format!("virtio:{},server=1,queue_size=1024", dut.socket(n).display()));
        measure(options, "Open vSwitch over vhost-user", &ports, &[], &|args| linerate(args));
    });
    for driver in ["af_xdp", "af_packet"] {
        let ports = [0, 1].map(|port| format!("eth:t{port},driver={driver}"));
        let name = format!("kernel bridge, {driver}");
        with(&name, &|| {
            let dut = KernelDut::bridge();
            measure(options, &name, &ports, &[], &|args| linerate_in(dut.tester(), args));
        });
        let name = format!("kernel router, {driver}");
        with(&name, &|| {
            let dut = KernelDut::router();
            let macs = format!("{},{}", KernelDut::dut_mac(0), KernelDut::dut_mac(1));
            measure(options, &name, &ports, &["--dst-mac", &macs], &|args| linerate_in(dut.tester(), args));
        });
    }
}

fn measure(options: &Options, name: &str, ports: &[String; 2], more: &[&str], run: &dyn Fn(&[&str]) -> Ended) {
    let cpu = (support::DUT_CPU + 1).to_string();
    let ports = ["--port", &ports[0], "--port", &ports[1], "--tester-cpu", &cpu, "--frame-sizes", "64"];
    for rule in options.rules.iter().filter(|rule| **rule != Rule::Package) {
        let flags = ["bench", "--quick", "--no-latency", "--json", "-", "-q", "--evidence", rule.name()];
        let one = |n| {
            let (run, result) = Run::timed(|| run(&[&flags[..], &ports, more].concat()));
            options.keep(&format!("{name} {}", rule.name()), n, &result);
            run
        };
        let runs: Vec<Run> = (0..options.runs).map(one).collect();
        println!("| {name} | {} | {} |", rule.name(), runs::unknown(&runs));
    }
}
