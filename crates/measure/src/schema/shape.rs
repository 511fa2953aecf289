//! How the frames of a trial are spread over its time, and what is recorded besides counts and delays.

use serde::{Deserialize, Serialize};
use units::Fps;

use super::delay::IpdvSummary;

/// How the frames of a trial are spread over its duration.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadShape {
    /// Evenly.
    #[default]
    Steady,
    /// One burst of exactly so many frames at the load, which is the rate back to back (RFC 2544 §26.4, RFC 9004 §6.3).
    /// The duration is that of the burst.
    Burst {
        /// Frames.
        frames: u64,
    },
    /// Bursts of this many frames back to back, spaced so that they make up the load (RFC 2544 §21).
    Bursts {
        /// Frames of one burst.
        frames: u32,
        /// Frames/s within a burst.
        burst_fps: Fps,
    },
    /// The load for so long, then another for the rest of the duration (RFC 2544 §26.5).
    Step {
        /// Seconds at the load.
        step_s: f64,
        /// Load from then on, frames/s per direction.
        then_fps: Fps,
    },
    /// A capture, byte for byte. The load and the frame size are its means.
    Replay {
        /// Frames sent, over all passes.
        frames: u64,
        /// Frames of the capture.
        capture_frames: u64,
        /// Their bytes, FCS counted.
        capture_bytes: u64,
        /// So many times as fast as captured; `None`: evenly, at the load.
        #[serde(default)]
        speed: Option<f64>,
        /// The longest time between two frames as sent, seconds, when that was limited.
        #[serde(default)]
        max_gap_s: Option<f64>,
    },
}

impl LoadShape {
    /// Whether frames leave evenly.
    pub fn is_steady(&self) -> bool {
        *self == Self::Steady
    }

    /// Frames that it asks for at this load over so many seconds. Only whole bursts are sent, at least one.
    pub fn frames(&self, load: Fps, duration_s: f64) -> u64 {
        let evenly = |load: Fps, seconds: f64| (load.get() * seconds.max(0.0)).round() as u64;
        match *self {
            Self::Steady => evenly(load, duration_s),
            Self::Burst { frames } | Self::Replay { frames, .. } => frames,
            Self::Bursts { frames, .. } => {
                let frames = u64::from(frames);
                evenly(load, duration_s).checked_div(frames).map_or(0, |bursts| bursts.max(1).saturating_mul(frames))
            }
            Self::Step { step_s, then_fps } => {
                let step_s = step_s.clamp(0.0, duration_s.max(0.0));
                evenly(load, step_s).saturating_add(evenly(then_fps, duration_s - step_s))
            }
        }
    }

    /// The highest rate at which it sends; of a replay the mean.
    pub fn peak(&self, load: Fps) -> Fps {
        match *self {
            Self::Steady | Self::Burst { .. } | Self::Replay { .. } => load,
            Self::Bursts { burst_fps: other, .. } | Self::Step { then_fps: other, .. } => {
                if other > load {
                    other
                } else {
                    load
                }
            }
        }
    }
}

/// Most windows of a trial: one a second for a day. Where more are asked for they are made longer.
pub const MAX_WINDOWS: u32 = 86_400;
/// Shortest window, seconds: putting one away takes the tester a few microseconds.
pub const MIN_WINDOW_S: f64 = 0.001;

/// The windows of a trial: how long one is, in seconds, and how many there are; the last may be shorter. `None` when
/// they mean nothing.
pub fn windows(window_s: f64, duration_s: f64) -> Option<(f64, u32)> {
    let usable = window_s > 0.0 && duration_s > 0.0 && window_s.is_finite() && duration_s.is_finite();
    let width = window_s.max(MIN_WINDOW_S).max(duration_s / f64::from(MAX_WINDOWS));
    // A remainder from rounding does not make a window.
    usable.then(|| (width, ((duration_s / width - 1e-6).ceil() as u32).clamp(1, MAX_WINDOWS)))
}

