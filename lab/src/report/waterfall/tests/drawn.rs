//! Positions of drawn elements.

use std::time::Instant;

use super::{SLOW, resource, runs, svg, text, visit};
use crate::page::comparison::Match;
use crate::page::{Piece, Visit};
use crate::report::waterfall::compare;
use crate::report::xml_tests::{Element, elements};

/// The elements of the picture of a visit, which is well-formed.
fn drawn(visit: &Visit) -> Vec<Element> {
    elements(&svg(visit)).expect("the picture is well-formed")
}

/// Ends of the time axis as the picture's own ticks have them: the places of 0 and of the last labelled tick.
pub(super) fn axis(all: &[Element]) -> impl Fn(f64) -> f64 + use<> {
    let tick = |label: &str| {
        let found = all
            .iter()
            .find(|one| one.name == "text" && one.text == label);
        found
            .unwrap_or_else(|| panic!("there is a tick {label}"))
            .number("x")
    };
    let (zero, hundred) = (tick("0"), tick("100 ms"));
    move |ms| zero + ms / 100.0 * (hundred - zero)
}

#[track_caller]
pub(super) fn assert_near(found: f64, wanted: f64) {
    assert!(
        (found - wanted).abs() <= 0.5,
        "{found} is drawn, {wanted} is right"
    );
}

#[test]
fn phases_pieces_and_moments_are_at_their_times() {
    let mut visit = visit(3);
    visit.resources[0].pieces.clear();
    let all = drawn(&visit);
    let x = axis(&all);
    let ends = [
        ("queued", 0.0, 10.0),
        ("dns", 10.0, 20.0),
        ("connect", 20.0, 30.0),
        ("tls", 30.0, 40.0),
        ("send", 40.0, 50.0),
        ("wait", 50.0, 80.0),
    ];
    for (class, from, to) in ends {
        let bars: Vec<&Element> = all
            .iter()
            .filter(|one| one.is(class) && one.number("x") > 400.0)
            .collect();
        assert_eq!(bars.len(), 3, "{class}");
        for (n, bar) in bars.iter().enumerate() {
            let later = n as f64 * 5.0;
            assert_near(bar.number("x"), x(from + later));
            assert_near(bar.number("x") + bar.number("width"), x(to + later));
        }
    }
    let receive = all
        .iter()
        .rfind(|one| one.is("receive"))
        .expect("it is drawn");
    assert_near(receive.number("x"), x(80.0));
    assert_near(receive.number("x") + receive.number("width"), x(120.0));
    let pieces: Vec<f64> = all
        .iter()
        .filter(|one| one.is("piece"))
        .map(|one| one.number("x") + 0.5)
        .collect();
    assert_eq!(pieces.len(), 6);
    for (found, wanted) in pieces.iter().zip([95.0, 105.0, 125.0, 100.0, 110.0, 130.0]) {
        assert_near(*found, x(wanted));
    }
    for (class, ms) in [("m0", 80.0), ("m1", 100.0), ("m3", 110.0), ("m5", 120.0)] {
        // The first is in the legend.
        let line = all
            .iter()
            .filter(|one| one.is(class))
            .nth(1)
            .expect("it is drawn");
        assert_near(line.number("x1"), x(ms));
        assert_near(line.number("x2"), x(ms));
    }
}

#[test]
fn a_wait_shows_its_parts_and_a_stall_its_cause() {
    let mut visit = visit(1);
    let one = &mut visit.resources[0];
    // A round trip of 10 ms, 5 of the server; the body's end comes 50 ms after the previous piece.
    one.phases.receive_ms = Some(60.0);
    one.pieces = [(90.0, 5_000), (140.0, 200)]
        .map(|(at_ms, bytes)| Piece { at_ms, bytes })
        .to_vec();
    let all = drawn(&visit);
    let x = axis(&all);
    for (class, from, to) in [
        ("trip", 50.0, 60.0),
        ("server", 60.0, 65.0),
        ("rest", 65.0, 80.0),
    ] {
        let part = all
            .iter()
            .filter(|one| one.is(class))
            .nth(1)
            .expect("it is drawn");
        assert_near(part.number("x"), x(from));
        assert_near(part.number("x") + part.number("width"), x(to));
    }
    let stall = all
        .iter()
        .filter(|one| one.is("stall"))
        .nth(1)
        .expect("it is drawn");
    assert_near(stall.number("x"), x(90.0));
    assert_near(stall.number("x") + stall.number("width"), x(140.0));
    let cause = all
        .iter()
        .find(|one| one.is("cause"))
        .expect("the cause is written");
    assert_eq!(cause.text, "140 ms  stall: 50 ms, delayed acknowledgement");
    let report = text(&visit);
    assert!(
        report.contains("#1 at 90 ms: 50 ms, delayed acknowledgement"),
        "{report}"
    );
    assert!(
        report.contains("round trips 10 ms (n=1), server 5.0 ms (n=1), unexplained 15 ms (n=1)"),
        "{report}"
    );
}

