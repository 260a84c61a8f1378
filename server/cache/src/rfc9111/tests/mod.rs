//! The rules together, in a model of a cache: cases by the identifiers of the suite http-tests/cache-tests.
//!
//! A case is a sequence of requests with the server's responses, and the expected use of the store. Its grade is that of
//! the suite: required, optimal, or a check without a verdict. Cases that need a body from the wire, interim responses or
//! a browser are absent.

mod age;
mod authorization;
mod cc_parse;
mod cc_request;
mod cc_response;
mod cdn;
mod conditional;
mod expires;
mod freshness;
mod headers;
mod heuristic;
mod invalidation;
mod model;
mod other;
mod partial;
mod pragma;
mod random;
mod stale;
mod status;
mod update;
mod vary;
mod vary_parse;

use model::{Expect, Model, Step};

/// The grade of a case in the suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grade {
    Required,
    Optimal,
    Check,
}

use Grade::{Check, Optimal, Required};

/// Fields as name and value. A value "@N" is the date N seconds from now.
type List = &'static [(&'static str, &'static str)];

/// A case with steps.
type Case = (&'static str, Grade, &'static [Step]);

/// A case with one response, three seconds, and a request again: the use of the stored response.
type Pair = (&'static str, Grade, List, Expect);

/// Cases that end otherwise than in the suite, with reasons. Lists of others only shrink.
const OTHERWISE: [(&str, &str); 17] = [
    (
        "partial-store-partial-complete",
        "parts without a strong validator are not combined",
    ),
    (
        "freshness-max-age-two-stale-fresh-sameline",
        "the first value counts",
    ),
    (
        "freshness-max-age-two-stale-fresh-sepline",
        "the first value counts",
    ),
    ("freshness-max-age-decimal-zero", "not an integer, so stale"),
    ("freshness-max-age-decimal-five", "not an integer, so stale"),
    ("freshness-max-age-a100", "not an integer, so stale"),
    ("freshness-max-age-100a", "not an integer, so stale"),
    (
        "freshness-max-age-date",
        "clocks of servers are not trusted",
    ),
    ("age-parse-parameter", "an invalid Age is ignored"),
    ("age-parse-numeric-parameter", "an invalid Age is ignored"),
    (
        "pragma-request-no-cache",
        "Pragma is no-cache without Cache-Control",
    ),
    (
        "cdn-max-age-case-insensitive",
        "keys of dictionaries are in lower case",
    ),
    ("ccreq-no-store", "no-store does not concern what is stored"),
    ("other-set-cookie", "Set-Cookie needs a setting"),
    ("headers-store-Set-Cookie", "Set-Cookie needs a setting"),
    ("head-410-update", "only 200 responses update"),
    ("vary-normalise-lang-select", "languages are not negotiated"),
];

/// Runs cases and returns the ids of those that fail.
fn failing(cases: &[Case]) -> Vec<String> {
    let mut failing = Vec::new();
    for (id, grade, steps) in cases {
        let found = Model::default().run(steps);
        let otherwise = OTHERWISE.iter().any(|(known, _)| known == id);
        match found {
            Ok(()) if otherwise => failing.push(format!("{id}: no longer otherwise")),
            Err(text) if !otherwise => failing.push(format!("{id} ({grade:?}): {text}")),
            _ => {}
        }
    }
    failing
}

#[track_caller]
fn assert_cases(cases: &[Case]) {
    assert_eq!(failing(cases), [""; 0]);
}

#[track_caller]
fn assert_pairs(pairs: &[Pair]) {
    for &(id, grade, response, expect) in pairs {
        let first = Step {
            response,
            wait_s: 3,
            ..Step::GET
        };
        let second = Step {
            response,
            expect,
            ..Step::GET
        };
        let steps: &'static [Step] = Box::leak(Box::new([first, second]));
        assert_cases(&[(id, grade, steps)]);
    }
}
