//! An ethdev from the moment it is made: configured, started, stopped and removed.

use std::{
    ffi::{CStr, CString},
    os::fd::OwnedFd,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use dpdk_sys as sys;

use super::{config::PortConfig, kernel, rings::Rings, rss::SYMMETRIC_KEY, socket};
use crate::{eal::Alive, log, DpdkError, Eal, Mempool};

/// What the kinds of port differ in.
#[derive(Default)]
pub(super) struct Traits {
    /// The kernel interface behind it.
    pub(super) iface: Option<String>,
    /// A socket we listen on, to be removed.
    pub(super) serves: Option<PathBuf>,
    /// The driver's largest MTU is only nominal.
    pub(super) clamp_mtu: bool,
    /// See [`Port::cut_length`](super::handle::Port::cut_length).
    pub(super) cut_length: Option<u32>,
    /// Follow the link by interrupt. virtio-user registers one anyway when its peer goes, takes it back only if it was
    /// asked for, and DPDK aborts the process over the stale descriptor otherwise.
    pub(super) link_interrupt: bool,
    /// The driver has DPDK's interrupt thread watch sockets. It is stopped and closed on that thread, and as some are
    /// forgotten even then (memif's listener), DPDK's memory is not unmapped under it at the end of the process.
    pub(super) watched: bool,
    pub(super) rings: Option<Arc<Rings>>,
}

/// The running ethdev itself, shared by the port and its queues.
pub(super) struct Started {
    pub(super) id: u16,
    pub(super) text: String,
    pub(super) driver: String,
    /// The virtual device's name; a PCI device stays.
    pub(super) vdev: Option<CString>,
    pub(super) iface: Option<String>,
    pub(super) cut_length: Option<u32>,
    pub(super) serves: Option<PathBuf>,
    pub(super) was_promiscuous: bool,
    pub(super) promiscuous: bool,
    pub(super) queues: (u16, u16),
    /// As the driver said before it was configured: some then name what they were configured with.
    pub(super) max_queues: (u16, u16),
    pub(super) xdp_sockets: Vec<i32>,
    /// While it is open, the kernel's own stack does not get the caller's frames.
    pub(super) kept_from_stack: Option<OwnedFd>,
    pub(super) watched: bool,
    // In this order: rings give their frames back to the pool.
    _rings: Option<Arc<Rings>>,
    pub(super) pool: Mempool,
    _alive: Alive,
}

/// Making, starting and removing devices changes DPDK's shared lists: one at a time.
pub(super) fn control() -> MutexGuard<'static, ()> {
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
pub(super) struct Device {
    pub(super) id: u16,
    pub(super) vdev: Option<CString>,
    pub(super) serves: Option<PathBuf>,
    pub(super) watched: bool,
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
    pub(super) fn start(
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
        let was_promiscuous = traits.iface.as_deref().and_then(kernel::interface).is_some_and(|i| i.promiscuous != 0);
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
            let why = format!("{rx} receive and {tx} transmit queues: the device has at most {most_rx} and {most_tx}");
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
            cut_length: traits.cut_length,
            serves: device.serves.take(),
            was_promiscuous,
            promiscuous: config.promiscuous,
            queues: (config.rx_queues, config.tx_queues),
            max_queues,
            xdp_sockets: Vec::new(),
            kept_from_stack: None,
            watched: traits.watched,
            _rings: traits.rings,
            pool: config.pool.clone(),
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

    pub(super) fn info(&self) -> Option<sys::lr_port_info> {
        info(self.id)
    }

    pub(super) fn is_physical(&self) -> bool {
        self.vdev.is_none()
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
        kernel::close_xdp_sockets(&self.xdp_sockets);
    }
}
