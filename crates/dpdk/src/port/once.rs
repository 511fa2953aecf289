//! Captures that are read once.

use std::{
    io::{self, Read, Seek},
    path::Path,
    sync::Arc,
};

use packet::{Burst, Rx};

use super::{
    capture::{Capture, Progress},
    config::PortConfig,
    converted::Converted,
    pcap::{open_file, HEADER},
};
use crate::{DpdkError, Eal, Mbuf};

/// A capture that is read once.
pub(super) enum Once {
    /// A classic one of Ethernet.
    Classic(Box<Capture>),
    /// Any other.
    Converted(Box<Converted>),
}

impl Once {
    /// Begins to read a file, or a pipe: of that, waits for the header. Errors when it cannot be read, is not a capture, or
    /// memory does not suffice.
    pub(super) fn open(eal: &'static Eal, text: &str, path: &Path, config: &PortConfig) -> Result<Self, DpdkError> {
        let unreadable =
            |e: io::Error| DpdkError::File { port: text.to_string(), path: path.to_path_buf(), why: e.to_string() };
        // Opened once: who writes to a pipe would see it closed.
        let mut file = open_file(text, path)?;
        let is_file = file.metadata().map_err(unreadable)?.is_file();
        if is_file {
            let mut head = Vec::new();
            file.by_ref().take(HEADER as u64).read_to_end(&mut head).map_err(unreadable)?;
            if let Some(head) = head.first_chunk() {
                if let Some(classic) = Capture::open(eal, path, head, &file, config)? {
                    return Ok(Self::Classic(Box::new(classic)));
                }
            }
            file.rewind().map_err(unreadable)?;
        }
        Ok(Self::Converted(Box::new(Converted::open(eal, text, path, (file, is_file), config)?)))
    }

    /// How far it has been read.
    pub(super) fn progress(&self) -> Arc<Progress> {
        match self {
            Self::Classic(capture) => capture.progress(),
            Self::Converted(capture) => capture.progress(),
        }
    }
}

impl Rx for Once {
    type Buf = Mbuf;

    fn rx(&mut self, burst: &mut Burst<Mbuf>) -> usize {
        match self {
            Self::Classic(capture) => capture.rx(burst),
            Self::Converted(capture) => capture.rx(burst),
        }
    }
}
