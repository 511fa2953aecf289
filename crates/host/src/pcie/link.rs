//! The speed and width of a link, and the bits per second that it leaves for packets of the transaction layer.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Speeds of a lane, GT/s: generations 1 to 6.
const SPEEDS: [f64; 6] = [2.5, 5.0, 8.0, 16.0, 32.0, 64.0];

/// Widths of a link, lanes.
const WIDTHS: [u32; 7] = [1, 2, 4, 8, 12, 16, 32];

/// Bytes of an acknowledgement or of a flow control update on the link: 2 framing, 4 content, 2 CRC.
const DLLP_BYTES: f64 = 8.0;

/// A SKIP ordered set of 4 symbols follows every 1538 symbols.
const SKIP_SHARE: f64 = 4.0 / 1538.0;

/// Bytes that a transaction layer packet has beside its payload, as the specification counts them for its latency limits.
const TLP_OVERHEAD: f64 = 28.0;

/// A link as it is, or as one of its ends can be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Speed of a lane, GT/s: 2.5, 5, 8, 16, 32 or 64.
    pub gts: f64,
    /// Width, lanes.
    pub lanes: u32,
}

impl Link {
    /// A link; `None` if the specification has no such speed or width.
    pub fn new(gts: f64, lanes: u32) -> Option<Self> {
        (SPEEDS.contains(&gts) && WIDTHS.contains(&lanes)).then_some(Self { gts, lanes })
    }

    /// Reads sysfs: `8.0 GT/s PCIe` of `current_link_speed` and `4` of `current_link_width`. `None` for `Unknown`, for a
    /// width of 0 (no link) and for anything else that is not a link.
    pub fn parse(speed: &str, width: &str) -> Option<Self> {
        let speed = speed.trim();
        let gts = speed.strip_suffix(" PCIe").unwrap_or(speed).strip_suffix(" GT/s")?.parse().ok()?;
        Self::new(gts, width.trim().trim_start_matches('x').parse().ok()?)
    }

    /// Generation of the specification that introduced the speed, from 1.
    pub fn generation(self) -> u32 {
        1 + SPEEDS.iter().filter(|speed| **speed < self.gts).count() as u32
    }

    /// Bits per second in each direction after the line code: 8b/10b up to 5 GT/s, 128b/130b up to 32 GT/s, and the 242 of
    /// 256 bytes of a flit that carry packets at 64 GT/s.
    pub fn raw_bits_per_s(self) -> f64 {
        let code = match self.gts {
            gts if gts < 8.0 => 8.0 / 10.0,
            gts if gts < 64.0 => 128.0 / 130.0,
            _ => 242.0 / 256.0,
        };
        self.gts * 1e9 * f64::from(self.lanes) * code
    }

    /// Bits per second in each direction that are left for transaction layer packets, their own framing included, with a
    /// maximum payload of `mps` bytes. Acknowledgements and flow control updates are sent as often as the specification
    /// recommends.
    ///
    /// The 64 GT/s figure uses the limits of 32 GT/s and is an estimate: a link in flit mode does not send these packets.
    pub fn tlp_bits_per_s(self, mps: u32) -> f64 {
        let limit = self.latency_limit(mps);
        (self.raw_bits_per_s() * (1.0 - DLLP_BYTES / limit - DLLP_BYTES / limit - SKIP_SHARE)).max(0.0)
    }

    /// Symbol times between acknowledgements, which is also the interval between flow control updates.
    ///
    /// PCI Express Base Specification 5.0, tables 3-7 to 3-9 (AckLimit) and 2-46 to 2-48 (UpdateFC), are filled by one
    /// formula: `(MPS + 28) x factor / lanes + internal delay`, rounded down. pcie-bench/pcie-model
    /// (`model/pcie.py`, 40703cf) lists the same numbers except for two cells of x32 with transposed or wrong digits.
    fn latency_limit(self, mps: u32) -> f64 {
        let small = mps <= 256;
        let factor = match (self.lanes, small) {
            (0..=4, true) => 1.4,
            (5..=8, true) => 2.5,
            (_, true) => 3.0,
            (0..=8, false) => 1.0,
            (_, false) => 2.0,
        };
        let delay = match self.gts {
            gts if gts < 5.0 => 19.0,
            gts if gts < 8.0 => 70.0,
            _ => 115.0,
        };
        ((f64::from(mps) + TLP_OVERHEAD) * factor / f64::from(self.lanes.max(1)) + delay).floor()
    }

    /// What two ends with these limits agree on: the lower speed and the smaller width.
    pub fn within(self, other: Self) -> Self {
        Self { gts: self.gts.min(other.gts), lanes: self.lanes.min(other.lanes) }
    }

    /// Whether it is slower or narrower than `other`.
    pub fn is_below(self, other: Self) -> bool {
        self.gts < other.gts || self.lanes < other.lanes
    }
}

impl FromStr for Link {
    type Err = String;

