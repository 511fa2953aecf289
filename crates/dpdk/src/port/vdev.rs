//! Virtual devices: made by name, then found as an ethdev.

use std::{
    ffi::{CStr, CString},
    sync::atomic::{AtomicU32, Ordering},
};

use dpdk_sys as sys;

use super::{
    config::{check_config, PortConfig},
    socket,
    started::{control, Device, Started, Traits},
};
use crate::{log, DpdkError, Eal};

/// Makes a virtual device of a driver and starts it.
pub(super) fn vdev(
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
pub(super) fn numbered(driver: &str) -> String {
    static SERIAL: AtomicU32 = AtomicU32::new(0);
    format!("{driver}{}", SERIAL.fetch_add(1, Ordering::Relaxed))
}

pub(super) fn named_vdev(
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
pub(super) fn made_vdev(
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
pub(super) fn init(name: &CStr, args: &CStr) -> i32 {
    // SAFETY: the EAL runs (a pool exists); both strings are NUL-terminated and copied.
    unsafe { sys::lr_vdev_init(name.as_ptr(), args.as_ptr()) }
}

/// The ethdev of a virtual device that was just made.
pub(super) fn find(text: &str, name: CString) -> Result<Device, DpdkError> {
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
