//! Captures read once. In a process of its own: some drivers of DPDK 22.11 close a descriptor twice, which by then may be
//! a file's of another thread.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{eal_with, full, pool};
use dpdk::{DpdkError, Eal, Mbuf, Memory, Mempool, Port, PortConfig};
use packet::{Buffer, Burst, Rx, Tx};
use std::time::Duration;

/// A frame of its own of this many bytes.
fn sized(i: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + i) as u8).collect()
}

/// Reads a capture once, in bursts, to its end. Returns its frames, as far as their content goes, and what was wrong.
fn read_once(eal: &'static Eal, pool: &Mempool, spec: &str) -> (Vec<Vec<u8>>, Option<String>) {
    let config = PortConfig { read_once: true, ..PortConfig::new(pool) };
    let mut port = Port::open(eal, &spec.parse().unwrap(), &config).unwrap();
    let progress = port.progress().cloned();
    let (mut rx, mut burst, mut seen) = (port.take_rx(0).unwrap(), Burst::new(), Vec::new());
    let mut lull = 0;
    while lull < 3 {
        let n = rx.rx(&mut burst);
        assert_eq!(n, burst.len());
        lull = if n > 0 { 0 } else { lull + 1 };
        seen.extend(burst.iter().map(|f| f.data().to_vec()));
        Mbuf::discard(&mut burst);
    }
    let trouble = progress.as_ref().and_then(|p| p.broke_off().or(p.left_out()).map(str::to_owned));
    if let Some(progress) = progress {
        assert!(progress.is_over());
        let bytes = seen.iter().map(|f| f.len() as u64).sum::<u64>();
        let (frames, read) = progress.read();
        assert_eq!(frames, seen.len() as u64);
        assert!(trouble.is_some() || read == bytes);
        assert_eq!(port.stats().unwrap().ipackets, frames);
    }
    drop((port, rx));
    (seen, trouble)
}

