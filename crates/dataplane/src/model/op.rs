//! Changes of the configuration, and what they change.

use std::{fmt, net::IpAddr, str::FromStr};

use packet::MacAddr;

use super::{
    entry::{Address, Fdb, Neighbour, Route},
    label::LabelRoute,
    overlay::{Network, Remote},
    path::Link,
    prefix::Prefix,
    text::{
        entry::{address, neighbour_key, prefix},
        label::label,
        overlay::{remote, station_key, vni},
        words::Words,
    },
};
use crate::SpecError;

/// Something that is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// `address LINK ADDR/LEN`.
    Address(Address),
    /// `route PREFIX PATH [PATH...]`.
    Route(Route),
    /// `neighbour LINK ADDR MAC`.
    Neighbour(Neighbour),
    /// `label LABEL ACTION`.
    Label(LabelRoute),
    /// `network VNI local ADDR access LINK[,LINK...]`.
    Network(Network),
    /// `remote VNI ADDR`.
    Remote(Remote),
    /// `fdb VNI MAC ADDR` or `fdb MAC LINK`.
    Fdb(Fdb),
}

/// What an item is found by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// `address LINK ADDR/LEN`.
    Address(Address),
    /// `route PREFIX`.
    Route(Prefix),
    /// `neighbour LINK ADDR`.
    Neighbour(Link, IpAddr),
    /// `label LABEL`.
    Label(u32),
    /// `network VNI`.
    Network(u32),
    /// `remote VNI ADDR`.
    Remote(Remote),
    /// `fdb VNI MAC`, or `fdb MAC` of the bridge.
    Fdb(Option<u32>, MacAddr),
}

/// A change of the configuration, one line of text:
/// `{address|route|neighbour|label|network|remote|fdb} {add|replace|del} TEXT`, where `del` takes only what the item is
/// found by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// `add`: an error when it is there already.
    Add(Item),
    /// `replace`: adds, or replaces what is there.
    Replace(Item),
    /// `del`: an error when it is not there.
    Del(Key),
}

/// Why a change was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OpErrorKind {
    /// A value is not legal, here or together with the rest of the configuration.
    Invalid,
    /// `add` of an entry that is already configured.
    AlreadyThere,
    /// `del` of an entry that is not configured.
    NotThere,
    /// `del` of an entry that was learned, not configured.
    Learned,
    /// The forwarding table did not take the routes.
    Table,
}

/// A change that was refused; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{op}: {why}")]
pub struct OpError {
    /// Which of the changes, counted from 0.
    pub index: usize,
    /// Its text.
    pub op: String,
    /// The kind of error.
    pub kind: OpErrorKind,
    /// What is wrong with it, and how to mend it.
    pub why: String,
}

/// What is wrong with a change, where its place in the batch is not known yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) kind: OpErrorKind,
    pub(crate) why: String,
}

impl Refusal {
    /// An entry that is already configured.
    pub(crate) fn already_there(item: &Item) -> Self {
        let why = SpecError::new(item.noun(), item, "is already configured: use replace").to_string();
        Self { kind: OpErrorKind::AlreadyThere, why }
    }

    /// An entry that is not configured.
    pub(crate) fn not_there(key: &Key) -> Self {
        Self { kind: OpErrorKind::NotThere, why: SpecError::new(key.noun(), key, "is not configured").to_string() }
    }

    /// An entry that was learned.
    pub(crate) fn learned(key: &Key) -> Self {
        let legal = match key {
            Key::Remote(_) => "is learned, not configured: set `learn off` on its network to remove it",
            _ => "is learned, not configured: it ages out when no more frames come from it",
        };
        Self { kind: OpErrorKind::Learned, why: SpecError::new(key.noun(), key, legal).to_string() }
    }

    /// The error of change number `index`, which is `op`.
    pub(crate) fn of_op(self, index: usize, op: &Op) -> OpError {
        OpError { index, op: op.to_string(), kind: self.kind, why: self.why }
    }
}

impl From<SpecError> for Refusal {
    fn from(error: SpecError) -> Self {
        Self { kind: OpErrorKind::Invalid, why: error.to_string() }
    }
}

const FORM: &str = "{address|route|neighbour|label|network|remote|fdb} {add|replace|del} TEXT";

