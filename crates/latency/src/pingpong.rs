//! A closed loop: a message, its reply, the next message. What a stalled sender or server delays is not asked meanwhile, so the
//! slowest percentiles are underestimates ([`crate::open_loop`] asks at a rate).

use std::{
    io,
    ops::RangeInclusive,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use crate::{
    disturbed::Judged,
    message::{reply, Header, Reply, CLIENT, HEADER, PONG},
    noise::Noise,
    patience::Patience,
    socket::{Came, Client},
    summary::is_precise,
    tally::{Counts, Seen, Tally},
};

/// A server that answers nothing for so long is gone.
const GONE: Duration = Duration::from_secs(5);
/// A server that has answered nothing for so long when the time is over was gone: three messages at least. On a slow way it is given
/// longer.
const SILENT: Duration = Duration::from_millis(300);
/// How often a thread that waits for a reply asks whether it is to go on.
const GLANCE: Duration = Duration::from_millis(100);
/// Samples between two looks at how precise the figures are.
const LOOK: u64 = 4096;

/// What is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PingPongOptions {
    /// Bytes of a message, header included: one size, or each of a range in an order that looks random.
    pub size: RangeInclusive<usize>,
    /// Messages that go out before their replies are awaited.
    pub burst: u32,
    /// How long messages go before their times count.
    pub warm_up: Duration,
    /// How long it measures.
    pub time: Duration,
    /// Samples at most.
    pub samples: Option<u64>,
    /// It ends when median and 99th percentile are known to this share.
    pub precision: Option<f64>,
    /// Payloads are compared with what was sent.
    pub verify: bool,
    /// Messages that are kept one by one, the first ones.
    pub keep: usize,
}

impl Default for PingPongOptions {
    fn default() -> Self {
        Self {
            size: HEADER..=HEADER,
            burst: 1,
            warm_up: Duration::from_millis(200),
            time: Duration::from_secs(1),
            samples: None,
            precision: None,
            verify: false,
            keep: 0,
        }
    }
}

/// Why it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// Its time was over, or it had its samples.
    Done,
    /// It was as precise as was asked.
    Precise,
    /// It was asked to end.
    Stopped,
    /// No message that counts was answered in time: the rate of an open loop is far above what goes.
    TooFast,
    /// Some of several clients measured nothing, and why.
    LeftOut(String),
    /// The server is gone, and how that was seen.
    Gone(String),
}

impl Ended {
    /// Keeps the end of the greater rank.
    pub fn or_worse(&mut self, other: Self) {
        if other.rank() > self.rank() {
            *self = other;
        }
    }

    /// Which one of several is told: the greatest.
    pub fn rank(&self) -> u8 {
        match self {
            Self::Precise => 0,
            Self::Done => 1,
            Self::Stopped => 2,
            Self::TooFast => 3,
            Self::LeftOut(_) => 4,
            Self::Gone(_) => 5,
        }
    }
}

/// What came of it.
#[derive(Debug)]
pub struct Measured {
    /// Round trips.
    pub times: Judged,
    /// What became of the messages.
    pub counts: Counts,
    /// How long it measured, without the warm-up.
    pub seconds: f64,
    /// Why it ended.
    pub ended: Ended,
    /// When each of the first messages went out and its reply came, ns after the first.
    pub log: Vec<(u64, u64)>,
}

impl Measured {
    /// Replies a second.
    pub fn rate(&self) -> f64 {
        if self.seconds > 0.0 {
            self.counts.replied as f64 / self.seconds
        } else {
            0.0
        }
    }
}

