//! sockperf as the other end, started here for one measurement.

use std::{
    io::{self, Read},
    net::SocketAddr,
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use failure::{Failure, Stop};
use latency::{
    pingpong::PingPongOptions,
    result::LatencyResult,
    socket::{Transport, Wait},
};

use super::sockets::{measure, serve, SocketAsk};

/// How long it may take to start, or to end once its time is over.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most bytes that are read of what it says when it ends.
const MOST_SAID: u64 = 64 << 10;
/// What stands in front of its figure.
const SUMMARY: &str = "sockperf: Summary:";
/// How often it is looked after.
const GLANCE: Duration = Duration::from_millis(20);

/// A program that ends with this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Measures sockperf's server, which runs on this machine meanwhile.
///
/// # Errors
///
/// As [`measure()`]; and (machine) where sockperf is missing, or cannot be a server at that address.
pub fn against_sockperf(ask: &SocketAsk, stop: &Stop) -> Result<LatencyResult, Failure> {
    if listens(ask.transport, ask.server) {
        return Err(Failure::machine(format!("{}: somebody listens there already: choose another port", ask.server)));
    }
    let mut server = start("server", ask.transport, ask.server, ask.wait, &[], Stdio::piped())?;
    let until = Instant::now() + PATIENCE;
    while !listens(ask.transport, ask.server) {
        if let Some(said) = ended(&mut server) {
            return Err(Failure::machine(format!("sockperf server at {}: {said}", ask.server)));
        }
        if Instant::now() > until || stop.requested() {
            return Err(Failure::machine(format!("sockperf server at {}: it does not listen", ask.server)));
        }
        thread::sleep(GLANCE);
    }
    measure(ask, stop)
}

/// Has sockperf's client measure our server, in ping-pong; returns what it prints.
///
/// # Errors
///
/// As [`serve()`]; (usage) for a time that is not of whole seconds; and (machine) where sockperf is missing or fails.
pub fn measured_by_sockperf(
    (transport, address, wait): (Transport, SocketAddr, Wait),
    cpu: Option<u32>,
    options: &PingPongOptions,
    stop: &Stop,
) -> Result<String, Failure> {
    if options.time.subsec_nanos() != 0 {
        return Err(Failure::usage("--duration: sockperf's client measures whole seconds: 1s, 2s"));
    }
    let seconds = options.time.as_secs().to_string();
    let bytes = options.size.end().to_string();
    let more = ["-t", &seconds, "-m", &bytes];
    thread::scope(|scope| {
        // Our server ends with the client, or when it is asked to.
        let over = Stop::simulated(false);
        let flag = over.shared();
        let (tell, ready) = std::sync::mpsc::channel();
        let served = scope.spawn(move || {
            serve((transport, address, wait), 50, cpu, &over, &move |at| {
                // Nobody listens any more if the client did not start.
                let _ = tell.send(at);
            })
        });
        let client = match ready.recv_timeout(PATIENCE) {
            Ok(at) => start("ping-pong", transport, at, wait, &more, Stdio::piped())
                .and_then(|client| output(client, options.time + PATIENCE, stop)),
            Err(_) => Err(Failure::machine(format!("--server {address}: it does not start"))),
        };
        flag.store(true, std::sync::atomic::Ordering::Relaxed);
        let served = served.join().unwrap_or_else(|_| Err(Failure::failed("the server has failed")));
        // What the server could not do explains what the client saw.
        served.map(drop).and(client)
    })
}

fn start(
    what: &str,
    transport: Transport,
    address: SocketAddr,
    wait: Wait,
    more: &[&str],
    stdout: Stdio,
) -> Result<Running, Failure> {
    let (ip, port) = (address.ip().to_string(), address.port().to_string());
    // It ends with this program, however that ends (setpriv(1) of util-linux; it becomes sockperf).
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "sockperf", what, "-i", &ip, "-p", &port]).args(more);
    if transport == Transport::Tcp {
        command.arg("--tcp");
    }
    if wait == Wait::Spin {
        command.arg("--nonblocked");
    }
    // A Ctrl-C of the terminal is for us: we end it, so that its end is not taken for a server that is gone.
    command.process_group(0).stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped());
    if !is_there("sockperf") {
        return Err(Failure::machine("sockperf is missing: apt-get install sockperf"));
    }
    let child = command.spawn().map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => Failure::machine("setpriv is missing: apt-get install util-linux"),
        _ => Failure::machine(format!("sockperf: {e}")),
    })?;
    Ok(Running(child))
}

