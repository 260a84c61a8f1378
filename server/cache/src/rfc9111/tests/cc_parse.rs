//! Syntax of `Cache-Control`. Source: RFC 9111 sections 4.2.1, 5.2; cases of `cc-parse`.

use super::Expect::{Cached, NotCached};
use super::{Check, Pair, Required, assert_pairs};

const PAIRS: [Pair; 15] = [
    (
        "freshness-max-age-two-fresh-stale-sameline",
        Check,
        &[("Cache-Control", "max-age=1800, max-age=1")],
        Cached,
    ),
    (
        "freshness-max-age-two-fresh-stale-sepline",
        Check,
        &[
            ("Cache-Control", "max-age=1800"),
            ("Cache-Control", "max-age=1"),
        ],
        Cached,
    ),
    (
        "freshness-max-age-two-stale-fresh-sameline",
        Check,
        &[("Cache-Control", "max-age=1, max-age=1800")],
        Cached,
    ),
    (
        "freshness-max-age-two-stale-fresh-sepline",
        Check,
        &[
            ("Cache-Control", "max-age=1"),
            ("Cache-Control", "max-age=1800"),
        ],
        Cached,
    ),
    (
        "freshness-max-age-quoted",
        Check,
        &[("Cache-Control", "max-age=\"3600\"")],
        Cached,
    ),
    (
        "freshness-max-age-ignore-quoted",
        Required,
        &[("Cache-Control", "extension=\"max-age=3600\", max-age=1")],
        NotCached,
    ),
    (
        "freshness-max-age-ignore-quoted-rev",
        Required,
        &[("Cache-Control", "max-age=1, extension=\"max-age=3600\"")],
        NotCached,
    ),
    (
        "freshness-max-age-space-before-equals",
        Check,
        &[("Cache-Control", "max-age =3600")],
        NotCached,
    ),
    (
        "freshness-max-age-space-after-equals",
        Check,
        &[("Cache-Control", "max-age= 3600")],
        NotCached,
    ),
    (
        "freshness-max-age-leading-zero",
        Required,
        &[("Cache-Control", "max-age=003600")],
        Cached,
    ),
    (
        "freshness-max-age-single-quoted",
        Required,
        &[("Cache-Control", "max-age='3600'")],
        NotCached,
    ),
    (
        "freshness-max-age-decimal-zero",
        Check,
        &[("Cache-Control", "max-age=3600.0")],
        Cached,
    ),
    (
        "freshness-max-age-decimal-five",
        Check,
        &[("Cache-Control", "max-age=3600.5")],
        Cached,
    ),
    (
        "freshness-max-age-a100",
        Check,
        &[("Cache-Control", "max-age=a3600")],
        Cached,
    ),
    (
        "freshness-max-age-100a",
        Check,
        &[("Cache-Control", "max-age=3600a")],
        Cached,
    ),
];

#[test]
fn directives_are_parsed() {
    assert_pairs(&PAIRS);
}
