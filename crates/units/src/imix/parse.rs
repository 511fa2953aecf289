//! What a mix may be written as.

use std::str::FromStr;

use super::{
    order::{frames_of, shuffled, spread, Range},
    sequence::{Imix, Sequence, Way},
    text::{cut, wrong, ERROR_CHARS, MAX_FRAMES},
};
use crate::{FrameSize, UnitError};

/// Letters of the genome and their sizes (RFC 6985 §4). `j` is 16000 bytes, beyond [`FrameSize::MAX`], and `z` is the MTU,
/// whose size must be given.
const LETTERS: [(char, u32); 9] =
    [('a', 64), ('b', 128), ('c', 256), ('d', 512), ('e', 1024), ('f', 1280), ('g', 1518), ('h', 2112), ('i', 9000)];

/// FD.io CSIT's mix: 28 of 64, 16 of 570 and 4 of 1518 bytes.
const IMIX_V4: [(usize, u32); 3] = [(28, 64), (16, 570), (4, 1518)];

/// Decimals of a percentage, and all of a mix in units of the last of them.
const DECIMALS: usize = 4;
const ALL: u64 = 1_000_000;

/// Seeds are whole numbers of a TOML file, as all are that a plan holds.
const MAX_SEED: u64 = i64::MAX as u64;

const LEGAL: &str = "must be a genome (aaafg; z with its size: aaz:z=9000), a custom one with its table \
                     (AAB:A=78:B=1400), counts (7x64:4x570:1x1518), shares (70%x64:30%x1518), a range \
                     (64-1518:step=2), or IMIX_v4; :seed=7 behind it draws at random";

type Counts = Vec<(usize, FrameSize)>;

impl FromStr for Imix {
    type Err = UnitError;
    /// The table may also stand behind commas, as in RFC 6985.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let text = &text.trim().replace(',', ":");
        let (mix, seed) = match text.split_once(":seed=") {
            Some((mix, seed)) => (mix, Some(parse_seed(text, seed)?)),
            None => (text.as_str(), None),
        };
        let way = way(mix)?;
        let sizes = match (way, seed) {
            (Way::Range(range), Some(seed)) => range.drawn(seed),
            (Way::Range(range), None) if range.len() as usize <= MAX_FRAMES => range.rising(),
            (Way::Range(range), None) => return Err(too_many(mix, range)),
            (Way::Spread, _) => spread(&shares(mix)?),
            (Way::Written, _) => written(mix)?,
        };
        let (times, sizes) = match (way, seed) {
            (Way::Written | Way::Spread, Some(seed)) => shuffled(&sizes, seed),
            _ => (1, sizes),
        };
        Self::known(Sequence { name: text.clone(), sizes, way, seed, times })
    }
}

fn parse_seed(text: &str, seed: &str) -> Result<u64, UnitError> {
    let number = seed.parse().ok().filter(|n| *n <= MAX_SEED);
    let legal = || format!("seed {:?} must be 0 to 2^63 - 1, and stand at the end", cut(seed, ERROR_CHARS));
    number.ok_or_else(|| wrong(text, legal()))
}

fn way(mix: &str) -> Result<Way, UnitError> {
    let first = mix.split(':').next().unwrap_or_default();
    Ok(match mix.starts_with(|c: char| c.is_ascii_digit()) {
        true if first.contains('-') => Way::Range(range(mix)?),
        true if mix.contains('%') => Way::Spread,
        _ => Way::Written,
    })
}

/// A sequence that is all there in its text.
fn written(mix: &str) -> Result<Vec<FrameSize>, UnitError> {
    let counts = if mix == "IMIX_v4" {
        IMIX_V4
            .into_iter()
            .map(|(count, bytes)| Ok((count, FrameSize::new(bytes)?)))
            .collect::<Result<_, UnitError>>()?
    } else if mix.starts_with(|c: char| c.is_ascii_digit()) {
        counts(mix)?
    } else {
        genome(mix)?
    };
    let mut sizes = Vec::new();
    for (count, size) in counts {
        if count == 0 || count > MAX_FRAMES - sizes.len() {
            return Err(wrong(mix, format!("must be of 1 to {MAX_FRAMES} frames, none 0 times")));
        }
        sizes.extend(std::iter::repeat_n(size, count));
    }
    match sizes.is_empty() {
        true => Err(wrong(mix, LEGAL)),
        false => Ok(sizes),
    }
}

