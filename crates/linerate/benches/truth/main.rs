//! Intervals of `linerate bench --quick`: do they hold a known truth, how wide are they, how long do they take, and do two
//! runs of the same device agree?
//!
//! `cargo bench -p linerate --bench truth -- [KEY=VALUE...]`, with the keys
//!
//! - `runs=N`: runs of each device (5);
//! - `only=TEXT`: devices whose name holds the text;
//! - `rules=slices,whole-trial,package`: the kinds of evidence; `package` is MLRsearch of PyPI over trials of `linerate trial`
//!   (`slices`);
//! - `keep=DIR`: where to write the result of each run;
//! - `beside=N`: so many workers of `stress-ng --cpu` run meanwhile (0).
//!
//! Known truths: policers of the built-in data plane without and with a queue, a data plane of fixed clocks a frame,
//! simulated devices (a seed for each run, and the time of their trials), `tc tbf` behind a kernel bridge. Unknown: testpmd, Open vSwitch with DPDK, the bridge and the router of the kernel; of these it
//! prints how many pairs of runs overlap. Ports of the kernel and Open vSwitch need root. The tables are those of
//! docs/performance.md.
#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used)]

#[path = "../../tests/support/mod.rs"]
mod support;

mod known;
mod options;
mod package;
mod runs;
mod unknown;

use std::process::{Child, Command, Stdio};

use options::Options;

/// Other work, ended when dropped.
struct Beside(Child);

impl Beside {
    fn start(workers: u32) -> Option<Self> {
        let mut command = Command::new("stress-ng");
        command.args(["--cpu", &workers.to_string(), "--quiet"]).stdout(Stdio::null());
        (workers > 0).then(|| Self(command.spawn().expect("stress-ng runs")))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // It ends its workers at SIGTERM, not at SIGKILL.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

fn main() {
    let options = Options::parse(std::env::args().skip(1));
    let _beside = Beside::start(options.beside);
    known::all(&options);
    unknown::all(&options);
}
