//! Mixes of frame sizes by the IMIX genome (RFC 6985).

use std::{fmt, str::FromStr};

use crate::{Fps, FrameSize, LinkSpeed, UnitError};

/// Frames of a sequence at most: 256 of each of the letters is beyond every published mix.
const MAX_FRAMES: usize = 4096;

/// Letters of the genome and their sizes (RFC 6985 §4). `j` is 16000 bytes, beyond [`FrameSize::MAX`], and `z` is the MTU,
/// whose size must be given.
const LETTERS: [(char, u32); 9] =
    [('a', 64), ('b', 128), ('c', 256), ('d', 512), ('e', 1024), ('f', 1280), ('g', 1518), ('h', 2112), ('i', 9000)];

/// FD.io CSIT's mix: 28 of 64, 16 of 570 and 4 of 1518 bytes.
const IMIX_V4: [(usize, u32); 3] = [(28, 64), (16, 570), (4, 1518)];

const LEGAL: &str = "must be a genome (aaafg; z with its size: aaz,z=9000), a custom one with its table \
                     (AAB,A=78,B=1400), counts (7x64,4x570,1x1518), or IMIX_v4";

/// A sequence of frame sizes, sent over and over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imix {
    name: String,
    sizes: Vec<FrameSize>,
}

impl Imix {
    /// The sizes in the order sent; never empty.
    pub fn sizes(&self) -> &[FrameSize] {
        &self.sizes
    }

    /// Mean bytes of a frame, FCS included.
    pub fn average_bytes(&self) -> f64 {
        self.mean(|size| size.bytes())
    }

    /// Frames/s of the mix on a link at line rate: each frame takes its wire time (RFC 2544 appendix B, for the mean).
    pub fn line_rate(&self, link: LinkSpeed) -> Fps {
        Fps::from_raw(link.bps() as f64 / (self.mean(FrameSize::on_wire) * 8.0))
    }

    /// Layer-1 bit/s at so many frames/s of the mix.
    pub fn l1_bps(&self, rate: Fps) -> f64 {
        rate.get() * self.mean(FrameSize::on_wire) * 8.0
    }

    /// Layer-2 bit/s, the FCS counted.
    pub fn l2_bps(&self, rate: Fps) -> f64 {
        rate.get() * self.average_bytes() * 8.0
    }

    fn mean(&self, bytes: impl Fn(FrameSize) -> u32) -> f64 {
        let sum: u64 = self.sizes.iter().map(|&s| u64::from(bytes(s))).sum();
        sum as f64 / self.sizes.len() as f64
    }

    fn of(name: String, counts: impl IntoIterator<Item = (usize, FrameSize)>) -> Result<Self, UnitError> {
        let mut sizes = Vec::new();
        for (count, size) in counts {
            if count == 0 || count > MAX_FRAMES - sizes.len() {
                return Err(UnitError::new("IMIX", name, format!("must be of 1 to {MAX_FRAMES} frames, none 0 times")));
            }
            sizes.extend(std::iter::repeat_n(size, count));
        }
        if sizes.is_empty() {
            return Err(UnitError::new("IMIX", name, LEGAL));
        }
        Ok(Self { name, sizes })
    }

    /// `7x64,4x570,1x1518`.
    fn counts(text: &str) -> Result<Self, UnitError> {
        let part = |part: &str| {
            let (count, size) = part.split_once('x').ok_or_else(|| UnitError::new("IMIX", text, LEGAL))?;
            let count = count.parse().map_err(|_| UnitError::new("IMIX", text, LEGAL))?;
            Ok((count, size.parse()?))
        };
        Self::of(text.to_owned(), text.split(',').map(part).collect::<Result<Vec<_>, UnitError>>()?)
    }

    /// `aaafg`, with a table of what it does not say itself behind it: `,z=9000`, `,A=78,B=1400`.
    fn genome(text: &str) -> Result<Self, UnitError> {
        let err = |legal: String| UnitError::new("IMIX", text, legal);
        let mut parts = text.split(',');
        let letters = parts.next().unwrap_or_default();
        let mut table: Vec<(char, FrameSize)> = Vec::new();
        for entry in parts {
            let letter = entry.split_once('=').and_then(|(l, size)| Some((l.parse::<char>().ok()?, size)));
            let (letter, size) = letter.ok_or_else(|| err(LEGAL.to_owned()))?;
            if !(letter == 'z' || letter.is_ascii_uppercase()) || table.iter().any(|(l, _)| *l == letter) {
                return Err(err(format!("a table gives sizes of z and of A to Z, each once; {letter:?} is not such")));
            }
            table.push((letter, size.parse()?));
        }
        if let Some((unused, _)) = table.iter().find(|(l, _)| !letters.contains(*l)) {
            return Err(err(format!("gives a size of {unused}, which is not in {letters:?}")));
        }
        let size = |letter: char| {
            let given = table.iter().find(|(l, _)| *l == letter).map(|(_, size)| *size);
            let known =
                || LETTERS.iter().find(|(l, _)| *l == letter).and_then(|(_, bytes)| FrameSize::new(*bytes).ok());
            let why = || match letter {
                'j' => "j is 16000 bytes, and frames here are at most 9216".to_owned(),
                'z' => "z is the MTU: give its size, like aaz,z=9000".to_owned(),
                'A'..='Z' => format!("{letter} is custom: give its size, like {letter}={}", 570),
                _ => LEGAL.to_owned(),
            };
            Ok((1, given.or_else(known).ok_or_else(|| err(why()))?))
        };
        Self::of(text.to_owned(), letters.chars().map(size).collect::<Result<Vec<_>, UnitError>>()?)
    }
}

