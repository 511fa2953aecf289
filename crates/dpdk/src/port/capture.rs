//! A capture that is read once, without the driver: that reads through libpcap frame by frame and takes several times as
//! long.

use std::{
    fs::File,
    io::{ErrorKind, Read},
    path::{Path, PathBuf},
    sync::{
        atomic::{AtomicBool, AtomicU64, Ordering},
        Arc, OnceLock,
    },
};

use packet::{Alloc, Buffer, Burst, Captured, Rx, BURST};

use super::{
    config::PortConfig,
    pcap::{cut_short, ByteOrder, HEADER, RECORD},
};
use crate::{DpdkError, Eal, Mbuf, Mempool, PoolHandle};

/// Of libpcap's largest frame.
pub(super) const MOST: usize = 256 << 10;
/// Read at once.
const CHUNK: usize = 1 << 20;
/// Frames larger than the port's buffers get the largest that DPDK has; a few, for they are rare.
pub(super) const LARGE: (u32, u16, u32) = (63, 65_407, 31);

/// How far a capture has been read, for other threads.
#[derive(Debug)]
pub struct Progress {
    captured: Arc<Captured>,
    frames: AtomicU64,
    bytes: AtomicU64,
    over: AtomicBool,
    left_out: OnceLock<String>,
    broke_off: OnceLock<String>,
}

