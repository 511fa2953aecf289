//! Captures that are read once and are not classic ones of Ethernet: pcapng, and other links, whose frames get an Ethernet
//! header.

use std::{
    fs::File,
    io::BufReader,
    path::{Path, PathBuf},
    sync::Arc,
};

use packet::{
    capture::{FrameFacts, Frames},
    Alloc, Buffer, Burst, Rx,
};

use super::{
    capture::{Progress, LARGE, MOST},
    config::PortConfig,
};
use crate::{DpdkError, Eal, Mbuf, Mempool, PoolHandle};

/// Read at once.
const CHUNK: usize = 1 << 20;

/// Such a capture under way.
pub(super) struct Converted {
    path: PathBuf,
    frames: Frames<BufReader<File>>,
    /// A frame that was read and waits for a free buffer. Its bytes are in `bytes`.
    pending: Option<FrameFacts>,
    bytes: Vec<u8>,
    pool: PoolHandle,
    large: PoolHandle,
    total: (u64, u64),
    over: bool,
    progress: Arc<Progress>,
}

impl Converted {
    /// Begins to read a file; `None` when it is not a regular one, which only the driver reads. Errors when it cannot be read,
    /// or memory does not suffice.
    pub(super) fn open(
        eal: &'static Eal,
        text: &str,
        path: &Path,
        config: &PortConfig,
    ) -> Result<Option<Self>, DpdkError> {
        let unreadable = |why: String| DpdkError::File { port: text.to_string(), path: path.to_path_buf(), why };
        let file = File::open(path).map_err(|e| unreadable(e.to_string()))?;
        if !file.metadata().map_err(|e| unreadable(e.to_string()))?.is_file() {
            return Ok(None);
        }
        let frames = Frames::open(BufReader::with_capacity(CHUNK, file)).map_err(|e| unreadable(e.to_string()))?;
        let large = Mempool::new(eal, "large", LARGE.0, LARGE.1, LARGE.2)?.handle();
        Ok(Some(Self {
            path: path.to_path_buf(),
            frames,
            pending: None,
            bytes: Vec::new(),
            pool: config.pool.handle(),
            large,
            total: (0, 0),
            over: false,
            progress: Progress::new(),
        }))
    }

    pub(super) fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    /// The next frame, its bytes in `bytes`; `None` at the end.
    fn next(&mut self) -> Option<FrameFacts> {
        if let Some(pending) = self.pending.take() {
            return Some(pending);
        }
        let trouble = match self.frames.next(&mut self.bytes) {
            Some(Ok(facts)) if self.bytes.len() <= MOST => return Some(facts),
            Some(Ok(_)) => Some(format!("frame {} has more than {MOST} bytes", self.frames.number())),
            Some(Err(e)) => Some(e.to_string()),
            None => None,
        };
        if let Some(trouble) = trouble {
            self.progress.complain(format!("{}: {trouble}", self.path.display()));
        }
        self.over = true;
        self.progress.end();
        None
    }

    /// Copies the bytes into a new buffer of the burst; `None` when the pool is empty.
    fn buffer(&mut self, burst: &mut Burst<Mbuf>) -> Option<()> {
        let len = self.bytes.len();
        let pool = if len <= self.pool.max_frame_len() { &mut self.pool } else { &mut self.large };
        let kept = len.min(pool.max_frame_len());
        if pool.alloc(burst, 1, kept) == 0 {
            return None;
        }
        if let Some((frame, bytes)) = burst.last_mut().zip(self.bytes.get(..kept)) {
            frame.data_mut().copy_from_slice(bytes);
        }
        if kept < len {
            let frame = self.frames.number();
            let path = self.path.display();
            self.progress.complain(format!("frame {frame} of {path} has {len} bytes: only {kept} are read"));
        }
        Some(())
    }
}

impl Rx for Converted {
    type Buf = Mbuf;

    fn rx(&mut self, burst: &mut Burst<Mbuf>) -> usize {
        let have = burst.len();
        while !self.over && burst.remaining_capacity() > 0 {
            let Some(facts) = self.next() else { break };
            // A frame that ends in the header of its link has nothing to show: the smallest frame, which is not IP.
            if self.bytes.is_empty() {
                self.bytes.resize(14, 0);
            }
            let at = burst.len();
            if self.buffer(burst).is_none() {
                self.pending = Some(facts);
                break;
            }
            self.progress.captured().set(at, facts.ns, facts.on_wire as u32);
            self.total.0 += 1;
            self.total.1 += self.bytes.len() as u64;
        }
        self.progress.at(self.total.0, self.total.1);
        burst.len() - have
    }
}
