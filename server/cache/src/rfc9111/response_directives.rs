//! `Cache-Control` of responses.
//!
//! Restrictions apply even if they are malformed, permissions only if they are not. An invalid number of seconds is 0,
//! so that the response is stale. Source: RFC 9111 sections 4.2.1, 5.2.2; RFC 5861 section 3; RFC 8246.

use engines::http::{FieldId, is_token};

use super::directives::{Argument, DirectiveSet, NAME_BYTES, lower_name, split_directive};
use super::field_list::{Elements, FieldList};

/// Cache directives of a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseDirectives {
    /// Directives without an argument; `no-cache` and `private` only if they name no fields.
    pub set: DirectiveSet,
    /// `max-age`, in seconds; 0 if it is invalid.
    pub max_age_s: Option<u32>,
    /// `s-maxage`, in seconds; 0 if it is invalid.
    pub s_maxage_s: Option<u32>,
    /// `s-maxage` has valid seconds, so that it is also a permission (RFC 9111 section 5.2.2.10).
    pub has_valid_s_maxage: bool,
    /// `must-revalidate` has no argument, so that it is also a permission (RFC 9111 section 3.5).
    pub has_valid_must_revalidate: bool,
    /// `stale-while-revalidate`, in seconds behind the end of freshness; 0 if it is invalid.
    pub stale_while_revalidate_s: Option<u32>,
    /// `stale-if-error`, in seconds behind the end of freshness; 0 if it is invalid.
    pub stale_if_error_s: Option<u32>,
    /// Names of fields in `no-cache="..."`, in lower case.
    pub no_cache_fields: Vec<Box<[u8]>>,
    /// Names of fields in `private="..."`, in lower case.
    pub private_fields: Vec<Box<[u8]>>,
}

impl ResponseDirectives {
    /// Parses the `Cache-Control` fields of a response.
    #[must_use]
    pub fn of(response: FieldList<'_>) -> Self {
        let mut directives = Self::default();
        let values = response.by_id(FieldId::CacheControl);
        for (name, argument) in values.flat_map(Elements::new).filter_map(split_directive) {
            directives.add(lower_name(name, &mut [0; NAME_BYTES]), &argument);
        }
        directives
    }

    /// Adds a directive with its name in lower case. Of several with one name the first counts (RFC 9111 section 4.2.1).
    pub(super) fn add(&mut self, name: &[u8], argument: &Argument<'_>) {
        let seconds = argument.delta_seconds().unwrap_or(0);
        match name {
            b"max-age" => _ = self.max_age_s.get_or_insert(seconds),
            b"s-maxage" if self.s_maxage_s.is_none() => {
                self.s_maxage_s = Some(seconds);
                self.has_valid_s_maxage = argument.delta_seconds().is_some();
            }
            b"stale-while-revalidate" => {
                self.stale_while_revalidate_s.get_or_insert(seconds);
            }
            b"stale-if-error" => _ = self.stale_if_error_s.get_or_insert(seconds),
            b"no-cache" => {
                self.add_qualified(DirectiveSet::NO_CACHE, argument, |this| {
                    &mut this.no_cache_fields
                });
            }
            b"private" => {
                self.add_qualified(DirectiveSet::PRIVATE, argument, |this| {
                    &mut this.private_fields
                });
            }
            _ => {
                if let Some((flag, is_permission)) = flag(name)
                    && (!is_permission || *argument == Argument::None)
                {
                    self.set = self.set.with(flag);
                    self.has_valid_must_revalidate |=
                        flag == DirectiveSet::MUST_REVALIDATE && *argument == Argument::None;
                }
            }
        }
    }

    /// Adds `no-cache` or `private`, with or without names of fields. Names that are not tokens make it unqualified, which
    /// restricts more.
    fn add_qualified(
        &mut self,
        flag: DirectiveSet,
        argument: &Argument<'_>,
        names: impl FnOnce(&mut Self) -> &mut Vec<Box<[u8]>>,
    ) {
        let Argument::Text(list) = argument else {
            self.set = self.set.with(flag);
            return;
        };
        let mut elements = Elements::new(list).peekable();
        if elements.peek().is_none() || !elements.clone().all(is_token) {
            self.set = self.set.with(flag);
            return;
        }
        names(self).extend(elements.map(|name| name.to_ascii_lowercase().into()));
    }

    /// Whether a stale response may not be used without validation (RFC 9111 section 4.2.4): `must-revalidate`,
    /// `proxy-revalidate`, `no-cache`, or `s-maxage`, which contains `proxy-revalidate` (section 5.2.2.10).
    #[must_use]
    pub const fn forbids_stale(&self) -> bool {
        self.requires_validation() || self.s_maxage_s.is_some()
    }

