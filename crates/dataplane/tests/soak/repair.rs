//! Makes checksums right again, of a frame whatever it is, as far as it can be read.

use packet::checksum;

/// Tags, labels and extension headers are followed no further.
const DEPTH: usize = 24;

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?)))
}

/// All checksums of a frame, those inside a tunnel first.
pub fn repair(frame: &mut [u8]) {
    let _ = ether(frame);
}

fn ether(frame: &mut [u8]) -> Option<()> {
    let mut at = 12;
    let mut kind = word(frame, at)?;
    while matches!(kind, 0x8100 | 0x88a8) {
        at += 4;
        kind = word(frame, at)?;
    }
    at += 2;
    if kind == 0x8847 {
        for _ in 0..DEPTH {
            at += 4;
            if frame.get(at - 2)? & 1 != 0 {
                break;
            }
        }
    }
    let packet = frame.get_mut(at..)?;
    match (kind, packet.first()? >> 4) {
        (0x0800 | 0x8847, 4) => ip4(packet),
        (0x86dd | 0x8847, 6) => ip6(packet),
        _ => None,
    }
}

fn ip4(packet: &mut [u8]) -> Option<()> {
    let len = usize::from(packet[0] & 0xf) * 4;
    let header = packet.get_mut(..len.max(20))?;
    header[10..12].fill(0);
    let sum = checksum::finish(checksum::sum(header));
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    if word(header, 6)? & 0x1fff != 0 {
        return None;
    }
    let (protocol, addresses) = (header[9], checksum::sum(&header[12..20]));
    let end = word(packet, 2)?.min(packet.len());
    upper(packet.get_mut(len.max(20)..end)?, protocol, addresses)
}

fn ip6(packet: &mut [u8]) -> Option<()> {
    let end = (word(packet, 4)? + 40).min(packet.len());
    let addresses = checksum::sum(packet.get(8..40)?);
    let mut next = packet[6];
    let mut body = packet.get_mut(40..end)?;
    for _ in 0..DEPTH {
        let len = match next {
            0 | 43 | 60 => (usize::from(*body.get(1)?) + 1) * 8,
            44 if word(body, 2)? & 0xfff8 == 0 => 8,
            44 => return None,
            _ => break,
        };
        next = *body.first()?;
        body = body.get_mut(len..)?;
    }
    upper(body, next, addresses)
}

fn upper(body: &mut [u8], protocol: u8, addresses: u64) -> Option<()> {
    let (at, pseudo) = match protocol {
        1 => (2, 0),
        58 => (2, addresses + 58 + body.len() as u64),
        6 => (16, addresses + 6 + body.len() as u64),
        17 => {
            if matches!(word(body, 2)?, 4789 | 8472) {
                let _ = body.get_mut(16..).and_then(ether);
            }
            if word(body, 6)? == 0 {
                return None;
            }
            (6, addresses + 17 + body.len() as u64)
        }
        _ => return None,
    };
    body.get_mut(at..at + 2)?.fill(0);
    let sum = checksum::finish_udp(checksum::sum(body) + pseudo);
    body.get_mut(at..at + 2)?.copy_from_slice(&sum.to_be_bytes());
    Some(())
}
