//! As many messages as a client can send. Some ask for a reply, so that it is seen whether they arrive.

use std::{
    io,
    ops::RangeInclusive,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{channel, Receiver, Sender as Tell},
    },
    thread,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use crate::{
    clients,
    message::{reply, Header, Reply, CLIENT, HEADER, PONG},
    noise::Noise,
    pingpong::Ended,
    socket::{Came, Client, Sender},
    summary::Samples,
    tally::{Counts, Seen, Tally},
};

/// One of `ASK_EVERY` messages asks for a reply, and one at least in each `ASK_WITHIN`.
const ASK_EVERY: u64 = 1000;
const ASK_WITHIN: Duration = Duration::from_millis(10);
/// How long the reply to the last message may take: a server that is behind has to read all before it.
const LAST: Duration = Duration::from_secs(5);
/// The same over UDP, where it may be lost.
const LAST_DATAGRAM: Duration = Duration::from_millis(500);
/// How often the thread that waits for replies asks whether it is to go on.
const GLANCE: Duration = Duration::from_millis(50);
/// A server that answers nothing for so long is gone.
const GONE: Duration = Duration::from_secs(5);
/// A server that has answered nothing for so long when the time is over was gone.
const SILENT: Duration = Duration::from_millis(800);
/// Rest after a datagram that the socket did not take: a queue is full, or nobody listens.
const REST: Duration = Duration::from_micros(100);

/// What is sent.
#[derive(Debug, Clone, PartialEq)]
pub struct ThroughputOptions {
    /// Bytes of a message, header included: one size, or each of a range in an order that looks random.
    pub size: RangeInclusive<usize>,
    /// How long messages go before they count.
    pub warm_up: Duration,
    /// How long they count.
    pub time: Duration,
}

/// What went out.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Throughput {
    /// Messages that the socket took.
    pub messages: u64,
    /// Their bytes, headers of sockperf's messages included, of lower layers not.
    pub bytes: u64,
    /// Messages that the socket did not take.
    pub refused: u64,
    /// Further messages in a connection that ended before the server had answered the last one: whether it read them is not known.
    #[serde(default)]
    pub unread: u64,
    /// Each thousandth message asks for a reply whatever else does: so many went out, a fair sample of all,
    #[serde(default)]
    pub sampled: u64,
    /// and so many of them were answered.
    #[serde(default)]
    pub sampled_answered: u64,
    /// Messages a second.
    pub messages_per_s: f64,
    /// Bits of messages a second.
    pub bits_per_s: f64,
}

impl Throughput {
    /// So many of the messages were read; of the others that is not known.
    fn only(&mut self, read: u64) {
        let read = read.min(self.messages);
        let share = read as f64 / self.messages.max(1) as f64;
        self.unread = self.messages - read;
        (self.messages, self.bytes) = (read, (self.bytes as f64 * share).round() as u64);
    }
}

/// What came of it.
#[derive(Debug)]
pub struct Measured {
    /// What went out.
    pub sent: Throughput,
    /// What became of the messages that asked for a reply.
    pub counts: Counts,
    /// Their round trips.
    pub times: Samples,
    /// How long it took, s: over TCP until the last message that counts was answered, so that the server has read them all.
    pub seconds: f64,
    /// Why it ended.
    pub ended: Ended,
}