    /// Reads what a person writes: `5x4`, or as it is printed: `5 GT/s x4`.
    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('x').map(|(speed, lanes)| (speed.trim().trim_end_matches("GT/s").trim(), lanes));
        parts.and_then(|(speed, lanes)| Self::new(speed.parse().ok()?, lanes.parse().ok()?)).ok_or_else(|| {
            "must be GT/s and lanes, such as 5x4: 2.5, 5, 8, 16, 32 or 64; 1, 2, 4, 8, 12, 16 or 32".into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_written_as_speed_and_lanes() {
        for text in ["5x4", "5.0x4", "5 GT/s x4", "5GT/sx4"] {
            assert_eq!(text.parse(), Ok(link(5.0, 4)), "{text}");
        }
        assert_eq!("2.5x1".parse(), Ok(link(2.5, 1)));
        for wrong in ["", "x", "5", "x4", "5x", "5x3", "6x4", "5x4x4", "-5x4", "nanx4", "5x 4", "GT/sx4"] {
            assert!(wrong.parse::<Link>().is_err(), "{wrong}");
        }
    }

    fn link(gts: f64, lanes: u32) -> Link {
        Link::new(gts, lanes).unwrap()
    }

    #[test]
    fn sysfs_speeds_and_widths_are_read() {
        for (speed, width, wanted) in [
            ("8.0 GT/s PCIe", "4", Some((8.0, 4))),
            ("5.0 GT/s", "8", Some((5.0, 8))),
            ("2.5 GT/s PCIe\n", "1\n", Some((2.5, 1))),
            ("64.0 GT/s PCIe", "16", Some((64.0, 16))),
            ("8 GT/s", "x12", Some((8.0, 12))),
            ("Unknown", "4", None),
            ("Unknown speed", "4", None),
            ("8.0 GT/s PCIe", "0", None),
            ("8.0 GT/s PCIe", "255", None),
            ("8.0 GT/s PCIe", "-4", None),
            ("8.0 GB/s", "4", None),
            ("8.0", "4", None),
            ("8.0 GT/s PCIe or so", "4", None),
            ("nan GT/s", "4", None),
            ("inf GT/s", "4", None),
            ("7.0 GT/s", "4", None),
            ("", "", None),
        ] {
            let read = Link::parse(speed, width).map(|link| (link.gts, link.lanes));
            assert_eq!(read, wanted, "{speed:?} {width:?}");
        }
    }

    #[test]
    fn rates_are_those_of_the_published_model() {
        // Gb/s: raw, and for the transaction layer with a payload of 128, 256 and 512 bytes (pcie-bench/pcie-model).
        for (gts, lanes, raw, tlp) in [
            (5.0, 1, 4.00, [3.77, 3.85, 3.88]),
            (5.0, 4, 16.00, [13.89, 14.44, 14.71]),
            (5.0, 8, 32.00, [27.58, 28.68, 28.18]),
            (8.0, 4, 31.51, [28.44, 29.07, 29.41]),
            (8.0, 8, 63.02, [56.67, 57.88, 57.31]),
            (8.0, 16, 126.03, [111.70, 113.70, 114.62]),
            (16.0, 8, 126.03, [113.33, 115.77, 114.62]),
            (16.0, 16, 252.06, [223.40, 227.40, 229.25]),
        ] {
            let link = link(gts, lanes);
            let near = |rate: f64, wanted: f64| assert!((rate / 1e9 - wanted).abs() < 0.006, "{link:?}: {rate}");
            near(link.raw_bits_per_s(), raw);
            for (mps, wanted) in [128, 256, 512].into_iter().zip(tlp) {
                near(link.tlp_bits_per_s(mps), wanted);
            }
        }
    }

    #[test]
    fn latency_limits_are_those_of_the_specification() {
        // Symbol times for a payload of 128, 256, 512, 1024, 2048 and 4096 bytes.
        for (gts, lanes, wanted) in [
            (2.5, 1, [237, 416, 559, 1071, 2095, 4143]),
            (2.5, 2, [128, 217, 289, 545, 1057, 2081]),
            (2.5, 4, [73, 118, 154, 282, 538, 1050]),
            (2.5, 8, [67, 107, 86, 150, 278, 534]),
            (2.5, 16, [48, 72, 86, 150, 278, 534]),
            (2.5, 32, [33, 45, 52, 84, 148, 276]),
            (5.0, 1, [288, 467, 610, 1122, 2146, 4194]),
            (5.0, 4, [124, 169, 205, 333, 589, 1101]),
            (5.0, 8, [118, 158, 137, 201, 329, 585]),
            (8.0, 1, [333, 512, 655, 1167, 2191, 4239]),
            (16.0, 4, [169, 214, 250, 378, 634, 1146]),
            (32.0, 8, [163, 203, 182, 246, 374, 630]),
            (8.0, 16, [144, 168, 182, 246, 374, 630]),
            (8.0, 32, [129, 141, 148, 180, 244, 372]),
        ] {
            let limits = [128, 256, 512, 1024, 2048, 4096].map(|mps| link(gts, lanes).latency_limit(mps) as u32);
            assert_eq!(limits, wanted, "{gts} GT/s x{lanes}");
        }
    }

    #[test]
    fn links_are_compared_by_speed_and_width() {
        let (narrow, slow) = (link(8.0, 4), link(5.0, 8));
        assert_eq!(narrow.within(slow), link(5.0, 4));
        assert!(narrow.is_below(slow) && slow.is_below(narrow) && !narrow.is_below(narrow));
        assert_eq!(SPEEDS.map(|gts| link(gts, 1).generation()), [1, 2, 3, 4, 5, 6]);
        // Fields are public: a link that does not exist has a rate all the same.
        assert_eq!(Link { gts: 8.0, lanes: 0 }.tlp_bits_per_s(0), 0.0);
    }
}
