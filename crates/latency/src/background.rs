//! Load beside a measurement: messages to the same server that ask for no reply.

use std::{
    io,
    net::SocketAddr,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use host::cpu_set::CpuSet;
use serde::{Deserialize, Serialize};

use crate::{
    asked::BackgroundRate,
    message::{Header, CLIENT, HEADER},
    socket::{Client, Transport, Wait},
};

/// A sender that has longer to wait sleeps; what is due meanwhile goes out at once.
const NAP: Duration = Duration::from_micros(100);
/// Messages that go out at once at most: what a machine that was away missed is not made up for.
const MOST_AT_ONCE: u64 = 64;

/// Load that is wanted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// How much.
    pub rate: BackgroundRate,
    /// Bytes of a message, header included.
    pub bytes: usize,
}

/// Load that there was.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Background {
    /// Messages a second that were wanted.
    pub asked_rate: f64,
    /// Messages a second that went out.
    pub rate: f64,
    /// Bytes of a message.
    pub bytes: usize,
    /// Messages that the socket did not take.
    pub refused: u64,
}

/// Does this while messages go to the server over a socket of their own, from a thread on these CPUs. Over TCP the server reads them
/// in a connection of their own.
///
/// # Errors
///
/// As the system says, when that socket cannot be opened.
pub fn beside<T>(
    (transport, server): (Transport, SocketAddr),
    load: &Load,
    cpus: Option<&CpuSet>,
    act: impl FnOnce() -> T,
) -> io::Result<(T, Background)> {
    let client = Client::open(transport, server, Wait::Block)?;
    let asked_rate = load.rate.messages(load.bytes);
    let over = AtomicBool::new(false);
    let other_end = client.sender()?;
    thread::scope(|scope| {
        let sender = scope.spawn(|| {
            if let Some(cpus) = cpus {
                // Without the right to them it stays where it is.
                let _ = host::run_on(cpus);
            }
            send(client, asked_rate, load.bytes, &over)
        });
        let result = act();
        over.store(true, Ordering::Relaxed);
        // One that waits for a server that reads nothing waits no longer.
        other_end.end();
        let (sent, refused, seconds) = sender.join().unwrap_or((0, 0, 1.0));
        Ok((result, Background { asked_rate, rate: sent as f64 / seconds.max(1e-9), bytes: load.bytes, refused }))
    })
}

/// Returns messages sent, refused, and the seconds it took.
fn send(mut client: Client, rate: f64, bytes: usize, over: &AtomicBool) -> (u64, u64, f64) {
    let mut message = vec![0; bytes.max(HEADER)];
    let (begun, mut sent, mut refused, mut missed, mut sequence) = (Instant::now(), 0, 0, 0, 0);
    while !over.load(Ordering::Relaxed) {
        let due = (begun.elapsed().as_secs_f64() * rate) as u64;
        missed += due.saturating_sub(sent + refused + missed).saturating_sub(MOST_AT_ONCE);
        let now = due.saturating_sub(sent + refused + missed);
        for _ in 0..now {
            if over.load(Ordering::Relaxed) {
                break;
            }
            sequence += 1;
            Header { sequence, flags: CLIENT, length: message.len() as u32 }.write(&mut message);
            match client.send(&message) {
                Ok(()) => sent += 1,
                Err(_) if client.is_udp() => refused += 1,
                // A part of a message may be on its way: nothing that follows would be one.
                Err(_) => return (sent, refused + 1, begun.elapsed().as_secs_f64()),
            }
        }
        if now == 0 {
            thread::sleep(NAP.min(Duration::from_secs_f64((1.0 / rate).min(0.01))));
        }
    }
    (sent, refused, begun.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::with_server;

    #[test]
    fn load_goes_to_the_server_meanwhile() {
        for transport in [Transport::Udp, Transport::Tcp] {
            with_server(transport, Wait::Block, |server| {
                let load = Load { rate: BackgroundRate::Messages(500.0), bytes: 200 };
                let nap = || thread::sleep(Duration::from_millis(400));
                let ((), background) = beside((transport, server), &load, None, nap).unwrap();
                assert_eq!((background.asked_rate, background.bytes, background.refused), (500.0, 200, 0));
                assert!(background.rate > 50.0 && background.rate <= 520.0, "{background:?}");
            });
        }
        let nobody = ([127, 0, 0, 1], 1).into();
        let load = Load { rate: BackgroundRate::Bits(1e6), bytes: 100 };
        assert!(beside((Transport::Tcp, nobody), &load, None, || ()).is_err());
        // A server that reads nothing holds up the sender, and not the end.
        let deaf = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let load = Load { rate: BackgroundRate::Bits(1e9), bytes: 60_000 };
        let begun = Instant::now();
        let nap = || thread::sleep(Duration::from_millis(600));
        beside((Transport::Tcp, deaf.local_addr().unwrap()), &load, Some(&[0].into()), nap).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    }
}