#[test]
fn a_capture_is_read_once_whatever_its_frames() {
    let eal = eal_with(Memory::NoHuge { mib: 256 });
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("once.pcap");
    let pool = pool(eal, 4095);
    let spec = format!("pcap:{}", path.display());
    // Every size up to what a buffer holds and beyond it, over more than one reading; none that a port could not carry.
    let sizes = (1..1500).chain([1514, 2048, 2049, 9000, 65_000, 60, 65_407]).cycle().take(4500);
    let frames: Vec<Vec<u8>> = sizes.zip(0..).map(|(size, i)| sized(i, size)).collect();
    for big_endian in [false, true] {
        let word = |n: u32| if big_endian { n.to_be_bytes() } else { n.to_le_bytes() };
        let mut file =
            [word(0xa1b2_c3d4).to_vec(), if big_endian { vec![0, 2, 0, 4] } else { vec![2, 0, 4, 0] }].concat();
        file.extend([0u32, 0, 262_144, 1].into_iter().flat_map(word));
        let mut ends = Vec::new();
        for frame in &frames {
            ends.push(file.len());
            file.extend([1_700_000_000, 5, frame.len() as u32, frame.len() as u32].into_iter().flat_map(word));
            file.extend(frame);
        }
        std::fs::write(&path, &file).unwrap();
        let (seen, trouble) = read_once(eal, &pool, &spec);
        assert_eq!(trouble, None);
        assert!(seen == frames, "{} of {}", seen.len(), frames.len());
        full(&pool);

        // Cut in a header, behind it, and in a frame.
        let mut told = Vec::new();
        for (cut, whole) in [(ends[4400] + 7, 4400), (ends[4400] + 16, 4400), (ends[4401] - 1, 4400), (ends[1] - 1, 0)]
        {
            std::fs::write(&path, &file[..cut]).unwrap();
            let (seen, trouble) = read_once(eal, &pool, &spec);
            assert_eq!(seen.len(), whole);
            let said = trouble.unwrap();
            assert!(said.contains(&format!("frame {}", whole + 1)), "{said}");
            told.push(said);
        }
        // A length that cannot be.
        let mut damaged = file.clone();
        damaged[ends[100] + 8..][..4].copy_from_slice(&word(300_000));
        std::fs::write(&path, &damaged).unwrap();
        let (seen, trouble) = read_once(eal, &pool, &spec);
        assert_eq!(seen.len(), 100);
        told.extend(trouble);
        // More than any buffer has room for.
        let mut large = file[..24].to_vec();
        large.extend([1, 5, 70_000, 70_000].into_iter().flat_map(word));
        large.extend(sized(1, 70_000));
        large.extend(&file[ends[59]..ends[60]]);
        std::fs::write(&path, &large).unwrap();
        let (seen, trouble) = read_once(eal, &pool, &spec);
        assert_eq!(seen.iter().map(Vec::len).collect::<Vec<_>>(), [65_407, 60]);
        told.extend(trouble);
        let told = told.join("\n").replace(dir.path().to_str().unwrap(), "[dir]");
        insta::allow_duplicates! { insta::assert_snapshot!(told, @r"
        [dir]/once.pcap is cut in the middle of frame 4401: only what is before it is read
        [dir]/once.pcap is cut in the middle of frame 4401: only what is before it is read
        [dir]/once.pcap is cut in the middle of frame 4401: only what is before it is read
        [dir]/once.pcap is cut in the middle of frame 1: only what is before it is read
        [dir]/once.pcap is damaged: frame 101 says it has 300000 bytes, and at most 262144 are legal
        frame 1 of [dir]/once.pcap has 70000 bytes: only 65407 are read
        ") };
        full(&pool);
    }
    // Nothing in it, and another format.
    let mut writer = packet::pcap::Writer::new(Vec::new()).unwrap();
    std::fs::write(&path, packet::pcap::Writer::new(Vec::new()).unwrap().into_inner()).unwrap();
    assert_eq!(read_once(eal, &pool, &spec), (Vec::new(), None));
    for frame in &frames[100..110] {
        writer.write(Duration::from_secs(1), frame).unwrap();
    }
    std::fs::write(&path, writer.into_inner()).unwrap();
    let ng = dir.path().join("once.pcapng");
    let out = std::process::Command::new("editcap").args(["-F", "pcapng"]).arg(&path).arg(&ng).status();
    assert!(out.unwrap().success(), "editcap, of Debian's wireshark-common (scripts/setup.sh --test)");
    assert_eq!(read_once(eal, &pool, &format!("pcap:{}", ng.display())), (frames[100..110].to_vec(), None));
    // Frames of another link are not replayed as if they were of Ethernet.
    let other = dir.path().join("other.pcap");
    std::fs::write(&other, [0xa1b2_c3d4u32, 0x0002_0004, 0, 0, 65_535, 101].map(u32::to_be_bytes).concat()).unwrap();
    let spec = format!("pcap:{}", other.display());
    let error = Port::open(eal, &spec.parse().unwrap(), &PortConfig::new(&pool)).unwrap_err();
    let why = error.to_string();
    assert!(matches!(error, DpdkError::File { .. }) && why.contains("must be Ethernet to be replayed"), "{why}");
    // What is sent is written, if asked for.
    let to = dir.path().join("out.pcap");
    let config = PortConfig { read_once: true, ..PortConfig::new(&pool) };
    let spec = format!("pcap:rx={},tx={}", path.display(), to.display());
    let mut port = Port::open(eal, &spec.parse().unwrap(), &config).unwrap();
    let (mut rx, mut tx, mut burst) = (port.take_rx(0).unwrap(), port.take_tx(0).unwrap(), Burst::new());
    assert_eq!((rx.rx(&mut burst), tx.tx(&mut burst), rx.rx(&mut burst)), (10, 10, 0));
    drop((port, rx, tx));
    let written = packet::pcap::read(std::fs::File::open(&to).unwrap()).unwrap();
    assert!(written.map(|f| f.unwrap().bytes).eq(frames[100..110].iter().cloned()));
    full(&pool);
}
