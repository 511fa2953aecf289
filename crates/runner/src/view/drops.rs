//! `show drops`: frames dropped by reason, and the functions' own counters.

use std::collections::BTreeMap;

use dataplane::Snapshot;
use serde_json::{json, Value};

use crate::text::Columns;

/// Drops and counters of all lcores together.
#[derive(Default)]
pub(super) struct DropTotals {
    /// By name: frames, and what happened to them.
    drops: BTreeMap<&'static str, (u64, &'static str)>,
    counters: Vec<(&'static str, u64)>,
    punted: u64,
    originated: u64,
    held: u64,
}

impl DropTotals {
    pub(super) fn of(lcores: &[Snapshot]) -> Self {
        let mut all = Self::default();
        for lcore in lcores {
            for (reason, n) in lcore.drops.iter().filter(|d| d.1 > 0) {
                all.drops.entry(reason.name()).or_insert((0, reason.describe())).0 += n;
            }
            for &(name, n) in &lcore.counters {
                match all.counters.iter_mut().find(|c| c.0 == name) {
                    Some(counter) => counter.1 += n,
                    None => all.counters.push((name, n)),
                }
            }
            all.punted += lcore.punted;
            all.originated += lcore.originated;
            all.held += lcore.held;
        }
        all
    }

    pub(super) fn json(&self) -> Value {
        let drops: serde_json::Map<_, _> =
            self.drops.iter().map(|(&name, &(n, _))| (name.to_owned(), n.into())).collect();
        let counters: serde_json::Map<_, _> =
            self.counters.iter().map(|&(name, n)| (name.to_owned(), n.into())).collect();
        json!({
            "drops": drops,
            "counters": counters,
            "punted_frames": self.punted,
            "originated_frames": self.originated,
            "held_frames": self.held,
        })
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        if self.drops.is_empty() {
            text.push_str("no frame was dropped\n");
        } else {
            let mut table = Columns::new(&["<drop reason", "frames", "<what happened"]);
            let mut drops: Vec<_> = self.drops.iter().collect();
            drops.sort_by_key(|(_, &(n, _))| std::cmp::Reverse(n));
            for (&name, &(n, why)) in drops {
                table.row(&[name, &n.to_string(), why]);
            }
            text.push_str(&table.text());
        }
        let own = [("punted to ourselves", self.punted), ("made here", self.originated), ("held", self.held)];
        let counted: Vec<_> = own.into_iter().chain(self.counters.iter().copied()).filter(|c| c.1 > 0).collect();
        if !counted.is_empty() {
            let mut table = Columns::new(&["<counter", "frames"]);
            for (name, n) in counted {
                table.row(&[name, &n.to_string()]);
            }
            text.push('\n');
            text.push_str(&table.text());
        }
        text
    }
}
