//! Lines of limited length from a stream.

use std::io::{self, Read};

/// Reads lines of limited length from a stream. Part of a line is kept over errors and time-outs.
#[derive(Debug)]
pub struct Lines {
    buffer: Vec<u8>,
    /// Where the next line starts.
    start: usize,
    /// Up to here, there is no end of line.
    seen: usize,
    max: usize,
}

/// What [`Lines::next`] found.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// One line, without its end.
    Text(Vec<u8>),
    /// More bytes than a line may have, without an end of line.
    TooLong,
    /// The other side closed the stream. A line without its end is discarded.
    End,
}

impl Lines {
    /// For lines of at most `max` bytes, the end of line included.
    pub fn new(max: usize) -> Self {
        Self { buffer: Vec::new(), start: 0, seen: 0, max }
    }

    /// Whether part of a line has arrived.
    pub fn begun(&self) -> bool {
        self.buffer.len() > self.start
    }

    /// Reads the next line. Errors are those of the stream; a time-out loses nothing, and the next call goes on.
    pub fn next(&mut self, from: &mut impl Read) -> io::Result<Line> {
        loop {
            let unseen = self.buffer.get(self.seen..).unwrap_or_default();
            if let Some(at) = unseen.iter().position(|&b| b == b'\n') {
                let end = self.seen + at;
                let text = self.buffer.get(self.start..end).unwrap_or_default();
                let line = if text.len() < self.max { Line::Text(text.to_vec()) } else { Line::TooLong };
                (self.start, self.seen) = (end + 1, end + 1);
                return Ok(line);
            }
            self.buffer.drain(..self.start);
            self.start = 0;
            self.seen = self.buffer.len();
            if self.seen >= self.max {
                return Ok(Line::TooLong);
            }
            if self.buffer.is_empty() && self.buffer.capacity() > 64 << 10 {
                self.buffer = Vec::new();
            }
            let mut more = [0; 8 << 10];
            let n = match from.read(&mut more) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                // TLS reports this when the other side closes without a close_notify.
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => 0,
                other => other?,
            };
            if n == 0 {
                return Ok(Line::End);
            }
            self.buffer.extend_from_slice(more.get(..n).unwrap_or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one part for each read, with a time-out between two parts.
    struct Parts(Vec<Vec<u8>>, bool);

    impl Read for Parts {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let Some(part) = (!self.0.is_empty()).then(|| self.0.remove(0)) else { return Ok(0) };
            buffer[..part.len()].copy_from_slice(&part);
            Ok(part.len())
        }
    }

    fn all(text: &[u8], part: usize, max: usize) -> Vec<Line> {
        let mut from = Parts(text.chunks(part).map(<[u8]>::to_vec).collect(), false);
        let mut lines = Lines::new(max);
        let mut got = Vec::new();
        loop {
            match lines.next(&mut from) {
                Err(e) => assert_eq!(e.kind(), io::ErrorKind::TimedOut),
                Ok(Line::Text(text)) => got.push(Line::Text(text)),
                Ok(end) => {
                    got.push(end);
                    return got;
                }
            }
        }
    }

    #[test]
    fn lines_are_whole_however_they_come() {
        let text = |t: &str| Line::Text(t.as_bytes().to_vec());
        for part in [1, 2, 3, 7, 100] {
            assert_eq!(
                all(b"one\n\ntwo\r\nthr", part, 10),
                [text("one"), text(""), text("two\r"), Line::End],
                "{part}"
            );
            assert_eq!(all(b"one\n0123456789\n", part, 10), [text("one"), Line::TooLong], "{part}");
            assert_eq!(all(b"012345678\n0123456789abc", part, 10), [text("012345678"), Line::TooLong], "{part}");
        }
    }
}
