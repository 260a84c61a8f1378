//! `CDN-Cache-Control`. Source: RFC 9213 section 2; cases of `cdn-cache-control`.

use super::Expect::{Cached, NotCached};
use super::{Check, Optimal, Pair, Required, assert_pairs};

const EXPIRES: (&str, &str) = ("Expires", "@10000");
const DATE: (&str, &str) = ("Date", "@0");
const LONG: (&str, &str) = ("Cache-Control", "max-age=10000");
const SECOND: (&str, &str) = ("Cache-Control", "max-age=1");

const fn cdn(value: &'static str) -> (&'static str, &'static str) {
    ("CDN-Cache-Control", value)
}

const PAIRS: [Pair; 20] = [
    ("cdn-max-age", Optimal, &[cdn("max-age=3600")], Cached),
    (
        "cdn-max-age-max",
        Optimal,
        &[cdn("max-age=2147483648")],
        Cached,
    ),
    (
        "cdn-max-age-max-plus",
        Optimal,
        &[cdn("max-age=99999999999")],
        Cached,
    ),
    (
        "cdn-max-age-age",
        Required,
        &[DATE, cdn("max-age=3600"), ("Age", "7200")],
        NotCached,
    ),
    (
        "cdn-max-age-space-before-equals",
        Check,
        &[SECOND, cdn("max-age =100")],
        NotCached,
    ),
    (
        "cdn-max-age-space-after-equals",
        Check,
        &[SECOND, cdn("max-age= 100")],
        NotCached,
    ),
    ("cdn-max-age-0", Required, &[cdn("max-age=0")], NotCached),
    (
        "cdn-max-age-extension",
        Optimal,
        &[cdn("foobar, max-age=3600")],
        Cached,
    ),
    (
        "cdn-max-age-case-insensitive",
        Check,
        &[cdn("MaX-aGe=3600")],
        Cached,
    ),
    (
        "cdn-max-age-expires",
        Optimal,
        &[cdn("max-age=3600"), ("Expires", "@-10000"), DATE],
        Cached,
    ),
    (
        "cdn-max-age-cc-max-age-invalid-expires",
        Optimal,
        &[cdn("max-age=3600"), ("Expires", "0"), DATE],
        Cached,
    ),
    (
        "cdn-max-age-0-expires",
        Required,
        &[cdn("max-age=0"), EXPIRES, DATE],
        NotCached,
    ),
    (
        "cdn-max-age-short-cc-max-age",
        Optimal,
        &[SECOND, cdn("max-age=3600")],
        Cached,
    ),
    (
        "cdn-max-age-long-cc-max-age",
        Required,
        &[LONG, cdn("max-age=1")],
        NotCached,
    ),
    (
        "cdn-private",
        Required,
        &[cdn("private"), LONG, EXPIRES, DATE],
        NotCached,
    ),
    (
        "cdn-no-cache",
        Required,
        &[cdn("no-cache"), LONG, EXPIRES, DATE],
        NotCached,
    ),
    (
        "cdn-no-store-cc-fresh",
        Required,
        &[LONG, cdn("no-store"), EXPIRES, DATE],
        NotCached,
    ),
    (
        "cdn-fresh-cc-nostore",
        Required,
        &[("Cache-Control", "no-store"), cdn("max-age=10000")],
        Cached,
    ),
    (
        "cdn-cc-invalid-sh-type-unknown",
        Required,
        &[cdn("max-age=10000, &&&&&"), ("Cache-Control", "no-store")],
        NotCached,
    ),
    (
        "cdn-cc-invalid-sh-type-wrong",
        Required,
        &[cdn("max-age=\"10000\""), ("Cache-Control", "no-store")],
        NotCached,
    ),
];

#[test]
fn a_targeted_field_replaces_cache_control() {
    assert_pairs(&PAIRS);
}
