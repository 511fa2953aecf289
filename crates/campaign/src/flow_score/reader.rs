//! Reads what a flow logger recorded.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use failure::{Failure, Stop};
use flow::{
    ipfix::{Collector, CollectorSpec, Counts},
    protocol::{Answer, What},
    truth::Recorded,
};
use serde::Serialize;
use serde_json::json;
use traffic::flows::Program;

use super::{logger::FlowLogger, truth::find};

/// Records kept of one trial: four for each flow of the largest program at most.
const MOST_RECORDS: usize = 4 << 24;
/// Nothing has come for so long: nothing of what has been sent is still under way.
const QUIET: Duration = Duration::from_millis(500);
/// How long a `linerate flowlog` may take to answer.
const ANSWER: Duration = Duration::from_secs(10);
/// Longest line read from one: a page of 1,000 flows is under 400 kB.
const MOST_LINE: u64 = 16 << 20;

/// What came in besides flow records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Reading {
    /// Messages, or pages.
    pub messages: u64,
    /// Messages or lines that broke their format.
    pub malformed: u64,
    /// Data sets passed over for want of their template.
    pub without_template: u64,
    /// Records sent that did not arrive here, by the exporter's sequence numbers.
    pub lost: u64,
}

/// What is read of one trial, so far.
struct Taking {
    recorded: Recorded,
    program: Option<Arc<Program>>,
    latest: Instant,
}

/// The logger's records, for one trial after another.
pub struct Reader {
    logger: FlowLogger,
    taking: Arc<Mutex<Taking>>,
    collector: Option<Collector>,
    before: Counts,
}

impl Reader {
    /// Begins to listen. Errors when the address cannot be had, or nobody answers at it.
    pub fn start(logger: &FlowLogger) -> Result<Self, Failure> {
        let taking = Taking { recorded: Recorded::new(0), program: None, latest: Instant::now() };
        let taking = Arc::new(Mutex::new(taking));
        let spec = match *logger {
            FlowLogger::IpfixUdp(udp) => CollectorSpec { udp: Some(udp), ..CollectorSpec::default() },
            FlowLogger::IpfixTcp(tcp) => CollectorSpec { tcp: Some(tcp), ..CollectorSpec::default() },
            FlowLogger::Ours(ref at, ref token) => {
                Client::connect(at, token.as_deref())?;
                return Ok(Self { logger: logger.clone(), taking, collector: None, before: Counts::default() });
            }
        };
        let sink = Arc::clone(&taking);
        let collector = Collector::start(spec, move |_, records| {
            let mut taking = sink.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(program) = taking.program.clone() else { return };
            let before = taking.recorded.records();
            records.iter().for_each(|record| taking.recorded.add(record, |key| find(program.keys(), key)));
            if taking.recorded.records() != before {
                taking.latest = Instant::now();
            }
        });
        let collector = collector.map_err(|e| {
            Failure::machine(format!(
                "--logger {logger}: cannot listen there: {e}: end what does, or choose another port"
            ))
        })?;
        Ok(Self { logger: logger.clone(), taking, collector: Some(collector), before: Counts::default() })
    }

    /// From now on records of this program are kept, and those of earlier ones are other traffic.
    pub fn expect(&mut self, program: &Arc<Program>) {
        let mut taking = self.taking.lock().unwrap_or_else(PoisonError::into_inner);
        taking.recorded = Recorded::new(MOST_RECORDS);
        (taking.program, taking.latest) = (Some(Arc::clone(program)), Instant::now());
        self.before = self.collector.as_ref().map(Collector::counts).unwrap_or_default();
    }

    /// Waits until all `packets` are recorded and nothing more comes, at most so long; shows packets recorded so far.
    pub fn finish(
        &mut self,
        packets: u64,
        most: Duration,
        stop: &Stop,
        tick: &mut dyn FnMut(u64),
    ) -> Result<(Recorded, Reading), Failure> {
        if let FlowLogger::Ours(at, token) = &self.logger {
            let (at, token) = (at.clone(), token.clone());
            return self.ask(&at, token.as_deref(), most, stop);
        }
        let begun = Instant::now();
        loop {
            let (so_far, latest) = {
                let taking = self.taking.lock().unwrap_or_else(PoisonError::into_inner);
                (taking.recorded.packets(), taking.latest)
            };
            let all = so_far >= packets && latest.max(begun).elapsed() >= QUIET;
            if all || begun.elapsed() >= most || stop.requested() {
                break;
            }
            tick(so_far);
            std::thread::sleep(Duration::from_millis(50));
        }
        let now = self.collector.as_ref().map(Collector::counts).unwrap_or_default();
        let mut taking = self.taking.lock().unwrap_or_else(PoisonError::into_inner);
        taking.program = None;
        let recorded = std::mem::replace(&mut taking.recorded, Recorded::new(0));
        let since = |field: fn(&Counts) -> u64| field(&now).saturating_sub(field(&self.before));
        let reading = Reading {
            messages: since(|c| c.messages),
            malformed: since(|c| c.malformed),
            without_template: since(|c| c.without_template),
            lost: since(|c| c.lost),
        };
        Ok((recorded, reading))
    }

