//! Syntax of `Vary`. Source: RFC 9111 section 4.1; cases of `vary-parse`.

use super::Expect::NotCached;
use super::{List, Required, Step, assert_cases};

#[test]
fn a_star_is_found_in_each_position() {
    let cases: [(&str, &[&str]); 7] = [
        ("vary-syntax-star", &["*"]),
        ("vary-syntax-star-star", &["*, *"]),
        ("vary-syntax-star-star-lines", &["*", "*"]),
        ("vary-syntax-empty-star", &[", *"]),
        ("vary-syntax-empty-star-lines", &["", "*"]),
        ("vary-syntax-star-foo", &["*, Foo"]),
        ("vary-syntax-foo-star", &["Foo, *"]),
    ];
    for (id, values) in cases {
        let mut response = vec![
            ("Cache-Control", "max-age=5000"),
            ("Last-Modified", "@-3000"),
            ("Date", "@0"),
        ];
        response.extend(values.iter().map(|value| ("Vary", *value)));
        let response: List = response.leak();
        let request: List = &[("Foo", "1"), ("Baz", "789")];
        let first = Step {
            request,
            response,
            ..Step::GET
        };
        let second = Step {
            expect: NotCached,
            ..first
        };
        let steps: &'static [Step] = Box::leak(Box::new([first, second]));
        assert_cases(&[(id, Required, steps)]);
    }
}
