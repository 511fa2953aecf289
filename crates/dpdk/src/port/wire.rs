//! A software cable inside the process.

use std::{
    ffi::CString,
    sync::{
        atomic::{AtomicU32, Ordering},
        Arc,
    },
};

use dpdk_sys as sys;

use super::{
    config::{check_config, PortConfig},
    handle::{Opened, Port},
    rings::Rings,
    started::{control, Started, Traits},
    vdev::find,
};
use crate::{log, DpdkError, Eal};

/// A software cable: two ports over a pair of rings. It loses nothing: a full cable refuses frames.
pub struct Wire;

impl Wire {
    /// The two ends of a cable that holds `depth` frames in each direction and queue (1 to 65536). Of `config` the pool,
    /// the MTU and the number of queues count; both ends have as many of both kinds as the larger of the two numbers
    /// there, and what is sent to queue `q` comes out of queue `q`. Frames still inside go back to their pools when
    /// both ends are closed.
    ///
    /// Frames themselves pass, not copies: a frame received belongs to the pool the sender took it from.
    pub fn pair(eal: &'static Eal, name: &str, depth: u32, config: &PortConfig) -> Result<(Port, Port), DpdkError> {
        if !(1..=65536).contains(&depth) {
            let what = format!("wire {name:?} of depth {depth}");
            return Err(DpdkError::Config { what, why: "must be 1 to 65536 frames deep".into() });
        }
        let queues = config.rx_queues.max(config.tx_queues);
        let most = sys::LR_MAX_QUEUES as u16;
        if !(1..=most).contains(&queues) {
            let what = format!("wire {name:?} of {queues} queues");
            return Err(DpdkError::Config { what, why: format!("must have 1 to {most} queues") });
        }
        let rings = Arc::new(Rings::new(eal, queues, depth)?);
        let near = wire_end(eal, name, Arc::clone(&rings), 0, config)?;
        Ok((near, wire_end(eal, name, rings, 1, config)?))
    }
}

/// One end of a wire, whose rings exist.
fn wire_end(
    eal: &'static Eal,
    name: &str,
    rings: Arc<Rings>,
    end: usize,
    config: &PortConfig,
) -> Result<Port, DpdkError> {
    static SERIAL: AtomicU32 = AtomicU32::new(0);
    let text = format!("wire:{name}:{}", if end == 0 { "a" } else { "b" });
    let queues = rings.queues();
    let config = PortConfig { rx_queues: queues, tx_queues: queues, ..config.clone() };
    check_config(&text, &config)?;
    let short = format!("lr{}", SERIAL.fetch_add(1, Ordering::Relaxed));
    let c_short = CString::new(short.clone()).unwrap_or_default();
    let (rx, tx) = rings.ends(end);
    log::mark();
    let turn = control();
    // SAFETY: there are `queues` rings in both lists, live and kept by the port; the name is NUL-terminated and copied.
    let id = unsafe { sys::lr_wire_port(c_short.as_ptr(), rx.as_ptr(), tx.as_ptr(), queues.into()) };
    drop(turn);
    if id < 0 {
        return Err(DpdkError::driver(&text, "making a ring device", id));
    }
    let device = find(&text, CString::new(format!("net_ring_{short}")).unwrap_or_default())?;
    let traits = Traits { rings: Some(rings), ..Traits::default() };
    Ok(Port::new(Started::start(eal, &text, device, &config, traits)?, Opened::default()))
}
