//! Mixes of frame sizes (RFC 6985): the IMIX genome, shares, ranges, and what is drawn from them.

mod order;
mod parse;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Mutex, PoisonError},
};

use self::order::Range;
use crate::{FrameSize, UnitError};

/// Frames of a sequence at most: 256 of each of the letters is beyond every published mix.
const MAX_FRAMES: usize = 4096;

/// Different mixes that a program may name: each is kept for good, and files may name as many as they like.
const MAX_KNOWN: usize = 1024;

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
    way: Way,
    /// Of what is drawn at random.
    seed: Option<u64>,
    /// How often it has what its text tells, which is shuffled then.
    times: usize,
}

/// How a text tells a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Way {
    /// It is written out: a genome, counts.
    Written,
    /// By the share of each size.
    Spread,
    /// All sizes between two; with a seed some of them.
    Range(Range),
}

impl Imix {
    /// What `imix` alone stands for: the simple mix of 7 to 4 to 1.
    pub const SIMPLE: &'static str = "7x64:4x570:1x1518";

    /// The sizes in the order sent; never empty.
    pub fn sizes(&self) -> &'static [FrameSize] {
        &self.0.sizes
    }

    /// As it was given: `aaafg`, `AAB:A=78:B=1400`, `7x64:4x570:1x1518`, `70%x64:30%x1518`, `64-1518:seed=7`, `IMIX_v4`.
    pub fn name(&self) -> &'static str {
        &self.0.name
    }

    /// The seed of a mix that is drawn at random.
    pub fn seed(&self) -> Option<u64> {
        self.0.seed
    }

    /// Frames of each size in the sequence, from the smallest size up (RFC 6985 §6.2); none for a range, whose algorithm
    /// tells.
    pub fn frames_by_size(&self) -> BTreeMap<FrameSize, usize> {
        if matches!(self.0.way, Way::Range(_)) {
            return BTreeMap::new();
        }
        self.sizes().iter().fold(BTreeMap::new(), |mut frames, size| {
            *frames.entry(*size).or_default() += 1;
            frames
        })
    }

    /// The algorithm by which anybody gets the same sequence (RFC 6985 §6.3 to §6.5); `None` of one that is written out.
    pub fn algorithm(&self) -> Option<String> {
        let (frames, random) = (self.sizes().len(), "r are successive numbers of SplitMix64 from the seed");
        let sequence = match (self.0.way, self.0.seed) {
            (Way::Range(Range { low, step, .. }), None) => {
                return Some(format!("place n (0 to {}) has {low} + n * {step} bytes", frames - 1))
            }
            (Way::Range(range), Some(_)) => {
                let place = format!("{} + floor(r * {} / 2^64) * {} bytes", range.low, range.len(), range.step);
                return Some(format!("place n (0 to {}) has {place}; {random}", frames - 1));
            }
            (Way::Spread, _) => Some(
                "each size has c frames of N: its share of the shortest sequence that has all shares exactly, or of 4096 by \
                 largest remainder; place n (0 to N - 1) gets, of the sizes whose next frame j (0 to c - 1) has \
                 floor(j * N / c) <= n, that of the least ceil((j + 1) * N / c), the first of them in the table"
                    .to_owned(),
            ),
            (Way::Written, _) => None,
        };
        if self.0.seed.is_none() {
            return sequence;
        }
        let shuffle = format!(
            "the sequence {} times over, shuffled: for i from {} down to 1 places i and floor(r * (i + 1) / 2^64) change \
             (Fisher-Yates); {random}",
            self.0.times,
            frames - 1
        );
        Some(sequence.into_iter().chain([shuffle]).collect::<Vec<_>>().join("; then "))
    }

    /// Keeps a sequence, or finds it among those kept.
    fn known(sequence: Sequence) -> Result<Self, UnitError> {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(same) = known.iter().find(|one| ***one == sequence) {
            return Ok(Self(same));
        }
        if known.len() >= MAX_KNOWN {
            let legal = format!("must be one of at most {MAX_KNOWN} different mixes");
            return Err(parse::wrong(&sequence.name, legal));
        }
        let kept = Box::leak(Box::new(sequence));
        known.push(kept);
        Ok(Self(kept))
    }
}

