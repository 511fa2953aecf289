use proptest::prelude::*;

use crate::{
    model::{Address, Fdb, Hop, LabelRoute, Link, Neighbour, Network, Op, Path, Remote, Route, StaticEntry},
    SpecError,
};

/// Reads a text as what it is and shows it again.
fn read(kind: &str, text: &str) -> Result<String, SpecError> {
    match kind {
        "link" => text.parse().map(|x: Link| x.to_string()),
        "path" => text.parse().map(|x: Path| x.to_string()),
        "address" => text.parse().map(|x: Address| x.to_string()),
        "route" => text.parse().map(|x: Route| x.to_string()),
        "neighbour" => text.parse().map(|x: Neighbour| x.to_string()),
        "label" => text.parse().map(|x: LabelRoute| x.to_string()),
        "network" => text.parse().map(|x: Network| x.to_string()),
        "remote" => text.parse().map(|x: Remote| x.to_string()),
        "station" => text.parse().map(|x: StaticEntry| x.to_string()),
        "fdb" => text.parse().map(|x: Fdb| x.to_string()),
        _ => text.parse().map(|x: Op| x.to_string()),
    }
}

#[test]
fn every_form_survives_its_text() {
    for (kind, text) in [
        ("link", "0"),
        ("link", "65535.4094"),
        ("path", "via 192.0.2.1"),
        ("path", "via 2001:db8::1 port 1.100 labels 16/17/18/0 weight 255"),
        ("path", "port 1 mac 02:00:00:00:00:02 from 02:00:00:00:01:00 labels 1048575"),
        ("path", "port 0"),
        ("path", "drop"),
        ("address", "0 192.0.2.1/24"),
        ("address", "1.7 2001:db8::1/64"),
        ("address", "0 192.0.2.0/31"),
        ("route", "0.0.0.0/0 via 192.0.2.1 weight 3 via 192.0.2.2"),
        ("route", "10.0.0.0/8 via 192.0.2.1 port 1 port 2 mac 02:00:00:00:00:01"),
        ("route", "2001:db8::/32 via 192.0.2.1 port 2 mac 02:00:00:00:00:01"),
        ("route", "10.0.0.0/8 via 192.0.2.1 weight 1 port 2"),
        ("neighbour", "0 192.0.2.7 02:00:00:00:00:07"),
        ("label", "16 swap 17 port 1 mac 02:00:00:00:00:01"),
        ("label", "16 swap implicit-null via 192.0.2.1"),
        ("label", "1048575 pop via 192.0.2.1"),
        ("label", "16 lookup"),
        ("label", "16 drop"),
        ("network", "10 local 192.0.2.1 access 0"),
        ("network", "16777215 local 2001:db8::1 access 0,1.100 port 8472 learn off"),
        ("remote", "10 192.0.2.2"),
        ("station", "10 02:00:00:00:00:01 192.0.2.2"),
        ("fdb", "10 02:00:00:00:00:01 192.0.2.2"),
        ("fdb", "02:00:00:00:00:01 1"),
        ("op", "route add 10.0.0.0/8 via 192.0.2.1"),
        ("op", "route del 10.0.0.0/8"),
        ("op", "address replace 0 192.0.2.1/24"),
        ("op", "address del 0 192.0.2.1/24"),
        ("op", "neighbour add 0 192.0.2.7 02:00:00:00:00:07"),
        ("op", "neighbour del 0 192.0.2.7"),
        ("op", "label add 16 lookup"),
        ("op", "label del 16"),
        ("op", "network replace 10 local 192.0.2.1 access 0"),
        ("op", "network del 10"),
        ("op", "remote add 10 192.0.2.2"),
        ("op", "remote del 10 192.0.2.2"),
        ("op", "fdb add 02:00:00:00:00:01 1"),
        ("op", "fdb del 02:00:00:00:00:01"),
        ("op", "fdb del 10 02:00:00:00:00:01"),
    ] {
        assert_eq!(read(kind, text).as_deref(), Ok(text), "{kind}");
    }
    assert_eq!(read("network", " 7\tlocal 1.2.3.4  access 1 learn on\n").as_deref(), Ok("7 local 1.2.3.4 access 1"));
    assert_eq!(read("label", "16 swap 3 drop").as_deref(), Ok("16 swap implicit-null drop"));
}

