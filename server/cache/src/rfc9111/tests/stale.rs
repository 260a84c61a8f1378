//! Stale responses. Source: RFC 9111 section 4.2.4; RFC 5861; cases of `stale`. The model has no setting for them, so that
//! only fields permit them.

use super::Expect::{Cached, NotCached};
use super::{Case, Check, List, Optimal, Required, Step, assert_cases};

const fn first(response: List) -> Step {
    Step {
        response,
        wait_s: 3,
        ..Step::GET
    }
}

/// The server closes the connection.
const CLOSED: Step = Step {
    status: 0,
    ..Step::GET
};
const UNAVAILABLE: Step = Step {
    status: 503,
    ..Step::GET
};

const fn cached(step: Step) -> Step {
    Step {
        expect: Cached,
        expect_status: 200,
        ..step
    }
}

const fn failed(step: Step) -> Step {
    Step {
        expect: NotCached,
        ..step
    }
}

const WINDOW: List = &[
    ("Cache-Control", "max-age=1, stale-while-revalidate=4"),
    ("ETag", "\"abc\""),
];
const ON_ERROR: List = &[("Cache-Control", "max-age=2, stale-if-error=60")];

const CASES: [Case; 12] = [
    (
        "stale-close",
        Check,
        &[first(&[("Cache-Control", "max-age=2")]), failed(CLOSED)],
    ),
    (
        "stale-503",
        Check,
        &[
            first(&[("Cache-Control", "max-age=2")]),
            failed(UNAVAILABLE),
        ],
    ),
    (
        "stale-while-revalidate",
        Optimal,
        &[
            first(&[
                ("Cache-Control", "max-age=1, stale-while-revalidate=3600"),
                ("ETag", "\"abc\""),
            ]),
            cached(Step::GET),
        ],
    ),
    (
        "stale-while-revalidate-window",
        Required,
        &[
            first(WINDOW),
            Step {
                wait_s: 3,
                ..cached(Step::GET)
            },
            failed(Step::GET),
        ],
    ),
    ("stale-sie-close", Check, &[first(ON_ERROR), cached(CLOSED)]),
    (
        "stale-sie-503",
        Check,
        &[first(ON_ERROR), cached(UNAVAILABLE)],
    ),
    (
        "stale-close-must-revalidate",
        Required,
        &[
            first(&[("Cache-Control", "max-age=2, must-revalidate")]),
            failed(CLOSED),
        ],
    ),
    (
        "stale-close-proxy-revalidate",
        Required,
        &[
            first(&[("Cache-Control", "max-age=2, proxy-revalidate")]),
            failed(CLOSED),
        ],
    ),
    (
        "stale-close-no-cache",
        Required,
        &[
            first(&[("Cache-Control", "max-age=2, no-cache")]),
            failed(CLOSED),
        ],
    ),
    (
        "stale-close-s-maxage=2",
        Required,
        &[
            first(&[("Cache-Control", "max-age=2, s-maxage=2")]),
            failed(CLOSED),
        ],
    ),
    // Beyond the suite: must-revalidate overrides stale-if-error, and other statuses are no errors.
    (
        "stale-sie-must-revalidate",
        Required,
        &[
            first(&[(
                "Cache-Control",
                "max-age=2, stale-if-error=60, must-revalidate",
            )]),
            failed(UNAVAILABLE),
        ],
    ),
    (
        "stale-sie-404",
        Required,
        &[
            first(ON_ERROR),
            Step {
                status: 404,
                expect_status: 404,
                ..failed(Step::GET)
            },
        ],
    ),
];

#[test]
fn stale_responses_need_permission() {
    assert_cases(&CASES);
}