/// The last frame of a direction that was lost: sent and not received, or refused by the port.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LastLost {
    /// Its sequence number, from 0: how many frames were sent before it.
    pub sequence: u64,
    /// When it left, seconds from the start of sending: no later than this, by the departure of the frame behind it, or
    /// of the last frame sent when nothing came behind it. When it was refused, if it was.
    pub departed_s: f64,
}

/// The longest run of lost frames, for RFC 6201: those that did not come and those that the port refused meanwhile. Of
/// a run that was only refused, departures stand for arrivals.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Outage {
    /// Frames lost in it.
    pub lost: u64,
    /// Arrival of the last frame before it, seconds from the start of sending; 0 when none came.
    pub from_s: f64,
    /// Arrival of the first frame behind it; `None` when none came.
    pub to_s: Option<f64>,
}

/// What was counted of a replay beside frames. Its frames carry no stamp, so that nothing is known of one by one: what
/// came back is counted, whatever it is, and no delay is measured.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ReplayCounts {
    /// Layer-2 bytes of the frames sent, FCS counted.
    pub sent_bytes: u64,
    /// Frames that came back beyond the number sent: copies, or somebody else's.
    pub extra: u64,
    /// Frames offered to the port more than [`LATE_DEPARTURE_NS`] after they were due.
    pub late_departures: u64,
    /// How much later than due a frame was offered to the port, mean, nanoseconds.
    pub lateness_mean_ns: f64,
    /// 99th percentile of it.
    pub lateness_p99_ns: u64,
    /// The most.
    pub lateness_max_ns: u64,
}

/// From this on a frame of a replay leaves late: 100 us, which is what is made up for in other loads.
pub const LATE_DEPARTURE_NS: u64 = 100_000;

/// One-way delay within a window of a trial (RFC 5481: its minimum is that of the same interval). Nanoseconds.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct WindowSummary {
    /// Beginning, seconds from the start of sending.
    pub from_s: f64,
    /// End.
    pub to_s: f64,
    /// Frames received in it.
    pub received: u64,
    /// Frames that frames received in it showed to be missing, those left out that came later. The last window has those
    /// behind the last frame received, too.
    pub missing: u64,
    /// Smallest delay.
    pub min_ns: u64,
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Largest delay.
    pub max_ns: u64,
    /// PDV p99.9 (RFC 5481 §4.2).
    pub pdv_p99_9_ns: u64,
    /// IPDV (RFC 5481 §4.1).
    pub ipdv: Option<IpdvSummary>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fps(rate: f64) -> Fps {
        Fps::new(rate).unwrap()
    }

    #[test]
    fn each_shape_asks_for_its_frames() {
        let bursts = |frames| LoadShape::Bursts { frames, burst_fps: fps(1e7) };
        let step = |step_s, then| LoadShape::Step { step_s, then_fps: fps(then) };
        let frames = [LoadShape::Steady, LoadShape::Burst { frames: 7 }, bursts(64), bursts(2_000_000), bursts(0)]
            .map(|shape| shape.frames(fps(1e6), 1.0));
        assert_eq!(frames, [1_000_000, 7, 1_000_000, 2_000_000, 0]);
        let frames = [step(0.25, 1e5), step(9.0, 1e5), step(f64::NAN, 1e5)].map(|s| s.frames(fps(1e6), 1.0));
        assert_eq!(frames, [325_000, 1_000_000, 0]);
        assert_eq!(bursts(9).peak(fps(1e6)).get(), 1e7);
        assert_eq!(step(0.1, 1e5).peak(fps(1e6)).get(), 1e6);
    }

    #[test]
    fn windows_cover_the_trial_and_have_a_bound() {
        assert_eq!(windows(1.0, 3.0), Some((1.0, 3)));
        assert_eq!(windows(0.1, 0.3), Some((0.1, 3)));
        assert_eq!(windows(1.0, 2.5), Some((1.0, 3)));
        assert_eq!(windows(9.0, 2.5), Some((9.0, 1)));
        assert_eq!(windows(1.0, 864_000.0), Some((10.0, MAX_WINDOWS)));
        assert_eq!(windows(1e-9, 1.0), Some((MIN_WINDOW_S, 1000)));
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!((windows(bad, 1.0), windows(1.0, bad)), (None, None));
        }
    }
}
