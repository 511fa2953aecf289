//! Answers of loggers as lines: JSON for scripts, tables for a pipe.

use std::time::Instant;

use flow::protocol::Row;
use serde_json::{json, Value};

use crate::columns::{destination, source};
use flow::watch::{
    board::{Board, State},
    poll::{Look, News},
    text::{five, protocol, span},
};
use runner::text::Columns;

/// One line of JSON: the answer of a logger, or why there is none.
pub fn json(address: &str, news: &News, now: Instant) -> String {
    let value = match news {
        News::Down(why, next) => json!({
            "logger": address,
            "state": "down",
            "why": why.text,
            "retry_s": next.saturating_duration_since(now).as_secs_f64(),
        }),
        News::Early(look) | News::Look(look) => looked(address, look),
    };
    value.to_string()
}

fn looked(address: &str, look: &Look) -> Value {
    let mut value = json!({
        "logger": address,
        "state": "connected",
        "name": look.name,
        "totals": look.totals,
    });
    let (name, answer) = match &look.page {
        Some(Ok(page)) => ("top", json!({ "flows": page.flows, "matching": page.matching })),
        Some(Err(why)) => ("top_error", json!(why)),
        None => return value,
    };
    value[name] = answer;
    value
}

/// Interfaces, table, export and largest flows of every logger that answers.
pub fn table(board: &Board) -> String {
    let mut out = String::new();
    for logger in &board.loggers {
        let (State::Connected, Some(look)) = (&logger.state, &logger.look) else { continue };
        if !out.is_empty() {
            out += "\n";
        }
        out += &of_look(&logger.address, look);
    }
    out
}

fn of_look(address: &str, look: &Look) -> String {
    let totals = &look.totals;
    let mut out = format!("{}  {address}  up {}\n", look.name, span((totals.uptime_s * 1e9) as u64));
    let mut ports = Columns::new(&[
        "port",
        "<name",
        "index",
        "<link",
        "packets/s",
        "bits/s",
        "packets",
        "bytes",
        "not IP",
        "malformed",
        "cut",
        "missed",
        "tx dropped",
    ]);
    for i in &totals.interfaces {
        let counts = [i.packets, i.bytes, i.not_ip, i.malformed, i.cut, i.missed, i.tx_dropped].map(|n| n.to_string());
        let [packets, bytes, not_ip, malformed, cut, missed, tx_dropped] = &counts;
        let link = if i.up { "up" } else { "down" };
        let [port, index] = [i.port.to_string(), i.index.to_string()];
        let [pps, bps] = [i.packet_rate, i.bit_rate].map(five);
        ports.row(&[
            &port, &i.name, &index, link, &pps, &bps, packets, bytes, not_ip, malformed, cut, missed, tx_dropped,
        ]);
    }
    out += &ports.text();
    let (t, e) = (&totals.table, &totals.export);
    out += &format!(
        "flows {} of {}  new/s {}  begun {}  refused packets {}  evicted {}\n",
        t.flows,
        t.capacity,
        five(t.new_rate),
        t.created,
        t.refused_packets,
        t.evicted
    );
    let [idle, active, end, forced, lack] = t.ended;
    out +=
        &format!("ended: idle {idle}  active {active}  end of flow {end}  forced {forced}  lack of resources {lack}\n");
    out += &format!("export: records {}  sent {}  dropped {}", e.records, e.sent, e.dropped);
    for (n, what) in [(e.uncertain, "uncertain"), (e.resent, "sent again")] {
        if n > 0 {
            out += &format!("  {what} {n}");
        }
    }
    out.push('\n');
    match &look.page {
        Some(Ok(page)) => out += &flows(&page.flows, totals.at),
        Some(Err(why)) => out += &format!("flows: {why}\n"),
        None => {}
    }
    out
}

fn flows(rows: &[Row], at: u64) -> String {
    let mut table =
        Columns::new(&["<source", "<destination", "<proto", "in", "packets", "bytes", "packets/s", "bits/s", "age"]);
    for row in rows {
        let flow = flow::watch::board::Flow { logger: 0, row, age: at.saturating_sub(row.record.first) };
        let (packets, bytes) = (flow.packets().to_string(), flow.bytes().to_string());
        let (ingress, proto) = (row.record.ingress.to_string(), protocol(row.record.key.protocol));
        let (pps, bps, age) = (five(row.packet_rate), five(row.bit_rate), span(flow.age));
        let (from, to) = (source(&flow), destination(&flow));
        table.row(&[&from, &to, &proto, &ingress, &packets, &bytes, &pps, &bps, &age]);
    }
    table.text()
}
