//! Validators of stored responses: the request that validates them, and the choice of those that a 304 freshens.
//!
//! Source: RFC 9111 sections 4.3.1, 4.3.4; RFC 9110 sections 8.8, 13.1.

use engines::http::{FieldId, Fields, is_token, parse_http_date};

use super::field_list::FieldList;

/// The validators of a response, as received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Validators<'a> {
    /// The entity tag with its quotes. A token without quotes is accepted, since servers send such tags.
    pub etag: Option<&'a [u8]>,
    /// The text of `Last-Modified`, a valid date.
    pub last_modified: Option<&'a [u8]>,
}

impl<'a> Validators<'a> {
    /// Reads the validators of a response.
    #[must_use]
    pub fn of(response: FieldList<'a>) -> Self {
        let etag = response.first(FieldId::Etag);
        let last_modified = response.first(FieldId::LastModified);
        Self {
            etag: etag.filter(|etag| is_entity_tag(etag) || is_token(etag)),
            last_modified: last_modified.filter(|date| parse_http_date(date).is_some()),
        }
    }

    /// Whether there is no validator.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.etag.is_none() && self.last_modified.is_none()
    }

    /// The entity tag, if it is strong (RFC 9110 section 8.8.1).
    #[must_use]
    pub fn strong_etag(&self) -> Option<&'a [u8]> {
        self.etag.filter(|etag| etag.starts_with(b"\""))
    }
}

/// Whether `text` is an entity tag (RFC 9110 section 8.8.3).
fn is_entity_tag(text: &[u8]) -> bool {
    let opaque = text.strip_prefix(b"W/").unwrap_or(text);
    match opaque {
        [b'"', inner @ .., b'"'] => inner
            .iter()
            .all(|byte| matches!(byte, 0x21 | 0x23..=0x7e | 0x80..)),
        _ => false,
    }
}

/// Weak comparison of entity tags (RFC 9110 section 8.8.3.2).
fn weakly_equal(one: &[u8], other: &[u8]) -> bool {
    one.strip_prefix(b"W/").unwrap_or(one) == other.strip_prefix(b"W/").unwrap_or(other)
}

/// Appends the fields that validate stored responses: `If-None-Match`, `If-Modified-Since` (RFC 9111 section 4.3.1).
///
/// `selected` is the stored response that the request selects. `variants` are entity tags of others with this key,
/// of which the server may choose one. The client's own preconditions must have been removed from the request; they are
/// evaluated against the validated response.
pub fn conditional_fields<'a>(
    selected: Option<Validators<'a>>,
    variants: impl IntoIterator<Item = &'a [u8]>,
    request: &mut Fields,
) {
    let selected = selected.unwrap_or_default();
    let mut tags: Vec<&[u8]> = Vec::new();
    for tag in selected.etag.into_iter().chain(variants) {
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    if !tags.is_empty() {
        request.push(b"If-None-Match", &tags.join(&b", "[..]));
    }
    if let Some(date) = selected.last_modified {
        request.push(b"If-Modified-Since", date);
    }
}

/// A stored response that a 304 may freshen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Candidate<'a> {
    /// Its validators.
    pub validators: Validators<'a>,
    /// Its `Date`, or the time of its reception, in seconds since 1970.
    pub date_s: i64,
}

/// Returns the indices of the stored responses that a 304 response freshens (RFC 9111 section 4.3.4).
///
/// A strong entity tag names all responses that have it. Other validators name the most recent response that has them.
/// A 304 without validators names the only response that there is; the RFC requires that this one has none either, but
/// servers omit them. If the list is empty, the 304 may not be used: the request has to be sent without preconditions.
#[must_use]
pub fn freshened(received: Validators<'_>, stored: &[Candidate<'_>]) -> Vec<usize> {
    let matching = |matches: &dyn Fn(&Validators<'_>) -> bool| -> Vec<usize> {
        let all = stored.iter().enumerate();
        all.filter(|(_, one)| matches(&one.validators))
            .map(|(at, _)| at)
            .collect()
    };
    if let Some(tag) = received.strong_etag() {
        return matching(&|one| one.strong_etag() == Some(tag));
    }
    let found = match (received.etag, received.last_modified) {
        (Some(tag), _) => matching(&|one| one.etag.is_some_and(|other| weakly_equal(tag, other))),
        (None, Some(date)) => matching(&|one| one.last_modified == Some(date)),
        (None, None) if stored.len() == 1 => vec![0],
        (None, None) => Vec::new(),
    };
    let latest = found.into_iter().max_by_key(|at| stored[*at].date_s);
    latest.into_iter().collect()
}

