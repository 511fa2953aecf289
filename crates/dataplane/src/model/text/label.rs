//! Text forms of label routes.

use std::fmt;

use super::{
    path::{path, LABEL_MAX},
    words::{text_form, Words},
};
use crate::{
    model::label::{LabelAction, LabelRoute},
    SpecError,
};

const FORM: &str =
    "LABEL swap OUT PATH, LABEL pop PATH, LABEL lookup or LABEL drop, like 16 swap 17 port 1 mac 02:00:00:00:00:01";
const OUT: &str = "must be 0, 2, 3 (implicit-null) or 16 to 1048575";

/// Implicit null (RFC 3032 2.1).
const IMPLICIT_NULL: u32 = 3;

/// Reads the incoming label.
pub(in crate::model) fn label(words: &mut Words<'_>) -> Result<u32, SpecError> {
    words.number("label", 16, LABEL_MAX)
}

fn route(words: &mut Words<'_>) -> Result<LabelRoute, SpecError> {
    let label = label(words)?;
    let action = if words.eat("swap") {
        let out = if words.eat("implicit-null") { IMPLICIT_NULL } else { words.read("outgoing label", OUT)? };
        if !matches!(out, 0 | 2 | IMPLICIT_NULL | 16..=LABEL_MAX) {
            return Err(words.bad("outgoing label", &out.to_string(), OUT));
        }
        LabelAction::Swap { out, path: path(words)? }
    } else if words.eat("pop") {
        LabelAction::Pop { path: path(words)? }
    } else if words.eat("lookup") {
        LabelAction::Lookup
    } else if words.eat("drop") {
        LabelAction::Drop
    } else {
        return Err(words.unexpected());
    };
    Ok(LabelRoute { label, action })
}

impl fmt::Display for LabelAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Swap { out: IMPLICIT_NULL, path } => write!(f, "swap implicit-null {path}"),
            Self::Swap { out, path } => write!(f, "swap {out} {path}"),
            Self::Pop { path } => write!(f, "pop {path}"),
            Self::Lookup => f.write_str("lookup"),
            Self::Drop => f.write_str("drop"),
        }
    }
}

impl fmt::Display for LabelRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.label, self.action)
    }
}

text_form! {
    LabelRoute, "label", FORM, route;
}
