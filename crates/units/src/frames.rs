//! What frames have for a size: one size, or a mix.

use std::{fmt, slice, str::FromStr};

use serde::{de, Deserialize, Deserializer, Serialize, Serializer};

use crate::{
    imix::{cut, BRIEF_CHARS},
    FrameSize, Imix, UnitError, WIRE_OVERHEAD_BYTES,
};

/// Characters of a genome that a label shows.
const LABEL_CHARS: usize = 20;

/// What sizes the frames of a trial have: all the same, or those of a mix in turn.
///
/// Written `64`, or `imix` and `imix=aaafg`; in JSON and TOML a number, or such a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Frames {
    /// All of one size.
    Size(FrameSize),
    /// By RFC 6985.
    Mix(Imix),
}

impl Frames {
    /// The sizes in the order sent; never empty.
    pub fn sizes(&self) -> &[FrameSize] {
        match self {
            Self::Size(size) => slice::from_ref(size),
            Self::Mix(mix) => mix.sizes(),
        }
    }

    /// The size, where there is but one.
    pub fn size(self) -> Option<FrameSize> {
        match self {
            Self::Size(size) => Some(size),
            Self::Mix(_) => None,
        }
    }

    /// The mix, where it is one.
    pub fn mix(self) -> Option<Imix> {
        match self {
            Self::Size(_) => None,
            Self::Mix(mix) => Some(mix),
        }
    }

    /// The largest frame.
    pub fn largest(self) -> FrameSize {
        self.sizes().iter().copied().max().unwrap_or(FrameSize::MIN)
    }

    /// The smallest frame.
    pub fn smallest(self) -> FrameSize {
        self.sizes().iter().copied().min().unwrap_or(FrameSize::MIN)
    }

    /// As it is written: `64`, `imix=aaafg`.
    pub fn written(self) -> String {
        match self {
            Self::Size(size) => size.to_string(),
            Self::Mix(mix) => format!("imix={}", mix.name()),
        }
    }

    /// As it is written, but cut short when it is long: for messages.
    pub fn brief(self) -> String {
        cut(&self.written(), BRIEF_CHARS)
    }

    /// With its unit as it reads best there, `B` or `bytes`: `64 B`, `IMIX (aaafg)`.
    pub fn with_unit(self, bytes: &str) -> String {
        match self {
            Self::Size(size) => format!("{size} {bytes}"),
            Self::Mix(_) => self.to_string(),
        }
    }

    /// Several: `64, 128 B`, and mixes behind that: `64 B, IMIX (aaafg)`.
    pub fn list(all: &[Self]) -> String {
        let sizes: Vec<String> = all.iter().filter_map(|frames| frames.size()).map(|size| size.to_string()).collect();
        let sizes = (!sizes.is_empty()).then(|| format!("{} B", sizes.join(", ")));
        let mixes = all.iter().filter(|frames| frames.mix().is_some()).map(ToString::to_string);
        sizes.into_iter().chain(mixes).collect::<Vec<_>>().join(", ")
    }

    /// Mean bytes of a frame, FCS included.
    pub fn average_bytes(self) -> f64 {
        let sizes = self.sizes();
        let sum: u64 = sizes.iter().map(|size| u64::from(size.bytes())).sum();
        sum as f64 / sizes.len() as f64
    }

    /// Mean bytes of wire time of a frame: with preamble, start delimiter and inter-frame gap.
    pub fn average_on_wire(self) -> f64 {
        self.average_bytes() + f64::from(WIRE_OVERHEAD_BYTES)
    }

    /// Bytes of the first so many frames sent, FCS included.
    pub fn bytes_of_first(self, frames: u64) -> u64 {
        let sizes = self.sizes();
        let bytes = |sizes: &[FrameSize]| sizes.iter().map(|size| u64::from(size.bytes())).sum::<u64>();
        let (whole, rest) = (frames / sizes.len() as u64, (frames % sizes.len() as u64) as usize);
        whole * bytes(sizes) + sizes.get(..rest).map_or(0, bytes)
    }
}

impl From<FrameSize> for Frames {
    fn from(size: FrameSize) -> Self {
        Self::Size(size)
    }
}

impl From<Imix> for Frames {
    fn from(mix: Imix) -> Self {
        Self::Mix(mix)
    }
}

impl PartialEq<FrameSize> for Frames {
    fn eq(&self, size: &FrameSize) -> bool {
        self.size() == Some(*size)
    }
}

impl FromStr for Frames {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        match text.trim().strip_prefix("imix") {
            Some("") => Imix::SIMPLE.parse().map(Self::Mix),
            Some(rest) => match rest.strip_prefix('=') {
                Some(mix) => mix.parse().map(Self::Mix),
                None => Err(UnitError::new("frame size", text, "must be a number of bytes, imix, or imix=GENOME")),
            },
            None => text.parse().map(Self::Size),
        }
    }
}

impl fmt::Display for Frames {
    /// For a table's column of frame sizes: `64`, `IMIX` for the simple mix, `IMIX (aaafg)`. A long genome is cut short.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(size) => size.fmt(f),
            Self::Mix(mix) if mix.name() == Imix::SIMPLE => f.pad("IMIX"),
            // The seed stays, since mixes may differ in it alone.
            Self::Mix(mix) => f.pad(&match mix.name().split_once(":seed=") {
                Some((told, seed)) => format!("IMIX ({}:seed={seed})", cut(told, LABEL_CHARS)),
                None => format!("IMIX ({})", cut(mix.name(), LABEL_CHARS)),
            }),
        }
    }
}

