//! Texts of others: markup, control characters, marks of direction, a megabyte.

use super::drawn::assert_inside;
use super::{svg, text, visit};
use crate::page::{Agent, Visit};
use crate::report::xml_tests::elements;

/// Texts that must not become anything but text.
pub(super) const TEXTS: [&str; 7] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onload='alert(1)",
    "</title></style></svg><script>alert(1)</script>",
    "]]>&#x3c;script&#x3e;",
    "\u{202e}txt.exe\u{2066}\u{200b}",
    "\0\u{1}\u{1b}[31m\u{7f}\u{9b}31m\r\n\u{ffff}",
];

/// A visit in which every text is this one.
pub(super) fn made_of(text: &str) -> Visit {
    let mut made = visit(3);
    made.url = format!("https://h/{text}");
    made.title = Some(text.to_owned());
    made.agent = Agent {
        name: text.to_owned(),
        version: text.to_owned(),
        is_browser: true,
    };
    made.notes = vec![text.to_owned()];
    for one in &mut made.resources {
        one.url = format!("https://h/{text}");
        one.method = text.to_owned();
        one.protocol = text.to_owned();
        one.remote = Some(text.to_owned());
        one.mime_type = text.to_owned();
        one.priority = Some(text.to_owned());
        one.error = Some(text.to_owned());
        one.request_fields = vec![(text.to_owned(), text.to_owned())];
        one.response_fields = vec![(text.to_owned(), text.to_owned())];
    }
    made
}

#[test]
fn texts_of_others_stay_texts() {
    for hostile in TEXTS {
        let made = made_of(hostile);
        let picture = svg(&made);
        let all = elements(&picture).unwrap_or_else(|why| panic!("{hostile:?}: {why}"));
        assert_inside(&all);
        assert!(
            all.iter()
                .all(|one| one.name != "script" && one.name != "img"),
            "{picture}"
        );
        let is_event = |name: &String| name.starts_with("on");
        assert!(
            !all.iter().any(|one| one.attributes.keys().any(is_event)),
            "{picture}"
        );
        let report = text(&made);
        assert!(
            report
                .lines()
                .all(|line| line.chars().all(|c| (' '..='~').contains(&c))),
            "{report:?}"
        );
        assert!(report.lines().all(|line| line.len() <= 100), "{report}");
        // No entry is broken into more lines than the report made.
        assert!(
            report
                .lines()
                .all(|line| line.is_empty() || line.starts_with([' ', '.'])),
            "{report}"
        );
    }
}

#[test]
fn megabytes_are_cut() {
    for unit in ["x", "<", "\u{202e}", "\u{4e2d}"] {
        let made = made_of(&unit.repeat(1_000_000 / unit.len()));
        let picture = svg(&made);
        assert!(picture.len() < 200_000, "{unit}: {}", picture.len());
        assert_inside(&elements(&picture).expect("the picture is well-formed"));
        let report = text(&made);
        assert!(report.len() < 20_000, "{unit}: {}", report.len());
        assert!(report.lines().all(|line| line.len() <= 100), "{report}");
    }
}

#[test]
fn a_million_pieces_are_drawn_within_limits() {
    let mut made = visit(100);
    for one in &mut made.resources {
        let first = one.pieces[0];
        one.phases.receive_ms = Some(1_000.0);
        one.pieces = (0..10_000)
            .map(|n| crate::page::Piece {
                at_ms: first.at_ms + f64::from(n) * 0.1,
                bytes: 1,
            })
            .collect();
    }
    let picture = svg(&made);
    assert_eq!(picture.matches("\"piece\"").count(), 50_000);
    assert!(picture.len() < 10_000_000, "{}", picture.len());
}
