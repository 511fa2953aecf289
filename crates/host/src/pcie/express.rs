//! The PCI Express capability in the configuration space of a device.
//!
//! Offsets and bits are those of the PCI Express Base Specification 5.0, section 7.5.3; Linux names them in
//! `include/uapi/linux/pci_regs.h`.

use serde::{Deserialize, Serialize};

use crate::Fact;

/// Bytes that everybody may read.
const HEADER: usize = 64;

/// The status register, and its bit that says that there are capabilities.
const STATUS: usize = 0x06;
const HAS_CAPABILITIES: u16 = 1 << 4;

/// Where the first capability is named.
const FIRST: usize = 0x34;

/// Most capabilities: 4 bytes is the shortest one.
const MOST: usize = (256 - HEADER) / 4;

/// The capability's id.
const EXPRESS: u8 = 0x10;

/// What a function is in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PortType {
    /// A device.
    Endpoint,
    /// A device of the older kind, which may use I/O ports.
    LegacyEndpoint,
    /// A port of the root complex.
    RootPort,
    /// The port of a switch toward the root.
    SwitchUpstream,
    /// A port of a switch toward devices.
    SwitchDownstream,
    /// A bridge to conventional PCI.
    BridgeToPci,
    /// A bridge from conventional PCI.
    BridgeFromPci,
    /// A device inside the root complex: it has no link.
    RootComplexEndpoint,
    /// Another value of the register.
    Other(u8),
}

/// What the capability says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Express {
    /// What the function is.
    pub port_type: PortType,
    /// Largest payload that the function supports, bytes.
    pub mps_supported: u32,
    /// Largest payload that it sends (MPS), bytes.
    pub mps: u32,
    /// Largest read that it requests (MRRS), bytes.
    pub mrrs: u32,
    /// Whether it supports 8-bit tags: 256 outstanding reads instead of 32.
    pub extended_tags_supported: bool,
    /// Whether 8-bit tags are enabled.
    pub extended_tags: bool,
    /// Whether relaxed ordering is enabled.
    pub relaxed_ordering: bool,
}

/// Finds the capability in the configuration space, as the file `config` has it.
///
/// [`Fact::Absent`] means that the whole list was read and has no such capability. Without root the kernel shows 64 bytes,
/// in which the list only begins: [`Fact::Unreadable`].
pub fn express(config: &[u8]) -> Fact<Express> {
    if config.len() < HEADER {
        return cut_off(config);
    }
    let Some(status) = word(config, STATUS) else { return cut_off(config) };
    if word(config, 0) == Some(u16::MAX) {
        return Fact::Unreadable("the device does not answer: its configuration space reads as ones".to_owned());
    }
    if status & HAS_CAPABILITIES == 0 {
        return Fact::Absent;
    }
    let mut next = config.get(FIRST).copied();
    for _ in 0..=MOST {
        let Some(pointer) = next else { return cut_off(config) };
        let at = usize::from(pointer & 0xfc);
        match (at, config.get(at).copied()) {
            (0, _) => return Fact::Absent,
            (1..HEADER, _) => return Fact::Unreadable("the list of capabilities points into the header".to_owned()),
            (_, None) => return cut_off(config),
            (_, Some(EXPRESS)) => return decode(config, at),
            (_, Some(_)) => next = config.get(at + 1).copied(),
        }
    }
    Fact::Unreadable("the list of capabilities is a loop".to_owned())
}

fn decode(config: &[u8], at: usize) -> Fact<Express> {
    let words = (word(config, at + 2), word(config, at + 4), word(config, at + 8));
    let (Some(flags), Some(capabilities), Some(control)) = words else { return cut_off(config) };
    let sizes = (bytes(capabilities), bytes(control >> 5), bytes(control >> 12));
    let (Some(mps_supported), Some(mps), Some(mrrs)) = sizes else {
        return Fact::Unreadable("the PCI Express capability has a reserved size".to_owned());
    };
    Fact::Known(Express {
        port_type: port_type(flags >> 4 & 0xf),
        mps_supported,
        mps,
        mrrs,
        extended_tags_supported: capabilities & 1 << 5 != 0,
        extended_tags: control & 1 << 8 != 0,
        relaxed_ordering: control & 1 << 4 != 0,
    })
}

