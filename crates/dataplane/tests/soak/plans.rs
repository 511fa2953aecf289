//! Rich configurations of each function between three ports, and changes to make to them under way.

use dataplane::{
    model::{Item, Op},
    spec::{FunctionKind, PlaneSpec},
    Plane,
};

use super::{dice::Dice, frames::station};

/// What routers have, whatever else they do.
const ROUTER: &str = r#"
addresses = [
    "0 10.0.0.1/24", "0 2001:db8::1/64", "1 10.0.1.1/24", "1 2001:db8:1::1/64", "2 10.0.2.1/24", "2 2001:db8:2::1/64",
    "1.100 10.1.0.1/24", "1.100 2001:db8:100::1/64", "2.200 10.2.0.1/24", "2.200 2001:db8:200::1/64",
]
neighbours = [
    "0 10.0.0.2 02:00:00:00:00:02", "0 10.0.0.3 02:00:00:00:00:03", "0 2001:db8::2 02:00:00:00:00:02",
    "1 10.0.1.2 02:00:00:00:01:02", "1 10.0.1.4 02:00:00:00:01:04", "1 2001:db8:1::2 02:00:00:00:01:02",
    "2 10.0.2.2 02:00:00:00:02:02", "2 2001:db8:2::2 02:00:00:00:02:02", "2 2001:db8:2::5 02:00:00:00:02:05",
    "1.100 10.1.0.2 02:00:00:00:01:02", "2.200 10.2.0.2 02:00:00:00:02:02", "2.200 2001:db8:200::2 02:00:00:00:02:02",
]
routes = [
    "198.18.0.0/16 via 10.0.0.2 via 10.0.1.2 weight 3 via 10.1.0.2 via 10.0.2.9",
    "198.19.0.0/16 port 2 mac 02:00:00:00:02:03",
    "198.20.0.0/16 via 10.0.1.2 labels 16/17 port 2.200 mac 02:00:00:00:02:02 labels 1000/2/18/19 weight 2",
    "198.21.0.0/16 drop",
    "198.22.0.0/16 via 10.0.2.77",
    "198.23.0.0/16 port 1.100",
    "192.0.2.0/24 port 0 mac 02:00:00:00:00:05 from 02:00:00:00:00:99",
    "192.0.2.9/32 drop",
    "2001:db8:18::/48 via 2001:db8::2 via 2001:db8:1::2 via 2001:db8:200::2 weight 2",
    "2001:db8:19::/48 port 2 mac 02:00:00:00:02:03 labels 20",
    "2001:db8:20::/48 via 2001:db8:2::2 labels 0/17",
    "2001:db8:21::/48 drop",
    "2001:db8:22::/48 via 2001:db8:1::77",
]
neighbour_age = "2s"
"#;

const LABELS: &str = r#"
labels = [
    "16 swap 17 port 1 mac 02:00:00:00:01:02", "17 swap 16 via 10.0.0.2", "18 swap 1000 via 10.0.2.2 labels 16/17/18/19",
    "19 pop port 2.200 mac 02:00:00:00:02:02", "20 pop via 10.0.1.2", "21 lookup", "22 drop",
    "23 swap implicit-null via 10.0.0.3", "24 swap 0 via 10.0.2.77", "25 swap 2 via 2001:db8:2::2",
    "1000 lookup", "1048575 pop via 10.1.0.2 labels 30",
]
"#;

const OVERLAY: &str = r#"
networks = [
    "10 local 10.0.1.1 access 0.30,2.30", "20 local 2001:db8:1::1 access 0.31,1.31,2.31", "0 local 10.0.2.1 access 0.7",
    "30 local 10.0.0.1 access 2.7 port 8472 learn off",
]
remotes = [
    "10 10.0.1.2", "10 10.0.1.4", "10 198.18.7.2", "20 2001:db8:1::2", "20 2001:db8:22::1", "30 10.0.0.2",
    "10 172.16.0.1", "0 10.0.2.2",
]
fdb = [
    "10 02:00:00:00:00:01 10.0.1.2", "10 02:00:00:00:01:01 198.18.7.9", "20 02:00:00:00:00:01 2001:db8:1::2",
    "30 02:00:00:00:02:01 10.0.0.3", "10 02:00:00:00:02:04 10.0.1.77", "10 02:00:00:00:02:05 172.16.0.1",
]
bridge_ageing = "3s"
bridge_entries = 100
"#;

/// A port that is nothing but an access link.
const WHOLE_PORT: &str = r#"
addresses = ["1 10.0.1.1/24", "1 2001:db8:1::1/64", "2 10.0.2.1/24"]
neighbours = ["1 10.0.1.2 02:00:00:00:01:02", "1 2001:db8:1::2 02:00:00:00:01:02", "2 10.0.2.2 02:00:00:00:02:02"]
routes = ["198.18.0.0/16 via 10.0.1.2 via 10.0.2.2", "192.0.2.0/24 via 10.0.2.2 labels 16"]
networks = ["10 local 10.0.1.1 access 0", "20 local 2001:db8:1::1 access 2.31"]
remotes = ["10 10.0.1.2", "10 192.0.2.9", "20 2001:db8:1::2"]
fdb = ["10 02:00:00:00:01:01 198.18.7.9"]
"#;

