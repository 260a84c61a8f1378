//! Two visits on one time axis.

use std::slice::from_ref;

use super::drawn::{assert_inside, assert_near, axis};
use super::hostile::{TEXTS, made_of};
use super::{runs, visit};
use crate::page::Visit;
use crate::page::comparison::{self, Match, ResourceComparison};
use crate::report::waterfall::compare;
use crate::report::xml_tests::{Element, elements};

/// Two visits for a terminal.
fn compared(before: &Visit, after: &Visit) -> String {
    let [before, after] = [before, after].map(|visit| runs(from_ref(visit)));
    compare::text(&before, &after, Match::Path)
}

/// The elements of the picture of two visits, which is well-formed.
#[track_caller]
fn drawn(before: &Visit, after: &Visit, by: Match) -> Vec<Element> {
    let [before, after] = [before, after].map(|visit| runs(from_ref(visit)));
    elements(&compare::svg(before.shown(), after.shown(), by)).expect("it is well-formed")
}

#[test]
fn bars_of_both_visits_are_at_their_times_on_one_axis() {
    let (mut before, after) = (visit(3), visit(2));
    for one in &mut before.resources {
        one.start_ms += 200.0;
        one.pieces.clear();
    }
    before.timings.load_ms = Some(330.0);
    let all = drawn(&before, &after, Match::Path);
    assert_inside(&all);
    let x = axis(&all);
    let waits: Vec<&Element> = all
        .iter()
        .filter(|one| one.is("wait") && one.number("x") > 400.0)
        .collect();
    // Above each other, the first visit's above: pairs of the first two, then the one that is alone.
    let places = [
        (250.0, 280.0),
        (50.0, 80.0),
        (255.0, 285.0),
        (55.0, 85.0),
        (260.0, 290.0),
    ];
    assert_eq!(waits.len(), places.len());
    for (bar, (from, to)) in waits.iter().zip(places) {
        assert_near(bar.number("x"), x(from));
        assert_near(bar.number("x") + bar.number("width"), x(to));
    }
    assert!(
        waits
            .windows(2)
            .all(|pair| pair[0].number("y") < pair[1].number("y"))
    );
    assert!(all.iter().any(|one| one.text == "not after"));
    for (n, ms) in [(2, 330.0), (3, 120.0)] {
        let load = all
            .iter()
            .filter(|one| one.is("m5"))
            .nth(n)
            .expect("before, after, each in the legend first");
        assert_near(load.number("x1"), x(ms));
    }
}

#[test]
fn resources_belong_together_by_path_and_turn() {
    let (before, mut after) = (visit(3), visit(3));
    after.resources[1].url = after.resources[2].url.clone();
    for one in &mut after.resources {
        one.url = one
            .url
            .replace("https://www.example.org", "http://127.0.0.1:8080");
    }
    let names = |by: Match| {
        let all = drawn(&before, &after, by);
        let count = |text: &str| all.iter().filter(|one| one.text == text).count();
        (count("not after"), count("not before"))
    };
    // The second of two equal paths has no counterpart, nor has the resource of the other visit at its place.
    assert_eq!(names(Match::Path), (1, 1));
    assert_eq!(names(Match::Url), (3, 3));
    // The picture has the pairs of the figures: names of hosts have no case, and another method is another resource.
    let (mut old, mut new) = (visit(3), visit(3));
    old.resources[0].url = "https://cdn.example.org/a.js".to_owned();
    new.resources[0].url = "https://CDN.example.org:443/a.js".to_owned();
    new.resources[1].method = "POST".to_owned();
    for by in [Match::Url, Match::Path] {
        let all = drawn(&old, &new, by);
        let count = |text: &str| all.iter().filter(|one| one.text == text).count();
        assert_eq!((count("not after"), count("not before")), (1, 1));
        let [old, new] = [&old, &new].map(|visit| runs(from_ref(visit)));
        let figures = comparison::compare(&old, &new, by).resources;
        let alone = |one: &ResourceComparison| one.before.is_none() || one.after.is_none();
        assert_eq!(figures.iter().filter(|one| alone(one)).count(), 2);
    }
    // Of two that are equal in both visits the first belongs to the first.
    let all = drawn(&after, &after, Match::Url);
    let waits = all
        .iter()
        .filter(|one| one.is("wait") && one.number("x") > 400.0);
    let places: Vec<f64> = waits.map(|one| one.number("x")).collect();
    assert!(
        places.chunks(2).all(|pair| pair[0] == pair[1]),
        "{places:?}"
    );
    let report = compared(&before, &after);
    assert!(report.contains("only before: /assets/1.css\n"), "{report}");
    assert!(
        report.contains("only after: 127.0.0.1:8080/assets/2.css\n"),
        "{report}"
    );
}

#[test]
fn changes_have_signs_and_shares_and_a_verdict_of_several_runs_only() {
    let (before, mut after) = (visit(2), visit(2));
    after.timings.load_ms = Some(60.0);
    let report = compared(&before, &after);
    assert!(
        report.contains("120 ms   60 ms  -60 ms (-50 %)"),
        "{report}"
    );
    assert!(report.contains("there is no verdict"), "{report}");
    let (mut slower, mut faster) = (before.clone(), after.clone());
    (slower.timings.load_ms, faster.timings.load_ms) = (Some(121.0), Some(61.0));
    let old = [before.clone(), slower, before];
    let new = [after.clone(), faster, after];
    let several = compare::text(&runs(&old), &runs(&new), Match::Url);
    assert!(several.contains("n=3): differs"), "{several}");
    for report in [report, several] {
        assert!(
            report
                .lines()
                .all(|line| line.len() <= 100 && line.is_ascii()),
            "{report}"
        );
    }
}

#[test]
fn texts_of_others_stay_texts_in_comparisons() {
    for hostile in TEXTS {
        let made = made_of(hostile);
        let all = drawn(&made, &made, Match::Path);
        assert_inside(&all);
        assert!(
            all.iter()
                .all(|one| one.name != "script" && one.name != "img")
        );
        let report = compared(&made, &visit(1));
        assert!(
            report
                .chars()
                .all(|c| c == '\n' || (' '..='~').contains(&c)),
            "{report:?}"
        );
    }
}