/// Room that a text takes at most: a column is narrower than this in the usual fonts.
fn text_ends(element: &Element) -> (f64, f64) {
    let size = if element.is("name") { 14.0 } else { 11.0 };
    let width = element.text.chars().count() as f64 * size * 0.605;
    let x = element.number("x");
    match element.attributes.get("text-anchor").map(String::as_str) {
        Some("end") => (x - width, x),
        Some("middle") => (x - width / 2.0, x + width / 2.0),
        _ => (x, x + width),
    }
}

/// Asserts that nothing is outside of the picture.
#[track_caller]
pub(super) fn assert_inside(all: &[Element]) {
    let view: Vec<f64> = all[0].attributes["viewBox"]
        .split(' ')
        .map(|n| n.parse().expect("numbers"))
        .collect();
    let (width, height) = (view[2], view[3]);
    let inside = |from: f64, to: f64, most: f64| from >= -0.05 && to <= most + 0.05 && from <= to;
    for one in &all[1..] {
        let is_inside = match one.name.as_str() {
            "rect" => {
                let (x, y) = (one.number("x"), one.number("y"));
                inside(x, x + one.number("width"), width)
                    && inside(y, y + one.number("height"), height)
            }
            "line" => {
                let is_in = |n: f64, most: f64| (0.0..=most).contains(&n);
                is_in(one.number("x1"), width)
                    && is_in(one.number("x2"), width)
                    && is_in(one.number("y1"), height)
                    && is_in(one.number("y2"), height)
            }
            "text" => {
                let (from, to) = text_ends(one);
                let y = one.number("y");
                inside(from, to, width) && inside(y - 11.0, y + 3.0, height)
            }
            _ => true,
        };
        assert!(is_inside, "{one:?}");
    }
}

#[test]
fn nothing_is_outside_of_the_picture() {
    for n in [0, 1, 2, 50] {
        assert_inside(&drawn(&visit(n)));
    }
    let mut late = visit(2);
    late.resources[1] = resource(1, 1e12);
    late.resources[1].pieces[0].at_ms = f64::INFINITY;
    late.timings.load_ms = Some(1e300);
    late.timings.first_byte_ms = Some(f64::NAN);
    assert_inside(&drawn(&late));
    // The longest line about a visit.
    let mut long = visit(3);
    (long.agent.name, long.agent.version) = ("N".repeat(100), "1".repeat(100));
    long.agent.is_browser = false;
    long.resources = (0..999).map(|n| resource(n, 0.0)).collect();
    for (n, one) in long.resources.iter_mut().enumerate() {
        (one.connection, one.from_cache) = (Some(n as u64), n % 2 == 0);
        (one.head_bytes, one.body_bytes) = (None, (n == 1).then_some(u64::MAX));
        one.error = Some("reset".to_owned());
    }
    assert_inside(&drawn(&long));
    let run = runs(std::slice::from_ref(&long));
    let both = compare::svg(run.shown(), run.shown(), Match::Url);
    assert_inside(&elements(&both).expect("it is well-formed"));
    // Captions have room behind their bars, before them, or over them.
    for start_ms in [0.0, 300.0, 2_000.0, 4_900.0] {
        let mut visit = visit(1);
        visit.resources[0].start_ms = start_ms;
        visit.resources[0].pieces.clear();
        visit.resources[0].phases.receive_ms = Some(5_000.0 - start_ms);
        assert_inside(&drawn(&visit));
    }
}

#[test]
fn two_thousand_resources_are_drawn_in_a_second() {
    let visit = visit(2_000);
    let begin = Instant::now();
    let picture = svg(&visit);
    let took = begin.elapsed();
    let all = elements(&picture).expect("the picture is well-formed");
    assert_eq!(all.iter().filter(|one| one.is("wait")).count(), 2_001);
    assert!(took.as_millis() < 1_000 * SLOW, "{took:?}");
    assert_inside(&all);
}

#[test]
fn text_has_bars_to_scale() {
    let report = text(&visit(2));
    let lines: Vec<&str> = report.lines().collect();
    assert!(
        lines
            .iter()
            .all(|line| line.len() <= 100 && line.is_ascii()),
        "{report}"
    );
    let bar = |n: usize| lines[n].split('|').nth(1).expect("a bar");
    let columns = bar(1).len() as f64;
    // The second one ends at 125 ms: so the first has 120 of them.
    let share = |ms: f64| (ms / 125.0 * columns).round() as usize;
    for (character, from, to) in [
        ('.', 0.0, 10.0),
        ('d', 10.0, 20.0),
        ('-', 50.0, 80.0),
        ('=', 80.0, 120.0),
    ] {
        assert_eq!(
            bar(1).find(character),
            Some(share(from)),
            "{character} {report}"
        );
        assert_eq!(
            bar(1).rfind(character),
            Some(share(to) - 1),
            "{character} {report}"
        );
        assert_eq!(
            bar(2).find(character),
            Some(share(from + 5.0)),
            "{character} {report}"
        );
    }
    assert!(report.contains("largest paint   110 ms (L)"), "{report}");
    assert!(
        report.contains("2 requests, 6.4 kB, 1 connection\n"),
        "{report}"
    );
    assert!(
        report.contains("note            the link was not emulated"),
        "{report}"
    );
}