impl FromStr for Imix {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let text = text.trim();
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
    /// As RFC 6985 §4 and §5 write it: `IMIX - aaafg`, `CUSTOM IMIX - AAB (A=78, B=1400)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (letters, table) = self.name.split_once(',').unwrap_or((&self.name, ""));
        if letters == "IMIX_v4" || letters.starts_with(|c: char| c.is_ascii_digit()) {
            return f.write_str(&self.name);
        }
        let custom = if letters.contains(|c: char| c.is_ascii_uppercase()) { "CUSTOM " } else { "" };
        write!(f, "{custom}IMIX - {letters}")?;
        if !table.is_empty() {
            write!(f, " ({})", table.replace(',', ", "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imix(text: &str) -> Imix {
        text.parse().unwrap()
    }

    #[test]
    fn a_genome_is_a_sequence() {
        let bytes: Vec<u32> = imix("aaafg").sizes().iter().map(|s| s.bytes()).collect();
        assert_eq!(bytes, [64, 64, 64, 1280, 1518]);
        assert_eq!(imix("aaz,z=9000").sizes()[2].bytes(), 9000);
        assert_eq!(imix("ABA,A=78,B=1400").average_bytes(), (78.0 + 78.0 + 1400.0) / 3.0);
        assert_eq!(imix("7x64,4x570,1x1518").average_bytes(), imix("IMIX_v4").average_bytes());
        for (text, shown) in [
            ("aaafg", "IMIX - aaafg"),
            ("aaz,z=9000", "IMIX - aaz (z=9000)"),
            ("AB,A=78,B=1400", "CUSTOM IMIX - AB (A=78, B=1400)"),
            ("IMIX_v4", "IMIX_v4"),
            ("7x64,1x1518", "7x64,1x1518"),
        ] {
            assert_eq!(imix(text).to_string(), shown);
        }
    }

    #[test]
    fn rates_of_a_mix_are_those_of_its_frames() {
        // 28 x 64, 16 x 570 and 4 x 1518 bytes: 16,984 in 48 frames, 17,944 with what the wire adds.
        let csit = imix("IMIX_v4");
        assert_eq!((csit.sizes().len(), csit.average_bytes() * 48.0), (48, 16_984.0));
        let ten: LinkSpeed = "10G".parse().unwrap();
        let line = csit.line_rate(ten);
        assert!((line.get() - 10e9 / (17_944.0 / 48.0 * 8.0)).abs() < 1e-3);
        assert!((csit.l1_bps(line) - 10e9).abs() < 1.0);
        assert!((csit.l2_bps(line) / csit.l1_bps(line) - 16_984.0 / 17_944.0).abs() < 1e-12);
        assert_eq!(imix("aaa").line_rate(ten), ten.line_rate(FrameSize::MIN));
    }

    #[test]
    fn what_is_no_mix_says_what_is() {
        for (bad, says) in [
            ("", "must be a genome"),
            ("xyz", "must be a genome"),
            ("aj", "16000"),
            ("az", "z=9000"),
            ("AB,A=78", "B is custom"),
            ("aa,z=9000", "not in \"aa\""),
            ("AA,A=78,A=79", "each once"),
            ("AA,a=78", "\'a\' is not such"),
            ("A,A=20", "64 to 9216"),
            ("7x", "64 to 9216"),
            ("0x64", "none 0 times"),
            ("5000x64", "1 to 4096"),
            ("18446744073709551615x64,2x64", "1 to 4096"),
            ("3x64,aaa", "must be a genome"),
        ] {
            let error = bad.parse::<Imix>().unwrap_err().to_string();
            assert!(error.contains(says), "{bad}: {error}");
        }
        assert!("a".repeat(4097).parse::<Imix>().is_err());
    }
}