/// So many characters, and dots when there are more.
pub(crate) fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

impl fmt::Display for Imix {
    /// As RFC 6985 §4 and §5 write it: `IMIX - aaafg`, `CUSTOM IMIX - AAB (A=78, B=1400)`. A mix given by counts is a custom
    /// one. What is not written out is told as §6 asks: how it was made, and of what.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (frames, Sequence { way, seed, times, .. }) = (self.sizes().len(), self.0);
        let told = self.name().split(":seed=").next().unwrap_or_default();
        match (way, seed) {
            (Way::Range(Range { low, high, step }), None) => {
                write!(f, "{low} to {high} bytes, rising by {step} ({frames} frames)")
            }
            (Way::Range(Range { low, high, step }), Some(seed)) => {
                write!(f, "{frames} sizes drawn by SplitMix64, seed {seed}, from {low} to {high} bytes by {step}")
            }
            (_, Some(seed)) => write!(f, "{frames} frames shuffled by SplitMix64, seed {seed}: {times} times {told}"),
            (Way::Spread, None) => write!(f, "{frames} frames evenly spread: {told}"),
            (Way::Written, None) => self.fmt_genome(f),
        }
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

    fn fmt_genome(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
    fn what_is_not_written_out_is_told() {
        for (text, frames, shown, algorithm, seed) in [
            ("aaafg", 5, "IMIX - aaafg", None, None),
            ("64-1518", 1455, "64 to 1518 bytes, rising by 1 (1455 frames)", Some("64 + n * 1 bytes"), None),
            (
                "64-128:step=30",
                3,
                "64 to 128 bytes, rising by 30 (3 frames)",
                Some("(0 to 2) has 64 + n * 30 bytes"),
                None,
            ),
            (
                "64-9216:seed=7",
                4096,
                "4096 sizes drawn by SplitMix64, seed 7, from 64 to 9216 bytes by 1",
                Some("64 + floor(r * 9153 / 2^64) * 1 bytes; r are"),
                Some(7),
            ),
            ("25%x64:75%x570", 4, "4 frames evenly spread: 25%x64:75%x570", Some("c frames of N"), None),
            (
                "7x64:1x570:seed=0",
                4096,
                "4096 frames shuffled by SplitMix64, seed 0: 512 times 7x64:1x570",
                Some("the sequence 512 times over, shuffled: for i from 4095 down"),
                Some(0),
            ),
            (
                "99.9%x64:0.1%x570:seed=1",
                4000,
                "4000 frames shuffled by SplitMix64, seed 1: 4 times 99.9%x64:0.1%x570",
                Some("the first of them in the table; then the sequence 4 times over, shuffled"),
                Some(1),
            ),
        ] {
            let mix = imix(text);
            assert_eq!((mix.sizes().len(), mix.to_string().as_str(), mix.seed()), (frames, shown, seed), "{text}");
            match (algorithm, mix.algorithm()) {
                (Some(part), Some(whole)) => {
                    assert!(whole.contains(part) && seed.is_some() == whole.contains("r are"), "{whole}")
                }
                (part, whole) => assert_eq!(part, whole.as_deref(), "{text}"),
            }
        }
        let table = |text| imix(text).frames_by_size().into_iter().map(|(s, n)| (s.bytes(), n)).collect::<Vec<_>>();
        assert_eq!(table("23%x64:67%x128:10%x1000"), [(64, 23), (128, 67), (1000, 10)]);
        assert_eq!(table("64-1518:seed=3"), []);
        assert_eq!(table("aaafg:seed=3"), [(64, 3 * 819), (1280, 819), (1518, 819)]);
    }
}