/// Measures on the thread that calls.
///
/// # Errors
///
/// Where not one reply came: as the system says, or that nobody answers (`TimedOut`). After that, errors end the measurement and
/// what was measured is kept.
pub fn run(client: &mut Client, options: &PingPongOptions, go_on: &dyn Fn() -> bool) -> io::Result<Measured> {
    let mut run = Run {
        options,
        buffer: vec![0; (*options.size.end()).max(HEADER)],
        sent: vec![Instant::now(); options.burst.max(1) as usize],
        sequence: 0,
        patience: Patience::default(),
        tally: Tally::default(),
        times: Judged::new().ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?,
        last_reply: Instant::now(),
        replied: false,
        refused: false,
        counts: false,
        from: 0,
        log: Vec::with_capacity(options.keep),
        logged_since: Instant::now(),
    };
    let mut noise = Noise::default();
    noise.fill(&mut run.buffer[HEADER..]);
    let warm_until = Instant::now() + options.warm_up;
    let (mut begun, mut ended, mut next_look) = (Instant::now(), Ended::Done, LOOK);
    loop {
        if !run.counts && Instant::now() >= warm_until && run.replied {
            run.begin();
            begun = Instant::now();
        }
        if let Err(e) = run.burst(client, &mut noise, go_on) {
            // A program that is stopped may take the other end along.
            match (go_on(), run.replied) {
                (true, false) => return Err(e),
                (true, true) => ended = Ended::Gone(e.to_string()),
                (false, _) => ended = Ended::Stopped,
            }
            break;
        }
        if !go_on() {
            ended = Ended::Stopped;
            break;
        }
        if !run.counts {
            if !run.replied && run.last_reply.elapsed() > GONE {
                return Err(run.tally.nobody());
            }
            continue;
        }
        if run.last_reply.elapsed() > run.patience.silence(GONE) {
            ended = Ended::Gone(format!("no answer for {} s", run.last_reply.elapsed().as_secs()));
            break;
        }
        let count = run.times.all.count();
        if begun.elapsed() >= options.time || options.samples.is_some_and(|samples| count >= samples) {
            break;
        }
        if let Some(precision) = options.precision.filter(|_| count >= next_look) {
            next_look = count + LOOK;
            if is_precise(&run.times.all, precision) {
                ended = Ended::Precise;
                break;
            }
        }
    }
    if matches!(ended, Ended::Done)
        && run.counts
        && (run.refused || run.last_reply.elapsed() > run.patience.silence(SILENT))
    {
        let why = if run.refused { "nobody listens there any more" } else { "it answered nothing at the end" };
        ended = Ended::Gone(why.to_owned());
    }
    if !run.counts {
        // Nothing of a warm-up is a figure.
        run.begin();
        run.counts = false;
    }
    run.times.end();
    let seconds = if run.counts { begun.elapsed().as_secs_f64() } else { 0.0 };
    Ok(Measured { times: run.times, counts: run.tally.end(), seconds, ended, log: run.log })
}

struct Run<'a> {
    options: &'a PingPongOptions,
    buffer: Vec<u8>,
    /// When each message of the burst went out.
    sent: Vec<Instant>,
    sequence: u64,
    patience: Patience,
    tally: Tally,
    times: Judged,
    last_reply: Instant,
    replied: bool,
    /// Nobody has listened since the last reply.
    refused: bool,
    /// The warm-up is over.
    counts: bool,
    /// The first message that counts: what is replied to before it is of the warm-up.
    from: u64,
    log: Vec<(u64, u64)>,
    logged_since: Instant,
}

