//! Ports opened and polled, whatever the function: lcores run the loops, this thread answers.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use dataplane::{Forwarder, Function, OutputStats};
use dpdk::{Eal, Mbuf, Mempool, Port, PortConfig, PortSpec, RxQueue, Tsc, TxQueue};

use super::desk::Desk;
use failure::{Failure, Stop};

/// Without a frame for this long, the loops rest, where there are ports over sockets. No other port has anything to wait
/// for then, and its ring would run over in the rest.
const LULL: Duration = Duration::from_millis(300);
/// While a port over a socket has no peer they rest this often, frames or not: a peer that knocks and is not let in hangs
/// up and knocks again, which DPDK's memif server does not survive.
const LONELY: Duration = Duration::from_millis(60);
/// A port over a socket that takes none of the frames for it for this long has lost its peer, or the peer stands still.
/// Other ports may be busy meanwhile, so there is no lull in which to hear of it.
const STUCK: Duration = Duration::from_millis(300);
/// How long a rest is.
const REST: Duration = Duration::from_millis(2);

/// How ports are opened.
pub struct Opening<'a> {
    /// Of each queue.
    pub descriptors: u32,
    /// Of each port.
    pub rx_queues: u16,
    /// Transmit queues of each port.
    pub lcores: usize,
    /// Largest IP packet, by port.
    pub mtu: &'a [u16],
    /// Captures are read once, to their end.
    pub once: bool,
}

impl Opening<'_> {
    /// Opens them all, each with a pool of its own, which is added to `pools`.
    pub fn open(
        &self,
        eal: &'static Eal,
        specs: &[PortSpec],
        stop: &Stop,
        pools: &mut Vec<Mempool>,
    ) -> Result<Vec<Port>, Failure> {
        let (d, lcores) = (self.descriptors, self.lcores as u32);
        let mut open = |(spec, &mtu): (&PortSpec, &u16)| {
            let rings = u32::from(self.rx_queues) + lcores;
            let count = ((2 * rings * d + 8192).next_power_of_two() - 1).max(16383);
            let pool = Mempool::new(eal, "ports", count, (mtu + 14 + 8).max(2048), 512)?;
            pools.push(pool.clone());
            let mut config = PortConfig::new(&pool);
            (config.rx_desc, config.tx_desc) = (d as u16, d as u16);
            (config.rx_queues, config.tx_queues) = (self.rx_queues, lcores as u16);
            config.mtu = mtu.max(1500);
            config.read_once = self.once;
            // A DUT waits for its tester as long as it takes; Ctrl-C ends that too.
            config.peer_timeout = Duration::from_secs(24 * 3600);
            config.cancel = Some(stop.shared());
            Ok(Port::open(eal, spec, &config)?)
        };
        specs.iter().zip(self.mtu).map(&mut open).collect()
    }
}

/// Which ports are sockets, at which peers come and go.
pub fn sockets(specs: &[PortSpec]) -> Vec<bool> {
    let socket = |s: &PortSpec| matches!(s, PortSpec::Memif { .. } | PortSpec::Vhost { .. } | PortSpec::Virtio { .. });
    specs.iter().map(socket).collect()
}

/// Runs the loops, one on each lcore from 1, until it is over; then lets out what they hold.
pub fn poll<F: Function<Mbuf> + Send>(
    eal: &'static Eal,
    forwarders: &mut [Forwarder<F, RxQueue, TxQueue, Tsc>],
    desk: &mut Desk,
    stop: &Stop,
) -> Result<(), Failure> {
    let sockets = desk.has_sockets();
    while !desk.over(stop) {
        // While frames come, peers may not take their memory away (see `Parked`). In every lull polling stops for a
        // moment, and who came or went meanwhile is let in or out.
        let parked = if sockets { eal.park_interrupts() } else { None };
        let lull = AtomicBool::new(false);
        eal.scope(|s| -> Result<(), Failure> {
            // However this ends, the loops must, or the scope would wait for ever.
            let _loops_end = Set(&lull);
            let mut jobs = Vec::new();
            for (forwarder, lcore) in forwarders.iter_mut().zip(1..) {
                let lull = &lull;
                jobs.push(s.launch(lcore, move || forwarder.run_and_rest(lull))?);
            }
            let (mut seen, mut since) = (desk.received(), Instant::now());
            let begun = Instant::now();
            let mut egress = Egress::new(desk);
            while !desk.over(stop) && !egress.is_stuck(desk) {
                if since.elapsed() >= LULL {
                    desk.lull();
                    if sockets {
                        break;
                    }
                    since = Instant::now();
                }
                if begun.elapsed() > LONELY && desk.is_lonely() {
                    break;
                }
                desk.serve(Duration::from_millis(20));
                let now = desk.received();
                if now != seen {
                    (seen, since) = (now, Instant::now());
                }
            }
            lull.store(true, Ordering::Relaxed);
            for job in jobs {
                job.join()?;
            }
            Ok(())
        })?;
        drop(parked);
        std::thread::sleep(REST);
        // Over a virtio server, asking for the link is what takes a waiting peer in.
        desk.ask_links();
    }
    // What waited for its time, or for a neighbour, leaves now or is counted.
    eal.scope(|s| -> Result<(), Failure> {
        for (forwarder, lcore) in forwarders.iter_mut().zip(1..) {
            s.launch(lcore, move || forwarder.finish())?;
        }
        Ok(())
    })?;
    Ok(())
}

/// What left by each port over a socket, to see which have come to a stand.
struct Egress(Vec<(OutputStats, Instant)>);

impl Egress {
    fn new(desk: &Desk) -> Self {
        Self(desk.sent_over_sockets().into_iter().map(|sent| (sent, Instant::now())).collect())
    }

    /// Whether one of them has refused frames, and let out none, for too long.
    fn is_stuck(&mut self, desk: &Desk) -> bool {
        self.0.iter_mut().zip(desk.sent_over_sockets()).any(|((before, since), now)| {
            if now.frames != before.frames || now.refused == before.refused {
                (*before, *since) = (now, Instant::now());
            }
            since.elapsed() >= STUCK
        })
    }
}

/// Sets a flag when dropped.
struct Set<'a>(&'a AtomicBool);

impl Drop for Set<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