    /// Whether a directive other than `s-maxage` forbids a stale response.
    pub(super) const fn requires_validation(&self) -> bool {
        self.set.intersects(
            DirectiveSet::NO_CACHE
                .with(DirectiveSet::MUST_REVALIDATE)
                .with(DirectiveSet::PROXY_REVALIDATE),
        )
    }

    /// Whether `other` differs at most in numbers of seconds. A 304 with these directives can change the times of a file in
    /// place; otherwise its response head must be replaced, since it has the other directives
    /// ([`Stored::header`](super::Stored::header)).
    #[must_use]
    pub fn differs_in_seconds_only(&self, other: &Self) -> bool {
        let without_seconds = |directives: &Self| Self {
            max_age_s: None,
            // Its presence forbids stale responses.
            s_maxage_s: directives.s_maxage_s.map(|_| 0),
            stale_while_revalidate_s: None,
            stale_if_error_s: None,
            ..directives.clone()
        };
        without_seconds(self) == without_seconds(other)
    }

    /// Whether a field is excluded from storage, by a qualified `no-cache` or `private`.
    #[must_use]
    pub fn excludes(&self, name: &[u8]) -> bool {
        let mut names = self.no_cache_fields.iter().chain(&self.private_fields);
        names.any(|other| other.eq_ignore_ascii_case(name))
    }

    /// Whether a response to a request with `Authorization` may be stored (RFC 9111 section 3.5).
    #[must_use]
    pub const fn allows_authorized(&self) -> bool {
        self.means_shared_caches() || self.has_valid_must_revalidate
    }

    /// Whether the server means shared caches: `public` or `s-maxage`, well-formed.
    pub(super) const fn means_shared_caches(&self) -> bool {
        self.set.contains(DirectiveSet::PUBLIC) || self.has_valid_s_maxage
    }
}

