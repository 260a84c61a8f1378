//! Random heads: no rule panics, and some relations hold for each head.

use engines::http::{FieldId, Fields, Method};

use super::super::{
    CDN_CACHE_CONTROL, FieldList, FreshnessPolicy, Heuristic, IgnoredFields, RequestFacts,
    ResponseFacts, Reuse, StorePolicy, Stored, TargetUri, Validators, Vary, VaryPolicy,
};
use super::super::{
    check_storable, evaluate_precondition, initial_age_s, invalidated_targets, lifetime,
    may_serve_on_error, parse_date, range_applies, reuse, stored_fields, updated_fields,
};

/// A linear congruential generator: each run has the same heads.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn value(&mut self) -> Vec<u8> {
        let parts = self.below(6);
        let mut value = Vec::new();
        for _ in 0..parts {
            value.extend_from_slice(PARTS[self.below(PARTS.len())]);
        }
        value
    }

    fn fields(&mut self, names: &[&str]) -> Fields {
        let mut fields = Fields::default();
        for _ in 0..self.below(8) {
            let name = names[self.below(names.len())];
            fields.push(name.as_bytes(), &self.value());
        }
        fields
    }
}

const PARTS: [&[u8]; 38] = [
    b"max-age",
    b"s-maxage",
    b"no-cache",
    b"private",
    b"public",
    b"must-revalidate",
    b"max-stale",
    b"stale-while-revalidate",
    b"stale-if-error",
    b"only-if-cached",
    b"=",
    b"=",
    b"5",
    b"99999999999",
    b",",
    b", ",
    b";",
    b"\"",
    b"\\",
    b" ",
    b"*",
    b"a",
    b"Set-Cookie",
    b"-",
    b"/",
    b"..",
    b"//",
    b"?",
    b"bytes ",
    b"0-4/10",
    b"W/",
    b"\xfc",
    b"gzip;q=0",
    b"identity",
    b"en-US;q=0.5",
    b"Sun, 06 Nov 1994 08:49:37 GMT",
    b"Sunday, 06-Nov-94 ",
    b"08:49:60 GMT",
];

const REQUEST: [&str; 11] = [
    "Cache-Control",
    "Pragma",
    "Authorization",
    "Range",
    "If-Range",
    "If-None-Match",
    "If-Modified-Since",
    "Accept-Encoding",
    "Accept-Language",
    "Cookie",
    "a",
];

const RESPONSE: [&str; 15] = [
    "Cache-Control",
    "CDN-Cache-Control",
    "Expires",
    "Date",
    "Last-Modified",
    "Age",
    "ETag",
    "Vary",
    "Vary",
    "Set-Cookie",
    "Content-Range",
    "Connection",
    "Location",
    "Content-Location",
    "a",
];

const NOW_S: i64 = 1_767_225_600;

#[test]
fn no_head_breaks_a_rule() {
    let mut random = Random(52);
    for _ in 0..20_000 {
        let (request, response) = (random.fields(&REQUEST), random.fields(&RESPONSE));
        let statuses = [200, 206, 304, 404, 500, 599];
        let status = statuses[random.below(statuses.len())];
        check(
            FieldList::from(&request),
            FieldList::from(&response),
            status,
        );
    }
}

fn check(request: FieldList<'_>, response: FieldList<'_>, status: u16) {
    let facts = RequestFacts::of(Method::Get, request, false);
    let targets = &[CDN_CACHE_CONTROL];
    let found = ResponseFacts::of(status, response, NOW_S, targets, IgnoredFields::default());
    let policy = FreshnessPolicy {
        heuristic: Some(Heuristic::default()),
        ..FreshnessPolicy::default()
    };
    let lifetime = lifetime(&found, false, NOW_S, &policy);
    let is_stored = check_storable(&facts, &found, lifetime, &StorePolicy::default()).is_ok();
    assert!(!(is_stored && (found.vary == Vary::Any || found.has_set_cookie || status == 304)));

    let age_s = initial_age_s(found.age_s, found.date_s, NOW_S, NOW_S);
    let stored = Stored::received(&found.directives, lifetime.seconds, age_s, NOW_S);
    let reused = reuse(&facts.directives, Some(&stored), NOW_S);
    if reused == Reuse::Fresh {
        assert!(
            stored.is_fresh(NOW_S) && may_serve_on_error(&facts.directives, &stored, false, NOW_S)
        );
    }
    if let Reuse::Stale(_) = reused {
        assert!(!stored.is_fresh(NOW_S));
    }

    let kept = stored_fields(response, &found.directives, false, NOW_S);
    let kept = FieldList::from(&kept);
    assert!(!kept.has(FieldId::SetCookie) && !kept.has(FieldId::Connection));
    let updated = updated_fields(kept, response, &found.directives, false, NOW_S);
    assert!(updated.field(FieldId::Date).is_some() && updated.field(FieldId::SetCookie).is_none());
    assert_eq!(
        Validators::of(kept).is_empty(),
        Validators::of(kept) == Validators::default()
    );

    let policy = VaryPolicy::default();
    assert_eq!(
        found.vary.matches(request, request, policy),
        found.vary != Vary::Any
    );
    let _ = evaluate_precondition(Method::Get, request, kept, NOW_S, NOW_S);
    let _ = range_applies(request, kept, NOW_S);
    let base = TargetUri {
        scheme: b"http",
        authority: b"a",
        target: b"/b/c?d",
    };
    for target in invalidated_targets(&base, response) {
        assert!(target.starts_with(b"/"), "{target:?}");
    }
    for (_, _, value) in response.iter() {
        let _ = parse_date(value, NOW_S);
    }
}
