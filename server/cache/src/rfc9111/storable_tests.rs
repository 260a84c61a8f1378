//! Tests of `storable`: each rule of RFC 9111 section 3 by a table.

use engines::http::{Fields, Method};

use super::directives::DELTA_SECONDS_MAX;
use super::field_list::FieldList;
use super::freshness::{FreshnessPolicy, Heuristic, lifetime};
use super::message::{IgnoredFields, RequestFacts, ResponseFacts};
use super::storable::{NotStored, SetCookie, StorePolicy, check_storable, stored_method};

fn fields(list: &[(&str, &str)]) -> Fields {
    let mut fields = Fields::default();
    for (name, value) in list {
        fields.push(name.as_bytes(), value.as_bytes());
    }
    fields
}

fn response(status: u16, list: &[(&str, &str)]) -> ResponseFacts {
    let fields = fields(list);
    ResponseFacts::of(
        status,
        FieldList::from(&fields),
        0,
        &[],
        IgnoredFields::default(),
    )
}

/// All that may be stored is stored.
const ALL: StorePolicy<'_> = StorePolicy {
    methods: &[],
    set_cookie: SetCookie::Store,
    ranges: true,
    validate: true,
    use_stale: false,
};

fn check(
    method: Method,
    request: &[(&str, &str)],
    status: u16,
    list: &[(&str, &str)],
    policy: &StorePolicy<'_>,
) -> Result<(), NotStored> {
    let request = fields(request);
    let request = RequestFacts::of(method, FieldList::from(&request), false);
    let response = response(status, list);
    let freshness = FreshnessPolicy {
        heuristic: Some(Heuristic::default()),
        ..FreshnessPolicy::default()
    };
    let lifetime = lifetime(&response, false, 0, &freshness);
    check_storable(&request, &response, lifetime, policy)
}

/// Checks a response to GET with these directives, and with an entity tag.
fn with_control(request: &[(&str, &str)], status: u16, control: &str) -> Result<(), NotStored> {
    let list = [("Cache-Control", control), ("ETag", "\"a\"")];
    check(Method::Get, request, status, &list, &ALL)
}

/// RFC 9111 section 3: directives.
#[test]
fn directives_permit_and_forbid_storage() {
    for (control, expected) in [
        ("max-age=60", Ok(())),
        ("s-maxage=60", Ok(())),
        ("public", Ok(())),
        ("max-age=0", Ok(())),
        ("no-cache", Ok(())),
        ("no-cache, max-age=60", Ok(())),
        ("no-store", Err(NotStored::NoStore)),
        ("max-age=60, No-Store", Err(NotStored::NoStore)),
        ("no-store=x, max-age=60", Err(NotStored::NoStore)),
        ("private, max-age=60", Err(NotStored::Private)),
        ("private=\"a\", max-age=60", Ok(())),
        ("private=\"\", max-age=60", Err(NotStored::Private)),
        ("public, private", Err(NotStored::Private)),
    ] {
        assert_eq!(with_control(&[], 200, control), expected, "{control}");
    }
}

/// RFC 9111 section 5.2.2.3.
#[test]
fn must_understand_depends_on_the_status() {
    for (status, control, expected) in [
        (200, "max-age=60, no-store, must-understand", Ok(())),
        (
            599,
            "max-age=60, no-store, must-understand",
            Err(NotStored::MustUnderstand),
        ),
        (
            599,
            "max-age=60, must-understand",
            Err(NotStored::MustUnderstand),
        ),
        (599, "max-age=60", Ok(())),
        (200, "private, must-understand", Err(NotStored::Private)),
        (200, "no-store, must-understand=x", Err(NotStored::NoStore)),
    ] {
        assert_eq!(
            with_control(&[], status, control),
            expected,
            "{status} {control}"
        );
    }
}

/// RFC 9111 section 3.5.
#[test]
fn responses_to_authorized_requests_need_a_directive() {
    let request = [("Authorization", "Basic eDp5")];
    for (control, expected) in [
        ("max-age=60", Err(NotStored::Authorization)),
        ("max-age=60, public", Ok(())),
        ("max-age=60, must-revalidate", Ok(())),
        ("s-maxage=60", Ok(())),
        (
            "max-age=60, proxy-revalidate",
            Err(NotStored::Authorization),
        ),
    ] {
        assert_eq!(with_control(&request, 200, control), expected, "{control}");
    }
}

/// RFC 9111 section 5.2.1.5.
#[test]
fn no_store_of_a_request_forbids_storage() {
    let request = [("Cache-Control", "no-store")];
    let expected = Err(NotStored::RequestNoStore);
    assert_eq!(with_control(&request, 200, "max-age=60"), expected);
}

