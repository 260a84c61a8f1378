//! `Pragma`. Source: RFC 9111 section 5.4; cases of `pragma`.

use super::Expect::Cached;
use super::{Case, Check, List, Pair, Step, assert_cases, assert_pairs};

const FRESH: Step = Step {
    response: &[("Cache-Control", "max-age=100000"), ("Date", "@0")],
    wait_s: 3,
    ..Step::GET
};

const fn second(request: List) -> Step {
    Step {
        request,
        expect: Cached,
        ..Step::GET
    }
}

const CASES: [Case; 3] = [
    (
        "pragma-request-no-cache",
        Check,
        &[FRESH, second(&[("Pragma", "no-cache")])],
    ),
    (
        "pragma-request-extension",
        Check,
        &[FRESH, second(&[("Pragma", "unrecognised-extension")])],
    ),
    // Beyond the suite: Cache-Control replaces Pragma.
    (
        "pragma-and-cache-control",
        Check,
        &[
            FRESH,
            second(&[("Pragma", "no-cache"), ("Cache-Control", "max-age=60")]),
        ],
    ),
];

const PAIRS: [Pair; 3] = [
    (
        "pragma-response-no-cache",
        Check,
        &[("Cache-Control", "max-age=3600"), ("Pragma", "no-cache")],
        Cached,
    ),
    (
        "pragma-response-no-cache-heuristic",
        Check,
        &[
            ("Date", "@0"),
            ("Last-Modified", "@-10000"),
            ("Pragma", "no-cache"),
        ],
        Cached,
    ),
    (
        "pragma-response-extension",
        Check,
        &[
            ("Cache-Control", "max-age=3600"),
            ("Pragma", "unrecognised-extension"),
        ],
        Cached,
    ),
];

#[test]
fn pragma_concerns_requests_alone() {
    assert_cases(&CASES);
    assert_pairs(&PAIRS);
}
