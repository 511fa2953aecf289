use std::{fmt, str::FromStr};

/// Bits of which some are fixed and some random, written as DPPD-PROX writes them: one `0`, `1` or `X` a bit, most
/// significant first, such as `0000101000000000XXXX000000000001`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mask {
    fixed: u32,
    random: u32,
    bits: u32,
}

/// A text that is no mask.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("mask {text:?}: {what}; must be 8, 16 or 32 of the characters 0, 1 and X, most significant bit first")]
pub struct MaskError {
    text: String,
    what: String,
}

impl Mask {
    /// The bits written as `1`.
    pub const fn fixed(self) -> u32 {
        self.fixed
    }

    /// The bits written as `X`.
    pub const fn random(self) -> u32 {
        self.random
    }

    /// Length in bits: 8, 16 or 32.
    pub const fn bits(self) -> u32 {
        self.bits
    }
}

impl FromStr for Mask {
    type Err = MaskError;
    fn from_str(text: &str) -> Result<Self, MaskError> {
        let err = |what: String| MaskError { text: text.to_owned(), what };
        let mut mask = Self { fixed: 0, random: 0, bits: 0 };
        for c in text.chars() {
            if mask.bits == 32 {
                return Err(err(format!("{} characters", text.chars().count())));
            }
            let (fixed, random) = match c {
                '0' => (0, 0),
                '1' => (1, 0),
                'X' | 'x' => (0, 1),
                other => return Err(err(format!("{other:?} at bit {}", mask.bits))),
            };
            mask = Self { fixed: mask.fixed << 1 | fixed, random: mask.random << 1 | random, bits: mask.bits + 1 };
        }
        match mask.bits {
            8 | 16 | 32 => Ok(mask),
            n => Err(err(format!("{n} characters"))),
        }
    }
}

impl fmt::Display for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for bit in (0..self.bits).rev() {
            f.write_str(match (self.random >> bit & 1, self.fixed >> bit & 1) {
                (1, _) => "X",
                (_, 1) => "1",
                _ => "0",
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_the_two_vm_document() {
        let text = "0000101000000000XXXX000000000001";
        let mask: Mask = text.parse().unwrap();
        assert_eq!((mask.fixed(), mask.random(), mask.bits()), (0x0a00_0001, 0xf000, 32));
        assert_eq!(mask.to_string(), text);
    }

    #[test]
    fn other_lengths_and_letters_are_refused() {
        let mut shown = String::new();
        for bad in ["", "XXXXXXX", "000000000", "0000000Y", "000000000000000000000000000000000"] {
            let error = bad.parse::<Mask>().unwrap_err();
            assert_eq!(error.text, bad);
            shown += &format!("{error}\n");
        }
        insta::assert_snapshot!("errors", shown);
    }
}
