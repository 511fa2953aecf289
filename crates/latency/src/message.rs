//! The message of sockperf 3.x: 14 bytes, then a payload. Big-endian, as `Message` in its `src/message.h` sends it.

/// Bytes of the header.
pub const HEADER: usize = 14;
/// Longest message in a datagram (IPv4: 65,535 less 20 and 8).
pub const MOST_UDP: usize = 65_507;
/// Longest message in a stream: what sockperf's server takes.
pub const MOST_TCP: usize = (1 << 20) - 1;

/// Set by who asks; a reply has it cleared.
pub const CLIENT: u16 = 1;
/// A reply is wanted.
pub const PONG: u16 = 2;
/// Not counted.
pub const WARM_UP: u16 = 4;

/// A header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The number of the message, from 1.
    pub sequence: u64,
    /// [`CLIENT`], [`PONG`], [`WARM_UP`], and what later versions may add.
    pub flags: u16,
    /// Bytes of the message, header included, as its sender says.
    pub length: u32,
}

impl Header {
    /// Reads a header; `None` where there are fewer bytes than one has.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (sequence, rest) = bytes.split_first_chunk::<8>()?;
        let (flags, rest) = rest.split_first_chunk::<2>()?;
        let (length, _) = rest.split_first_chunk::<4>()?;
        Some(Self {
            sequence: u64::from_be_bytes(*sequence),
            flags: u16::from_be_bytes(*flags),
            length: u32::from_be_bytes(*length),
        })
    }

    /// Writes it to the beginning of a message; nothing where that is too short.
    pub fn write(&self, message: &mut [u8]) {
        let Some((header, _)) = message.split_first_chunk_mut::<HEADER>() else { return };
        header[..8].copy_from_slice(&self.sequence.to_be_bytes());
        header[8..10].copy_from_slice(&self.flags.to_be_bytes());
        header[10..].copy_from_slice(&self.length.to_be_bytes());
    }

    /// Whether these flags are set.
    pub fn has(&self, flags: u16) -> bool {
        self.flags & flags == flags
    }
}

/// Makes the answer to a message in its place: the client's flag goes, all else comes back as it came. Returns whether an answer
/// is due: only to a client that wants one and whose message is whole. It has as many bytes as were received.
pub fn answer(message: &mut [u8]) -> bool {
    let Some(header) = Header::read(message) else { return false };
    // A length that is not the datagram's own is not ours to believe: a reply must not be longer than what came.
    let whole = usize::try_from(header.length).is_ok_and(|length| length == message.len());
    if !whole || !header.has(CLIENT | PONG) || header.has(WARM_UP) {
        return false;
    }
    Header { flags: header.flags & !CLIENT, ..header }.write(message);
    true
}

/// What a client makes of bytes that came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// The reply to the message of this number.
    To(u64),
    /// Not a reply of this test: too short, of another length, from a client, a warm-up.
    Foreign,
}

/// Reads a reply of a datagram.
pub fn reply(bytes: &[u8]) -> Reply {
    match Header::read(bytes) {
        Some(header)
            if header.flags & (CLIENT | WARM_UP) == 0
                && usize::try_from(header.length).is_ok_and(|length| length == bytes.len()) =>
        {
            Reply::To(header.sequence)
        }
        _ => Reply::Foreign,
    }
}

/// Messages out of a stream.
#[derive(Debug)]
pub struct Stream {
    bytes: Vec<u8>,
    from: usize,
    most: usize,
}

/// A stream that cannot be one of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotMessages {
    /// What the message says its length is.
    pub length: u32,
}

impl Stream {
    /// Takes messages of up to `most` bytes.
    pub fn new(most: usize) -> Self {
        Self { bytes: Vec::with_capacity(most.max(HEADER)), from: 0, most }
    }

    /// Adds what was read.
    pub fn add(&mut self, read: &[u8]) {
        // What was taken goes first, so that the buffer does not grow.
        if self.from > 0 {
            self.bytes.drain(..self.from);
            self.from = 0;
        }
        self.bytes.extend_from_slice(read);
    }

    /// The next whole message.
    ///
    /// # Errors
    ///
    /// Its length is less than a header's, or more than may be.
    pub fn take(&mut self) -> Result<Option<&mut [u8]>, NotMessages> {
        let Some(header) = self.bytes.get(self.from..).and_then(Header::read) else { return Ok(None) };
        let length = self.length_of(&header)?;
        let (from, to) = (self.from, self.from + length);
        if to > self.bytes.len() {
            return Ok(None);
        }
        self.from = to;
        Ok(self.bytes.get_mut(from..to))
    }

    /// Whether a whole message is there.
    ///
    /// # Errors
    ///
    /// As [`Stream::take`].
    pub fn waits(&self) -> Result<bool, NotMessages> {
        let Some(header) = self.bytes.get(self.from..).and_then(Header::read) else { return Ok(false) };
        let length = self.length_of(&header)?;
        Ok(self.waiting() >= length)
    }

