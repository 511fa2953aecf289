use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use packet::MacAddr;
use serde::{Deserialize, Serialize};

use crate::{serde_mac, Prefix, SpecError};

/// Configuration of the L3 function: static routes whose next hops' addresses are known.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct L3Config {
    /// Forward only frames sent to the ingress port's own MAC address, as a router does. Off, any unicast address is
    /// taken, as a benchmark over ports without an address of their own needs.
    #[serde(default)]
    pub check_mac: bool,
    /// The routes; the longest prefix wins.
    #[serde(default)]
    pub routes: Vec<Route>,
}

/// One static route with its neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// Destinations covered.
    pub prefix: Prefix,
    /// Egress port, counted from 0 in the order the ports were given.
    pub port: usize,
    /// MAC address of the neighbour the frames are sent to.
    #[serde(with = "serde_mac")]
    pub dst_mac: MacAddr,
    /// MAC address the frames are sent from; the egress port's own by default.
    #[serde(default, with = "serde_mac::option", skip_serializing_if = "Option::is_none")]
    pub src_mac: Option<MacAddr>,
}

impl L3Config {
    /// The benchmark's networks between two ports, each behind its neighbour: port 0 has the lower and port 1 the
    /// upper half of 198.18.0.0/15 (RFC 2544 appendix C.2.2), and one /64 each of 2001:2::/48 (RFC 5180 §8).
    pub fn benchmark(neighbours: [MacAddr; 2]) -> Self {
        let [near, far] = neighbours;
        let v4 = |net| (IpAddr::V4(Ipv4Addr::new(198, net, 0, 0)), 16);
        let v6 = |net| (IpAddr::V6(Ipv6Addr::new(0x2001, 2, 0, net, 0, 0, 0, 0)), 64);
        let hops = [(v4(18), 0, near), (v4(19), 1, far), (v6(1), 0, near), (v6(2), 1, far)];
        let routes = hops.into_iter().filter_map(|((addr, len), port, dst_mac)| {
            Some(Route { prefix: Prefix::new(addr, len).ok()?, port, dst_mac, src_mac: None })
        });
        Self { check_mac: false, routes: routes.collect() }
    }

    /// Checks every route against the number of ports. Errors name the route.
    pub fn validate(&self, ports: usize) -> Result<(), SpecError> {
        if self.routes.is_empty() {
            return Err(SpecError::new(
                "routes",
                "none",
                "l3 needs at least one: routes = [{ prefix = \"198.19.0.0/16\", port = 1, dst_mac = \"02:00:00:00:00:01\" }]",
            ));
        }
        for (i, route) in self.routes.iter().enumerate() {
            if route.port >= ports {
                let legal = format!("must be 0 to {}: there are {ports} ports", ports.saturating_sub(1));
                return Err(SpecError::new(format!("routes[{i}].port"), route.port, legal));
            }
            if route.dst_mac.is_group() {
                return Err(SpecError::new(format!("routes[{i}].dst_mac"), route.dst_mac, "must be a unicast address"));
            }
            if let Some(mac) = route.src_mac.filter(|mac| mac.is_group()) {
                return Err(SpecError::new(format!("routes[{i}].src_mac"), mac, "must be a unicast address"));
            }
            if self.routes[..i].iter().any(|earlier| earlier.prefix == route.prefix) {
                return Err(SpecError::new(format!("routes[{i}].prefix"), route.prefix, "is there twice: keep one"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_benchmark_networks_are_the_standards() {
        let config = L3Config::benchmark([MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2])]);
        config.validate(2).unwrap();
        let shown: Vec<_> = config.routes.iter().map(|r| format!("{} {} {}", r.prefix, r.port, r.dst_mac)).collect();
        assert_eq!(
            shown,
            [
                "198.18.0.0/16 0 02:00:00:00:00:01",
                "198.19.0.0/16 1 02:00:00:00:00:02",
                "2001:2:0:1::/64 0 02:00:00:00:00:01",
                "2001:2:0:2::/64 1 02:00:00:00:00:02",
            ]
        );
    }

    #[test]
    fn errors_name_the_route_and_the_range() {
        let route = |port, mac: &str, prefix: &str| Route {
            prefix: prefix.parse().unwrap(),
            port,
            dst_mac: mac.parse().unwrap(),
            src_mac: None,
        };
        let good = route(0, "02:00:00:00:00:01", "::/0");
        for (routes, want) in [
            (vec![], "routes \"none\": l3 needs at least one"),
            (vec![good, route(2, "02:00:00:00:00:01", "10.0.0.0/8")], "routes[1].port \"2\": must be 0 to 1"),
            (vec![route(0, "01:00:5e:00:00:01", "10.0.0.0/8")], "routes[0].dst_mac"),
            (vec![good, good], "routes[1].prefix \"::/0\": is there twice"),
        ] {
            let err = L3Config { check_mac: false, routes }.validate(2).unwrap_err().to_string();
            assert!(err.starts_with(want), "{err}");
        }
    }
}
