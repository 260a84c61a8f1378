//! Tests of `reuse`: the use of a stored response, by tables of directives and ages.

use engines::http::{Fields, Method};

use super::field_list::FieldList;
use super::request_directives::RequestDirectives;
use super::response_directives::ResponseDirectives;
use super::reuse::{
    Reuse, StalePermission, ValidationReason, can_satisfy, is_error_status, may_serve_on_error,
    may_serve_while_updating, reuse,
};
use super::stored::{Mark, Stored};

const STALE: Reuse = Reuse::Validate(ValidationReason::Stale);
const REQUEST: Reuse = Reuse::Validate(ValidationReason::Request);
const MAX_STALE: Reuse = Reuse::Stale(StalePermission::MaxStale);
const WHILE: Reuse = Reuse::Stale(StalePermission::WhileRevalidate);

fn control(value: &str) -> Fields {
    let mut fields = Fields::default();
    fields.push(b"Cache-Control", value.as_bytes());
    fields
}

fn request(value: &str) -> RequestDirectives {
    RequestDirectives::of(FieldList::from(&control(value)))
}

fn response(value: &str) -> ResponseDirectives {
    ResponseDirectives::of(FieldList::from(&control(value)))
}

/// A response received at 1000 with an age of 10 s and a lifetime of 100 s.
fn stored(directives: &ResponseDirectives) -> Stored<'_> {
    Stored::received(directives, 100, 10, 1000)
}

/// The use of a stored response at an age.
fn at_age(request_control: &str, response_control: &str, age_s: i64) -> Reuse {
    let directives = response(response_control);
    let now_s = 1000 + age_s - 10;
    reuse(&request(request_control), Some(&stored(&directives)), now_s)
}

/// RFC 9111 section 4.2: fresh if the lifetime is greater than the age.
#[test]
fn freshness_ends_at_the_lifetime() {
    for (age_s, expected) in [
        (10, Reuse::Fresh),
        (99, Reuse::Fresh),
        (100, STALE),
        (101, STALE),
    ] {
        assert_eq!(at_age("", "", age_s), expected, "{age_s}");
    }
}

/// RFC 9111 section 5.2.1.
#[test]
fn directives_of_the_request_restrict_use() {
    for (request, age_s, expected) in [
        ("no-cache", 10, REQUEST),
        ("no-store", 10, Reuse::Fresh),
        ("max-age=0", 10, REQUEST),
        ("max-age=49", 50, REQUEST),
        ("max-age=50", 50, Reuse::Fresh),
        ("max-age=500", 100, STALE),
        ("min-fresh=50", 50, Reuse::Fresh),
        ("min-fresh=51", 50, REQUEST),
        ("min-fresh=0", 100, STALE),
        ("max-stale", 5000, MAX_STALE),
        ("max-stale=5", 105, MAX_STALE),
        ("max-stale=5", 106, STALE),
        ("max-stale=0", 100, MAX_STALE),
        ("max-age=105, max-stale=5", 105, MAX_STALE),
        ("max-age=104, max-stale=5", 105, REQUEST),
        ("min-fresh=1, max-stale=5", 105, REQUEST),
        ("no-cache, max-stale", 105, REQUEST),
        ("immutable, x=y", 50, Reuse::Fresh),
    ] {
        assert_eq!(at_age(request, "", age_s), expected, "{request} {age_s}");
    }
}

/// RFC 9111 sections 4.2.4, 5.2.2.
#[test]
fn directives_of_the_response_restrict_use() {
    let no_cache = Reuse::Validate(ValidationReason::NoCache);
    for (response, request, age_s, expected) in [
        ("no-cache", "", 10, no_cache),
        ("no-cache", "max-stale", 10, no_cache),
        ("no-cache=\"a\"", "", 10, Reuse::Fresh),
        ("must-revalidate", "", 99, Reuse::Fresh),
        ("must-revalidate", "max-stale", 100, STALE),
        ("proxy-revalidate", "max-stale", 100, STALE),
        ("s-maxage=100", "max-stale", 100, STALE),
        ("max-age=100", "max-stale", 100, MAX_STALE),
        ("immutable", "no-cache", 10, REQUEST),
    ] {
        assert_eq!(
            at_age(request, response, age_s),
            expected,
            "{response} {request}"
        );
    }
}