const BRIDGE: &str = r#"
fdb = ["02:00:00:00:00:01 0", "02:00:00:00:01:01 1", "02:00:00:00:02:01 2.100", "02:00:00:00:02:02 2"]
bridge_ageing = "3s"
bridge_entries = 60
"#;

/// A configuration of this kind.
pub fn spec(kind: FunctionKind, dice: &mut Dice) -> PlaneSpec {
    let mut text = format!("kind = \"{kind}\"\n");
    match kind {
        FunctionKind::Bridge => text += BRIDGE,
        FunctionKind::L3 => text += ROUTER,
        FunctionKind::Mpls => text = text + ROUTER + LABELS,
        FunctionKind::Vxlan if dice.one_in(3) => text += WHOLE_PORT,
        FunctionKind::Vxlan => text = text + ROUTER + OVERLAY,
        _ => {}
    }
    let mut spec: PlaneSpec = toml::from_str(&text).unwrap();
    if kind.keys().contains(&"check_mac") {
        spec.check_mac = dice.pick(&[None, Some(true), Some(false)]);
        spec.icmp_errors_per_second = dice.pick(&[None, Some(0), Some(1_000_000)]);
    }
    spec
}

/// Lines that are no change, or none that can be made.
const NONSENSE: [&str; 12] = [
    "",
    "route",
    "route add",
    "route add 10.0.0.0/33 drop",
    "route del 1.2.3.4/32",
    "neighbour add 9 10.0.0.7 02:00:00:00:00:07",
    "label add 3 drop",
    "network add 16777216 local 10.0.0.1 access 0",
    "fdb add 02:00:00:00:00:01 7",
    "address add 0 127.0.0.1/8",
    "remote add 99 10.0.0.2",
    "route add 198.99.0.0/16 via 9.9.9.9",
];

/// A batch of changes: takes away what is in use, brings back what was there, adds more, and some that is refused.
/// Returns how many were made.
pub fn change(dice: &mut Dice, plane: &mut Plane, spec: &PlaneSpec) -> usize {
    let mut ops = Vec::new();
    for _ in 0..1 + dice.below(3) {
        match dice.below(8) {
            0 => {
                let line = match dice.below(6) {
                    0 => dice.pick(&NONSENSE).to_owned(),
                    1 => format!(
                        "route replace 198.{}.0.0/16 via 10.0.{}.{}",
                        18 + dice.below(6),
                        dice.below(3),
                        dice.byte()
                    ),
                    2 => {
                        format!("label replace {} swap {} via 10.0.1.{}", 16 + dice.below(12), dice.byte(), dice.byte())
                    }
                    3 => format!("remote add {} 10.0.{}.{}", dice.pick(&[0, 10, 30]), dice.below(3), dice.byte()),
                    4 => {
                        let mac = packet::MacAddr(station(dice));
                        let to = dice.pick(&["10 MAC 10.0.1.4", "MAC 2", "MAC 0", "20 MAC 2001:db8:1::77"]);
                        format!("fdb replace {}", to.replace("MAC", &mac.to_string()))
                    }
                    _ => format!("neighbour replace {} 10.0.1.{} 02:00:00:00:01:09", dice.below(4), dice.byte()),
                };
                ops.extend(line.parse());
            }
            1..=3 => {
                let all: Vec<_> = plane.config().collect();
                ops.extend(all.get(dice.below(all.len())).and_then(|item| delete(item).parse().ok()));
            }
            _ => {
                let all: Vec<_> = spec.items().collect();
                ops.extend(all.get(dice.below(all.len())).map(|(_, item)| Op::Replace(item.clone())));
            }
        }
    }
    let before: Vec<_> = plane.config().collect();
    if plane.apply(&ops).is_err() {
        assert!(plane.config().eq(before), "a change that is refused changes nothing");
        return 0;
    }
    ops.len()
}

/// The line that takes an item away.
fn delete(item: &Item) -> String {
    let words = match item {
        Item::Address(_) | Item::Neighbour(_) | Item::Remote(_) => 2,
        Item::Route(_) | Item::Label(_) | Item::Network(_) => 1,
        Item::Fdb(dataplane::model::Fdb::Bridge(_)) => 1,
        Item::Fdb(dataplane::model::Fdb::Vxlan(_)) => 2,
    };
    let text = item.to_string();
    let key: Vec<_> = text.split(' ').take(words).collect();
    format!("{} del {}", item.noun(), key.join(" "))
}
