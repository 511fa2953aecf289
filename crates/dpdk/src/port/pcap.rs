//! Captures: replayed in a loop out of the pool, or read once while what is sent is written.
//!
//! For replaying, the driver loads the whole file into mbufs at start, once for each receive queue, and copies from
//! there. A large capture gets a pool of its own for that, with mbufs no longer than its frames.

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek},
    path::Path,
};

use packet::capture::{not_a_capture, not_ethernet};

use super::{
    config::PortConfig,
    started::{Started, Traits},
    vdev::vdev,
};
use crate::{DpdkError, Eal, Mempool};

/// Header, VLAN tag and FCS beside the payload.
const OVERHEAD: usize = 22;
/// The smallest data room of a pool of our own: what a function may add to a frame goes in front, into the headroom.
const LEAST_ROOM: usize = 256;

pub(super) fn open(
    eal: &'static Eal,
    text: &str,
    rx: Option<&Path>,
    tx: Option<&Path>,
    config: &PortConfig,
) -> Result<(Started, Option<String>), DpdkError> {
    let (mut args, mut cut) = (Vec::new(), None);
    let mut config = config.clone();
    if let Some(rx) = rx {
        let unreadable =
            |e: io::Error| DpdkError::File { port: text.to_string(), path: rx.to_path_buf(), why: e.to_string() };
        let mut file = open_file(text, rx)?;
        let refused = |why: String| Err(DpdkError::File { port: text.to_string(), path: rx.to_path_buf(), why });
        if !file.metadata().is_ok_and(|m| m.is_file()) {
            return refused("is not a file, and can be read only once: name a file, or use flowlog --once".to_owned());
        }
        // The driver's words for these are an error number.
        let mut head = Vec::new();
        file.by_ref().take(64).read_to_end(&mut head).and_then(|_| file.rewind()).map_err(unreadable)?;
        if let Some(looks) = not_a_capture(&head) {
            return refused(format!("must be a capture, pcap or pcapng, and is {looks}"));
        }
        // The driver takes whatever frames there are for those of Ethernet.
        if !config.read_once {
            let wrong = not_ethernet(BufReader::new(&file));
            file.rewind().map_err(unreadable)?;
            if let Some(why) = wrong {
                return refused(why);
            }
        }
        // The driver loads the file into the pool and copies from there for ever; it cannot do so and record.
        if tx.is_none() && !config.read_once {
            // It has as many queues of both kinds as it was given files to read.
            let queues = config.rx_queues.max(config.tx_queues).max(1);
            args.extend((0..queues).map(|_| format!("rx_pcap={}", rx.display())));
            args.push("infinite_rx=1".into());
            let Measured { frames, longest, is_cut } =
                measure(BufReader::with_capacity(1 << 20, file)).map_err(unreadable)?;
            cut = is_cut.then(|| cut_short(rx, frames + 1));
            let frames = frames.saturating_mul(u64::from(queues));
            if frames > config.pool.capacity() as u64 / 2 {
                config = with_own_pool(eal, config, frames, longest)?;
            }
        } else {
            args.push(format!("rx_pcap={}", rx.display()));
        }
    }
    // Given nowhere to write to, it would read for ever.
    let nowhere = rx.filter(|_| config.read_once).map(|_| Path::new("/dev/null"));
    if let Some(tx) = tx.or(nowhere) {
        args.push(format!("tx_pcap={}", tx.display()));
    }
    Ok((vdev(eal, text, "net_pcap", &args.join(","), &config, Traits::default())?, cut))
}

/// Opens what is to be read. Errors when it cannot be read, or is a directory.
pub(super) fn open_file(text: &str, path: &Path) -> Result<File, DpdkError> {
    let refused = |why: String| DpdkError::File { port: text.to_string(), path: path.to_path_buf(), why };
    let file = File::open(path).map_err(|e| refused(e.to_string()))?;
    if file.metadata().is_ok_and(|m| m.is_dir()) {
        return Err(refused("is a directory: name a capture in it".to_owned()));
    }
    Ok(file)
}

/// What is said of a capture that ends in the middle of this frame, counted from 1.
pub(super) fn cut_short(path: &Path, frame: u64) -> String {
    format!("{} is cut in the middle of frame {frame}: only what is before it is read", path.display())
}

/// As many mbufs as there are frames, and those of the caller's pool for the copies that go round.
fn with_own_pool(eal: &'static Eal, config: PortConfig, frames: u64, longest: usize) -> Result<PortConfig, DpdkError> {
    let room = longest.saturating_add(OVERHEAD).max(LEAST_ROOM);
    let what = || format!("a replay of {frames} frames of up to {longest} bytes");
    let count = u32::try_from(frames + config.pool.capacity() as u64).ok();
    let (Some(count), Ok(room)) = (count, u16::try_from(room)) else {
        return Err(DpdkError::Config { what: what(), why: "is too large".into() });
    };
    let pool = Mempool::new(eal, "replay", count, room, 512)?;
    let mtu = usize::from(config.mtu).min(pool.max_frame_len() - OVERHEAD) as u16;
    Ok(PortConfig { mtu, ..config.with_pool(&pool) })
}