/// RFC 9111 section 3, RFC 9110 section 15.1: with freshness each final status, without it those that permit a guess.
#[test]
fn the_status_matters_without_explicit_freshness() {
    let control = [("Cache-Control", "max-age=60")];
    let modified = [
        ("Last-Modified", "Wed, 31 Dec 1969 00:00:00 GMT"),
        ("Date", "Thu, 01 Jan 1970 00:00:00 GMT"),
    ];
    let get = |status, list: &[(&str, &str)]| check(Method::Get, &[], status, list, &ALL);
    for status in [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501] {
        assert_eq!(get(status, &control), Ok(()), "{status}");
        assert_eq!(get(status, &modified), Ok(()), "{status}");
    }
    for status in [
        201, 202, 299, 302, 303, 307, 400, 403, 416, 499, 500, 502, 503, 504, 599,
    ] {
        assert_eq!(get(status, &control), Ok(()), "{status}");
        assert_eq!(
            get(status, &modified),
            Err(NotStored::NoFreshness),
            "{status}"
        );
        let expires = [("Expires", "0"), modified[0]];
        assert_eq!(get(status, &expires), Ok(()), "{status}");
    }
    // RFC 9111 section 5.2.2.9.
    let public = [("Cache-Control", "public"), modified[0], modified[1]];
    assert_eq!(get(599, &public), Ok(()));
}

/// RFC 9111 section 3 (final statuses), RFC 6585 sections 3 to 6.
#[test]
fn some_statuses_are_never_stored() {
    let control = [("Cache-Control", "max-age=60, public")];
    for (status, reason) in [
        (100, NotStored::NotFinal),
        (101, NotStored::NotFinal),
        (103, NotStored::NotFinal),
        (304, NotStored::NotFinal),
        (428, NotStored::ForbiddenStatus),
        (429, NotStored::ForbiddenStatus),
        (431, NotStored::ForbiddenStatus),
        (511, NotStored::ForbiddenStatus),
    ] {
        let found = check(Method::Get, &[], status, &control, &ALL);
        assert_eq!(found, Err(reason), "{status}");
    }
}

/// RFC 9111 section 3.3: parts need a request and a range that are understood.
#[test]
fn parts_are_stored_only_as_requested() {
    let range = [("Range", "bytes=0-4")];
    let part = [
        ("Cache-Control", "max-age=60"),
        ("Content-Range", "bytes 0-4/10"),
    ];
    let refused = Err(NotStored::OfThisRequest);
    let get = |request: &[(&str, &str)], status, list: &[(&str, &str)], policy| {
        check(Method::Get, request, status, list, policy)
    };
    assert_eq!(get(&range, 206, &part, &ALL), Ok(()));
    assert_eq!(get(&[], 206, &part, &ALL), refused);
    assert_eq!(get(&range, 206, &part[..1], &ALL), refused);
    let lines = [part[0], ("Content-Range", "lines 0-4/10")];
    assert_eq!(get(&range, 206, &lines, &ALL), refused);
    let whole = StorePolicy {
        ranges: false,
        ..ALL
    };
    assert_eq!(get(&range, 206, &part, &whole), refused);
    assert_eq!(get(&range, 200, &part[..1], &whole), Ok(()));
    assert_eq!(get(&range, 416, &part[..1], &ALL), refused);
    assert_eq!(get(&[], 416, &part[..1], &ALL), Ok(()));
    let condition = [("If-Match", "\"a\"")];
    assert_eq!(get(&condition, 412, &part[..1], &ALL), refused);
    assert_eq!(get(&[], 412, &part[..1], &ALL), Ok(()));
}

/// RFC 9111 section 3: the method is understood. RFC 9110 section 9.3.3: POST.
#[test]
fn methods_are_understood_or_configured() {
    let control = [("Cache-Control", "max-age=60")];
    let own = StorePolicy {
        methods: &[Method::Post],
        ..ALL
    };
    for (method, policy, expected) in [
        (Method::Get, &ALL, Ok(())),
        (Method::Head, &ALL, Ok(())),
        (Method::Post, &ALL, Err(NotStored::Method)),
        (Method::Post, &own, Ok(())),
        (Method::Put, &own, Err(NotStored::Method)),
        (Method::Options, &ALL, Err(NotStored::Method)),
        (Method::Other, &ALL, Err(NotStored::Method)),
    ] {
        assert_eq!(
            check(method, &[], 200, &control, policy),
            expected,
            "{method:?}"
        );
    }
    let fresh = response(200, &control);
    assert_eq!(stored_method(Method::Get, false, &fresh), Some(Method::Get));
    assert_eq!(
        stored_method(Method::Head, false, &fresh),
        Some(Method::Head)
    );
    assert_eq!(stored_method(Method::Post, true, &fresh), Some(Method::Get));
    assert_eq!(stored_method(Method::Post, false, &fresh), None);
    assert_eq!(stored_method(Method::Put, true, &fresh), None);
    let guessed = response(200, &[("Cache-Control", "public")]);
    assert_eq!(stored_method(Method::Post, true, &guessed), None);
}