impl Run<'_> {
    /// The warm-up is over: what was counted so far is forgotten.
    fn begin(&mut self) {
        self.tally = Tally::default();
        if let Some(times) = Judged::new() {
            self.times = times;
        }
        (self.counts, self.from) = (true, self.sequence + 1);
        self.logged_since = Instant::now();
    }

    /// Sends a burst and waits for its replies.
    fn burst(&mut self, client: &mut Client, noise: &mut Noise, go_on: &dyn Fn() -> bool) -> io::Result<()> {
        let (first, is_udp) = (self.sequence + 1, client.is_udp());
        let size = noise.size(&self.options.size);
        let mut open = self.sent.len();
        for n in 0..self.sent.len() {
            self.sequence += 1;
            let header = Header { sequence: self.sequence, flags: CLIENT | PONG, length: size as u32 };
            header.write(&mut self.buffer);
            self.tally.sent(self.sequence);
            self.sent[n] = Instant::now();
            match client.send(&self.buffer[..size]) {
                Ok(()) => {}
                // Of an earlier datagram, or a queue that is full: this message is lost.
                Err(e) if (self.replied && is_of_a_datagram(&e)) || is_too_long_here(is_udp, &e) => {
                    self.refused |= e.kind() == io::ErrorKind::ConnectionRefused;
                    self.tally.gave_up(self.sequence);
                    open -= 1;
                }
                Err(e) => return Err(e),
            }
        }
        let mut now = self.sent[self.sent.len() - 1];
        let until = now + self.patience.limit();
        while open > 0 && now < until {
            match client.receive(now, until.min(now + GLANCE)) {
                Ok(Came::Message(message)) => {
                    now = Instant::now();
                    match reply(message) {
                        Reply::Foreign => self.tally.foreign(),
                        // Late, to one of the warm-up.
                        Reply::To(sequence) if (1..self.from).contains(&sequence) => {}
                        Reply::To(sequence) => {
                            let seen = self.tally.came(sequence);
                            if seen == Seen::Late {
                                // The way is longer than was thought.
                                (self.replied, self.last_reply) = (true, now);
                                self.patience.late();
                            }
                            if seen == Seen::Good {
                                open -= 1;
                                (self.replied, self.refused) = (true, false);
                                self.last_reply = now;
                                if self.options.verify && message.get(HEADER..) != self.buffer.get(HEADER..size) {
                                    self.tally.damaged();
                                }
                                let at = sequence.checked_sub(first).and_then(|n| self.sent.get(n as usize));
                                if let Some(sent) = at {
                                    let took = now - *sent;
                                    self.patience.saw(took);
                                    self.times.add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), now);
                                    if self.counts && self.log.len() < self.options.keep {
                                        let since = |at: Instant| (at - self.logged_since).as_nanos() as u64;
                                        self.log.push((since(*sent), since(now)));
                                    }
                                }
                            }
                        }
                    }
                }
                Ok(Came::Nothing) => {
                    now = Instant::now();
                    if !go_on() {
                        break;
                    }
                }
                Ok(Came::Closed) => {
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it closed the connection"))
                }
                Ok(Came::Garbage) => {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, "it does not send messages of sockperf"))
                }
                // Of what went out before; the next one goes in parts.
                Err(e) if is_too_long_here(is_udp, &e) => now = Instant::now(),
                Err(e) if self.replied && is_of_a_datagram(&e) => {
                    self.refused |= e.kind() == io::ErrorKind::ConnectionRefused;
                    // Nobody listens now; whoever comes back is heard.
                    std::thread::sleep(Duration::from_millis(10));
                    break;
                }
                Err(e) => return Err(e),
            }
        }
        (first..=self.sequence).for_each(|sequence| self.tally.gave_up(sequence));
        Ok(())
    }
}

/// An error that a datagram can have without the end of everything.
fn is_of_a_datagram(error: &io::Error) -> bool {
    // ENOBUFS has no kind of its own.
    matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::WouldBlock)
        || error.raw_os_error() == Some(105)
}

/// A router on the way has said that datagrams of this size do not fit (EMSGSIZE, told once): from now on they go in fragments.
pub(crate) fn is_too_long_here(is_udp: bool, error: &io::Error) -> bool {
    is_udp && error.raw_os_error() == Some(90)
}

#[cfg(test)]
mod tests {
    use std::{
        net::{Ipv4Addr, SocketAddr, UdpSocket},
        thread,
    };

    use super::*;
    use crate::{
        message::answer,
        socket::{Transport, Wait},
        testing::{one_in_time, with_other, with_server},
    };

    fn quick() -> PingPongOptions {
        PingPongOptions {
            warm_up: Duration::from_millis(10),
            time: Duration::from_millis(150),
            verify: true,
            ..PingPongOptions::default()
        }
    }

