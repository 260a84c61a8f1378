//! Freshness by `Cache-Control`. Source: RFC 9111 section 4.2.1; cases of `cc-freshness`.

use super::Expect::{Cached, NotCached};
use super::{Check, Optimal, Pair, Required, assert_pairs};

const PAIRS: [Pair; 23] = [
    ("freshness-none", Check, &[], NotCached),
    (
        "freshness-max-age",
        Optimal,
        &[("Cache-Control", "max-age=3600")],
        Cached,
    ),
    (
        "freshness-max-age-stale",
        Required,
        &[("Cache-Control", "max-age=2")],
        NotCached,
    ),
    (
        "freshness-max-age-0",
        Required,
        &[("Cache-Control", "max-age=0")],
        NotCached,
    ),
    (
        "freshness-max-age-max-minus-1",
        Optimal,
        &[("Cache-Control", "max-age=2147483647")],
        Cached,
    ),
    (
        "freshness-max-age-max",
        Optimal,
        &[("Cache-Control", "max-age=2147483648")],
        Cached,
    ),
    (
        "freshness-max-age-max-plus-1",
        Optimal,
        &[("Cache-Control", "max-age=2147483649")],
        Cached,
    ),
    (
        "freshness-max-age-max-plus",
        Optimal,
        &[("Cache-Control", "max-age=99999999999")],
        Cached,
    ),
    (
        "freshness-max-age-age",
        Required,
        &[
            ("Date", "@0"),
            ("Cache-Control", "max-age=3600"),
            ("Age", "7200"),
        ],
        NotCached,
    ),
    (
        "freshness-max-age-date",
        Check,
        &[("Date", "@-7200"), ("Cache-Control", "max-age=3600")],
        NotCached,
    ),
    (
        "freshness-max-age-expires",
        Optimal,
        &[
            ("Cache-Control", "max-age=3600"),
            ("Expires", "@-7200"),
            ("Date", "@0"),
        ],
        Cached,
    ),
    (
        "freshness-max-age-expires-invalid",
        Optimal,
        &[
            ("Cache-Control", "max-age=3600"),
            ("Expires", "0"),
            ("Date", "@0"),
        ],
        Cached,
    ),
    (
        "freshness-max-age-0-expires",
        Required,
        &[
            ("Expires", "@3600"),
            ("Cache-Control", "max-age=0"),
            ("Date", "@0"),
        ],
        NotCached,
    ),
    (
        "freshness-max-age-extension",
        Optimal,
        &[("Cache-Control", "foobar, max-age=3600")],
        Cached,
    ),
    (
        "freshness-max-age-case-insenstive",
        Optimal,
        &[("Cache-Control", "MaX-aGe=3600")],
        Cached,
    ),
    (
        "freshness-max-age-negative",
        Required,
        &[("Cache-Control", "max-age=-3600")],
        NotCached,
    ),
    (
        "freshness-s-maxage-shared",
        Optimal,
        &[("Cache-Control", "s-maxage=3600")],
        Cached,
    ),
    (
        "freshness-max-age-s-maxage-shared-longer",
        Required,
        &[("Cache-Control", "max-age=3600, s-maxage=1")],
        NotCached,
    ),
    (
        "freshness-max-age-s-maxage-shared-longer-reversed",
        Required,
        &[("Cache-Control", "s-maxage=1, max-age=3600")],
        NotCached,
    ),
    (
        "freshness-max-age-s-maxage-shared-longer-multiple",
        Required,
        &[
            ("Cache-Control", "max-age=3600"),
            ("Cache-Control", "s-maxage=1"),
        ],
        NotCached,
    ),
    (
        "freshness-max-age-s-maxage-shared-shorter",
        Optimal,
        &[("Cache-Control", "max-age=1, s-maxage=3600")],
        Cached,
    ),
    (
        "freshness-max-age-s-maxage-shared-shorter-expires",
        Optimal,
        &[
            ("Expires", "@-10"),
            ("Cache-Control", "max-age=0, s-maxage=3600"),
        ],
        Cached,
    ),
    // Not of the suite: a query forbids a guess alone.
    (
        "query-max-age",
        Optimal,
        &[("Cache-Control", "max-age=3600"), ("Vary", "")],
        Cached,
    ),
];

#[test]
fn cache_control_decides_freshness() {
    assert_pairs(&PAIRS);
}