    /// The bytes of a message, if it may have so many.
    fn length_of(&self, header: &Header) -> Result<usize, NotMessages> {
        let length = usize::try_from(header.length).ok().filter(|length| (HEADER..=self.most).contains(length));
        length.ok_or(NotMessages { length: header.length })
    }

    /// Bytes that wait for the rest of their message.
    pub fn waiting(&self) -> usize {
        self.bytes.len() - self.from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first message of a client that wants a reply, 14 bytes.
    const FIRST: [u8; HEADER] = [0, 0, 0, 0, 0, 0, 0, 1, 0, 3, 0, 0, 0, 0x0e];

    fn message(sequence: u64, flags: u16, length: usize) -> Vec<u8> {
        let mut bytes = vec![0xa5; length];
        Header { sequence, flags, length: length as u32 }.write(&mut bytes);
        bytes
    }

    #[test]
    fn the_fourteen_bytes_are_sockperf_s() {
        let header = Header { sequence: 1, flags: CLIENT | PONG, length: 14 };
        let mut bytes = [0; HEADER];
        header.write(&mut bytes);
        assert_eq!(bytes, FIRST);
        assert_eq!(Header::read(&FIRST), Some(header));
        assert_eq!(Header::read(&FIRST[..13]), None);
        header.write(&mut [0; 13]);
    }

    #[test]
    fn only_what_asks_is_answered_and_with_as_many_bytes() {
        let mut asked = message(7, CLIENT | PONG | 0x40, 20);
        assert!(answer(&mut asked));
        assert_eq!(asked, message(7, PONG | 0x40, 20));
        assert_eq!(reply(&asked), Reply::To(7));
        for (flags, length) in [(CLIENT, 20), (PONG, 20), (CLIENT | PONG | WARM_UP, 20), (0, 14)] {
            let mut other = message(7, flags, length);
            let before = other.clone();
            assert!(!answer(&mut other), "{flags}");
            assert_eq!(other, before);
        }
        // A length that is not the datagram's.
        for length in [0, 13, 19, 21, u32::MAX] {
            let mut wrong = message(7, CLIENT | PONG, 20);
            Header { sequence: 7, flags: CLIENT | PONG, length }.write(&mut wrong);
            assert!(!answer(&mut wrong), "{length}");
        }
        assert!(!answer(&mut FIRST[..13].to_vec()) && !answer(&mut []));
    }

    #[test]
    fn replies_are_told_from_all_else() {
        assert_eq!(reply(&message(9, PONG, 64)), Reply::To(9));
        for foreign in [message(9, CLIENT | PONG, 64), message(9, PONG | WARM_UP, 64), FIRST[..13].to_vec()] {
            assert_eq!(reply(&foreign), Reply::Foreign);
        }
        assert_eq!(reply(&message(9, PONG, 64)[..63]), Reply::Foreign);
    }

    #[test]
    fn a_stream_is_cut_into_messages_however_it_comes() {
        let all: Vec<u8> = [message(1, CLIENT, 14), message(2, CLIENT, 100), message(3, CLIENT, 15)].concat();
        for step in [1, 13, 14, 15, 64, all.len()] {
            let mut stream = Stream::new(100);
            let mut seen = Vec::new();
            for part in all.chunks(step) {
                stream.add(part);
                while let Some(message) = stream.take().unwrap() {
                    seen.push((Header::read(message).unwrap().sequence, message.len()));
                }
            }
            assert_eq!(seen, [(1, 14), (2, 100), (3, 15)], "{step}");
            assert_eq!(stream.waiting(), 0);
        }
        let mut stream = Stream::new(100);
        stream.add(&message(1, CLIENT, 100)[..99]);
        assert_eq!((stream.take().unwrap().is_none(), stream.waiting()), (true, 99));
    }

    #[test]
    fn a_stream_of_something_else_is_refused() {
        for length in [0, 13, 101, u32::MAX] {
            let mut bytes = [0; HEADER];
            Header { sequence: 1, flags: CLIENT, length }.write(&mut bytes);
            let mut stream = Stream::new(100);
            stream.add(&bytes);
            assert_eq!(stream.take(), Err(NotMessages { length }));
        }
    }

    /// As the fuzz target `messages`, for a moment.
    #[test]
    fn no_bytes_make_more_bytes() {
        let mut noise = crate::noise::Noise::default();
        for _ in 0..20_000 {
            let mut bytes = vec![0; (noise.number() % 40) as usize];
            noise.fill(&mut bytes);
            // Most have a length that could be one.
            if let (Some(mut header), true) = (Header::read(&bytes), noise.number() % 4 > 0) {
                header.length = (noise.number() % 48) as u32;
                header.write(&mut bytes);
            }
            let before = bytes.clone();
            if answer(&mut bytes) {
                assert_eq!((bytes.len(), &bytes[HEADER..]), (before.len(), &before[HEADER..]));
            } else {
                assert_eq!(bytes, before);
            }
            let (mut stream, mut taken) = (Stream::new(40), 0);
            stream.add(&before);
            while let Ok(Some(message)) = stream.take() {
                taken += message.len();
            }
            assert_eq!(taken + stream.waiting(), before.len());
        }
    }
}
