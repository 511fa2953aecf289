//! Kernel interfaces: AF_XDP, and AF_PACKET when that cannot be had.
//!
//! What was found with DPDK 22.11 (libxdp 1.3, Linux 6.18) on veth pairs, and is dealt with here:
//!
//! * Both drivers have a pool of their own. AF_XDP registers the whole pool with the kernel (UMEM), wants it in one
//!   piece without gaps between objects of at most a page, and takes 2048 mbufs out of it at once. AF_PACKET copies up
//!   to its frame size into an mbuf without looking at the room. Frames from other pools are copied by the driver while
//!   sending, so a caller's mbufs come back at once and none is stranded in a ring.
//! * The kernel keeps 256 bytes of each AF_XDP buffer for the program, so a 4 KiB page carries an MTU of 3434 at most.
//! * `busy_budget=0`: with the default of 64 the driver makes a system call for every empty poll, which serves drivers
//!   with NAPI contexts of their own; veth has none to be polled. It can be given as an option.
//! * Sending only queues; the kernel goes on when it is kicked. [`crate::TxQueue::tx_done_cleanup`] kicks.
//! * Closing AF_XDP leaks the UMEM and its socket (a reference count off by one), so the interface's queue would stay
//!   taken to the end of the process. The socket is found and closed here; the pool's memory is left.
//! * Both drivers say "up, 10 Gbit/s" whatever the link does, so the kernel is asked instead. Neither tells about
//!   frames that the kernel drops later: verify what was sent by what arrives.
//! * AF_PACKET accepts frames to send that are longer than its ring's frames, and frees them. Its frame size follows the MTU.
//! * AF_PACKET receives the beginning of a frame that is longer than a slot of its ring, without a mark: the driver does not
//!   hand on `tp_len`. GRO here and TSO at the other end of a veth pair make such frames. See [`crate::Port::cut_length`].
//! * The kernel's own stack gets each frame of AF_PACKET as well, answers it (unreachable) or forwards it, and frees what it made
//!   of them in moments of 0.1 to 0.4 ms. See [`PortConfig::own`].

use std::sync::{Mutex, PoisonError};

use dpdk_sys as sys;

use super::{
    config::PortConfig,
    kernel::{close_xdp_sockets, has_capability, interface, interfaces, keep_from_stack, xdp_sockets},
    started::{Started, Traits},
    vdev::vdev,
};
use crate::{
    spec::{EthDriver, Options, PortSpec, PACKET_KEYS, XDP_KEYS},
    DpdkError, Eal, Mempool,
};

/// Ethernet header, one VLAN tag, FCS.
const OVERHEAD: u32 = 22;
/// What the kernel keeps in front of a frame for the XDP program.
const XDP_HEADROOM: u32 = 256;
/// Where the packet begins in a slot of AF_PACKET: the kernel's header and address (52), and the link layer's header, aligned.
const PACKET_HEAD: u32 = 80;
/// Page less the headers of pool object (64), mbuf and headroom (128 each) and a line, as a pool may pad an object.
const XDP_MOST_ROOM: u32 = 4096 - 64 - 128 - 128 - 64;
/// The largest MTU that AF_XDP carries here.
pub const AF_XDP_MOST_MTU: u32 = XDP_MOST_ROOM - OVERHEAD - XDP_HEADROOM;

impl PortSpec {
    /// The MTU of the kernel interface behind the port; `None` where there is none.
    pub fn interface_mtu(&self) -> Option<u32> {
        let Self::Eth { iface, .. } = self else { return None };
        Some(interface(iface)?.mtu)
    }
}

pub(super) struct Request<'a> {
    pub(super) text: &'a str,
    pub(super) iface: &'a str,
    pub(super) driver: EthDriver,
    pub(super) options: &'a Options,
}

pub(super) fn open(
    eal: &'static Eal,
    request: &Request<'_>,
    config: &PortConfig,
) -> Result<(Started, Option<String>), DpdkError> {
    check(request, config)?;
    match request.driver {
        EthDriver::AfXdp => Ok((af_xdp(eal, request, config)?, None)),
        EthDriver::AfPacket => Ok((af_packet(eal, request, config)?, None)),
        EthDriver::Auto => match af_xdp(eal, request, config) {
            Ok(started) => Ok((started, None)),
            Err(why) => {
                let why = format!("AF_PACKET instead of AF_XDP, which is faster: {}", short(&why));
                Ok((af_packet(eal, request, config)?, Some(why)))
            }
        },
    }
}

/// The reason without the port's name, which the caller shows already.
fn short(error: &DpdkError) -> String {
    match error {
        DpdkError::Driver { step, reason, .. } => format!("{step} failed: {reason}"),
        DpdkError::Config { why, .. } => why.clone(),
        other => other.to_string(),
    }
}

