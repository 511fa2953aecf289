//! Captures that are read once.

use std::{path::Path, sync::Arc};

use packet::{Burst, Rx};

use super::{
    capture::{Capture, Progress},
    config::PortConfig,
    converted::Converted,
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
    /// Begins to read a file; `None` when only the driver can read it. Errors as those of each kind.
    pub(super) fn open(
        eal: &'static Eal,
        text: &str,
        path: &Path,
        config: &PortConfig,
    ) -> Result<Option<Self>, DpdkError> {
        if let Some(classic) = Capture::open(eal, text, path, config)? {
            return Ok(Some(Self::Classic(Box::new(classic))));
        }
        Ok(Converted::open(eal, text, path, config)?.map(|converted| Self::Converted(Box::new(converted))))
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
