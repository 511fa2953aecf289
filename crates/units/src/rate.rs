//! The arithmetic that every table must reproduce (methods §8). Of a mix, `F` is the average.

use crate::{Fps, Frames, LinkSpeed, FCS_BYTES};

/// Layer-2 bit/s: `F * 8 * R`, the FCS counted.
pub fn l2_bps(rate: Fps, frames: impl Into<Frames>) -> f64 {
    rate.get() * frames.into().average_bytes() * 8.0
}

/// Layer-2 bit/s as software and some testers count it: `(F - 4) * 8 * R`, the FCS left out.
pub fn l2_bps_without_fcs(rate: Fps, frames: impl Into<Frames>) -> f64 {
    rate.get() * (frames.into().average_bytes() - f64::from(FCS_BYTES)) * 8.0
}

/// Layer-1 bit/s: `(F + 20) * 8 * R`.
pub fn l1_bps(rate: Fps, frames: impl Into<Frames>) -> f64 {
    rate.get() * frames.into().average_on_wire() * 8.0
}

/// Percent of line rate: layer-1 bits over the link's bits.
pub fn line_percent(rate: Fps, frames: impl Into<Frames>, link: LinkSpeed) -> f64 {
    l1_bps(rate, frames) / link.bps() as f64 * 100.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FrameSize;

    #[test]
    fn the_two_vm_document_is_reproduced() {
        // Table 3, Gen10: pps, Mbps (layer 1), percent of two 25G ports.
        for (size, pps, mbps, percent) in
            [(64, 5_837_092.0, 3922, 7.85), (128, 5_333_702.0, 6315, 12.63), (1518, 2_374_471.0, 29_215, 58.43)]
        {
            let (size, rate) = (FrameSize::new(size).unwrap(), Fps::new(pps).unwrap());
            assert_eq!((l1_bps(rate, size) / 1e6) as u64, mbps);
            let both = LinkSpeed::new(50_000_000_000).unwrap();
            assert!((line_percent(rate, size, both) - percent).abs() < 0.006);
        }
    }

    #[test]
    fn layer_two_leaves_out_the_wire() {
        let (rate, size) = (Fps::new(3.28e6).unwrap(), FrameSize::MIN);
        // The small-router document, "L1 vs L2": 1.679 Gbit/s and 2.204 Gbit/s, 88.1 % of 2.5G.
        assert_eq!((l2_bps(rate, size) / 1e6).round(), 1679.0);
        assert_eq!((l1_bps(rate, size) / 1e6).round(), 2204.0);
        assert!((line_percent(rate, size, "2.5G".parse().unwrap()) - 88.16).abs() < 0.01);
    }
}
