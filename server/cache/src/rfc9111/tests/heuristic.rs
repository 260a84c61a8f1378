//! Guessed freshness. Source: RFC 9111 section 4.2.2; RFC 9110 section 15.1; cases of `heuristic`.

use super::Expect::{Cached, NotCached};
use super::{Check, Grade, List, Optimal, Required, Step, assert_cases, assert_pairs};

const DAY: List = &[("Last-Modified", "@-86400"), ("Date", "@0")];
const PUBLIC: List = &[DAY[0], DAY[1], ("Cache-Control", "public")];

#[test]
fn freshness_is_guessed_by_status() {
    let optimal = [200, 203, 204, 404, 405, 410, 414, 501];
    let required = [201, 202, 403, 502, 503, 504, 599];
    let cases = optimal
        .map(|status| (status, Optimal, DAY, Cached))
        .into_iter()
        .chain(required.map(|status| (status, Required, DAY, NotCached)))
        .chain([(599, Optimal, PUBLIC, Cached)]);
    for (status, grade, response, expect) in cases {
        let first = Step {
            status,
            response,
            ..Step::GET
        };
        let steps: &'static [Step] = Box::leak(Box::new([first, Step { expect, ..first }]));
        assert_cases(&[(
            format!("heuristic-{status}-{expect:?}").leak(),
            grade,
            steps,
        )]);
    }
}

/// A tenth of the time since the modification, so that three seconds need 30 at least.
#[test]
fn a_tenth_of_the_time_since_the_modification_is_fresh() {
    for (id, modified, expect) in [
        ("heuristic-delta-5", "@-5", NotCached),
        ("heuristic-delta-10", "@-10", NotCached),
        ("heuristic-delta-30", "@-30", NotCached),
        ("heuristic-delta-60", "@-60", Cached),
        ("heuristic-delta-300", "@-300", Cached),
        ("heuristic-delta-43200", "@-43200", Cached),
    ] {
        let response = vec![("Last-Modified", modified), DAY[1]];
        assert_pairs(&[(id, Check, response.leak(), expect)]);
    }
}

/// Beyond the suite: RFC 9111 section 4.2.2 permits more; the policy is a validator and no query.
#[test]
fn a_query_or_a_missing_modification_time_forbids_a_guess() {
    let query = Step {
        target: "/case?a=b",
        response: DAY,
        ..Step::GET
    };
    let grade: Grade = Check;
    let again = Step {
        expect: NotCached,
        ..query
    };
    let steps: &'static [Step] = Box::leak(Box::new([query, again]));
    assert_cases(&[("heuristic-query", grade, steps)]);
    assert_pairs(&[(
        "heuristic-etag",
        Check,
        &[("ETag", "\"a\""), ("Date", "@0")],
        NotCached,
    )]);
}
