//! How a network card and its driver move descriptors.

use std::str::FromStr;

use serde::{de::value::StrDeserializer, Deserialize, Serialize};

/// What a card and its driver transfer beside the frames. Sizes are in bytes, batches in frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nic {
    /// Receive descriptor that the card fetches.
    pub rx_descriptor: u32,
    /// Receive descriptors that one request fetches (`d`).
    pub rx_fetch: u32,
    /// Receive completion that the card writes.
    pub rx_write_back: u32,
    /// Receive completions that one write carries (`w`).
    pub rx_write_back_batch: u32,
    /// Transmit descriptor that the card fetches.
    pub tx_descriptor: u32,
    /// Transmit descriptors that one request fetches (`e`).
    pub tx_fetch: u32,
    /// Transmit completion that the card writes.
    pub tx_write_back: u32,
    /// Frames for each transmit completion (`r`).
    pub tx_write_back_every: u32,
    /// Frames for each write of a tail pointer by the driver.
    pub tail_every: u32,
}

/// Cards and drivers that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NicKind {
    /// Intel with a vector driver: 16 byte descriptors, receive descriptors fetched by 8 and written back by 4, transmit
    /// descriptors fetched by 32 with a completion every 32.
    IntelVector,
    /// Intel where descriptors are fetched in batches and each is written back alone. It fits what was
    /// measured of the i226 both ways (2.53 Mpps); one way it allows 3.8 Mpps where 3.28 were measured.
    IntelScalar,
    /// Intel where in addition each receive descriptor is fetched alone. Transmit descriptors are still fetched by 32.
    Unbatched,
    /// NVIDIA mlx5 with compressed receive completions, the default of DPDK: 8 bytes a frame, written in blocks of 8. The
    /// uncompressed completion in front of a session is not counted. A completion of 64 bytes ends every 32 transmitted
    /// frames (`MLX5_TX_COMP_THRESH`). Frames are not copied into the send queue.
    Mlx5,
    /// NVIDIA mlx5 with a receive completion of 64 bytes for each frame (`rxq_cqe_comp_en=0`).
    Mlx5Uncompressed,
}

impl NicKind {
    /// Every kind.
    pub const ALL: [Self; 5] =
        [Self::IntelVector, Self::IntelScalar, Self::Unbatched, Self::Mlx5, Self::Mlx5Uncompressed];

    /// The kind of a device by its vendor and device id, `8086:10fb`; `None` if its descriptors are not known here.
    pub fn of(id: &str) -> Option<Self> {
        // Intel's I225 and I226 (`drivers/net/intel/igc` of DPDK, which has no vector paths).
        const IGC: [&str; 16] = [
            "15f2", "15f3", "15f8", "15f7", "3100", "0d9f", "3101", "3102", "15fd", "125b", "125c", "125d", "125e",
            "125f", "5502", "5503",
        ];
        match id.split_once(':')? {
            ("8086", device) if IGC.contains(&device) => Some(Self::IntelScalar),
            ("8086", _) => Some(Self::IntelVector),
            ("15b3", _) => Some(Self::Mlx5),
            _ => None,
        }
    }

    /// What it transfers.
    pub fn nic(self) -> Nic {
        let intel = Nic {
            rx_descriptor: 16,
            rx_fetch: 8,
            rx_write_back: 16,
            rx_write_back_batch: 4,
            tx_descriptor: 16,
            tx_fetch: 32,
            tx_write_back: 16,
            tx_write_back_every: 32,
            tail_every: 32,
        };
        match self {
            Self::IntelVector => intel,
            Self::IntelScalar => Nic { rx_write_back_batch: 1, tx_write_back_every: 1, ..intel },
            Self::Unbatched => Nic { rx_fetch: 1, rx_write_back_batch: 1, tx_write_back_every: 1, ..intel },
            Self::Mlx5 => Nic { rx_write_back: 8, rx_write_back_batch: 8, tx_write_back: 64, ..intel },
            Self::Mlx5Uncompressed => Nic { rx_write_back: 64, rx_write_back_batch: 1, tx_write_back: 64, ..intel },
        }
    }
}

impl FromStr for NicKind {
    type Err = serde::de::value::Error;

    /// Reads the name that JSON has: `mlx5`.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::deserialize(StrDeserializer::new(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_known_by_vendor() {
        for (id, wanted) in [
            ("8086:10fb", Some(NicKind::IntelVector)),
            ("8086:125c", Some(NicKind::IntelScalar)),
            ("15b3:1017", Some(NicKind::Mlx5)),
            ("1af4:1041", None),
            ("8086", None),
            ("", None),
        ] {
            assert_eq!(NicKind::of(id), wanted, "{id}");
        }
        let names = NicKind::ALL.map(|kind| serde_json::to_string(&kind).unwrap());
        assert_eq!(names[0], "\"intel-vector\"");
        for (kind, name) in NicKind::ALL.iter().zip(&names) {
            assert_eq!(name.trim_matches('"').parse(), Ok(*kind));
        }
        assert!("intel".parse::<NicKind>().unwrap_err().to_string().contains("`mlx5`"));
    }
}
