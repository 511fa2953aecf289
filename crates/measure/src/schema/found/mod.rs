//! What each test besides the throughput found: its figures.

pub mod addresses;
mod back_to_back;
mod bursty;
mod forwarding_rate;
mod frame_loss;
mod latency_profile;
mod pdv;
mod recovery;
mod reset;
mod soak;
mod spread;

use serde::{Deserialize, Serialize};

pub use addresses::Addresses;
pub use back_to_back::BackToBack;
pub use bursty::{BurstPoint, Bursty};
pub use forwarding_rate::{ForwardingPoint, ForwardingRate};
pub use frame_loss::{FrameLoss, LossPoint, NoPoint};
pub use latency_profile::{LatencyPoint, LatencyProfile};
pub use pdv::{Pdv, PdvDirection, WindowSpread};
pub use recovery::{Recovery, RecoveryTrial};
pub use reset::{Reset, ResetEvent, ResetTrial};
pub use soak::{Segment, Soak};
pub use spread::{Spread, Trend};

/// What a test found. Loads and rates are per direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Found {
    /// The test was not run.
    Nothing,
    /// RFC 2544 §26.3.
    FrameLoss(FrameLoss),
    /// RFC 9004.
    BackToBack(BackToBack),
    /// RFC 2544 §26.5.
    Recovery(Recovery),
    /// RFC 6201.
    Reset(Reset),
    /// RFC 2544 §21.
    Bursty(Bursty),
    /// RFC 2889 §5.6.
    ForwardingRate(ForwardingRate),
    /// RFC 2544 §26.2.
    LatencyProfile(LatencyProfile),
    /// RFC 5481.
    Pdv(Pdv),
    /// A load for hours.
    Soak(Soak),
    /// RFC 2889 §5.7, §5.8.
    Addresses(Addresses),
}
