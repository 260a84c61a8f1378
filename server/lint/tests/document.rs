//! `docs/lint.md` explains every warning, and its examples are tests: an example "Warns" causes only this code, and an example
//! "Instead" causes none.

use std::collections::BTreeSet;
use std::path::Path;
use std::{env, fs};

use conf::Memory;

/// A section of the document about one code.
struct Section {
    code: String,
    title: String,
    warns: Vec<Example>,
    instead: Vec<Example>,
    text: String,
}

/// An example and the block it belongs in.
struct Example {
    context: String,
    text: String,
}

fn sections() -> Vec<Section> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lint.md");
    let document = fs::read_to_string(path).expect("the document is part of the tree");
    let mut sections: Vec<Section> = Vec::new();
    let mut warns = true;
    let mut example: Option<Example> = None;
    for line in document.lines() {
        if let Some((code, title)) = line.strip_prefix("### ").and_then(|l| l.split_once(": ")) {
            sections.push(Section {
                code: code.to_owned(),
                title: title.to_owned(),
                warns: Vec::new(),
                instead: Vec::new(),
                text: String::new(),
            });
            continue;
        }
        let Some(section) = sections.last_mut() else {
            continue;
        };
        match (example.take(), line.strip_prefix("```")) {
            (None, Some(fence)) => {
                let context = fence.strip_prefix("nginx ").unwrap_or_default().to_owned();
                let text = String::new();
                example = Some(Example { context, text });
            }
            (Some(done), Some(_)) if warns => section.warns.push(done),
            (Some(done), Some(_)) => section.instead.push(done),
            (Some(mut open), None) => {
                open.text += line;
                open.text.push('\n');
                example = Some(open);
            }
            (None, None) => {
                warns = line == "Warns:" || (warns && line != "Instead:");
                section.text += line;
                section.text.push('\n');
            }
        }
    }
    sections
}

/// The codes of the warnings about an example, `comment` standing at the top of the file.
fn codes(example: &Example, comment: &str) -> Vec<&'static str> {
    if example.context == "main" {
        return codes_of(format!("{comment}\n{}\nhttp {{ }}\n", example.text));
    }
    let inside = match example.context.as_str() {
        "http" => example.text.clone(),
        "server" => format!("server {{\nlisten 80;\n{}}}\n", example.text),
        other => panic!("an example stands in no block {other:?}"),
    };
    codes_of(format!("{comment}\nevents {{ }}\nhttp {{\n{inside}}}\n"))
}

/// The codes of the warnings about a whole configuration.
fn codes_of(text: String) -> Vec<&'static str> {
    let main = Path::new("/etc/nginx/nginx.conf");
    let report = lint::check(Memory::default().with_file(main, text.as_str()), main, None);
    let report = report.unwrap_or_else(|refused| panic!("{}: {text}", refused.error));
    report
        .findings
        .iter()
        .map(|finding| finding.rule.code)
        .collect()
}

#[test]
fn every_warning_has_its_section() {
    let written: Vec<(String, String)> = sections()
        .into_iter()
        .map(|section| (section.code, section.title))
        .collect();
    let expected: Vec<(String, String)> = lint::rules()
        .iter()
        .map(|rule| (rule.code.to_owned(), rule.title.to_owned()))
        .collect();
    assert_eq!(written, expected);
}

#[test]
fn the_table_of_levels_is_that_of_the_rules() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lint.md");
    let document = fs::read_to_string(path).expect("the document is part of the tree");
    for level in lint::Level::ALL {
        let of_level = lint::rules().iter().filter(|rule| rule.level == level);
        let codes: Vec<&str> = of_level.map(|rule| rule.code).collect();
        let end = format!(" | {} |", codes.join(", "));
        let start = format!("| `{level}` | ");
        let mut lines = document.lines();
        let row = lines.find(|line| line.starts_with(&start) && line.contains(" | FB"));
        assert!(row.is_some_and(|row| row.ends_with(&end)), "{level}{end}");
    }
}

/// `FIRSTBYTE_UPDATE=1` writes the number. Codes `FB0..` are about silencing comments, not about traps of nginx.conf.
#[test]
fn the_readme_has_the_number_of_traps() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let text = fs::read_to_string(&path).expect("README.md is there");
    let traps = lint::rules()
        .iter()
        .filter(|rule| !rule.code.starts_with("FB0"));
    let expected = format!("warns of {} known traps", traps.count());
    let at = text.find("warns of ").expect("README.md tells of traps");
    let end = at + text[at..].find(" known traps").expect("their number") + " known traps".len();
    if text[at..end] != expected && env::var_os("FIRSTBYTE_UPDATE").is_some_and(|v| v == "1") {
        let updated = [&text[..at], &expected, &text[end..]].concat();
        return fs::write(&path, updated).expect("README.md can be written");
    }
    assert_eq!(text[at..end], expected, "FIRSTBYTE_UPDATE=1 writes it anew");
}

#[test]
fn every_section_says_how_to_silence_it() {
    for section in sections() {
        assert!(section.text.contains("\nSilence: "), "{}", section.code);
        assert!(
            section.text.len() > 100,
            "{} says why it warns",
            section.code
        );
    }
}

#[test]
fn examples_that_warn_do_with_their_code_alone() {
    for section in sections() {
        assert!(!section.warns.is_empty(), "{} has an example", section.code);
        for example in &section.warns {
            let codes: BTreeSet<&str> = codes(example, "").into_iter().collect();
            let expected = BTreeSet::from([section.code.as_str()]);
            assert_eq!(codes, expected, "{}", example.text);
        }
    }
}

#[test]
fn what_is_written_instead_does_not_warn() {
    for section in sections() {
        assert!(
            !section.instead.is_empty(),
            "{} has another way",
            section.code
        );
        for example in &section.instead {
            assert_eq!(
                codes(example, ""),
                [""; 0],
                "{}: {}",
                section.code,
                example.text
            );
        }
    }
}

#[test]
fn every_warning_can_be_silenced_for_its_file() {
    for section in sections() {
        let comment = format!("# firstbyte: allow-file {}", section.code);
        for example in &section.warns {
            assert_eq!(codes(example, &comment), [""; 0], "{}", section.code);
        }
    }
}

#[test]
fn every_warning_but_those_about_comments_can_be_silenced_for_a_block() {
    for section in sections().iter().filter(|s| !s.code.starts_with("FB00")) {
        let example = &section.warns[0];
        let block = Example {
            context: "http".to_owned(),
            text: format!(
                "# firstbyte: allow {}\nserver {{ listen 80;\n{}}}\n",
                section.code, example.text
            ),
        };
        if example.context == "server" {
            assert_eq!(codes(&block, ""), [""; 0], "{}", section.code);
        }
    }
}
