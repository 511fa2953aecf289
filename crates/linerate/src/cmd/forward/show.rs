//! What `forward show`, the live view and the last words say.

use std::collections::BTreeMap;

use dataplane::{
    runtime::{CoreRuntime, NodeRow, Runtime},
    Snapshot,
};
use dpdk::Port;
use serde_json::{json, Value};
use units::si_column as si;

use super::{
    desk::Desk,
    lists,
    text::Columns,
    view::{View, KEPT, NODES, QUEUES},
};

/// Answers `show what`, as data or as text.
pub fn answer(desk: &Desk, what: &str, json: bool, limit: usize, interval_s: f64) -> Result<Value, String> {
    match what {
        "runtime" => {
            let runtime = desk.runtime(interval_s);
            if json {
                serde_json::to_value(&runtime).map_err(|e| e.to_string())
            } else {
                Ok(runtime_text(desk, &runtime).into())
            }
        }
        "ports" => Ok(if json { ports_json(desk, interval_s) } else { ports_text(desk, interval_s).into() }),
        "drops" => {
            let all = Sum::of(&desk.snapshots());
            Ok(if json { all.drops_json() } else { all.drops_text().into() })
        }
        _ => lists::answer(desk, what, json, limit),
    }
}

/// What all lcores counted together.
#[derive(Default)]
struct Sum {
    drops: BTreeMap<&'static str, (u64, &'static str)>,
    counters: Vec<(&'static str, u64)>,
    punted: u64,
    originated: u64,
    held: u64,
}

