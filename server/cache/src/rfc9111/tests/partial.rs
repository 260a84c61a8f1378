//! Ranges of whole and incomplete responses. Source: RFC 9111 sections 3.3, 3.4; cases of `partial`.
//!
//! Bodies are as long as their `Content-Range`. Those of the suite are a byte shorter, and no such response is stored.

use super::Expect::{Cached, NotCached};
use super::{Case, List, Optimal, Required, Step, assert_cases};

const CONTROL: (&str, &str) = ("Cache-Control", "max-age=3600");
const WHOLE: Step = Step {
    response: &[CONTROL],
    ..Step::GET
};
/// Bytes 4 to 9 of 10.
const PART: Step = Step {
    request: &[("Range", "bytes=-6")],
    status: 206,
    response: &[CONTROL, ("Content-Range", "bytes 4-9/10")],
    body: "456789",
    expect: NotCached,
    expect_forwarded: &[("Range", "bytes=-6")],
    ..Step::GET
};

const fn cached(request: List, expect_body: &'static str) -> Step {
    Step {
        request,
        body: "new",
        expect: Cached,
        expect_status: 206,
        expect_body,
        ..Step::GET
    }
}

const CASES: [Case; 12] = [
    (
        "partial-store-partial-reuse-partial",
        Optimal,
        &[PART, cached(&[("Range", "bytes=-6")], "456789")],
    ),
    (
        "partial-store-complete-reuse-partial",
        Optimal,
        &[WHOLE, cached(&[("Range", "bytes=0-1")], "01")],
    ),
    (
        "partial-store-complete-reuse-partial-no-last",
        Optimal,
        &[WHOLE, cached(&[("Range", "bytes=1-")], "123456789")],
    ),
    (
        "partial-store-complete-reuse-partial-suffix",
        Optimal,
        &[WHOLE, cached(&[("Range", "bytes=-1")], "9")],
    ),
    (
        "partial-store-partial-reuse-partial-byterange",
        Optimal,
        &[PART, cached(&[("Range", "bytes=6-8")], "678")],
    ),
    (
        "partial-store-partial-reuse-partial-absent",
        Optimal,
        &[PART, cached(&[("Range", "bytes=6-")], "6789")],
    ),
    (
        "partial-store-partial-reuse-partial-suffix",
        Optimal,
        &[PART, cached(&[("Range", "bytes=-1")], "9")],
    ),
    (
        "partial-use-stored-headers",
        Required,
        &[
            Step {
                response: &[CONTROL, ("A", "1")],
                ..Step::GET
            },
            Step {
                expect_fields: &[("A", "1")],
                ..cached(&[("Range", "bytes=0-1")], "01")
            },
        ],
    ),
    (
        "partial-use-headers",
        Required,
        &[
            Step {
                response: &[CONTROL, ("A", "1")],
                ..Step::GET
            },
            Step {
                response: &[("A", "2")],
                ..cached(&[("Range", "bytes=0-1")], "01")
            },
        ],
    ),
    (
        "partial-store-partial-complete",
        Optimal,
        &[
            PART,
            Step {
                expect_forwarded: &[("Range", "bytes=0-3")],
                ..Step::GET
            },
        ],
    ),
    // Beyond the suite: bytes that are not stored, and the whole.
    (
        "partial-not-within",
        Required,
        &[
            PART,
            Step {
                request: &[("Range", "bytes=3-5")],
                expect: NotCached,
                ..Step::GET
            },
        ],
    ),
    (
        "partial-not-whole",
        Required,
        &[
            PART,
            Step {
                expect: NotCached,
                ..Step::GET
            },
        ],
    ),
];

#[test]
fn ranges_are_served_from_stored_bytes() {
    assert_cases(&CASES);
}
