//! Paths in the tokens of macros and attributes, whose grammar is not known here.

use syn::{buffer::Cursor, parse::ParseStream};

use super::model::Path;

/// A path among tokens.
pub(super) struct Found {
    pub path: Path,
    /// Written before `(` or `!`: not a variable.
    pub called: bool,
    /// Written in a string.
    pub text: bool,
}

/// All paths in `stream`, which is read to its end. Fields, methods, lifetimes and macro variables are left out.
pub(super) fn paths(stream: ParseStream<'_>) -> syn::Result<Vec<Found>> {
    stream.step(|cursor| {
        let mut found = Vec::new();
        scan(*cursor, &[], &mut found);
        Ok((found, Cursor::empty()))
    })
}

/// `prefix` stands before each element of a group: `a::{b, c}`.
fn scan(mut at: Cursor<'_>, prefix: &[String], found: &mut Vec<Found>) {
    // What hides a name: `.name`, `$name`.
    let (mut hidden, mut first) = (false, true);
    while !at.eof() {
        if let Some((name, mut rest)) = at.ident() {
            let mut path: Path = if first { prefix.to_vec() } else { Vec::new() };
            path.push(name.to_string());
            let mut group = false;
            while let Some(after) = colons(rest) {
                rest = after;
                if let Some((name, after)) = rest.ident() {
                    path.push(name.to_string());
                    rest = after;
                } else if let Some((inside, _, _, after)) = rest.any_group() {
                    scan(inside, &path, found);
                    (rest, group) = (after, true);
                    break;
                } else {
                    break;
                }
            }
            let field = path.len() == 1 && rest.punct().is_some_and(|(p, _)| p.as_char() == ':');
            let variable = hidden && name != "crate";
            if !group && !field && !variable {
                let called = rest.punct().is_some_and(|(p, _)| p.as_char() == '!') || opens(rest);
                found.push(Found { path, called, text: false });
            }
            (at, hidden, first) = (rest, false, false);
        } else if let Some((mark, rest)) = at.punct() {
            // A range is two points: what follows is not a field.
            let range = mark.as_char() == '.' && rest.punct().is_some_and(|(p, _)| p.as_char() == '.');
            hidden = !range && matches!(mark.as_char(), '.' | '$');
            at = rest;
            if range {
                at = rest.punct().map_or(rest, |(_, after)| after);
            }
            first = mark.as_char() == ',';
        } else if let Some((_, rest)) = at.lifetime() {
            (at, hidden, first) = (rest, false, false);
        } else if let Some((literal, rest)) = at.literal() {
            let text = literal.to_string();
            let text = text.trim_matches('"');
            if text.split("::").all(|part| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_')) {
                let path = text.split("::").map(str::to_owned).collect();
                found.push(Found { path, called: false, text: true });
            }
            (at, hidden, first) = (rest, false, false);
        } else if let Some((inside, _, _, rest)) = at.any_group() {
            scan(inside, &[], found);
            (at, hidden, first) = (rest, false, false);
        } else {
            return;
        }
    }
}

fn colons(at: Cursor<'_>) -> Option<Cursor<'_>> {
    let (first, rest) = at.punct()?;
    let (second, rest) = rest.punct()?;
    (first.as_char() == ':' && second.as_char() == ':').then_some(rest)
}

fn opens(at: Cursor<'_>) -> bool {
    at.any_group().is_some_and(|(_, delimiter, _, _)| format!("{delimiter:?}") == "Parenthesis")
}
