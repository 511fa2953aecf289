//! The last lines of `linerate flowlog` as figures.

use std::collections::BTreeMap;

/// What a flow logger says of its run when it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// Flows still in the table.
    pub left: u64,
    /// Flows that began.
    pub begun: u64,
    /// Records by the reason of their end.
    pub idle: u64,
    pub active: u64,
    pub end_of_flow: u64,
    pub forced: u64,
    pub lack: u64,
    /// Records exported and dropped, over all collectors.
    pub exported: u64,
    pub dropped: u64,
    /// Packets of flows that were not recorded and flows evicted, if the table was full.
    pub full: Option<(u64, u64)>,
    /// Over all ports: frames not IP, malformed, and missed.
    pub not_ip: u64,
    pub malformed: u64,
    pub missed: u64,
    /// Records, sent and dropped by collector or file.
    pub exports: BTreeMap<String, [u64; 3]>,
}

impl Ending {
    /// Reads it from all that the logger has printed.
    ///
    /// # Panics
    /// If the lines are not there.
    #[track_caller]
    pub fn of(output: &str) -> Self {
        let text = lines(output);
        let (totals, exports) = text.split_once("\nrecords: ").unwrap_or_else(|| panic!("no records in {output}"));
        let records = exports.lines().next().unwrap_or_default();
        let full = exports.lines().find(|line| line.contains("the table was full"));
        let ports: Vec<_> = exports.lines().filter(|line| line.contains(" not passed on")).collect();
        let over_ports = |what: &str| ports.iter().map(|line| before(line, what)).sum();
        let sink = |line: &str| {
            let (name, counts) = line.rsplit_once(": ")?;
            let counts = counts.contains(" dropped").then_some(counts)?;
            Some((name.to_owned(), [" records", " sent", " dropped"].map(|what| before(counts, what))))
        };
        Self {
            left: before(totals, " in a table for"),
            begun: before(totals, " begun"),
            idle: before(records, " idle"),
            active: before(records, " active"),
            end_of_flow: before(records, " end of flow"),
            forced: before(records, " forced"),
            lack: before(records, " lack of resources"),
            exported: before(records, " exported"),
            dropped: before(records, " dropped"),
            full: full.map(|line| (before(line, " packets of flows"), before(line, " flows evicted"))),
            not_ip: over_ports(" not IP"),
            malformed: over_ports(" malformed"),
            missed: over_ports(" missed"),
            exports: exports.lines().skip(1).filter_map(sink).collect(),
        }
    }
}

/// The lines themselves, from the totals of the table on.
#[track_caller]
pub fn lines(output: &str) -> &str {
    let at = output.rfind("\nflows: ").unwrap_or_else(|| panic!("no totals in {output}"));
    output[at..].trim_start()
}

/// The number before a word.
#[track_caller]
fn before(line: &str, word: &str) -> u64 {
    let (start, _) = line.split_once(word).unwrap_or_else(|| panic!("no {word:?} in {line}"));
    let number = start.rsplit(' ').next().unwrap_or_default();
    number.parse().unwrap_or_else(|e| panic!("{number:?} before {word:?}: {e}"))
}