fn check(request: &Request<'_>, config: &PortConfig) -> Result<(), DpdkError> {
    let Request { text, iface, .. } = *request;
    let Some(state) = interface(iface) else {
        return Err(DpdkError::NoInterface { name: iface.to_string(), there: interfaces() });
    };
    const CAP_NET_RAW: u32 = 13;
    if !has_capability(CAP_NET_RAW) {
        let exe = std::env::current_exe().map_or("linerate".into(), |p| p.display().to_string());
        let mend = format!("run as root, or: sudo setcap cap_net_raw,cap_net_admin,cap_bpf,cap_ipc_lock+ep {exe}");
        return Err(DpdkError::NoPermission { what: format!("port {text}: raw sockets"), mend });
    }
    let refuse = |reason: String| DpdkError::Driver { port: text.to_string(), step: "opening".into(), reason };
    if state.up == 0 {
        return Err(refuse(format!("the interface is down: bring it up with: ip link set {iface} up")));
    }
    if state.mtu < u32::from(config.mtu) {
        let (has, wants) = (state.mtu, config.mtu);
        return Err(refuse(format!(
            "its MTU is {has}, {wants} is needed: set it with: ip link set {iface} mtu {wants}"
        )));
    }
    Ok(())
}

fn args(request: &Request<'_>, keys: &[&str], defaults: &[(&str, u32)]) -> String {
    let mut args = format!("iface={}", request.iface);
    let given = |key: &str| request.options.iter().any(|(k, _)| k == key);
    for (key, value) in defaults.iter().filter(|(key, _)| !given(key)) {
        args.push_str(&format!(",{key}={value}"));
    }
    for (key, value) in request.options.iter().filter(|(key, _)| keys.contains(&key.as_str())) {
        args.push_str(&format!(",{key}={value}"));
    }
    args
}

fn af_xdp(eal: &'static Eal, request: &Request<'_>, config: &PortConfig) -> Result<Started, DpdkError> {
    let text = request.text;
    let refuse = |reason: String| DpdkError::Driver { port: text.to_string(), step: "opening".into(), reason };
    let room = (u32::from(config.mtu) + OVERHEAD + XDP_HEADROOM).max(2048);
    if room > XDP_MOST_ROOM {
        return Err(refuse(format!("AF_XDP carries an MTU of {AF_XDP_MOST_MTU} at most, {} is needed", config.mtu)));
    }
    let queues = u32::from(config.rx_queues.max(config.tx_queues).max(1));
    // Fill and completion rings (2048 each), receive and transmit rings, caches and bursts.
    let count = queues * (2 * 2048 + 2 * u32::from(config.rx_desc)) + 2048 - 1;
    let pool = Mempool::new(eal, "afxdp", count, room as u16, 256)?;
    if !pool.is_one_chunk() {
        return Err(refuse("DPDK's memory has no contiguous piece large enough for its buffers".into()));
    }
    let args = args(request, XDP_KEYS, &[("start_queue", 0), ("queue_count", queues), ("busy_budget", 0)]);
    static OPENING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    let before = xdp_sockets();
    // SAFETY: replaces print functions of libraries the driver has loaded.
    unsafe { sys::lr_quiet_bpf() };
    let traits = Traits { iface: Some(request.iface.to_string()), ..Traits::default() };
    let config = PortConfig { rx_queues: queues as u16, tx_queues: queues as u16, ..config.with_pool(&pool) };
    let started = vdev(eal, text, "net_af_xdp", &args, &config, traits);
    let mut opened = xdp_sockets();
    opened.retain(|fd| !before.contains(fd));
    match started {
        Ok(mut started) => {
            started.xdp_sockets = opened;
            Ok(started)
        }
        Err(e) => {
            close_xdp_sockets(&opened);
            Err(e)
        }
    }
}

fn af_packet(eal: &'static Eal, request: &Request<'_>, config: &PortConfig) -> Result<Started, DpdkError> {
    // The kernel's header and the alignment of the link layer's precede the frame in its slot; slots tile a block.
    let framesz = (u32::from(config.mtu) + OVERHEAD + 128).next_multiple_of(2048);
    let framesz = option(request.options, "framesz").unwrap_or(framesz);
    let blocksz = option(request.options, "blocksz").unwrap_or(framesz * 8);
    let framecnt = u32::from(config.rx_desc.max(config.tx_desc)).next_multiple_of((blocksz / framesz.max(1)).max(1));
    let Ok(room) = u16::try_from(framesz) else {
        let why = format!("framesz={framesz} is too large; at most 65392");
        return Err(DpdkError::Config { what: format!("port {}", request.text), why });
    };
    let queues = u32::from(config.rx_queues.max(config.tx_queues).max(1));
    let pool = Mempool::new(eal, "afpacket", 4096 * queues - 1, room.max(64), 256)?;
    let defaults = [
        ("qpairs", queues),
        ("framesz", framesz),
        ("blocksz", blocksz),
        ("framecnt", framecnt),
        // Past the queueing discipline: what it would drop silently is refused instead.
        ("qdisc_bypass", 1),
    ];
    let traits = Traits {
        iface: Some(request.iface.to_string()),
        clamp_mtu: true,
        cut_length: Some(framesz.saturating_sub(PACKET_HEAD)),
        ..Traits::default()
    };
    let config = PortConfig { rx_queues: queues as u16, tx_queues: queues as u16, ..config.with_pool(&pool) };
    let mut started =
        vdev(eal, request.text, "net_af_packet", &args(request, PACKET_KEYS, &defaults), &config, traits)?;
    started.kept_from_stack = config.own.and_then(|mark| keep_from_stack(request.iface, mark));
    Ok(started)
}

fn option(options: &Options, key: &str) -> Option<u32> {
    options.iter().find(|(k, _)| k == key)?.1.parse().ok()
}
