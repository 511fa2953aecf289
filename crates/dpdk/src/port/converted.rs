//! Captures that are read once and are not files of the classic kind of Ethernet: pcapng, other links, whose frames get an
//! Ethernet header, and all that comes through pipes.

use std::{
    fs::File,
    io::BufReader,
    path::{Path, PathBuf},
    sync::Arc,
};

use packet::{
    capture::{CaptureError, FrameFacts, Frames},
    Alloc, Buffer, Burst, Rx,
};

use super::{
    capture::{Progress, LARGE, MOST},
    config::PortConfig,
    piped::{Next, Source},
};
use crate::{DpdkError, Eal, Mbuf, Mempool, PoolHandle};

/// Read at once.
const CHUNK: usize = 1 << 20;

/// Such a capture under way.
pub(super) struct Converted {
    path: PathBuf,
    frames: Source,
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
    /// Begins to read a regular file or a pipe. Errors when it is not a capture that can be read, or memory does not suffice.
    pub(super) fn open(
        eal: &'static Eal,
        text: &str,
        path: &Path,
        (file, is_file): (File, bool),
        config: &PortConfig,
    ) -> Result<Self, DpdkError> {
        let unreadable = |why: String| DpdkError::File { port: text.to_string(), path: path.to_path_buf(), why };
        let frames = Frames::open(BufReader::with_capacity(CHUNK, file)).map_err(|e| unreadable(e.to_string()))?;
        let frames = if is_file { Ok(Source::file(frames)) } else { Source::pipe(frames) };
        let frames = frames.map_err(|e| unreadable(e.to_string()))?;
        let large = Mempool::new(eal, "large", LARGE.0, LARGE.1, LARGE.2)?.handle();
        Ok(Self {
            path: path.to_path_buf(),
            frames,
            pending: None,
            bytes: Vec::new(),
            pool: config.pool.handle(),
            large,
            total: (0, 0),
            over: false,
            progress: Progress::new(),
        })
    }

    pub(super) fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    /// The next frame, its bytes in `bytes`; `None` at the end, and while nothing has come.
    fn next(&mut self) -> Option<FrameFacts> {
        if let Some(pending) = self.pending.take() {
            return Some(pending);
        }
        let (path, number) = (self.path.display(), self.frames.number() + 1);
        let broke_off = match self.frames.next(&mut self.bytes) {
            Next::Frame(facts) if self.bytes.len() <= MOST => return Some(facts),
            Next::Later => return None,
            Next::End => None,
            Next::Frame(_) => Some(format!("{path}: frame {number} has more than {MOST} bytes")),
            Next::Failed(CaptureError::Broken(frame)) => {
                Some(format!("{path} is cut or damaged in frame {frame}: only what is before it is read"))
            }
            Next::Failed(e) => Some(format!("{path}: {e}")),
        };
        if let Some(why) = broke_off {
            self.progress.break_off(why);
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
            self.progress.leave_out(format!("frame {frame} of {path} has {len} bytes: only {kept} are read"));
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