/// The flag of a directive without an argument, and whether it permits more than its absence does.
fn flag(name: &[u8]) -> Option<(DirectiveSet, bool)> {
    Some(match name {
        b"no-store" => (DirectiveSet::NO_STORE, false),
        b"no-transform" => (DirectiveSet::NO_TRANSFORM, false),
        b"must-revalidate" => (DirectiveSet::MUST_REVALIDATE, false),
        b"proxy-revalidate" => (DirectiveSet::PROXY_REVALIDATE, false),
        b"public" => (DirectiveSet::PUBLIC, true),
        b"must-understand" => (DirectiveSet::MUST_UNDERSTAND, true),
        b"immutable" => (DirectiveSet::IMMUTABLE, true),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use engines::http::Fields;

    use super::super::DELTA_SECONDS_MAX;

    fn lines(values: &[&str]) -> ResponseDirectives {
        let mut list = Fields::default();
        for value in values {
            list.push(b"cache-control", value.as_bytes());
        }
        ResponseDirectives::of(FieldList::from(&list))
    }

    fn control(value: &str) -> ResponseDirectives {
        lines(&[value])
    }

    fn names(list: &[Box<[u8]>]) -> Vec<&str> {
        let text = |name| std::str::from_utf8(name).expect("a token");
        list.iter().map(|name| text(&**name)).collect()
    }

    /// RFC 9111 section 5.2.2, RFC 5861 section 3, RFC 8246 section 2.
    #[test]
    fn directives_of_responses_are_read() {
        let all = control(
            "No-Store, NO-CACHE, private, public, must-revalidate, proxy-revalidate, no-transform, \
             must-understand, immutable, max-age=1, s-maxage=2, stale-while-revalidate=3, \
             stale-if-error=4",
        );
        for flag in [
            DirectiveSet::NO_STORE,
            DirectiveSet::NO_CACHE,
            DirectiveSet::PRIVATE,
            DirectiveSet::PUBLIC,
            DirectiveSet::MUST_REVALIDATE,
            DirectiveSet::PROXY_REVALIDATE,
            DirectiveSet::NO_TRANSFORM,
            DirectiveSet::MUST_UNDERSTAND,
            DirectiveSet::IMMUTABLE,
        ] {
            assert!(all.set.contains(flag), "{flag:?}");
        }
        assert_eq!((all.max_age_s, all.s_maxage_s), (Some(1), Some(2)));
        let stale = (all.stale_while_revalidate_s, all.stale_if_error_s);
        assert_eq!(stale, (Some(3), Some(4)));
    }

    /// RFC 9111 section 5.2.3.
    #[test]
    fn unknown_directives_are_ignored() {
        let known = control("foobar, x=\"max-age=5, no-store\", max-age=60, community=\"UCI\"");
        assert_eq!(known, control("max-age=60"));
        assert_eq!(
            control("max-stale=5, min-fresh=5"),
            ResponseDirectives::default()
        );
    }

    /// RFC 9111 sections 1.2.2, 4.2.1, 5.2.
    #[test]
    fn seconds_are_valid_or_zero() {
        for (value, seconds) in [
            ("max-age=3600", 3600),
            ("max-age=\"3600\"", 3600),
            ("max-age=003600", 3600),
            ("max-age=99999999999", DELTA_SECONDS_MAX),
            ("max-age=-3600", 0),
            ("max-age=3600.0", 0),
            ("max-age='3600'", 0),
            ("max-age=a3600", 0),
            ("max-age=3600a", 0),
            ("max-age", 0),
            ("max-age=", 0),
            ("max-age =3600", 0),
            ("max-age= 3600", 0),
            ("max-age=3600;x", 0),
            ("max-age=1800, max-age=1", 1800),
            ("max-age=1, max-age=1800", 1),
            ("max-age=x, max-age=1800", 0),
            ("extension=\"max-age=3600\", max-age=1", 1),
            ("max-age=1, extension=\"max-age=3600\"", 1),
            ("extension=\"max-age=3600, max-age=1", 1),
        ] {
            assert_eq!(control(value).max_age_s, Some(seconds), "{value}");
        }
        assert_eq!(lines(&["max-age=7", "max-age=1"]).max_age_s, Some(7));
        assert_eq!(control("s-maxage=x").s_maxage_s, Some(0));
    }

    /// RFC 9111 sections 5.2.2.4 and 5.2.2.7.
    #[test]
    fn no_cache_and_private_may_name_fields() {
        let two = control("no-cache=\"A, b\", private=Set-Cookie");
        assert_eq!(names(&two.no_cache_fields), ["a", "b"]);
        assert_eq!(names(&two.private_fields), ["set-cookie"]);
        assert_eq!(two.set, DirectiveSet::default());
        let separate = lines(&["no-cache=\"a\"", "no-cache=\"b\""]);
        assert_eq!(names(&separate.no_cache_fields), ["a", "b"]);
    }

    #[test]
    fn malformed_names_of_fields_restrict_the_whole_response() {
        for value in [
            "no-cache",
            "no-cache=\"\"",
            "no-cache=\" , \"",
            "no-cache=",
            "no-cache=\"a b\"",
            "no-cache=\"a",
            "no-cache=\"\u{e9}\"",
            "no-cache=\"a\", no-cache",
            "no-cache ",
            "no-cache;a",
        ] {
            let directives = control(value);
            assert!(directives.set.contains(DirectiveSet::NO_CACHE), "{value}");
        }
        assert!(control("private=\"\"").set.contains(DirectiveSet::PRIVATE));
    }

    #[test]
    fn malformed_restrictions_apply_and_malformed_permissions_do_not() {
        for value in ["no-store=x", "no-store;", "no-store x", "x=\"y, no-store"] {
            assert!(
                control(value).set.contains(DirectiveSet::NO_STORE),
                "{value}"
            );
        }
        for value in ["public=x", "must-understand=x", "immutable;", "public x"] {
            assert_eq!(control(value).set, DirectiveSet::default(), "{value}");
        }
    }

    /// RFC 9111 section 4.3.4.
    #[test]
    fn a_304_in_place_has_the_same_restrictions() {
        for (one, other, expected) in [
            ("max-age=1", "max-age=2", true),
            ("max-age=1", "", true),
            ("stale-while-revalidate=1", "stale-if-error=1", true),
            ("s-maxage=1", "s-maxage=2", true),
            ("s-maxage=1", "max-age=1", false),
            ("s-maxage=1", "s-maxage=x", false),
            ("max-age=1", "max-age=1, must-revalidate", false),
            ("no-cache", "", false),
            ("no-cache", "no-cache=\"a\"", false),
            ("private=\"a\"", "private=\"b\"", false),
        ] {
            let (one, other) = (control(one), control(other));
            assert_eq!(one.differs_in_seconds_only(&other), expected, "{other:?}");
            assert_eq!(other.differs_in_seconds_only(&one), expected, "{other:?}");
        }
    }

    /// RFC 9111 sections 3.5, 4.2.4.
    #[test]
    fn directives_forbid_stale_and_allow_authorized() {
        for (value, forbids, allows) in [
            ("max-age=1", false, false),
            ("must-revalidate", true, true),
            ("proxy-revalidate", true, false),
            ("s-maxage=1", true, true),
            ("s-maxage=\"1\"", true, true),
            ("s-maxage=0", true, true),
            ("s-maxage=x", true, false),
            ("s-maxage", true, false),
            ("s-maxage=x, s-maxage=1", true, false),
            ("s-maxage=1, s-maxage=x", true, true),
            ("must-revalidate=x", true, false),
            ("must-revalidate=x, must-revalidate", true, true),
            ("no-cache", true, false),
            ("no-cache=\"a\"", false, false),
            ("public", false, true),
            ("private", false, false),
        ] {
            let directives = control(value);
            assert_eq!(directives.forbids_stale(), forbids, "{value}");
            assert_eq!(directives.allows_authorized(), allows, "{value}");
        }
    }
}
