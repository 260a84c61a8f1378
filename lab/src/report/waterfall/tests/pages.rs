//! Pages of visits: their contents, and the escaping of text from others.

use std::collections::BTreeMap;
use std::slice::from_ref;
use std::time::Instant;

use html5gum::{Token, Tokenizer};

use super::hostile::{TEXTS, made_of};
use super::{runs, svg, text, view, visit};
use crate::page::comparison::Match;
use crate::page::{Frame, View, Views, Visit};
use crate::report::PROGRAM;
use crate::report::waterfall::rows::ROWS_MAX;
use crate::report::waterfall::{compare, html};

/// A page of a visit by itself.
fn page_of(visit: &Visit) -> String {
    html(&view(visit))
}

/// A page of two visits.
fn compared(before: &Visit, after: &Visit) -> String {
    let [before, after] = [before, after].map(|visit| runs(from_ref(visit)));
    compare::html(&before, &after, Match::Path)
}

/// An element's name with its attributes.
type Tag = (String, BTreeMap<String, String>);

/// The elements of a page with their attributes, as a browser reads them, and the text of the whole page.
fn read(page: &str) -> (Vec<Tag>, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (mut elements, mut words) = (Vec::new(), String::new());
    for token in Tokenizer::new(page) {
        match token.expect("a text can be read") {
            Token::StartTag(tag) => {
                let attributes = tag.attributes.iter();
                let attributes = attributes.map(|(name, value)| (text(name), text(value)));
                elements.push((text(&tag.name), attributes.collect()));
            }
            Token::String(string) => words += &text(&string),
            Token::Comment(comment) => panic!("a comment: {:?}", text(&comment)),
            Token::Error(error) => panic!("{error:?}"),
            Token::EndTag(_) | Token::Doctype(_) => {}
        }
    }
    (elements, words)
}

/// Elements that these pages are made of.
const ELEMENTS: &str = "html head meta link title style body main h1 h2 h3 p dl dt dd div section table caption thead tbody \
    tr th td details summary ul ol li figure figcaption img br small footer svg g rect line text";

#[test]
fn nothing_of_others_becomes_a_part_of_a_page() {
    for hostile in TEXTS {
        let mut made = made_of(hostile);
        made.filmstrip = vec![Frame {
            at_ms: 1.0,
            jpeg: vec![0xff, 0xd8, 0xff, b'"', b'>'],
        }];
        for page in [page_of(&made), compared(&made, &visit(2))] {
            let (elements, words) = read(&page);
            for (name, attributes) in &elements {
                assert!(
                    ELEMENTS.split_whitespace().any(|known| known == name),
                    "{hostile:?}: <{name}>"
                );
                assert!(
                    attributes.keys().all(|name| !name.starts_with("on")),
                    "{attributes:?}"
                );
                let of_image =
                    name != "img" || attributes["src"].starts_with("data:image/jpeg;base64,");
                let of_link = attributes.get("href").is_none_or(|href| href == "data:,");
                assert!(
                    of_image && of_link && !attributes.contains_key("style"),
                    "{attributes:?}"
                );
            }
            let is_seen = |c: char| {
                c == '\n' || (!c.is_control() && !"\u{202e}\u{2066}\u{200b}\u{ffff}".contains(c))
            };
            assert!(words.chars().all(is_seen), "{hostile:?}");
        }
    }
}

#[test]
fn nothing_can_be_loaded_or_run() {
    let (elements, _) = read(&page_of(&visit(1)));
    let policies = elements.iter().filter(|(name, _)| name == "meta");
    let policy = policies.filter_map(|(_, attributes)| {
        let is_policy = attributes
            .get("http-equiv")
            .is_some_and(|name| name == "Content-Security-Policy");
        is_policy.then(|| attributes["content"].clone())
    });
    assert_eq!(
        policy.collect::<Vec<_>>(),
        [concat!(
            "default-src 'none'; style-src 'uns",
            "afe-inline'; img-src data:"
        )]
    );
    assert_eq!(elements[0].1["lang"], "en");
}

#[test]
fn headings_are_in_order() {
    let mut made = visit(2);
    made.filmstrip = vec![Frame {
        at_ms: 1.0,
        jpeg: vec![0xff, 0xd8, 0xff],
    }];
    let twice = [made.clone(), made.clone()];
    let both = Views {
        first: runs(&twice),
        warm: Some(runs(&twice)),
    };
    let pages = [html(&both), compared(&made, &made)];
    for page in pages {
        let (elements, _) = read(&page);
        let levels: Vec<u32> = elements
            .iter()
            .filter_map(|(name, _)| name.strip_prefix('h')?.parse().ok())
            .collect();
        assert_eq!(
            (
                levels[0],
                levels.iter().filter(|level| **level == 1).count()
            ),
            (1, 1)
        );
        assert!(
            levels.windows(2).all(|pair| pair[1] <= pair[0] + 1),
            "{levels:?}"
        );
    }
}

