//! An open loop: messages at a rate, whatever the replies do. Times count from the moment at which a message was due, so what a
//! stall delays is seen for every message that it delayed.

use std::{
    io,
    ops::RangeInclusive,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use crate::{
    disturbed::Judged,
    message::{reply, Header, Reply, CLIENT, HEADER, PONG},
    noise::Noise,
    patience::Patience,
    pingpong::{is_too_long_here, Ended},
    socket::{Came, Client, Sender},
    tally::{Counts, Seen, Tally},
};

/// Messages whose time of sending is remembered, and that are looked after at once: more than a connection's buffers hold.
const REMEMBERED: usize = 1 << 20;
/// A sender that has this long to wait sleeps; below it spins.
const NAP: Duration = Duration::from_micros(200);
/// What a sleep may take longer than asked.
const SLACK: Duration = Duration::from_micros(120);
/// How late the last message may be.
const LATE: Duration = Duration::from_millis(50);
/// A server that answers nothing for so long is gone.
const GONE: Duration = Duration::from_secs(5);
/// A server that has answered nothing for so long when the time is over was gone.
const SILENT: Duration = Duration::from_millis(300);
/// How often the receiver looks whether the sender is done.
const GLANCE: Duration = Duration::from_millis(20);

/// What is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenLoopOptions {
    /// Messages a second.
    pub rate: f64,
    /// Each Nth message asks for a reply; the others are load.
    pub reply_every: u32,
    /// Bytes of a message, header included.
    pub size: RangeInclusive<usize>,
    /// How long messages go before their times count.
    pub warm_up: Duration,
    /// How long it measures.
    pub time: Duration,
    /// The CPU of the receiving thread.
    pub receiver_cpu: Option<u32>,
    /// Payloads are compared with what was sent.
    pub verify: bool,
    /// Messages that are kept one by one, the first replies.
    pub keep: usize,
}

/// What came of it.
#[derive(Debug)]
pub struct OpenMeasured {
    /// From the moment at which each message was due to its reply.
    pub intended: Judged,
    /// From the moment at which it really went out: what hides a sender that was late.
    pub actual: Judged,
    /// What became of the messages that asked for a reply.
    pub counts: Counts,
    /// All messages that the socket took, those that asked for no reply too.
    pub messages: u64,
    /// The same per second.
    pub rate: f64,
    /// The most by which the sender was late, ns.
    pub late_ns: u64,
    /// Messages that the socket did not take.
    pub refused: u64,
    /// Messages that were due and not sent when the time was over: the sender cannot keep the rate.
    pub unsent: u64,
    /// How long it measured.
    pub seconds: f64,
    /// Why it ended.
    pub ended: Ended,
    /// When each of the first messages that were replied to went out and its reply came, ns after the first was due, in the
    /// order in which they went out.
    pub log: Vec<(u64, u64)>,
}

/// What both threads share.
struct Shared {
    begun: Instant,
    period_ns: f64,
    /// The number of the last message that went out.
    sent: AtomicU64,
    /// When each of the last ones went out, ns after the beginning.
    sent_at: Vec<AtomicU64>,
    refused: AtomicU64,
    /// Those of the refused ones that asked for a reply.
    refused_asking: AtomicU64,
    unsent: AtomicU64,
    late_ns: AtomicU64,
    /// The sender is done.
    done: AtomicBool,
    /// The receiver is: the server is gone.
    over: AtomicBool,
}

impl Shared {
    /// When a message is due. They count from 1.
    fn due_ns(&self, sequence: u64) -> u64 {
        ((sequence - 1) as f64 * self.period_ns) as u64
    }

    fn place(sequence: u64) -> usize {
        (sequence % REMEMBERED as u64) as usize
    }
}

