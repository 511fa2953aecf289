//! Ports: an ethdev that is made, configured, started, and taken away again.

mod capture;
mod eth;
mod open;
mod pcap;
mod queue;
mod rss;
mod socket;
mod stats;

use std::{
    ffi::{CStr, CString},
    path::PathBuf,
    sync::{
        atomic::{AtomicBool, AtomicU32, Ordering},
        Arc, Mutex, MutexGuard, PoisonError,
    },
    time::Duration,
};

use dpdk_sys as sys;

pub use capture::Progress;
pub use queue::{RxQueue, TxQueue};
pub use rss::Rss;
pub use stats::{Link, PortStats};

use capture::Capture;
use rss::SYMMETRIC_KEY;

use crate::{eal::Alive, log, wire::Rings, DpdkError, Eal, Mempool};

/// How a port is set up.
#[derive(Debug, Clone)]
pub struct PortConfig {
    /// Where received frames are put. `eth:` ports bring a pool of their own.
    pub pool: Mempool,
    /// Receive queues, 0 to 64. Default 1. With more than one, frames are spread over them by a hash of their addresses
    /// and ports where the device can (see [`Port::rss`]); elsewhere they come as the peer distributes them.
    pub rx_queues: u16,
    /// Transmit queues, 0 to 64. Default 1.
    pub tx_queues: u16,
    /// Descriptors of a receive queue; drivers round. Default 1024.
    pub rx_desc: u16,
    /// Descriptors of a transmit queue; drivers round. Default 1024.
    pub tx_desc: u16,
    /// The largest L2 payload in bytes: frame size less 18. Default 1500.
    pub mtu: u16,
    /// Take frames for any MAC, where the driver can. Default true.
    pub promiscuous: bool,
    /// Read captures once, to their end, instead of for ever. Default false.
    pub read_once: bool,
    /// How long opening `virtio:…,server=1` waits for its peer: DPDK needs it to set the device up. Default 30 s.
    pub peer_timeout: Duration,
    /// Ends that wait early when it becomes true, as after Ctrl-C.
    pub cancel: Option<Arc<AtomicBool>>,
}

impl PortConfig {
    /// The defaults, with this pool.
    pub fn new(pool: &Mempool) -> Self {
        Self {
            pool: pool.clone(),
            rx_queues: 1,
            tx_queues: 1,
            rx_desc: 1024,
            tx_desc: 1024,
            mtu: 1500,
            promiscuous: true,
            read_once: false,
            peer_timeout: Duration::from_secs(30),
            cancel: None,
        }
    }

    fn with_pool(&self, pool: &Mempool) -> Self {
        Self { pool: pool.clone(), ..self.clone() }
    }
}

/// A started port. It is stopped, closed and removed when it and all queues taken from it are gone.
pub struct Port {
    started: Arc<Started>,
    rx_taken: Vec<bool>,
    tx_taken: Vec<bool>,
    fallback: Option<String>,
    /// Read by receive queue 0 instead of the device.
    capture: Option<Capture>,
    progress: Option<Arc<Progress>>,
}

impl std::fmt::Debug for Port {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Port({}, {})", self.name(), self.driver())
    }
}

impl Port {
    /// The name as the user wrote it.
    pub fn name(&self) -> &str {
        &self.started.text
    }

    /// The driver's name, such as `net_af_xdp`.
    pub fn driver(&self) -> &str {
        &self.started.driver
    }

    /// Why this is not what was asked for: AF_PACKET where AF_XDP could not be opened, a part of a capture.
    pub fn fallback(&self) -> Option<&str> {
        self.fallback.as_deref()
    }

    /// How far the capture is that this port reads once; `None` where it reads none, or leaves it to the driver.
    pub fn progress(&self) -> Option<&Arc<Progress>> {
        self.progress.as_ref()
    }

    /// The MAC address; all zero when the device has none.
    pub fn mac(&self) -> [u8; 6] {
        self.started.info().map_or([0; 6], |i| i.mac)
    }

    /// The NUMA node; `None` for a software port.
    pub fn numa_node(&self) -> Option<u32> {
        self.started.info().and_then(|i| u32::try_from(i.socket).ok()).filter(|_| self.started.is_physical())
    }

    /// The most receive and transmit queues the device can have.
    pub fn max_queues(&self) -> (u16, u16) {
        self.started.max_queues
    }