#[test]
fn a_page_has_its_figures_runs_fields_and_phases() {
    let (mut slower, made) = (visit(2), visit(2));
    slower.timings.load_ms = Some(220.0);
    let (cold, mut warm) = ([slower, made], visit(1));
    warm.view = View::Warm;
    let views = Views {
        first: runs(&cold),
        warm: Some(runs(from_ref(&warm))),
    };
    let page = html(&views);
    let (elements, words) = read(&page);
    for text in [
        "Waterfall of https://www.example.org/",
        "\u{201c}An example\u{201d}",
        "Chromium 126, cold view",
        "mean 170.0 ms (0.0 to 805.3, n=2)",
        "Runs, cold view",
        "2 (shown)",
        "server-timing",
        "app;dur=5",
        "of the wait: round trip",
        "the link was not emulated",
        PROGRAM,
    ] {
        assert!(words.contains(text), "{text}");
    }
    assert!(!words.contains("Runs, warm view"), "one run is no table");
    assert_eq!(
        elements
            .iter()
            .filter(|(name, _)| name == "details")
            .count(),
        3
    );
    // A waterfall and connections for each view.
    assert_eq!(elements.iter().filter(|(name, _)| name == "svg").count(), 4);
}

#[test]
fn a_page_of_nothing_is_a_page() {
    read(&page_of(&Visit::default()));
    read(&compared(&Visit::default(), &Visit::default()));
}

#[test]
fn warm_visits_alone_are_called_so() {
    let mut warm = visit(1);
    warm.view = View::Warm;
    let (_, words) = read(&page_of(&warm));
    assert!(words.contains("Warm view") && !words.contains("Cold view"));
}

#[test]
fn what_is_drawn_has_a_limit_and_the_rest_is_counted() {
    let mut all = visit(ROWS_MAX + 2);
    for (place, one) in all.resources.iter_mut().enumerate() {
        // Each on a connection of its own; those that are left out would make the axis longer.
        one.connection = Some(place as u64);
        one.start_ms = if place < ROWS_MAX { 0.0 } else { 1e6 };
        one.response_fields.clear();
        one.pieces.clear();
    }
    let shortened = |count: usize| {
        let mut visit = all.clone();
        visit.resources.truncate(count);
        visit
    };
    let [whole, more] = [ROWS_MAX, ROWS_MAX + 1].map(shortened);
    let words = "1 further resource left out: the first 2000 are drawn";
    for report in [page_of, svg, text] {
        let (whole, more) = (report(&whole), report(&more));
        assert!(!whole.contains("left out") && more.contains(words));
        // One sentence for one resource, and not a row.
        assert!(
            more.len() < whole.len() + 1_000,
            "{} {}",
            whole.len(),
            more.len()
        );
        assert!(report(&all).contains("2 further resources left out"));
    }
    assert_eq!(page_of(&more).matches("<details>").count(), ROWS_MAX);
    // Both have the last resource at another place of the second visit.
    let mut turned = more.clone();
    turned.resources.rotate_right(1);
    let both = compared(&more, &turned);
    assert_eq!(both.matches("not after").count(), 0);
    // In the picture of both, and in words and the picture of each.
    assert_eq!(both.matches(words).count(), 5);
    turned.resources[0].url.push('x');
    let alone = compared(&more, &turned);
    assert!(
        alone.contains("2 further resources left out"),
        "one of each alone"
    );
}

#[test]
fn large_pages_are_quick_and_have_limits() {
    let made = visit(2_000);
    let begin = Instant::now();
    let page = page_of(&made);
    let took = begin.elapsed();
    assert!(took.as_millis() < 1_000 * super::SLOW, "{took:?}");
    assert!(page.matches("<details>").count() == 2_000);
    let mut hostile = visit(200);
    for one in &mut hostile.resources {
        let field = ("n".repeat(5_000), "v".repeat(200_000));
        one.response_fields = vec![field; 150];
        one.url = format!("https://h/{}", "u".repeat(1_000_000));
    }
    let page = page_of(&hostile);
    assert!(page.len() < 20_000_000, "{}", page.len());
    assert!(
        page.contains("Fields of further resources are omitted"),
        "the limit is told"
    );
    assert!(
        page.contains("and 50 more"),
        "fields beyond the limit are counted"
    );
}