/// Whether a program is in a directory of PATH.
fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// What a program said last, if it has ended.
fn ended(running: &mut Running) -> Option<String> {
    running.0.try_wait().ok().flatten()?;
    let (mut errors, mut text) = (String::new(), String::new());
    if let Some(stderr) = running.0.stderr.as_mut() {
        let _ = stderr.take(MOST_SAID).read_to_string(&mut errors);
    }
    if let Some(stdout) = running.0.stdout.as_mut() {
        let _ = stdout.take(MOST_SAID).read_to_string(&mut text);
    }
    Some(last_line(if errors.trim().is_empty() { refused(&text).unwrap_or_default() } else { &errors }))
}

/// What is wrong with its flags stands on standard output, above its help.
fn refused(text: &str) -> Option<&str> {
    text.lines().find(|line| line.starts_with("sockperf: ") && !line.contains("== version"))
}

fn last_line(text: &str) -> String {
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or("it ended");
    line.chars().filter(|c| !c.is_control()).take(200).collect()
}

/// Everything that a client prints until it ends.
fn output(mut client: Running, most: Duration, stop: &Stop) -> Result<String, Failure> {
    let until = Instant::now() + most;
    let stdout = client.0.stdout.take();
    thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut text = String::new();
            stdout.map(|pipe| pipe.take(1 << 20).read_to_string(&mut text));
            text
        });
        let status = loop {
            if let Some(status) = client.0.try_wait().map_err(Failure::failed)? {
                break status;
            }
            if Instant::now() > until || stop.requested() {
                // The reader ends with it.
                drop(client);
                return Err(match stop.requested() {
                    true => Failure::stopped("stopped while sockperf measured"),
                    false => Failure::failed("sockperf did not end when its time was over"),
                });
            }
            thread::sleep(GLANCE);
        };
        let text = reader.join().unwrap_or_default();
        match status.success() {
            true if text.contains(SUMMARY) => Ok(text),
            // It prints its help, and ends with 0, for an address that it does not take.
            true => Err(Failure::machine(last_line(refused(&text).unwrap_or("sockperf: it measured nothing")))),
            false => {
                Err(Failure::failed(format!("sockperf: {}", ended(&mut client).unwrap_or_else(|| last_line(&text)))))
            }
        }
    })
}

/// Whether somebody listens at this port of this network namespace, as the kernel's tables say.
fn listens(transport: Transport, address: SocketAddr) -> bool {
    let name = match transport {
        Transport::Udp => "udp",
        Transport::Tcp => "tcp",
    };
    let port = format!(":{:04X}", address.port());
    ["", "6"].iter().any(|version| {
        let table = std::fs::read_to_string(format!("/proc/thread-self/net/{name}{version}")).unwrap_or_default();
        table.lines().skip(1).any(|line| {
            let mut words = line.split_whitespace().skip(1);
            let (local, remote) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            local.ends_with(&port) && remote.ends_with(":0000")
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_listens_is_known() {
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (udp_at, tcp_at) = (udp.local_addr().unwrap(), tcp.local_addr().unwrap());
        assert!(listens(Transport::Udp, udp_at) && listens(Transport::Tcp, tcp_at));
        drop((udp, tcp));
        // A program that another test starts at this moment holds both until it is executed.
        let until = Instant::now() + PATIENCE;
        while listens(Transport::Udp, udp_at) || listens(Transport::Tcp, tcp_at) {
            assert!(Instant::now() < until, "{udp_at} or {tcp_at} is still listened at");
            thread::sleep(GLANCE);
        }
    }

    #[test]
    fn the_last_thing_said_is_one_clean_line() {
        assert_eq!(last_line("a\nb\u{1b}[31m\n\n"), "b[31m");
        assert_eq!(last_line(""), "it ended");
    }
}