/// Sends with each client on a thread of its own, and takes all together.
///
/// # Errors
///
/// Where not one reply came: as the system says, or that nobody answers (`TimedOut`).
pub fn run(
    clients: &mut [Client],
    options: &ThroughputOptions,
    go_on: &(dyn Fn() -> bool + Sync),
) -> io::Result<Measured> {
    let all = clients::each(clients, |client| one(client, options, go_on));
    let (mut sum, mut failed): (Option<Measured>, Option<io::Error>) = (None, None);
    let (of, mut left, is_udp) = (all.len(), 0, clients.iter().all(Client::is_udp));
    for one in all {
        match (one, &mut sum) {
            (Err(e), _) => (failed, left) = (Some(e), left + 1),
            (Ok(first), None) => sum = Some(first),
            (Ok(one), Some(sum)) => {
                sum.times.merge(&one.times);
                sum.counts += one.counts;
                sum.seconds = sum.seconds.max(one.seconds);
                sum.sent.messages += one.sent.messages;
                sum.sent.bytes += one.sent.bytes;
                sum.sent.refused += one.sent.refused;
                sum.sent.unread += one.sent.unread;
                sum.sent.sampled += one.sent.sampled;
                sum.sent.sampled_answered += one.sent.sampled_answered;
                sum.ended.or_worse(one.ended);
            }
        }
    }
    let Some(mut sum) = sum else { return Err(failed.unwrap_or_else(|| io::ErrorKind::InvalidInput.into())) };
    if let Some(e) = failed {
        sum.ended.or_worse(clients::left_out(left, of, &e, is_udp));
    }
    if sum.seconds > 0.0 {
        sum.sent.messages_per_s = sum.sent.messages as f64 / sum.seconds;
        sum.sent.bits_per_s = sum.sent.bytes as f64 * 8.0 / sum.seconds;
    }
    Ok(sum)
}

/// A message that asks for a reply, told before it goes out.
struct Asked {
    sequence: u64,
    at: Instant,
    /// The warm-up is over.
    counts: bool,
    /// Nothing follows.
    last: bool,
}

/// What the sending thread did.
struct Went {
    sent: Throughput,
    begun: Instant,
    /// Messages before the first that counts.
    before: u64,
    seconds: f64,
    /// Why it could not go on, or why the socket did not take the last message that it refused.
    error: Option<io::Error>,
}

fn one(client: &mut Client, options: &ThroughputOptions, go_on: &(dyn Fn() -> bool + Sync)) -> io::Result<Measured> {
    let (sender, other_end) = (client.sender()?, client.sender()?);
    let (tell, told) = channel();
    let stop = AtomicBool::new(false);
    let mut heard = Heard {
        tally: Tally::default(),
        times: Samples::new().ok_or(io::ErrorKind::OutOfMemory)?,
        open: Vec::new(),
        last: None,
        last_at: None,
        read: None,
        sampled: (0, 0),
        replied: false,
        since: Instant::now(),
    };
    let (went, error) = thread::scope(|scope| {
        let sending = scope.spawn(|| send(sender, options, &stop, tell));
        let error = listen(client, &mut heard, &told, go_on);
        stop.store(true, Ordering::Relaxed);
        if error.is_err() || !go_on() {
            // One that waits for a server that reads nothing waits no longer.
            other_end.end();
        }
        (sending.join(), error)
    });
    let mut went = went.map_err(|_| io::Error::other("the sending thread has failed"))?;
    let is_udp = client.is_udp();
    let silent = heard.last_at.is_none() && heard.since.elapsed() > SILENT;
    let nobody = |e: &io::Error| e.kind() == io::ErrorKind::ConnectionRefused && heard.last_at.is_none();
    // What single datagrams met is in the counts.
    let mut error = error.err().or(went.error.take().filter(|e| !is_udp || !heard.replied || nobody(e)));
    if !heard.replied && go_on() {
        return Err(error
            .take()
            .filter(|e| e.kind() != io::ErrorKind::TimedOut)
            .unwrap_or_else(|| heard.tally.nobody()));
    }
    let seconds = match is_udp {
        true => went.seconds,
        // In a connection what was answered was read, and all before it.
        false => {
            let (read, at) = heard.read.unwrap_or((went.before, went.begun));
            if heard.last_at.is_none() {
                went.sent.only(read.saturating_sub(went.before));
            }
            (at - went.begun).as_secs_f64()
        }
    };
    (went.sent.sampled, went.sent.sampled_answered) = heard.sampled;
    Ok(Measured {
        sent: went.sent,
        counts: heard.tally.end(),
        times: heard.times,
        seconds,
        ended: match error {
            _ if !go_on() => Ended::Stopped,
            Some(e) if is_udp && nobody(&e) => Ended::Gone("nobody listens there any more".to_owned()),
            Some(e) => Ended::Gone(e.to_string()),
            None if silent && is_udp => Ended::Gone("it answered nothing at the end".to_owned()),
            None if heard.last_at.is_none() && !is_udp => Ended::Gone("it has not read everything in 5 s".to_owned()),
            None => Ended::Done,
        },
    })
}