impl Sum {
    fn of(lcores: &[Snapshot]) -> Self {
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

    fn drops_json(&self) -> Value {
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

    fn drops_text(&self) -> String {
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
        let told: Vec<_> = [("punted to ourselves", self.punted), ("made here", self.originated), ("held", self.held)]
            .into_iter()
            .chain(self.counters.iter().copied())
            .filter(|c| c.1 > 0)
            .collect();
        if !told.is_empty() {
            let mut table = Columns::new(&["<counter", "frames"]);
            for (name, n) in told {
                table.row(&[name, &n.to_string()]);
            }
            text.push('\n');
            text.push_str(&table.text());
        }
        text
    }
}

fn runtime_text(desk: &Desk, runtime: &Runtime) -> String {
    let lcores = runtime.lcores.iter().enumerate();
    lcores.map(|(n, core)| lcore_text(desk, n, core) + &core_text(core, runtime.tsc_hz) + "\n").collect()
}

/// What an lcore polls, and its rates.
fn lcore_text(desk: &Desk, n: usize, core: &CoreRuntime) -> String {
    let cpu = desk.site.cpus.get(n).map_or(String::new(), |cpu| format!(" (CPU {cpu})"));
    let queues = desk.site.polled.iter().filter(|p| p.lcore == n).map(|p| format!("{}:{}", p.port, p.queue));
    format!(
        "lcore {}{cpu}, queues {}, over {:.1} s: in {}pps, out {}pps, drop {}pps, punt {}pps\n",
        n + 1,
        queues.collect::<Vec<_>>().join(" "),
        core.duration_s,
        si(core.rx_fps),
        si(core.tx_fps),
        si(core.drop_fps),
        si(core.punt_fps),
    )
}

fn core_text(core: &CoreRuntime, hz: u64) -> String {
    let mut table = Columns::new(&[
        "<node",
        "calls",
        "vectors",
        "suspends",
        "clocks/vector",
        "vectors/call",
        "clocks/call",
        "core %",
    ]);
    for row in &core.nodes {
        let NodeRow { calls, vectors, .. } = row;
        let of = |n: u64, value: f64| if n == 0 { "-".to_owned() } else { format!("{value:.1}") };
        // Called and never timed: nothing is known, which is not nothing.
        let timed = |n: u64, value: f64| if row.clocks == 0 { "-".to_owned() } else { of(n, value) };
        table.row(&[
            row.name,
            &calls.to_string(),
            &vectors.to_string(),
            &row.suspends.map_or("-".to_owned(), |s| s.to_string()),
            &timed(*vectors, row.clocks_per_vector),
            &of(*vectors, row.vectors_per_call),
            &timed(*calls, row.clocks_per_call),
            &if *calls > 0 { timed(*calls, 100.0 * row.share) } else { "0.0".to_owned() },
        ]);
    }
    format!(
        "{}{:.1} clocks/packet x {}pps = {:.2} of {:.2} GHz; {:.1} % busy, {:.1} vectors a busy poll, {}polls/s\n",
        table.text(),
        core.cycles_per_frame,
        si(core.rx_fps),
        core.busy_hz / 1e9,
        hz as f64 / 1e9,
        100.0 * core.busy_share,
        core.frames_per_busy_poll,
        si(core.polls_per_s),
    )
}

/// Frames received and sent by a port's queues, summed over lcores.
fn counts(lcores: &[Snapshot], port: usize) -> (u64, u64, u64) {
    let rx = lcores.iter().flat_map(|l| &l.rx).filter(|r| r.port == port).map(|r| r.frames).sum();
    let tx = lcores.iter().filter_map(|l| l.tx.get(port)).map(|t| t.frames).sum();
    let refused = lcores.iter().filter_map(|l| l.tx.get(port)).map(|t| t.refused).sum();
    (rx, tx, refused)
}

fn link_text(port: &Port) -> String {
    let link = port.link();
    match (link.up, link.bps) {
        (false, _) => "down".into(),
        (true, Some(bps)) => format!("up {}bps", si(bps as f64)),
        (true, None) => "up".into(),
    }
}

fn ports_text(desk: &Desk, interval_s: f64) -> String {
    port_text(desk, interval_s) + &queues_text(desk)
}

fn port_text(desk: &Desk, interval_s: f64) -> String {
    let (earlier, now, seconds) = desk.span(interval_s);
    let mut table = Columns::new(&[
        "port",
        "<name",
        "<link",
        "rx frames",
        "tx frames",
        "rx pps",
        "tx pps",
        "missed",
        "no buffer",
        "tx refused",
        "<MAC",
    ]);
    for (n, port) in desk.ports.iter().enumerate() {
        let (before, (rx, tx, refused)) = (counts(&earlier, n), counts(&now, n));
        let rate = |a: u64, b: u64| si(a.saturating_sub(b) as f64 / seconds);
        let driver = port.stats().ok();
        let of = |field: Option<u64>| field.map_or("-".to_owned(), |v| v.to_string());
        table.row(&[
            &n.to_string(),
            port.name(),
            &link_text(port),
            &rx.to_string(),
            &tx.to_string(),
            &rate(rx, before.0),
            &rate(tx, before.1),
            &of(driver.map(|d| d.imissed)),
            &of(driver.map(|d| d.rx_nombuf)),
            &refused.to_string(),
            &desk.site.macs[n].to_string(),
        ]);
    }
    table.text()
}

fn queues_text(desk: &Desk) -> String {
    let mut queues =
        Columns::new(&["<queue", "<lcore", "rx frames", "polls", "1", "2-3", "4-7", "8-15", "16-31", "32-63", "64"]);
    for (n, lcore) in desk.snapshots().iter().enumerate() {
        for input in &lcore.rx {
            let mut row =
                vec![format!("{}:{}", input.port, input.queue), (n + 1).to_string(), input.frames.to_string()];
            row.push(input.polls().to_string());
            row.extend(input.bursts.iter().map(u64::to_string));
            queues.row(&row.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }
    format!("\nreceive queues, and how many polls found how many frames\n{}", queues.text())
}

fn ports_json(desk: &Desk, interval_s: f64) -> Value {
    let (earlier, now, seconds) = desk.span(interval_s);
    let port = |(n, port): (usize, &Port)| {
        let (before, (rx, tx, refused)) = (counts(&earlier, n), counts(&now, n));
        let rate = |a: u64, b: u64| a.saturating_sub(b) as f64 / seconds;
        let link = port.link();
        let driver = port.stats().ok();
        let xstats: serde_json::Map<_, _> =
            port.xstats().unwrap_or_default().into_iter().map(|(name, value)| (name, value.into())).collect();
        let queues: Vec<_> = now
            .iter()
            .enumerate()
            .flat_map(|(l, lcore)| lcore.rx.iter().filter(|r| r.port == n).map(move |r| (l + 1, r)))
            .map(|(lcore, r)| {
                json!({ "queue": r.queue, "lcore": lcore, "rx_frames": r.frames, "polls": r.polls(), "bursts": r.bursts })
            })
            .collect();
        json!({
            "port": n,
            "name": port.name(),
            "driver": port.driver(),
            "mac": desk.site.macs[n].to_string(),
            "mtu_bytes": desk.site.mtu[n],
            "link_up": link.up,
            "link_bps": link.bps,
            "rx_frames": rx,
            "tx_frames": tx,
            "rx_fps": rate(rx, before.0),
            "tx_fps": rate(tx, before.1),
            "tx_refused_frames": refused,
            "driver_missed_frames": driver.map(|d| d.imissed),
            "driver_no_buffer": driver.map(|d| d.rx_nombuf),
            "driver_rx_errors": driver.map(|d| d.ierrors),
            "driver_tx_errors": driver.map(|d| d.oerrors),
            "queues": queues,
            "xstats": xstats,
        })
    };
    desk.ports.iter().enumerate().map(port).collect::<Vec<_>>().into()
}

/// The live view: ports, where the cycles go, and what was dropped.
pub fn live(desk: &Desk) -> View {
    let runtime = desk.runtime(1.0);
    let mut view =
        View::new(format!("linerate {}, {:.0} s; Ctrl-C ends it", desk.site.title, desk.elapsed().as_secs_f64()));
    view.add(KEPT, "\n");
    view.add(KEPT, &port_text(desk, 1.0));
    view.add(QUEUES, &queues_text(desk));
    view.add(KEPT, "\n");
    for (n, core) in runtime.lcores.iter().enumerate() {
        view.add(KEPT, &lcore_text(desk, n, core));
        let text = core_text(core, runtime.tsc_hz);
        for (line, text) in text.lines().enumerate() {
            // Between the names of the columns and the sum.
            view.add(if (1..=core.nodes.len()).contains(&line) { NODES } else { KEPT }, text);
        }
        view.add(KEPT, "\n");
    }
    view.add(KEPT, &Sum::of(&desk.snapshots()).drops_text());
    view
}

/// The counters since the start, as data.
pub fn total(desk: &Desk) -> Result<Value, String> {
    let runtime = serde_json::to_value(desk.runtime(0.0)).map_err(|e| e.to_string())?;
    let all = Sum::of(&desk.snapshots());
    let mut value = json!({ "function": desk.site.function, "ports": ports_json(desk, 0.0), "runtime": runtime });
    if let (Value::Object(value), Value::Object(drops)) = (&mut value, all.drops_json()) {
        value.extend(drops);
    }
    Ok(value)
}

/// The counters since the start, as text.
pub fn summary(desk: &Desk) -> String {
    let runtime = desk.runtime(0.0);
    format!("{}\n{}{}", ports_text(desk, 0.0), runtime_text(desk, &runtime), Sum::of(&desk.snapshots()).drops_text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_never_timed_has_no_clocks_to_show() {
        let row = |name, calls, clocks| NodeRow { name, calls, vectors: calls, clocks, ..NodeRow::default() };
        let timed = NodeRow { clocks_per_vector: 20.0, clocks_per_call: 20.0, share: 0.5, ..row("timed", 2, 40) };
        let nodes = vec![timed, row("untimed", 2, 0), row("uncalled", 0, 0)];
        let text = core_text(&CoreRuntime { nodes, ..CoreRuntime::default() }, 1000);
        let cells: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(cells[1], ["timed", "2", "2", "-", "20.0", "0.0", "20.0", "50.0"]);
        assert_eq!(cells[2], ["untimed", "2", "2", "-", "-", "0.0", "-", "-"]);
        assert_eq!(cells[3], ["uncalled", "0", "0", "-", "-", "-", "-", "0.0"]);
    }
}
