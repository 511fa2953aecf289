//! Text forms of links and paths.

use std::{fmt, str::FromStr};

use super::words::{cut, join, text_form, Words, LINK};
use crate::{
    model::path::{Hop, Link, Path, MAX_PUSH},
    SpecError,
};

const PATH: &str = "via ADDR [port LINK], port LINK mac MAC [from MAC], port LINK or drop, \
                    then [labels L[/L...]] [weight N]";
const LABEL: &str = "must be one to four labels like 16/17: each 0, 2 or 16 to 1048575";

/// The largest label.
pub(super) const LABEL_MAX: u32 = (1 << 20) - 1;

impl FromStr for Link {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let number = |digits: &str| digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse::<u16>().ok());
        let (port, vid) = text.split_once('.').map_or((text, None), |(port, vid)| (port, Some(vid)));
        let vlan = match vid.map(|vid| number(vid).flatten()) {
            None => Ok(None),
            Some(Some(vid @ 1..=4094)) => Ok(Some(vid)),
            Some(_) => Err(()),
        };
        match (number(port).flatten(), vlan) {
            (Some(port), Ok(vlan)) => Ok(Self { port: usize::from(port), vlan }),
            _ => Err(SpecError::new("link", cut(text), LINK)),
        }
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.vlan {
            None => f.pad(&self.port.to_string()),
            Some(vid) => f.pad(&format!("{}.{vid}", self.port)),
        }
    }
}

impl fmt::Display for Hop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Via { addr, link: None } => write!(f, "via {addr}"),
            Self::Via { addr, link: Some(link) } => write!(f, "via {addr} port {link}"),
            Self::Station { link, mac, from: None } => write!(f, "port {link} mac {mac}"),
            Self::Station { link, mac, from: Some(from) } => write!(f, "port {link} mac {mac} from {from}"),
            Self::Connected { link } => write!(f, "port {link}"),
            Self::Drop => f.write_str("drop"),
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.hop)?;
        if !self.labels.is_empty() {
            f.write_str(" labels ")?;
            join(f, &self.labels, "/")?;
        }
        if self.weight != 1 {
            write!(f, " weight {}", self.weight)?;
        }
        Ok(())
    }
}

/// Whether another path begins here.
pub(super) fn begins(words: &Words<'_>) -> bool {
    matches!(words.peek(), Some("via" | "port" | "drop"))
}

/// Reads one path, as far as it goes.
pub(super) fn path(words: &mut Words<'_>) -> Result<Path, SpecError> {
    let hop = if words.eat("via") {
        let addr = words.addr("gateway")?;
        // What follows may also be the next path, `port LINK mac MAC`; a gateway's own link comes without a MAC.
        let mut ahead = words.clone();
        let link = if ahead.eat("port") { Some(ahead.link()?).filter(|_| ahead.peek() != Some("mac")) } else { None };
        if link.is_some() {
            *words = ahead;
        }
        Hop::Via { addr, link }
    } else if words.eat("port") {
        let link = words.link()?;
        if words.eat("mac") {
            let mac = words.mac("MAC address")?;
            let from = if words.eat("from") { Some(words.mac("source MAC address")?) } else { None };
            Hop::Station { link, mac, from }
        } else {
            Hop::Connected { link }
        }
    } else if words.eat("drop") {
        Hop::Drop
    } else {
        return Err(words.unexpected());
    };
    let (mut labels, mut weight) = (Vec::new(), 1);
    if words.eat("labels") {
        labels = words.read::<Stack>("labels", LABEL)?.0;
    }
    if words.eat("weight") {
        weight = words.number("weight", 1, 255)? as u8;
    }
    Ok(Path { hop, labels, weight })
}

/// Labels between slashes.
struct Stack(Vec<u32>);

impl FromStr for Stack {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let label = |digits: &str| match digits.parse() {
            Ok(label @ (0 | 2 | 16..=LABEL_MAX)) if digits.bytes().all(|b| b.is_ascii_digit()) => Ok(label),
            _ => Err(()),
        };
        let labels: Vec<_> = text.split('/').take(MAX_PUSH + 1).map(label).collect::<Result<_, ()>>()?;
        if labels.len() > MAX_PUSH {
            return Err(());
        }
        Ok(Self(labels))
    }
}

text_form! {
    Path, "path", PATH, path;
}