impl Serialize for Frames {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Size(size) => size.serialize(s),
            Self::Mix(_) => s.serialize_str(&self.written()),
        }
    }
}

impl<'de> Deserialize<'de> for Frames {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(Either)
    }
}

/// Takes a number or a text.
struct Either;

impl de::Visitor<'_> for Either {
    type Value = Frames;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a frame size in bytes or a mix like \"imix=aaafg\"")
    }

    fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<Frames, E> {
        // What no u32 holds is as illegal as the largest of them.
        FrameSize::new(u32::try_from(bytes).unwrap_or(u32::MAX)).map(Frames::Size).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, bytes: i64) -> Result<Frames, E> {
        self.visit_u64(u64::try_from(bytes).unwrap_or(0))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Frames, E> {
        text.parse().map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{rate, Fps, LinkSpeed, Load};

    fn frames(text: &str) -> Frames {
        text.parse().unwrap()
    }

    #[test]
    fn a_size_or_a_mix_is_read_and_written_alike() {
        assert_eq!(frames("imix"), frames("imix=7x64:4x570:1x1518"));
        assert_eq!(frames("64"), FrameSize::MIN);
        let made = ["imix=70%x64:30%x1518", "imix=64-1518:step=2", "imix=64-9216:seed=7", "imix=aaafg:seed=0"];
        for text in ["64", "imix=aaafg", "imix=AAB:A=78:B=1400", "imix=IMIX_v4"].into_iter().chain(made) {
            assert_eq!(frames(text).written(), text);
            let json = serde_json::to_string(&frames(text)).unwrap();
            assert_eq!(json.starts_with('"'), text.starts_with("imix"), "a size is a number: {json}");
            assert_eq!(serde_json::from_str::<Frames>(&json).unwrap(), frames(text));
        }
        let errors =
            ["imixed", "imix=", "imix=k", "IMIX", "63"].map(|bad| bad.parse::<Frames>().unwrap_err().to_string());
        insta::assert_snapshot!(errors.join("\n"), @r#"
        frame size "imixed": must be a number of bytes, imix, or imix=GENOME
        IMIX "": must be a genome (aaafg; z with its size: aaz:z=9000), a custom one with its table (AAB:A=78:B=1400), counts (7x64:4x570:1x1518), shares (70%x64:30%x1518), a range (64-1518:step=2), or IMIX_v4; :seed=7 behind it draws at random
        IMIX "k": letter 'k' must be a to i, z with its size (aaz:z=9000), or A to Z with theirs (AAB:A=78:B=1400)
        frame size "IMIX": must be a number of bytes, 64 to 9216, FCS included
        frame size "63": must be 64 to 9216 bytes, FCS included
        "#);
        for bad in ["63", "-1", "18446744073709551615", "\"imix=j\"", "1.5", "null"] {
            assert!(serde_json::from_str::<Frames>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_table_says_which_mix() {
        let shown = |text| frames(text).to_string();
        assert_eq!([shown("64"), shown("imix=aaafg"), shown("imix")], ["64", "IMIX (aaafg)", "IMIX"]);
        assert_eq!(frames(&format!("imix={}", "a".repeat(21))).to_string(), format!("IMIX ({}...)", "a".repeat(20)));
        assert_eq!(shown("imix=7x64:4x570:1x1518:seed=7"), "IMIX (7x64:4x570:1x1518:seed=7)");
        assert_eq!(shown("imix=58.33%x64:33.33%x570:8.34%x1518:seed=9"), "IMIX (58.33%x64:33.33%x570...:seed=9)");
        assert_eq!((frames("64").with_unit("B"), frames("imix=b").with_unit("B")), ("64 B".into(), "IMIX (b)".into()));
        assert_eq!(Frames::list(&["64", "imix=b", "128"].map(frames)), "64, 128 B, IMIX (b)");
        assert_eq!(Frames::list(&["imix=b"].map(frames)), "IMIX (b)");
        let mut all = ["imix=b", "1518", "imix=a", "64"].map(frames);
        all.sort_unstable();
        assert_eq!(all, ["64", "1518", "imix=a", "imix=b"].map(frames), "sizes first");
    }

    #[test]
    fn loads_go_by_the_average() {
        // Seven of 64, four of 570 and one of 1518 bytes: 4246 in twelve frames, 4486 with what the wire adds.
        let mix = frames("imix");
        let link: LinkSpeed = "10G".parse().unwrap();
        let fps = |load: &str| load.parse::<Load>().unwrap().resolve(mix, Some(link)).unwrap();
        assert!((fps("100%").get() - 10e9 / (4486.0 / 12.0 * 8.0)).abs() < 1e-6);
        assert_eq!(fps("1GbpsL2"), Fps::new(1e9 / (4246.0 / 12.0 * 8.0)).unwrap());
        assert_eq!(fps("10Gbps"), link.line_rate(mix));
        assert_eq!(fps("1Mpps").get(), 1e6);
        assert!((rate::l1_bps(fps("100%"), mix) - 10e9).abs() < 1e-3);
        assert!((rate::l2_bps(fps("100%"), mix) - 10e9 * 4246.0 / 4486.0).abs() < 1e-3);
        assert_eq!((mix.smallest().bytes(), mix.largest().bytes()), (64, 1518));
    }

    #[test]
    fn bytes_of_the_first_frames_are_their_sum() {
        let mix = frames("imix=abg");
        assert_eq!([0, 1, 2, 3, 4, 7].map(|n| mix.bytes_of_first(n)), [0, 64, 192, 1710, 1774, 2 * 1710 + 64]);
        assert_eq!(frames("128").bytes_of_first(1000), 128_000);
    }
}
