//! Figures that documents derive from rates: gains, switching operations, cycles and buses (methods §8).

use crate::Fps;

/// How much higher a figure is than an older one, percent; `None` where there is no older one to be higher than.
///
/// The two-VM document's improvement from generation to generation (tables 3 and 4).
pub fn gain_percent(new: f64, old: f64) -> Option<f64> {
    (old > 0.0 && new.is_finite()).then(|| (new / old - 1.0) * 100.0)
}

/// A part of a whole, percent; `None` of nothing.
pub fn share_percent(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0 && part.is_finite()).then(|| part / whole * 100.0)
}

/// Frames/s that a switch handles when each frame passes it so many times (ONP report §5.2): 1 in PHY-OVS-PHY, 2 in
/// PHY-VM-PHY, 3 in PHY-VM-VM-PHY. It compares topologies where a line rate does not.
pub fn switching_rate(throughput: Fps, operations: u32) -> Fps {
    Fps::from_raw(throughput.get() * f64::from(operations))
}

/// Cycles that each frame took; `None` when there were none.
pub fn cycles_per_frame(cycles: f64, frames: f64) -> Option<f64> {
    (frames > 0.0 && cycles.is_finite()).then(|| cycles / frames)
}

/// Cycles/s of a core that so many cycles a frame take at this rate: to find the ceiling of a core, or check a counter.
pub fn core_clocks(rate: Fps, cycles_per_frame: f64) -> f64 {
    rate.get() * cycles_per_frame
}

/// Bit/s of a PCIe link in each direction after line coding: 8b/10b up to 5 GT/s, 128b/130b from 8 GT/s. Headers of
/// transactions and descriptors still come off that, and a frame forwarded through one slot crosses it twice.
pub fn pcie_bps(gigatransfers: f64, lanes: u32) -> f64 {
    let coding = if gigatransfers > 5.0 { 128.0 / 130.0 } else { 8.0 / 10.0 };
    gigatransfers * 1e9 * f64::from(lanes) * coding
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_divided_by_nothing() {
        assert_eq!((gain_percent(1.0, 0.0), share_percent(1.0, 0.0), cycles_per_frame(1.0, 0.0)), (None, None, None));
        assert_eq!(gain_percent(f64::NAN, 1.0), None);
        assert_eq!((gain_percent(3.0, 2.0), gain_percent(1.0, 2.0)), (Some(50.0), Some(-50.0)));
    }

    #[test]
    fn coding_changes_with_the_generation() {
        assert_eq!((pcie_bps(2.5, 1), pcie_bps(5.0, 4)), (2e9, 16e9));
        assert_eq!(pcie_bps(8.0, 4).round(), 31_507_692_308.0);
    }
}