/// Bytes of a classic capture's header, and of that of each frame.
pub(super) const HEADER: usize = 24;
pub(super) const RECORD: usize = 16;

/// How a classic capture writes numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    /// That of a capture with microseconds or nanoseconds; `None` when it is another kind of file.
    pub(super) fn from_header(head: &[u8; HEADER]) -> Option<Self> {
        match head {
            [0xd4, 0xc3, 0xb2, 0xa1, ..] | [0x4d, 0x3c, 0xb2, 0xa1, ..] => Some(Self::Little),
            [0xa1, 0xb2, 0xc3, 0xd4, ..] | [0xa1, 0xb2, 0x3c, 0x4d, ..] => Some(Self::Big),
            _ => None,
        }
    }

    pub(super) fn number(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    /// When a frame was captured, by its header, in ns since the Unix epoch.
    #[inline]
    pub(super) fn time(self, &[a, b, c, d, e, f, g, h, ..]: &[u8; RECORD], unit_ns: u64) -> u64 {
        let [seconds, parts] = [[a, b, c, d], [e, f, g, h]].map(|bytes| u64::from(self.number(bytes)));
        seconds * 1_000_000_000 + parts * unit_ns
    }

    /// The bytes of a frame on the wire, by its header.
    #[inline]
    pub(super) fn on_wire(self, &[_, _, _, _, _, _, _, _, _, _, _, _, a, b, c, d]: &[u8; RECORD]) -> u32 {
        self.number([a, b, c, d])
    }

    /// The bytes of a frame that are there, by its header.
    #[inline]
    pub(super) fn captured(self, &[_, _, _, _, _, _, _, _, a, b, c, d, ..]: &[u8; RECORD]) -> u32 {
        self.number([a, b, c, d])
    }
}

/// What is in a capture.
#[derive(Debug, Default, PartialEq, Eq)]
struct Measured {
    /// Frames that are there as a whole.
    frames: u64,
    /// Length of the longest.
    longest: usize,
    /// Whether another one begins and does not end.
    is_cut: bool,
}

/// Reads a capture through. One of a kind unknown here, or that ends in its header, is for the driver to refuse: nothing
/// is found in it. Errors when the file cannot be read.
fn measure(mut from: impl Read) -> io::Result<Measured> {
    let (mut found, mut head) = (Measured::default(), Vec::new());
    from.by_ref().take(HEADER as u64).read_to_end(&mut head)?;
    let Some(order) = head.first_chunk().and_then(ByteOrder::from_header) else { return Ok(found) };
    loop {
        head.clear();
        from.by_ref().take(RECORD as u64).read_to_end(&mut head)?;
        let Some(record) = head.first_chunk() else {
            found.is_cut = !head.is_empty();
            return Ok(found);
        };
        let len = order.captured(record);
        if io::copy(&mut from.by_ref().take(len.into()), &mut io::sink())? < u64::from(len) {
            found.is_cut = true;
            return Ok(found);
        }
        found.frames += 1;
        found.longest = found.longest.max(len as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_counted_in_both_byte_orders_and_up_to_where_the_file_breaks() {
        for little in [true, false] {
            let word = |x: u32| if little { x.to_le_bytes() } else { x.to_be_bytes() };
            let mut file = word(0xa1b2_c3d4).to_vec();
            file.extend([0; 20]);
            for len in [60, 1514, 64] {
                file.extend([[0; 4], [0; 4], word(len), word(len)].concat());
                file.extend(vec![7; len as usize]);
            }
            assert_eq!(measure(&file[..]).unwrap(), Measured { frames: 3, longest: 1514, is_cut: false });
            let whole = [24, 24 + 76, 24 + 76 + 1530];
            for cut in 0..file.len() {
                let found = measure(&file[..cut]).unwrap();
                assert!(found.frames < 3 && found.longest <= 1514, "{cut}");
                assert_eq!(found.is_cut, cut > 24 && !whole.contains(&cut), "{cut}");
            }
        }
        assert_eq!(measure(&[9; 400][..]).unwrap(), Measured::default());
    }

    #[test]
    fn times_are_read_in_both_byte_orders_and_units() {
        for (order, word) in [(ByteOrder::Little, u32::to_le_bytes as fn(u32) -> _), (ByteOrder::Big, u32::to_be_bytes)]
        {
            let record = [u32::MAX, 999_999, 60, 60].map(word).concat();
            let record: &[u8; RECORD] = record.first_chunk().unwrap();
            let seconds = u64::from(u32::MAX) * 1_000_000_000;
            assert_eq!((order.time(record, 1), order.time(record, 1000)), (seconds + 999_999, seconds + 999_999_000));
        }
    }
}
