//! Freshness by `Expires`, and its syntax. Source: RFC 9111 sections 4.2, 4.2.1, 5.3; cases of `expires` and
//! `expires-parse`.

use super::Expect::{Cached, NotCached};
use super::{Expect, Grade, Optimal, Pair, Required, Step, assert_cases, assert_pairs};

const NOW: (&str, &str) = ("Date", "@0");

const PAIRS: [Pair; 6] = [
    (
        "freshness-expires-future",
        Optimal,
        &[("Expires", "@2592000"), NOW],
        Cached,
    ),
    (
        "freshness-expires-past",
        Required,
        &[("Expires", "@-2592000"), NOW],
        NotCached,
    ),
    (
        "freshness-expires-old-date",
        Required,
        &[("Expires", "@300"), ("Date", "@400")],
        NotCached,
    ),
    (
        "freshness-expires-invalid",
        Required,
        &[("Expires", "0"), NOW],
        NotCached,
    ),
    (
        "freshness-expires-age-slow-date",
        Required,
        &[("Date", "@-10"), ("Expires", "@10"), ("Age", "25")],
        NotCached,
    ),
    (
        "freshness-expires-age-fast-date",
        Required,
        &[("Date", "@10"), ("Expires", "@20"), ("Age", "15")],
        NotCached,
    ),
];

#[test]
fn expires_decides_freshness() {
    assert_pairs(&PAIRS);
    let at_once = |id, grade, response, expect| {
        let step = Step {
            response,
            ..Step::GET
        };
        let again = Step { expect, ..step };
        let steps: &'static [Step] = Box::leak(Box::new([step, again]));
        assert_cases(&[(id, grade, steps)]);
    };
    at_once(
        "freshness-expires-present",
        Required,
        &[("Expires", "@0"), NOW],
        NotCached,
    );
    at_once(
        "freshness-expires-invalid-date",
        Optimal,
        &[("Date", "foo"), ("Expires", "@10")],
        Cached,
    );
}

/// The tail of an id, with a date.
const DATES: [(&str, Grade, &str, Expect); 16] = [
    ("32bit", Optimal, "Tue, 19 Jan 2038 14:14:08 GMT", Cached),
    (
        "far-future",
        Optimal,
        "Sun, 21 Nov 2286 04:46:39 GMT",
        Cached,
    ),
    (
        "rfc850",
        Optimal,
        "Thursday, 18-Aug-50 02:01:18 GMT",
        Cached,
    ),
    ("ansi-c", Optimal, "Thu Aug  8 02:01:18 2050", Cached),
    (
        "wrong-case-weekday",
        Optimal,
        "THU, 18 Aug 2050 02:01:18 GMT",
        Cached,
    ),
    (
        "wrong-case-month",
        Optimal,
        "Thu, 18 AUG 2050 02:01:18 GMT",
        Cached,
    ),
    (
        "wrong-case-tz",
        Optimal,
        "Thu, 18 Aug 2050 02:01:18 gMT",
        Cached,
    ),
    (
        "invalid-utc",
        Required,
        "Thu, 18 Aug 2050 02:01:18 UTC",
        NotCached,
    ),
    (
        "invalid-aest",
        Required,
        "Thu, 18 Aug 2050 02:01:18 AEST",
        NotCached,
    ),
    (
        "invalid-2-digit-year",
        Required,
        "Thu, 18 Aug 50 02:01:18 GMT",
        NotCached,
    ),
    (
        "invalid-no-comma",
        Required,
        "Thu 18 Aug 2050 02:01:18 GMT",
        NotCached,
    ),
    (
        "invalid-multiple-spaces",
        Required,
        "Thu, 18  Aug  2050 02:01:18 GMT",
        NotCached,
    ),
    (
        "invalid-date-dashes",
        Required,
        "Thu, 18-Aug-2050 02:01:18 GMT",
        NotCached,
    ),
    (
        "invalid-time-periods",
        Required,
        "Thu, 18 Aug 2050 02.01.18 GMT",
        NotCached,
    ),
    (
        "invalid-1-digit-hour",
        Required,
        "Thu, 18 Aug 2050 2:01:18 GMT",
        NotCached,
    ),
    (
        "invalid-multiple-lines",
        Required,
        "Thu, 18 Aug 2050 2:01:18 GMT",
        NotCached,
    ),
];

#[test]
fn expires_is_parsed_strictly() {
    for (tail, grade, date, expect) in DATES {
        let id = format!("freshness-expires-{tail}").leak();
        let mut list = vec![NOW, ("Expires", date)];
        if tail == "invalid-multiple-lines" {
            list.push(("Expires", "Thu, 18 Aug 2050 2:01:19 GMT"));
        }
        assert_pairs(&[(id, grade, list.leak(), expect)]);
    }
}
