//! Directives of requests. Source: RFC 9111 section 5.2.1; cases of `cc-request`.

use super::Expect::{Cached, DateValidated, EtagValidated, NotCached};
use super::{Case, Check, Expect, List, Step, assert_cases};

const fn first(response: List, wait_s: i64) -> Step {
    Step {
        response,
        wait_s,
        ..Step::GET
    }
}

const fn second(request: List, expect: Expect) -> Step {
    Step {
        request,
        expect,
        ..Step::GET
    }
}

const FRESH: Step = first(&[("Cache-Control", "max-age=100000"), ("Date", "@0")], 3);
const BECOMES_STALE: Step = first(&[("Cache-Control", "max-age=2"), ("Date", "@0")], 3);
const NO_CACHE: List = &[("Cache-Control", "no-cache")];

const CASES: [Case; 12] = [
    (
        "ccreq-ma0",
        Check,
        &[FRESH, second(&[("Cache-Control", "max-age=0")], NotCached)],
    ),
    (
        "ccreq-ma1",
        Check,
        &[FRESH, second(&[("Cache-Control", "max-age=1")], NotCached)],
    ),
    (
        "ccreq-magreaterage",
        Check,
        &[
            first(&[("Cache-Control", "max-age=100000"), ("Age", "1800")], 3),
            second(&[("Cache-Control", "max-age=600")], NotCached),
        ],
    ),
    (
        "ccreq-max-stale",
        Check,
        &[
            BECOMES_STALE,
            second(&[("Cache-Control", "max-stale=1000")], Cached),
        ],
    ),
    (
        "ccreq-max-stale-age",
        Check,
        &[
            first(&[("Cache-Control", "max-age=1500"), ("Age", "2000")], 0),
            second(&[("Cache-Control", "max-stale=1000")], Cached),
        ],
    ),
    (
        "ccreq-min-fresh",
        Check,
        &[
            first(&[("Cache-Control", "max-age=1500")], 0),
            second(&[("Cache-Control", "min-fresh=2000")], NotCached),
        ],
    ),
    (
        "ccreq-min-fresh-age",
        Check,
        &[
            first(&[("Cache-Control", "max-age=1500"), ("Age", "1000")], 0),
            second(&[("Cache-Control", "min-fresh=1000")], NotCached),
        ],
    ),
    (
        "ccreq-no-cache",
        Check,
        &[
            first(&[("Cache-Control", "max-age=3600")], 0),
            second(NO_CACHE, NotCached),
        ],
    ),
    (
        "ccreq-no-cache-lm",
        Check,
        &[
            first(
                &[
                    ("Cache-Control", "max-age=3600"),
                    ("Last-Modified", "@-10000"),
                    ("Date", "@0"),
                ],
                0,
            ),
            second(NO_CACHE, DateValidated),
        ],
    ),
    (
        "ccreq-no-cache-etag",
        Check,
        &[
            first(&[("Cache-Control", "max-age=3600"), ("ETag", "\"abc\"")], 0),
            second(NO_CACHE, EtagValidated),
        ],
    ),
    (
        "ccreq-no-store",
        Check,
        &[FRESH, second(&[("Cache-Control", "no-store")], NotCached)],
    ),
    (
        "ccreq-oic",
        Check,
        &[Step {
            request: &[("Cache-Control", "only-if-cached")],
            expect: Cached,
            expect_status: 504,
            ..Step::GET
        }],
    ),
];

#[test]
fn directives_of_requests_are_honoured() {
    assert_cases(&CASES);
}
