//! Memory modules in the firmware's own table (SMBIOS 3, type 17).

/// A slot for a memory module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slot {
    /// Its name on the board.
    pub(crate) place: String,
    /// Size, MiB; 0 if it is empty.
    pub(crate) mib: u64,
    /// Transfers a second that the module could do, millions; 0 if it does not say.
    pub(crate) fastest_mts: u64,
    /// What it was set to.
    pub(crate) configured_mts: u64,
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
        fixed[0x10] = u8::from(!slot.place.is_empty());
        kept.extend(fixed);
        kept.extend(slot.place.bytes());
        // Texts end with two zeros, also where there is none.
        kept.extend([0, 0]);
    }
    kept.extend([127, 4, 0, 0, 0, 0]);
    kept
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
    let name = usize::from(*fixed.get(0x10)?);
    let place = name.checked_sub(1).and_then(|n| texts.split(|&byte| byte == 0).nth(n)).unwrap_or_default();
    Some(Slot {
        place: String::from_utf8_lossy(place).trim().to_owned(),
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
        assert_eq!(only_memory(&[1, 2]), [127, 4, 0, 0, 0, 0]);
        assert_eq!(memory(&module("", 0xffff, 0, 0))[0].mib, 0);
        assert_eq!(memory(&module("", 0x8800, 0, 0))[0].mib, 2);
        assert!(memory(&[17, 0, 0, 0, 0, 0]).is_empty(), "a length of 0 ends it");
    }
}