/// Sends until the time is over, and a last message that asks.
fn send(mut sender: Sender, options: &ThroughputOptions, stop: &AtomicBool, tell: Tell<Asked>) -> Went {
    let mut noise = Noise::default();
    let mut message = vec![0; (*options.size.end()).max(HEADER)];
    noise.fill(&mut message[HEADER..]);
    let start = Instant::now();
    let mut went = Went { sent: Throughput::default(), begun: start, before: 0, seconds: 0.0, error: None };
    let (mut counts, mut sequence, mut asked) = (options.warm_up.is_zero(), 0, start);
    loop {
        let now = Instant::now();
        if !counts && now - start >= options.warm_up {
            (counts, went.begun, went.before, went.sent) = (true, now, sequence, Throughput::default());
        }
        let last = (counts && now - went.begun >= options.time) || stop.load(Ordering::Relaxed);
        sequence += 1;
        let asks = last || is_sampled(sequence) || now - asked >= ASK_WITHIN;
        if asks {
            asked = now;
            let _ = tell.send(Asked { sequence, at: now, counts, last });
        }
        let size = noise.size(&options.size);
        let flags = if asks { CLIENT | PONG } else { CLIENT };
        Header { sequence, flags, length: size as u32 }.write(&mut message);
        match take(&mut sender, &message[..size], stop) {
            Ok(()) => {
                went.sent.messages += 1;
                went.sent.bytes += size as u64;
            }
            Err(e) if sender.is_udp() => {
                went.sent.refused += 1;
                went.error = Some(e);
                thread::sleep(REST);
            }
            // A part of a message may be on its way: nothing that follows would be one.
            Err(e) => {
                went.error = Some(e);
                break;
            }
        }
        if last {
            break;
        }
    }
    went.seconds = if counts { went.begun.elapsed().as_secs_f64() } else { 0.0 };
    if !counts {
        // Nothing of a warm-up is a figure.
        went.sent = Throughput::default();
    }
    went
}

/// Whether a message asks for a reply because of its number. One that asks because none has for a while goes out when this thread
/// comes back to its CPU, and finds a server that has caught up meanwhile: too many of those arrive.
fn is_sampled(sequence: u64) -> bool {
    sequence % ASK_EVERY == 1
}

/// Sends a message, and waits where the socket is full.
fn take(sender: &mut Sender, message: &[u8], stop: &AtomicBool) -> io::Result<()> {
    loop {
        match sender.send(message) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock && sender.is_udp() && !stop.load(Ordering::Relaxed) => {
                std::hint::spin_loop();
            }
            sent => return sent,
        }
    }
}

/// What came back.
struct Heard {
    tally: Tally,
    times: Samples,
    /// Messages that wait for their replies: number, when it went out, whether it counts.
    open: Vec<(u64, Instant, bool)>,
    /// The number of the last message, and until when its reply is waited for.
    last: Option<(u64, Instant)>,
    /// When the reply to it came.
    last_at: Option<Instant>,
    /// The latest message that counts and was answered, and when.
    read: Option<(u64, Instant)>,
    /// Each thousandth message that counts, and those of them that were answered.
    sampled: (u64, u64),
    replied: bool,
    /// When the latest reply came, or the wait for the first one began.
    since: Instant,
}

/// Takes replies until that to the last message has come, or its time is over.
fn listen(client: &mut Client, heard: &mut Heard, told: &Receiver<Asked>, go_on: &dyn Fn() -> bool) -> io::Result<()> {
    let patience = if client.is_udp() { LAST_DATAGRAM } else { LAST };
    let mut over = false;
    while go_on() && heard.last_at.is_none() && heard.last.is_none_or(|(_, until)| Instant::now() < until) {
        let now = Instant::now();
        if now - heard.since > GONE {
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("no answer for {} s", GONE.as_secs())));
        }
        let came = match client.receive(now, now + GLANCE) {
            Ok(Came::Message(message)) => Some(reply(message)),
            Ok(Came::Nothing) => None,
            Ok(Came::Closed) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it closed the connection")),
            Ok(Came::Garbage) => {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "it does not send messages of sockperf"))
            }
            // Nobody listens: the thread that sends sees it too.
            Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => None,
            Err(e) => return Err(e),
        };
        let at = Instant::now();
        loop {
            match told.try_recv() {
                Ok(asked) => heard.asked(&asked, patience),
                Err(std::sync::mpsc::TryRecvError::Empty) => break,
                Err(std::sync::mpsc::TryRecvError::Disconnected) => {
                    over = true;
                    break;
                }
            }
        }
        match came {
            Some(Reply::To(sequence)) => heard.reply(sequence, at),
            Some(Reply::Foreign) => heard.tally.foreign(),
            // It could not send its last message: nothing comes any more.
            None if over && heard.last.is_none() => break,
            None => {}
        }
    }
    Ok(())
}

