//! Reading a text word by word.

use std::{fmt, net::IpAddr, str::FromStr};

use packet::MacAddr;

use crate::{model::path::Link, SpecError};

/// The form of a link.
pub(super) const LINK: &str = "must be PORT or PORT.VID, like 0 or 1.100: ports from 0, VIDs 1 to 4094";

/// Longest text an error shows.
const SHOWN: usize = 120;

/// The words of a text, one after the other; no allocation but for errors.
#[derive(Debug, Clone)]
pub(in crate::model) struct Words<'a> {
    what: &'static str,
    form: &'static str,
    whole: &'a str,
    rest: &'a str,
}

impl<'a> Words<'a> {
    /// The words of `text`, which is a `what` and is written like `form`.
    pub(in crate::model) fn new(what: &'static str, form: &'static str, text: &'a str) -> Self {
        let text = text.trim_ascii();
        Self { what, form, whole: text, rest: text }
    }

    /// What has not been read yet.
    pub(in crate::model) fn rest(&self) -> &'a str {
        self.rest
    }

    pub(in crate::model) fn peek(&self) -> Option<&'a str> {
        let end = self.rest.bytes().position(|b| b.is_ascii_whitespace()).unwrap_or(self.rest.len());
        self.rest.get(..end).filter(|word| !word.is_empty())
    }

    fn skip(&mut self, word: &str) {
        self.rest = self.rest.get(word.len()..).unwrap_or("").trim_ascii_start();
    }

    /// The next word.
    pub(in crate::model) fn next(&mut self) -> Option<&'a str> {
        let word = self.peek()?;
        self.skip(word);
        Some(word)
    }

    /// Takes the next word if it is this one.
    pub(in crate::model) fn eat(&mut self, keyword: &str) -> bool {
        let found = self.peek() == Some(keyword);
        if found {
            self.skip(keyword);
        }
        found
    }

    /// The next word, read as a `T` that is called `name` and must be `legal`.
    pub(in crate::model) fn read<T: FromStr>(&mut self, name: &str, legal: &str) -> Result<T, SpecError> {
        let Some(word) = self.next() else {
            return Err(self.missing(name));
        };
        word.parse().map_err(|_| self.bad(name, word, legal))
    }

    /// The next word as a number in a range.
    pub(in crate::model) fn number(&mut self, name: &str, least: u32, most: u32) -> Result<u32, SpecError> {
        let word = self.peek().unwrap_or_default();
        let number = self.read(name, &span(least, most))?;
        match number {
            n if (least..=most).contains(&n) && word.starts_with(|c: char| c.is_ascii_digit()) => Ok(n),
            _ => Err(self.bad(name, word, &span(least, most))),
        }
    }

    /// The next word as an address.
    pub(in crate::model) fn addr(&mut self, name: &str) -> Result<IpAddr, SpecError> {
        self.read(name, "must be an IPv4 or IPv6 address")
    }

    /// The next word as the MAC address of a station.
    pub(in crate::model) fn mac(&mut self, name: &str) -> Result<MacAddr, SpecError> {
        const LEGAL: &str = "must be a unicast MAC address, like 02:00:00:00:00:01";
        let mac: MacAddr = self.read(name, LEGAL)?;
        if mac.is_group() || mac == MacAddr::default() {
            return Err(self.bad(name, &mac.to_string(), LEGAL));
        }
        Ok(mac)
    }

    /// The next word as a link.
    pub(in crate::model) fn link(&mut self) -> Result<Link, SpecError> {
        self.read("link", LINK)
    }

    /// An error about one word.
    pub(in crate::model) fn bad(&self, name: &str, word: &str, legal: &str) -> SpecError {
        // The address of an address is the address.
        let own = self.what.split(' ').any(|word| word == name);
        let what = if own { self.what.to_owned() } else { format!("{} {name}", self.what) };
        SpecError::new(what, cut(word), legal)
    }

    /// An error about a word that should follow.
    pub(in crate::model) fn missing(&self, name: &str) -> SpecError {
        SpecError::new(self.what, cut(self.whole), format!("{name} is missing: must be {}", self.form))
    }

    /// An error about what follows, or about the text that ends before its time.
    pub(in crate::model) fn unexpected(&self) -> SpecError {
        let shown = if self.rest.is_empty() { self.whole } else { self.rest };
        SpecError::new(self.what, cut(shown), format!("must be {}", self.form))
    }

    /// Nothing may follow.
    pub(in crate::model) fn end(self) -> Result<(), SpecError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(SpecError::new(self.what, cut(self.rest), format!("is too much: must be {}", self.form)))
        }
    }
}

fn span(least: u32, most: u32) -> String {
    format!("must be {least} to {most}")
}

/// A text short enough to be shown.
pub(super) fn cut(text: &str) -> &str {
    text.char_indices().nth(SHOWN).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

/// Writes a list with something between.
pub(super) fn join<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    items: impl IntoIterator<Item = T>,
    between: &str,
) -> fmt::Result {
    for (i, item) in items.into_iter().enumerate() {
        write!(f, "{}{item}", if i == 0 { "" } else { between })?;
    }
    Ok(())
}

/// A type with a text form that is read by `$read(&mut Words)`.
macro_rules! text_form {
    ($($type:ty, $what:literal, $form:expr, $read:expr;)*) => {$(
        impl std::str::FromStr for $type {
            type Err = $crate::SpecError;
            fn from_str(text: &str) -> Result<Self, $crate::SpecError> {
                let mut words = $crate::model::text::words::Words::new($what, $form, text);
                let item = $read(&mut words)?;
                words.end()?;
                Ok(item)
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                <String as serde::Deserialize>::deserialize(d)?.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}
pub(super) use text_form;
