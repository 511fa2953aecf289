//! `linerate trial --replay`: a capture instead of generated frames.

use std::{fs::File, path::Path, sync::Arc};

use measure::{
    shape::LoadShape,
    trial::{Purpose, TrialSpec},
};
use packet::capture::Capture;
use traffic::replay::{Timeline, TimelineError, Timing};
use units::{Fps, FrameSize, Frames, LinkSpeed, Load, FCS_BYTES};

use super::times::time;
use crate::cli::TrialArgs;
use failure::Failure;
use rig::Replayable;

/// Longest trial, as for generated frames.
const MOST_S: f64 = 30.0 * 86_400.0;

/// A capture, and how to send it.
pub struct Asked<'a> {
    args: &'a TrialArgs,
    /// The path as given.
    pub path: &'a Path,
    capture: Arc<Capture>,
}

impl<'a> Asked<'a> {
    /// Reads the capture, if `--replay` is given.
    pub fn read(args: &'a TrialArgs) -> Result<Option<Self>, Failure> {
        let Some(path) = args.replay.replay.as_deref() else { return Ok(None) };
        let refuse = |why: &dyn std::fmt::Display| Failure::usage(format!("--replay {}: {why}", path.display()));
        let file = File::open(path).map_err(|e| refuse(&failure::unreadable(&e)))?;
        let capture = Capture::read(file).map_err(|e| refuse(&e))?;
        Ok(Some(Self { args, path, capture: Arc::new(capture) }))
    }

    /// The size of the longest frame, at least the Ethernet minimum.
    pub fn longest(&self) -> Frames {
        frame_size(self.capture.longest() as f64 + f64::from(FCS_BYTES))
    }

    /// The trial over links of this speed, and its frames. Errors name the flag, the value and the legal range.
    pub fn spec(&self, link: Option<LinkSpeed>) -> Result<(TrialSpec, Replayable), Failure> {
        let asked = &self.args.replay;
        let max_gap = asked.max_gap.as_deref().map(|text| time("--max-gap", text)).transpose()?;
        let speed = asked.speed.unwrap_or(1.0);
        let timing = match self.args.load {
            None => Timing::Captured { speed, max_gap },
            Some(load) => Timing::Even(self.rate(load, link)?),
        };
        let refuse = |why: &str| Failure::usage(format!("--replay {}: {why}", self.path.display()));
        // In nanoseconds; the rig has its own clock.
        let timeline = Timeline::new(self.capture.times(), timing, 1_000_000_000).map_err(|e| match e {
            TimelineError::NoTime | TimelineError::Backwards => {
                refuse(&format!("{e}: say how fast to send them with --load"))
            }
            TimelineError::TooLong => refuse(&format!("{e}: cut its pauses with --max-gap, or send it faster")),
        })?;
        let in_capture = self.capture.len() as u64;
        let (frames, duration_s) = match &self.args.duration {
            Some(text) => {
                let duration = time("--duration", text)?;
                (timeline.within(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)), duration.as_secs_f64())
            }
            None => {
                let count = asked.count.unwrap_or(1);
                (in_capture.saturating_mul(count), (timeline.pass() * count as f64).round() / 1e9)
            }
        };
        if duration_s > MOST_S {
            return Err(refuse(
                "takes longer than 30 days: cut its pauses with --max-gap, or send it faster or less often",
            ));
        }
        let mean = frame_size(self.mean());
        let load = Fps::from_count(frames, duration_s);
        let mut spec = TrialSpec::steady(mean, load, duration_s, Purpose::Single);
        spec.shape = LoadShape::Replay {
            frames,
            capture_frames: in_capture,
            capture_bytes: self.capture.total_bytes(),
            speed: self.args.load.is_none().then_some(speed),
            max_gap_s: max_gap.map(|gap| gap.as_secs_f64()),
        };
        Ok((spec, Replayable { capture: Arc::clone(&self.capture), timing, frames }))
    }

    /// Mean bytes of a frame, FCS included.
    fn mean(&self) -> f64 {
        self.capture.total_bytes() as f64 / self.capture.len() as f64
    }

    /// A load in frames/s of the mean size.
    fn rate(&self, load: Load, link: Option<LinkSpeed>) -> Result<Fps, Failure> {
        let fps = load.resolve_average(self.mean(), link)?;
        match link.map(|link| link.line_rate_average(self.mean())).filter(|most| fps > *most) {
            None => Ok(fps),
            Some(most) => Err(Failure::usage(format!(
                "--load {load}: {fps} is beyond the link, which carries at most {most} of this capture's {:.1} bytes in \
                 the mean",
                self.mean()
            ))),
        }
    }
}

/// The nearest legal size: a capture may hold frames from before they were padded.
fn frame_size(bytes: f64) -> Frames {
    FrameSize::new((bytes.round() as u32).min(FrameSize::MAX.bytes())).unwrap_or(FrameSize::MIN).into()
}