/// Measures: sends on the thread that calls, and receives on another.
///
/// # Errors
///
/// As the system says before the first reply; later errors end the measurement.
pub fn run(
    client: &mut Client,
    options: &OpenLoopOptions,
    go_on: &(dyn Fn() -> bool + Sync),
) -> io::Result<OpenMeasured> {
    let mut sender = client.sender()?;
    let shared = Shared {
        // Both threads are there by then.
        begun: Instant::now() + Duration::from_millis(5),
        period_ns: 1e9 / options.rate,
        sent: AtomicU64::new(0),
        sent_at: (0..REMEMBERED).map(|_| AtomicU64::new(0)).collect(),
        refused: AtomicU64::new(0),
        refused_asking: AtomicU64::new(0),
        unsent: AtomicU64::new(0),
        late_ns: AtomicU64::new(0),
        done: AtomicBool::new(false),
        over: AtomicBool::new(false),
    };
    let warm = (options.warm_up.as_nanos() as f64 / shared.period_ns) as u64;
    let all = warm + ((options.time.as_nanos() as f64 / shared.period_ns) as u64).max(1);
    let sender_tid = host::current_tid();
    let received = thread::scope(|s| {
        let receiver = s.spawn(|| {
            let pinned = options.receiver_cpu.map_or(Ok(()), host::pin);
            let received = pinned.and_then(|()| receive(client, options, &shared, (warm, sender_tid), go_on));
            // The sender ends whatever befell this one.
            shared.over.store(true, Ordering::Relaxed);
            received
        });
        let failed = send(&mut sender, options, &shared, (warm, all), go_on).err();
        shared.done.store(true, Ordering::Release);
        (receiver.join(), failed)
    });
    let (received, failed) = received;
    let received = received.map_err(|_| io::Error::other("the receiving thread has failed"))?;
    let Received { intended, actual, mut counts, gone, mut log } = match (received, failed) {
        (Ok(received), None) => received,
        (Ok(received), Some(e)) if received.counts.replied > 0 => Received { gone: Some(e.to_string()), ..received },
        (Err(e), _) | (Ok(_), Some(e)) => return Err(e),
    };
    let sent = shared.sent.load(Ordering::Relaxed);
    // Until the next one would have been due.
    let last_ns = if sent > 0 { shared.sent_at[Shared::place(sent)].load(Ordering::Relaxed) } else { 0 };
    let sending = (last_ns as f64 + shared.period_ns) / 1e9;
    let refused = shared.refused.load(Ordering::Relaxed);
    // Nobody answers what never went out.
    let refused_asking = shared.refused_asking.load(Ordering::Relaxed);
    counts.sent = counts.sent.saturating_sub(refused_asking);
    counts.lost = counts.lost.saturating_sub(refused_asking);
    let messages = sent.saturating_sub(warm + refused);
    let seconds = (sending - warm as f64 * shared.period_ns / 1e9).max(0.0);
    log.sort_unstable();
    Ok(OpenMeasured {
        intended,
        actual,
        counts,
        messages,
        rate: if seconds > 0.0 { messages as f64 / seconds } else { 0.0 },
        late_ns: shared.late_ns.load(Ordering::Relaxed),
        refused,
        unsent: shared.unsent.load(Ordering::Relaxed),
        seconds,
        ended: match (gone, go_on()) {
            (Some(why), _) => Ended::Gone(why),
            (None, false) => Ended::Stopped,
            (None, true) => Ended::Done,
        },
        log,
    })
}