    /// Every flow in the tables of a `linerate flowlog`, page by page, in at most so long.
    fn ask(
        &mut self,
        at: &str,
        token: Option<&str>,
        most: Duration,
        stop: &Stop,
    ) -> Result<(Recorded, Reading), Failure> {
        let begun = Instant::now();
        let mut client = Client::connect(at, token)?;
        let mut taking = self.taking.lock().unwrap_or_else(PoisonError::into_inner);
        let mut recorded = std::mem::replace(&mut taking.recorded, Recorded::new(0));
        let (mut reading, mut cursor) = (Reading::default(), None::<String>);
        let Some(program) = taking.program.take() else { return Ok((recorded, reading)) };
        loop {
            let What::Page(page) = client.ask(json!({ "ask": "flows", "limit": 1000, "cursor": cursor }))? else {
                return Err(client.wrong("no page"));
            };
            reading.messages += 1;
            if stop.requested() {
                return Ok((recorded, reading));
            }
            if begun.elapsed() >= most {
                return Err(Failure::failed(format!(
                    "--logger ours={at}: after {} s not all flows are read, {} so far: a longer --flow-wait",
                    most.as_secs_f64(),
                    recorded.records()
                )));
            }
            page.flows.iter().for_each(|row| recorded.add(&row.record, |key| find(program.keys(), key)));
            match page.next {
                Some(next) if cursor.as_ref() != Some(&next) => cursor = Some(next),
                Some(_) => return Err(client.wrong("the same page for ever")),
                None => return Ok((recorded, reading)),
            }
        }
    }
}

/// A plain connection that speaks the read protocol.
struct Client {
    at: String,
    stream: BufReader<TcpStream>,
}

impl Client {
    fn connect(at: &str, token: Option<&str>) -> Result<Self, Failure> {
        let failed = |e: std::io::Error| {
            Failure::machine(format!(
                "--logger ours={at}: {e}: start the logger (linerate flowlog), or name where it listens"
            ))
        };
        let stream = TcpStream::connect(at).map_err(failed)?;
        stream.set_read_timeout(Some(ANSWER)).map_err(failed)?;
        let mut client = Self { at: at.to_owned(), stream: BufReader::new(stream) };
        let hello: flow::protocol::Hello =
            serde_json::from_str(&client.line()?).map_err(|_| client.wrong("no greeting of a linerate flowlog"))?;
        match (hello.auth, token) {
            (true, None) => {
                Err(Failure::usage(format!("--logger ours={at}: it asks for a token: add ,token=TOKEN to the address")))
            }
            (true, Some(token)) => {
                client.ask(json!({ "ask": "auth", "token": token }))?;
                Ok(client)
            }
            (false, _) => Ok(client),
        }
    }

    fn wrong(&self, what: &str) -> Failure {
        Failure::failed(format!("--logger ours={}: {what}: is that a linerate flowlog?", self.at))
    }

