//! Counters of a `linerate forward` behind the tester's ports, read over its control socket.

use std::path::{Path, PathBuf};

use measure::trial::{DutReport, NodeReport};
use serde_json::Value;

use control::{Client, Request};
use failure::Failure;

/// A data plane whose counters are read before and after each trial. Each reading has a connection of its own, because the
/// data plane disconnects idle clients.
pub struct Watched(PathBuf);

impl Watched {
    /// Connects by name, or by the path of the socket.
    ///
    /// # Errors
    ///
    /// (machine) when no data plane answers there.
    pub fn connect(which: &Path) -> Result<Self, Failure> {
        let watched = Self(which.to_owned());
        watched.client()?;
        Ok(watched)
    }

    fn client(&self) -> Result<Client, Failure> {
        let (name, socket) = name_or_socket(&self.0);
        Client::connect("forward", name, socket)
    }

    /// What all its lcores together have counted since its start.
    ///
    /// # Errors
    ///
    /// (machine, failed) when it is gone or does not answer.
    pub fn count(&self) -> Result<DutReport, Failure> {
        let show = |what: &str| Request::Show { what: what.into(), json: true, limit: None, interval_s: Some(0.0) };
        let mut client = self.client()?;
        let runtime = client.ask(&show("runtime"), &[])?;
        let drops = client.ask(&show("drops"), &[])?;
        Ok(report(&runtime["total"], &drops))
    }
}

/// What `--dut-control` names: an instance, or the socket with this path.
fn name_or_socket(which: &Path) -> (Option<&str>, Option<&Path>) {
    match which.to_str() {
        Some(name) if !name.contains('/') => (Some(name), None),
        _ => (None, Some(which)),
    }
}

/// Rows of the runtime table that are not nodes.
const NOT_NODES: [&str; 3] = ["loop", "idle", "rest"];

fn report(total: &Value, drops: &Value) -> DutReport {
    let number = |value: &Value, key: &str| value[key].as_u64().unwrap_or(0);
    let rows: Vec<&Value> = total["nodes"].as_array().into_iter().flatten().collect();
    let name = |row: &Value| row["name"].as_str().unwrap_or_default().to_owned();
    let row = |wanted: &str| rows.iter().find(|row| name(row) == wanted).copied().unwrap_or(&Value::Null);
    let node = |row: &&&Value| NodeReport {
        name: name(row),
        calls: number(row, "calls"),
        vectors: number(row, "vectors"),
        clocks: number(row, "clocks"),
    };
    let nodes: Vec<NodeReport> =
        rows.iter().filter(|row| !NOT_NODES.contains(&name(row).as_str())).map(|row| node(&row)).collect();
    let map = |key: &str| {
        let object = drops[key].as_object().into_iter().flatten();
        object.filter_map(|(name, n)| Some((name.clone(), n.as_u64()?))).collect()
    };
    DutReport {
        rx_frames: number(total, "rx_frames"),
        tx_frames: number(total, "tx_frames"),
        held_frames: number(drops, "held_frames"),
        punted_frames: number(drops, "punted_frames"),
        originated_frames: number(drops, "originated_frames"),
        drops: map("drops"),
        counters: map("counters"),
        busy_polls: number(row("loop"), "calls"),
        idle_polls: number(row("idle"), "calls"),
        busy_clocks: nodes.iter().map(|n| n.clocks).sum::<u64>() + number(row("loop"), "clocks"),
        idle_clocks: number(row("idle"), "clocks") + number(row("rest"), "clocks"),
        nodes,
    }
}

/// What was counted between two reports.
pub fn since(now: &DutReport, before: &DutReport) -> DutReport {
    let minus = |a: u64, b: u64| a.saturating_sub(b);
    let moved = |a: &std::collections::BTreeMap<String, u64>, b: &std::collections::BTreeMap<String, u64>| {
        a.iter().map(|(name, &n)| (name.clone(), minus(n, b.get(name).copied().unwrap_or(0)))).collect()
    };
    let node = |n: &NodeReport| {
        let old = before.nodes.iter().find(|old| old.name == n.name).cloned().unwrap_or_default();
        NodeReport {
            name: n.name.clone(),
            calls: minus(n.calls, old.calls),
            vectors: minus(n.vectors, old.vectors),
            clocks: minus(n.clocks, old.clocks),
        }
    };
    let mut drops: std::collections::BTreeMap<String, u64> = moved(&now.drops, &before.drops);
    drops.retain(|_, n| *n > 0);
    DutReport {
        rx_frames: minus(now.rx_frames, before.rx_frames),
        tx_frames: minus(now.tx_frames, before.tx_frames),
        held_frames: now.held_frames,
        punted_frames: minus(now.punted_frames, before.punted_frames),
        originated_frames: minus(now.originated_frames, before.originated_frames),
        drops,
        counters: moved(&now.counters, &before.counters),
        nodes: now.nodes.iter().map(node).collect(),
        busy_polls: minus(now.busy_polls, before.busy_polls),
        idle_polls: minus(now.idle_polls, before.idle_polls),
        busy_clocks: minus(now.busy_clocks, before.busy_clocks),
        idle_clocks: minus(now.idle_clocks, before.idle_clocks),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_has_a_slash_and_a_name_has_none() {
        assert_eq!(name_or_socket(Path::new("router")), (Some("router"), None));
        let socket = Path::new("./router");
        assert_eq!(name_or_socket(socket), (None, Some(socket)));
    }

    #[test]
    fn a_report_is_the_runtime_table_and_the_drops() {
        let total = |n: u64| {
            json!({ "rx_frames": 10 * n, "tx_frames": 9 * n, "nodes": [
                { "name": "l3-input", "calls": n, "vectors": 10 * n, "clocks": 100 * n },
                { "name": "loop", "calls": 2 * n, "vectors": 10 * n, "clocks": 7 * n },
                { "name": "idle", "calls": 5, "vectors": 0, "clocks": 50 * n },
                { "name": "rest", "calls": n, "vectors": 0, "clocks": 3 * n },
            ] })
        };
        let drops = |n: u64| json!({ "drops": { "no-route": n, "ttl": 5 }, "counters": { "echo-replies": 0 }, "held_frames": 1 });
        let (before, now) = (report(&total(1), &drops(0)), report(&total(3), &drops(2)));
        let moved = since(&now, &before);
        assert_eq!((moved.rx_frames, moved.tx_frames, moved.held_frames), (20, 18, 1));
        assert_eq!((moved.busy_clocks, moved.idle_clocks, moved.busy_polls, moved.idle_polls), (214, 106, 4, 0));
        assert_eq!(moved.nodes, [NodeReport { name: "l3-input".into(), calls: 2, vectors: 20, clocks: 200 }]);
        assert_eq!(moved.drops.into_iter().collect::<Vec<_>>(), [("no-route".to_owned(), 2)]);
        // Answers of another program count nothing.
        assert_eq!(report(&json!(null), &json!([1])), DutReport::default());
    }
}
