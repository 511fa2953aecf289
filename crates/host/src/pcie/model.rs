//! Frames per second that a slot can carry.
//!
//! Each frame costs bytes in both directions of the link: its own, those of descriptors, and the headers of the packets
//! that carry them. The direction that fills first sets the ceiling. Latency, the IOMMU, remote memory and transfers of
//! other devices behind the same switch lower what is reached, never raise it.

use serde::{Deserialize, Serialize};

use super::{link::Link, nic::Nic};

/// Bytes of a memory write beside its payload, with a 64-bit address and without ECRC: 2 framing, 2 sequence number, 16
/// header, 4 CRC.
const WRITE: f64 = 24.0;

/// Bytes of a memory read request, which has no payload.
const READ: f64 = 24.0;

/// Bytes of a completion beside its data: its header has 12 bytes.
const COMPLETION: f64 = 20.0;

/// Bytes of a tail pointer.
const POINTER: f64 = 4.0;

/// Bytes of the frame check sequence: the card adds and removes it, so that it does not cross the slot.
const FCS: u32 = 4;

/// A slot with a card in it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Slot {
    /// The link.
    pub link: Link,
    /// Maximum payload size, bytes: writes and completions are cut to it. Some root complexes cut completions to 64 bytes;
    /// that is not in the model.
    pub mps: u32,
    /// Maximum read request size, bytes.
    pub mrrs: u32,
}

/// Which transfers of a frame use the slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Crossing {
    /// Each frame is received and transmitted: both ports are on one card, or a port receives as much as it transmits.
    Both,
    /// Each frame is only received.
    Receive,
    /// Each frame is only transmitted.
    Transmit,
}

/// The direction that fills first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoundBy {
    /// From the card to the host.
    Up,
    /// From the host to the card.
    Down,
}

/// What a slot lets through.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// Frames per second.
    pub fps: f64,
    /// Bytes on the link from the card to the host, for each frame.
    pub up_bytes: f64,
    /// Bytes on the link from the host to the card, for each frame.
    pub down_bytes: f64,
    /// The direction that fills first.
    pub bound_by: BoundBy,
}

/// The ceiling for frames of `frame` bytes.
///
/// `frame` counts the frame check sequence, as 64 does in "64 byte frames". Published loads named "1514b" are read in the
/// same way: in the small-router measurements (ipng.ch, 2024-07-05) the bits per second of layer 2 divided by the packets
/// per second give 1510 bytes for "1514b" (9.77 Gb/s at 809 kpps) and 60 for "64b". Read as 1518, the ceiling is 0.3 % lower.
pub fn ceiling(slot: &Slot, nic: &Nic, crossing: Crossing, frame: u32) -> Ceiling {
    let (up, down) = (up_bytes(slot, nic, crossing, frame), down_bytes(slot, nic, crossing, frame));
    let bytes_per_s = slot.link.tlp_bits_per_s(slot.mps) / 8.0;
    Ceiling {
        fps: bytes_per_s / up.max(down).max(1.0),
        up_bytes: up,
        down_bytes: down,
        bound_by: if up >= down { BoundBy::Up } else { BoundBy::Down },
    }
}

/// Bytes on the link from the card to the host, for each frame of `frame` bytes with FCS.
pub fn up_bytes(slot: &Slot, nic: &Nic, crossing: Crossing, frame: u32) -> f64 {
    let data = frame.saturating_sub(FCS);
    let receive = || {
        writes(data, slot.mps)
            + batched(nic.rx_write_back, nic.rx_write_back_batch, |bytes| writes(bytes, slot.mps))
            + batched(nic.rx_descriptor, nic.rx_fetch, |bytes| reads(bytes, slot.mrrs))
    };
    let transmit = || {
        reads(data, slot.mrrs)
            + batched(nic.tx_descriptor, nic.tx_fetch, |bytes| reads(bytes, slot.mrrs))
            + writes(nic.tx_write_back, slot.mps) / at_least_one(nic.tx_write_back_every)
    };
    sum(crossing, receive, transmit)
}