    fn line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        match self.stream.by_ref().take(MOST_LINE).read_line(&mut line) {
            Ok(n) if n > 0 && line.ends_with('\n') => Ok(line),
            Ok(_) => Err(self.wrong("the connection ended")),
            Err(e) => Err(self.wrong(&e.to_string())),
        }
    }

    fn ask(&mut self, request: serde_json::Value) -> Result<What, Failure> {
        let sent = self.stream.get_mut().write_all(format!("{request}\n").as_bytes());
        sent.map_err(|e| self.wrong(&e.to_string()))?;
        let answer: Answer =
            serde_json::from_str(&self.line()?).map_err(|_| self.wrong("no answer of its protocol"))?;
        match answer.what {
            What::Error(text) => Err(Failure::failed(format!("--logger ours={}: it says: {text}", self.at))),
            what => Ok(what),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use packet::{
        frame::{HeaderSpec, IpSpec, L4Spec},
        MacAddr,
    };
    use traffic::stream::StreamSpec;
    use units::FrameSize;

    use super::*;

    fn program() -> Arc<Program> {
        let headers = HeaderSpec {
            dst_mac: MacAddr::default(),
            src_mac: MacAddr::default(),
            vlans: vec![],
            mpls: vec![],
            ip: IpSpec::V4 { src: [198, 18, 0, 1].into(), dst: [198, 19, 0, 1].into(), ttl: 64, dscp: 0 },
            l4: L4Spec::Udp { src: 1000, dst: 7 },
        };
        let stream = StreamSpec::constant(headers, FrameSize::MIN);
        Arc::new(Program::new(&"constant:2".parse().unwrap(), &stream).unwrap())
    }

    /// A logger that greets and then answers with these lines, whatever it is asked.
    fn logger(lines: Vec<String>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut asked = BufReader::new(stream.try_clone().unwrap()).lines();
                for (i, line) in lines.iter().enumerate() {
                    if i > 0 && asked.next().is_none() {
                        break;
                    }
                    let _ = stream.write_all(line.as_bytes());
                }
            }
        });
        at
    }

    const HELLO: &str = r#"{"server":"linerate-flowlog","version":2,"name":"a","auth":false}"#;

    fn page(program: &Program, flow: u64, next: &str) -> String {
        let t = program.keys().tuple(flow);
        let row = json!({ "src": t.src, "dst": t.dst, "sport": t.sport, "dport": t.dport, "protocol": t.protocol, "port": 1,
            "scope": null, "ingress": 1, "tos": 0, "forward": { "packets": 3, "ip_bytes": 138, "frame_bytes": 180, "tcp_flags": 0 },
            "back": { "packets": 0, "ip_bytes": 0, "frame_bytes": 0, "tcp_flags": 0 }, "first_unix_ns": 5, "last_unix_ns": 9, "end": null, "packets_per_s": 0.0, "bits_per_s": 0.0 });
        let next = if next.is_empty() { json!(null) } else { json!(next) };
        format!("{}\n", json!({ "id": 0, "page": { "flows": [row], "next": next, "matching": null } }))
    }

    fn read(at: &str) -> Result<(Recorded, Reading), Failure> {
        read_within(at, Duration::from_secs(60))
    }

    fn read_within(at: &str, most: Duration) -> Result<(Recorded, Reading), Failure> {
        let program = program();
        let mut reader = Reader::start(&FlowLogger::Ours(at.to_owned(), None))?;
        reader.expect(&program);
        reader.finish(6, most, &Stop::on_signals()?, &mut |_| {})
    }

    #[test]
    fn pages_without_end_are_not_read_for_ever() {
        let program = program();
        let pages = (0..50_000).map(|n| page(&program, 0, if n % 2 == 0 { "x" } else { "y" }));
        let at = logger(std::iter::once(format!("{HELLO}\n")).chain(pages).collect());
        let failure = read_within(&at, Duration::from_millis(100)).err().unwrap().text;
        let read = failure.split(' ').find(|word| word.parse::<u64>().is_ok()).unwrap();
        insta::assert_snapshot!(failure.replace(&at, "[address]").replace(read, "#"), @"--logger ours=[address]: after 0.1 s not all flows are read, # so far: a longer --flow-wait");
    }

    #[test]
    fn our_own_logger_is_read_page_by_page() {
        let program = program();
        let at = logger(vec![format!("{HELLO}\n"), page(&program, 0, "x"), page(&program, 1, "")]);
        let (recorded, reading) = read(&at).unwrap();
        assert_eq!((recorded.records(), recorded.packets(), reading.messages), (2, 6, 2));
    }

    #[test]
    fn whatever_answers_is_survived() {
        let program = program();
        let hello = || format!("{HELLO}\n");
        let all = [
            vec![],
            vec!["SSH-2.0-x\n".to_owned()],
            vec![HELLO.replace("false", "true") + "\n"],
            vec![hello(), "{}\n".to_owned()],
            vec![hello(), "{\"id\":0,\"error\":\"busy\"}\n".to_owned()],
            vec![hello(), page(&program, 0, "x"), page(&program, 0, "x")],
        ];
        let failures = all.map(|lines| {
            let at = if lines.is_empty() { "127.0.0.1:1".to_owned() } else { logger(lines) };
            read(&at).err().map(|f| f.text).unwrap_or_default().replace(&at, "[address]")
        });
        insta::assert_snapshot!(failures.join("\n"), @r"
        --logger ours=[address]: Connection refused (os error 111): start the logger (linerate flowlog), or name where it listens
        --logger ours=[address]: no greeting of a linerate flowlog: is that a linerate flowlog?
        --logger ours=[address]: it asks for a token: add ,token=TOKEN to the address
        --logger ours=[address]: no answer of its protocol: is that a linerate flowlog?
        --logger ours=[address]: it says: busy
        --logger ours=[address]: the same page for ever: is that a linerate flowlog?
        ");
    }
}
