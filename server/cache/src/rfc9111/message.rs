//! Facts of requests and responses that the rules of caching need, each head read once.

use engines::http::{FieldId, Method};

use super::age::parse_age;
use super::date::parse_date;
use super::directives::DirectiveSet;
use super::field_list::FieldList;
use super::partial::{ContentRange, parse_content_range};
use super::request_directives::RequestDirectives;
use super::response_directives::ResponseDirectives;
use super::targeted::targeted_directives;
use super::validation::Validators;
use super::vary::Vary;

/// Facts of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestFacts {
    /// The method.
    pub method: Method,
    /// The directives; the default value ignores them.
    pub directives: RequestDirectives,
    /// There is an `Authorization` field.
    pub has_authorization: bool,
    /// There is a `Range` field.
    pub has_range: bool,
    /// There is a precondition: `If-Match`, `If-None-Match`, `If-Modified-Since`, `If-Unmodified-Since`.
    pub has_precondition: bool,
    /// The target URI has a query.
    pub has_query: bool,
}

impl RequestFacts {
    /// Reads the fields of a request. For [`check_storable`](super::check_storable) it is the request sent to the server.
    #[must_use]
    pub fn of(method: Method, request: FieldList<'_>, has_query: bool) -> Self {
        let mut facts = Self {
            method,
            directives: RequestDirectives::of(request),
            has_query,
            ..Self::default()
        };
        for (id, ..) in request.iter() {
            match id {
                FieldId::Authorization => facts.has_authorization = true,
                FieldId::Range => facts.has_range = true,
                FieldId::IfMatch
                | FieldId::IfNoneMatch
                | FieldId::IfModifiedSince
                | FieldId::IfUnmodifiedSince => facts.has_precondition = true,
                _ => {}
            }
        }
        facts
    }
}

/// Fields of responses that a configuration ignores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IgnoredFields {
    /// `Cache-Control`; targeted fields count nevertheless.
    pub cache_control: bool,
    /// `Expires`.
    pub expires: bool,
    /// `Set-Cookie`.
    pub set_cookie: bool,
    /// `Vary`.
    pub vary: bool,
}

/// The value of `Expires`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expires {
    /// There is no such field, or another field replaces it.
    #[default]
    Absent,
    /// Not a date, which counts as already expired (RFC 9111 section 5.3).
    Invalid,
    /// Seconds since 1970.
    At(i64),
}

/// Facts of a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseFacts {
    /// The status code.
    pub status: u16,
    /// The directives of `Cache-Control`, or of the targeted field that replaces it.
    pub directives: ResponseDirectives,
    /// The directives are those of a targeted field (RFC 9213).
    pub is_targeted: bool,
    /// The first `Expires`.
    pub expires: Expires,
    /// The first `Date` in seconds since 1970; `None` if it is absent or invalid.
    pub date_s: Option<i64>,
    /// `Last-Modified` in seconds since 1970; `None` if it is absent or invalid.
    pub last_modified_s: Option<i64>,
    /// The `Age` received, in seconds.
    pub age_s: Option<u32>,
    /// The selecting fields.
    pub vary: Vary,
    /// The part that a 206 response has; `None` for other statuses, several parts and invalid fields.
    pub content_range: Option<ContentRange>,
    /// There is an entity tag or a modification time with which the response can be validated.
    pub has_validator: bool,
    /// There is a `Set-Cookie` that is not ignored, nor excluded by a qualified `no-cache` or `private`.
    pub has_set_cookie: bool,
}

impl ResponseFacts {
    /// Reads the fields of a response. `now_s` is the time of its reception, `targets` the list of targeted fields (RFC
    /// 9213 section 2.2), such as [`CDN_CACHE_CONTROL`](super::CDN_CACHE_CONTROL).
    #[must_use]
    pub fn of(
        status: u16,
        response: FieldList<'_>,
        now_s: i64,
        targets: &[&[u8]],
        ignored: IgnoredFields,
    ) -> Self {
        let targeted = targeted_directives(response, targets);
        let is_targeted = targeted.is_some();
        let directives = targeted.unwrap_or_else(|| match ignored.cache_control {
            true => ResponseDirectives::default(),
            false => ResponseDirectives::of(response),
        });
        let date_of = |id| response.first(id).and_then(|text| parse_date(text, now_s));
        let expires = match response.first(FieldId::Expires) {
            Some(text) if !is_targeted && !ignored.expires => {
                parse_date(text, now_s).map_or(Expires::Invalid, Expires::At)
            }
            _ => Expires::Absent,
        };
        let has_set_cookie = response.has(FieldId::SetCookie)
            && !ignored.set_cookie
            && !directives.excludes(b"set-cookie");
        Self {
            status,
            is_targeted,
            expires,
            date_s: date_of(FieldId::Date),
            last_modified_s: date_of(FieldId::LastModified),
            age_s: parse_age(response),
            vary: match ignored.vary {
                true => Vary::default(),
                false => Vary::of(response),
            },
            content_range: (status == 206)
                .then(|| parse_content_range(response))
                .flatten(),
            has_validator: !Validators::of(response).is_empty(),
            has_set_cookie,
            directives,
        }
    }

