//! The loops on their lcores, with the supervisor beside them, until the run is done.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use dataplane::{Forwarder, Function, OutputStats};
use dpdk::{Eal, Mbuf, RxQueue, Tsc, TxQueue};
use failure::{Failure, Stop};
use rig::SetOnDrop;

use crate::supervisor::Supervisor;

/// After so long without a frame, loops over sockets pause: peers may then come and go. Loops without such ports do not
/// pause, because their rings would overrun.
const IDLE_PERIOD: Duration = Duration::from_millis(300);
/// Loops with a peerless socket pause this often, with or without frames. A peer that is not accepted disconnects and
/// tries again, and DPDK's memif server does not survive that.
const PEERLESS_INTERVAL: Duration = Duration::from_millis(60);
/// A socket port that has refused every frame for so long has lost its peer, or the peer stands still. The loops then
/// pause although other ports are busy.
const STUCK: Duration = Duration::from_millis(300);
/// How long a pause is.
const PAUSE: Duration = Duration::from_millis(2);
/// How often the supervisor looks whether a pause is due.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Runs the loops, one on each lcore from 1, until the run is done; then sends what they hold.
///
/// # Errors
///
/// An lcore that cannot be started, or a loop that panicked.
pub(crate) fn poll<F: Function<Mbuf> + Send>(
    eal: &'static Eal,
    forwarders: &mut [Forwarder<F, RxQueue, TxQueue, Tsc>],
    supervisor: &mut Supervisor,
    stop: &Stop,
) -> Result<(), Failure> {
    let sockets = supervisor.has_sockets();
    while !supervisor.is_done(stop) {
        // While the loops poll, a peer that leaves may not take its memory away (see `Parked`).
        let parked = if sockets { eal.park_interrupts() } else { None };
        let pause = AtomicBool::new(false);
        eal.scope(|s| -> Result<(), Failure> {
            // The loops must end on every way out, or the scope would wait for ever.
            let _loops_end = SetOnDrop(&pause);
            let mut jobs = Vec::new();
            for (forwarder, lcore) in forwarders.iter_mut().zip(1..) {
                let pause = &pause;
                jobs.push(s.launch(lcore, move || forwarder.run_and_rest(pause))?);
            }
            let (mut received, mut since) = (supervisor.received(), Instant::now());
            let begun = Instant::now();
            let mut egress = SocketEgress::new(supervisor);
            while !supervisor.is_done(stop) && !egress.is_stuck(supervisor) {
                if sockets && since.elapsed() >= IDLE_PERIOD {
                    break;
                }
                if begun.elapsed() > PEERLESS_INTERVAL && supervisor.is_peerless() {
                    break;
                }
                supervisor.serve_for(POLL_INTERVAL);
                let now = supervisor.received();
                if now != received {
                    (received, since) = (now, Instant::now());
                }
            }
            pause.store(true, Ordering::Relaxed);
            for job in jobs {
                job.join()?;
            }
            Ok(())
        })?;
        drop(parked);
        std::thread::sleep(PAUSE);
        // A virtio server accepts a waiting peer when its link is read.
        supervisor.read_links();
    }
    // Frames that wait for their time, or for a neighbour, leave now or are counted as dropped.
    eal.scope(|s| -> Result<(), Failure> {
        for (forwarder, lcore) in forwarders.iter_mut().zip(1..) {
            s.launch(lcore, move || forwarder.finish())?;
        }
        Ok(())
    })?;
    Ok(())
}

/// What left by each socket port, and since when nothing has.
struct SocketEgress(Vec<(OutputStats, Instant)>);

impl SocketEgress {
    fn new(supervisor: &Supervisor) -> Self {
        Self(supervisor.sent_over_sockets().into_iter().map(|sent| (sent, Instant::now())).collect())
    }

    /// Whether a port has refused frames, and sent none, for too long.
    fn is_stuck(&mut self, supervisor: &Supervisor) -> bool {
        self.0.iter_mut().zip(supervisor.sent_over_sockets()).any(|((before, since), now)| {
            if now.frames != before.frames || now.refused == before.refused {
                (*before, *since) = (now, Instant::now());
            }
            since.elapsed() >= STUCK
        })
    }
}
