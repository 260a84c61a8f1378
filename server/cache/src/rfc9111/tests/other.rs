//! `Age`, `Date`, keys with a query, cookies. Source: RFC 9111 sections 4, 4.2.3, 5.1; cases of `other`.

use super::Expect::{Cached, NotCached};
use super::{Case, Check, Expect, List, Optimal, Required, Step, assert_cases};

const CONTROL: (&str, &str) = ("Cache-Control", "max-age=100000");
const DATE: (&str, &str) = ("Date", "@0");
const EXPIRES: (&str, &str) = ("Expires", "@2592000");

const fn first(response: List) -> Step {
    Step {
        response,
        wait_s: 3,
        ..Step::GET
    }
}

const fn cached(expect_fields: List) -> Step {
    Step {
        expect: Cached,
        expect_fields,
        ..Step::GET
    }
}

const fn with_query(target: &'static str, expect: Expect) -> Step {
    Step {
        target,
        expect,
        ..first(&[CONTROL, DATE])
    }
}

const CASES: [Case; 13] = [
    (
        "other-age-gen",
        Required,
        &[first(&[CONTROL, DATE]), cached(&[("Age", ">2")])],
    ),
    (
        "other-age-delay",
        Check,
        &[Step {
            delay_s: 5,
            expect_fields: &[("Age", ">0")],
            ..first(&[CONTROL, DATE])
        }],
    ),
    (
        "other-age-update-expires",
        Required,
        &[
            first(&[EXPIRES, DATE, ("Age", "30")]),
            cached(&[("Age", ">32")]),
        ],
    ),
    (
        "other-age-update-max-age",
        Required,
        &[
            first(&[CONTROL, DATE, ("Age", "30")]),
            cached(&[("Age", ">32")]),
        ],
    ),
    (
        "other-date-update",
        Required,
        &[first(&[CONTROL, DATE]), cached(&[("Date", "@-3")])],
    ),
    (
        "other-date-update-expires",
        Required,
        &[first(&[EXPIRES, DATE]), cached(&[("Date", "@-3")])],
    ),
    (
        "other-date-update-expires-update",
        Check,
        &[first(&[EXPIRES, DATE]), cached(&[("Expires", "@2591997")])],
    ),
    (
        "query-args-different",
        Required,
        &[
            with_query("/case?a", NotCached),
            with_query("/case?b", NotCached),
        ],
    ),
    (
        "query-args-same",
        Optimal,
        &[
            with_query("/case?a", NotCached),
            with_query("/case?a", Cached),
        ],
    ),
    (
        "other-heuristic-content-disposition-attachment",
        Check,
        &[
            Step {
                wait_s: 0,
                ..first(&[
                    ("Last-Modified", "@-100000"),
                    DATE,
                    ("Content-Disposition", "attachment"),
                ])
            },
            cached(&[]),
        ],
    ),
    (
        "other-fresh-content-disposition-attachment",
        Check,
        &[
            first(&[CONTROL, DATE, ("Content-Disposition", "attachment")]),
            cached(&[]),
        ],
    ),
    (
        "other-set-cookie",
        Optimal,
        &[first(&[CONTROL, DATE, ("Set-Cookie", "a=b")]), cached(&[])],
    ),
    (
        "other-cookie",
        Optimal,
        &[
            first(&[CONTROL, DATE]),
            Step {
                request: &[("Cookie", "a=b")],
                ..cached(&[])
            },
        ],
    ),
];

#[test]
fn age_and_date_are_sent() {
    assert_cases(&CASES);
}
