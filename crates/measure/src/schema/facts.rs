//! What a run was made on and of: machine, ports, mixes of frame sizes, the self-test of the tester.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use units::{Fps, FrameSize, Frames, LinkSpeed};

use super::power::Power;

/// The machine a run was made on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct HostFacts {
    /// Host name.
    pub hostname: String,
    /// Kernel release.
    pub kernel: String,
    /// CPU model name.
    pub cpu_model: String,
    /// CPUs this process may use.
    pub cpus_allowed: u32,
    /// Hypervisor vendor when virtual.
    pub hypervisor: Option<String>,
    /// DPDK version at run time.
    pub dpdk_version: String,
    /// Memory the packets live in: `hugepages 2M` or `no hugepages`.
    pub memory: String,
    /// TSC frequency.
    pub tsc_hz: u64,
    /// Whether the TSC is invariant.
    pub tsc_invariant: bool,
    /// What the machine took before the first trial, when no frames were sent; `None` if it has no power sensors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_power: Option<Power>,
    /// Findings of `linerate host audit` that were open while it ran, the worst first; `None` in results of older versions and
    /// of simulated devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub findings: Option<Vec<HostFinding>>,
    /// Anything else worth keeping.
    #[serde(default)]
    pub extra: BTreeMap<String, String>,
}

/// How much a finding matters to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingLevel {
    /// It spoils figures.
    Bad,
    /// It may.
    Warn,
}

/// A finding about the host that was open while a run measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFinding {
    /// The rule's id, `cores.isolated`.
    pub id: String,
    /// How much it matters.
    pub level: FindingLevel,
    /// Where: a path, a CPU, a NIC; empty if the id says it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub place: String,
    /// What is there.
    pub got: String,
    /// What should be there.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub want: String,
}

/// One port of the tester.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PortFacts {
    /// As named by the user.
    pub name: String,
    /// DPDK driver, such as `net_memif`.
    pub driver: String,
    /// MAC address.
    pub mac: String,
    /// Link speed the port reports, when it means something.
    pub link_bps: Option<LinkSpeed>,
    /// Receive and transmit descriptors.
    pub descriptors: (u32, u32),
}

/// A mix of frame sizes that trials were made of (RFC 6985).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MixFacts {
    /// As `frame_size_bytes` names it.
    pub frame_size_bytes: Frames,
    /// As RFC 6985 §4 and §5 write it: `IMIX - aaafg`, `CUSTOM IMIX - AAB (A=78, B=1400)`; or how the sequence was made (§6).
    pub genome: String,
    /// Of a sequence that is not written out: what makes it (RFC 6985 §6.3 to §6.5).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<String>,
    /// Of one that is drawn at random: what from (RFC 6985 §6.4, §6.5).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Frames of each size in the sequence, from the smallest up (RFC 6985 §6.2); not of a range.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proportions: Vec<Proportion>,
    /// The sizes in the order sent, over and over; FCS included.
    pub sizes_bytes: Vec<FrameSize>,
    /// Mean bytes of a frame: what bit rates and shares of the line rate go by.
    pub average_bytes: f64,
}

/// How many frames of a mix have a size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Proportion {
    /// The size, FCS included.
    pub size_bytes: FrameSize,
    /// Frames of the sequence.
    pub frames: usize,
    /// The same in percent of all.
    pub percent: f64,
}

impl MixFacts {
    /// The mixes among these frame sizes.
    pub fn of(frame_sizes: &[Frames]) -> Vec<Self> {
        let facts = |frames: &Frames| {
            let mix = frames.mix()?;
            let percent = |of: usize| of as f64 / mix.sizes().len() as f64 * 100.0;
            let proportion = |(size_bytes, frames)| Proportion { size_bytes, frames, percent: percent(frames) };
            Some(Self {
                frame_size_bytes: *frames,
                genome: mix.to_string(),
                algorithm: mix.algorithm(),
                seed: mix.seed(),
                proportions: mix.frames_by_size().into_iter().map(proportion).collect(),
                sizes_bytes: frames.sizes().to_vec(),
                average_bytes: frames.average_bytes(),
            })
        };
        frame_sizes.iter().filter_map(facts).collect()
    }
}

/// The tester with no DUT: sending, receiving and checking every frame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SelfTestPoint {
    /// Frame size, FCS included, or the mix.
    pub frame_size_bytes: Frames,
    /// Most frames/s sent, received and checked by one lcore over the software cable: no kind of port is faster.
    pub max_fps: Fps,
    /// Ticks of the tester's clock a frame took, over the software cable.
    pub cycles_per_frame: f64,
    /// The same over two joined ports of the kind in use; `None` in results of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair: Option<SelfTestPair>,
}

/// The tester over two joined ports, whose work on both ends is done by its lcore.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SelfTestPair {
    /// What joins them.
    pub kind: SelfTestKind,
    /// Frames/s and direction of the slowest pass that counts: of the three fastest if they agree within 2 %, else of all.
    pub lower_fps: Fps,
    /// Frames/s and direction of the fastest pass.
    pub upper_fps: Fps,
    /// Passes made.
    pub passes: u32,
    /// Whether three passes agree within 2 %.
    pub stable: bool,
    /// Why the pair is the software cable although the ports are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
}

/// What joins the two ports of a self-test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SelfTestKind {
    /// A pair of rings inside the process: frames pass without copies.
    SoftwareCable,
    /// A memif server and a memif client.
    Memif,
    /// The switch's and the guest's side of vhost-user.
    VhostUser,
    /// Two joined interfaces of the kernel.
    Veth,
}

impl SelfTestKind {
    /// As results and tables write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::SoftwareCable => "software-cable",
            Self::Memif => "memif",
            Self::VhostUser => "vhost-user",
            Self::Veth => "veth",
        }
    }
}
