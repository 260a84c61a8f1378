//! Statuses with explicit freshness, `must-understand`, and POST. Source: RFC 9111 sections 3, 5.2.2.3; RFC 9110 section
//! 9.3.3; cases of `status` and `method`.

use engines::http::Method;

use super::Expect::{Cached, NotCached};
use super::{List, Optimal, Required, Step, assert_cases};

const FRESH: List = &[("Cache-Control", "max-age=100000"), ("Date", "@0")];
const STALE: List = &[
    ("Expires", "@-5000"),
    ("Last-Modified", "@-100000"),
    ("Date", "@0"),
];
const UNDERSTAND: List = &[("Cache-Control", "max-age=3600, no-store, must-understand")];

fn assert_status(
    id: String,
    status: u16,
    response: List,
    grade: super::Grade,
    expect: super::Expect,
) {
    let first = Step {
        status,
        response,
        wait_s: 3,
        ..Step::GET
    };
    let steps: &'static [Step] = Box::leak(Box::new([first, Step { expect, ..first }]));
    assert_cases(&[(id.leak(), grade, steps)]);
}

#[test]
fn each_status_may_be_fresh() {
    for status in [
        200, 203, 204, 299, 301, 302, 303, 307, 308, 400, 404, 410, 499, 500, 502, 503, 504, 599,
    ] {
        assert_status(
            format!("status-{status}-fresh"),
            status,
            FRESH,
            Optimal,
            Cached,
        );
        assert_status(
            format!("status-{status}-stale"),
            status,
            STALE,
            Required,
            NotCached,
        );
    }
    assert_status(
        "status-599-must-understand".to_owned(),
        599,
        UNDERSTAND,
        Required,
        NotCached,
    );
    assert_status(
        "status-200-must-understand".to_owned(),
        200,
        UNDERSTAND,
        Optimal,
        Cached,
    );
}

#[test]
fn a_response_to_post_may_answer_get() {
    const POST: Step = Step {
        method: Method::Post,
        response: &[
            ("Cache-Control", "max-age=3600"),
            ("Content-Location", ""),
            ("Date", "@0"),
        ],
        wait_s: 3,
        ..Step::GET
    };
    const AGAIN: Step = Step {
        expect: Cached,
        ..Step::GET
    };
    const OTHER: Step = Step {
        response: &[
            ("Cache-Control", "max-age=3600"),
            ("Content-Location", "/other"),
        ],
        ..POST
    };
    const NOT_AGAIN: Step = Step {
        expect: NotCached,
        ..Step::GET
    };
    assert_cases(&[
        ("method-POST", Optimal, &[POST, AGAIN]),
        ("method-POST-other", Required, &[OTHER, NOT_AGAIN]),
    ]);
}
