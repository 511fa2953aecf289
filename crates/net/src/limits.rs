//! How many connections a server serves at once, in all and from one address.

use std::net::IpAddr;

/// The limit that a new connection exceeds. Each holds how many connections count against it now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// All connections.
    Total(usize),
    /// Connections from this address.
    PerPeer(usize),
    /// Connections from this address that have not shown the token yet.
    Unauthenticated(usize),
}

/// How many connections may be open at once.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// In all.
    total: usize,
    /// From one address of another machine, so that one peer cannot shut out the others.
    per_peer: usize,
    /// Of these, those that have not shown the token.
    unauthenticated: usize,
}

impl Limits {
    /// `total` connections, a quarter of them from one peer. Where a token is asked for (`token`), at most a sixteenth of
    /// `total` from one peer may be without it.
    pub fn new(total: usize, token: bool) -> Self {
        let per_peer = total.div_ceil(4);
        Self { total, per_peer, unauthenticated: if token { total.div_ceil(16) } else { per_peer } }
    }

    /// The limit that one more connection from `peer` would exceed. `open` lists the open connections: the address, and
    /// whether the token was shown. Peers on this machine count only against the total.
    pub(crate) fn exceeded(&self, open: &[(IpAddr, bool)], peer: IpAddr) -> Option<Limit> {
        if open.len() >= self.total {
            return Some(Limit::Total(open.len()));
        }
        if peer.to_canonical().is_loopback() {
            return None;
        }
        let same = open.iter().filter(|(from, _)| *from == peer).count();
        let unauthenticated = open.iter().filter(|(from, authenticated)| *from == peer && !authenticated).count();
        match same >= self.per_peer {
            true => Some(Limit::PerPeer(same)),
            false => (unauthenticated >= self.unauthenticated).then_some(Limit::Unauthenticated(unauthenticated)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_peer_cannot_take_the_room_of_others() {
        let [here, far, other] = ["127.0.0.1", "192.0.2.1", "192.0.2.2"].map(|a| a.parse::<IpAddr>().unwrap());
        let limits = Limits::new(64, true);
        let exceeded = |open: &[(IpAddr, bool, usize)], peer| {
            let all: Vec<_> = open.iter().flat_map(|&(from, shown, n)| vec![(from, shown); n]).collect();
            limits.exceeded(&all, peer)
        };
        assert_eq!(exceeded(&[(far, false, 3)], far), None);
        assert_eq!(exceeded(&[(far, false, 4)], far), Some(Limit::Unauthenticated(4)));
        assert_eq!(exceeded(&[(far, false, 4)], other), None);
        assert_eq!(exceeded(&[(far, true, 15), (far, false, 1)], far), Some(Limit::PerPeer(16)));
        assert_eq!(exceeded(&[(far, true, 16)], other), None);
        assert_eq!(exceeded(&[(here, false, 63)], here), None);
        assert_eq!(exceeded(&[(here, false, 63), (far, true, 1)], other), Some(Limit::Total(64)));
        let without_token = Limits::new(64, false);
        assert_eq!(without_token.exceeded(&[(far, false); 15], far), None, "no token is asked for");
    }
}
