//! Frames of captures that are files, and of those that come through pipes: a thread reads these, so that no poll waits for
//! who writes.

use std::{
    fs::File,
    io::{self, BufReader},
    sync::mpsc::{sync_channel, Receiver, SyncSender, TryRecvError},
    thread,
};

use packet::capture::{CaptureError, FrameFacts, Frames};

/// Most frames of a pipe that wait to be received.
const WAITING: usize = 1024;

/// A frame and its bytes, or the error that ended the reading.
type Item = Result<(FrameFacts, Vec<u8>), CaptureError>;

/// What comes next.
pub(super) enum Next {
    Frame(FrameFacts),
    /// Nothing has come, and more may.
    Later,
    End,
    /// Nothing comes behind it.
    Failed(CaptureError),
}

/// Where frames come from.
pub(super) struct Source {
    from: Kind,
    number: usize,
}

enum Kind {
    File(Box<Frames<BufReader<File>>>),
    Pipe(Receiver<Item>),
}

impl Source {
    /// A file, which is read when a frame is wanted.
    pub(super) fn file(frames: Frames<BufReader<File>>) -> Self {
        Self { from: Kind::File(Box::new(frames)), number: 0 }
    }

    /// A pipe, which a thread reads. The thread ends with the pipe, or with the frame after this is dropped. Errors when no
    /// thread is to be had.
    pub(super) fn pipe(frames: Frames<BufReader<File>>) -> io::Result<Self> {
        let (to, from) = sync_channel(WAITING);
        thread::Builder::new().name("capture".into()).spawn(move || read(frames, &to))?;
        Ok(Self { from: Kind::Pipe(from), number: 0 })
    }

    /// Number of the frame handed out last, from 1.
    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// The next frame, its bytes in place of what `into` holds.
    pub(super) fn next(&mut self, into: &mut Vec<u8>) -> Next {
        let next = match &mut self.from {
            Kind::File(frames) => match frames.next(into) {
                Some(Ok(facts)) => Next::Frame(facts),
                Some(Err(e)) => Next::Failed(e),
                None => Next::End,
            },
            Kind::Pipe(frames) => match frames.try_recv() {
                Ok(Ok((facts, bytes))) => {
                    *into = bytes;
                    Next::Frame(facts)
                }
                Ok(Err(e)) => Next::Failed(e),
                Err(TryRecvError::Empty) => Next::Later,
                Err(TryRecvError::Disconnected) => Next::End,
            },
        };
        self.number += usize::from(matches!(next, Next::Frame(_)));
        next
    }
}

fn read(mut frames: Frames<BufReader<File>>, to: &SyncSender<Item>) {
    let mut bytes = Vec::new();
    while let Some(facts) = frames.next(&mut bytes) {
        let is_last = facts.is_err();
        let item = facts.map(|facts| (facts, std::mem::take(&mut bytes)));
        if to.send(item).is_err() || is_last {
            return;
        }
    }
}