    #[test]
    fn a_server_that_falls_silent_before_the_end_is_gone_and_one_that_loses_one_is_not() {
        let options = PingPongOptions { time: Duration::from_millis(600), ..quick() };
        let silent = || {
            let begun = Instant::now();
            let behaves = |socket: &UdpSocket, bytes: &mut [u8], from: SocketAddr, _| {
                if begun.elapsed() < Duration::from_millis(150) && answer(bytes) {
                    socket.send_to(bytes, from).unwrap();
                }
            };
            let ended = with_other(behaves, |server| measured(server, &options)).ended;
            assert!(matches!(ended, Ended::Gone(_) | Ended::Done), "{ended:?}");
            ended
        };
        // Where a reply took long since others had the CPU, the next one is waited for longer than that, too.
        one_in_time(silent, |ended| matches!(ended, Ended::Gone(_)));
        let loses = || {
            let (begun, last) = (Instant::now(), std::sync::atomic::AtomicBool::new(false));
            let behaves = |socket: &UdpSocket, bytes: &mut [u8], from: SocketAddr, _| {
                let first = begun.elapsed() > Duration::from_millis(400)
                    && !last.swap(true, std::sync::atomic::Ordering::Relaxed);
                if !first && answer(bytes) {
                    socket.send_to(bytes, from).unwrap();
                }
            };
            with_other(behaves, |server| measured(server, &options))
        };
        one_in_time(loses, |run| (&run.ended, run.counts.lost) == (&Ended::Done, 1));
    }

    fn measured(server: SocketAddr, options: &PingPongOptions) -> Measured {
        let mut client = Client::open(Transport::Udp, server, Wait::Block).unwrap();
        run(&mut client, options, &|| true).unwrap()
    }

    #[test]
    fn each_message_is_replied_to_and_timed() {
        for transport in [Transport::Udp, Transport::Tcp] {
            with_server(transport, Wait::Block, |server| {
                for options in [
                    quick(),
                    PingPongOptions { size: 1400..=1400, burst: 4, ..quick() },
                    PingPongOptions { size: 14..=900, ..quick() },
                ] {
                    let mut client = Client::open(transport, server, Wait::Spin).unwrap();
                    let all = || {
                        let measured = run(&mut client, &options, &|| true).unwrap();
                        let counts = measured.counts;
                        assert_eq!((counts.replied + counts.lost, counts.damaged), (counts.sent, 0), "{counts:?}");
                        assert_eq!(measured.times.all.count(), counts.replied);
                        assert!(measured.seconds >= 0.15);
                        // None is lost: a reply that was given up comes later, unless it was the last.
                        assert!(counts.lost <= counts.late + 1, "{counts:?}");
                        (counts.lost, counts.replied > 10, measured.ended)
                    };
                    one_in_time(all, |seen| *seen == (0, true, Ended::Done));
                }
            });
        }
    }

    #[test]
    fn it_ends_with_its_samples_when_it_is_precise_or_when_it_is_asked_to() {
        with_server(Transport::Udp, Wait::Block, |server| {
            let samples = PingPongOptions { samples: Some(25), time: Duration::from_secs(60), ..quick() };
            assert_eq!(measured(server, &samples).times.all.count(), 25);
            let precise = PingPongOptions { precision: Some(5.0), time: Duration::from_secs(60), ..quick() };
            let precise = measured(server, &precise);
            assert_eq!((precise.ended, precise.times.all.count() >= LOOK), (Ended::Precise, true));
            let mut client = Client::open(Transport::Udp, server, Wait::Block).unwrap();
            let stopped = run(&mut client, &quick(), &|| false).unwrap();
            assert_eq!((stopped.ended, stopped.seconds), (Ended::Stopped, 0.0));
        });
    }