impl Progress {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            captured: Arc::default(),
            frames: AtomicU64::default(),
            bytes: AtomicU64::default(),
            over: AtomicBool::default(),
            left_out: OnceLock::new(),
            broke_off: OnceLock::new(),
        })
    }

    /// Keeps how far it has been read.
    pub(super) fn at(&self, frames: u64, bytes: u64) {
        self.frames.store(frames, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Keeps what was left out first.
    pub(super) fn leave_out(&self, what: String) {
        let _ = self.left_out.set(what);
    }

    /// Keeps why nothing comes any more, although the capture goes on or should.
    pub(super) fn break_off(&self, why: String) {
        let _ = self.broke_off.set(why);
    }

    /// Nothing comes any more.
    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// Frames and bytes handed out so far.
    pub fn read(&self) -> (u64, u64) {
        (self.frames.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }

    /// What the capture says of the frames of the burst that was handed out last, for the thread that takes them.
    pub fn captured(&self) -> &Arc<Captured> {
        &self.captured
    }

    /// Whether all has been read, and the last frames have been dealt with.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// What it left out of a frame that is larger than any buffer: one line, of the first such frame.
    pub fn left_out(&self) -> Option<&str> {
        self.left_out.get().map(String::as_str)
    }

    /// Why reading ended before the end of the capture: one line. What was read before counts.
    pub fn broke_off(&self) -> Option<&str> {
        self.broke_off.get().map(String::as_str)
    }
}

/// A classic capture of Ethernet frames under way. Others: [`Converted`](super::converted::Converted).
pub(super) struct Capture {
    path: PathBuf,
    file: File,
    /// What was read and not handed out yet: `at..end`.
    buffer: Box<[u8]>,
    at: usize,
    end: usize,
    order: ByteOrder,
    /// Nanoseconds of the unit in which parts of a second are told.
    unit_ns: u64,
    pool: PoolHandle,
    large: PoolHandle,
    frames: u64,
    bytes: u64,
    over: bool,
    progress: Arc<Progress>,
}

impl Capture {
    /// Begins to read a file behind its header, which is `head`. `None`: not the classic format, or not of Ethernet.
    /// Errors when memory does not suffice.
    pub(super) fn open(
        eal: &'static Eal,
        path: &Path,
        head: &[u8; HEADER],
        file: &File,
        config: &PortConfig,
    ) -> Result<Option<Self>, DpdkError> {
        let Some(order) = of_ethernet(head) else { return Ok(None) };
        let file =
            file.try_clone().map_err(|e| DpdkError::NoMemory { what: "a capture".into(), reason: e.to_string() })?;
        let is_nano = head.first_chunk().is_some_and(|&magic| order.number(magic) == 0xa1b2_3c4d);
        let pool = config.pool.handle();
        let large = Mempool::new(eal, "large", LARGE.0, LARGE.1, LARGE.2)?.handle();
        Ok(Some(Self {
            path: path.to_path_buf(),
            file,
            buffer: vec![0; CHUNK].into_boxed_slice(),
            at: 0,
            end: 0,
            order,
            unit_ns: if is_nano { 1 } else { 1000 },
            pool,
            large,
            frames: 0,
            bytes: 0,
            over: false,
            progress: Progress::new(),
        }))
    }

    pub(super) fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    /// The length of the frame whose record begins here, when all of it has been read.
    #[inline]
    fn record(&self, at: usize) -> Option<usize> {
        let head = self.buffer.get(at..self.end)?.first_chunk()?;
        Some(self.order.captured(head) as usize)
    }

    /// The lengths of the next frames that are there as a whole and fit the port's buffers.
    #[inline]
    fn whole(&self, lens: &mut [usize]) -> usize {
        let (mut at, mut n) = (self.at, 0);
        for slot in lens {
            match self.record(at) {
                Some(len) if len <= self.pool.max_frame_len() && len <= self.end - at - RECORD => {
                    *slot = len;
                    at += RECORD + len;
                    n += 1;
                }
                _ => break,
            }
        }
        n
    }

    /// Takes the next frame out of the buffer, to be frame `i` of the burst.
    #[inline]
    fn take(&mut self, frame: &mut Mbuf, len: usize, i: usize) {
        if let Some(head) = self.buffer.get(self.at..).and_then(|bytes| bytes.first_chunk()) {
            let on_wire = self.order.on_wire(head).max(len as u32);
            self.progress.captured.set(i, self.order.time(head, self.unit_ns), on_wire);
        }
        let from = self.at + RECORD;
        let kept = frame.len();
        if let Some(bytes) = self.buffer.get(from..from + kept) {
            frame.data_mut().copy_from_slice(bytes);
        }
        self.at = from + len;
        self.frames += 1;
        self.bytes += len as u64;
    }

    /// The frame before which `whole` stopped: a large one. Returns how many frames that made: one, or none.
    #[cold]
    fn take_large(&mut self, burst: &mut Burst<Mbuf>) -> usize {
        let Some(len) = self.record(self.at) else { return 0 };
        if len > MOST {
            self.stop(Some(format!(
                "{} is damaged: frame {} says it has {len} bytes, and at most {MOST} are legal",
                self.path.display(),
                self.frames + 1
            )));
            return 0;
        }
        if len > self.end - self.at - RECORD {
            return 0;
        }
        let kept = len.min(self.large.max_frame_len());
        if self.large.alloc(burst, 1, kept) == 0 {
            return 0;
        }
        if kept < len {
            let frame = self.frames + 1;
            let text = format!("frame {frame} of {} has {len} bytes: only {kept} are read", self.path.display());
            self.progress.leave_out(text);
        }
        if let Some(mut frame) = burst.pop() {
            self.take(&mut frame, len, burst.len());
            burst.push(frame);
        }
        1
    }

    fn stop(&mut self, why: Option<String>) {
        if let Some(why) = why {
            self.progress.break_off(why);
        }
        self.over = true;
        self.progress.end();
    }

    /// Reads on. Whether there may be more frames now.
    #[cold]
    fn refill(&mut self) -> bool {
        self.buffer.copy_within(self.at..self.end, 0);
        (self.at, self.end) = (0, self.end - self.at);
        let Some(free) = self.buffer.get_mut(self.end..).filter(|free| !free.is_empty()) else { return false };
        match self.file.read(free) {
            Ok(0) => {
                let cut = (self.end > 0).then(|| cut_short(&self.path, self.frames + 1));
                self.stop(cut);
                false
            }
            Ok(n) => {
                self.end += n;
                true
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => true,
            Err(e) => {
                self.stop(Some(format!("reading {}: {e}", self.path.display())));
                false
            }
        }
    }
}

impl Rx for Capture {
    type Buf = Mbuf;

    fn rx(&mut self, burst: &mut Burst<Mbuf>) -> usize {
        if self.over {
            return 0;
        }
        let mut lens = [0; BURST];
        let Some(lens) = lens.get_mut(..burst.remaining_capacity().min(BURST)) else { return 0 };
        let mut whole = self.whole(lens);
        if whole == 0 && self.lacks() && self.refill() {
            whole = self.whole(lens);
        }
        let n = match lens.get(..whole) {
            Some([]) | None => self.take_large(burst),
            Some(lens) => self.fill(burst, lens),
        };
        self.progress.at(self.frames, self.bytes);
        n
    }
}

impl Capture {
    /// Whether the next frame, if it is one, has not been read as a whole.
    fn lacks(&self) -> bool {
        self.record(self.at).is_none_or(|len| len <= MOST && len > self.end - self.at - RECORD)
    }

    /// Hands out frames of these lengths. All, or none for want of buffers.
    #[inline]
    fn fill(&mut self, burst: &mut Burst<Mbuf>, lens: &[usize]) -> usize {
        let (have, longest) = (burst.len(), lens.iter().fold(0, |longest, &len| longest.max(len)));
        if self.pool.alloc(burst, lens.len(), longest) == 0 {
            return 0;
        }
        for ((i, frame), &len) in burst.iter_mut().enumerate().skip(have).zip(lens) {
            if len != longest {
                let _fits = frame.set_len(len);
            }
            self.take(frame, len, i);
        }
        lens.len()
    }
}

/// The byte order of a classic capture of Ethernet frames; `None` when it is another kind of file.
fn of_ethernet(head: &[u8; HEADER]) -> Option<ByteOrder> {
    let order = ByteOrder::from_header(head)?;
    // The upper bits say how long the FCS is, if frames have one; those are the driver's.
    (order.number(*head.last_chunk()?) == 1).then_some(order)
}