/// The size at the end of a part.
fn sized(mix: &str, part: &str, size: &str) -> Result<FrameSize, UnitError> {
    size.parse().map_err(|e: UnitError| wrong(mix, format!("the size in {:?} {}", cut(part, ERROR_CHARS), e.legal)))
}

/// `7x64:4x570:1x1518`.
fn counts(mix: &str) -> Result<Counts, UnitError> {
    let part = |part: &str| {
        let shown = || cut(part, ERROR_CHARS);
        let legal = || wrong(mix, format!("{:?} must be a count and a size, like 7x64, joined by colons", shown()));
        let (count, size) = part.split_once('x').ok_or_else(legal)?;
        Ok((count.parse().map_err(|_| legal())?, sized(mix, part, size)?))
    };
    mix.split(':').map(part).collect()
}

/// `58.3%x64:33.3%x570:8.4%x1518`.
fn shares(mix: &str) -> Result<Counts, UnitError> {
    let mut table: Vec<(u64, FrameSize)> = Vec::new();
    for part in mix.split(':') {
        let legal = || {
            let most = format!("a percentage of at most {DECIMALS} decimals and a size");
            wrong(mix, format!("{:?} must be {most}, like 58.3%x64, joined by colons", cut(part, ERROR_CHARS)))
        };
        let (share, size) = part.split_once("%x").ok_or_else(legal)?;
        let (share, size) = (percentage(share).ok_or_else(legal)?, sized(mix, part, size)?);
        if table.iter().any(|(_, known)| *known == size) {
            return Err(wrong(mix, format!("gives the share of {size} again: each size stands once")));
        }
        table.push((share, size));
    }
    let (shares, sizes): (Vec<u64>, Vec<FrameSize>) = table.into_iter().unzip();
    let sum: u64 = shares.iter().sum();
    if sum != ALL {
        let sum = sum as f64 / (ALL / 100) as f64;
        return Err(wrong(mix, format!("shares must come to 100 %: these come to {sum} %")));
    }
    let counts: Counts = frames_of(&shares).into_iter().zip(sizes).collect();
    match counts.iter().find(|(count, _)| *count == 0) {
        Some((_, size)) => Err(wrong(mix, format!("of {size} there is less than one frame in {MAX_FRAMES}"))),
        None => Ok(counts),
    }
}

/// A percentage in units of its last decimal, exactly; at most all, so that sums are small.
fn percentage(text: &str) -> Option<u64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    if whole.is_empty() || whole.len() > 3 || decimals.len() > DECIMALS || !digits(whole) || !digits(decimals) {
        return None;
    }
    format!("{whole}{decimals:0<DECIMALS$}").parse().ok().filter(|share| (1..=ALL).contains(share))
}

/// `64-1518`, `64-1518:step=2`.
fn range(mix: &str) -> Result<Range, UnitError> {
    let (ends, step) = mix.split_once(':').map_or((mix, None), |(ends, step)| (ends, Some(step)));
    let (low, high) = ends.split_once('-').unwrap_or((ends, ""));
    let (low, high) = (sized(mix, ends, low)?, sized(mix, ends, high)?);
    if low > high {
        return Err(wrong(mix, format!("{ends:?} must rise, like {high}-{low}")));
    }
    let step = match step {
        None => 1,
        Some(text) => {
            let step = text.strip_prefix("step=").and_then(|step| step.parse().ok());
            let legal = || {
                let text = cut(text, ERROR_CHARS);
                wrong(mix, format!("{text:?} must be the step from size to size, 1 or more, like {ends}:step=2"))
            };
            step.filter(|step| *step > 0).ok_or_else(legal)?
        }
    };
    Ok(Range { low, high, step })
}

fn too_many(mix: &str, range: Range) -> UnitError {
    let span = (range.high.bytes() - range.low.bytes()) as usize;
    let (low, high, step) = (range.low, range.high, span / MAX_FRAMES + 1);
    let remedy = format!("take larger steps ({low}-{high}:step={step}), or draw some ({mix}:seed=1)");
    wrong(mix, format!("is of {} sizes, and a mix of at most {MAX_FRAMES} frames: {remedy}", range.len()))
}