/// RFC 5861 section 3.
#[test]
fn stale_while_revalidate_has_an_end() {
    for (response, request, age_s, expected) in [
        ("stale-while-revalidate=5", "", 99, Reuse::Fresh),
        ("stale-while-revalidate=5", "", 100, WHILE),
        ("stale-while-revalidate=5", "", 105, WHILE),
        ("stale-while-revalidate=5", "", 106, STALE),
        ("stale-while-revalidate=0", "", 101, STALE),
        ("stale-while-revalidate=x", "", 101, STALE),
        ("s-maxage=100, stale-while-revalidate=5", "", 105, WHILE),
        ("stale-while-revalidate=5, must-revalidate", "", 105, STALE),
        ("stale-while-revalidate=5, proxy-revalidate", "", 105, STALE),
        ("stale-while-revalidate=5", "max-age=200", 105, STALE),
        ("stale-while-revalidate=5", "max-stale=5", 105, MAX_STALE),
        ("stale-while-revalidate=5", "no-cache", 105, REQUEST),
    ] {
        assert_eq!(
            at_age(request, response, age_s),
            expected,
            "{response} {request} {age_s}"
        );
    }
}

/// RFC 9111 section 5.2.1.7.
#[test]
fn only_if_cached_gets_a_stored_response_or_504() {
    let only = request("only-if-cached");
    assert_eq!(reuse(&only, None, 0), Reuse::GatewayTimeout);
    assert_eq!(reuse(&request(""), None, 0), Reuse::Miss);
    for (response, request, age_s, expected) in [
        ("", "only-if-cached", 50, Reuse::Fresh),
        ("", "only-if-cached", 100, Reuse::GatewayTimeout),
        ("", "only-if-cached, max-stale", 100, MAX_STALE),
        ("", "only-if-cached, no-cache", 50, Reuse::GatewayTimeout),
        ("no-cache", "only-if-cached", 50, Reuse::GatewayTimeout),
        ("stale-while-revalidate=5", "only-if-cached", 100, WHILE),
    ] {
        assert_eq!(
            at_age(request, response, age_s),
            expected,
            "{response} {request}"
        );
    }
}

/// RFC 9111 sections 4.3.5, 4.4.
#[test]
fn marks_end_freshness() {
    let directives = response("stale-while-revalidate=5");
    let use_of = |mark, request_control: &str| {
        let stored = Stored {
            mark,
            ..stored(&directives)
        };
        reuse(&request(request_control), Some(&stored), 1000)
    };
    let invalid = Reuse::Validate(ValidationReason::Invalid);
    assert_eq!(use_of(Mark::None, ""), Reuse::Fresh);
    let stale = Mark::Stale { since_s: 1000 };
    assert_eq!(use_of(stale, ""), WHILE);
    assert_eq!(use_of(stale, "max-stale=0"), MAX_STALE);
    assert_eq!(use_of(Mark::Invalid, ""), invalid);
    assert_eq!(use_of(Mark::Invalid, "max-stale"), invalid);
    let stored = Stored {
        mark: Mark::Invalid,
        ..stored(&directives)
    };
    assert!(!may_serve_on_error(&request(""), &stored, true, 1000));
    assert!(!may_serve_while_updating(&stored, true, 1000));
}

/// RFC 5861 sections 3, 4: limits of stale use count from the mark, if it is before the end of freshness.
#[test]
fn a_marked_response_becomes_staler() {
    let directives = response("stale-while-revalidate=5");
    let ttl_s = |since_s, now_s| {
        let mark = Mark::Stale { since_s };
        let stored = Stored {
            mark,
            ..stored(&directives)
        };
        let reused = reuse(&request(""), Some(&stored), now_s);
        (stored.ttl_s(now_s), reused)
    };
    for (since_s, now_s, expected) in [
        (1010, 1009, (0, WHILE)),
        (1010, 1010, (0, WHILE)),
        (1010, 1015, (-5, WHILE)),
        (1010, 1016, (-6, STALE)),
        (1010, 1100, (-90, STALE)),
        (1095, 1095, (-5, WHILE)),
        (i64::MIN, 1095, (i64::MIN, STALE)),
    ] {
        assert_eq!(ttl_s(since_s, now_s), expected, "{since_s} {now_s}");
    }
}

