//! Preconditions of a client, evaluated against a stored response.
//!
//! `If-Match` and `If-Unmodified-Since` concern the server alone and are not evaluated. Source: RFC 9111 section 4.3.2;
//! RFC 9110 sections 8.8.2.2, 13.1, 13.2.2.

use engines::http::{FieldId, Method, etag_matches};

use super::date::parse_date;
use super::field_list::FieldList;
use super::validation::Validators;

/// The answer from a stored response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// The stored response is sent.
    Send,
    /// The client has it: 304.
    NotModified,
}

/// Evaluates `If-None-Match`, or without it `If-Modified-Since`, against a stored response with the status 200 or 206.
///
/// A stored response without `Last-Modified` counts as modified at its `Date`, or at the time of its reception,
/// `response_time_s`, in seconds since 1970. `now_s` decides centuries of dates.
#[must_use]
pub fn evaluate_precondition(
    method: Method,
    request: FieldList<'_>,
    stored: FieldList<'_>,
    response_time_s: i64,
    now_s: i64,
) -> Precondition {
    if !matches!(method, Method::Get | Method::Head) {
        return Precondition::Send;
    }
    if request.has(FieldId::IfNoneMatch) {
        let etag = stored.first(FieldId::Etag).unwrap_or_default();
        return match etag_matches(request.by_id(FieldId::IfNoneMatch), etag, true) {
            true => Precondition::NotModified,
            false => Precondition::Send,
        };
    }
    let date_of = |fields: FieldList<'_>, id| {
        let text = fields.first(id)?;
        parse_date(text, now_s)
    };
    let Some(since_s) = date_of(request, FieldId::IfModifiedSince) else {
        return Precondition::Send;
    };
    let modified_s = date_of(stored, FieldId::LastModified)
        .or_else(|| date_of(stored, FieldId::Date))
        .unwrap_or(response_time_s);
    match modified_s <= since_s {
        true => Precondition::NotModified,
        false => Precondition::Send,
    }
}

