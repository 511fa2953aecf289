//! Captures: replayed for ever out of the pool, or read once while what is sent is written.
//!
//! For replaying, the driver loads the whole file into mbufs at start, once for each receive queue, and copies from
//! there. A large capture gets a pool of its own for that, with mbufs no longer than its frames.

use std::{
    fs::File,
    io::{self, BufReader, Read},
    path::Path,
};

use super::{vdev, PortConfig, Started, Traits};
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
) -> Result<Started, DpdkError> {
    let mut args = Vec::new();
    let mut config = config.clone();
    if let Some(rx) = rx {
        let unreadable =
            |e: io::Error| DpdkError::File { port: text.to_string(), path: rx.to_path_buf(), why: e.to_string() };
        let file = File::open(rx).map_err(unreadable)?;
        // The driver loads the file into the pool and copies from there for ever; it cannot do so and record.
        if tx.is_none() {
            // It has as many queues of both kinds as it was given files to read.
            let queues = config.rx_queues.max(config.tx_queues).max(1);
            args.extend((0..queues).map(|_| format!("rx_pcap={}", rx.display())));
            args.push("infinite_rx=1".into());
            let (frames, longest) = measure(BufReader::with_capacity(1 << 20, file)).map_err(unreadable)?;
            let frames = frames.saturating_mul(u64::from(queues));
            if frames > config.pool.capacity() as u64 / 2 {
                config = with_own_pool(eal, config, frames, longest)?;
            }
        } else {
            args.push(format!("rx_pcap={}", rx.display()));
        }
    }
    if let Some(tx) = tx {
        args.push(format!("tx_pcap={}", tx.display()));
    }
    vdev(eal, text, "net_pcap", &args.join(","), &config, Traits::default())
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

/// How many frames a capture holds and the length of the longest. A file that is no capture, or ends early, is for the
/// driver to refuse: what was counted until then is given. Errors when the file cannot be read.
fn measure(mut from: impl Read) -> io::Result<(u64, usize)> {
    const RECORD: usize = 16;
    let mut header = [0; 24];
    if !fill(&mut from, &mut header)? {
        return Ok((0, 0));
    }
    let [a, b, c, d, ..] = header;
    let little = match [a, b, c, d] {
        [0xd4, 0xc3, 0xb2, 0xa1] | [0x4d, 0x3c, 0xb2, 0xa1] => true,
        [0xa1, 0xb2, 0xc3, 0xd4] | [0xa1, 0xb2, 0x3c, 0x4d] => false,
        _ => return Ok((0, 0)),
    };
    let (mut frames, mut longest, mut record) = (0, 0, [0; RECORD]);
    while fill(&mut from, &mut record)? {
        let [_, _, _, _, _, _, _, _, a, b, c, d, ..] = record;
        let len = if little { u32::from_le_bytes([a, b, c, d]) } else { u32::from_be_bytes([a, b, c, d]) };
        if io::copy(&mut from.by_ref().take(len.into()), &mut io::sink())? < u64::from(len) {
            break;
        }
        frames += 1;
        longest = longest.max(len as usize);
    }
    Ok((frames, longest))
}

/// Fills the buffer; `false` when the file ends first.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match from.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(e) => Err(e),
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
            assert_eq!(measure(&file[..]).unwrap(), (3, 1514));
            for cut in 0..file.len() {
                let (frames, longest) = measure(&file[..cut]).unwrap();
                assert!(frames < 3 && longest <= 1514, "{cut}");
            }
        }
        assert_eq!(measure(&[9; 400][..]).unwrap(), (0, 0));
    }
}
