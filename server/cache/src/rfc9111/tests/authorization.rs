//! Requests with `Authorization`. Source: RFC 9111 section 3.5; cases of `auth`.

use super::Expect::{Cached, NotCached};
use super::{Expect, Grade, List, Optimal, Required, Step, assert_cases};

#[test]
fn a_directive_permits_shared_use() {
    let cases: [(&str, Grade, List, Expect); 4] = [
        (
            "other-authorization",
            Required,
            &[("Cache-Control", "max-age=100000")],
            NotCached,
        ),
        (
            "other-authorization-public",
            Optimal,
            &[("Cache-Control", "max-age=3600, public")],
            Cached,
        ),
        (
            "other-authorization-must-revalidate",
            Optimal,
            &[("Cache-Control", "max-age=3600, must-revalidate")],
            Cached,
        ),
        (
            "other-authorization-smaxage",
            Optimal,
            &[("Cache-Control", "s-maxage=3600")],
            Cached,
        ),
    ];
    for (id, grade, response, expect) in cases {
        let first = Step {
            request: &[("Authorization", "FOO")],
            response,
            wait_s: 3,
            expect_forwarded: &[("Authorization", "FOO")],
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
