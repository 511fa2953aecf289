//! Memory modules in the firmware's own table (SMBIOS 3, type 17).

use std::collections::BTreeSet;

/// A slot for a memory module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slot {
    /// Its name on the board.
    pub(crate) place: String,
    /// Its memory channel, where its names say so.
    pub(crate) channel: Option<Channel>,
    /// Size, MiB; 0 if it is empty.
    pub(crate) mib: u64,
    /// Transfers a second that the module could do, millions; 0 if it does not say.
    pub(crate) fastest_mts: u64,
    /// What it was set to.
    pub(crate) configured_mts: u64,
}

/// A memory channel of a processor. SMBIOS has no field for it; most boards write it into the names of slots and banks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Channel {
    /// The processor or node, lower case; empty where the names leave it out.
    pub(crate) socket: String,
    /// The name up to the channel: `P0_Node0_Channel3`, `P1-DIMMA`.
    pub(crate) name: String,
}

impl Channel {
    /// Out of the names of a slot and its bank. A letter without `DIMM` before it is none: Dell's `A1` and `B1` are of two
    /// processors.
    fn of(place: &str, bank: &str) -> Option<Self> {
        let (name, text) =
            [place, bank].into_iter().find_map(|text| Some((after_channel(text)?, text))).or_else(|| {
                let at = lower(place).rfind("dimm")? + 4;
                let at = at + usize::from(place.get(at..)?.starts_with(SEPARATORS));
                let mut rest = place.get(at..)?.chars();
                let letter = rest.next().is_some_and(|c| c.is_ascii_alphabetic());
                let number = rest.as_str();
                let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
                (letter && is_number).then_some((place.get(..=at)?, place))
            })?;
        let socket = socket(text).or_else(|| socket(bank)).unwrap_or_default();
        Some(Self { socket, name: name.to_owned() })
    }
}

const SEPARATORS: [char; 3] = ['_', '-', ' '];

/// As many bytes as before.
fn lower(text: &str) -> String {
    text.to_ascii_lowercase()
}

/// The text up to the channel that it names: `Controller0-ChannelA` of `Controller0-ChannelA-DIMM0`.
fn after_channel(text: &str) -> Option<&str> {
    let at = lower(text).find("channel")? + "channel".len();
    let at = at + usize::from(text.get(at..)?.starts_with(SEPARATORS));
    let name = text.get(at..)?.bytes().take_while(u8::is_ascii_alphanumeric).count();
    (1..=2).contains(&name).then(|| text.get(..at + name))?
}

/// The processor or node that the text begins with: `cpu1` of `CPU1_DIMM_A1`, `node2` of `NODE 2`.
fn socket(text: &str) -> Option<String> {
    let text = lower(text);
    let (kind, rest) =
        ["cpu", "proc", "node", "p"].into_iter().find_map(|kind| Some((kind, text.strip_prefix(kind)?)))?;
    let rest = rest.trim_start_matches(SEPARATORS);
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0).then(|| format!("{kind}{}", &rest[..digits]))
}

/// Channels without a module, of processors that have modules on others.
pub(crate) fn empty_channels(slots: &[Slot]) -> Vec<&Channel> {
    let on = |channel: &Channel, used: bool| {
        let mut of = slots.iter().filter(|slot| slot.channel.as_ref() == Some(channel));
        of.any(|slot| (slot.mib > 0) == used)
    };
    let all: BTreeSet<&Channel> = slots.iter().filter_map(|slot| slot.channel.as_ref()).collect();
    let in_use: BTreeSet<&str> = all.iter().filter(|channel| on(channel, true)).map(|c| c.socket.as_str()).collect();
    all.into_iter().filter(|channel| !on(channel, true) && in_use.contains(channel.socket.as_str())).collect()
}

/// All slots. A table that ends too early gives those before.
pub(crate) fn memory(table: &[u8]) -> Vec<Slot> {
    let mut slots = Vec::new();
    let mut rest = table;
    while let Some((found, next)) = structure(rest) {
        if found.kind == 17 {
            slots.extend(slot(found.fixed, found.texts));
        }
        rest = next;
    }
    slots
}

/// A structure of the table.
struct Structure<'a> {
    kind: u8,
    fixed: &'a [u8],
    texts: &'a [u8],
}

/// The first structure, and what is behind it.
fn structure(table: &[u8]) -> Option<(Structure<'_>, &[u8])> {
    let (&kind, &length) = (table.first()?, table.get(1)?);
    let length = usize::from(length);
    // Kind 127 ends the table; a length below its head would never end.
    if kind == 127 || length < 4 {
        return None;
    }
    let fixed = table.get(..length)?;
    let behind = &table[length..];
    let end = behind.windows(2).position(|two| two == [0, 0])?;
    Some((Structure { kind, fixed, texts: &behind[..end] }, &behind[end + 2..]))
}