/// Whether the `Range` of a request applies: there is no `If-Range`, or it has the strong validator of the stored response.
///
/// A date is strong if the stored `Date` is at least a second later than `Last-Modified` (RFC 9110 section 8.8.2.2).
#[must_use]
pub fn range_applies(request: FieldList<'_>, stored: FieldList<'_>, now_s: i64) -> bool {
    let Some(condition) = request.first(FieldId::IfRange) else {
        return true;
    };
    if condition.starts_with(b"\"") || condition.starts_with(b"W/") {
        return Validators::of(stored).strong_etag() == Some(condition);
    }
    let date_of = |id| stored.first(id).and_then(|text| parse_date(text, now_s));
    let (Some(modified_s), Some(date_s)) = (date_of(FieldId::LastModified), date_of(FieldId::Date))
    else {
        return false;
    };
    modified_s < date_s && parse_date(condition, now_s) == Some(modified_s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use engines::http::{Fields, http_date};

    fn fields(list: &[(&str, &str)]) -> Fields {
        let mut fields = Fields::default();
        for (name, value) in list {
            fields.push(name.as_bytes(), value.as_bytes());
        }
        fields
    }

    fn date(unix_s: i64) -> String {
        String::from_utf8(http_date(unix_s).to_vec()).expect("ASCII")
    }

    fn evaluate(method: Method, request: &[(&str, &str)], stored: &[(&str, &str)]) -> Precondition {
        let (request, stored) = (fields(request), fields(stored));
        let (request, stored) = (FieldList::from(&request), FieldList::from(&stored));
        evaluate_precondition(method, request, stored, 5000, 6000)
    }

    /// RFC 9110 section 13.1.2: weak comparison.
    #[test]
    fn if_none_match_compares_entity_tags() {
        for (condition, etag, matches) in [
            ("\"a\"", "\"a\"", true),
            ("\"x\", \"a\"", "\"a\"", true),
            ("W/\"a\"", "\"a\"", true),
            ("\"a\"", "W/\"a\"", true),
            ("\"a\u{fc}\"", "\"a\u{fc}\"", true),
            ("*", "\"a\"", true),
            ("*", "", true),
            ("\"b\"", "\"a\"", false),
            ("abc", "\"abc\"", false),
            ("", "", false),
        ] {
            let stored = [("ETag", etag)];
            let stored = if etag.is_empty() { &[][..] } else { &stored };
            let found = evaluate(Method::Get, &[("If-None-Match", condition)], stored);
            assert_eq!(
                found == Precondition::NotModified,
                matches,
                "{condition} {etag}"
            );
        }
    }

    /// RFC 9110 section 13.1.3.
    #[test]
    fn if_modified_since_compares_times() {
        let (early, modified, late) = (date(900), date(1000), date(1100));
        let stored = [
            ("Last-Modified", modified.as_str()),
            ("Date", late.as_str()),
        ];
        for (since, expected) in [
            (early.as_str(), Precondition::Send),
            (&modified, Precondition::NotModified),
            (&late, Precondition::NotModified),
            (
                "Thursday, 01-Jan-70 00:16:40 GMT",
                Precondition::NotModified,
            ),
            ("yesterday", Precondition::Send),
        ] {
            for method in [Method::Get, Method::Head] {
                let found = evaluate(method, &[("If-Modified-Since", since)], &stored);
                assert_eq!(found, expected, "{since}");
            }
            let found = evaluate(Method::Post, &[("If-Modified-Since", since)], &stored);
            assert_eq!(found, Precondition::Send);
        }
    }

    /// RFC 9111 section 4.3.2: without `Last-Modified`, `Date`; without it, the time of reception.
    #[test]
    fn a_missing_modification_time_is_the_date() {
        let (since, date_text) = (date(2000), date(1900));
        let condition = [("If-Modified-Since", since.as_str())];
        let found = evaluate(Method::Get, &condition, &[("Date", &date_text)]);
        assert_eq!(found, Precondition::NotModified);
        assert_eq!(evaluate(Method::Get, &condition, &[]), Precondition::Send);
        let later = date(5000);
        let found = evaluate(Method::Get, &[("If-Modified-Since", &later)], &[]);
        assert_eq!(found, Precondition::NotModified);
    }

    /// RFC 9110 section 13.2.2.
    #[test]
    fn if_none_match_comes_before_if_modified_since() {
        let (early, modified, late) = (date(900), date(1000), date(1100));
        let stored = [("ETag", "\"a\""), ("Last-Modified", modified.as_str())];
        for (tag, since, expected) in [
            ("\"a\"", &early, Precondition::NotModified),
            ("\"b\"", &late, Precondition::Send),
        ] {
            let request = [
                ("If-None-Match", tag),
                ("If-Modified-Since", since.as_str()),
            ];
            assert_eq!(evaluate(Method::Get, &request, &stored), expected, "{tag}");
        }
    }

    /// RFC 9111 section 4.3.2: not for caches.
    #[test]
    fn conditions_for_the_server_are_not_evaluated() {
        let request = [("If-Match", "\"x\""), ("If-Unmodified-Since", "x")];
        let found = evaluate(Method::Get, &request, &[("ETag", "\"a\"")]);
        assert_eq!(found, Precondition::Send);
    }

    /// RFC 9110 section 13.1.5: strong comparison.
    #[test]
    fn if_range_needs_a_strong_validator() {
        let (modified, date_text, same) = (date(1000), date(1001), date(1000));
        for (condition, etag, date_text, expected) in [
            ("\"a\"", "\"a\"", &date_text, true),
            ("\"b\"", "\"a\"", &date_text, false),
            ("W/\"a\"", "W/\"a\"", &date_text, false),
            (modified.as_str(), "\"a\"", &date_text, true),
            (modified.as_str(), "\"a\"", &same, false),
            (&date(1001), "\"a\"", &date_text, false),
            (&date(999), "\"a\"", &date_text, false),
            ("a", "a", &date_text, false),
            ("", "\"a\"", &date_text, false),
        ] {
            let stored = [
                ("ETag", etag),
                ("Last-Modified", &modified),
                ("Date", date_text),
            ];
            let (stored, request) = (fields(&stored), fields(&[("If-Range", condition)]));
            let found = range_applies(FieldList::from(&request), FieldList::from(&stored), 6000);
            assert_eq!(found, expected, "{condition} {etag}");
        }
        let none = fields(&[]);
        assert!(range_applies(
            FieldList::from(&none),
            FieldList::from(&none),
            0
        ));
        let request = fields(&[("If-Range", &modified)]);
        assert!(!range_applies(
            FieldList::from(&request),
            FieldList::from(&none),
            0
        ));
    }
}