/// Whether a 304 response is about the one stored response that was to be validated (RFC 9111 section 4.3.4).
///
/// Entity tags are compared weakly. Compressing servers send a weak tag with the response, and a strong one with the 304.
/// Dates decide if one of the two has no tag. A 304 without validators is about the stored response.
#[must_use]
pub fn confirms(received: Validators<'_>, stored: Validators<'_>) -> bool {
    match (received.etag, stored.etag) {
        (Some(tag), Some(own)) => weakly_equal(tag, own),
        (Some(_), None) => {
            let dates = (received.last_modified, stored.last_modified);
            matches!(dates, (Some(date), Some(own)) if date == own)
        }
        (None, _) => match (received.last_modified, stored.last_modified) {
            (Some(date), Some(own)) => date == own,
            _ => true,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rfc9111::testing_tests::shown;

    const DATE: &str = "Wed, 01 Jan 2020 00:00:00 GMT";
    const LATER: &str = "Thu, 02 Jan 2020 00:00:00 GMT";

    fn fields(etag: &str, last_modified: &str) -> Fields {
        let mut fields = Fields::default();
        for (name, value) in [("ETag", etag), ("Last-Modified", last_modified)] {
            if !value.is_empty() {
                fields.push(name.as_bytes(), value.as_bytes());
            }
        }
        fields
    }

    /// RFC 9110 section 8.8.3.
    #[test]
    fn validators_are_valid_tags_and_dates() {
        for (etag, is_tag, is_strong) in [
            ("\"a\"", true, true),
            ("\"\"", true, true),
            ("\"a\u{fc}\"", true, true),
            ("W/\"a\"", true, false),
            ("abc", true, false),
            ("w/\"a\"", false, false),
            ("\"a", false, false),
            ("\"a\"b\"", false, false),
            ("\"a b\"", false, false),
            ("a, b", false, false),
        ] {
            let list = fields(etag, "yesterday");
            let found = Validators::of(FieldList::from(&list));
            assert_eq!(found.etag.is_some(), is_tag, "{etag}");
            assert_eq!(found.strong_etag().is_some(), is_strong, "{etag}");
            assert_eq!(found.last_modified, None);
            assert_eq!(found.is_empty(), !is_tag, "{etag}");
        }
        let list = fields("", DATE);
        assert!(!Validators::of(FieldList::from(&list)).is_empty());
    }

    /// RFC 9111 section 4.3.1.
    #[test]
    fn the_validating_request_has_both_validators_and_tags_of_variants() {
        let list = fields("\"a\"", DATE);
        let selected = Validators::of(FieldList::from(&list));
        let request = |selected, variants: &[&'static [u8]]| {
            let mut request = Fields::default();
            conditional_fields(selected, variants.iter().copied(), &mut request);
            shown(&request)
        };
        let since = format!("If-Modified-Since: {DATE}");
        let both = ["If-None-Match: \"a\"", &since];
        assert_eq!(request(Some(selected), &[]), both);
        let variants: [&[u8]; 3] = [b"\"b\"", b"\"a\"", b"W/\"c\""];
        let union = ["If-None-Match: \"a\", \"b\", W/\"c\"", &since];
        assert_eq!(request(Some(selected), &variants), union);
        assert_eq!(request(None, &variants[..1]), ["If-None-Match: \"b\""]);
        assert_eq!(request(None, &[]), [""; 0]);
    }

    /// RFC 9111 section 4.3.4.
    #[test]
    fn a_304_with_other_validators_confirms_nothing() {
        for (received, stored, expected) in [
            (("\"a\"", ""), ("\"a\"", DATE), true),
            (("\"a\"", LATER), ("\"a\"", DATE), true),
            (("W/\"a\"", ""), ("\"a\"", ""), true),
            (("\"a\"", ""), ("W/\"a\"", ""), true),
            (("\"b\"", DATE), ("\"a\"", DATE), false),
            (("W/\"b\"", ""), ("W/\"a\"", ""), false),
            (("\"b\"", ""), ("", DATE), false),
            (("\"b\"", DATE), ("", DATE), true),
            (("", DATE), ("\"a\"", DATE), true),
            (("", LATER), ("\"a\"", DATE), false),
            (("", LATER), ("\"a\"", ""), true),
            (("", ""), ("\"a\"", DATE), true),
        ] {
            let (one, other) = (fields(received.0, received.1), fields(stored.0, stored.1));
            let of = |list| Validators::of(FieldList::from(list));
            let found = confirms(of(&one), of(&other));
            assert_eq!(found, expected, "{received:?} {stored:?}");
        }
    }

    /// RFC 9111 section 4.3.4.
    #[test]
    fn a_304_names_the_responses_that_it_freshens() {
        let lists = [
            fields("\"a\"", DATE),
            fields("\"b\"", LATER),
            fields("\"a\"", LATER),
            fields("W/\"a\"", DATE),
            fields("", DATE),
        ];
        let stored: Vec<Candidate<'_>> = lists
            .iter()
            .zip([10, 20, 30, 5, 1])
            .map(|(list, date_s)| Candidate {
                validators: Validators::of(FieldList::from(list)),
                date_s,
            })
            .collect();
        let names = |etag, last_modified, stored: &[Candidate<'_>]| {
            let list = fields(etag, last_modified);
            freshened(Validators::of(FieldList::from(&list)), stored)
        };
        assert_eq!(names("\"a\"", LATER, &stored), [0, 2]);
        assert_eq!(names("\"x\"", DATE, &stored), [0; 0]);
        assert_eq!(names("W/\"a\"", "", &stored), [2]);
        assert_eq!(names("W/\"a\"", "", &stored[..2]), [0]);
        assert_eq!(names("", DATE, &stored), [0]);
        assert_eq!(names("", DATE, &stored[4..]), [0]);
        assert_eq!(names("", "", &stored), [0; 0]);
        assert_eq!(names("", "", &stored[..1]), [0]);
        assert_eq!(names("", "", &[]), [0; 0]);
    }
}
