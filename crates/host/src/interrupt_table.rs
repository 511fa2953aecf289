//! The kernel's tables with a column for each CPU: `/proc/interrupts`, `/proc/softirqs`.

use std::collections::BTreeMap;

/// A row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    /// What the row begins with: a number, or `LOC`.
    pub(crate) key: String,
    /// What raises it: of a numbered row its last word, otherwise its key.
    pub(crate) name: String,
    /// How often it came to each CPU.
    pub(crate) counts: BTreeMap<u32, u64>,
}

impl Row {
    /// Whether it is an interrupt with a number.
    pub(crate) fn is_numbered(&self) -> bool {
        self.key.parse::<u32>().is_ok()
    }
}

/// The rows that count by CPU; `ERR` and its like count for the machine and are left out.
pub(crate) fn rows(table: &str) -> Vec<Row> {
    let mut lines = table.lines();
    let head = lines.next().unwrap_or_default();
    let cpus: Vec<u32> =
        head.split_ascii_whitespace().filter_map(|word| word.strip_prefix("CPU")?.parse().ok()).collect();
    let row = |line: &str| {
        let (key, rest) = line.split_once(':')?;
        let mut words = rest.split_ascii_whitespace();
        let counts: BTreeMap<u32, u64> =
            cpus.iter().map_while(|&cpu| Some((cpu, words.next()?.parse().ok()?))).collect();
        let key = key.trim().to_owned();
        let row = Row { name: key.clone(), key, counts };
        let name = words.next_back().filter(|_| row.is_numbered()).map(str::to_owned);
        (row.counts.len() == cpus.len()).then(|| Row { name: name.unwrap_or_else(|| row.name.clone()), ..row })
    };
    lines.filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_named_and_odd_ones_left_out() {
        let table =
            "     CPU0   CPU2\n  4:    1   7  IR-IO-APIC 4-edge ttyS0\nLOC:  5 6 Local timer\n 26: 0 3 PCI-MSI \
                     1-edge eth0-rx-0\n 27: 0 3\nERR: 0\nodd\n";
        let rows = rows(table);
        let names: Vec<(&str, &str)> = rows.iter().map(|row| (row.key.as_str(), row.name.as_str())).collect();
        assert_eq!(names, [("4", "ttyS0"), ("LOC", "LOC"), ("26", "eth0-rx-0"), ("27", "27")]);
        assert_eq!((rows[2].counts[&2], rows[1].is_numbered(), rows[2].is_numbered()), (3, false, true));
        assert!(super::rows("").is_empty());
    }
}
