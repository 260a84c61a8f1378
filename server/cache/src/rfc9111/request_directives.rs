//! `Cache-Control` and `Pragma` of requests.
//!
//! The directives are preferences: an invalid one is ignored, and a cache may ignore all by using the default value.
//! Source: RFC 9111 sections 5.2.1, 5.4; RFC 5861 section 4.

use engines::http::FieldId;

use super::directives::{
    Argument, DELTA_SECONDS_MAX, DirectiveSet, NAME_BYTES, lower_name, split_directive,
};
use super::field_list::{Elements, FieldList};

/// Cache directives of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestDirectives {
    /// Directives without an argument: `no-cache`, `no-store`, `no-transform`, `only-if-cached`.
    pub set: DirectiveSet,
    /// `max-age`: the largest age that the client prefers, in seconds.
    pub max_age_s: Option<u32>,
    /// `max-stale`: seconds behind the end of freshness; [`DELTA_SECONDS_MAX`] without an argument.
    pub max_stale_s: Option<u32>,
    /// `min-fresh`: seconds for which the response has to stay fresh.
    pub min_fresh_s: Option<u32>,
    /// `stale-if-error`: seconds behind the end of freshness, after an error of the server (RFC 5861 section 4).
    pub stale_if_error_s: Option<u32>,
}

impl RequestDirectives {
    /// Whether the client wants no stale response: it has `max-age` or `min-fresh`.
    #[must_use]
    pub fn wants_fresh(&self) -> bool {
        self.max_age_s.is_some() || self.min_fresh_s.is_some()
    }

    /// Parses the fields of a request. `Pragma: no-cache` is `no-cache` if there is no `Cache-Control`.
    #[must_use]
    pub fn of(request: FieldList<'_>) -> Self {
        let mut directives = Self::default();
        let values = request.by_id(FieldId::CacheControl);
        for (name, argument) in values.flat_map(Elements::new).filter_map(split_directive) {
            directives.add(name, &argument);
        }
        if !request.has(FieldId::CacheControl) {
            let mut pragma = request.by_id(FieldId::Pragma).flat_map(Elements::new);
            if pragma.any(|element| element.eq_ignore_ascii_case(b"no-cache")) {
                directives.set = DirectiveSet::NO_CACHE;
            }
        }
        directives
    }

    /// Adds a directive. Of several with one name the first counts (RFC 9111 section 4.2.1).
    fn add(&mut self, name: &[u8], argument: &Argument<'_>) {
        let seconds = argument.delta_seconds();
        let first = |slot: &mut Option<u32>, value: Option<u32>| *slot = slot.or(value);
        match lower_name(name, &mut [0; NAME_BYTES]) {
            b"no-store" => self.set = self.set.with(DirectiveSet::NO_STORE),
            b"no-cache" => self.set = self.set.with(DirectiveSet::NO_CACHE),
            b"no-transform" => self.set = self.set.with(DirectiveSet::NO_TRANSFORM),
            b"only-if-cached" => self.set = self.set.with(DirectiveSet::ONLY_IF_CACHED),
            b"max-age" => first(&mut self.max_age_s, seconds),
            b"max-stale" => {
                let any = (*argument == Argument::None).then_some(DELTA_SECONDS_MAX);
                first(&mut self.max_stale_s, seconds.or(any));
            }
            b"min-fresh" => first(&mut self.min_fresh_s, seconds),
            b"stale-if-error" => first(&mut self.stale_if_error_s, seconds),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engines::http::Fields;

    fn of(fields: &[(&str, &str)]) -> RequestDirectives {
        let mut list = Fields::default();
        for (name, value) in fields {
            list.push(name.as_bytes(), value.as_bytes());
        }
        RequestDirectives::of(FieldList::from(&list))
    }

    fn control(value: &str) -> RequestDirectives {
        of(&[("Cache-Control", value)])
    }

    fn set(set: DirectiveSet) -> RequestDirectives {
        RequestDirectives {
            set,
            ..RequestDirectives::default()
        }
    }

    /// RFC 9111 section 5.2.1.
    #[test]
    fn directives_of_requests_are_read() {
        let all = control(
            "No-Cache, no-STORE, no-transform, only-if-cached, max-age=1, max-stale=2, min-fresh=3, \
             stale-if-error=4, x, y=\"z, max-age=9\"",
        );
        let flags = DirectiveSet::NO_CACHE
            .with(DirectiveSet::NO_STORE)
            .with(DirectiveSet::NO_TRANSFORM)
            .with(DirectiveSet::ONLY_IF_CACHED);
        let expected = RequestDirectives {
            set: flags,
            max_age_s: Some(1),
            max_stale_s: Some(2),
            min_fresh_s: Some(3),
            stale_if_error_s: Some(4),
        };
        assert_eq!(all, expected);
    }

    /// RFC 9111 section 5.2.1.2: without a value, any age.
    #[test]
    fn max_stale_needs_no_argument() {
        assert_eq!(control("max-stale").max_stale_s, Some(DELTA_SECONDS_MAX));
        assert_eq!(control("max-stale=5").max_stale_s, Some(5));
        for value in ["max-stale=", "max-stale=x", "max-stale=-1", "max-stale x"] {
            assert_eq!(control(value), RequestDirectives::default(), "{value}");
        }
    }

    #[test]
    fn the_first_valid_value_counts() {
        assert_eq!(control("max-age=5, max-age=1").max_age_s, Some(5));
        assert_eq!(control("max-age=x, max-age=1").max_age_s, Some(1));
        let lines = [
            ("Cache-Control", "min-fresh=1"),
            ("cache-control", "min-fresh=2"),
        ];
        assert_eq!(of(&lines).min_fresh_s, Some(1));
    }

    /// RFC 9111 section 5.4.
    #[test]
    fn pragma_counts_only_without_cache_control() {
        assert_eq!(of(&[("Pragma", "No-Cache")]), set(DirectiveSet::NO_CACHE));
        assert_eq!(
            of(&[("Pragma", "x, no-cache")]),
            set(DirectiveSet::NO_CACHE)
        );
        assert_eq!(of(&[("Pragma", "x")]), RequestDirectives::default());
        assert_eq!(
            of(&[("Pragma", "no-cache=1")]),
            RequestDirectives::default()
        );
        let both = [("Pragma", "no-cache"), ("Cache-Control", "max-age=60")];
        assert_eq!(of(&both).set, DirectiveSet::default());
    }
}
