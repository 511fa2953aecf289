//! Plain words: phrases of `words.txt` that must not come back in code, comments and documents.

use crate::workspace::File;

/// The phrases of this workspace.
pub const LIST: &str = include_str!("../words.txt");

/// A phrase to avoid.
#[derive(Debug, PartialEq, Eq)]
pub struct Phrase<'a> {
    /// In lower case.
    pub words: &'a str,
    /// Longer phrases that are fine.
    pub but: Vec<&'a str>,
    /// What to write.
    pub instead: &'a str,
}

/// Reads a list in the form of `words.txt`. Errors name the line that is not in that form.
pub fn phrases(list: &str) -> Result<Vec<Phrase<'_>>, String> {
    let lines = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (left, instead) =
                line.split_once(" -> ").ok_or_else(|| format!("{line:?} is not PHRASE -> INSTEAD"))?;
            let (words, but) = left.split_once(", but: ").unwrap_or((left, ""));
            let but = but.split(" / ").filter(|longer| !longer.is_empty()).collect();
            Ok(Phrase { words, but, instead })
        })
        .collect()
}

/// Where `file` has one of these phrases: path, line of its first word, and what to write.
pub fn find(file: &File, phrases: &[Phrase<'_>]) -> Vec<String> {
    let text = Running::of(&file.text);
    let mut found: Vec<(usize, String)> = Vec::new();
    for phrase in phrases {
        for at in text.places(phrase.words) {
            let fine = |longer: &&str| {
                let before = longer.find(phrase.words).unwrap_or(0);
                at.checked_sub(before).is_some_and(|start| text.text[start..].starts_with(*longer))
            };
            if !phrase.but.iter().any(fine) {
                let line = text.line(at);
                let Phrase { words, instead, .. } = phrase;
                found.push((line, format!("{}:{line}: \"{words}\": {instead}", file.path.display())));
            }
        }
    }
    found.sort();
    found.into_iter().map(|(_, finding)| finding).collect()
}

/// A text as one line in lower case, without the marks of comments.
struct Running {
    text: String,
    /// Where each line starts in `text`.
    starts: Vec<usize>,
}

impl Running {
    fn of(text: &str) -> Self {
        let mut running = Self { text: String::with_capacity(text.len()), starts: Vec::new() };
        for line in text.lines() {
            running.starts.push(running.text.len());
            let line = line.trim_start().trim_start_matches(['/', '!', '*', '>']);
            for word in line.trim_end_matches('\\').split_whitespace() {
                running.text.push_str(&word.to_ascii_lowercase());
                running.text.push(' ');
            }
        }
        running
    }

    /// Where `words` stand as whole words.
    fn places(&self, words: &str) -> Vec<usize> {
        let inside = |c: char| c.is_alphanumeric() || c == '_';
        let whole =
            |at: &usize| !self.text[..*at].ends_with(inside) && !self.text[at + words.len()..].starts_with(inside);
        self.text.match_indices(words).map(|(at, _)| at).filter(whole).collect()
    }

    /// The line, from 1, of a place.
    fn line(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: &str = "# A list.\nred herring -> \"clue\"\nis green, but: it is green / is greener -> \"is ready\"\n";

    fn found(text: &str) -> Vec<String> {
        find(&File { path: "a.md".into(), text: text.into() }, &phrases(WORDS).unwrap())
    }

    #[test]
    fn a_phrase_is_found_with_its_line() {
        assert_eq!(found("one\n\nA Red herring."), ["a.md:3: \"red herring\": \"clue\""]);
        assert_eq!(found("red herrings, bored herring, red_herring"), [""; 0]);
    }

    #[test]
    fn a_phrase_is_found_across_lines() {
        assert_eq!(found("    /// has a red\n    /// herring")[0], "a.md:1: \"red herring\": \"clue\"");
        assert_eq!(found("\"has a red \\\n   herring\"").len(), 1);
    }

    #[test]
    fn longer_phrases_may_be_fine() {
        assert_eq!(found("the light is green").len(), 1);
        assert_eq!(found("and it\nis green; this is greener"), [""; 0]);
    }

    #[test]
    fn a_line_of_another_form_is_refused() {
        assert!(phrases("red herring").is_err());
        assert!(phrases(LIST).is_ok_and(|list| !list.is_empty()));
    }
}