    /// What received frames are spread by over the receive queues; nothing is on when there is one queue, or the
    /// device cannot.
    pub fn rss(&self) -> Rss {
        Rss::of(self.started.info().map_or(0, |i| i.rss.into()))
    }

    /// The largest L2 payload in bytes. Errors when the driver cannot say.
    pub fn mtu(&self) -> Result<u16, DpdkError> {
        let mut mtu = 0;
        log::mark();
        // SAFETY: the port exists as long as `self`.
        match unsafe { sys::lr_port_mtu(self.started.id, &mut mtu) } {
            0 => Ok(mtu),
            err => Err(DpdkError::driver(self.name(), "reading the MTU", err)),
        }
    }

    /// Sets the largest L2 payload in bytes. Errors when frames of it do not fit the pool, or the driver cannot (many
    /// cannot while the port runs: [`PortConfig::mtu`] is for them).
    pub fn set_mtu(&self, mtu: u16) -> Result<(), DpdkError> {
        check_mtu(self.name(), mtu, &self.started._pool)?;
        let _one_at_a_time = control();
        log::mark();
        // SAFETY: as above; the driver refuses what it cannot do while its queues are in use.
        match unsafe { sys::lr_port_set_mtu(self.started.id, mtu) } {
            0 => Ok(()),
            err => Err(DpdkError::driver(self.name(), format!("setting an MTU of {mtu}"), err)),
        }
    }

    /// Hands out receive queue `q`, once. Errors when it is taken or does not exist.
    pub fn take_rx(&mut self, q: u16) -> Result<RxQueue, DpdkError> {
        take(&mut self.rx_taken, &self.started, "receive", q)?;
        let capture = if q == 0 { self.capture.take() } else { None };
        Ok(RxQueue::new(Arc::clone(&self.started), q, capture))
    }

    /// Hands out transmit queue `q`, once. Errors when it is taken or does not exist.
    pub fn take_tx(&mut self, q: u16) -> Result<TxQueue, DpdkError> {
        take(&mut self.tx_taken, &self.started, "transmit", q)?;
        Ok(TxQueue::new(Arc::clone(&self.started), q))
    }

    /// Gives the port up. It goes at once when no queue of it is left.
    pub fn close(self) {}
}

fn take(taken: &mut [bool], started: &Started, direction: &'static str, queue: u16) -> Result<(), DpdkError> {
    let count = taken.len();
    let why = match taken.get_mut(usize::from(queue)) {
        Some(taken @ false) => {
            *taken = true;
            return Ok(());
        }
        Some(true) => "is already taken".to_string(),
        None => format!("does not exist; the port has {count}"),
    };
    Err(DpdkError::Queue { port: started.text.clone(), direction, queue, why })
}

/// What the kinds of port differ in.
#[derive(Default)]
struct Traits {
    /// The kernel interface behind it.
    iface: Option<String>,
    /// A socket we listen on, to be removed.
    serves: Option<PathBuf>,
    /// The driver's largest MTU is only nominal.
    clamp_mtu: bool,
    /// Follow the link by interrupt. virtio-user registers one anyway when its peer goes, takes it back only if it was
    /// asked for, and DPDK aborts the process over the stale descriptor otherwise.
    link_interrupt: bool,
    /// The driver has DPDK's interrupt thread watch sockets. It is stopped and closed on that thread, and as some are
    /// forgotten even then (memif's listener), DPDK's memory is not unmapped under it at the end of the process.
    watched: bool,
    rings: Option<Arc<Rings>>,
}

/// The running ethdev itself, shared by the port and its queues.
struct Started {
    id: u16,
    text: String,
    driver: String,
    /// The virtual device's name; a PCI device stays.
    vdev: Option<CString>,
    iface: Option<String>,
    serves: Option<PathBuf>,
    was_promiscuous: bool,
    promiscuous: bool,
    queues: (u16, u16),
    /// As the driver said before it was configured: some then name what they were configured with.
    max_queues: (u16, u16),
    xdp_sockets: Vec<i32>,
    watched: bool,
    // In this order: rings give their frames back to the pool.
    _rings: Option<Arc<Rings>>,
    _pool: Mempool,
    _alive: Alive,
}

/// Making, starting and removing devices changes DPDK's shared lists: one at a time.
fn control() -> MutexGuard<'static, ()> {
    static CONTROL: Mutex<()> = Mutex::new(());
    CONTROL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the driver says about a device.