/// Bytes on the link from the host to the card, for each frame of `frame` bytes with FCS.
pub fn down_bytes(slot: &Slot, nic: &Nic, crossing: Crossing, frame: u32) -> f64 {
    let tail = (POINTER + WRITE) / at_least_one(nic.tail_every);
    let receive = || batched(nic.rx_descriptor, nic.rx_fetch, |bytes| completions(bytes, slot.mps)) + tail;
    let transmit = || {
        completions(frame.saturating_sub(FCS), slot.mps)
            + batched(nic.tx_descriptor, nic.tx_fetch, |bytes| completions(bytes, slot.mps))
            + tail
    };
    sum(crossing, receive, transmit)
}

fn sum(crossing: Crossing, receive: impl Fn() -> f64, transmit: impl Fn() -> f64) -> f64 {
    match crossing {
        Crossing::Both => receive() + transmit(),
        Crossing::Receive => receive(),
        Crossing::Transmit => transmit(),
    }
}

/// The share of one frame in a transfer for `batch` frames of `bytes` each.
fn batched(bytes: u32, batch: u32, cost: impl Fn(u32) -> f64) -> f64 {
    cost(bytes.saturating_mul(batch.max(1))) / at_least_one(batch)
}

/// Bytes of writes that carry `bytes`.
fn writes(bytes: u32, mps: u32) -> f64 {
    f64::from(bytes) + WRITE * pieces(bytes, mps)
}

/// Bytes of requests that ask for `bytes`.
fn reads(bytes: u32, mrrs: u32) -> f64 {
    READ * pieces(bytes, mrrs)
}

/// Bytes of completions that carry `bytes`.
fn completions(bytes: u32, mps: u32) -> f64 {
    f64::from(bytes) + COMPLETION * pieces(bytes, mps)
}

fn pieces(bytes: u32, most: u32) -> f64 {
    f64::from(bytes.div_ceil(most.max(1)))
}

fn at_least_one(batch: u32) -> f64 {
    f64::from(batch.max(1))
}

#[cfg(test)]
mod tests {
    use super::{super::nic::NicKind, *};

    /// Millions of frames per second.
    fn mpps(gts: f64, lanes: u32, mps: u32, kind: NicKind, crossing: Crossing, frame: u32) -> f64 {
        let slot = Slot { link: Link::new(gts, lanes).unwrap(), mps, mrrs: 512 };
        ceiling(&slot, &kind.nic(), crossing, frame).fps / 1e6
    }

    #[track_caller]
    fn near(found: f64, wanted: f64) {
        assert!((found - wanted).abs() < 0.006, "{found}, wanted {wanted}");
    }

    #[test]
    fn the_bytes_of_a_small_frame_are_counted() {
        let slot = Slot { link: Link::new(5.0, 4).unwrap(), mps: 256, mrrs: 512 };
        let bytes = |kind: NicKind, crossing| {
            (up_bytes(&slot, &kind.nic(), crossing, 64), down_bytes(&slot, &kind.nic(), crossing, 64))
        };
        assert_eq!(bytes(NicKind::IntelVector, Crossing::Both), (135.0, 117.5));
        // Write of 60 and 24, a quarter of a write of 64 and 24, an eighth of a request of 24.
        assert_eq!(bytes(NicKind::IntelVector, Crossing::Receive), (84.0 + 22.0 + 3.0, 18.5 + 0.875));
        assert_eq!(bytes(NicKind::IntelVector, Crossing::Transmit), (24.0 + 0.75 + 1.25, 80.0 + 17.25 + 0.875));
        assert_eq!(bytes(NicKind::Unbatched, Crossing::Both).0, 212.75);
    }

