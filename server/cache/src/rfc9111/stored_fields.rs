//! Fields of a response to store, and fields of a stored response to send.
//!
//! Source: RFC 9111 sections 3.1, 4, 5.2.2.4, 5.2.2.7; RFC 9110 sections 6.6.1, 7.6.1.

use engines::http::{FieldId, Fields, http_date, push_decimal};

use super::field_list::{Elements, FieldList};
use super::response_directives::ResponseDirectives;

/// Returns the fields of a response that may be stored.
///
/// Left out are fields of the connection and those that `Connection` names, fields of a client's proxy, and names in a
/// qualified `no-cache` or `private`. `Set-Cookie` is stored if `set_cookie` is true. A missing `Date` becomes the time of
/// reception, in seconds since 1970. `Age` stays, since the age at reception depends on it.
#[must_use]
pub fn stored_fields(
    response: FieldList<'_>,
    directives: &ResponseDirectives,
    set_cookie: bool,
    response_time_s: i64,
) -> Fields {
    let exclusions = Exclusions::of(response, directives, set_cookie);
    let mut stored = Fields::default();
    for (id, name, value) in response.iter() {
        if !exclusions.contains(id, name) {
            stored.push_id(id, name, value);
        }
    }
    if !response.has(FieldId::Date) {
        stored.push(b"Date", &http_date(response_time_s));
    }
    stored
}

/// Returns the fields with which a stored response is sent: its own, with the current age in place of `Age` (RFC 9111
/// section 4).
#[must_use]
pub fn served_fields(stored: FieldList<'_>, age_s: u32) -> Fields {
    let mut served = Fields::default();
    for (id, name, value) in stored.iter() {
        if !is_age(id, name) {
            served.push_id(id, name, value);
        }
    }
    let mut age = Vec::new();
    push_decimal(&mut age, u64::from(age_s));
    served.push(b"Age", &age);
    served
}

/// Whether a field is `Age`.
pub(super) fn is_age(id: FieldId, name: &[u8]) -> bool {
    id == FieldId::Other && name.eq_ignore_ascii_case(b"Age")
}

/// Fields of one response that may not be stored.
pub(super) struct Exclusions<'a> {
    /// Names in `Connection`.
    nominated: Vec<&'a [u8]>,
    directives: &'a ResponseDirectives,
    set_cookie: bool,
}

impl<'a> Exclusions<'a> {
    pub(super) fn of(
        response: FieldList<'a>,
        directives: &'a ResponseDirectives,
        set_cookie: bool,
    ) -> Self {
        let connection = response.by_id(FieldId::Connection);
        // Cache-Control is never appropriate there (RFC 9110 section 7.6.1); without it a restriction would be lost.
        let nominated = connection
            .flat_map(Elements::new)
            .filter(|name| !name.eq_ignore_ascii_case(b"Cache-Control"));
        Self {
            nominated: nominated.collect(),
            directives,
            set_cookie,
        }
    }

    pub(super) fn contains(&self, id: FieldId, name: &[u8]) -> bool {
        let is_of_connection = match id {
            FieldId::Connection
            | FieldId::KeepAlive
            | FieldId::Te
            | FieldId::Trailer
            | FieldId::TransferEncoding
            | FieldId::Upgrade
            | FieldId::ProxyAuthorization => true,
            FieldId::SetCookie => !self.set_cookie,
            FieldId::Other => OF_PROXY.iter().any(|one| name.eq_ignore_ascii_case(one)),
            _ => false,
        };
        is_of_connection
            || self
                .nominated
                .iter()
                .any(|one| name.eq_ignore_ascii_case(one))
            || self.directives.excludes(name)
    }
}

/// Fields without a number about the connection to a proxy (RFC 9111 section 3.1).
const OF_PROXY: [&[u8]; 3] = [
    b"Proxy-Connection",
    b"Proxy-Authenticate",
    b"Proxy-Authentication-Info",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rfc9111::testing_tests::{fields, shown};

    fn stored(list: &[(&str, &str)], set_cookie: bool) -> Vec<String> {
        let fields = fields(list);
        let response = FieldList::from(&fields);
        let directives = ResponseDirectives::of(response);
        shown(&stored_fields(response, &directives, set_cookie, 60))
    }

    /// RFC 9111 section 3.1, RFC 9110 section 7.6.1.
    #[test]
    fn fields_of_the_connection_are_not_stored() {
        for name in [
            "Connection",
            "keep-alive",
            "Proxy-Authenticate",
            "Proxy-Authentication-Info",
            "proxy-authorization",
            "Proxy-Connection",
            "TE",
            "Trailer",
            "Transfer-Encoding",
            "Upgrade",
        ] {
            assert_eq!(
                stored(&[(name, "x"), ("Date", "y")], true),
                ["Date: y"],
                "{name}"
            );
        }
        let list = [
            ("Connection", "a, B, cache-control"),
            ("A", "1"),
            ("b", "2"),
            ("c", "3"),
            ("Cache-Control", "max-age=5"),
            ("Date", "y"),
        ];
        let expected = ["c: 3", "Cache-Control: max-age=5", "Date: y"];
        assert_eq!(stored(&list, true), expected);
    }

    /// RFC 9111 section 3.1: other fields are stored, also unknown ones.
    #[test]
    fn other_fields_are_stored_as_received() {
        let list = [
            ("X-Unknown", "1"),
            ("Content-Length", "5"),
            ("age", "7"),
            ("Set-Cookie", "a=b"),
            ("Set-Cookie", "c=d"),
            ("Date", "y"),
        ];
        let all = [
            "X-Unknown: 1",
            "Content-Length: 5",
            "age: 7",
            "Set-Cookie: a=b",
            "Set-Cookie: c=d",
            "Date: y",
        ];
        assert_eq!(stored(&list, true), all);
        let without_cookies = [all[0], all[1], all[2], all[5]];
        assert_eq!(stored(&list, false), without_cookies);
    }

    /// RFC 9111 sections 5.2.2.4, 5.2.2.7.
    #[test]
    fn fields_in_qualified_directives_are_not_stored() {
        let list = [
            ("Cache-Control", "no-cache=\"a\", private=\"Set-Cookie, B\""),
            ("A", "1"),
            ("b", "2"),
            ("Set-Cookie", "a=b"),
            ("Date", "y"),
        ];
        let control = "Cache-Control: no-cache=\"a\", private=\"Set-Cookie, B\"";
        assert_eq!(stored(&list, true), [control, "Date: y"]);
    }

    /// RFC 9110 section 6.6.1: a recipient with a clock adds a missing `Date`.
    #[test]
    fn a_missing_date_is_added() {
        assert_eq!(stored(&[], true), ["Date: Thu, 01 Jan 1970 00:01:00 GMT"]);
    }

    /// RFC 9111 section 4.
    #[test]
    fn a_stored_response_is_sent_with_its_age() {
        let list = fields(&[("Age", "30"), ("A", "1"), ("AGE", "2")]);
        let served = served_fields(FieldList::from(&list), 95);
        assert_eq!(shown(&served), ["A: 1", "Age: 95"]);
        let none = fields(&[]);
        assert_eq!(shown(&served_fields(FieldList::from(&none), 0)), ["Age: 0"]);
    }
}