fn port_type(value: u16) -> PortType {
    match value {
        0 => PortType::Endpoint,
        1 => PortType::LegacyEndpoint,
        4 => PortType::RootPort,
        5 => PortType::SwitchUpstream,
        6 => PortType::SwitchDownstream,
        7 => PortType::BridgeToPci,
        8 => PortType::BridgeFromPci,
        9 => PortType::RootComplexEndpoint,
        other => PortType::Other(other as u8),
    }
}

/// The size that the lowest three bits stand for, bytes; `None` for the two reserved values.
fn bytes(code: u16) -> Option<u32> {
    let code = code & 7;
    (code <= 5).then(|| 128 << code)
}

fn word(config: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes([*config.get(at)?, *config.get(at + 1)?]))
}

fn cut_off(config: &[u8]) -> Fact<Express> {
    Fact::Unreadable(match config.len() {
        HEADER => "needs root: only the first 64 bytes of the configuration space could be read".to_owned(),
        len => format!("the configuration space ends after {len} bytes"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Configuration space of this length with capabilities: address, id, next.
    fn config(len: usize, first: u8, capabilities: &[(usize, u8, u8)]) -> Vec<u8> {
        let mut config = vec![0; 256];
        config[..2].copy_from_slice(&[0x86, 0x80]);
        config[STATUS] = HAS_CAPABILITIES as u8;
        config[FIRST] = first;
        for (at, id, next) in capabilities {
            config[*at] = *id;
            config[at + 1] = *next;
        }
        config.truncate(len);
        config
    }

    fn why(config: &[u8]) -> String {
        match express(config) {
            Fact::Unreadable(why) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_capability_is_found_behind_others_and_read() {
        let mut of_256 = config(256, 0x40, &[(0x40, 1, 0x51), (0x50, 5, 0xa0), (0xa0, EXPRESS, 0)]);
        of_256[0xa2..0xaa].copy_from_slice(&[0x42, 0, 0x22, 0x80, 0, 0, 0x30, 0x29]);
        let wanted = Express {
            port_type: PortType::RootPort,
            mps_supported: 512,
            mps: 256,
            mrrs: 512,
            extended_tags_supported: true,
            extended_tags: true,
            relaxed_ordering: true,
        };
        assert_eq!(express(&of_256), Fact::Known(wanted));
        assert!(why(&of_256[..0xa9]).contains("ends after 169 bytes"));
        assert!(why(&of_256[..64]).starts_with("needs root"));
        of_256[0xa9] = 0x79;
        assert!(why(&of_256).contains("reserved size"));
    }

    #[test]
    fn absent_is_only_what_was_looked_for_everywhere() {
        assert_eq!(express(&config(256, 0x40, &[(0x40, 9, 0x50), (0x50, 0x11, 0)])), Fact::Absent);
        assert_eq!(express(&config(64, 0, &[])), Fact::Absent);
        let mut without = config(64, 0x40, &[]);
        without[STATUS] = 0;
        assert_eq!(express(&without), Fact::Absent, "no list at all");
    }

    #[test]
    fn a_list_that_is_broken_ends() {
        assert!(why(&config(256, 0x40, &[(0x40, 1, 0x40)])).contains("loop"));
        assert!(why(&config(256, 0x40, &[(0x40, 1, 0x50), (0x50, 5, 0x40)])).contains("loop"));
        assert!(why(&config(256, 0x10, &[])).contains("into the header"));
        assert!(why(&config(128, 0x40, &[(0x40, 1, 0xf0)])).contains("ends after 128 bytes"));
        assert!(why(&config(256, 0xfc, &[(0xfc, EXPRESS, 0)])).contains("ends after 256 bytes"));
        assert!(why(&config(20, 0, &[])).contains("ends after 20 bytes"));
        assert!(why(&[]).contains("ends after 0 bytes"));
        assert!(why(&[0xff; 256]).contains("does not answer"));
    }

    #[test]
    fn any_bytes_are_an_answer() {
        let mut state = 0x9e37_79b9_u32;
        let mut random = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        for len in [0, 1, 6, 8, 53, 63, 64, 65, 128, 255, 256, 4096] {
            for _ in 0..500 {
                let mut bytes: Vec<u8> = (0..len).map(|_| random()).collect();
                if let Some(status) = bytes.get_mut(STATUS) {
                    *status |= HAS_CAPABILITIES as u8;
                }
                let _ = express(&bytes);
            }
        }
    }
}
