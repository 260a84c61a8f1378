//! Syntax of `Age`. Source: RFC 9111 section 5.1; cases of `age-parse`.

use super::Expect::{Cached, NotCached};
use super::{Check, Expect, Grade, List, Pair, Required, assert_pairs};

const HOUR: (&str, &str) = ("Cache-Control", "max-age=3600");

const fn pair(id: &'static str, grade: Grade, response: List, expect: Expect) -> Pair {
    (id, grade, response, expect)
}

const PAIRS: [Pair; 15] = [
    pair(
        "age-parse-nonnumeric",
        Required,
        &[HOUR, ("Age", "abc")],
        Cached,
    ),
    pair(
        "age-parse-negative",
        Required,
        &[HOUR, ("Age", "-7200")],
        Cached,
    ),
    pair(
        "age-parse-float",
        Required,
        &[HOUR, ("Age", "7200.0")],
        Cached,
    ),
    pair(
        "age-parse-large-minus-one",
        Required,
        &[HOUR, ("Age", "2147483647")],
        NotCached,
    ),
    pair(
        "age-parse-large",
        Required,
        &[HOUR, ("Age", "2147483648")],
        NotCached,
    ),
    pair(
        "age-parse-larger",
        Required,
        &[HOUR, ("Age", "2147483649")],
        NotCached,
    ),
    pair(
        "age-parse-suffix",
        Required,
        &[HOUR, ("Age", "7200, 0")],
        NotCached,
    ),
    pair(
        "age-parse-prefix",
        Required,
        &[HOUR, ("Age", "0, 7200")],
        Cached,
    ),
    pair(
        "age-parse-suffix-twoline",
        Required,
        &[HOUR, ("Age", "7200"), ("Age", "0")],
        NotCached,
    ),
    pair(
        "age-parse-prefix-twoline",
        Required,
        &[HOUR, ("Age", "0"), ("Age", "7200")],
        Cached,
    ),
    pair(
        "age-parse-dup-0",
        Required,
        &[HOUR, ("Age", "0, 0")],
        Cached,
    ),
    pair(
        "age-parse-dup-0-twoline",
        Required,
        &[HOUR, ("Age", "0"), ("Age", "0")],
        Cached,
    ),
    pair(
        "age-parse-dup-old",
        Required,
        &[
            ("Cache-Control", "max-age=10000"),
            ("Age", "3600"),
            ("Age", "3600"),
        ],
        Cached,
    ),
    pair(
        "age-parse-parameter",
        Check,
        &[HOUR, ("Age", "7200;foo=bar")],
        NotCached,
    ),
    pair(
        "age-parse-numeric-parameter",
        Check,
        &[HOUR, ("Age", "7200;foo=111")],
        NotCached,
    ),
];

#[test]
fn the_age_received_counts() {
    assert_pairs(&PAIRS);
}
