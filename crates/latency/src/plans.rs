//! The measurements of the low-latency document, by name, with the figures that it publishes.

use crate::raw::run::{RawOptions, RxMode, TxMode};

/// What a plan measures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum What {
    /// Raw frames.
    Raw {
        /// What is timed when a frame is sent.
        tx: TxMode,
        /// What is timed when a frame is received.
        rx: RxMode,
    },
    /// Datagrams.
    Udp,
    /// Messages in a connection.
    Tcp,
}

/// A measurement of the document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencyPlan {
    /// What a user types.
    pub name: &'static str,
    /// What it is, in a line.
    pub title: &'static str,
    /// What it measures.
    pub what: What,
    /// Bytes of a frame without FCS, or of a message.
    pub bytes: usize,
    /// Percentiles that the document publishes, ns; of round trips for messages. Empty: it publishes none.
    pub published: &'static [(f64, f64)],
    /// Whose figures these are.
    pub source: &'static str,
}

/// All of them.
pub const PLANS: [LatencyPlan; 4] = [
    LatencyPlan {
        name: "latency-raw-loopback",
        title: "raw frames of 60 B, made anew and received by copy",
        what: What::Raw { tx: TxMode::Frame, rx: RxMode::Copy },
        bytes: 60,
        published: &[
            (0.0, 625.0),
            (1.0, 642.0),
            (5.0, 679.0),
            (10.0, 683.0),
            (25.0, 689.0),
            (50.0, 696.0),
            (75.0, 709.0),
            (90.0, 759.0),
            (95.0, 770.0),
            (99.0, 959.0),
            (100.0, 1336.0),
        ],
        source: "ExaNIC X25 at 10G, Core i7-3770K at 3.31 GHz, exanic_perf_test -T frame -R frame (low-latency guide)",
    },
    LatencyPlan {
        name: "latency-raw-preloaded",
        title: "raw frames of 60 B, preloaded and received in place",
        what: What::Raw { tx: TxMode::Preloaded, rx: RxMode::InPlace },
        bytes: 60,
        published: &[
            (0.0, 568.0),
            (1.0, 597.0),
            (5.0, 603.0),
            (10.0, 607.0),
            (25.0, 617.0),
            (50.0, 629.0),
            (75.0, 637.0),
            (90.0, 642.0),
            (95.0, 671.0),
            (99.0, 750.0),
            (100.0, 1209.0),
        ],
        source: "ExaNIC X25 at 10G, Core i7-3770K at 3.31 GHz, exanic_perf_test -T preloaded -R chunk_inplace (low-latency guide)",
    },
    LatencyPlan {
        name: "latency-udp",
        title: "round trips of datagrams of 14 B",
        what: What::Udp,
        bytes: 14,
        published: &[
            (0.0, 1472.0),
            (25.0, 1568.0),
            (50.0, 1604.0),
            (75.0, 1634.0),
            (90.0, 1676.0),
            (99.0, 1862.0),
            (99.9, 2004.0),
            (99.999, 2348.0),
            (100.0, 6124.0),
        ],
        source: "ExaNIC with exasock, sockperf -m 14 (low-latency guide): its half round trips, doubled",
    },
    LatencyPlan {
        name: "latency-tcp",
        title: "round trips of messages of 14 B in a connection",
        what: What::Tcp,
        bytes: 14,
        published: &[],
        source: "the low-latency guide publishes no figures for TCP",
    },
];

/// The plan of this name.
pub fn plan(name: &str) -> Option<&'static LatencyPlan> {
    PLANS.iter().find(|plan| plan.name == name)
}

impl LatencyPlan {
    /// The words behind `linerate latency` that it belongs to.
    pub fn command(&self) -> &'static str {
        match self.what {
            What::Raw { .. } => "raw",
            What::Udp => "udp ADDRESS:PORT",
            What::Tcp => "tcp ADDRESS:PORT",
        }
    }

    /// How raw frames are measured: a million times after 100,000 frames.
    pub fn raw_options(&self) -> RawOptions {
        match self.what {
            What::Raw { tx, rx } => RawOptions { tx, rx, ..RawOptions::default() },
            What::Udp | What::Tcp => RawOptions::default(),
        }
    }
}

/// What the document's arithmetic says of a longer frame: the time of the shorter one, and what the further bytes take on the
/// wire, ns.
pub fn with_size_added(ns: f64, bytes: usize, longer: usize, bps: f64) -> f64 {
    ns + longer.saturating_sub(bytes) as f64 * crate::raw::sizes::wire_ns_per_byte(bps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::PERCENTILES;

    #[test]
    fn every_plan_is_found_and_its_figures_have_rows() {
        for known in PLANS {
            assert_eq!(plan(known.name).map(|plan| plan.title), Some(known.title));
            assert!(known.published.iter().all(|(percent, _)| PERCENTILES.contains(percent)), "{}", known.name);
            assert!(known.published.windows(2).all(|pair| pair[0].1 < pair[1].1), "{} rises", known.name);
        }
        assert_eq!(plan("rfc2544"), None);
        assert!(PLANS
            .iter()
            .all(|plan| plan.name.starts_with(&format!("latency-{}", plan.command().split(' ').next().unwrap()))));
        assert_eq!(plan("latency-raw-preloaded").unwrap().raw_options().rx, RxMode::InPlace);
        assert_eq!(plan("latency-udp").unwrap().raw_options().tx, TxMode::Frame);
    }

    #[test]
    fn the_document_s_arithmetic_adds_the_further_bytes() {
        // "if you send a 164 byte packet you need to add 100 bytes at 10G line rate".
        assert_eq!(with_size_added(643.0, 64, 164, 10e9), 723.0);
        assert_eq!(with_size_added(643.0, 64, 60, 10e9), 643.0);
    }
}
