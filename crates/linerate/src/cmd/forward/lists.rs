//! The tables of a data plane, as `forward show` has them.

use dataplane::{
    router::RouteRow,
    spec::FunctionKind,
    tables::{Adjacency, Endpoint, Next, Tag},
    Plane,
};
use packet::MacAddr;
use serde_json::{json, Value};

use super::{desk::Desk, text::Columns};

/// Answers `show what` for a table, at most `limit` rows of it.
pub fn answer(desk: &Desk, what: &str, json: bool, limit: usize) -> Result<Value, String> {
    let Some(plane) = &desk.plane else {
        return Err(format!("show {what}: a {} has runtime, ports and drops to show", desk.site.function));
    };
    let (rows, columns): (Rows, &[&str]) = match what {
        "interfaces" => (interfaces(plane), &["<link", "<MAC", "mtu_bytes", "<addresses"]),
        "routes" => (routes(plane, limit), &["<prefix", "<origin", "<paths", "<next_hops"]),
        "neighbours" => (neighbours(plane), &["<address", "<MAC", "<link", "<state", "age_s"]),
        "labels" => (labels(plane), &["label", "<action"]),
        "networks" => (networks(plane), &["vni", "<local", "<access", "udp_port", "<learn", "<remotes"]),
        "fdb" => (stations(plane, desk.lcore_seconds(), limit), &["<network", "<MAC", "<behind", "age_s"]),
        _ => {
            return Err(format!(
                "show {what}: must be runtime, ports, drops, interfaces, routes, neighbours, labels, networks or fdb"
            ))
        }
    };
    let Rows { rows, of } = rows;
    let shown = rows.len().min(limit);
    if json {
        let key = |name: &str| name.trim_start_matches('<').to_lowercase();
        let object = |row: &Vec<Value>| -> Value {
            columns.iter().map(|name| key(name)).zip(row.iter().cloned()).collect::<serde_json::Map<_, _>>().into()
        };
        return Ok(
            json!({ "rows": rows.iter().take(limit).map(object).collect::<Vec<_>>(), "shown": shown, "of": of }),
        );
    }
    let names: Vec<String> = columns.iter().map(|name| name.replace('_', " ")).collect();
    let mut table = Columns::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
    for row in rows.iter().take(limit) {
        let cells: Vec<String> = row.iter().map(cell).collect();
        table.row(&cells.iter().map(String::as_str).collect::<Vec<_>>());
    }
    let mut text = if rows.is_empty() { format!("no {what}\n") } else { table.text() };
    if of > shown {
        text.push_str(&format!("{shown} of {of} shown; more with --limit N\n"));
    }
    if what == "routes" {
        let counts = plane.counts();
        text.push_str(&format!(
            "{} IPv4 prefixes ({:?}, room for {}), {} IPv6 ({:?}, room for {}), {} adjacencies, {} ECMP groups\n",
            counts.ip4,
            counts.fib4.0,
            counts.fib4.1,
            counts.ip6,
            counts.fib6.0,
            counts.fib6.1,
            counts.adjacencies,
            counts.groups
        ));
    }
    Ok(text.into())
}

/// Rows that may be fewer than there are.
struct Rows {
    rows: Vec<Vec<Value>>,
    of: usize,
}

impl Rows {
    fn all(rows: impl Iterator<Item = Vec<Value>>) -> Self {
        let rows: Vec<_> = rows.collect();
        Self { of: rows.len(), rows }
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(cell).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

fn strings<T: ToString>(items: impl IntoIterator<Item = T>) -> Value {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().into()
}

fn link(port: u16, vlan: Option<u16>) -> String {
    vlan.map_or_else(|| port.to_string(), |vid| format!("{port}.{vid}"))
}

fn interfaces(plane: &Plane) -> Rows {
    Rows::all(plane.router().interfaces().map(|(_, i)| {
        let v4 = i.ip4.iter().map(|(addr, len)| format!("{addr}/{len}"));
        let v6 = i.ip6.iter().map(|(addr, len)| format!("{addr}/{len}"));
        vec![link(i.port, i.vlan).into(), i.mac.to_string().into(), i.mtu.into(), strings(v4.chain(v6))]
    }))
}

/// Where frames of an adjacency go, in words.
fn hop(a: &Adjacency) -> String {
    let mac: [u8; 6] = std::array::from_fn(|i| a.macs[i]);
    let on = match a.tag {
        Tag::Vid(vid) => format!("port {}.{vid}", a.port),
        Tag::Keep | Tag::None => format!("port {}", a.port),
    };
    match a.next {
        Next::Forward => format!("{on} to {}", MacAddr(mac)),
        Next::Drop(reason) => format!("drop ({})", reason.name()),
        Next::Local => "ourselves".into(),
        Next::Glean => format!("{on}, each host by itself"),
        Next::Unresolved => format!("{on}, MAC address not known yet"),
    }
}

fn routes(plane: &Plane, limit: usize) -> Rows {
    let counts = plane.counts();
    let row = |r: RouteRow<'_>| {
        vec![r.prefix.to_string().into(), r.origin.name().into(), strings(r.paths), strings(r.hops.iter().map(hop))]
    };
    Rows { rows: plane.routes().take(limit).map(row).collect(), of: counts.ip4 + counts.ip6 }
}

fn neighbours(plane: &Plane) -> Rows {
    Rows::all(plane.neighbours().map(|n| {
        vec![
            n.addr.to_string().into(),
            n.mac.map(|mac| mac.to_string()).into(),
            n.link.to_string().into(),
            format!("{:?}", n.state).to_lowercase().into(),
            n.age.map(|age| age.as_secs()).into(),
        ]
    }))
}

fn labels(plane: &Plane) -> Rows {
    Rows::all(plane.router().labels().map(|route| {
        let text = route.to_string();
        let action = text.split_once(' ').map_or("", |(_, action)| action);
        vec![route.label.into(), action.into()]
    }))
}

fn networks(plane: &Plane) -> Rows {
    let overlay = plane.router().overlay_config();
    Rows::all(overlay.networks.iter().map(|n| {
        let configured = overlay.remotes.iter().filter(|r| r.vni == n.vni).map(|r| r.addr.to_string());
        let learned = overlay.learned.iter().filter(|r| r.vni == n.vni).map(|r| format!("{} (learned)", r.addr));
        vec![
            n.vni.into(),
            n.local.to_string().into(),
            strings(&n.access),
            n.udp_port.into(),
            (if n.learn { "on" } else { "off" }).into(),
            strings(configured.chain(learned)),
        ]
    }))
}

fn stations(plane: &Plane, now: u32, limit: usize) -> Rows {
    let fdb = plane.fdb();
    let vxlan = plane.kind() == FunctionKind::Vxlan;
    let overlay = plane.tables().overlay.clone();
    let networks = plane.router().overlay_config().networks;
    let row = |e: dataplane::fdb::Entry| {
        let network: Value = if vxlan {
            networks.iter().find(|n| overlay.domain_of(n.vni) == Some(e.domain)).map(|n| n.vni).into()
        } else if e.domain == 0 {
            "untagged".into()
        } else {
            format!("VLAN {}", e.domain).into()
        };
        let behind = match overlay.endpoint(e.endpoint).filter(|_| vxlan) {
            Some(Endpoint::Tunnel(addr)) => format!("tunnel to {addr}"),
            Some(Endpoint::Access(link)) => format!("link {link}"),
            None => format!("port {}", e.endpoint),
        };
        vec![network, e.mac.to_string().into(), behind.into(), e.age_s.into()]
    };
    Rows { rows: fdb.entries(now).take(limit).map(row).collect(), of: fdb.len(now) }
}
