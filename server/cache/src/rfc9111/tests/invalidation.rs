//! Invalidation by unsafe methods. Source: RFC 9111 section 4.4; cases of `invalidation`.

use engines::http::Method;

use super::Expect::{Cached, NotCached};
use super::{Check, Optimal, Required, Step, assert_cases};

const METHODS: [(&str, Method); 4] = [
    ("POST", Method::Post),
    ("PUT", Method::Put),
    ("DELETE", Method::Delete),
    ("M-SEARCH", Method::Other),
];

const FRESH: Step = Step {
    response: &[("Cache-Control", "max-age=100000"), ("Date", "@0")],
    wait_s: 3,
    ..Step::GET
};

const CACHED: Step = Step {
    expect: Cached,
    ..FRESH
};

const NOT_CACHED: Step = Step {
    expect: NotCached,
    ..FRESH
};

fn assert_steps(id: String, grade: super::Grade, steps: [Step; 3]) {
    let steps: &'static [Step] = Box::leak(Box::new(steps));
    assert_cases(&[(id.leak(), grade, steps)]);
}

#[test]
fn unsafe_methods_invalidate_the_target() {
    for (name, method) in METHODS {
        let change = Step {
            method,
            expect: NotCached,
            ..Step::GET
        };
        let failed = Step {
            status: 500,
            ..change
        };
        assert_steps(
            format!("invalidate-{name}"),
            Required,
            [FRESH, change, NOT_CACHED],
        );
        assert_steps(
            format!("invalidate-{name}-failed"),
            Optimal,
            [FRESH, failed, CACHED],
        );
    }
}

#[test]
fn unsafe_methods_invalidate_locations_of_their_origin() {
    for (name, method) in METHODS {
        let change = Step {
            method,
            response: &[
                ("Location", "http://example.com/location_target"),
                ("Content-Location", "content_location_target"),
            ],
            ..Step::GET
        };
        for (tail, target) in [
            ("location", "/location_target"),
            ("cl", "/content_location_target"),
        ] {
            let steps = [
                Step { target, ..FRESH },
                change,
                Step {
                    target,
                    ..NOT_CACHED
                },
            ];
            assert_steps(format!("invalidate-{name}-{tail}"), Check, steps);
        }
        // Beyond the suite: another origin.
        let other = Step {
            response: &[("Location", "http://other.example/location_target")],
            ..change
        };
        let target = "/location_target";
        let steps = [Step { target, ..FRESH }, other, Step { target, ..CACHED }];
        assert_steps(format!("invalidate-{name}-other-origin"), Required, steps);
    }
}
