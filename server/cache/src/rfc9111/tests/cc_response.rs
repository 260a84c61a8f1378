//! Directives of responses other than lifetimes. Source: RFC 9111 section 5.2.2; cases of `cc-response`.

use super::Expect::{Cached, EtagValidated, NotCached};
use super::{Case, Check, Expect, List, Optimal, Required, Step, assert_cases};

const fn first(response: List, wait_s: i64) -> Step {
    Step {
        response,
        wait_s,
        ..Step::GET
    }
}

const fn second(expect: Expect) -> Step {
    Step {
        expect,
        ..Step::GET
    }
}

const EXPIRES: (&str, &str) = ("Expires", "@10000");
const DATE: (&str, &str) = ("Date", "@0");
const ETAG: (&str, &str) = ("ETag", "\"abcd\"");
const REVALIDATE: List = &[("Cache-Control", "max-age=2, must-revalidate"), ETAG];

const CASES: [Case; 14] = [
    (
        "cc-resp-private-shared",
        Required,
        &[
            first(&[("Cache-Control", "private, max-age=3600")], 0),
            second(NotCached),
        ],
    ),
    (
        "cc-resp-no-store",
        Required,
        &[
            first(&[("Cache-Control", "no-store")], 0),
            second(NotCached),
        ],
    ),
    (
        "cc-resp-no-store-case-insensitive",
        Required,
        &[
            first(&[("Cache-Control", "No-StOrE")], 0),
            second(NotCached),
        ],
    ),
    (
        "cc-resp-no-store-fresh",
        Required,
        &[
            first(
                &[("Cache-Control", "max-age=10000, no-store"), EXPIRES, DATE],
                0,
            ),
            second(NotCached),
        ],
    ),
    (
        "cc-resp-no-store-old-new",
        Check,
        &[
            first(
                &[
                    ("Cache-Control", "max-age=10000"),
                    EXPIRES,
                    DATE,
                    ("A", "1"),
                ],
                3,
            ),
            first(&[("Cache-Control", "no-store"), DATE, ("A", "2")], 3),
            Step {
                expect_fields: &[("A", "1")],
                ..second(Cached)
            },
        ],
    ),
    (
        "cc-resp-no-cache",
        Required,
        &[
            first(
                &[("Cache-Control", "max-age=10000, no-cache"), EXPIRES, DATE],
                0,
            ),
            second(NotCached),
        ],
    ),
    (
        "cc-resp-no-cache-case-insensitive",
        Required,
        &[
            first(
                &[("Cache-Control", "max-age=10000, No-CaChE"), EXPIRES, DATE],
                0,
            ),
            second(NotCached),
        ],
    ),
    (
        "cc-resp-no-cache-revalidate",
        Optimal,
        &[
            first(&[("Cache-Control", "no-cache"), ETAG], 0),
            second(EtagValidated),
        ],
    ),
    (
        "cc-resp-no-cache-revalidate-fresh",
        Optimal,
        &[
            first(
                &[
                    ("Cache-Control", "max-age=10000, no-cache"),
                    EXPIRES,
                    DATE,
                    ETAG,
                ],
                0,
            ),
            second(EtagValidated),
        ],
    ),
    (
        "headers-omit-headers-listed-in-Cache-Control-no-cache-single",
        Check,
        &[
            first(
                &[
                    ("Cache-Control", "no-cache=\"a\""),
                    ("a", "1"),
                    ("b", "2"),
                    ("Cache-Control", "max-age=3600"),
                    DATE,
                ],
                3,
            ),
            Step {
                expect_fields: &[("a", "-"), ("b", "2")],
                ..second(Cached)
            },
        ],
    ),
    (
        "headers-omit-headers-listed-in-Cache-Control-no-cache",
        Check,
        &[
            first(
                &[
                    ("Cache-Control", "no-cache=\"a, b\""),
                    ("a", "1"),
                    ("b", "2"),
                    ("c", "3"),
                    ("Cache-Control", "max-age=3600"),
                    DATE,
                ],
                3,
            ),
            Step {
                expect_fields: &[("a", "-"), ("b", "-"), ("c", "3")],
                ..second(Cached)
            },
        ],
    ),
    (
        "cc-resp-must-revalidate-fresh",
        Optimal,
        &[
            first(
                &[("Cache-Control", "max-age=10000, must-revalidate"), ETAG],
                0,
            ),
            second(Cached),
        ],
    ),
    (
        "cc-resp-must-revalidate-stale",
        Required,
        &[
            first(REVALIDATE, 0),
            Step {
                expect: Cached,
                ..first(REVALIDATE, 3)
            },
            second(EtagValidated),
        ],
    ),
    (
        "cc-resp-no-store-old-max-age",
        Check,
        &[
            first(
                &[
                    ("Cache-Control", "max-age=10000"),
                    EXPIRES,
                    DATE,
                    ("A", "1"),
                ],
                3,
            ),
            first(
                &[("Cache-Control", "no-store, max-age=0"), DATE, ("A", "2")],
                3,
            ),
            Step {
                expect_fields: &[("A", "1")],
                ..second(Cached)
            },
        ],
    ),
];

#[test]
fn directives_of_responses_are_obeyed() {
    assert_cases(&CASES);
}
