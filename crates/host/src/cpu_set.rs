//! Sets of CPUs as the kernel writes them.

use std::collections::BTreeSet;

use crate::cpu_list::parse_cpu_list;

/// Some CPUs, by number.
pub type CpuSet = BTreeSet<u32>;

/// Reads a list such as `0-3,8`. What is not a list gives as much as could be read.
pub fn from_list(text: &str) -> CpuSet {
    parse_cpu_list(text).into_iter().collect()
}

/// Reads a number or a range that a person wrote: `3`, `1-3`.
///
/// # Errors
///
/// It is neither; the text says what is legal.
pub fn parse(text: &str) -> Result<CpuSet, String> {
    let cpus = from_list(text);
    match cpus.is_empty() || text.chars().any(|c| !c.is_ascii_digit() && c != '-') {
        true => Err("must be CPUs, such as 1,3 or 1-3".to_owned()),
        false => Ok(cpus),
    }
}

/// Writes a list such as `0-3,8`; an empty one is empty.
pub fn to_list(cpus: &CpuSet) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &cpu in cpus {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => runs.push((cpu, cpu)),
        }
    }
    let run = |(first, last): (u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    runs.into_iter().map(run).collect::<Vec<_>>().join(",")
}

/// Reads a mask as `/proc/irq/*/smp_affinity` has it: `000,0000000f`. `None` if it is not one.
pub fn from_mask(text: &str) -> Option<CpuSet> {
    let digits: String = text.trim().trim_start_matches("0x").chars().filter(|c| *c != ',').collect();
    let mut cpus = CpuSet::new();
    for (place, digit) in digits.chars().rev().enumerate().take(1024) {
        let digit = digit.to_digit(16)?;
        cpus.extend((0..4).filter(|bit| digit >> bit & 1 == 1).map(|bit| place as u32 * 4 + bit));
    }
    (!digits.is_empty()).then_some(cpus)
}

/// Writes a mask in groups of eight digits: `ff,ffffffff`.
pub fn to_mask(cpus: &CpuSet) -> String {
    let highest = cpus.last().copied().unwrap_or(0);
    let word = |n: u32| (0..32).filter(|bit| cpus.contains(&(n * 32 + bit))).fold(0u32, |word, bit| word | 1 << bit);
    let top = highest / 32;
    let mut text = format!("{:x}", word(top));
    for n in (0..top).rev() {
        text.push_str(&format!(",{:08x}", word(n)));
    }
    text
}

/// Writes a mask in one number, as Open vSwitch and `taskset` take it: `3c`.
pub fn to_hex(cpus: &CpuSet) -> String {
    to_mask(cpus).replace(',', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_masks_go_both_ways() {
        for (list, mask) in [
            ("", "0"),
            ("0", "1"),
            ("2-5", "3c"),
            ("0,22", "400001"),
            ("1-3,31-33", "3,8000000e"),
            ("64", "1,00000000,00000000"),
        ] {
            let cpus = from_list(list);
            assert_eq!(to_list(&cpus), list);
            assert_eq!(to_mask(&cpus), mask);
            assert_eq!(from_mask(mask), Some(cpus));
        }
        assert_eq!(from_mask("000,000fffff\n").map(|cpus| to_list(&cpus)).as_deref(), Some("0-19"));
        assert_eq!(from_mask("0x6"), Some(from_list("1-2")));
        for wrong in ["", "g", "1 2"] {
            assert_eq!(from_mask(wrong), None, "{wrong}");
        }
        assert_eq!(to_hex(&from_list("1-3,31-33")), "38000000e");
        assert_eq!(parse("1-3"), Ok(from_list("1-3")));
        for wrong in ["", "1 2", "a", "3-1", "1-", "-1", "1:2"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
