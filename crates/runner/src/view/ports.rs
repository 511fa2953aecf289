//! `show ports`: frames, rates and drivers' counters of each port and its receive queues.

use dataplane::Snapshot;
use dpdk::Port;
use serde_json::{json, Value};

use units::si_column as si;

use super::counters::Counters;
use crate::text::Columns;

/// Frames received, sent and refused by a port's queues, summed over lcores.
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

/// All ports and their receive queues.
pub(super) fn text(counters: &Counters<'_>) -> String {
    port_table(counters) + &queue_table(counters)
}

/// A line for each port.
pub(super) fn port_table(counters: &Counters<'_>) -> String {
    let Counters { info, earlier, now, seconds, .. } = counters;
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
    for (n, port) in counters.ports.iter().enumerate() {
        let (before, (rx, tx, refused)) = (counts(earlier, n), counts(now, n));
        let rate = |a: u64, b: u64| si(a.saturating_sub(b) as f64 / *seconds);
        let driver = port.stats().ok();
        let known = |field: Option<u64>| field.map_or("-".to_owned(), |v| v.to_string());
        table.row(&[
            &n.to_string(),
            port.name(),
            &link_text(port),
            &rx.to_string(),
            &tx.to_string(),
            &rate(rx, before.0),
            &rate(tx, before.1),
            &known(driver.map(|d| d.imissed)),
            &known(driver.map(|d| d.rx_nombuf)),
            &refused.to_string(),
            &info.macs[n].to_string(),
        ]);
    }
    table.text()
}

/// A line for each receive queue, below an empty line and a title.
pub(super) fn queue_table(counters: &Counters<'_>) -> String {
    let mut queues =
        Columns::new(&["<queue", "<lcore", "rx frames", "polls", "1", "2-3", "4-7", "8-15", "16-31", "32-63", "64"]);
    for (n, lcore) in counters.now.iter().enumerate() {
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

/// All ports with their receive queues and the drivers' own counters.
pub(super) fn json(counters: &Counters<'_>) -> Value {
    let Counters { info, earlier, now, seconds, .. } = counters;
    let port = |(n, port): (usize, &Port)| {
        let (before, (rx, tx, refused)) = (counts(earlier, n), counts(now, n));
        let rate = |a: u64, b: u64| a.saturating_sub(b) as f64 / *seconds;
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
            "mac": info.macs[n].to_string(),
            "mtu_bytes": info.mtu[n],
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
    counters.ports.iter().enumerate().map(port).collect::<Vec<_>>().into()
}
