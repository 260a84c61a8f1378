//! Stored fields. Source: RFC 9111 section 3.1; cases of `headers`.

use super::Expect::Cached;
use super::{Case, Required, Step, assert_cases};

const CASE: Case = (
    "headers-omit-headers-listed-in-Connection",
    Required,
    &[
        Step {
            response: &[
                ("Cache-Control", "max-age=100000"),
                ("Date", "@0"),
                ("Connection", "a, b"),
                ("a", "1"),
                ("b", "2"),
                ("c", "3"),
            ],
            wait_s: 3,
            ..Step::GET
        },
        Step {
            expect: Cached,
            expect_fields: &[("a", "-"), ("b", "-"), ("c", "3")],
            ..Step::GET
        },
    ],
);

const STORED: [(&str, &str); 22] = [
    ("Test-Header", "x"),
    ("X-Test-Header", "x"),
    ("Content-Foo", "x"),
    ("X-Content-Foo", "x"),
    ("Cache-Control", "max-age=3600"),
    ("Content-Encoding", "x"),
    ("Content-Length", "10"),
    ("Content-Location", "/bar"),
    ("Content-MD5", "N7UdGUp1E+RbVvZSTy1R8g=="),
    ("Content-Range", "x"),
    ("Content-Security-Policy", "default-src 'self'"),
    ("Content-Type", "text/plain;charset=utf-8"),
    ("Clear-Site-Data", "cookies"),
    ("ETag", "\"ghijkl\""),
    ("Expires", "Mon, 11 Jan 2038 11:11:11 GMT"),
    ("Public-Key-Pins", "x"),
    ("Set-Cookie", "a=c"),
    ("Set-Cookie2", "a=c"),
    ("X-Frame-Options", "sameorigin"),
    ("X-XSS-Protection", "1; mode=block"),
    ("Last-Modified", "Wed, 01 Jan 2020 00:00:00 GMT"),
    ("Link", "</a>; rel=preload"),
];

const NOT_STORED: [&str; 9] = [
    "Connection",
    "Keep-Alive",
    "Proxy-Authenticate",
    "Proxy-Authentication-Info",
    "Proxy-Authorization",
    "Proxy-Connection",
    "TE",
    "Transfer-Encoding",
    "Upgrade",
];

#[test]
fn fields_are_stored_or_removed() {
    assert_cases(&[CASE]);
    let removed = NOT_STORED.map(|name| (name, "x", "-"));
    let stored = STORED.map(|(name, value)| (name, value, value));
    for (name, value, expected) in stored.into_iter().chain(removed) {
        let mut response = vec![("Date", "@0"), (name, value)];
        if name != "Cache-Control" {
            response.push(("Cache-Control", "max-age=3600"));
        }
        let first = Step {
            response: response.leak(),
            wait_s: 3,
            ..Step::GET
        };
        let second = Step {
            expect: Cached,
            expect_fields: vec![(name, expected)].leak(),
            ..Step::GET
        };
        let steps: &'static [Step] = Box::leak(Box::new([first, second]));
        assert_cases(&[(format!("headers-store-{name}").leak(), Required, steps)]);
    }
}
