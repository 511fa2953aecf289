//! Opening a port from its text form.

use std::{
    ffi::CString,
    path::{Path, PathBuf},
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use dpdk_sys as sys;
use host::Roots;

use super::{
    config::{check_config, PortConfig},
    eth,
    handle::{Opened, Port},
    kernel::long_frame_offloads,
    once::Once,
    pcap, socket,
    started::{control, Device, Started, Traits},
    vdev::{init, made_vdev, named_vdev, numbered, vdev},
};
use crate::{
    log,
    spec::{check_pci, Options, PortSpec, Role, MOST_PATH},
    DpdkError, Eal,
};

impl Port {
    /// Makes, configures and starts the port. Errors name the port, what is missing, and the command that mends it.
    ///
    /// * A PCI device must have been named in [`crate::EalOptions::pci`].
    /// * A socket to listen on is made here and removed at close; a stale one, where nobody listens, is replaced.
    /// * `wire` is not opened but made, by [`crate::Wire::pair`].
    pub fn open(eal: &'static Eal, spec: &PortSpec, config: &PortConfig) -> Result<Self, DpdkError> {
        let text = &spec.to_string();
        let (mut fallback, mut capture, mut offloads) = (None, None, Vec::new());
        let queues = config.rx_queues.max(config.tx_queues);
        let started = match spec {
            PortSpec::Wire => {
                let why = "a wire has two ends inside one process: do not combine it with another port".into();
                return Err(DpdkError::Spec { text: text.clone(), why });
            }
            PortSpec::Pci { address, options } => pci(eal, text, address, options, config)?,
            PortSpec::Eth { iface, driver, options } => {
                let request = eth::Request { text, iface, driver: *driver, options };
                let (started, why) = eth::open(eal, &request, config)?;
                fallback = why;
                if started.driver == "net_af_packet" {
                    offloads = long_frame_offloads(iface);
                }
                started
            }
            PortSpec::Memif { path, role, options } => {
                let path = &absolute(text, path)?;
                let serves = listen(text, path, *role, "role=server")?;
                let client = *role == Role::Client;
                let role = if *role == Role::Server { "server" } else { "client" };
                let fixed = format!("role={role},socket={},socket-abstract=no", path.display());
                // Ring and buffer sizes are the client's to choose; the buffer holds a whole frame.
                let rsize = config.rx_desc.clamp(2, 16384).next_power_of_two().trailing_zeros();
                let bsize = (u32::from(config.mtu) + 22).next_multiple_of(64).max(2048);
                let fixed = with_defaults(fixed, options, &[("rsize", rsize), ("bsize", bsize)]);
                let mut started = vdev(eal, text, "net_memif", &fixed, config, serves).map_err(|e| {
                    if client {
                        socket::stale_or(text, path, "role=server", e)
                    } else {
                        e
                    }
                })?;
                if client {
                    memif_connect(&mut started, config)?;
                }
                started
            }
            PortSpec::Vhost { path, role, options } => {
                // As a client the driver tries again and again: the other side may come later.
                let serves = match role {
                    Role::Server => listen(text, path, *role, "client=0")?,
                    Role::Client => Traits { watched: true, ..Traits::default() },
                };
                let fixed = format!("iface={},client={}", path.display(), u8::from(*role == Role::Client));
                let fixed = with_defaults(fixed, options, &[("queues", queues.into())]);
                vdev(eal, text, "net_vhost", &fixed, config, serves)?
            }
            PortSpec::Virtio { path, role, options } => {
                let serves = Traits { link_interrupt: true, ..listen(text, path, *role, "server=1")? };
                let fixed = format!("path={},server={}", path.display(), u8::from(*role == Role::Server));
                let size = config.rx_desc.max(config.tx_desc).clamp(64, 32768).next_power_of_two();
                let fixed = with_defaults(fixed, options, &[("queues", queues.into()), ("queue_size", size.into())]);
                match role {
                    Role::Client => vdev(eal, text, "virtio_user", &fixed, config, serves)
                        .map_err(|e| socket::stale_or(text, path, "server=1", e))?,
                    Role::Server => virtio_server(eal, text, path, &fixed, config, serves)?,
                }
            }
            PortSpec::Null { options } => {
                let size = options.iter().find(|(k, _)| k == "size").map_or(Ok(64), |(_, v)| v.parse::<usize>());
                if !size.as_ref().is_ok_and(|&size| (1..=config.pool.max_frame_len()).contains(&size)) {
                    let why = format!("size must be 1 to {}", config.pool.max_frame_len());
                    return Err(DpdkError::Spec { text: text.clone(), why });
                }
                vdev(eal, text, "net_null", &with_defaults("size=64".into(), options, &[]), config, Traits::default())?
            }
            PortSpec::Pcap { rx, tx } => {
                let once = rx.as_deref().filter(|_| config.read_once);
                capture = once.map(|path| Once::open(eal, text, path, config)).transpose()?;
                match (&capture, tx) {
                    (Some(_), None) => vdev(eal, text, "net_null", "no-rx=1", config, Traits::default())?,
                    (captured, tx) => {
                        let rx = rx.as_deref().filter(|_| captured.is_none());
                        let (started, why) = pcap::open(eal, text, rx, tx.as_deref(), config)?;
                        fallback = why;
                        started
                    }
                }
            }
            PortSpec::Raw { name, args } => {
                let traits = Traits { watched: true, ..Traits::default() };
                named_vdev(eal, text, name.clone(), args, config, traits)?
            }
        };
        Ok(Self::new(started, Opened { fallback, capture, offloads }))
    }
}

/// Looks at the socket before the driver does, and says who removes it.
fn listen(text: &str, path: &Path, role: Role, server: &'static str) -> Result<Traits, DpdkError> {
    match role {
        Role::Server => {
            socket::check_server(text, path)?;
            Ok(Traits { serves: Some(path.to_path_buf()), watched: true, ..Traits::default() })
        }
        Role::Client => {
            socket::check_client(text, path, server)?;
            Ok(Traits { watched: true, ..Traits::default() })
        }
    }
}

/// The fixed arguments, the defaults the user did not set, and what the user set.
fn with_defaults(mut args: String, options: &Options, defaults: &[(&str, u32)]) -> String {
    for (key, value) in defaults {
        if !options.iter().any(|(k, _)| k == key) {
            args.push_str(&format!(",{key}={value}"));
        }
    }
    for (key, value) in options {
        // DPDK refuses a key given twice.
        if args.split(',').any(|pair| pair.split('=').next() == Some(key)) {
            args = args.split(',').filter(|pair| pair.split('=').next() != Some(key)).collect::<Vec<_>>().join(",");
        }
        args.push_str(&format!(",{key}={value}"));
    }
    args.trim_start_matches(',').to_string()
}

/// DPDK's memif takes no relative path of a socket to listen on.
fn absolute(port: &str, path: &Path) -> Result<PathBuf, DpdkError> {
    let why = |why: String| DpdkError::File { port: port.to_string(), path: path.to_path_buf(), why };
    let path = std::path::absolute(path).map_err(|e| why(e.to_string()))?;
    match path.as_os_str().len() {
        0..=MOST_PATH => Ok(path),
        long => Err(why(format!("the absolute path has {long} bytes: must be at most {MOST_PATH}"))),
    }
}

/// The driver tries once, when it starts, and a peer whose port is not started yet says no. So it is started again
/// until the peer says yes. Not too soon: DPDK's own server (22.11) keeps a callback to freed memory for every peer that
/// has hung up before it was let in.
fn memif_connect(started: &mut Started, config: &PortConfig) -> Result<(), DpdkError> {
    let end = Instant::now() + config.peer_timeout;
    let refuse = |started: &Started, why: String| {
        let reason = format!("{why}: start the port of the peer, with the same id");
        Err(DpdkError::Driver { port: started.text.clone(), step: "connecting".into(), reason })
    };
    loop {
        let patience = Instant::now() + Duration::from_secs(1);
        while Instant::now() < patience {
            if started.link().up {
                return Ok(());
            }
            if config.cancel.as_ref().is_some_and(|c| c.load(Ordering::Relaxed)) {
                return refuse(started, "interrupted".into());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        if Instant::now() >= end {
            return refuse(started, format!("no answer in {:?}", config.peer_timeout));
        }
        let _one_at_a_time = control();
        // SAFETY: the port exists, and no queue of it was handed out yet.
        let err = unsafe { sys::lr_port_restart(started.id, 1) };
        if err != 0 {
            // The peer may have gone in between; the next round tells.
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// The driver waits inside for its first peer, without end. So it does that on a thread of its own, and when the time
/// is over we connect and hang up, which makes it fail. Until then no other virtual device can be made: DPDK holds the
/// lock of its bus, so the peer must be another process.
fn virtio_server(
    eal: &'static Eal,
    text: &str,
    path: &Path,
    args: &str,
    config: &PortConfig,
    traits: Traits,
) -> Result<Started, DpdkError> {
    made_vdev(eal, text, numbered("virtio_user"), args, config, traits, |name, args| {
        let _one_at_a_time = control();
        let (name, args) = (name.to_owned(), args.to_owned());
        let thread = std::thread::Builder::new().name("virtio-accept".into()).spawn(move || init(&name, &args));
        let Ok(thread) = thread else {
            return Err(DpdkError::NoMemory { what: format!("port {text}"), reason: "no thread to be had".into() });
        };
        let end = Instant::now() + config.peer_timeout;
        let mut late = None;
        while !thread.is_finished() {
            let cancelled = config.cancel.as_ref().is_some_and(|c| c.load(Ordering::Relaxed));
            if late.is_none() && (cancelled || Instant::now() >= end) {
                late = Some(if cancelled { "interrupted".into() } else { format!("{:?}", config.peer_timeout) });
            }
            if late.is_some() {
                socket::wake(path);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let made = thread.join().unwrap_or(-1);
        match late.filter(|_| made != 0) {
            Some(after) => Err(DpdkError::NoPeer { port: text.to_string(), path: path.to_path_buf(), after }),
            None => Ok(made),
        }
    })
}

fn pci(
    eal: &'static Eal,
    text: &str,
    address: &str,
    options: &Options,
    config: &PortConfig,
) -> Result<Started, DpdkError> {
    check_pci(address, &Roots::default())?;
    check_config(text, config)?;
    let c_address = CString::new(address).unwrap_or_default();
    // SAFETY: the name is NUL-terminated.
    let mut id = unsafe { sys::lr_port_by_name(c_address.as_ptr()) };
    if id < 0 {
        let devargs = CString::new(with_defaults(address.to_string(), options, &[])).unwrap_or_default();
        log::mark();
        // SAFETY: NUL-terminated and copied.
        let err = unsafe { sys::lr_dev_probe(devargs.as_ptr()) };
        if err != 0 {
            return Err(DpdkError::driver(text, "probing", err));
        }
        // SAFETY: as above.
        id = unsafe { sys::lr_port_by_name(c_address.as_ptr()) };
    }
    let id = u16::try_from(id).map_err(|_| DpdkError::driver(text, "finding the port of the device", id))?;
    Started::start(eal, text, Device { id, vdev: None, serves: None, watched: false }, config, Traits::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_where_the_command_runs() {
        let here = std::env::current_dir().unwrap();
        assert_eq!(absolute("memif:a", Path::new("a")).unwrap(), here.join("a"));
        assert_eq!(absolute("memif:/a", Path::new("/a")).unwrap(), Path::new("/a"));
        let long = absolute("memif:a", Path::new(&"a/".repeat(53))).unwrap_err();
        assert!(matches!(long, DpdkError::File { .. }), "{long}");
    }
}
