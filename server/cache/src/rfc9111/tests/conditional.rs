//! Preconditions of clients, and validation. Source: RFC 9111 section 4.3; cases of `conditional-inm` and
//! `conditional-lm`.

use super::Expect::{Any, Cached, DateValidated, EtagValidated};
use super::{Case, Check, Expect, Grade, List, Optimal, Required, Step, assert_cases};

const fn fresh(response: List) -> Step {
    Step {
        response,
        wait_s: 3,
        ..Step::GET
    }
}

const fn not_modified(request: List, expect: Expect) -> Step {
    Step {
        request,
        expect,
        expect_status: 304,
        ..Step::GET
    }
}

const CONTROL: (&str, &str) = ("Cache-Control", "max-age=100000");
const SHORT: (&str, &str) = ("Cache-Control", "max-age=2");
const DATE: (&str, &str) = ("Date", "@0");
const TAG: (&str, &str) = ("ETag", "\"abcdef\"");
const WEAK: (&str, &str) = ("ETag", "W/\"abcdef\"");
const WANTED: (&str, &str) = ("If-None-Match", "\"abcdef\"");

#[test]
fn a_fresh_response_answers_if_none_match() {
    let cases: [(&str, Grade, &str, &str); 7] = [
        (
            "conditional-etag-strong-respond",
            Optimal,
            "\"abcdef\"",
            "\"abcdef\"",
        ),
        (
            "conditional-etag-strong-respond-obs-text",
            Check,
            "\"abcdefü\"",
            "\"abcdefü\"",
        ),
        (
            "conditional-etag-unquoted-respond-unquoted",
            Check,
            "abcdef",
            "abcdef",
        ),
        (
            "conditional-etag-weak-respond",
            Optimal,
            "W/\"abcdef\"",
            "W/\"abcdef\"",
        ),
        (
            "conditional-etag-strong-respond-multiple-first",
            Optimal,
            "\"abcdef\"",
            "\"abcdef\", \"1234\", \"5678\"",
        ),
        (
            "conditional-etag-strong-respond-multiple-second",
            Optimal,
            "\"abcdef\"",
            "\"1234\", \"abcdef\", \"5678\"",
        ),
        (
            "conditional-etag-strong-respond-multiple-last",
            Optimal,
            "\"abcdef\"",
            "\"1234\", \"5678\", \"abcdef\"",
        ),
    ];
    for (id, grade, etag, condition) in cases {
        let response = vec![CONTROL, DATE, ("ETag", etag)].leak();
        let request = vec![("If-None-Match", condition)].leak();
        let second = Step {
            expect_fields: vec![("ETag", etag)].leak(),
            ..not_modified(request, Cached)
        };
        let steps: &'static [Step] = Box::leak(Box::new([fresh(response), second]));
        assert_cases(&[(id, grade, steps)]);
    }
}

const CASES: [Case; 12] = [
    (
        "conditional-304-etag",
        Required,
        &[
            fresh(&[CONTROL, DATE, TAG]),
            Step {
                expect_fields: &[TAG],
                ..not_modified(&[WANTED], Cached)
            },
        ],
    ),
    (
        "conditional-etag-precedence",
        Required,
        &[
            fresh(&[CONTROL, DATE, TAG, ("Last-Modified", "@-5000")]),
            not_modified(&[WANTED, ("If-Modified-Since", "@-10000")], Cached),
        ],
    ),
    (
        "conditional-etag-vary-headers",
        Required,
        &[
            Step {
                request: &[("Abc", "123")],
                ..fresh(&[("Expires", "@1"), TAG, DATE, ("Vary", "Abc")])
            },
            Step {
                request: &[("Abc", "123")],
                response: &[TAG, DATE],
                expect: EtagValidated,
                expect_forwarded: &[("Abc", "123"), WANTED],
                ..Step::GET
            },
        ],
    ),
    (
        "conditional-etag-strong-generate",
        Optimal,
        &[
            fresh(&[SHORT, DATE, TAG]),
            Step {
                response: &[TAG],
                expect: EtagValidated,
                expect_forwarded: &[WANTED],
                expect_status: 200,
                ..Step::GET
            },
        ],
    ),
    (
        "conditional-etag-weak-generate-weak",
        Optimal,
        &[
            fresh(&[SHORT, DATE, WEAK]),
            Step {
                response: &[WEAK],
                expect: EtagValidated,
                expect_forwarded: &[("If-None-Match", "W/\"abcdef\"")],
                ..Step::GET
            },
        ],
    ),
    (
        "conditional-etag-forward",
        Check,
        &[Step {
            request: &[WANTED],
            expect: Any,
            expect_forwarded: &[WANTED],
            ..Step::GET
        }],
    ),
    (
        "conditional-lm-fresh",
        Optimal,
        &[
            fresh(&[CONTROL, DATE, ("Last-Modified", "@-3000")]),
            not_modified(&[("If-Modified-Since", "@-3003")], Cached),
        ],
    ),
    (
        "conditional-lm-fresh-earlier",
        Optimal,
        &[
            fresh(&[CONTROL, DATE, ("Last-Modified", "@-3000")]),
            not_modified(&[("If-Modified-Since", "@-2000")], Cached),
        ],
    ),
    (
        "conditional-lm-stale",
        Optimal,
        &[
            fresh(&[SHORT, DATE, ("Last-Modified", "@-3000")]),
            Step {
                response: &[("Last-Modified", "@-3003"), DATE],
                ..not_modified(&[("If-Modified-Since", "@-3003")], DateValidated)
            },
        ],
    ),
    (
        "conditional-lm-fresh-no-lm",
        Optimal,
        &[
            fresh(&[CONTROL, DATE]),
            not_modified(&[("If-Modified-Since", "@0")], Cached),
        ],
    ),
    (
        "conditional-lm-fresh-rfc850",
        Optimal,
        &[
            fresh(&[
                CONTROL,
                DATE,
                ("Last-Modified", "Wed, 31 Dec 2025 23:00:00 GMT"),
            ]),
            not_modified(
                &[("If-Modified-Since", "Wednesday, 31-Dec-25 23:00:00 GMT")],
                Cached,
            ),
        ],
    ),
    // Beyond the suite: after a validation the client's own condition is evaluated, and does not match.
    (
        "conditional-etag-after-validation",
        Required,
        &[
            fresh(&[SHORT, DATE, TAG]),
            Step {
                request: &[("If-None-Match", "\"other\"")],
                response: &[TAG],
                expect: EtagValidated,
                expect_forwarded: &[WANTED],
                expect_status: 200,
                ..Step::GET
            },
        ],
    ),
];

#[test]
fn preconditions_are_evaluated_and_generated() {
    assert_cases(&CASES);
}