    #[test]
    fn lost_late_double_and_damaged_replies_are_counted_and_it_goes_on() {
        let options = PingPongOptions { samples: Some(60), time: Duration::from_secs(30), size: 64..=64, ..quick() };
        let lossy = with_other(
            |socket, bytes, from, n| {
                if n % 20 != 0 && answer(bytes) {
                    socket.send_to(bytes, from).unwrap();
                }
            },
            |server| measured(server, &options),
        );
        assert!(lossy.counts.lost >= 2 && lossy.counts.replied >= 60, "{:?}", lossy.counts);
        assert!(lossy.times.all.percentile(100.0).ns.unwrap() < 90_000_000, "a lost one has no time");
        let double = with_other(
            |socket, bytes, from, n| {
                answer(bytes);
                if n % 3 == 0 {
                    bytes[20] ^= 1;
                }
                socket.send_to(bytes, from).unwrap();
                socket.send_to(bytes, from).unwrap();
                socket.send_to(b"hello", from).unwrap();
            },
            |server| measured(server, &options),
        );
        assert!(double.counts.duplicates > 10 && double.counts.foreign > 10, "{:?}", double.counts);
        assert!(double.counts.damaged > 5, "{:?}", double.counts);
        // An answer after it was given up.
        let late = with_other(
            |socket, bytes, from, n| {
                if n == 20 {
                    thread::sleep(Duration::from_secs(3));
                }
                answer(bytes);
                socket.send_to(bytes, from).unwrap();
            },
            |server| measured(server, &PingPongOptions { warm_up: Duration::ZERO, ..options.clone() }),
        );
        assert!(late.counts.late >= 1 && late.counts.lost >= late.counts.late, "{:?}", late.counts);
        assert_eq!(late.counts.replied, 60, "it goes on: {:?}", late.counts);
    }

    #[test]
    fn nobody_who_answers_and_one_who_dies() {
        let silent = with_other(
            |_, _, _, _| (),
            |server| {
                let mut client = Client::open(Transport::Udp, server, Wait::Block).unwrap();
                run(&mut client, &quick(), &|| true).unwrap_err()
            },
        );
        assert_eq!(silent.kind(), io::ErrorKind::TimedOut);
        let port = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
        let mut client = Client::open(Transport::Udp, port, Wait::Block).unwrap();
        assert_eq!(run(&mut client, &quick(), &|| true).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        let dying = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut client = Client::open(Transport::Tcp, dying.local_addr().unwrap(), Wait::Block).unwrap();
        let ended = thread::scope(|s| {
            s.spawn(|| {
                use io::{Read, Write};
                let (mut stream, _) = dying.accept().unwrap();
                for _ in 0..500 {
                    let mut bytes = [0; HEADER];
                    stream.read_exact(&mut bytes).unwrap();
                    answer(&mut bytes);
                    stream.write_all(&bytes).unwrap();
                }
            });
            let long = PingPongOptions { warm_up: Duration::ZERO, time: Duration::from_secs(60), ..quick() };
            run(&mut client, &long, &|| true).unwrap()
        });
        assert!(matches!(ended.ended, Ended::Gone(_)), "{ended:?}");
        assert!(ended.counts.replied >= 499 && ended.counts.lost <= 1, "{:?}", ended.counts);
    }

    #[test]
    fn a_late_reply_to_the_warm_up_is_nobody_else_s() {
        let asked = std::sync::atomic::AtomicU32::new(0);
        let behaves = |socket: &UdpSocket, bytes: &mut [u8], from: SocketAddr, _| {
            answer(bytes);
            // The tenth is answered when it was given up, and the warm-up is over.
            if asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 10 {
                let (socket, bytes) = (socket.try_clone().unwrap(), bytes.to_vec());
                thread::spawn(move || {
                    thread::sleep(Duration::from_millis(250));
                    let _ = socket.send_to(&bytes, from);
                });
                return;
            }
            let _ = socket.send_to(bytes, from);
        };
        let counts = with_other(behaves, |address| {
            let mut client = Client::open(Transport::Udp, address, Wait::Block).unwrap();
            let options = PingPongOptions {
                warm_up: Duration::from_millis(20),
                time: Duration::from_millis(600),
                ..PingPongOptions::default()
            };
            run(&mut client, &options, &|| true).unwrap().counts
        });
        assert!(counts.replied > 10 && asked.into_inner() > 20, "{counts:?}");
        assert_eq!((counts.foreign, counts.sent), (0, counts.replied + counts.lost), "{counts:?}");
    }
}
