//! Everything that `linerate host pcie` shows of a device.

use serde::{Deserialize, Serialize};

use super::{
    attached::{Attached, Attachment, RootPlace},
    link::Link,
    model::{ceiling, Ceiling, Crossing, Slot},
    nic::NicKind,
    walk::{Fit, PciePath},
};

/// Payload sizes that are compared, bytes: 512 is the most that common root ports support.
const PAYLOADS: [u32; 3] = [128, 256, 512];

/// Request size where the device does not say its own, bytes: the kernel's and the devices' usual value.
const USUAL_MRRS: u32 = 512;

/// Slots that are compared: speed in GT/s, lanes.
const SLOTS: [(f64, u32); 6] = [(8.0, 4), (8.0, 8), (8.0, 16), (16.0, 4), (16.0, 8), (16.0, 16)];

/// The path of a device, the ceilings of its slot and those of other slots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PcieReport {
    /// The path, hop by hop from the device.
    pub path: PciePath,
    /// Bytes of a frame, FCS included.
    pub frame_size: u32,
    /// How descriptors are assumed to move.
    pub nic: NicKind,
    /// Whether `nic` was asked for or is known from the device's id. If not, it is the usual one.
    pub nic_is_known: bool,
    /// What the device is plugged into.
    pub attached: Attached,
    /// Where the root port is.
    pub root: Option<RootPlace>,
    /// Address of the hop whose link limits the path.
    pub narrowest: Option<String>,
    /// Whether the link is what its ends could have.
    pub fit: Fit,
    /// Largest payload on the path now, bytes.
    pub mps: Option<u32>,
    /// Largest read request of the device now, bytes. The ceilings use 512 where it is not known.
    pub mrrs: Option<u32>,
    /// The narrowest link of the path as it is now; `None` if no link is known.
    pub present: Option<SlotReport>,
    /// Other slots.
    pub elsewhere: Vec<SlotReport>,
}

/// What a slot is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlotKind {
    /// Where the device is now.
    Present,
    /// A slot that can do all that the device can.
    DeviceMaximum,
    /// A slot that was asked for.
    Asked,
    /// A common slot.
    Other,
}

/// The ceilings of a slot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlotReport {
    /// What it is.
    pub kind: SlotKind,
    /// What the slot can do.
    pub slot: Link,
    /// The link of the device in the slot: not more than the device can do, where that is known.
    pub link: Link,
    /// Bits per second in each direction after the line code.
    pub raw_bits_per_s: f64,
    /// With payloads of 128, 256 and 512 bytes; of the present slot also with the payload in use.
    pub by_payload: Vec<PayloadReport>,
}

/// The ceilings of a slot with a payload size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PayloadReport {
    /// Largest payload, bytes.
    pub mps: u32,
    /// Whether this is the payload size in use.
    pub in_use: bool,
    /// Whether the device supports it, and in its present slot all hops; `None` if not known.
    pub supported: Option<bool>,
    /// Bits per second in each direction for transaction layer packets.
    pub tlp_bits_per_s: f64,
    /// Each frame is received and transmitted through the slot.
    pub both: Ceiling,
    /// Each frame is only received.
    pub receive: Ceiling,
    /// Each frame is only transmitted.
    pub transmit: Ceiling,
}

impl PcieReport {
    /// Computes the ceilings for frames of `frame_size` bytes, FCS included. `nic`: how descriptors move; `None`: as usual
    /// for the device.
    pub fn new(path: PciePath, frame_size: u32, nic: Option<NicKind>) -> Self {
        let known = nic.or_else(|| NicKind::of(path.device()?.id.as_known()?));
        let device_max = path.device().and_then(|hop| hop.max_link.as_known()).copied();
        let device_mps = path.device().and_then(|hop| hop.express.as_known()).map(|express| express.mps_supported);
        let inputs =
            Inputs { frame_size, nic: known.unwrap_or(NicKind::IntelVector), mrrs: path.mrrs().unwrap_or(USUAL_MRRS) };
        let now = path.narrowest().and_then(|hop| hop.current_link.as_known()).copied();
        let present = now.map(|link| inputs.slot(SlotKind::Present, link, link, path.mps(), path.mps_supported()));
        let maximum = device_max.map(|max| (SlotKind::DeviceMaximum, max));
        let others = SLOTS.iter().map(|(gts, lanes)| (SlotKind::Other, Link { gts: *gts, lanes: *lanes }));
        let elsewhere = maximum.into_iter().chain(others).map(|(kind, slot)| {
            inputs.slot(kind, slot, device_max.map_or(slot, |max| slot.within(max)), None, device_mps)
        });
        Self {
            frame_size,
            nic: inputs.nic,
            nic_is_known: known.is_some(),
            attached: path.attached(),
            root: path.root_place(),
            narrowest: path.narrowest().map(|hop| hop.address.clone()),
            fit: path.fit(),
            mps: path.mps(),
            mrrs: path.mrrs(),
            present,
            elsewhere: elsewhere.collect(),
            path,
        }
    }

    /// The ceilings of slots that are not here, for a card that is not here either.
    pub fn of_slots(slots: &[Link], frame_size: u32, nic: Option<NicKind>) -> Self {
        let nowhere = Self::new(PciePath::nowhere(), frame_size, nic);
        let inputs = Inputs { frame_size, nic: nowhere.nic, mrrs: USUAL_MRRS };
        let asked = slots.iter().map(|link| inputs.slot(SlotKind::Asked, *link, *link, None, None));
        let attached = Attached { to: Attachment::Unknown, inferred: false };
        Self { attached, elsewhere: asked.chain(nowhere.elsewhere).collect(), ..nowhere }
    }

    /// The ceilings of the present slot with the payload size in use; `None` if either is not known.
    pub fn now(&self) -> Option<&PayloadReport> {
        self.present.as_ref()?.by_payload.iter().find(|payload| payload.in_use)
    }
}

/// What all ceilings of a report have in common.
struct Inputs {
    frame_size: u32,
    nic: NicKind,
    mrrs: u32,
}

impl Inputs {
    fn slot(&self, kind: SlotKind, slot: Link, link: Link, in_use: Option<u32>, most: Option<u32>) -> SlotReport {
        let mut sizes: Vec<u32> = PAYLOADS.into_iter().chain(in_use).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let by_payload = sizes.into_iter().map(|mps| {
            let one =
                |crossing| ceiling(&Slot { link, mps, mrrs: self.mrrs }, &self.nic.nic(), crossing, self.frame_size);
            PayloadReport {
                mps,
                in_use: in_use == Some(mps),
                supported: most.map(|most| mps <= most),
                tlp_bits_per_s: link.tlp_bits_per_s(mps),
                both: one(Crossing::Both),
                receive: one(Crossing::Receive),
                transmit: one(Crossing::Transmit),
            }
        });
        SlotReport { kind, slot, link, raw_bits_per_s: link.raw_bits_per_s(), by_payload: by_payload.collect() }
    }
}
