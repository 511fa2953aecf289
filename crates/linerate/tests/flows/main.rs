//! `linerate flows` as it is run: lines for scripts, and the display on a real terminal.

#![allow(clippy::unwrap_used, clippy::panic)]

mod logger;
#[path = "../support/mod.rs"]
mod support;
mod terminal;

use std::{fs, path::Path, sync::Arc, time::Duration};

use flow::serve::{ServeSpec, Server, TlsSpec};
use logger::{Logger, Manner, Still};
use rustix::process::{kill_process, Pid, Signal};
use serde_json::Value;
use support::{
    tester::{linerate, BINARY},
    wait_until,
    words::{flows_of, loggers_read, CONNECTION_REFUSED, PAUSED, RECONNECTING},
    Process, Words,
};

const SOON: Duration = Duration::from_secs(20);

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

#[test]
fn each_logger_gets_a_line_each_interval() {
    let (a, b) = (Logger::named("a"), Logger::named("b"));
    let ended = linerate(&["flows", &a.at(), &b.at(), "--json", "--every", "100ms", "--count", "3", "--top", "2"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    let all = lines(&ended.stdout);
    assert_eq!(all.len(), 6);
    for (name, logger) in [("a", &a), ("b", &b)] {
        let of: Vec<_> = all.iter().filter(|l| l["logger"] == logger.at().as_str()).collect();
        assert_eq!(of.len(), 3);
        assert!(of.iter().all(|l| l["name"] == name && l["state"] == "connected"));
        let (totals, top) = (&of[0]["totals"], &of[0]["top"]);
        assert_eq!(totals["interfaces"][0]["packets"], 1_000_000_007);
        assert_eq!(totals["interfaces"][0]["name"], "port\\u{1b}[31m0");
        assert_eq!((top["flows"].as_array().unwrap().len(), &top["matching"]), (2, &Value::from(30)));
        assert_eq!(top["flows"][0]["src"], "192.0.2.30");
    }
}

#[test]
fn order_and_filter_are_the_loggers_to_apply() {
    let logger = Logger::named("a");
    let ended =
        linerate(&["flows", &logger.at(), "--json", "--once", "--by", "packets", "--filter", "port=53,protocol=udp"]);
    let all = lines(&ended.stdout);
    assert_eq!((ended.code, all.len()), (0, 1), "{}", ended.stderr);
    let flows = all[0]["top"]["flows"].as_array().unwrap();
    assert_eq!((flows.len(), &flows[0]["src"], &flows[0]["dport"]), (10, &"192.0.2.3".into(), &53.into()));
}

#[test]
fn a_pipe_gets_a_table() {
    let logger = Logger::named("left\u{7}");
    let ended = linerate(&["flows", &logger.at(), "--top", "3"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    for part in ["left\\u{7}", "14.881M", "1000000007", "30", "1024", "192.0.2.30:40000", "udp"] {
        assert!(ended.stdout.contains(part), "no {part:?} in\n{}", ended.stdout);
    }
    insta::assert_snapshot!(ended.stdout.replace(&logger.at(), "[address]"));
    assert!(!ended.stdout.contains('\u{1b}') && !ended.stdout.contains('\u{7}'));
}

#[test]
fn twelve_real_servers_are_read_at_once() {
    let server = |n: usize| {
        let spec = ServeSpec { name: format!("logger{n}"), ..ServeSpec::new("127.0.0.1:0".parse().unwrap()) };
        Server::start(&spec, Arc::new(Still)).unwrap()
    };
    let servers: Vec<_> = (0..12).map(server).collect();
    let addresses: Vec<_> = servers.iter().map(|s| s.local_addr().to_string()).collect();
    let mut args = vec!["flows", "--json", "--once", "--top", "3", "--filter", "prefix=192.0.2.0/28"];
    args.extend(addresses.iter().map(String::as_str));
    let ended = linerate(&args);
    let all = lines(&ended.stdout);
    assert_eq!((ended.code, all.len()), (0, 12), "{}", ended.stderr);
    for (n, line) in all.iter().enumerate() {
        assert_eq!(line["name"], format!("logger{n}"));
        assert_eq!((&line["top"]["matching"], &line["top"]["flows"][0]["src"]), (&15.into(), &"192.0.2.15".into()));
    }
    let mut shown = Shown::start(&addresses.iter().map(String::as_str).collect::<Vec<_>>());
    shown.wait(&loggers_read(12, 12));
    shown.wait(&format!("{}1-8 of 30", flows_of("logger0")));
    shown.process.say("a");
    shown.wait("of 360");
    shown.process.say("q");
    shown.ended_well();
}

#[test]
fn tls_is_spoken_where_asked_for() {
    let mut words = Words::new();
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        fs::write(dir.path().join(name), text).unwrap();
        dir.path().join(name)
    };
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let cert = file("cert.pem", &made.cert.pem());
    let key = file("key.pem", &made.signing_key.serialize_pem());
    let tls = Some(TlsSpec { cert: cert.clone(), key });
    let spec = ServeSpec { tls, ..ServeSpec::new("127.0.0.1:0".parse().unwrap()) };
    let server = Server::start(&spec, Arc::new(Still)).unwrap();
    let address = server.local_addr().to_string();
    words.hide(&address, "address");
    let ended = linerate(&["flows", &address, "--once", "--top", "1", "--tls-ca", cert.to_str().unwrap()]);
    assert!(ended.code == 0 && ended.stdout.contains("192.0.2.30:40000"), "{}{}", ended.stdout, ended.stderr);
    let other = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let other = file("other.pem", &other.cert.pem());
    refused(&mut words, 1, &["flows", &address, "--once", "--tls-ca", other.to_str().unwrap()]);
    let no_pem = file("no.pem", "hello");
    refused(&mut words, 2, &["flows", &address, "--once", "--tls-ca", no_pem.to_str().unwrap()]);
    insta::assert_snapshot!(words);
}

/// The right exit code, and one clear line for the snapshot.
#[track_caller]
fn refused(words: &mut Words, code: i32, args: &[&str]) {
    words.refused(code, args, &linerate(args));
}

#[test]
fn what_cannot_be_read_is_named() {
    let mut words = Words::new();
    // Nobody listens where a listener has just been.
    let gone = Logger::named("gone").at();
    words.hide(&gone, "gone");
    refused(&mut words, 4, &["flows", &gone, "--once"]);
    let json = linerate(&["flows", &gone, "--json", "--count", "2", "--every", "100ms"]);
    assert!(json.code == 4 && json.stderr.contains(&gone), "{}", json.stderr);
    assert!(lines(&json.stdout).iter().all(|line| line["state"] == "down"), "{}", json.stdout);
    words.add("as JSON", &json.stderr);
    let alive = Logger::named("alive");
    let both = linerate(&["flows", &alive.at(), &gone, "--once", "--json"]);
    let states: Vec<_> = lines(&both.stdout).iter().map(|l| l["state"].clone()).collect();
    assert_eq!((both.code, states), (4, vec!["connected".into(), "down".into()]));
    for garbage in [&b"SSH-2.0-OpenSSH_9.2\r\n"[..], b"\xff\xfe\x00\n", b"{\"server\":\"x\"}\n", b"", b"[[[[[[[\n"] {
        let logger = Logger::start(Manner { garbage: Some(garbage), ..Manner::default() });
        words.hide(logger.at(), "address");
        refused(&mut words, 1, &["flows", &logger.at(), "--once"]);
    }
    let newer = b"{\"server\":\"linerate-flowlog\",\"version\":9,\"name\":\"x\",\"auth\":false}\n";
    let logger = Logger::start(Manner { garbage: Some(newer), ..Manner::default() });
    words.hide(logger.at(), "address");
    refused(&mut words, 1, &["flows", &logger.at(), "--once"]);
    insta::assert_snapshot!(words);
}

#[test]
fn a_token_is_shown_from_its_file() {
    let mut words = Words::new();
    let dir = tempfile::tempdir().unwrap();
    let file = |text: &str| {
        let path = dir.path().join("token");
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let logger = Logger::start(Manner { name: "locked".into(), token: Some("s3cret-token"), garbage: None });
    words.hide(logger.at(), "address");
    refused(&mut words, 2, &["flows", &logger.at(), "--once"]);
    refused(&mut words, 2, &["flows", &logger.at(), "--once", "--token-file", &file("another-token\n")]);
    refused(&mut words, 2, &["flows", &logger.at(), "--once", "--token-file", &file("\n")]);
    refused(&mut words, 2, &["flows", &logger.at(), "--once", "--token-file", "/nowhere/token"]);
    let ended = linerate(&["flows", &logger.at(), "--once", "--token-file", &file("s3cret-token\n")]);
    assert!(ended.code == 0 && ended.stdout.contains("locked"), "{}{}", ended.stdout, ended.stderr);
    insta::assert_snapshot!(words);
}

#[test]
fn what_is_typed_wrong_says_what_is_legal() {
    let mut words = Words::new();
    refused(&mut words, 2, &["flows", "nohost"]);
    refused(&mut words, 2, &["flows", "::1:9395"]);
    refused(&mut words, 2, &["flows", "a:0"]);
    refused(&mut words, 2, &["flows", "a:1", "a:1"]);
    refused(&mut words, 2, &["flows", "--every", "1ms"]);
    refused(&mut words, 2, &["flows", "--filter", "port=dns"]);
    refused(&mut words, 2, &["flows", "--by", "size"]);
    refused(&mut words, 2, &["flows", "--top", "1001"]);
    refused(&mut words, 2, &["flows", "--json", "--count", "0"]);
    refused(&mut words, 2, &["flows", "--tls-ca", "/nowhere/ca.pem"]);
    insta::assert_snapshot!(words);
}

#[test]
fn a_stream_outlives_its_logger() {
    let dir = tempfile::tempdir().unwrap();
    let logger = Logger::named("a");
    let address = logger.address;
    let argv = [BINARY, "flows", &logger.at(), "--json", "--every", "100ms"].map(str::to_owned);
    let mut stream = Process::spawn(&argv, None, &[], &dir.path().join("out"));
    stream.wait_output("look", SOON, |out| out.contains("connected"));
    drop(logger);
    stream.wait_output("loss", SOON, |out| out.contains("\"down\""));
    let _logger = Logger::start_at(address, Manner { name: "back".into(), ..Manner::default() });
    stream.wait_output("look", SOON, |out| out.contains("\"back\""));
    stream.signal("TERM");
    assert!(stream.wait_end(SOON).unwrap().success());
}

#[test]
fn jq_reads_a_stream_through_losses_to_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let logger = Logger::named("front");
    let address = logger.address;
    let each = "[.state, .name, (.top.flows // [] | map(.packets_per_s) | add), .totals.interfaces[0].packets_per_s]";
    let pipe = format!(
        "exec {BINARY} flows {address} --json --every 100ms --top 5 > >(jq -ec --unbuffered '{each}'; echo ended $?)"
    );
    let argv = ["bash", "-c", &pipe].map(str::to_owned);
    let mut stream = Process::spawn(&argv, None, &[], &dir.path().join("out"));
    stream.wait_output("flows", SOON, |out| out.contains(r#"["connected","front",7.5,14880952.4]"#));
    drop(logger);
    stream.wait_output("loss", SOON, |out| out.contains(r#"["down","#));
    let again = Logger::start_at(address, Manner { name: "back".into(), ..Manner::default() });
    stream.wait_output("look", SOON, |out| out.contains(r#"["connected","back",7.5,"#));
    stream.signal("TERM");
    assert!(stream.wait_end(SOON).unwrap().success());
    drop(again);
    // jq, too, ends well: the last line is whole.
    wait_until("jq has ended", SOON, || stream.output().ends_with("\nended 0\n"));
    let short = Logger::named("short");
    let short = format!("{BINARY} flows {} --json --every 100ms | head -n 2", short.at());
    let ended = support::run(&["timeout", "60", "sh", "-c", &short]);
    assert!(lines(&ended).iter().all(|line| line["logger"].is_string()), "{ended}");
}

/// The display on a terminal of its own, with the terminal's settings before and after.
struct Shown {
    process: Process,
    dir: tempfile::TempDir,
}

impl Shown {
    fn start(args: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name).display().to_string();
        let (before, after, pid, code) = (at("before"), at("after"), at("pid"), at("code"));
        let run = format!("sh -c 'echo $$ > {pid}; exec {BINARY} flows {}'", args.join(" "));
        let inside = format!("stty rows 24 cols 80; stty -g > {before}; {run}; echo $? > {code}; stty -g > {after}");
        let argv = ["script", "-q", "-f", "-c", &inside, "/dev/null"].map(str::to_owned);
        let env = [("TERM", Path::new("xterm-256color")), ("SHELL", Path::new("/bin/sh"))];
        Self { process: Process::spawn(&argv, None, &env, &dir.path().join("out")), dir }
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.dir.path().join(name)).unwrap_or_default().trim().to_owned()
    }

    /// Everything drawn so far, without the escapes that place it. Blanks are not always drawn.
    fn text(out: &str) -> String {
        let mut text = String::new();
        let mut rest = out;
        while let Some(at) = rest.find('\u{1b}') {
            text += &rest[..at];
            let after = rest[at + 1..].trim_start_matches(['[', '?']);
            rest = after.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
            rest = rest.get(1..).unwrap_or_default();
        }
        (text + rest).replace(' ', "")
    }

    /// Waits until this stands on the screen. Only what changes is drawn, so Ctrl-L asks for everything.
    #[track_caller]
    fn wait(&mut self, part: &str) {
        let part = part.replace(' ', "");
        wait_until(&part, SOON, || {
            assert!(self.process.alive(), "{}", self.process.tail());
            self.process.say("\u{c}");
            std::thread::sleep(Duration::from_millis(100));
            Self::text(&self.process.output()).contains(&part)
        });
    }

    #[track_caller]
    fn ended_well(self) {
        self.ended_with("0");
    }

    #[track_caller]
    fn ended_with(mut self, code: &str) {
        self.process.wait_end(SOON);
        let out = self.process.output();
        assert_eq!(self.read("code"), code, "{}", Self::text(&out));
        assert!(!self.read("before").is_empty());
        assert_eq!(self.read("before"), self.read("after"), "the terminal is as it was");
        let (enter, leave) = (out.rfind("\u{1b}[?1049h"), out.rfind("\u{1b}[?1049l"));
        assert!(enter.is_some() && enter < leave && out.rfind("\u{1b}[?25l") < out.rfind("\u{1b}[?25h"));
    }
}

#[test]
fn keys_are_obeyed_on_a_terminal() {
    let (a, b) = (Logger::named("alpha"), Logger::named("beta"));
    let mut shown = Shown::start(&[&a.at(), &b.at()]);
    shown.wait(&loggers_read(2, 2));
    shown.wait(&format!("{}1-", flows_of("alpha")));
    shown.wait("192.0.2.30:40000");
    assert!(!shown.process.output().contains("\u{1b}[31m0"), "what a logger says reaches no terminal raw");
    shown.process.say("\t");
    shown.wait(&format!("{}1-", flows_of("beta")));
    shown.process.say("/port=53\r");
    shown.wait("only port=53");
    shown.process.say("s");
    shown.wait("pps▼");
    shown.process.say("\u{1b}[B\u{1b}[6~\u{1b}[F\u{1b}[Hp");
    shown.wait(PAUSED);
    shown.process.say("q");
    shown.ended_well();
}

#[test]
fn a_logger_that_dies_comes_back_on_the_screen() {
    let logger = Logger::named("phoenix");
    let address = logger.address;
    let mut shown = Shown::start(&[&logger.at()]);
    shown.wait(&format!("{}1-", flows_of("phoenix")));
    drop(logger);
    shown.wait(RECONNECTING);
    let _logger = Logger::start_at(address, Manner { name: "reborn".into(), ..Manner::default() });
    shown.wait("reborn");
    shown.process.say("\u{3}");
    shown.ended_well();
}

#[test]
fn sigterm_leaves_the_terminal_as_it_was() {
    // Also while nobody answers.
    let gone = Logger::named("gone").at();
    let mut shown = Shown::start(&[&gone]);
    shown.wait(CONNECTION_REFUSED);
    wait_until("its id", SOON, || !shown.read("pid").is_empty());
    let pid = Pid::from_raw(shown.read("pid").parse().unwrap()).unwrap();
    // Twice, as `timeout` does it; the second may find it gone.
    kill_process(pid, Signal::TERM).unwrap();
    let _ = kill_process(pid, Signal::TERM);
    shown.ended_with("130");
}
