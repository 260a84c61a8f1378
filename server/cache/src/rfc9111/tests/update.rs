//! Updates by 304 and by responses to HEAD. Source: RFC 9111 sections 3.2, 4.3.4, 4.3.5; cases of `update304` and
//! `updateHEAD`.

use engines::http::Method;

use super::Expect::{Cached, DateValidated, EtagValidated, NotCached};
use super::{Case, Check, Grade, List, Required, Step, assert_cases};

const TAG: (&str, &str) = ("ETag", "\"etag\"");
const SHORT: (&str, &str) = ("Cache-Control", "max-age=2");
const DATE: (&str, &str) = ("Date", "@0");
const MODIFIED: (&str, &str) = ("Last-Modified", "Wed, 01 Jan 2020 00:00:00 GMT");

const OMITTED: Case = (
    "304-lm-use-stored-Test-Header",
    Required,
    &[
        Step {
            response: &[SHORT, MODIFIED, DATE, ("Test-Header", "a")],
            wait_s: 3,
            ..Step::GET
        },
        Step {
            response: &[MODIFIED, DATE],
            expect: DateValidated,
            expect_fields: &[("Test-Header", "a")],
            ..Step::GET
        },
    ],
);

/// Names with the value stored, the value received with a 304, and the value sent afterwards.
const FIELDS: [(&str, Grade, &str, &str, &str); 16] = [
    ("Test-Header", Required, "a", "b", "b"),
    ("X-Test-Header", Required, "a", "b", "b"),
    ("Content-Foo", Required, "a", "b", "b"),
    ("X-Content-Foo", Required, "a", "b", "b"),
    (
        "Cache-Control",
        Required,
        "max-age=1",
        "max-age=3600",
        "max-age=3600",
    ),
    ("Content-Length", Required, "10", "36", "10"),
    ("Content-Location", Check, "/foo", "/bar", "/bar"),
    ("Content-MD5", Check, "a", "b", "b"),
    ("Content-Security-Policy", Check, "a", "b", "b"),
    (
        "Content-Type",
        Check,
        "text/plain",
        "text/html",
        "text/html",
    ),
    ("Expires", Check, "@9000", "@9999", "@9999"),
    ("X-Frame-Options", Check, "deny", "sameorigin", "sameorigin"),
    ("X-XSS-Protection", Check, "1", "0", "0"),
    // The stored bytes keep their coding and range.
    ("Content-Encoding", Check, "a", "b", "a"),
    ("Content-Range", Check, "a", "b", "a"),
    // Set-Cookie is not stored without a setting.
    ("Set-Cookie2", Check, "a", "b", "b"),
];

#[test]
fn a_304_updates_stored_fields() {
    assert_cases(&[OMITTED]);
    for (name, grade, stored, received, sent) in FIELDS {
        let with = |value: &'static str| -> List {
            let mut list = vec![DATE, (name, value), TAG];
            if name != "Cache-Control" {
                list.push(SHORT);
            }
            list.leak()
        };
        let expect_fields: List = vec![(name, sent)].leak();
        let first = Step {
            response: with(stored),
            wait_s: 3,
            ..Step::GET
        };
        let second = Step {
            response: with(received),
            expect: EtagValidated,
            expect_fields,
            ..Step::GET
        };
        let third = Step {
            expect: Cached,
            expect_fields,
            ..Step::GET
        };
        let steps: &'static [Step] = Box::leak(Box::new([first, second, third]));
        assert_cases(&[(
            format!("304-etag-update-response-{name}").leak(),
            grade,
            steps,
        )]);
    }
}

const BECOMES_STALE: Step = Step {
    response: &[SHORT, DATE, TAG, ("Template-A", "1")],
    wait_s: 3,
    ..Step::GET
};

const HEAD: Step = Step {
    method: Method::Head,
    expect: NotCached,
    ..Step::GET
};

const fn updated(expect_fields: List) -> Step {
    Step {
        expect: Cached,
        expect_fields,
        ..Step::GET
    }
}

const CASES: [Case; 5] = [
    ("head-writethrough", Check, &[BECOMES_STALE, HEAD]),
    (
        "head-200-freshness-update",
        Check,
        &[
            BECOMES_STALE,
            Step {
                response: &[("Cache-Control", "max-age=1000")],
                ..HEAD
            },
            updated(&[("Template-A", "1")]),
        ],
    ),
    (
        "head-200-update",
        Check,
        &[
            BECOMES_STALE,
            Step {
                response: &[("Template-A", "2"), ("Cache-Control", "max-age=1000")],
                ..HEAD
            },
            updated(&[("Template-A", "2")]),
        ],
    ),
    (
        "head-410-update",
        Check,
        &[
            BECOMES_STALE,
            Step {
                status: 410,
                response: &[("Template-A", "2"), ("Cache-Control", "max-age=1000")],
                ..HEAD
            },
            updated(&[("Template-A", "2")]),
        ],
    ),
    // Beyond the suite: another length ends freshness.
    (
        "head-200-other-length",
        Required,
        &[
            Step {
                response: &[("Cache-Control", "max-age=1000"), DATE],
                ..Step::GET
            },
            Step {
                request: &[("Cache-Control", "no-cache")],
                response: &[("Content-Length", "7")],
                ..HEAD
            },
            Step {
                expect: NotCached,
                ..Step::GET
            },
        ],
    ),
];

#[test]
fn a_response_to_head_updates_stored_fields() {
    assert_cases(&CASES);
}
