//! Selecting fields and their normal forms. Source: RFC 9111 section 4.1; cases of `vary`.

use super::Expect::{Cached, NotCached};
use super::{Case, Expect, Grade, List, Optimal, Required, Step, assert_cases};

/// Selecting fields, the first request, another request, and the use of the first response.
type Selection = (&'static str, Grade, &'static str, List, List, Expect);

const FOO_1: List = &[("Foo", "1")];
const FOO_BAR: List = &[("Foo", "1"), ("Bar", "abc")];
const ALL: List = &[("Foo", "1"), ("Bar", "abc"), ("Baz", "789")];
const NO_BAR: List = &[("Foo", "1"), ("Baz", "789")];
const LANGUAGES: List = &[("Accept-Language", "en, de")];
const CODINGS: List = &[("Accept-Encoding", "gzip, br")];

const SELECTIONS: [Selection; 21] = [
    ("vary-match", Optimal, "Foo", FOO_1, FOO_1, Cached),
    (
        "vary-no-match",
        Required,
        "Foo",
        FOO_1,
        &[("Foo", "2")],
        NotCached,
    ),
    ("vary-omit-stored", Required, "Foo", &[], FOO_1, NotCached),
    ("vary-omit", Required, "Foo", FOO_1, &[], NotCached),
    (
        "vary-cache-key",
        Optimal,
        "Foo",
        &[("Foo", "1"), ("Other", "2")],
        &[("Foo", "1"), ("Other", "3")],
        Cached,
    ),
    (
        "vary-2-match",
        Optimal,
        "Foo, Bar",
        FOO_BAR,
        FOO_BAR,
        Cached,
    ),
    (
        "vary-2-no-match",
        Required,
        "Foo, Bar",
        FOO_BAR,
        &[("Foo", "2"), ("Bar", "abc")],
        NotCached,
    ),
    (
        "vary-2-match-omit",
        Required,
        "Foo, Bar",
        FOO_BAR,
        &[],
        NotCached,
    ),
    ("vary-3-match", Optimal, "Foo, Bar, Baz", ALL, ALL, Cached),
    (
        "vary-3-no-match",
        Required,
        "Foo, Bar, Baz",
        ALL,
        &[("Foo", "2"), ("Bar", "abc"), ("Baz", "789")],
        NotCached,
    ),
    (
        "vary-3-order",
        Required,
        "Foo, Bar, Baz",
        ALL,
        &[("Foo", "1"), ("Baz", "789"), ("Bar", "abcde")],
        NotCached,
    ),
    (
        "vary-3-omit",
        Optimal,
        "Foo, Bar, Baz",
        NO_BAR,
        NO_BAR,
        Cached,
    ),
    ("vary-star", Required, "*", NO_BAR, NO_BAR, NotCached),
    (
        "vary-normalise-combine",
        Optimal,
        "Foo",
        &[("Foo", "1, 2")],
        &[("Foo", "1"), ("Foo", "2")],
        Cached,
    ),
    (
        "vary-normalise-lang-order",
        Optimal,
        "Accept-Language",
        LANGUAGES,
        &[("Accept-Language", "de, en")],
        Cached,
    ),
    (
        "vary-normalise-lang-case",
        Optimal,
        "Accept-Language",
        LANGUAGES,
        &[("Accept-Language", "eN, De")],
        Cached,
    ),
    (
        "vary-normalise-lang-space",
        Optimal,
        "Accept-Language",
        LANGUAGES,
        &[("Accept-Language", " en ,   de")],
        Cached,
    ),
    (
        "vary-normalise-lang-select",
        Optimal,
        "Accept-Language",
        LANGUAGES,
        &[("Accept-Language", "fr;q=0.5, de;q=1.0")],
        Cached,
    ),
    (
        "vary-normalise-space",
        Optimal,
        "Foo",
        &[("Foo", "1,2")],
        &[("Foo", " 1, 2 ")],
        Cached,
    ),
    // Beyond the suite.
    (
        "vary-encoding-order",
        Optimal,
        "Accept-Encoding",
        CODINGS,
        &[("Accept-Encoding", "br;q=1.0, gzip;q=0.8, *;q=0.0")],
        NotCached,
    ),
    (
        "vary-encoding-refused",
        Optimal,
        "Accept-Encoding",
        CODINGS,
        &[("Accept-Encoding", "BR;q=0.9, deflate;q=0, gzip")],
        Cached,
    ),
];

fn steps(selection: &Selection) -> [Step; 2] {
    let (_, _, vary, stored, request, expect) = *selection;
    let response = vec![
        ("Cache-Control", "max-age=5000"),
        ("Last-Modified", "@-3000"),
        ("Date", "@0"),
        ("Vary", vary),
    ];
    let first = Step {
        request: stored,
        response: response.leak(),
        ..Step::GET
    };
    let second = Step {
        request,
        expect,
        ..first
    };
    [first, second]
}

#[test]
fn selecting_fields_match_in_their_normal_form() {
    for selection in &SELECTIONS {
        let steps: &'static [Step] = Box::leak(Box::new(steps(selection)));
        assert_cases(&[(selection.0, selection.1, steps)]);
    }
}

#[test]
fn two_variants_are_stored() {
    let [first, second] = steps(&("", Optimal, "Foo", FOO_1, &[("Foo", "2")], NotCached));
    let first = Step {
        body: "foo_1",
        ..first
    };
    let second = Step {
        body: "foo_2",
        ..second
    };
    let third = Step {
        expect: Cached,
        expect_body: "foo_1",
        body: "new",
        ..first
    };
    let fourth = Step {
        request: second.request,
        expect_body: "foo_2",
        ..third
    };
    let steps: &'static [Step] = Box::leak(Box::new([first, second, third, fourth]));
    let case: Case = ("vary-invalidate", Optimal, steps);
    assert_cases(&[case]);
}