    #[test]
    fn an_x520_in_a_slot_of_four_lanes_forwards_what_was_measured() {
        use NicKind::{IntelVector, Unbatched};
        // Measured through both ports: 13.4, 13.0 and 12.7 Mpps at 64 B, 1.07 at 1514 B. The payload size is not known.
        let of = |kind, frame| [128, 256, 512].map(|mps| mpps(5.0, 4, mps, kind, Crossing::Both, frame));
        for (found, wanted) in of(IntelVector, 64).into_iter().zip([12.865, 13.374, 13.620]) {
            near(found, wanted);
        }
        for (found, wanted) in of(IntelVector, 1514).into_iter().zip([0.916, 1.030, 1.094]) {
            near(found, wanted);
        }
        assert!(of(IntelVector, 1514)[1] < 1.07 && 1.07 < of(IntelVector, 1514)[2]);
        // Without batches it could not have forwarded this.
        for (found, wanted) in of(Unbatched, 64).into_iter().zip([8.163, 8.486, 8.643]) {
            near(found, wanted);
        }
        // 1518 instead of 1514 makes little difference.
        near(mpps(5.0, 4, 256, IntelVector, Crossing::Both, 1518), 1.027);
    }

    #[test]
    fn a_connectx_5_in_a_slot_of_four_lanes_forwards_what_was_measured() {
        // Measured both ways: 2.06 Mpps at 1514 B, 15.5 at 64 B, where the processor was the limit.
        near(mpps(8.0, 4, 256, NicKind::Mlx5, Crossing::Both, 1514), 2.084);
        near(mpps(8.0, 4, 256, NicKind::IntelVector, Crossing::Both, 1514), 2.073);
        near(mpps(8.0, 4, 256, NicKind::Mlx5Uncompressed, Crossing::Both, 1514), 1.996);
        assert!(mpps(8.0, 4, 256, NicKind::Mlx5Uncompressed, Crossing::Both, 64) > 15.5);
    }

    #[test]
    fn an_i226_on_one_lane_forwards_what_was_measured_if_it_writes_back_one_at_a_time() {
        // Measured in each direction of a port at 64 B: 2.53 Mpps both ways, 3.28 one way.
        near(mpps(5.0, 1, 256, NicKind::IntelScalar, Crossing::Both, 64), 2.511);
        near(mpps(5.0, 1, 512, NicKind::IntelScalar, Crossing::Both, 64), 2.532);
        near(mpps(5.0, 1, 256, NicKind::IntelVector, Crossing::Both, 64), 3.567);
        near(mpps(5.0, 1, 512, NicKind::Unbatched, Crossing::Receive, 64), 3.281);
    }

    #[test]
    fn transmitting_large_frames_is_bound_by_the_way_down() {
        let slot = Slot { link: Link::new(8.0, 8).unwrap(), mps: 256, mrrs: 512 };
        let of = |crossing| ceiling(&slot, &NicKind::IntelVector.nic(), crossing, 1518).bound_by;
        assert_eq!((of(Crossing::Transmit), of(Crossing::Receive)), (BoundBy::Down, BoundBy::Up));
    }

    #[test]
    fn odd_numbers_give_a_number() {
        let zero = Nic {
            rx_descriptor: 0,
            rx_fetch: 0,
            rx_write_back: 0,
            rx_write_back_batch: 0,
            tx_descriptor: 0,
            tx_fetch: 0,
            tx_write_back: 0,
            tx_write_back_every: 0,
            tail_every: 0,
        };
        let full = Nic { rx_descriptor: u32::MAX, rx_fetch: u32::MAX, ..zero };
        for link in [Link { gts: 8.0, lanes: 0 }, Link { gts: 8.0, lanes: u32::MAX }] {
            for (mps, nic, frame) in [(0, zero, 0), (0, full, u32::MAX), (u32::MAX, full, 3)] {
                let slot = Slot { link, mps, mrrs: mps };
                assert!(ceiling(&slot, &nic, Crossing::Both, frame).fps.is_finite());
            }
        }
    }
}
