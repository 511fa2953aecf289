//! The tests that a plan can ask for.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A test of a standard, run at each frame size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Test {
    /// RFC 2544 §26.1, or what `search.method` says.
    Throughput,
    /// RFC 2544 §26.2, in short: one trial at the throughput that the search found.
    Latency,
    /// RFC 2544 §26.3.
    FrameLoss,
    /// RFC 9004, which updates RFC 2544 §26.4.
    BackToBack,
    /// RFC 2544 §26.5.
    Recovery,
    /// RFC 2544 §26.6, RFC 6201.
    Reset,
    /// RFC 2544 §21.
    Bursty,
    /// RFC 2889 §5.6: FRMOL and maximum forwarding rate.
    ForwardingRate,
    /// RFC 2544 §26.2 at shares of the throughput, with the delay of the frame of the tagged minute.
    LatencyProfile,
    /// RFC 5481: PDV and IPDV, window by window.
    Pdv,
    /// A load for hours, with a loss budget and the drift.
    Soak,
    /// RFC 2889 §5.7, between three ports.
    AddressCaching,
    /// RFC 2889 §5.8, between three ports.
    AddressLearning,
}

impl Test {
    /// Every test, in the order in which `--help` and errors name them.
    pub const ALL: [Self; 13] = [
        Self::Throughput,
        Self::Latency,
        Self::FrameLoss,
        Self::BackToBack,
        Self::Recovery,
        Self::Reset,
        Self::Bursty,
        Self::ForwardingRate,
        Self::LatencyProfile,
        Self::Pdv,
        Self::Soak,
        Self::AddressCaching,
        Self::AddressLearning,
    ];

    /// As a plan writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Latency => "latency",
            Self::FrameLoss => "frame-loss",
            Self::BackToBack => "back-to-back",
            Self::Recovery => "recovery",
            Self::Reset => "reset",
            Self::Bursty => "bursty",
            Self::ForwardingRate => "forwarding-rate",
            Self::LatencyProfile => "latency-profile",
            Self::Pdv => "pdv",
            Self::Soak => "soak",
            Self::AddressCaching => "address-caching",
            Self::AddressLearning => "address-learning",
        }
    }

    /// Whether it is a search or trial of the throughput rather than a procedure of its own.
    pub fn is_search(self) -> bool {
        matches!(self, Self::Throughput | Self::Latency)
    }

    /// Whether it is made of rounds between three ports.
    pub fn is_of_addresses(self) -> bool {
        matches!(self, Self::AddressCaching | Self::AddressLearning)
    }

    /// Whether a mix of sizes makes no sense of it: bursts at line rate are of frames that are alike (RFC 9004, RFC 2544
    /// §21), reset goes by the smallest size (RFC 2544 §26.6), and so do address tests.
    pub fn is_of_one_size(self) -> bool {
        self.is_of_addresses() || matches!(self, Self::BackToBack | Self::Bursty | Self::Reset)
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Test {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|t| t.name() == text.trim());
        named.ok_or_else(|| {
            let all: Vec<_> = Self::ALL.iter().map(|t| t.name()).collect();
            format!("{text:?} is not a test: must be {}", all.join(", "))
        })
    }
}
