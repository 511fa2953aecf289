//! Flags of a replayed capture.

use std::path::PathBuf;

use clap::Args;

/// A capture instead of generated frames.
#[derive(Debug, Args, Default)]
#[command(next_help_heading = "Replay")]
pub struct ReplayArgs {
    /// Send the frames of a capture (pcap or pcapng) byte for byte: as far apart as captured, or evenly with --load; once
    /// through, or round and round with --count or --duration.
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "frame_size", "burst", "bursts", "step", "windows", "flows", "ip", "l4", "vlan", "mpls", "src_ip", "dst_ip",
        "src_port", "dst_port", "dst_mac", "src_mac", "fields", "seed",
    ])]
    pub replay: Option<PathBuf>,
    /// Speed relative to the capture: 2, 0.5.
    #[arg(long, value_name = "FACTOR", allow_hyphen_values = true, value_parser = speed, requires = "replay", conflicts_with = "load")]
    pub speed: Option<f64>,
    /// Number of times through the capture. Default: 1.
    #[arg(long, value_name = "N", allow_hyphen_values = true, requires = "replay", conflicts_with = "duration",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Cut longer pauses between two sent frames to this.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, requires = "replay", conflicts_with = "load")]
    pub max_gap: Option<String>,
}

fn speed(text: &str) -> Result<f64, String> {
    let legal = |speed: &f64| (1e-3..=1e6).contains(speed);
    text.parse().ok().filter(legal).ok_or_else(|| "must be a factor of 0.001 to 1000000, such as 2 or 0.5".to_owned())
}
