//! Text from outside made harmless: no control characters, no markup, no characters that reorder a line.

use crate::style::Style;

/// Characters that move the cursor, end a line, or change the order or visibility of what follows.
fn harmful(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}' | '\u{e0000}'..='\u{e0fff}')
}

/// One line with every harmful character shown as `?`; white space becomes one space.
pub(crate) fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_whitespace() {
            if !out.ends_with(' ') {
                out.push(' ');
            }
        } else {
            out.push(if harmful(c) { '?' } else { c });
        }
    }
    out.trim().to_owned()
}

/// [`clean`] that keeps the white space in front of a line of code.
pub(crate) fn clean_indented(line: &str) -> String {
    let body = line.trim_start_matches(' ');
    " ".repeat(line.len() - body.len()) + &clean(body)
}

/// [`clean`] for a style: ASCII when it has no Unicode.
pub(crate) fn styled(text: &str, style: &Style) -> String {
    let text = clean(text);
    if style.unicode || text.is_ascii() {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '§' => out.push_str("section "),
            '→' => out.push_str("->"),
            '≥' => out.push_str(">="),
            '≤' => out.push_str("<="),
            'µ' | 'μ' => out.push('u'),
            '–' | '—' | '·' => out.push('-'),
            '…' => out.push_str("..."),
            c if c.is_ascii() => out.push(c),
            _ => out.push('?'),
        }
    }
    out
}

/// [`styled`] that keeps the white space of a line of code or of a picture.
pub(crate) fn styled_with_spaces(line: &str, style: &Style) -> String {
    line.split(' ').map(|word| styled(word, style)).collect::<Vec<_>>().join(" ")
}

/// Cut to so many characters, the last of them a `~` when something was cut.
pub(crate) fn clip(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    let mut out: String = text.chars().take(columns.saturating_sub(1)).collect();
    out.push('~');
    out
}

/// The last so many characters, the first of them a `~` when something was cut.
pub(crate) fn clip_front(text: &str, columns: usize) -> String {
    match text.chars().count() {
        n if n <= columns => text.to_owned(),
        n => std::iter::once('~').chain(text.chars().skip(n + 1 - columns.max(1))).collect(),
    }
}

/// The first so many characters.
pub(crate) fn clip_hard(text: &str, columns: usize) -> String {
    text.chars().take(columns).collect()
}

/// Lines of at most `width` characters broken at spaces (a longer word is broken where it must be).
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(8);
    let mut lines = vec![];
    let mut line = String::new();
    for word in text.split(' ') {
        let mut rest: Vec<char> = word.chars().collect();
        if !line.is_empty() && line.chars().count() + 1 + rest.len() > width {
            lines.push(std::mem::take(&mut line));
        }
        while rest.len() > width {
            let tail = rest.split_off(width);
            lines.push(rest.into_iter().collect());
            rest = tail;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.extend(rest);
    }
    lines.push(line);
    lines
}

/// Free text inside Markdown, table cells included: nothing in it is markup.
pub(crate) fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in clean(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '!' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// A name as a Markdown code span, safe inside a table cell; forges turn no `@name` in it into a mention.
pub(crate) fn code(text: &str) -> String {
    let inner = clean(text).replace('`', "'").replace('|', "\\|");
    if inner.is_empty() {
        String::new()
    } else {
        format!("`{inner}`")
    }
}

/// Text from outside as a field of CSV: one line, quoted where needed, and never a formula to a spreadsheet.
pub(crate) fn field(value: &str) -> String {
    let mut value = clean(value);
    if value.starts_with(['=', '+', '-', '@']) {
        value.insert(0, '\'');
    }
    if value.contains([',', '"']) {
        format!("\"{}\"", value.replace('"', "\"\""))
    } else {
        value
    }
}

/// Rules about the host that were open, each once and whether it was bad, and the first of them by name; and whether one was bad.
pub(crate) fn open_rules<'a>(
    rules: impl ExactSizeIterator<Item = (&'a str, bool)> + Clone,
    most: usize,
) -> (String, bool) {
    let (all, bad) = (rules.len(), rules.clone().filter(|(_, bad)| *bad).count());
    let counts = match (bad, all - bad) {
        (0, warn) => format!("{warn} may matter"),
        (bad, 0) => format!("{bad} bad"),
        (bad, warn) => format!("{bad} bad, {warn} may matter"),
    };
    let named: Vec<String> = rules.take(most).map(|(id, _)| clean(id)).collect();
    let more = if all > most { ", ..." } else { "" };
    (format!("{counts}: {}{more} (linerate host audit)", named.join(", ")), bad > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_overrides_become_visible() {
        assert_eq!(clean("a\u{1b}[31mred\u{7}\n\tb\u{202e}c\u{9b}0m"), "a?[31mred? b?c?0m");
    }

    #[test]
    fn markup_becomes_text() {
        assert_eq!(markdown("a|b<script>`x`*"), "a\\|b&lt;script&gt;\\`x\\`\\*");
        assert_eq!(code("x`|@you"), "`x'\\|@you`");
    }

    #[test]
    fn fields_are_quoted_and_formulas_are_text() {
        assert_eq!(field("a,\"b\"\n"), "\"a,\"\"b\"\"\"");
        assert_eq!(field("=1+1"), "'=1+1");
        assert_eq!(field("net_memif0"), "net_memif0");
    }

    #[test]
    fn long_words_are_broken_and_short_ones_kept_whole() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("aaaaaaaaaaaaaaaaaaa b", 8), ["aaaaaaaa", "aaaaaaaa", "aaa b"]);
    }

    #[test]
    fn ascii_styles_hold_nothing_else() {
        let ascii = Style { unicode: false, ..Style::PIPE };
        assert_eq!(styled("RFC 2544 §26.1 → 日", &ascii), "RFC 2544 section 26.1 -> ?");
    }
}
