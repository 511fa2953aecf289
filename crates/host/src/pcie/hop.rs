//! What the kernel says of one device or bridge on the path.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{
    express::{express, Express},
    link::Link,
};
use crate::{Fact, Roots};

/// Bytes of the configuration space that are read: the PCI Express capability is in them. Beyond are serial numbers.
const CONFIG_BYTES: u64 = 256;

/// Most characters of a file that a message repeats.
const MOST_REPEATED: usize = 30;

/// A device or a bridge on the path from a network card to the root.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hop {
    /// Its address, `0000:05:00.0`.
    pub address: String,
    /// Vendor and device, `8086:10fb`.
    pub id: Fact<String>,
    /// Class code of 24 bits: `0x020000` is an Ethernet controller, `0x060400` a bridge.
    pub class: Fact<u32>,
    /// The physical function, if the device is a virtual one: its link and capability stand for those of the device.
    pub physical_function: Option<String>,
    /// The link now. Of a device or the upstream port of a switch it is the link toward the root, of other bridges the
    /// link toward the device. An idle link may be slower than it is under load.
    pub current_link: Fact<Link>,
    /// The fastest link of this end.
    pub max_link: Fact<Link>,
    /// Payload and request sizes, tags, ordering, kind of port.
    pub express: Fact<Express>,
    /// Errors since boot.
    pub errors: ErrorTotals,
    /// NUMA node; `None` where the machine has only one, or does not say.
    pub numa_node: Option<u32>,
}

/// Errors that Advanced Error Reporting counted since boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorTotals {
    /// Mended by a replay, which costs bandwidth.
    pub correctable: Fact<u64>,
    /// A transfer was lost.
    pub nonfatal: Fact<u64>,
    /// The link was lost.
    pub fatal: Fact<u64>,
}

impl Hop {
    /// Reads the directory of a device.
    pub(super) fn read(roots: &Roots, dir: &Path, address: &str) -> Self {
        let function = roots.follow(dir.join("physfn"));
        let of_link = function.as_deref().unwrap_or(dir);
        let total = |file: &str, line: &str| flat(roots.fact(dir.join(file)).map(|text| total(&text, line)));
        Self {
            address: address.to_owned(),
            id: id(roots, dir),
            class: flat(roots.fact(dir.join("class")).map(|text| class(&text))),
            physical_function: function.as_ref().and_then(|at| Some(at.file_name()?.to_str()?.to_owned())),
            current_link: link(roots, of_link, "current"),
            max_link: link(roots, of_link, "max"),
            express: flat(Fact::from(roots.first_bytes(&of_link.join("config"), CONFIG_BYTES)).map(|b| express(&b))),
            errors: ErrorTotals {
                correctable: total("aer_dev_correctable", "TOTAL_ERR_COR"),
                nonfatal: total("aer_dev_nonfatal", "TOTAL_ERR_NONFATAL"),
                fatal: total("aer_dev_fatal", "TOTAL_ERR_FATAL"),
            },
            numa_node: roots.value::<i32>(dir.join("numa_node")).and_then(|node| u32::try_from(node).ok()),
        }
    }

    /// Whether it is a bridge between buses.
    pub fn is_bridge(&self) -> bool {
        self.class.as_known().is_some_and(|class| class >> 8 == 0x0604)
    }
}

fn id(roots: &Roots, dir: &Path) -> Fact<String> {
    let bare = |text: String| text.trim_start_matches("0x").to_ascii_lowercase();
    match (roots.fact(dir.join("vendor")), roots.fact(dir.join("device"))) {
        (Fact::Known(vendor), Fact::Known(device)) => Fact::Known(format!("{}:{}", bare(vendor), bare(device))),
        (Fact::Known(_), unknown) | (unknown, _) => unknown,
    }
}

fn class(text: &str) -> Fact<u32> {
    match u32::from_str_radix(text.trim_start_matches("0x"), 16) {
        Ok(class) => Fact::Known(class),
        Err(_) => Fact::Unreadable(format!("{} is not a class", repeated(text))),
    }
}

fn link(roots: &Roots, dir: &Path, which: &str) -> Fact<Link> {
    let file = |what: &str| roots.fact(dir.join(format!("{which}_link_{what}")));
    match (file("speed"), file("width")) {
        (Fact::Known(speed), Fact::Known(width)) => match Link::parse(&speed, &width) {
            Some(link) => Fact::Known(link),
            None => Fact::Unreadable(format!("the kernel says {} and {} lanes", repeated(&speed), repeated(&width))),
        },
        (Fact::Unreadable(why), _) | (_, Fact::Unreadable(why)) => Fact::Unreadable(why),
        (Fact::Absent, _) | (_, Fact::Absent) => Fact::Absent,
    }
}

/// The number behind `name` in a file of counters.
fn total(text: &str, name: &str) -> Fact<u64> {
    let mut values = text.lines().filter_map(|line| line.split_once(' ')).filter(|(found, _)| *found == name);
    match values.next_back().and_then(|(_, value)| value.trim().parse().ok()) {
        Some(value) => Fact::Known(value),
        None => Fact::Unreadable(format!("has no line \"{name} NUMBER\"")),
    }
}

/// The beginning of what a file says, in quotes and without control characters.
fn repeated(text: &str) -> String {
    format!("{:?}", text.chars().take(MOST_REPEATED).collect::<String>())
}

fn flat<T>(fact: Fact<Fact<T>>) -> Fact<T> {
    match fact {
        Fact::Known(inner) => inner,
        Fact::Absent => Fact::Absent,
        Fact::Unreadable(why) => Fact::Unreadable(why),
    }
}
