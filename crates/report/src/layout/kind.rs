//! The layouts there are.

use std::fmt;

/// A source document's way to lay out a table of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// The two-VM document, tables 3 and 4: packets/s, layer-1 Mbps and percentage over both ports.
    Nfvi,
    /// The ONP report, section 7: the same in whole figures, and latency in nanoseconds.
    Onp,
    /// The small-router document: bit/s of layer 2 without the FCS and of layer 1, a row a load test.
    Router,
    /// The flow logger's rates: Mpps over both ports, share of full bandwidth, cycles a packet.
    Flowlog,
}

impl Layout {
    /// Every layout.
    pub const ALL: [Self; 4] = [Self::Nfvi, Self::Onp, Self::Router, Self::Flowlog];

    /// As it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nfvi => "nfvi",
            Self::Onp => "onp",
            Self::Router => "router",
            Self::Flowlog => "flowlog",
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
