//! What the ports of a trial send.

use std::sync::Arc;

use traffic::{
    flows::{Departures, Program},
    stream::StreamSpec,
};

use crate::replay::Replayable;

/// What both ports send, for one frame size.
pub struct Streams {
    /// The stream of each port. In one-way traffic the second port sends learning frames only.
    pub specs: [StreamSpec; 2],
    /// How many directions are loaded: 1 or 2.
    pub directions: usize,
    /// Whether every buffer of the pool holds the payload already.
    pub prefilled: bool,
    /// What the first port sends instead of its stream: a program of known flows.
    pub flows: Option<(StreamSpec, Arc<Program>)>,
    /// What is sent instead of streams.
    pub replay: Option<Replayable>,
}

/// What the first port sent of a flow program.
#[derive(Debug, Clone)]
pub struct SentFlows {
    /// Frames that the port took, from the start of the program.
    pub frames: u64,
    /// When the frames left, in ticks.
    pub departures: Departures,
    /// When the last frame left, in ticks.
    pub last_tick: u64,
}
