//! Flags for the spread of frames over a trial.

use std::{str::FromStr, time::Duration};

use clap::Args;
use units::{parse_duration, parse_si, Load};

/// How frames leave, and the windows of delays.
#[derive(Debug, Args, Default)]
#[command(next_help_heading = "Shape")]
pub struct ShapeArgs {
    /// Send one burst of exactly this many frames at the load (RFC 2544 §26.4, RFC 9004), however long it takes.
    #[arg(long, value_name = "FRAMES", allow_hyphen_values = true, value_parser = frames, conflicts_with_all = ["duration", "bursts", "step"])]
    pub burst: Option<u64>,
    /// Send bursts of FRAMES frames back to back, spaced so that they make up the load (RFC 2544 §21). RATE within a
    /// burst is a load; left out: the line rate of the link.
    #[arg(long, value_name = "FRAMES[@RATE]", conflicts_with = "step")]
    pub bursts: Option<BurstsArg>,
    /// Change to this load at this time (RFC 2544 §26.5): 500kpps@2s.
    #[arg(long, value_name = "LOAD@TIME")]
    pub step: Option<StepArg>,
    /// Also summarise delays in windows of this length (RFC 5481).
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub windows: Option<String>,
}

/// `64@14.88Mpps`
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BurstsArg {
    /// Frames of a burst.
    pub frames: u32,
    /// Rate within a burst.
    pub rate: Option<Load>,
}

/// `500kpps@2s`
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepArg {
    /// The second load.
    pub then: Load,
    /// When it begins.
    pub at: Duration,
}

const MOST_FRAMES: f64 = 1e12;

/// A number of frames: 64, 10k, 1M.
fn frames(text: &str) -> Result<u64, String> {
    match parse_si(text) {
        Some((n, "")) if (1.0..=MOST_FRAMES).contains(&n) && n.fract() == 0.0 => Ok(n as u64),
        _ => Err("must be a whole number of frames, 1 to 1T, such as 64 or 10k".to_owned()),
    }
}

impl FromStr for BurstsArg {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (number, rate) = text.split_once('@').map_or((text, None), |(n, r)| (n, Some(r)));
        let frames = frames(number)?;
        let frames = u32::try_from(frames).map_err(|_| "a burst has at most 4294967295 frames".to_owned())?;
        let rate = rate.map(|r| r.parse::<Load>().map_err(|e| e.to_string())).transpose()?;
        Ok(Self { frames, rate })
    }
}

impl FromStr for StepArg {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (then, at) = text.split_once('@').ok_or("must be LOAD@TIME, such as 500kpps@2s")?;
        let then = then.parse::<Load>().map_err(|e| e.to_string())?;
        Ok(Self { then, at: parse_duration(at).map_err(|e| e.to_string())? })
    }
}

#[cfg(test)]
mod tests {
    use units::Fps;

    use super::*;

    #[test]
    fn shapes_are_read_and_refused_by_what_is_legal() {
        assert_eq!((frames("64"), frames("10k"), frames("1.5M")), (Ok(64), Ok(10_000), Ok(1_500_000)));
        for bad in ["0", "1.5", "-3", "64B", "2T", "nan", ""] {
            assert!(frames(bad).is_err(), "{bad}");
        }
        insta::assert_snapshot!(frames("0").unwrap_err(), @"must be a whole number of frames, 1 to 1T, such as 64 or 10k");
        let rate = Some(Load::Frames(Fps::new(14.88e6).unwrap()));
        assert_eq!("64@14.88Mpps".parse(), Ok(BurstsArg { frames: 64, rate }));
        assert_eq!("1k".parse(), Ok(BurstsArg { frames: 1000, rate: None }));
        insta::assert_snapshot!("64@fast".parse::<BurstsArg>().unwrap_err(), @r#"load "fast": must be frames (1Mpps, 250000), bits of layer 1 (1Gbps) or 2 (1GbpsL2), or a share of the link (50%)"#);
        insta::assert_snapshot!("5G".parse::<BurstsArg>().unwrap_err(), @"a burst has at most 4294967295 frames");
        let step: StepArg = "50%@1.5s".parse().unwrap();
        assert_eq!(step, StepArg { then: Load::LinePercent(50.0), at: Duration::from_millis(1500) });
        for bad in ["50%", "50%@0s", "x@1s"] {
            assert!(bad.parse::<StepArg>().is_err(), "{bad}");
        }
    }
}
