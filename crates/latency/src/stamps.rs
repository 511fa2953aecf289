//! Where a round trip goes, by the kernel's time stamps (timestamping.rst): application, queue, driver, the way and the other end,
//! driver, application. One message after the other.

use std::{
    io::{self, IoSliceMut},
    net::SocketAddr,
    os::fd::{AsRawFd, BorrowedFd},
    time::{Duration, Instant, SystemTime},
};

use nix::{
    cmsg_space,
    errno::Errno,
    sys::{
        socket::{
            recvmsg, setsockopt,
            sockopt::{ReceiveTimeout, Timestamping},
            ControlMessageOwned, MsgFlags, TimestampingFlag, Timestamps,
        },
        time::{TimeSpec, TimeVal, TimeValLike},
    },
};
use serde::{Deserialize, Serialize};

use crate::{
    message::{reply, Header, Reply, Stream, CLIENT, HEADER, MOST_TCP, MOST_UDP, PONG},
    patience::Patience,
    socket::{Client, Transport, Wait},
    summary::{Samples, Times},
};

/// `SOF_TIMESTAMPING_TX_SCHED`: before the queue of the interface.
const TX_SCHED: u32 = 1 << 8;
/// `SCM_TSTAMP_SND` and `SCM_TSTAMP_SCHED` of `ee_info`: which stamp it is.
const SND: u32 = 0;
const SCHED: u32 = 1;

/// Messages that may stay without a reply before a server that has answered none of them is not one.
const TRIES: u64 = 3;

/// Parts of a round trip. Stamps of the application and of the kernel are of one clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Split {
    /// The whole of these round trips.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip: Option<Times>,
    /// From before the call that sends to the queue of the interface.
    pub to_queue: Times,
    /// From there to the driver.
    pub to_driver: Times,
    /// From the driver to the driver: the wire, the other end, and back.
    pub away: Times,
    /// From the driver to after the call that receives.
    pub to_application: Times,
    /// Round trips whose stamps were not complete: the driver makes none, or they came too late.
    pub without: u64,
}

/// Splits round trips to a server for so long; `None` if the kernel or the driver made not one complete set of stamps.
///
/// # Errors
///
/// As the system says; `TimedOut` where nobody answers, `UnexpectedEof` and `InvalidData` where a connection ends or carries
/// something else.
pub fn split(
    (transport, server): (Transport, SocketAddr),
    wait: Wait,
    bytes: usize,
    time: Duration,
    go_on: &dyn Fn() -> bool,
) -> io::Result<Option<Split>> {
    // A thread that spins is not woken; all others are.
    let wait = if wait == Wait::Spin { Wait::Spin } else { Wait::Block };
    let mut client = Client::open(transport, server, wait)?;
    let flags = TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE
        | TimestampingFlag::SOF_TIMESTAMPING_TX_SOFTWARE
        | TimestampingFlag::SOF_TIMESTAMPING_RX_SOFTWARE
        | TimestampingFlag::SOF_TIMESTAMPING_OPT_ID
        | TimestampingFlag::SOF_TIMESTAMPING_OPT_TSONLY
        | TimestampingFlag::from_bits_retain(TX_SCHED);
    setsockopt(&client.as_fd(), Timestamping, &flags)?;
    let most = match transport {
        Transport::Udp => MOST_UDP,
        Transport::Tcp => MOST_TCP,
    };
    let samples = || Samples::new().ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory));
    let (mut queue, mut driver, mut away, mut application) = (samples()?, samples()?, samples()?, samples()?);
    let (mut whole, mut answered) = (samples()?, false);
    let (mut without, mut patience) = (0, Patience::default());
    let mut message = vec![0; bytes.clamp(HEADER, most)];
    let mut replies = Replies::of(transport);
    let begun = Instant::now();
    let mut sequence = 0;
    while begun.elapsed() < time && go_on() {
        sequence += 1;
        Header { sequence, flags: CLIENT | PONG, length: message.len() as u32 }.write(&mut message);
        let limit = i64::try_from(patience.limit().as_micros()).unwrap_or(i64::MAX);
        setsockopt(&client.as_fd(), ReceiveTimeout, &TimeVal::microseconds(limit))?;
        let before = now();
        client.send(&message)?;
        let sent = Instant::now();
        let Some(stamp) = replies.to(sequence, client.as_fd(), sent + patience.limit())? else {
            if !answered && sequence >= TRIES {
                return Err(io::ErrorKind::TimedOut.into());
            }
            without += 1;
            continue;
        };
        let after = now();
        answered = true;
        patience.saw(sent.elapsed());
        // The kernel counts from 0: the datagrams of a socket, and in a stream the bytes, of which the last one is stamped.
        let id = match transport {
            Transport::Udp => sequence - 1,
            Transport::Tcp => sequence * message.len() as u64 - 1,
        };
        match (sending_stamps(client.as_fd(), id as u32), stamp) {
            ((Some(sched), Some(snd)), Some(came)) => {
                queue.add(between(before, sched));
                driver.add(between(sched, snd));
                away.add(between(snd, came));
                application.add(between(came, after));
                whole.add(between(before, after));
            }
            _ => without += 1,
        }
    }
    let complete = queue.count() > 0;
    Ok(complete.then(|| Split {
        round_trip: Some(Times::of(&whole)),
        to_queue: Times::of(&queue),
        to_driver: Times::of(&driver),
        away: Times::of(&away),
        to_application: Times::of(&application),
        without,
    }))
}

/// Nanoseconds of the clock of the stamps.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

fn between(from: u64, to: u64) -> u64 {
    to.saturating_sub(from)
}

