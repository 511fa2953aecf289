//! Text from outside cannot break a document.

use report::{csv, json, svg, Detail, Style};

use crate::fixtures::*;

fn no_control_characters(text: &str) {
    let bad = text.chars().find(|c| (c.is_control() && *c != '\n') || ('\u{202a}'..='\u{202e}').contains(c));
    assert_eq!(bad, None);
}

#[test]
fn a_terminal_gets_no_escape_from_outside() {
    for width in [40, 80, 120] {
        for detail in [Detail::Short, Detail::Verbose] {
            let style = Style { width, ..Style::PIPE };
            no_control_characters(&text(&hostile(), detail, &style, &["/tmp/\u{1b}[1m".into()]));
        }
    }
    let mut single = hostile();
    single.sizes.clear();
    no_control_characters(&verbose(&single, &Style::PIPE));
    let ascii = Style { unicode: false, ..Style::PIPE };
    assert!(verbose(&single, &ascii).is_ascii() && short(&single, &ascii).is_ascii());
}

#[test]
fn markdown_holds_no_markup_from_outside() {
    let text = page(&hostile());
    no_control_characters(&text);
    assert!(!text.lines().any(|l| l.starts_with("# heading")));
    // Outside code, markup is escaped; inside a code span it is text by itself.
    let mut fence = None;
    for line in text.lines() {
        let ticks = line.chars().take_while(|c| *c == '`').count();
        match fence {
            None if ticks >= 3 => fence = Some(ticks),
            Some(n) if ticks >= n => fence = None,
            None => {
                let outside: String = line.replace("\\`", "").split('`').step_by(2).collect();
                assert!(!outside.contains("<script"), "{line}");
            }
            Some(_) => {}
        }
    }
    assert_eq!(fence, None, "a fence from outside closed ours");
    // Each table keeps its columns.
    let mut columns = None;
    for line in text.lines() {
        let bars = line.replace("\\|", "").matches('|').count();
        match (line.starts_with('|'), columns) {
            (true, Some(n)) => assert_eq!(bars, n, "{line}"),
            (true, None) => columns = Some(bars),
            (false, _) => columns = None,
        }
    }
}

#[test]
fn svg_is_text_only() {
    let text = svg::render(&hostile()).unwrap();
    no_control_characters(&text);
    assert!(!text.contains("<script") && text.contains("&lt;script&gt;"));
    well_formed(&text);
}

#[test]
fn pictures_of_every_result_are_well_formed() {
    let mut bare = every_outcome();
    bare.sizes.retain(|s| s.at_throughput.is_empty());
    let mut empty = every_outcome();
    (empty.sizes, empty.trials) = (vec![], vec![]);
    for r in [ten_gig(), both_ways(), every_outcome(), invalid_trial(), bare, empty] {
        let text = svg::render(&r).unwrap();
        well_formed(&text);
        assert!(!text.contains("NaN") && !text.contains("inf"));
    }
    let text = svg::render(&every_outcome()).unwrap();
    insta::assert_snapshot!("words_of_a_picture_of_every_outcome", words(&text));
    insta::assert_snapshot!("words_of_a_picture_with_its_line_rate", words(&svg::render(&ten_gig()).unwrap()));
}

/// What is written in a picture, a line each.
fn words(picture: &str) -> String {
    let texts = picture.split("<text").skip(1).filter_map(|part| part.split_once('>')?.1.split_once('<'));
    let words = texts.map(|(text, _)| text.trim()).filter(|text| text.contains(char::is_alphabetic));
    words.collect::<Vec<_>>().join("\n")
}

/// Tags nest and close, attributes are quoted, and no `&` stands bare.
fn well_formed(xml: &str) {
    let mut open: Vec<&str> = vec![];
    let mut rest = xml;
    while let Some((text, after)) = rest.split_once('<') {
        assert!(text.split('&').skip(1).all(|e| e.contains(';')), "{text}");
        let (tag, after) = after.split_once('>').unwrap();
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        let name = tag.split([' ', '/', '\n']).find(|s| !s.is_empty()).unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') && !tag.starts_with(['?', '!']) {
            open.push(name);
        }
        rest = after;
    }
    assert!(open.is_empty(), "{open:?}");
    assert!(xml.starts_with("<svg") && xml.contains("http://www.w3.org/2000/svg"));
}

#[test]
fn csv_and_json_keep_their_lines() {
    let text = csv::sizes(&hostile());
    no_control_characters(&text);
    assert_eq!(text.lines().count(), 1 + hostile().sizes.len());
    assert_eq!(csv::trials(&hostile()).lines().count(), 1 + hostile().trials.len());
    let back: measure::result::RunResult = serde_json::from_str(&json::render(&hostile()).unwrap()).unwrap();
    assert_eq!(back, json::stored(&hostile()));
    assert_eq!(json::stored(&back), back, "what is left out is left out once");
}
