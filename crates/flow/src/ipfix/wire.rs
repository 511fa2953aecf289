//! The forms that all messages share, of both versions.

use super::element::Element;

/// A version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Version {
    /// IPFIX (RFC 7011), version 10.
    #[default]
    Ipfix,
    /// NetFlow version 9 (RFC 3954).
    NetFlow9,
}

/// A field specifier (RFC 7011 3.2).
pub(super) fn specify(element: Element, length: u16, out: &mut Vec<u8>) {
    let bit = u16::from(element.enterprise != 0) << 15;
    out.extend((element.id | bit).to_be_bytes());
    out.extend(length.to_be_bytes());
    if element.enterprise != 0 {
        out.extend(element.enterprise.to_be_bytes());
    }
}

/// Writes a whole set.
pub(super) fn set(id: u16, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend(id.to_be_bytes());
    out.extend([0; 2]);
    body(out);
    fill_length(out, start);
}

/// Writes the length into the set that begins at `start`.
pub(super) fn fill_length(out: &mut [u8], start: usize) {
    fill(out, start, out.len() - start);
}

/// Writes a length, or a number of records, after the two bytes at `start`: sets and messages have it there.
pub(super) fn fill(out: &mut [u8], start: usize, n: usize) {
    let n = u16::try_from(n).unwrap_or(u16::MAX).to_be_bytes();
    if let Some(place) = out.get_mut(start + 2..start + 4) {
        place.copy_from_slice(&n);
    }
}

pub(super) fn count(n: usize, out: &mut Vec<u8>) {
    out.extend(u16::try_from(n).unwrap_or(u16::MAX).to_be_bytes());
}

/// To a multiple of four bytes (RFC 3954 5.2); messages and sets begin at one.
pub(super) fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}
