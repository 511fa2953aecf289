//! Several clients of one server at once, each with a socket and a thread of its own.

use std::{io, thread};

use crate::{
    pingpong::{self, Ended, Measured, PingPongOptions},
    socket::Client,
};

/// Measures with each client on a thread of its own; with one, on the thread that calls. Figures are of all together.
///
/// # Errors
///
/// As [`pingpong::run`], where no client measured anything; where some did, what they measured counts, and the end says what befell
/// the others.
pub fn run(
    clients: &mut [Client],
    options: &PingPongOptions,
    go_on: &(dyn Fn() -> bool + Sync),
) -> io::Result<Measured> {
    if let [client] = clients {
        return pingpong::run(client, options, go_on);
    }
    let is_udp = clients.iter().all(Client::is_udp);
    // Samples are of all together, too.
    let samples = options.samples.map(|all| all.div_ceil(clients.len().max(1) as u64));
    let options = &PingPongOptions { samples, ..options.clone() };
    together(each(clients, |client| pingpong::run(client, options, go_on)), is_udp)
}

/// What befell clients that measured nothing, where others did: the server is there.
pub(crate) fn left_out(failed: usize, of: usize, error: &io::Error, is_udp: bool) -> Ended {
    let why = match error.kind() {
        io::ErrorKind::TimedOut => "no answer".to_owned(),
        _ => error.to_string(),
    };
    // It accepts the next one when the first has ended.
    let hint = if is_udp { "" } else { "; sockperf's server answers one TCP client at a time" };
    Ended::LeftOut(format!("{failed} of {of} clients measured nothing: {why}{hint}"))
}

/// What comes of each client, each on a thread of its own.
pub(crate) fn each<T: Send>(
    clients: &mut [Client],
    run: impl Fn(&mut Client) -> io::Result<T> + Sync,
) -> Vec<io::Result<T>> {
    let run = &run;
    thread::scope(|scope| {
        let running: Vec<_> = clients.iter_mut().map(|client| scope.spawn(move || run(client))).collect();
        let failed = |_| Err(io::Error::other("a client's thread has failed"));
        running.into_iter().map(|thread| thread.join().unwrap_or_else(failed)).collect()
    })
}

fn together(all: Vec<io::Result<Measured>>, is_udp: bool) -> io::Result<Measured> {
    let (mut sum, mut failed): (Option<Measured>, Option<io::Error>) = (None, None);
    let (of, mut left) = (all.len(), 0);
    for one in all {
        match (one, &mut sum) {
            (Err(e), _) => (failed, left) = (Some(e), left + 1),
            (Ok(first), None) => sum = Some(first),
            (Ok(one), Some(sum)) => {
                sum.times.merge(&one.times);
                sum.counts += one.counts;
                sum.seconds = sum.seconds.max(one.seconds);
                sum.ended.or_worse(one.ended);
                sum.log.extend(one.log);
            }
        }
    }
    let mut sum = match (sum, &failed) {
        (Some(sum), _) => sum,
        (None, Some(_)) => return Err(failed.unwrap_or_else(|| io::ErrorKind::Other.into())),
        (None, None) => return Err(io::Error::new(io::ErrorKind::InvalidInput, "no client")),
    };
    if let Some(e) = failed {
        sum.ended.or_worse(left_out(left, of, &e, is_udp));
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        socket::{Transport, Wait},
        testing::with_server,
    };

    #[test]
    fn clients_measure_together() {
        for transport in [Transport::Udp, Transport::Tcp] {
            with_server(transport, Wait::Block, |server| {
                let mut clients: Vec<Client> =
                    (0..3).map(|_| Client::open(transport, server, Wait::Block).unwrap()).collect();
                let options = PingPongOptions {
                    warm_up: Duration::from_millis(10),
                    time: Duration::from_secs(30),
                    samples: Some(150),
                    keep: 5,
                    ..PingPongOptions::default()
                };
                let measured = run(&mut clients, &options, &|| true).unwrap();
                assert_eq!((measured.times.all.count(), measured.ended.clone()), (150, Ended::Done));
                assert_eq!((measured.counts.replied, measured.log.len()), (150, 15));
                assert!(measured.log.iter().all(|(sent, came)| sent < came));
                assert!(measured.times.stretches.0 >= 3);
            });
        }
    }

    #[test]
    fn a_client_that_failed_is_told_and_the_others_count() {
        with_server(Transport::Udp, Wait::Block, |server| {
            let options = PingPongOptions { samples: Some(5), ..PingPongOptions::default() };
            let one = || {
                let mut client = Client::open(Transport::Udp, server, Wait::Block).unwrap();
                pingpong::run(&mut client, &options, &|| true)
            };
            let refused = || Err(io::Error::from(io::ErrorKind::ConnectionRefused));
            let mixed = together(vec![one(), refused(), one()], true).unwrap();
            assert_eq!(mixed.counts.replied, 10);
            let Ended::LeftOut(why) = mixed.ended else { panic!("{:?}", mixed.ended) };
            assert!(why.starts_with("1 of 3 clients measured nothing"), "{why}");
            assert_eq!(together(vec![refused()], true).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
            assert_eq!(together(Vec::new(), true).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        });
    }
}
