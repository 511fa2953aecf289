//! Mixes of frame sizes by the IMIX genome (RFC 6985).

use std::{
    fmt,
    str::FromStr,
    sync::{Mutex, PoisonError},
};

use crate::{FrameSize, UnitError};

/// Frames of a sequence at most: 256 of each of the letters is beyond every published mix.
const MAX_FRAMES: usize = 4096;

/// Letters of the genome and their sizes (RFC 6985 §4). `j` is 16000 bytes, beyond [`FrameSize::MAX`], and `z` is the MTU,
/// whose size must be given.
const LETTERS: [(char, u32); 9] =
    [('a', 64), ('b', 128), ('c', 256), ('d', 512), ('e', 1024), ('f', 1280), ('g', 1518), ('h', 2112), ('i', 9000)];

/// FD.io CSIT's mix: 28 of 64, 16 of 570 and 4 of 1518 bytes.
const IMIX_V4: [(usize, u32); 3] = [(28, 64), (16, 570), (4, 1518)];

/// Different mixes that a program may name: each is kept for good, and files may name as many as they like.
const MAX_KNOWN: usize = 1024;

const LEGAL: &str = "must be a genome (aaafg; z with its size: aaz:z=9000), a custom one with its table \
                     (AAB:A=78:B=1400), counts (7x64:4x570:1x1518), or IMIX_v4";
/// Characters of a mix that an error repeats, and those that a document for people shows.
const ERROR_CHARS: usize = 40;
pub(crate) const BRIEF_CHARS: usize = 96;

/// Every mix named so far. A mix is named once, by a plan or a result, and kept for good, so that it is copied as a
/// frame size is.
static KNOWN: Mutex<Vec<&'static Sequence>> = Mutex::new(Vec::new());

/// A sequence of frame sizes, sent over and over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Imix(&'static Sequence);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Sequence {
    name: String,
    sizes: Vec<FrameSize>,
}

impl Imix {
    /// What `imix` alone stands for: the simple mix of 7 to 4 to 1.
    pub const SIMPLE: &'static str = "7x64:4x570:1x1518";

    /// The sizes in the order sent; never empty.
    pub fn sizes(&self) -> &'static [FrameSize] {
        &self.0.sizes
    }

    /// As it was given: `aaafg`, `AAB:A=78:B=1400`, `7x64:4x570:1x1518`, `IMIX_v4`.
    pub fn name(&self) -> &'static str {
        &self.0.name
    }

    fn of(name: String, counts: impl IntoIterator<Item = (usize, FrameSize)>) -> Result<Self, UnitError> {
        let mut sizes = Vec::new();
        for (count, size) in counts {
            if count == 0 || count > MAX_FRAMES - sizes.len() {
                return Err(wrong(&name, format!("must be of 1 to {MAX_FRAMES} frames, none 0 times")));
            }
            sizes.extend(std::iter::repeat_n(size, count));
        }
        if sizes.is_empty() {
            return Err(wrong(&name, LEGAL));
        }
        let sequence = Sequence { name, sizes };
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(same) = known.iter().find(|one| ***one == sequence) {
            return Ok(Self(same));
        }
        if known.len() >= MAX_KNOWN {
            let legal = format!("must be one of at most {MAX_KNOWN} different mixes");
            return Err(wrong(&sequence.name, legal));
        }
        let kept = Box::leak(Box::new(sequence));
        known.push(kept);
        Ok(Self(kept))
    }

    /// `7x64:4x570:1x1518`.
    fn counts(text: &str) -> Result<Self, UnitError> {
        let part = |part: &str| {
            let legal = || wrong(text, format!("{part:?} must be a count and a size, like 7x64, joined by colons"));
            let (count, size) = part.split_once('x').ok_or_else(legal)?;
            let count = count.parse().map_err(|_| legal())?;
            Ok((count, size.parse().map_err(|e: UnitError| wrong(text, format!("the size in {part:?} {}", e.legal)))?))
        };
        Self::of(text.to_owned(), text.split(':').map(part).collect::<Result<Vec<_>, UnitError>>()?)
    }

    /// `aaafg`, with a table of what it does not say itself behind it: `:z=9000`, `:A=78:B=1400`.
    fn genome(text: &str) -> Result<Self, UnitError> {
        let err = |legal: String| wrong(text, legal);
        let mut parts = text.split(':');
        let letters = parts.next().unwrap_or_default();
        // What is wrong with the letters is said before what is wrong with their sizes.
        if let Some(other) = letters.chars().find(|l| !matches!(l, 'a'..='j' | 'z' | 'A'..='Z')) {
            let legal = "must be a to i, z with its size (aaz:z=9000), or A to Z with theirs (AAB:A=78:B=1400)";
            return Err(err(format!("letter {other:?} {legal}")));
        }
        let mut table: Vec<(char, FrameSize)> = Vec::new();
        for entry in parts {
            let letter = entry.split_once('=').and_then(|(l, size)| Some((l.parse::<char>().ok()?, size)));
            let form = || err(format!("{entry:?} must be a letter and its size, like A=78"));
            let (letter, size) = letter.ok_or_else(form)?;
            if !(letter == 'z' || letter.is_ascii_uppercase()) {
                let has = "a to i have sizes of their own";
                return Err(err(format!("{entry:?} must give the size of z or of one of A to Z: {has}")));
            }
            if table.iter().any(|(l, _)| *l == letter) {
                return Err(err(format!("{entry:?} gives the size of {letter} again: each stands once")));
            }
            table.push((
                letter,
                size.parse().map_err(|e: UnitError| err(format!("the size in {entry:?} {}", e.legal)))?,
            ));
        }
        if let Some((unused, _)) = table.iter().find(|(l, _)| !letters.contains(*l)) {
            return Err(err(format!("gives a size of {unused}, which is not in {:?}", cut(letters, ERROR_CHARS))));
        }
        let size = |letter: char| {
            let given = table.iter().find(|(l, _)| *l == letter).map(|(_, size)| *size);
            let known =
                || LETTERS.iter().find(|(l, _)| *l == letter).and_then(|(_, bytes)| FrameSize::new(*bytes).ok());
            let why = || match letter {
                'j' => {
                    "letter j is 16000 bytes, and frames here are at most 9216: must be a to i, z or A to Z".to_owned()
                }
                'z' => "letter z is the MTU: give its size, like aaz:z=9000".to_owned(),
                _ => format!("letter {letter} is custom: give its size, like {letter}=570"),
            };
            Ok((1, given.or_else(known).ok_or_else(|| err(why()))?))
        };
        Self::of(text.to_owned(), letters.chars().map(size).collect::<Result<Vec<_>, UnitError>>()?)
    }
}