fn nanoseconds(time: TimeSpec) -> Option<u64> {
    let ns = Duration::from(time).as_nanos();
    u64::try_from(ns).ok().filter(|&ns| ns > 0)
}

/// Replies as they come from a socket, with stamps.
struct Replies {
    buffer: Vec<u8>,
    /// What came of messages, where they come in pieces.
    stream: Option<Stream>,
}

impl Replies {
    fn of(transport: Transport) -> Self {
        let stream = match transport {
            Transport::Udp => None,
            Transport::Tcp => Some(Stream::new(MOST_TCP)),
        };
        // A byte more than the longest datagram: a longer one is seen to be one.
        Self { buffer: vec![0; MOST_UDP + 1], stream }
    }

    /// When the reply to this message came to the driver, the last piece of it: an outer `None` if it did not come in time, an
    /// inner one without a stamp.
    fn to(&mut self, sequence: u64, socket: BorrowedFd<'_>, until: Instant) -> io::Result<Option<Option<u64>>> {
        let mut control = cmsg_space!(Timestamps);
        while Instant::now() < until {
            let mut parts = [IoSliceMut::new(&mut self.buffer)];
            let none = MsgFlags::empty();
            let (read, stamp) = match recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut control), none) {
                Ok(message) => {
                    let stamps = message.cmsgs().into_iter().flatten().find_map(|part| match part {
                        ControlMessageOwned::ScmTimestampsns(stamps) => nanoseconds(stamps.system),
                        _ => None,
                    });
                    (message.bytes, stamps)
                }
                Err(Errno::EAGAIN | Errno::EINTR) => continue,
                Err(e) => return Err(e.into()),
            };
            let bytes = &self.buffer[..read];
            let Some(stream) = &mut self.stream else {
                if reply(bytes) == Reply::To(sequence) {
                    return Ok(Some(stamp));
                }
                continue;
            };
            if bytes.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            stream.add(bytes);
            while let Some(message) = stream.take().map_err(|_| io::Error::from(io::ErrorKind::InvalidData))? {
                if reply(message) == Reply::To(sequence) {
                    return Ok(Some(stamp));
                }
            }
        }
        Ok(None)
    }
}

/// The stamps of a sent message: at the queue, and at the driver.
fn sending_stamps(socket: BorrowedFd<'_>, id: u32) -> (Option<u64>, Option<u64>) {
    let (mut sched, mut snd) = (None, None);
    let mut control = cmsg_space!(Timestamps, [u8; 128]);
    let mut none = [0; 1];
    while sched.is_none() || snd.is_none() {
        let mut parts = [IoSliceMut::new(&mut none)];
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let Ok(message) = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut control), flags) else { break };
        let (mut stamp, mut which) = (None, None);
        for part in message.cmsgs().into_iter().flatten() {
            match part {
                ControlMessageOwned::ScmTimestampsns(stamps) => stamp = nanoseconds(stamps.system),
                ControlMessageOwned::Ipv4RecvErr(error, _) => which = Some((error.ee_info, error.ee_data)),
                ControlMessageOwned::Ipv6RecvErr(error, _) => which = Some((error.ee_info, error.ee_data)),
                _ => {}
            }
        }
        match which {
            Some((SCHED, of)) if of == id => sched = stamp,
            Some((SND, of)) if of == id => snd = stamp,
            _ => {}
        }
    }
    (sched, snd)
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::{TcpListener, UdpSocket},
        thread,
    };

    use super::*;
    use crate::testing::with_server;

    #[test]
    fn the_parts_of_a_round_trip_are_stamped() {
        // The longest goes out in many segments, and comes back in many pieces.
        for (transport, wait, bytes) in [
            (Transport::Udp, Wait::Block, 64),
            (Transport::Udp, Wait::Spin, 64),
            (Transport::Tcp, Wait::Epoll, 64),
            (Transport::Tcp, Wait::Block, 200_000),
        ] {
            with_server(transport, Wait::Block, |server| {
                // Longer where other programs have the CPUs.
                let mut tries = [300, 2_000, 5_000].map(Duration::from_millis).into_iter().map(|time| {
                    split((transport, server), wait, bytes, time, &|| true).unwrap().expect("lo has stamps")
                });
                let split = tries.find(|split| split.to_queue.samples > 20).expect("more than 20 samples");
                assert!(split.without <= split.to_queue.samples / 2, "{split:?}");
                let parts = [&split.to_queue, &split.to_driver, &split.away, &split.to_application];
                let mean = |times: &Times| times.mean_ns.unwrap();
                let (sum, whole) = (parts.map(mean).iter().sum::<f64>(), mean(split.round_trip.as_ref().unwrap()));
                // Each is kept to three digits.
                assert!(whole > 0.0 && whole < 1e9 && (sum - whole).abs() < whole / 100.0, "{sum} {split:?}");
            });
        }
    }

    #[test]
    fn who_does_not_answer_as_a_server_is_an_error_and_not_a_wait() {
        let kind = |of| split(of, Wait::Block, 64, Duration::from_secs(9), &|| true).unwrap_err().kind();
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(kind((Transport::Udp, silent.local_addr().unwrap())), io::ErrorKind::TimedOut);
        for (says, wanted) in [
            (&[][..], io::ErrorKind::UnexpectedEof),
            (b"220 mail.example.org ESMTP ready\r\n", io::ErrorKind::InvalidData),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let server = listener.local_addr().unwrap();
            let other = thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                stream.read_exact(&mut [0; 64]).unwrap();
                stream.write_all(says).unwrap();
            });
            assert_eq!(kind((Transport::Tcp, server)), wanted);
            other.join().unwrap();
        }
    }
}