/// RFC 9111 section 7.3 leaves `Set-Cookie` to the cache.
#[test]
fn cookies_need_permission() {
    let refused = Err(NotStored::SetCookie);
    for (control, set_cookie, expected) in [
        ("max-age=60", SetCookie::Refuse, refused),
        ("max-age=60, public", SetCookie::Refuse, refused),
        ("max-age=60", SetCookie::IfPublic, refused),
        ("max-age=60, public", SetCookie::IfPublic, Ok(())),
        ("s-maxage=60", SetCookie::IfPublic, Ok(())),
        ("max-age=60, s-maxage=x", SetCookie::IfPublic, refused),
        ("max-age=60", SetCookie::Store, Ok(())),
        (
            "max-age=60, no-cache=\"set-cookie\"",
            SetCookie::Refuse,
            Ok(()),
        ),
    ] {
        let list = [("Cache-Control", control), ("Set-Cookie", "a=b")];
        let policy = StorePolicy { set_cookie, ..ALL };
        let found = check(Method::Get, &[], 200, &list, &policy);
        assert_eq!(found, expected, "{control} {set_cookie:?}");
    }
}

/// RFC 9111 section 4.1.
#[test]
fn a_star_in_vary_is_not_stored() {
    let list = [("Cache-Control", "max-age=60"), ("Vary", "a, *")];
    let found = check(Method::Get, &[], 200, &list, &ALL);
    assert_eq!(found, Err(NotStored::VaryAny));
}

/// RFC 9111 section 3: responses without validator and expiration time are not useful to store.
#[test]
fn responses_of_no_use_are_not_stored() {
    let plain = StorePolicy {
        validate: false,
        ..ALL
    };
    let stale = StorePolicy {
        use_stale: true,
        ..plain
    };
    let useless = Err(NotStored::Useless);
    for (control, policy, expected) in [
        ("max-age=0", &plain, useless),
        ("max-age=0", &ALL, Ok(())),
        ("max-age=0", &stale, Ok(())),
        ("max-age=0, must-revalidate", &stale, useless),
        ("s-maxage=0", &stale, useless),
        ("max-age=0, stale-while-revalidate=9", &plain, Ok(())),
        ("s-maxage=0, stale-while-revalidate=9", &plain, Ok(())),
        ("max-age=0, stale-if-error=9", &plain, Ok(())),
        (
            "max-age=0, stale-if-error=9, must-revalidate",
            &plain,
            useless,
        ),
        ("no-cache, max-age=60", &plain, useless),
        ("no-cache, max-age=60", &stale, useless),
        ("no-cache, max-age=60", &ALL, Ok(())),
        ("public", &plain, useless),
        ("max-age=1", &plain, Ok(())),
    ] {
        let list = [("Cache-Control", control), ("ETag", "\"a\"")];
        let found = check(Method::Get, &[], 200, &list, policy);
        assert_eq!(found, expected, "{control} {policy:?}");
    }
    // Neither freshness nor a validator.
    assert_eq!(check(Method::Get, &[], 200, &[], &ALL), useless);
}

/// A configured lifetime is explicit, whatever the status is.
#[test]
fn a_configured_lifetime_is_explicit() {
    let request = RequestFacts::default();
    let response = response(500, &[]);
    for policy in [
        FreshnessPolicy {
            default_s: Some(60),
            ..FreshnessPolicy::default()
        },
        FreshnessPolicy {
            override_s: Some(DELTA_SECONDS_MAX),
            ..FreshnessPolicy::default()
        },
    ] {
        let lifetime = lifetime(&response, false, 0, &policy);
        assert_eq!(check_storable(&request, &response, lifetime, &ALL), Ok(()));
    }
}

#[test]
fn reasons_are_distinct_tokens() {
    let reasons = [
        NotStored::Method,
        NotStored::NotFinal,
        NotStored::ForbiddenStatus,
        NotStored::OfThisRequest,
        NotStored::MustUnderstand,
        NotStored::RequestNoStore,
        NotStored::NoStore,
        NotStored::Private,
        NotStored::Authorization,
        NotStored::VaryAny,
        NotStored::SetCookie,
        NotStored::NoFreshness,
        NotStored::Useless,
    ];
    let texts: std::collections::BTreeSet<_> = reasons.map(NotStored::text).into_iter().collect();
    assert_eq!(texts.len(), reasons.len());
}