/// An error that names a mix, cut short when it is long.
fn wrong(text: &str, legal: impl Into<String>) -> UnitError {
    UnitError::new("IMIX", cut(text, ERROR_CHARS), legal)
}

/// So many characters, and dots when there are more.
pub(crate) fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

impl FromStr for Imix {
    type Err = UnitError;
    /// The table may also stand behind commas, as in RFC 6985.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let text = &text.trim().replace(',', ":");
        if text == "IMIX_v4" {
            let sized = |(count, bytes)| Ok((count, FrameSize::new(bytes)?));
            let counts = IMIX_V4.into_iter().map(sized).collect::<Result<Vec<_>, UnitError>>()?;
            return Self::of(text.to_owned(), counts);
        }
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            Self::counts(text)
        } else {
            Self::genome(text)
        }
    }
}

impl fmt::Display for Imix {
    /// As RFC 6985 §4 and §5 write it: `IMIX - aaafg`, `CUSTOM IMIX - AAB (A=78, B=1400)`. A mix given by counts is a custom
    /// one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (letters, table) = self.name().split_once(':').unwrap_or((self.name(), ""));
        if letters == "IMIX_v4" || letters.starts_with(|c: char| c.is_ascii_digit()) {
            return self.fmt_custom(f);
        }
        let custom = if letters.contains(|c: char| c.is_ascii_uppercase()) { "CUSTOM " } else { "" };
        write!(f, "{custom}IMIX - {letters}")?;
        if !table.is_empty() {
            write!(f, " ({})", table.replace(':', ", "))?;
        }
        Ok(())
    }
}

impl Imix {
    /// For a document that people read: as it displays, but cut short when it is long.
    pub fn brief(&self) -> String {
        let (whole, frames) = (self.to_string(), self.sizes().len());
        match whole.chars().count() > BRIEF_CHARS {
            true => format!("{} ({frames} frames)", cut(&whole, BRIEF_CHARS)),
            false => whole,
        }
    }

    /// With the letters A to Z for its sizes as they come. A mix of more sizes than letters is left as it was given.
    fn fmt_custom(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table: Vec<(FrameSize, char)> = Vec::new();
        for &size in self.sizes() {
            if table.iter().all(|(known, _)| *known != size) {
                let Some(letter) = ('A'..='Z').nth(table.len()) else { return f.write_str(self.name()) };
                table.push((size, letter));
            }
        }
        let letter = |size: &FrameSize| table.iter().find(|(known, _)| known == size).map(|(_, letter)| *letter);
        let letters: String = self.sizes().iter().filter_map(letter).collect();
        let sizes: Vec<String> = table.iter().map(|(size, letter)| format!("{letter}={size}")).collect();
        write!(f, "CUSTOM IMIX - {letters} ({})", sizes.join(", "))
    }
}