impl Item {
    /// `route` and the like: what begins its line.
    pub fn noun(&self) -> &'static str {
        match self {
            Self::Address(_) => "address",
            Self::Route(_) => "route",
            Self::Neighbour(_) => "neighbour",
            Self::Label(_) => "label",
            Self::Network(_) => "network",
            Self::Remote(_) => "remote",
            Self::Fdb(_) => "fdb",
        }
    }

    fn read(noun: &str, text: &str) -> Result<Option<Self>, SpecError> {
        Ok(Some(match noun {
            "route" => Self::Route(text.parse()?),
            "address" => Self::Address(text.parse()?),
            "neighbour" => Self::Neighbour(text.parse()?),
            "label" => Self::Label(text.parse()?),
            "network" => Self::Network(text.parse()?),
            "remote" => Self::Remote(text.parse()?),
            "fdb" => Self::Fdb(text.parse()?),
            _ => return Ok(None),
        }))
    }
}

impl Key {
    /// What begins its line.
    pub fn noun(&self) -> &'static str {
        match self {
            Self::Address(_) => "address",
            Self::Route(_) => "route",
            Self::Neighbour(..) => "neighbour",
            Self::Label(_) => "label",
            Self::Network(_) => "network",
            Self::Remote(_) => "remote",
            Self::Fdb(..) => "fdb",
        }
    }

    fn read(noun: &str, text: &str) -> Result<Option<Self>, SpecError> {
        let words = |what, form| Words::new(what, form, text);
        let (key, words) = match noun {
            "route" => {
                let mut words = words("route del", "PREFIX alone");
                (Self::Route(prefix(&mut words)?), words)
            }
            "address" => {
                let mut words = words("address del", "LINK ADDR/LEN");
                (Self::Address(address(&mut words)?), words)
            }
            "neighbour" => {
                let mut words = words("neighbour del", "LINK ADDR alone");
                let (link, addr) = neighbour_key(&mut words)?;
                (Self::Neighbour(link, addr), words)
            }
            "label" => {
                let mut words = words("label del", "LABEL alone");
                (Self::Label(label(&mut words)?), words)
            }
            "network" => {
                let mut words = words("network del", "VNI alone");
                (Self::Network(vni(&mut words)?), words)
            }
            "remote" => {
                let mut words = words("remote del", "VNI ADDR");
                (Self::Remote(remote(&mut words)?), words)
            }
            "fdb" => {
                let mut words = words("fdb del", "VNI MAC or, of the bridge, MAC alone");
                let (network, mac) = station_key(&mut words)?;
                (Self::Fdb(network, mac), words)
            }
            _ => return Ok(None),
        };
        words.end()?;
        Ok(Some(key))
    }
}

impl Op {
    /// What begins its line.
    pub fn noun(&self) -> &'static str {
        match self {
            Self::Add(item) | Self::Replace(item) => item.noun(),
            Self::Del(key) => key.noun(),
        }
    }
}

impl FromStr for Op {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let mut words = Words::new("change", FORM, text);
        let whole = words.clone();
        let noun = words.next().unwrap_or_default();
        let op = match words.next() {
            Some("add") => Item::read(noun, words.rest())?.map(Self::Add),
            Some("replace") => Item::read(noun, words.rest())?.map(Self::Replace),
            Some("del") => Key::read(noun, words.rest())?.map(Self::Del),
            _ => None,
        };
        op.ok_or_else(|| whole.unexpected())
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(item) => item.fmt(f),
            Self::Route(item) => item.fmt(f),
            Self::Neighbour(item) => item.fmt(f),
            Self::Label(item) => item.fmt(f),
            Self::Network(item) => item.fmt(f),
            Self::Remote(item) => item.fmt(f),
            Self::Fdb(item) => item.fmt(f),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Route(prefix) => prefix.fmt(f),
            Self::Neighbour(link, addr) => write!(f, "{link} {addr}"),
            Self::Label(number) | Self::Network(number) => number.fmt(f),
            Self::Remote(remote) => remote.fmt(f),
            Self::Fdb(Some(vni), mac) => write!(f, "{vni} {mac}"),
            Self::Fdb(None, mac) => mac.fmt(f),
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Add(item) => write!(f, "{} add {item}", item.noun()),
            Self::Replace(item) => write!(f, "{} replace {item}", item.noun()),
            Self::Del(key) => write!(f, "{} del {key}", key.noun()),
        }
    }
}

impl OpError {
    /// As an error of the setting that the change came from.
    pub fn into_spec(self, what: impl Into<String>) -> SpecError {
        SpecError::new(what, self.op, self.why)
    }
}
