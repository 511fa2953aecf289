//! Where a frame came in, and why its source is sent an ICMP error.

/// Where a frame came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ingress {
    /// The port.
    pub port: u16,
    /// The interface: the port's own or that of the frame's VLAN.
    pub interface: u16,
}

/// Why an ICMP error goes back to the source of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// TTL or hop limit used up in transit (ICMP 11/0, ICMPv6 3/0).
    TimeExceeded,
    /// No route (ICMP 3/0, ICMPv6 1/0).
    NoRoute,
    /// The neighbour did not answer (ICMP 3/1, ICMPv6 1/3).
    HostUnreachable,
    /// Longer than the egress link takes, with this MTU (ICMP 3/4 when DF is set, ICMPv6 2/0).
    TooBig(u16),
}
