//! A network namespace of our own.

use std::process::Command;
use std::time::Duration;

use super::process::{path_with_sbin, run, wait_until};
use super::unique;

/// A network namespace, deleted when dropped, and everything in it with it.
#[derive(Debug)]
pub struct Netns {
    name: String,
}

impl Netns {
    /// Makes an empty namespace in which no interface speaks IPv6 by itself (so no frame but the test's is seen).
    pub fn new() -> Self {
        let ns = Self { name: unique("lr") };
        run(&["ip", "netns", "add", &ns.name]);
        ns.sysctl(&["net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1"]);
        ns
    }

    /// Its name, for `ip netns exec`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A command that will run `program` inside.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, program]).env("PATH", path_with_sbin());
        command
    }

    /// Runs a short command inside and returns its output.
    #[track_caller]
    pub fn run(&self, argv: &[&str]) -> String {
        run(&[&["ip", "netns", "exec", self.name.as_str()], argv].concat())
    }

    /// Runs `ip` with `arguments` (separated by blanks) in the namespace.
    #[track_caller]
    pub fn ip(&self, arguments: &str) {
        let mut argv = vec!["ip", "-n", self.name.as_str()];
        argv.extend(arguments.split_whitespace());
        run(&argv);
    }

    /// Waits until the kernel has seen the carrier of these interfaces, which may take it a second: until then it drops
    /// what they are given to send.
    #[track_caller]
    pub fn wait_for_links(&self, names: &[&str]) {
        let is_up = |name: &&str| run(&["ip", "-n", &self.name, "link", "show", "dev", name]).contains(" state UP ");
        wait_until("links that are up", Duration::from_secs(10), || names.iter().all(is_up));
    }

    /// Sets kernel variables of the namespace.
    #[track_caller]
    pub fn sysctl(&self, settings: &[&str]) {
        self.run(&[&["sysctl", "-qw"], settings].concat());
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.name]).env("PATH", path_with_sbin()).status();
    }
}
