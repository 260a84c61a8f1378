//! Updates of stored fields by a 304 response or a response to HEAD.
//!
//! Source: RFC 9111 sections 3.2, 4.3.4, 4.3.5.

use engines::http::{FieldId, Fields, http_date, parse_decimal};

use super::field_list::FieldList;
use super::response_directives::ResponseDirectives;
use super::stored_fields::{Exclusions, is_age};

/// Returns the stored fields, updated by those of a newer response (RFC 9111 section 3.2).
///
/// Received fields replace stored ones of their names. Two kinds do not: fields that are not stored, by the `directives`
/// of the newer response, and fields about the stored bytes. Other stored fields stay, except `Age`. A missing `Date`
/// becomes the time of reception, in seconds since 1970.
///
/// The caller checks afterwards that the updated response may still be stored, and makes its secondary key again.
#[must_use]
pub fn updated_fields(
    stored: FieldList<'_>,
    received: FieldList<'_>,
    directives: &ResponseDirectives,
    set_cookie: bool,
    response_time_s: i64,
) -> Fields {
    let exclusions = Exclusions::of(received, directives, set_cookie);
    let received: Vec<_> = received
        .iter()
        .filter(|(id, name, _)| !describes_bytes(*id) && !exclusions.contains(*id, name))
        .collect();
    let mut updated = Fields::default();
    for (id, name, value) in stored.iter() {
        let is_replaced = received
            .iter()
            .any(|(_, other, _)| other.eq_ignore_ascii_case(name));
        // A validated response has the age that was received with the validation, if any.
        if !is_replaced && !is_age(id, name) && id != FieldId::Date {
            updated.push_id(id, name, value);
        }
    }
    for (id, name, value) in received {
        updated.push_id(id, name, value);
    }
    if updated.field(FieldId::Date).is_none() {
        updated.push(b"Date", &http_date(response_time_s));
    }
    updated
}

/// Whether a field describes the stored bytes, which an update does not change. Servers that compress send other values
/// with a 304 than with the response.
const fn describes_bytes(id: FieldId) -> bool {
    matches!(
        id,
        FieldId::ContentLength | FieldId::ContentRange | FieldId::ContentEncoding
    )
}

/// The effect of a 200 response to HEAD on a stored response to GET.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadEffect {
    /// The stored fields are updated ([`updated_fields`]).
    Update,
    /// The stored response is stale from now on.
    Stale,
}

/// Compares a stored response to GET with a 200 response to HEAD (RFC 9111 section 4.3.5).
///
/// `stored_bytes` is the length of the stored body. The validators and the length that were received must equal those
/// stored.
#[must_use]
pub fn head_effect(stored: FieldList<'_>, head: FieldList<'_>, stored_bytes: u64) -> HeadEffect {
    let is_same = |id| {
        let received = head.first(id);
        received.is_none() || received == stored.first(id)
    };
    let same_length = head
        .first(FieldId::ContentLength)
        .is_none_or(|length| parse_decimal(length) == Some(stored_bytes));
    match is_same(FieldId::Etag) && is_same(FieldId::LastModified) && same_length {
        true => HeadEffect::Update,
        false => HeadEffect::Stale,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rfc9111::testing_tests::{fields, shown};

    fn update(stored: &[(&str, &str)], received: &[(&str, &str)], set_cookie: bool) -> Vec<String> {
        let (stored, received) = (fields(stored), fields(received));
        let (stored, received) = (FieldList::from(&stored), FieldList::from(&received));
        let directives = ResponseDirectives::of(received);
        shown(&updated_fields(
            stored,
            received,
            &directives,
            set_cookie,
            60,
        ))
    }

    /// RFC 9111 section 3.2.
    #[test]
    fn received_fields_replace_stored_ones() {
        let stored = [
            ("Cache-Control", "max-age=1"),
            ("Link", "<a>"),
            ("Link", "<b>"),
            ("X-A", "1"),
            ("Date", "old"),
        ];
        let received = [
            ("Date", "new"),
            ("cache-control", "max-age=60"),
            ("link", "<c>"),
            ("X-B", "2"),
        ];
        let expected = [
            "X-A: 1",
            "Date: new",
            "cache-control: max-age=60",
            "link: <c>",
            "X-B: 2",
        ];
        assert_eq!(update(&stored, &received, true), expected);
    }

    /// RFC 9111 section 3.2: exceptions.
    #[test]
    fn fields_of_the_bytes_and_of_the_connection_are_not_updated() {
        for name in ["Content-Length", "Content-Range", "Content-Encoding"] {
            let found = update(
                &[(name, "1"), ("Date", "d")],
                &[(name, "2"), ("Date", "e")],
                true,
            );
            assert_eq!(found, [format!("{name}: 1"), "Date: e".to_owned()]);
        }
        let received = [
            ("Connection", "X-A"),
            ("X-A", "2"),
            ("Keep-Alive", "timeout=5"),
            ("Transfer-Encoding", "chunked"),
            ("Date", "e"),
        ];
        assert_eq!(
            update(&[("X-A", "1")], &received, true),
            ["X-A: 1", "Date: e"]
        );
    }

    /// RFC 9111 sections 5.2.2.4, 5.2.2.7: fields that are not stored are not updated.
    #[test]
    fn excluded_fields_of_the_update_are_not_stored() {
        let received = [
            ("Cache-Control", "private=\"x-a\""),
            ("X-A", "2"),
            ("Set-Cookie", "a=b"),
            ("Date", "e"),
        ];
        let control = "Cache-Control: private=\"x-a\"";
        assert_eq!(
            update(&[("X-B", "1")], &received, false),
            ["X-B: 1", control, "Date: e"]
        );
        let with_cookie = ["X-B: 1", control, "Set-Cookie: a=b", "Date: e"];
        assert_eq!(update(&[("X-B", "1")], &received, true), with_cookie);
    }

    /// RFC 9111 section 4.2.3: the age counts from the validation.
    #[test]
    fn age_and_date_are_those_of_the_update() {
        let stored = [("Age", "500"), ("Date", "d"), ("A", "1")];
        let now = "Date: Thu, 01 Jan 1970 00:01:00 GMT";
        assert_eq!(update(&stored, &[], true), ["A: 1", now]);
        assert_eq!(
            update(&stored, &[("age", "7")], true),
            ["A: 1", "age: 7", now]
        );
    }

    /// RFC 9111 section 4.3.5.
    #[test]
    fn a_head_response_updates_a_response_with_its_validators() {
        let stored = [
            ("ETag", "\"a\""),
            ("Last-Modified", "d"),
            ("Content-Length", "5"),
        ];
        for (head, expected) in [
            (&[][..], HeadEffect::Update),
            (
                &[
                    ("ETag", "\"a\""),
                    ("Last-Modified", "d"),
                    ("Content-Length", "5"),
                ],
                HeadEffect::Update,
            ),
            (&[("ETag", "\"b\"")], HeadEffect::Stale),
            (&[("Last-Modified", "e")], HeadEffect::Stale),
            (&[("Content-Length", "6")], HeadEffect::Stale),
            (&[("Content-Length", "x")], HeadEffect::Stale),
            (&[("Content-Length", "05")], HeadEffect::Update),
        ] {
            let (stored, head) = (fields(&stored), fields(head));
            let found = head_effect(FieldList::from(&stored), FieldList::from(&head), 5);
            assert_eq!(found, expected, "{:?}", shown(&head));
        }
        let (none, head) = (fields(&[]), fields(&[("ETag", "\"a\"")]));
        let found = head_effect(FieldList::from(&none), FieldList::from(&head), 5);
        assert_eq!(found, HeadEffect::Stale);
    }
}