fn info(id: u16) -> Option<sys::lr_port_info> {
    let mut info = sys::lr_port_info::default();
    // SAFETY: DPDK checks the number of the port.
    (unsafe { sys::lr_port_info(id, &mut info) } == 0).then_some(info)
}

/// A device that was made and is taken away again if it does not come to start.
struct Device {
    id: u16,
    vdev: Option<CString>,
    serves: Option<PathBuf>,
    watched: bool,
}

impl Drop for Device {
    fn drop(&mut self) {
        let _one_at_a_time = control();
        // SAFETY: the device exists and nothing uses it: it was never started, or it was and its last user is gone.
        unsafe {
            sys::lr_port_close(self.id, self.watched.into());
            if let Some(name) = &self.vdev {
                sys::lr_vdev_uninit(name.as_ptr());
            }
        }
        if let Some(path) = &self.serves {
            socket::remove(path);
        }
    }
}

impl Started {
    /// Configures and starts a device.
    fn start(
        eal: &Eal,
        text: &str,
        mut device: Device,
        config: &PortConfig,
        traits: Traits,
    ) -> Result<Self, DpdkError> {
        let mut alive = eal.alive()?;
        if traits.watched {
            alive.leak();
        }
        device.serves = traits.serves;
        device.watched = traits.watched;
        let was_promiscuous = traits.iface.as_deref().and_then(eth::interface).is_some_and(|i| i.promiscuous != 0);
        let conf = sys::lr_port_conf {
            rx_queues: config.rx_queues,
            tx_queues: config.tx_queues,
            rx_desc: config.rx_desc,
            tx_desc: config.tx_desc,
            mtu: config.mtu,
            clamp_mtu: traits.clamp_mtu.into(),
            promiscuous: config.promiscuous.into(),
            link_interrupt: traits.link_interrupt.into(),
            rss: (config.rx_queues > 1).into(),
            rss_key: SYMMETRIC_KEY,
        };
        // A device that says nothing says so again when it is started.
        let max_queues = info(device.id).map_or((u16::MAX, u16::MAX), |i| (i.max_rx_queues, i.max_tx_queues));
        let (rx, tx) = (config.rx_queues, config.tx_queues);
        if rx > max_queues.0 || tx > max_queues.1 {
            let (most_rx, most_tx) = max_queues;
            let why =
                format!("has {most_rx} receive and {most_tx} transmit queues at most; {rx} and {tx} are asked for");
            return Err(DpdkError::Config { what: format!("port {text}"), why });
        }
        let mut step = std::ptr::null();
        let turn = control();
        log::mark();
        // SAFETY: the device exists, the pool is live and kept by the port, `step` receives a static string.
        let (err, step) = unsafe {
            let err = sys::lr_port_start(device.id, &conf, config.pool.as_ptr(), &mut step);
            (err, if step.is_null() { "starting".into() } else { CStr::from_ptr(step).to_string_lossy() })
        };
        drop(turn);
        if err != 0 {
            return Err(DpdkError::driver(text, step, err));
        }
        let mut started = Self {
            id: device.id,
            text: text.to_string(),
            driver: String::new(),
            vdev: device.vdev.take(),
            iface: traits.iface,
            serves: device.serves.take(),
            was_promiscuous,
            promiscuous: config.promiscuous,
            queues: (config.rx_queues, config.tx_queues),
            max_queues,
            xdp_sockets: Vec::new(),
            watched: traits.watched,
            _rings: traits.rings,
            _pool: config.pool.clone(),
            _alive: alive,
        };
        // `started` closes the device from now on.
        std::mem::forget(device);
        if let Some(info) = started.info() {
            // SAFETY: a NUL-terminated string of the driver's, or null.
            let driver = (!info.driver.is_null()).then(|| unsafe { CStr::from_ptr(info.driver) });
            started.driver = driver.map(|d| d.to_string_lossy().into_owned()).unwrap_or_default();
        }
        Ok(started)
    }

    fn info(&self) -> Option<sys::lr_port_info> {
        info(self.id)
    }

    fn is_physical(&self) -> bool {
        self.vdev.is_none()
    }

    fn into_port(self, fallback: Option<String>) -> Port {
        let (rx, tx) = self.queues;
        let (rx_taken, tx_taken) = (vec![false; rx.into()], vec![false; tx.into()]);
        Port { started: Arc::new(self), rx_taken, tx_taken, fallback, capture: None, progress: None }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // SAFETY: the port is started, and its last queue is gone.
        unsafe {
            if self.promiscuous && self.iface.is_some() && !self.was_promiscuous {
                // The interface outlives us.
                sys::lr_port_promiscuous_off(self.id);
            }
            let _one_at_a_time = control();
            sys::lr_port_stop(self.id, self.watched.into());
        }
        drop(Device { id: self.id, vdev: self.vdev.take(), serves: self.serves.take(), watched: self.watched });
        eth::close_xdp_sockets(&self.xdp_sockets);
    }
}