/// Sends each message when it is due, or at once if it is late. What of the warm-up is late when that is over is left out: the
/// measurement does not begin with its arrears.
fn send(
    sender: &mut Sender,
    options: &OpenLoopOptions,
    shared: &Shared,
    (warm, all): (u64, u64),
    go_on: &(dyn Fn() -> bool + Sync),
) -> io::Result<()> {
    let (mut message, mut noise) = longest(options);
    let mut look = shared.begun;
    let end = shared.begun + options.warm_up + options.time;
    let mut sequence = 0;
    while sequence < all {
        sequence += 1;
        if sequence <= warm && Instant::now() >= shared.begun + options.warm_up {
            sequence = warm + 1;
        }
        let due = shared.begun + Duration::from_nanos(shared.due_ns(sequence));
        let mut now = Instant::now();
        while now < due {
            let left = due - now;
            if left > NAP {
                if !go_on() || shared.over.load(Ordering::Relaxed) {
                    return Ok(());
                }
                thread::sleep((left - SLACK).min(GLANCE));
            } else {
                std::hint::spin_loop();
            }
            now = Instant::now();
        }
        if now > end + LATE {
            shared.unsent.store(all + 1 - sequence, Ordering::Relaxed);
            return Ok(());
        }
        // A sender that is late never waits above.
        if now >= look {
            look = now + GLANCE;
            if !go_on() || shared.over.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
        let asks = sequence.is_multiple_of(u64::from(options.reply_every.max(1)));
        let size = noise.size(&options.size);
        let flags = if asks { CLIENT | PONG } else { CLIENT };
        Header { sequence, flags, length: size as u32 }.write(&mut message);
        let at = nanos(now.saturating_duration_since(shared.begun));
        shared.sent_at[Shared::place(sequence)].store(at, Ordering::Relaxed);
        shared.late_ns.fetch_max(nanos(now - due), Ordering::Relaxed);
        // Before the call: its reply may be here before the call returns.
        shared.sent.store(sequence, Ordering::Release);
        let refuse = || {
            if sequence > warm {
                shared.refused.fetch_add(1, Ordering::Relaxed);
                shared.refused_asking.fetch_add(u64::from(asks), Ordering::Relaxed);
            }
        };
        match sender.send(&message[..size]) {
            Ok(()) => {}
            // ENOBUFS, or a datagram that the device has not taken in time.
            Err(e) if sender.is_udp() && (e.kind() == io::ErrorKind::WouldBlock || e.raw_os_error() == Some(105)) => {
                refuse();
            }
            // Of an earlier datagram that nobody took, or that was too long for a part of the way (EMSGSIZE).
            Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {}
            Err(e) if sender.is_udp() && e.raw_os_error() == Some(90) => refuse(),
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// The longest message, without its header, and the noise behind it: the same each time. A shorter one is a part of it.
fn longest(options: &OpenLoopOptions) -> (Vec<u8>, Noise) {
    let mut message = vec![0; (*options.size.end()).max(HEADER)];
    let mut noise = Noise::default();
    noise.fill(&mut message[HEADER..]);
    (message, noise)
}

struct Received {
    intended: Judged,
    actual: Judged,
    counts: Counts,
    gone: Option<String>,
    log: Vec<(u64, u64)>,
}

fn receive(
    client: &mut Client,
    options: &OpenLoopOptions,
    shared: &Shared,
    (warm, sender_tid): (u64, Option<u32>),
    go_on: &(dyn Fn() -> bool + Sync),
) -> io::Result<Received> {
    let memory = || io::Error::from(io::ErrorKind::OutOfMemory);
    let judged = || sender_tid.map_or_else(Judged::new, Judged::sent_by).ok_or_else(memory);
    let (mut intended, mut actual) = (judged()?, judged()?);
    let (mut tally, mut patience) = (Tally::with_window(REMEMBERED), Patience::default());
    let every = u64::from(options.reply_every.max(1));
    let (sent_bytes, _) = longest(options);
    let (mut log, first_ns) = (Vec::with_capacity(options.keep), shared.due_ns(warm + 1));
    let mut asked = 0;
    // Books of messages that asked, up to one.
    let mut book = |tally: &mut Tally, up_to: u64| {
        while asked + every <= up_to {
            asked += every;
            if asked > warm {
                tally.sent(asked);
            }
        }
    };
    let (mut gone, mut last, mut done_at) = (None, Instant::now(), None);
    let (mut any, mut warmed) = (false, 0);
    // Nobody has listened since the last reply.
    let (mut refused, is_udp) = (false, client.is_udp());
    loop {
        let now = Instant::now();
        match client.receive(now, now + GLANCE) {
            Ok(Came::Message(message)) => {
                let now = Instant::now();
                match reply(message) {
                    Reply::To(sequence) if sequence > 0 && sequence <= shared.sent.load(Ordering::Acquire) => {
                        any = true;
                        book(&mut tally, sequence);
                        if sequence <= warm {
                            if sequence > warmed {
                                (warmed, last) = (sequence, now);
                            }
                        } else if tally.came(sequence) == Seen::Good {
                            (last, refused) = (now, false);
                            let at = nanos(now.saturating_duration_since(shared.begun));
                            let sent_at = shared.sent_at[Shared::place(sequence)].load(Ordering::Acquire);
                            let took = at.saturating_sub(shared.due_ns(sequence));
                            intended.add(took, now);
                            // Of a message so old, the time of sending is another's by now.
                            if shared.sent.load(Ordering::Acquire) - sequence < REMEMBERED as u64 - 1 {
                                // How long a late sender took is not how long a reply takes.
                                patience.saw(Duration::from_nanos(at.saturating_sub(sent_at)));
                                actual.add(at.saturating_sub(sent_at), now);
                                if log.len() < options.keep {
                                    log.push((sent_at.saturating_sub(first_ns), at.saturating_sub(first_ns)));
                                }
                            }
                            if options.verify && !is_of(message, &sent_bytes, &options.size) {
                                tally.damaged();
                            }
                        }
                    }
                    _ => tally.foreign(),
                }
            }
            Ok(Came::Nothing) => {}
            Ok(Came::Closed) => gone = Some("it closed the connection".to_owned()),
            Ok(Came::Garbage) => gone = Some("it does not send messages of sockperf".to_owned()),
            Err(e) if is_too_long_here(is_udp, &e) => {}
            Err(e) if any && e.kind() == io::ErrorKind::ConnectionRefused => refused = true,
            Err(e) if any => gone = Some(e.to_string()),
            Err(e) => return Err(e),
        }
        if gone.is_some() {
            break;
        }
        if shared.done.load(Ordering::Acquire) {
            // The last replies are waited for as long as any was.
            let done: Instant = *done_at.get_or_insert_with(Instant::now);
            book(&mut tally, shared.sent.load(Ordering::Acquire));
            if tally.open() == 0 || done.elapsed() > patience.limit() || !go_on() {
                break;
            }
        } else if last.elapsed() > GONE.max(Duration::from_nanos((shared.period_ns * every as f64 * 4.0) as u64)) {
            if !any {
                return Err(tally.nobody());
            }
            gone = Some(format!("no answer for {} s", GONE.as_secs()));
            break;
        }
    }
    book(&mut tally, shared.sent.load(Ordering::Acquire));
    // Answers come as rarely as they are asked for.
    let silent =
        SILENT.max(patience.limit() * 2).max(Duration::from_nanos((shared.period_ns * every as f64 * 4.0) as u64));
    if gone.is_none() && go_on() && tally.open() > 0 && (refused || last.elapsed() > silent) {
        gone =
            Some(if refused { "nobody listens there any more" } else { "it answered nothing at the end" }.to_owned());
    }
    intended.end();
    actual.end();
    if !any && gone.is_none() && go_on() {
        return Err(tally.nobody());
    }
    Ok(Received { intended, actual, counts: tally.end(), gone, log })
}

/// Whether a reply has a size and a payload that were sent.
fn is_of(reply: &[u8], sent: &[u8], sizes: &RangeInclusive<usize>) -> bool {
    sizes.contains(&reply.len()) && reply.get(HEADER..) == sent.get(HEADER..reply.len())
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

    use super::*;
    use crate::{
        message::answer,
        socket::{Transport, Wait},
        summary::Samples,
        testing::{one_in_time, with_other, with_server},
    };

    fn options(rate: f64, time: Duration) -> OpenLoopOptions {
        OpenLoopOptions {
            rate,
            reply_every: 1,
            size: HEADER..=HEADER,
            warm_up: Duration::from_millis(20),
            time,
            receiver_cpu: None,
            verify: false,
            keep: 0,
        }
    }

    /// A reflector that stalls for a tenth of each 200 ms, and what both kinds of time say of it.
    fn stalled(rate: f64) -> OpenMeasured {
        let (begun, stalls) = (Instant::now(), AtomicU64::new(0));
        let behaves = |socket: &UdpSocket, bytes: &mut [u8], from: SocketAddr, _| {
            if begun.elapsed() >= Duration::from_millis(200) * (stalls.load(Ordering::Relaxed) + 1) as u32 {
                stalls.fetch_add(1, Ordering::Relaxed);
                thread::sleep(Duration::from_millis(20));
            }
            answer(bytes);
            let _ = socket.send_to(bytes, from);
        };
        with_other(behaves, |address| {
            let mut client = Client::open(Transport::Udp, address, Wait::Block).unwrap();
            run(&mut client, &options(rate, Duration::from_secs(2)), &|| true).unwrap()
        })
    }

    /// The share of samples of at least so many ns.
    fn share_from(samples: &Samples, ns: u64) -> f64 {
        let from: u64 = samples.steps().filter(|(value, _)| *value >= ns).map(|(_, count)| count).sum();
        from as f64 / samples.count() as f64
    }

    #[test]
    fn a_stall_is_seen_by_every_message_that_it_delays() {
        let measured = stalled(2_000.0);
        let counts = measured.counts;
        assert_eq!(counts.sent, counts.replied + counts.lost);
        assert_eq!(measured.intended.all.count(), counts.replied);
        assert!(counts.replied > 3_000, "{counts:?}");
        // A tenth of all messages are due while it stalls: half of these wait for 10 ms and more. A busy machine adds to it.
        let share = share_from(&measured.intended.all, 10_000_000);
        assert!((0.03..0.5).contains(&share), "{share}");
        assert!(share_from(&measured.intended.all, 5_000_000) >= share);
        assert!((1_500.0..2_100.0).contains(&measured.rate), "{}", measured.rate);
    }

    #[test]
    fn every_nth_message_asks_and_the_others_are_load() {
        for (transport, wait) in
            [(Transport::Udp, Wait::Block), (Transport::Tcp, Wait::Spin), (Transport::Tcp, Wait::Epoll)]
        {
            with_server(transport, Wait::Block, |server| {
                let mut client = Client::open(transport, server, wait).unwrap();
                let options =
                    OpenLoopOptions { reply_every: 10, size: 14..=400, ..options(5_000.0, Duration::from_millis(400)) };
                // Starved, it does not send all of them.
                let sent = || {
                    let measured = run(&mut client, &options, &|| true).unwrap();
                    let (sent, messages) = (measured.counts.sent, measured.messages);
                    assert!(sent == messages.div_ceil(10) && messages <= 2000, "{transport:?} {wait:?}: {measured:?}");
                    measured
                };
                let measured = one_in_time(sent, |measured| measured.messages == 2000);
                assert!((measured.rate * measured.seconds - 2000.0).abs() < 1e-6, "{measured:?}");
                assert_eq!(measured.ended, Ended::Done);
                assert!(measured.counts.replied > 150, "{:?}", measured.counts);
                let (intended, actual) = (measured.intended.all.mean_ns(), measured.actual.all.mean_ns());
                assert!(intended >= actual, "{intended:?} {actual:?}");
            });
        }
    }

    #[test]
    fn what_the_socket_refuses_was_not_sent_and_is_not_lost() {
        with_server(Transport::Udp, Wait::Block, |server| {
            let mut client = Client::open(Transport::Udp, server, Wait::Block).unwrap();
            // No datagram is longer than 65,507 bytes.
            let mixed = OpenLoopOptions { size: 14..=100_000, ..options(1_000.0, Duration::from_millis(400)) };
            let sent = || {
                let measured = run(&mut client, &mixed, &|| true).unwrap();
                let (counts, tried) = (measured.counts, measured.messages + measured.refused);
                assert_eq!(
                    (counts.sent, counts.sent - counts.replied),
                    (measured.messages, counts.lost),
                    "{measured:?}"
                );
                (tried, measured.refused > 20, counts.replied > 100)
            };
            one_in_time(sent, |seen| *seen == (400, true, true));
        });
    }

    #[test]
    fn a_server_that_answers_nothing_at_the_end_is_gone() {
        let measured = || {
            let begun = Instant::now();
            let behaves = |socket: &UdpSocket, bytes: &mut [u8], from: SocketAddr, _| {
                if begun.elapsed() < Duration::from_millis(300) && answer(bytes) {
                    socket.send_to(bytes, from).unwrap();
                }
            };
            with_other(behaves, |server| {
                let mut client = Client::open(Transport::Udp, server, Wait::Block).unwrap();
                run(&mut client, &options(1_000.0, Duration::from_millis(900)), &|| true).unwrap()
            })
        };
        one_in_time(measured, |run| matches!(run.ended, Ended::Gone(_)) && run.counts.replied > 50);
    }

    #[test]
    fn first_messages_are_kept_and_payloads_compared() {
        with_server(Transport::Tcp, Wait::Block, |server| {
            let mut client = Client::open(Transport::Tcp, server, Wait::Block).unwrap();
            let size = 14..=300;
            let kept = OpenLoopOptions { verify: true, keep: 50, size, ..options(2_000.0, Duration::from_millis(300)) };
            let measured = run(&mut client, &kept, &|| true).unwrap();
            assert_eq!((measured.counts.damaged, measured.log.len()), (0, 50));
            assert!(
                measured.log.is_sorted() && measured.log.iter().all(|(out, back)| out < back),
                "{:?}",
                measured.log
            );
            assert!(measured.log[0].0 < 400_000_000 && measured.log[49].0 >= 24_000_000, "{:?}", measured.log);
        });
    }

    #[test]
    fn a_reply_with_another_payload_is_damaged() {
        let changes = |socket: &UdpSocket, bytes: &mut [u8], from: SocketAddr, _| {
            answer(bytes);
            bytes[39] ^= 1;
            let _ = socket.send_to(bytes, from);
        };
        with_other(changes, |address| {
            let mut client = Client::open(Transport::Udp, address, Wait::Block).unwrap();
            let verified =
                OpenLoopOptions { verify: true, size: 40..=40, ..options(1_000.0, Duration::from_millis(300)) };
            let counts = run(&mut client, &verified, &|| true).unwrap().counts;
            assert!(counts.damaged == counts.replied && counts.damaged > 50, "{counts:?}");
        });
        let sent = [7; 40];
        assert!(is_of(&sent[..20], &sent, &(14..=40)));
        assert!(!is_of(&sent[..13], &sent, &(14..=40)) && !is_of(&[7; 41], &sent, &(14..=40)));
    }

    #[test]
    fn a_server_that_is_seldom_asked_is_not_gone() {
        with_server(Transport::Udp, Wait::Block, |server| {
            let mut client = Client::open(Transport::Udp, server, Wait::Block).unwrap();
            let options = OpenLoopOptions { reply_every: 50, ..options(20.0, Duration::from_millis(4900)) };
            let measured = run(&mut client, &options, &|| true).unwrap();
            assert_eq!((measured.ended, measured.counts.lost), (Ended::Done, 0));
            assert!(measured.counts.replied > 0);
        });
    }

    #[test]
    fn it_ends_when_it_is_asked_to_and_when_nobody_answers() {
        with_server(Transport::Udp, Wait::Block, |server| {
            let mut client = Client::open(Transport::Udp, server, Wait::Block).unwrap();
            let begun = Instant::now();
            let stopped =
                run(&mut client, &options(100.0, Duration::from_secs(600)), &|| begun.elapsed().as_millis() < 300);
            assert_eq!(stopped.unwrap().ended, Ended::Stopped);
            assert!(begun.elapsed() < Duration::from_secs(20));
        });
        let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut client = Client::open(Transport::Udp, silent.local_addr().unwrap(), Wait::Block).unwrap();
        let error = run(&mut client, &options(100.0, Duration::from_secs(600)), &|| true).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let nobody = silent.local_addr().unwrap();
        drop(silent);
        let mut client = Client::open(Transport::Udp, nobody, Wait::Block).unwrap();
        let error = run(&mut client, &options(100.0, Duration::from_secs(600)), &|| true).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