/// The table with nothing in it but slots and their names on the board: no serial numbers, no names of makers and owners.
pub(crate) fn only_memory(table: &[u8]) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut rest = table;
    while let Some((found, next)) = structure(rest) {
        rest = next;
        let Some(slot) = slot(found.fixed, found.texts).filter(|_| found.kind == 17) else { continue };
        let mut fixed = found.fixed.to_vec();
        let bank = text(found.fixed, 0x11, found.texts);
        // A bank is kept where it says which channel or processor it is of, and nothing else.
        let is_plain =
            |bank: &str| bank.len() <= 32 && bank.chars().all(|c| c.is_ascii_alphanumeric() || SEPARATORS.contains(&c));
        let bank =
            Some(bank).filter(|bank| is_plain(bank) && (after_channel(bank).is_some() || socket(bank).is_some()));
        // Numbers of texts: place, bank, maker, serial number, owner's tag, part, and the maker's firmware.
        for at in [0x11, 0x17, 0x18, 0x19, 0x1a, 0x2b] {
            if let Some(number) = fixed.get_mut(at) {
                *number = 0;
            }
        }
        // Its maker's and the module's own numbers (SMBIOS 3.2).
        if let Some(numbers) = fixed.get_mut(0x2c..0x34) {
            numbers.fill(0);
        }
        let place = Some(slot.place).filter(|place| !place.is_empty());
        fixed[0x10] = u8::from(place.is_some());
        let texts: Vec<String> = place.into_iter().chain(bank.clone()).collect();
        if let Some(number) = fixed.get_mut(0x11).filter(|_| bank.is_some()) {
            *number = texts.len() as u8;
        }
        kept.extend(fixed);
        for text in &texts {
            kept.extend(text.bytes());
            kept.push(0);
        }
        // Texts end with two zeros, also where there is none.
        kept.extend(if texts.is_empty() { &[0, 0][..] } else { &[0][..] });
    }
    kept.extend([127, 4, 0, 0, 0, 0]);
    kept
}

/// The text whose number is at this place; empty if there is none.
fn text(fixed: &[u8], at: usize, texts: &[u8]) -> String {
    let number = fixed.get(at).map_or(0, |number| usize::from(*number));
    let text = number.checked_sub(1).and_then(|n| texts.split(|&byte| byte == 0).nth(n)).unwrap_or_default();
    String::from_utf8_lossy(text).trim().to_owned()
}