    /// Whether the response has explicit freshness, or `public` (RFC 9111 section 3).
    #[must_use]
    pub fn is_explicitly_cacheable(&self) -> bool {
        let directives = &self.directives;
        directives.max_age_s.is_some()
            || directives.s_maxage_s.is_some()
            || self.expires != Expires::Absent
            || directives.set.contains(DirectiveSet::PUBLIC)
    }
}

#[cfg(test)]
mod tests {
    use super::super::CDN_CACHE_CONTROL;
    use super::*;
    use engines::http::Fields;

    fn fields(list: &[(&str, &str)]) -> Fields {
        let mut fields = Fields::default();
        for (name, value) in list {
            fields.push(name.as_bytes(), value.as_bytes());
        }
        fields
    }

    fn response(list: &[(&str, &str)], ignored: IgnoredFields) -> ResponseFacts {
        let fields = fields(list);
        let targets = &[CDN_CACHE_CONTROL];
        ResponseFacts::of(200, FieldList::from(&fields), 0, targets, ignored)
    }

    #[test]
    fn facts_of_requests_are_read() {
        let list = fields(&[
            ("Cache-Control", "max-age=5"),
            ("Authorization", "Basic eDp5"),
            ("Range", "bytes=0-1"),
            ("If-None-Match", "\"a\""),
        ]);
        let facts = RequestFacts::of(Method::Head, FieldList::from(&list), true);
        assert_eq!(facts.directives.max_age_s, Some(5));
        assert_eq!(facts.method, Method::Head);
        assert!(facts.has_authorization && facts.has_range);
        assert!(facts.has_precondition && facts.has_query);
    }

    /// RFC 9111 section 5.3: an invalid date has already expired.
    #[test]
    fn expires_is_absent_invalid_or_a_time() {
        let expires = |value| response(&[("Expires", value)], IgnoredFields::default()).expires;
        assert_eq!(expires("Thu, 01 Jan 1970 00:01:00 GMT"), Expires::At(60));
        assert_eq!(expires("0"), Expires::Invalid);
        assert_eq!(expires(""), Expires::Invalid);
        assert_eq!(
            response(&[], IgnoredFields::default()).expires,
            Expires::Absent
        );
    }

    /// RFC 9213 section 2.2: `Cache-Control` and `Expires` are ignored beside a valid targeted field.
    #[test]
    fn a_targeted_field_replaces_cache_control_and_expires() {
        let list = [
            ("Cache-Control", "no-store"),
            ("CDN-Cache-Control", "max-age=60"),
            ("Expires", "0"),
        ];
        let facts = response(&list, IgnoredFields::default());
        assert!(facts.is_targeted);
        assert_eq!(facts.expires, Expires::Absent);
        assert_eq!(facts.directives.set, DirectiveSet::default());
        assert_eq!(facts.directives.max_age_s, Some(60));
    }

    #[test]
    fn ignored_fields_have_no_effect() {
        let list = [
            ("Cache-Control", "max-age=60"),
            ("Expires", "0"),
            ("Set-Cookie", "a=b"),
            ("Vary", "*"),
        ];
        let ignored = IgnoredFields {
            cache_control: true,
            expires: true,
            set_cookie: true,
            vary: true,
        };
        assert_eq!(
            response(&list, ignored).directives,
            ResponseDirectives::default()
        );
        let found = response(&list, ignored);
        assert!(found.vary.is_empty() && !found.has_set_cookie && !found.is_explicitly_cacheable());
        let found = response(&list, IgnoredFields::default());
        assert!(found.vary == Vary::Any && found.has_set_cookie && found.is_explicitly_cacheable());
    }

    /// RFC 9111 section 5.2.2.4: a qualified directive concerns the named fields alone.
    #[test]
    fn a_cookie_excluded_from_storage_does_not_count() {
        for value in ["no-cache=\"Set-Cookie\"", "private=\"set-cookie, a\""] {
            let list = [("Cache-Control", value), ("Set-Cookie", "a=b")];
            assert!(
                !response(&list, IgnoredFields::default()).has_set_cookie,
                "{value}"
            );
        }
    }
}