impl Heard {
    fn asked(&mut self, asked: &Asked, patience: Duration) {
        // Lost ones stay few: a datagram that is not answered in the time of a thousand others never is.
        if self.open.len() >= 4096 {
            self.open.drain(..2048);
        }
        self.open.push((asked.sequence, asked.at, asked.counts));
        if asked.counts {
            self.tally.sent(asked.sequence);
            self.sampled.0 += u64::from(is_sampled(asked.sequence));
        }
        if asked.last {
            self.last = Some((asked.sequence, asked.at + patience));
        }
    }

    fn reply(&mut self, sequence: u64, at: Instant) {
        (self.replied, self.since) = (true, at);
        let found = self.open.iter().position(|(asked, ..)| *asked == sequence);
        let sent = found.map(|i| self.open.swap_remove(i));
        match sent {
            Some((_, sent, true)) => {
                if self.read.is_none_or(|(read, _)| read < sequence) {
                    self.read = Some((sequence, at));
                }
                if self.tally.came(sequence) == Seen::Good {
                    self.sampled.1 += u64::from(is_sampled(sequence));
                    self.times.add(u64::try_from((at - sent).as_nanos()).unwrap_or(u64::MAX));
                }
            }
            // Of the warm-up.
            Some(_) => {}
            None => {
                self.tally.came(sequence);
            }
        }
        if self.last.is_some_and(|(last, _)| last == sequence) {
            self.last_at = Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        socket::{Transport, Wait},
        testing::with_server,
    };

    const SHORT: ThroughputOptions =
        ThroughputOptions { size: 64..=64, warm_up: Duration::from_millis(50), time: Duration::from_millis(200) };

    #[test]
    fn messages_go_as_fast_as_they_can_and_some_are_answered() {
        for (transport, wait) in [
            (Transport::Udp, Wait::Block),
            (Transport::Udp, Wait::Spin),
            (Transport::Tcp, Wait::Block),
            (Transport::Tcp, Wait::Epoll),
        ] {
            let (measured, served) = with_server(transport, Wait::Block, |server| {
                let mut clients: Vec<Client> = (0..2).map(|_| Client::open(transport, server, wait).unwrap()).collect();
                run(&mut clients, &SHORT, &|| true).unwrap()
            });
            assert_eq!(measured.ended, Ended::Done, "{transport:?}");
            let Throughput { messages, bytes, messages_per_s, bits_per_s, .. } = measured.sent;
            assert_eq!(bytes, messages * 64);
            assert!(messages > 100 && measured.seconds >= 0.2, "{measured:?}");
            assert!((messages_per_s * measured.seconds / messages as f64 - 1.0).abs() < 1e-9, "{measured:?}");
            assert!((bits_per_s / messages_per_s - 512.0).abs() < 1e-6, "{measured:?}");
            let Counts { sent, replied, lost, foreign, .. } = measured.counts;
            assert!(replied > 0 && sent == replied + lost && foreign == 0, "{measured:?}");
            let Throughput { sampled, sampled_answered, refused, .. } = measured.sent;
            // Each thousandth of both clients, and nothing of what asked because of the time.
            assert!(sampled.abs_diff((messages + refused) / 1000) <= 2 && sampled_answered <= sampled, "{measured:?}");
            assert_eq!(measured.times.count(), replied);
            if transport == Transport::Tcp {
                assert_eq!(lost, 0, "{measured:?}");
                assert!(served.received > messages, "those of the warm-up too: {served:?}");
            }
        }
    }

    #[test]
    fn who_does_not_answer_is_told() {
        let nobody = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let at = nobody.local_addr().unwrap();
        let throw = |options: &ThroughputOptions, go_on: &(dyn Fn() -> bool + Sync)| {
            run(&mut [Client::open(Transport::Udp, at, Wait::Block).unwrap()], options, go_on)
        };
        // Somebody who hears and does not answer.
        assert_eq!(throw(&SHORT, &|| true).unwrap_err().kind(), io::ErrorKind::TimedOut);
        let begun = Instant::now();
        let go_on = || begun.elapsed() < Duration::from_millis(300);
        let stopped = throw(&ThroughputOptions { time: Duration::from_secs(60), ..SHORT }, &go_on).unwrap();
        assert_eq!(stopped.ended, Ended::Stopped);
        assert!(stopped.sent.messages > 0 && begun.elapsed() < Duration::from_secs(10), "{stopped:?}");
        // However long it was to go on.
        let begun = Instant::now();
        let long = ThroughputOptions { time: Duration::from_secs(60), ..SHORT };
        assert_eq!(throw(&long, &|| true).unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
        drop(nobody);
        assert_eq!(throw(&SHORT, &|| true).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        // A connection that nobody reads.
        let deaf = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = [Client::open(Transport::Tcp, deaf.local_addr().unwrap(), Wait::Block).unwrap()];
        let begun = Instant::now();
        let large = ThroughputOptions { size: 60_000..=60_000, time: Duration::from_secs(60), ..SHORT };
        assert!(run(&mut client, &large, &|| true).is_err());
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    }

    /// One that hears, and answers for half a second.
    #[test]
    fn a_server_that_is_silent_at_the_end_is_told() {
        let server = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let at = server.local_addr().unwrap();
        server.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let over = AtomicBool::new(false);
        let begun = Instant::now();
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut buffer = [0; 2048];
                while !over.load(Ordering::Relaxed) {
                    let Ok((bytes, from)) = server.recv_from(&mut buffer) else { continue };
                    let message = &mut buffer[..bytes];
                    if crate::message::answer(message) && begun.elapsed() < Duration::from_millis(500) {
                        server.send_to(message, from).unwrap();
                    }
                }
            });
            let mut client = [Client::open(Transport::Udp, at, Wait::Block).unwrap()];
            let options = ThroughputOptions { time: Duration::from_millis(2500), ..SHORT };
            let measured = run(&mut client, &options, &|| true);
            over.store(true, Ordering::Relaxed);
            assert!(matches!(measured.unwrap().ended, Ended::Gone(_)));
        });
    }

    #[test]
    fn a_server_that_goes_ends_it() {
        let over = AtomicBool::new(false);
        let server = crate::server::Server::bind(Transport::Tcp, "127.0.0.1:0".parse().unwrap(), Wait::Block).unwrap();
        let at = server.address().unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                let served = server.run(&|| !over.load(Ordering::Relaxed));
                drop(server);
                served
            });
            let mut client = [Client::open(Transport::Tcp, at, Wait::Block).unwrap()];
            let begun = Instant::now();
            let long = ThroughputOptions { time: Duration::from_secs(60), ..SHORT };
            let measured = run(&mut client, &long, &|| {
                if begun.elapsed() > Duration::from_millis(300) {
                    over.store(true, Ordering::Relaxed);
                }
                true
            });
            let measured = measured.unwrap();
            assert!(matches!(measured.ended, Ended::Gone(_)));
            assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
            // Up to the last reply: the wait for more is not its time, nor what went out meanwhile its messages.
            assert!(measured.sent.messages > 0 && measured.seconds < begun.elapsed().as_secs_f64(), "{measured:?}");
            assert_eq!(measured.sent.bytes, measured.sent.messages * 64);
        });
    }

    #[test]
    fn what_is_not_known_to_be_read_is_not_counted() {
        let mut sent = Throughput { messages: 1000, bytes: 64_000, ..Throughput::default() };
        sent.only(400);
        assert_eq!((sent.messages, sent.bytes, sent.unread), (400, 25_600, 600));
        sent.only(500);
        assert_eq!((sent.messages, sent.unread), (400, 0), "never more than went out");
        let mut none = Throughput::default();
        none.only(5);
        assert_eq!(none, Throughput::default());
    }
}