fn slot(fixed: &[u8], texts: &[u8]) -> Option<Slot> {
    let word = |at: usize| Some(u64::from(u16::from_le_bytes(fixed.get(at..at + 2)?.try_into().ok()?)));
    let long = |at: usize| Some(u64::from(u32::from_le_bytes(fixed.get(at..at + 4)?.try_into().ok()?)));
    // 0xffff: unknown; 0x7fff: see the longer field; bit 15: in KiB.
    let mib = match word(0x0c)? {
        0xffff => 0,
        0x7fff => long(0x1c).unwrap_or(0) & 0x7fff_ffff,
        size if size & 0x8000 != 0 => (size & 0x7fff) / 1024,
        size => size,
    };
    let place = text(fixed, 0x10, texts);
    Some(Slot {
        channel: Channel::of(&place, &text(fixed, 0x11, texts)),
        place,
        mib,
        fastest_mts: word(0x15).unwrap_or(0),
        configured_mts: word(0x20).unwrap_or(0),
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// One structure of kind 17.
    pub(crate) fn module(place: &str, mib: u16, fastest: u16, configured: u16) -> Vec<u8> {
        let mut fixed = vec![0; 0x28];
        (fixed[0], fixed[1]) = (17, 0x28);
        fixed[0x0c..0x0e].copy_from_slice(&mib.to_le_bytes());
        fixed[0x10] = 2;
        fixed[0x15..0x17].copy_from_slice(&fastest.to_le_bytes());
        fixed[0x20..0x22].copy_from_slice(&configured.to_le_bytes());
        [fixed, b"other\0".to_vec(), place.as_bytes().to_vec(), vec![0, 0]].concat()
    }

    #[test]
    fn channels_are_read_from_the_names_of_boards() {
        let of = |place: &str, bank: &str| Channel::of(place, bank).map(|channel| (channel.socket, channel.name));
        let channel = |socket: &str, name: &str| Some((socket.to_owned(), name.to_owned()));
        // Laptops and small boards; AMD's reference; Supermicro; ASUS; Intel's boards.
        assert_eq!(of("Controller1-ChannelB-DIMM0", "BANK 3"), channel("", "Controller1-ChannelB"));
        assert_eq!(of("DIMM 0", "P0_Node0_Channel3_Dimm0"), channel("p0", "P0_Node0_Channel3"));
        assert_eq!(of("DIMM 1", "P1 CHANNEL F"), channel("p1", "P1 CHANNEL F"));
        assert_eq!(of("P2-DIMMC1", "P1_Node1_"), channel("p2", "P2-DIMMC"));
        assert_eq!(of("DIMM_B2", "NODE 1"), channel("node1", "DIMM_B"));
        assert_eq!(of("CPU1_DIMM_A1", ""), channel("cpu1", "CPU1_DIMM_A"));
        // Names that say nothing, or that mean something else.
        for (place, bank) in
            [("A1", "Not Specified"), ("PROC 1 DIMM 12", ""), ("DIMM", "BANK 0"), ("DIMMé1", ""), ("", "")]
        {
            assert_eq!(of(place, bank), None, "{place} {bank}");
        }
        assert_eq!((of("Channel", ""), of("channel abc", ""), of("DIMM_A", "")), (None, None, None));
    }

    #[test]
    fn an_empty_channel_is_one_beside_used_ones_of_its_processor() {
        let table = |slots: &[(&str, u16)]| {
            memory(&slots.iter().flat_map(|(place, mib)| module(place, *mib, 1, 1)).collect::<Vec<u8>>())
        };
        let slots = table(&[
            ("P1-DIMMA1", 8),
            ("P1-DIMMA2", 0),
            ("P1-DIMMB1", 0),
            ("P1-DIMMB2", 0),
            ("P2-DIMMA1", 0),
            ("X1", 0),
        ]);
        let empty =
            |slots: &[Slot]| empty_channels(slots).iter().map(|channel| channel.name.clone()).collect::<Vec<_>>();
        // The second processor is not there.
        assert_eq!(empty(&slots), ["P1-DIMMB"]);
        assert_eq!(empty(&table(&[("DIMM_A1", 8), ("DIMM_B1", 8), ("DIMM_B2", 0)])), Vec::<String>::new());
    }

    #[test]
    fn modules_and_empty_slots_are_read() {
        let mut large = module("DIMM 3", 0x7fff, 3200, 2933);
        large[0x1c..0x20].copy_from_slice(&65_536u32.to_le_bytes());
        let other = [vec![1, 4, 0, 0], b"x\0y".to_vec(), vec![0, 0]].concat();
        let end = vec![127, 4, 0, 0, 0, 0];
        let table = [
            other,
            module("DIMM 1", 8192, 2400, 2400),
            module("DIMM 2", 0, 0, 0),
            large,
            end,
            module("DIMM 4", 1, 1, 1),
        ]
        .concat();
        let slots = memory(&table);
        assert_eq!(slots.iter().map(|slot| slot.mib).collect::<Vec<_>>(), [8192, 0, 65_536]);
        assert_eq!((slots[0].place.as_str(), slots[0].fastest_mts, slots[2].configured_mts), ("DIMM 1", 2400, 2933));
        for length in 0..table.len() {
            assert!(memory(&table[..length]).len() <= 3);
        }
        // What is kept of it has the same slots and no other text, and stays as it is.
        let kept = only_memory(&table);
        assert_eq!(memory(&kept), slots);
        assert_eq!(only_memory(&kept), kept);
        assert!(!kept.windows(5).any(|five| five == b"other") && table.windows(5).any(|five| five == b"other"));
        // So is a bank that says which channel it is, and no other.
        let banked = |bank: &str| {
            let mut table = module("DIMM 0", 8, 1, 1);
            table[0x11] = 1;
            let texts = format!("{bank}\0DIMM 0\0\0").into_bytes();
            [table[..0x28].to_vec(), texts].concat()
        };
        let channel = memory(&only_memory(&banked("P0 CHANNEL A")))[0].channel.clone().unwrap();
        assert_eq!((channel.socket.as_str(), channel.name.as_str()), ("p0", "P0 CHANNEL A"));
        for bank in ["BANK 0", "owner: P0 CHANNEL A"] {
            let kept = only_memory(&banked(bank));
            assert!(!kept.windows(4).any(|four| four == &bank.as_bytes()[..4]), "{bank}");
        }
        assert_eq!(only_memory(&[1, 2]), [127, 4, 0, 0, 0, 0]);
        assert_eq!(memory(&module("", 0xffff, 0, 0))[0].mib, 0);
        assert_eq!(memory(&module("", 0x8800, 0, 0))[0].mib, 2);
        assert!(memory(&[17, 0, 0, 0, 0, 0]).is_empty(), "a length of 0 ends it");
    }
}
