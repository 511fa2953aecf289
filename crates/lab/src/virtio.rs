//! What a switch and a guest have agreed on at a vhost-user port, as `ovs-vsctl list Interface` tells it.

/// A connected port.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VirtioPort {
    /// Its name.
    pub name: String,
    /// Feature bits that both ends have (virtio 1.2, 5.1.3 and 6; vhost-user).
    pub features: u64,
    /// Descriptors of each ring, receive and transmit of the first queue first.
    pub rings: Vec<u32>,
}

/// Bit of virtio 1: without it the device has the layout of before 2016.
pub const VERSION_1: u32 = 32;
/// Bit of more than one queue.
pub const MQ: u32 = 22;

/// Names of feature bits of a network device (virtio 1.2, 5.1.3 and 6; vhost-user, "Feature negotiation").
const FEATURES: [(u32, &str); 31] = [
    (0, "CSUM"),
    (1, "GUEST_CSUM"),
    (3, "MTU"),
    (5, "MAC"),
    (7, "GUEST_TSO4"),
    (8, "GUEST_TSO6"),
    (9, "GUEST_ECN"),
    (10, "GUEST_UFO"),
    (11, "HOST_TSO4"),
    (12, "HOST_TSO6"),
    (13, "HOST_ECN"),
    (14, "HOST_UFO"),
    (15, "MRG_RXBUF"),
    (16, "STATUS"),
    (17, "CTRL_VQ"),
    (18, "CTRL_RX"),
    (19, "CTRL_VLAN"),
    (20, "CTRL_RX_EXTRA"),
    (21, "GUEST_ANNOUNCE"),
    (MQ, "MQ"),
    (23, "CTRL_MAC_ADDR"),
    (24, "NOTIFY_ON_EMPTY"),
    (26, "LOG_ALL"),
    (27, "ANY_LAYOUT"),
    (28, "INDIRECT_DESC"),
    (29, "EVENT_IDX"),
    (30, "PROTOCOL_FEATURES"),
    (VERSION_1, "VERSION_1"),
    (33, "ACCESS_PLATFORM"),
    (34, "RING_PACKED"),
    (35, "IN_ORDER"),
];

impl VirtioPort {
    /// Whether both ends have a feature.
    pub fn has(&self, bit: u32) -> bool {
        self.features & (1 << bit) != 0
    }

    /// The names of the features; those without a name as `bit N`.
    pub fn feature_names(&self) -> Vec<String> {
        let name = |bit: u32| {
            let known = FEATURES.iter().find(|(known, _)| *known == bit);
            known.map_or_else(|| format!("bit {bit}"), |(_, name)| (*name).to_owned())
        };
        (0..u64::BITS).filter(|bit| self.has(*bit)).map(name).collect()
    }
}

/// Reads the answer of `ovs-vsctl --columns=name,status list Interface`. Ports that are not connected are left out.
pub fn parse(text: &str) -> Vec<VirtioPort> {
    let mut ports = Vec::new();
    let mut name = String::new();
    for line in text.lines() {
        let Some((column, value)) = line.split_once(':') else { continue };
        match column.trim() {
            "name" => value.trim().trim_matches('"').clone_into(&mut name),
            "status" => ports.extend(status(&name, value)),
            _ => {}
        }
    }
    ports
}

fn status(name: &str, map: &str) -> Option<VirtioPort> {
    let pairs: Vec<(&str, &str)> = map
        .trim()
        .trim_start_matches('{')
        .trim_end_matches('}')
        .split(", ")
        .filter_map(|pair| pair.split_once('='))
        .map(|(key, value)| (key, value.trim_matches('"')))
        .collect();
    let of = |wanted: &str| pairs.iter().find(|(key, _)| *key == wanted).map(|(_, value)| *value);
    if of("status") != Some("connected") {
        return None;
    }
    let features = of("features").and_then(|text| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok())?;
    let count: u32 = of("num_of_vrings")?.parse().ok().filter(|count| *count <= 256)?;
    let ring = |n: u32| of(&format!("vring_{n}_size")).and_then(|size| size.parse().ok());
    Some(VirtioPort { name: name.to_owned(), features, rings: (0..count).map(ring).collect::<Option<_>>()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Open vSwitch 3.1 prints it.
    const ANSWER: &str = r#"name                : phy0
status              : {features="0x0000000150208182", mode=client, num_of_vrings="2", numa="0", socket="/run/lab/phy0.sock", status=connected, vring_0_size="1024", vring_1_size="256"}

name                : "vm1p0"
status              : {mode=client, status=disconnected}
"#;

    #[test]
    fn a_connected_port_says_what_was_agreed() {
        let ports = parse(ANSWER);
        assert_eq!(ports.len(), 1);
        assert_eq!((ports[0].name.as_str(), ports[0].rings.as_slice()), ("phy0", &[1024, 256][..]));
        assert!(ports[0].has(VERSION_1) && !ports[0].has(MQ));
        let wanted = ["GUEST_CSUM", "GUEST_TSO4", "GUEST_TSO6", "MRG_RXBUF", "GUEST_ANNOUNCE", "INDIRECT_DESC"];
        assert_eq!(ports[0].feature_names()[..6], wanted);
        let odd = VirtioPort { features: 1 << 63, ..VirtioPort::default() };
        assert_eq!(odd.feature_names(), ["bit 63"]);
    }

    #[test]
    fn what_is_not_whole_is_no_port() {
        for (from, to) in [
            ("\"2\"", "\"3\""),
            ("\"2\"", "\"9999999\""),
            ("\"2\"", "\"-1\""),
            ("0x00000001", "0xz"),
            ("features", "feature"),
            ("status=connected", "status=x"),
        ] {
            let text = ANSWER.replacen(from, to, 1);
            assert_ne!(text, ANSWER, "{from}");
            assert_eq!(parse(&text), [], "{to}");
        }
        assert_eq!(parse("ovs-vsctl: no row \"x\" in table Interface"), []);
    }
}