/// `aaafg`, with a table of what it does not say itself behind it: `:z=9000`, `:A=78:B=1400`.
fn genome(text: &str) -> Result<Counts, UnitError> {
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
        let shown = cut(entry, ERROR_CHARS);
        let letter = entry.split_once('=').and_then(|(l, size)| Some((l.parse::<char>().ok()?, size)));
        let form = || err(format!("{shown:?} must be a letter and its size, like A=78"));
        let (letter, size) = letter.ok_or_else(form)?;
        if !(letter == 'z' || letter.is_ascii_uppercase()) {
            let has = "a to i have sizes of their own";
            return Err(err(format!("{shown:?} must give the size of z or of one of A to Z: {has}")));
        }
        if table.iter().any(|(l, _)| *l == letter) {
            return Err(err(format!("{shown:?} gives the size of {letter} again: each stands once")));
        }
        table.push((letter, sized(text, entry, size)?));
    }
    if let Some((unused, _)) = table.iter().find(|(l, _)| !letters.contains(*l)) {
        return Err(err(format!("gives a size of {unused}, which is not in {:?}", cut(letters, ERROR_CHARS))));
    }
    let size = |letter: char| {
        let given = table.iter().find(|(l, _)| *l == letter).map(|(_, size)| *size);
        let known = || LETTERS.iter().find(|(l, _)| *l == letter).and_then(|(_, bytes)| FrameSize::new(*bytes).ok());
        let why = || match letter {
            'j' => "letter j is 16000 bytes, and frames here are at most 9216: must be a to i, z or A to Z".to_owned(),
            'z' => "letter z is the MTU: give its size, like aaz:z=9000".to_owned(),
            _ => format!("letter {letter} is custom: give its size, like {letter}=570"),
        };
        Ok((1, given.or_else(known).ok_or_else(|| err(why()))?))
    };
    letters.chars().map(size).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_mix_says_what_is() {
        let all = [
            "",
            "seed=7",
            "aab:seed=",
            "aab:seed=-1",
            "aab:seed=9223372036854775808",
            "aaz:seed=7:z=9000",
            "aab:step=2",
            "64-",
            "60-1518:seed=1",
            "1518-64",
            "64-1518:step=0",
            "64-1518:2",
            "64-9216",
            "64-9216:step=2",
            "50%x64",
            "50%x64:50.0001%x128",
            "50%x64:50%x64",
            "50%x64:1x128",
            "50.00001%x64:49.99999%x128",
            "0%x64:100%x128",
            "101%x64",
            "+5%x64:95%x128",
            "5e1%x64:50%x128",
            "5%64:95%x128",
            "50%x64:50%x63",
            "99.9999%x64:0.0001%x128",
            "xyz",
            "aaé",
            "aj",
            "az",
            "AB:A=78",
            "aa:z=9000",
            "AA:A=78:A=79",
            "AA:a=78",
            "AB:A=78:B=20",
            "A:A",
            "A:",
            "A:\u{e9}=64",
            "7x64:4y570",
            "7x64:4x57",
            "7x",
            "0x64",
            "5000x64",
            "18446744073709551615x64:2x64",
            "99999999999999999999x64",
            "3x64:aaa",
        ];
        let refused = |bad: &str| {
            let error = bad.parse::<Imix>().unwrap_err();
            assert_eq!(error.what, "IMIX", "{bad}");
            error.to_string()
        };
        insta::assert_snapshot!(all.map(refused).join("\n"));
        for long in ["a:".to_owned() + &"b".repeat(9999), "1%x".to_owned() + &"9".repeat(9999), "1x".repeat(9999)] {
            let error = long.parse::<Imix>().unwrap_err().to_string();
            assert!(error.len() < 300, "{error}");
        }
        let long = "a".repeat(4097).parse::<Imix>().unwrap_err().to_string();
        assert!(long.len() < 200, "{long}");
        insta::assert_snapshot!(long, @r#"IMIX "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...": must be of 1 to 4096 frames, none 0 times"#);
        assert_eq!("a".repeat(4096).parse::<Imix>().unwrap().sizes().len(), 4096);
    }
}