#[test]
fn errors_name_the_word_and_what_is_legal() {
    let mut shown = String::new();
    for (kind, text, what, value) in [
        ("link", "1.4095", "link", "1.4095"),
        ("link", "+1", "link", "+1"),
        ("link", "1.", "link", "1."),
        ("path", "", "path", ""),
        ("path", "via 1.2.3", "path gateway", "1.2.3"),
        ("path", "via", "path", "via"),
        ("path", "drop weight 0", "path weight", "0"),
        ("path", "drop labels 3", "path labels", "3"),
        ("path", "drop labels 16/17/18/19/20", "path labels", "16/17/18/19/20"),
        ("path", "port 0 mac 01:00:5e:00:00:01", "path MAC address", "01:00:5e:00:00:01"),
        ("path", "drop drop", "path", "drop"),
        ("address", "0 192.0.2.0/24", "address", "192.0.2.0/24"),
        ("address", "0", "address", "0"),
        ("address", "0 192.0.2.255/24", "address", "192.0.2.255/24"),
        ("address", "0 127.0.0.1/8", "address", "127.0.0.1/8"),
        ("address", "0 fe80::1/64", "address", "fe80::1/64"),
        ("route", "10.0.0.1/8 drop", "route prefix", "10.0.0.1/8"),
        ("route", "10.0.0.0/8", "route", "10.0.0.0/8"),
        ("neighbour", "0 224.0.0.1 02:00:00:00:00:07", "neighbour address", "224.0.0.1"),
        ("label", "15 drop", "label", "15"),
        ("label", "16 swap 1 drop", "label outgoing label", "1"),
        ("network", "16777216 local 1.2.3.4 access 0", "network VNI", "16777216"),
        ("network", "1 local 1.2.3.4 access 0,0", "network access links", "0,0"),
        ("op", "route ad 10.0.0.0/8 drop", "change", "route ad 10.0.0.0/8 drop"),
        ("op", "neighbour add 0", "neighbour", "0"),
        ("op", "label del x", "label del", "x"),
        ("op", "route del 10.0.0.0/8 drop", "route del", "drop"),
    ] {
        let error = read(kind, text).unwrap_err();
        assert_eq!((error.what.as_str(), error.value.as_str()), (what, value), "{kind} {text}");
        shown += &format!("{kind} {text}\n    {error}\n");
    }
    insta::assert_snapshot!("errors", shown);
    let long = read("op", &"x".repeat(100_000)).unwrap_err();
    assert!(long.to_string().len() < 400);
}

fn link() -> impl Strategy<Value = Link> {
    (any::<u16>(), prop::option::of(1u16..=4094)).prop_map(|(port, vlan)| Link { port: port.into(), vlan })
}

fn path() -> impl Strategy<Value = Path> {
    let mac = any::<[u8; 5]>().prop_map(|[a, b, c, d, e]| packet::MacAddr([2, a, b, c, d, e]));
    let hop = prop_oneof![
        (any::<std::net::IpAddr>(), prop::option::of(link())).prop_map(|(addr, link)| Hop::Via { addr, link }),
        (link(), mac.clone(), prop::option::of(mac)).prop_map(|(link, mac, from)| Hop::Station { link, mac, from }),
        link().prop_map(|link| Hop::Connected { link }),
        Just(Hop::Drop),
    ];
    let label = prop_oneof![Just(0u32), Just(2), 16u32..1 << 20];
    (hop, prop::collection::vec(label, 0..=4), 1u8..).prop_map(|(hop, labels, weight)| Path { hop, labels, weight })
}

proptest! {
    #[test]
    fn any_route_survives_its_text(paths in prop::collection::vec(path(), 1..5)) {
        let route = Route { prefix: "10.0.0.0/8".parse().unwrap(), paths };
        prop_assert_eq!(route.to_string().parse::<Route>(), Ok(route));
    }

    #[test]
    fn hostile_text_is_refused_in_peace(
        words in prop::collection::vec(
            prop_oneof![
                "route|address|neighbour|label|network|remote|fdb|add|replace|del|via|port|mac|drop|labels|weight|local|access|learn",
                "[0-9./:a-f-]{0,20}", "\\PC{0,8}",
                Just("192.0.2.1".to_owned()), Just("10.0.0.0/8".to_owned()), Just("02:00:00:00:00:01".to_owned()),
            ],
            0..10,
        ),
        kind in 0usize..11,
    ) {
        let text = words.join(" ");
        let kinds = ["link", "path", "address", "route", "neighbour", "label", "network", "remote", "station", "fdb", "op"];
        let _ = read(kinds[kind], &text);
        if let Ok(op) = text.parse::<Op>() {
            prop_assert_eq!(op.to_string().parse::<Op>(), Ok(op));
        }
    }
}
