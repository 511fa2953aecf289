//! How raw frames are measured.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What is timed when a frame is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TxMode {
    /// The frame is made anew: memory for it, its bytes, and handing it over.
    #[default]
    Frame,
    /// The frame is ready; handing it over is timed only.
    Preloaded,
}

/// What is timed when a frame is received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RxMode {
    /// Its bytes are copied out.
    #[default]
    Copy,
    /// It is looked at where it lies.
    InPlace,
}

/// How it is measured.
#[derive(Debug, Clone)]
pub struct RawOptions {
    /// What is timed when a frame is sent.
    pub tx: TxMode,
    /// What is timed when a frame is received.
    pub rx: RxMode,
    /// Frames before the times count.
    pub warm_ups: u64,
    /// Times after which it ends,
    pub samples: u64,
    /// at the latest after this, and
    pub time: Duration,
    /// before that when median and 99th percentile are known to this share.
    pub precision: Option<f64>,
    /// Times that are kept one by one, the first ones.
    pub keep: usize,
    /// Further frames a second that take the same way and are not timed.
    pub background: Option<f64>,
}

impl Default for RawOptions {
    fn default() -> Self {
        Self {
            tx: TxMode::default(),
            rx: RxMode::default(),
            warm_ups: 100_000,
            samples: 1_000_000,
            time: Duration::from_secs(10),
            precision: None,
            keep: 0,
            background: None,
        }
    }
}
