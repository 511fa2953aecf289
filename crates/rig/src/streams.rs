//! What the ports of a trial send, and what of it was sent.

use std::sync::Arc;

use traffic::{
    flows::{Departures, Program},
    stream::StreamSpec,
};

use crate::replay::Replayable;

/// What both ports send, for one frame size.
pub struct Streams {
    /// The stream of each port; one way, the second sends learning frames only.
    pub specs: [StreamSpec; 2],
    /// How many of them are loaded: 1 or 2.
    pub directions: usize,
    /// Every buffer of the pool already holds the payload.
    pub prefilled: bool,
    /// What the first port sends instead of its stream: flows that are known one by one.
    pub flows: Option<(StreamSpec, Arc<Program>)>,
    /// What is sent instead of streams.
    pub replay: Option<Replayable>,
}

/// What the first port sent of a flow program.
#[derive(Debug, Clone)]
pub struct SentFlows {
    /// Frames the port took: the first of the program.
    pub frames: u64,
    /// When they left, in ticks.
    pub departures: Departures,
    /// When the last left.
    pub last_tick: u64,
}