/// RFC 5861 section 4, RFC 9111 section 4.2.4.
#[test]
fn errors_permit_stale_responses_unless_forbidden() {
    for (response_control, request_control, configured, age_s, expected) in [
        ("", "", false, 99, true),
        ("", "no-cache", false, 99, true),
        ("", "", false, 100, false),
        ("", "", true, 5000, true),
        ("stale-if-error=5", "", false, 105, true),
        ("stale-if-error=5", "", false, 106, false),
        ("stale-if-error=5", "", true, 106, true),
        ("", "stale-if-error=5", false, 105, true),
        ("stale-if-error=1", "stale-if-error=5", false, 106, false),
        ("stale-if-error=9", "no-cache", false, 106, true),
        ("stale-if-error=5, must-revalidate", "", true, 105, false),
        ("stale-if-error=5, proxy-revalidate", "", true, 105, false),
        ("stale-if-error=5, s-maxage=100", "", false, 105, true),
        ("s-maxage=100", "", true, 105, false),
        ("no-cache, stale-if-error=5", "", true, 50, false),
        ("must-revalidate", "", true, 99, true),
    ] {
        let directives = response(response_control);
        let now_s = 1000 + age_s - 10;
        let request = request(request_control);
        let found = may_serve_on_error(&request, &stored(&directives), configured, now_s);
        assert_eq!(
            found, expected,
            "{response_control} {request_control} {configured} {age_s}"
        );
    }
    for (status, is_error) in [
        (499, false),
        (500, true),
        (501, false),
        (502, true),
        (503, true),
        (504, true),
    ] {
        assert_eq!(is_error_status(status), is_error, "{status}");
    }
}

#[test]
fn a_setting_permits_stale_responses_while_updating() {
    for (control, configured, expected) in [
        ("", false, false),
        ("", true, true),
        ("s-maxage=100", true, false),
        ("must-revalidate", true, false),
        ("stale-while-revalidate=5", false, true),
    ] {
        let directives = response(control);
        let found = may_serve_while_updating(&stored(&directives), configured, 1091);
        assert_eq!(found, expected, "{control} {configured}");
    }
}

/// nginx's stored head has one time, the end of freshness, and durations behind it.
#[test]
fn stale_use_is_a_duration_behind_the_end_of_freshness() {
    let directives = response("stale-while-revalidate=5, stale-if-error=7");
    let one = stored(&directives);
    assert_eq!((one.age_s(1000), one.ttl_s(1000)), (10, 90));
    assert_eq!(one.fresh_until_s, 1090);
    assert!(one.is_fresh(1089) && !one.is_fresh(1090));
    assert_eq!((one.updating_s(), one.error_s()), (5, 7));
    let old = Stored::received(&directives, 100, 500, 1000);
    assert_eq!((old.fresh_until_s, old.ttl_s(1000)), (600, -400));
    assert_eq!((old.updating_s(), old.error_s()), (5, 7));
    for control in [
        "",
        "stale-while-revalidate=5, stale-if-error=7, must-revalidate",
    ] {
        let none = response(control);
        assert_eq!(
            (stored(&none).updating_s(), stored(&none).error_s()),
            (0, 0)
        );
    }
}

/// RFC 9110 section 9.3.2.
#[test]
fn a_response_to_get_answers_head() {
    for (one, other, expected) in [
        (Method::Get, Method::Get, true),
        (Method::Get, Method::Head, true),
        (Method::Head, Method::Head, true),
        (Method::Head, Method::Get, false),
        (Method::Post, Method::Post, true),
        (Method::Post, Method::Get, false),
        (Method::Get, Method::Post, false),
    ] {
        assert_eq!(can_satisfy(one, other), expected, "{one:?} {other:?}");
    }
}