/// Makes a virtual device of a driver and starts it.
fn vdev(
    eal: &Eal,
    text: &str,
    driver: &str,
    args: &str,
    config: &PortConfig,
    traits: Traits,
) -> Result<Started, DpdkError> {
    named_vdev(eal, text, numbered(driver), args, config, traits)
}

/// A name of its own for a device of this driver.
fn numbered(driver: &str) -> String {
    static SERIAL: AtomicU32 = AtomicU32::new(0);
    format!("{driver}{}", SERIAL.fetch_add(1, Ordering::Relaxed))
}

fn named_vdev(
    eal: &Eal,
    text: &str,
    name: String,
    args: &str,
    config: &PortConfig,
    traits: Traits,
) -> Result<Started, DpdkError> {
    made_vdev(eal, text, name, args, config, traits, |name, args| {
        let _one_at_a_time = control();
        Ok(init(name, args))
    })
}

/// `make` has the device made; an errno is what DPDK said.
fn made_vdev(
    eal: &Eal,
    text: &str,
    name: String,
    args: &str,
    config: &PortConfig,
    traits: Traits,
    make: impl FnOnce(&CStr, &CStr) -> Result<i32, DpdkError>,
) -> Result<Started, DpdkError> {
    check_config(text, config)?;
    let bad = |_| DpdkError::Spec { text: text.to_string(), why: "holds a NUL byte".into() };
    let (name, args) = (CString::new(name).map_err(bad)?, CString::new(args).map_err(bad)?);
    log::mark();
    let made = make(&name, &args).and_then(|err| match err {
        0 => Ok(()),
        err => Err(DpdkError::driver(text, format!("making {}", name.to_string_lossy()), err)),
    });
    if let Err(e) = made {
        if let Some(path) = &traits.serves {
            socket::remove(path);
        }
        return Err(e);
    }
    let device = find(text, name)?;
    Started::start(eal, text, device, config, traits)
}

/// Has DPDK make a virtual device.
fn init(name: &CStr, args: &CStr) -> i32 {
    // SAFETY: the EAL runs (a pool exists); both strings are NUL-terminated and copied.
    unsafe { sys::lr_vdev_init(name.as_ptr(), args.as_ptr()) }
}

/// The ethdev of a virtual device that was just made.
fn find(text: &str, name: CString) -> Result<Device, DpdkError> {
    // SAFETY: the name is NUL-terminated.
    let id = unsafe { sys::lr_port_by_name(name.as_ptr()) };
    match u16::try_from(id) {
        Ok(id) => Ok(Device { id, vdev: Some(name), serves: None, watched: false }),
        Err(_) => {
            // SAFETY: as above; the device has no ethdev, so nothing uses it.
            unsafe { sys::lr_vdev_uninit(name.as_ptr()) };
            Err(DpdkError::driver(text, "finding the port of the device", id))
        }
    }
}

fn check_config(text: &str, config: &PortConfig) -> Result<(), DpdkError> {
    let refuse = |why: String| Err(DpdkError::Config { what: format!("port {text}"), why });
    let most = sys::LR_MAX_QUEUES as u16;
    if config.rx_queues > most || config.tx_queues > most || config.rx_queues + config.tx_queues == 0 {
        return refuse(format!("needs a queue, and at most {most} in each direction"));
    }
    check_mtu(text, config.mtu, &config.pool)
}

fn check_mtu(text: &str, mtu: u16, pool: &Mempool) -> Result<(), DpdkError> {
    // Header and FCS; drivers with a VLAN tag in the frame need its four bytes too.
    let most = pool.max_frame_len().saturating_sub(22);
    if mtu < 68 || usize::from(mtu) > most {
        let why = format!("MTU {mtu} does not fit; legal is 68 to {most} with this pool's data room");
        return Err(DpdkError::Config { what: format!("port {text}"), why });
    }
    Ok(())
}

/// One end of a wire, whose rings exist.
pub(crate) fn wire_end(
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
    Ok(Started::start(eal, &text, device, &config, traits)?.into_port(None))
}
