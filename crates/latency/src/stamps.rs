//! Where a round trip goes, by the kernel's time stamps (timestamping.rst): application, queue, driver, the way and the other end,
//! driver, application. Of datagrams, one after the other.

use std::{
    io::{self, IoSliceMut},
    net::{SocketAddr, UdpSocket},
    os::fd::AsRawFd,
    time::{Duration, Instant, SystemTime},
};

use nix::{
    cmsg_space,
    errno::Errno,
    sys::{
        socket::{
            recvmsg, setsockopt, sockopt::Timestamping, ControlMessageOwned, MsgFlags, TimestampingFlag, Timestamps,
        },
        time::TimeSpec,
    },
};
use serde::{Deserialize, Serialize};

use crate::{
    message::{reply, Header, Reply, CLIENT, HEADER, MOST_UDP, PONG},
    patience::Patience,
    summary::{Samples, Times},
};

/// `SOF_TIMESTAMPING_TX_SCHED`: before the queue of the interface.
const TX_SCHED: u32 = 1 << 8;
/// `SCM_TSTAMP_SND` and `SCM_TSTAMP_SCHED` of `ee_info`: which stamp it is.
const SND: u32 = 0;
const SCHED: u32 = 1;

/// Parts of a round trip. Stamps of the application and of the kernel are of one clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Split {
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
/// As the system says; `TimedOut` where nobody answers.
pub fn split(server: SocketAddr, bytes: usize, time: Duration, go_on: &dyn Fn() -> bool) -> io::Result<Option<Split>> {
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
        SocketAddr::V6(_) => ([0u16; 8], 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(server)?;
    let flags = TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE
        | TimestampingFlag::SOF_TIMESTAMPING_TX_SOFTWARE
        | TimestampingFlag::SOF_TIMESTAMPING_RX_SOFTWARE
        | TimestampingFlag::SOF_TIMESTAMPING_OPT_ID
        | TimestampingFlag::SOF_TIMESTAMPING_OPT_TSONLY
        | TimestampingFlag::from_bits_retain(TX_SCHED);
    setsockopt(&socket, Timestamping, &flags)?;
    let samples = || Samples::new().ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory));
    let (mut queue, mut driver, mut away, mut application) = (samples()?, samples()?, samples()?, samples()?);
    let (mut without, mut patience) = (0, Patience::default());
    let mut message = vec![0; bytes.clamp(HEADER, MOST_UDP)];
    let mut buffer = vec![0; MOST_UDP + 1];
    let begun = Instant::now();
    let mut sequence = 0;
    while begun.elapsed() < time && go_on() {
        sequence += 1;
        Header { sequence, flags: CLIENT | PONG, length: message.len() as u32 }.write(&mut message);
        let before = now();
        socket.send(&message)?;
        socket.set_read_timeout(Some(patience.limit()))?;
        let sent = Instant::now();
        let Some(stamp) = received(&socket, &mut buffer, sequence, sent + patience.limit())? else {
            if sequence == 1 {
                return Err(io::ErrorKind::TimedOut.into());
            }
            continue;
        };
        let after = now();
        patience.saw(sent.elapsed());
        // The kernel counts the datagrams of a socket from 0.
        let id = (sequence - 1) as u32;
        match (sending_stamps(&socket, id), stamp) {
            ((Some(sched), Some(snd)), Some(came)) => {
                queue.add(between(before, sched));
                driver.add(between(sched, snd));
                away.add(between(snd, came));
                application.add(between(came, after));
            }
            _ => without += 1,
        }
    }
    let complete = queue.count() > 0;
    Ok(complete.then(|| Split {
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

/// When the reply to this message came to the driver: an outer `None` if it did not come in time, an inner one without a stamp.
fn received(socket: &UdpSocket, buffer: &mut [u8], sequence: u64, until: Instant) -> io::Result<Option<Option<u64>>> {
    let mut control = cmsg_space!(Timestamps);
    while Instant::now() < until {
        let mut parts = [IoSliceMut::new(buffer)];
        let (read, stamp) = match recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty()) {
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
        if reply(&buffer[..read]) == Reply::To(sequence) {
            return Ok(Some(stamp));
        }
    }
    Ok(None)
}

/// The stamps of a sent message: at the queue, and at the driver.
fn sending_stamps(socket: &UdpSocket, id: u32) -> (Option<u64>, Option<u64>) {
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
    use super::*;
    use crate::{
        socket::{Transport, Wait},
        testing::with_server,
    };

    #[test]
    fn the_parts_of_a_round_trip_are_stamped() {
        with_server(Transport::Udp, Wait::Block, |server| {
            let split = split(server, 64, Duration::from_millis(300), &|| true).unwrap().expect("lo has stamps");
            assert!(split.to_queue.samples > 20, "{split:?}");
            assert!(split.without <= split.to_queue.samples / 2, "{split:?}");
            for times in [&split.to_queue, &split.away, &split.to_application] {
                let mean = times.mean_ns.unwrap();
                assert!(mean > 0.0 && mean < 1e9, "{times:?}");
            }
        });
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let nobody = split(silent.local_addr().unwrap(), 64, Duration::from_secs(9), &|| true).unwrap_err();
        assert_eq!(nobody.kind(), io::ErrorKind::TimedOut);
    }
}