impl fmt::Debug for Imix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Imix({})", self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{rate, Fps, Frames, LinkSpeed};

    fn imix(text: &str) -> Imix {
        text.parse().unwrap()
    }

    #[test]
    fn a_genome_is_a_sequence() {
        let bytes = |text| -> Vec<u32> { imix(text).sizes().iter().map(|s| s.bytes()).collect() };
        assert_eq!(bytes("aaafg"), [64, 64, 64, 1280, 1518]);
        assert_eq!(bytes("aaz:z=9000"), [64, 64, 9000]);
        assert_eq!(bytes("ABA,A=78,B=1400"), [78, 1400, 78]);
        for (text, shown) in [
            ("aaafg", "IMIX - aaafg"),
            ("aaz:z=9000", "IMIX - aaz (z=9000)"),
            ("AB,A=78,B=1400", "CUSTOM IMIX - AB (A=78, B=1400)"),
            ("7x64:1x1518", "CUSTOM IMIX - AAAAAAAB (A=64, B=1518)"),
            (Imix::SIMPLE, "CUSTOM IMIX - AAAAAAABBBBC (A=64, B=570, C=1518)"),
        ] {
            assert_eq!(imix(text).to_string(), shown);
        }
        let v4 = imix("IMIX_v4").to_string();
        assert!(v4.starts_with("CUSTOM IMIX - AAAA") && v4.ends_with("CCCC (A=64, B=570, C=1518)"), "{v4}");
        let many: Vec<String> = (64..91).map(|bytes| format!("1x{bytes}")).collect();
        assert_eq!(imix(&many.join(":")).to_string(), many.join(":"), "27 sizes are more than letters");
    }

    #[test]
    fn a_mix_is_what_it_was_named() {
        assert_eq!(imix("AB,A=78,B=1400"), imix("AB:A=78:B=1400"));
        assert!(std::ptr::eq(imix("aabbc").0, imix("aabbc").0));
        assert_ne!(imix("aab"), imix("2x64:1x128"), "the same sizes, told another way");
        assert_ne!(imix("AB,A=78,B=1400"), imix("AB:A=78:B=1401"));
    }

    #[test]
    fn rates_of_a_mix_are_those_of_its_frames() {
        // 28 x 64, 16 x 570 and 4 x 1518 bytes: 16,984 in 48 frames, 17,944 with what the wire adds.
        let csit: Frames = imix("IMIX_v4").into();
        assert_eq!((csit.sizes().len(), csit.average_bytes() * 48.0), (48, 16_984.0));
        let ten: LinkSpeed = "10G".parse().unwrap();
        let line: Fps = ten.line_rate(csit);
        assert!((line.get() - 10e9 / (17_944.0 / 48.0 * 8.0)).abs() < 1e-3);
        assert!((rate::l1_bps(line, csit) - 10e9).abs() < 1.0);
        assert!((rate::l2_bps(line, csit) / rate::l1_bps(line, csit) - 16_984.0 / 17_944.0).abs() < 1e-12);
        assert_eq!(ten.line_rate(imix("aaa")), ten.line_rate(FrameSize::MIN));
    }

    #[test]
    fn a_long_mix_is_short_for_people() {
        for short in ["aaafg", Imix::SIMPLE, "IMIX_v4"] {
            assert_eq!(imix(short).brief(), imix(short).to_string());
        }
        let brief = imix(&"ab".repeat(2000)).brief();
        assert!(brief.starts_with("IMIX - abab") && brief.ends_with("... (4000 frames)"), "{brief}");
        assert!(brief.len() < 120 && imix(&"ab".repeat(2000)).to_string().len() > 4000);
    }

    #[test]
    fn what_is_no_mix_says_what_is() {
        for (bad, says) in [
            ("", "must be a genome"),
            ("xyz", "letter 'x' must be a to i, z with its size"),
            ("aaé", "letter 'é' must be"),
            ("aj", "letter j is 16000"),
            ("az", "letter z is the MTU: give its size, like aaz:z=9000"),
            ("AB:A=78", "B is custom"),
            ("aa:z=9000", "gives a size of z, which is not in \"aa\""),
            ("AA:A=78:A=79", "\"A=79\" gives the size of A again"),
            ("AA:a=78", "\"a=78\" must give the size of z or of one of A to Z"),
            ("AB:A=78:B=20", "the size in \"B=20\" must be 64 to 9216"),
            ("A:A", "\"A\" must be a letter and its size, like A=78"),
            ("A:", "\"\" must be a letter and its size"),
            ("A:\u{e9}=64", "must give the size of z"),
            ("7x64:4y570", "\"4y570\" must be a count and a size, like 7x64"),
            ("7x64:4x57", "the size in \"4x57\" must be 64 to 9216"),
            ("7x", "64 to 9216"),
            ("0x64", "none 0 times"),
            ("5000x64", "1 to 4096"),
            ("18446744073709551615x64:2x64", "1 to 4096"),
            ("99999999999999999999x64", "must be a count and a size"),
            ("3x64:aaa", "\"aaa\" must be a count and a size"),
        ] {
            let error = bad.parse::<Imix>().unwrap_err().to_string();
            assert!(error.contains(says), "{bad}: {error}");
        }
        let long = "a".repeat(4097).parse::<Imix>().unwrap_err().to_string();
        assert!(long.len() < 200 && long.contains("1 to 4096"), "{long}");
        assert_eq!(imix(&"a".repeat(4096)).sizes().len(), 4096);
    }
}
