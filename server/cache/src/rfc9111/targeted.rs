//! Targeted cache control: `CDN-Cache-Control`, a dictionary with the directives of `Cache-Control`.
//!
//! A valid targeted field replaces `Cache-Control` and `Expires` of the response. Source: RFC 9213 section 2.

use std::borrow::Cow;

use super::directives::Argument;
use super::field_list::FieldList;
use super::response_directives::ResponseDirectives;
use super::structured_field::{Item, parse_dictionary};

/// The name of the targeted field for gateways and networks of caches (RFC 9213 section 3).
pub const CDN_CACHE_CONTROL: &[u8] = b"CDN-Cache-Control";

/// Parses the first of the fields `targets` that is valid and not empty.
///
/// Returns `None` if there is none. A field is also invalid if a known directive has a value of a wrong type (RFC 9213
/// section 2.1): its meaning is unknown, and `Cache-Control` applies.
#[must_use]
pub fn targeted_directives(
    response: FieldList<'_>,
    targets: &[&[u8]],
) -> Option<ResponseDirectives> {
    let mut targets = targets.iter();
    targets.find_map(|name| {
        let members = parse_dictionary(response.named(name))?;
        let mut directives = ResponseDirectives::default();
        for (key, item) in &members {
            if let Some(argument) = argument(key, item)? {
                directives.add(key, &argument);
            }
        }
        (!members.is_empty()).then_some(directives)
    })
}

/// The argument of a known directive, `Some(None)` for an unknown one, `None` for a wrong type.
#[expect(
    clippy::option_option,
    reason = "unknown directives are no error; wrong types are"
)]
fn argument<'a>(key: &[u8], item: &'a Item) -> Option<Option<Argument<'a>>> {
    match key {
        b"max-age" | b"s-maxage" | b"stale-while-revalidate" | b"stale-if-error" => match item {
            Item::Integer(seconds) if *seconds >= 0 => {
                let text = seconds.to_string().into_bytes();
                Some(Some(Argument::Text(Cow::Owned(text))))
            }
            _ => None,
        },
        b"no-cache" | b"private" => match item {
            Item::Boolean(true) => Some(Some(Argument::None)),
            Item::String(names) | Item::Token(names) => {
                Some(Some(Argument::Text(Cow::Borrowed(names))))
            }
            _ => None,
        },
        b"no-store" | b"no-transform" | b"must-revalidate" | b"proxy-revalidate" | b"public"
        | b"must-understand" | b"immutable" => {
            (*item == Item::Boolean(true)).then_some(Some(Argument::None))
        }
        _ => Some(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engines::http::Fields;

    use super::super::{DELTA_SECONDS_MAX, DirectiveSet};

    fn of(fields: &[(&str, &str)], targets: &[&[u8]]) -> Option<ResponseDirectives> {
        let mut list = Fields::default();
        for (name, value) in fields {
            list.push(name.as_bytes(), value.as_bytes());
        }
        targeted_directives(FieldList::from(&list), targets)
    }

    fn cdn(value: &str) -> Option<ResponseDirectives> {
        of(&[("CDN-Cache-Control", value)], &[CDN_CACHE_CONTROL])
    }

    /// RFC 9213 section 2.1.
    #[test]
    fn directives_are_members_of_a_dictionary() {
        let all =
            cdn("max-age=60;x=1, no-cache=\"A, b\", private, foobar=(1 2), public").expect("valid");
        assert_eq!(all.max_age_s, Some(60));
        assert_eq!(
            all.no_cache_fields,
            [Box::from(&b"a"[..]), Box::from(&b"b"[..])]
        );
        assert_eq!(all.set, DirectiveSet::PRIVATE.with(DirectiveSet::PUBLIC));
        let large = cdn("max-age=99999999999").expect("valid");
        assert_eq!(large.max_age_s, Some(DELTA_SECONDS_MAX));
        assert_eq!(cdn("foo"), Some(ResponseDirectives::default()));
        assert_eq!(
            cdn("max-age=1, max-age=2").expect("valid").max_age_s,
            Some(2)
        );
    }

    /// RFC 9213 section 2.1: empty and invalid fields are ignored.
    #[test]
    fn invalid_fields_are_ignored() {
        for value in [
            "",
            " ",
            "max-age=10000, &&&&&",
            "max-age=\"10000\"",
            "max-age=-1",
            "max-age=1.5",
            "max-age",
            "max-age =100",
            "max-age= 100",
            "MaX-aGe=3600",
            "max-age=1000000000000000",
            "no-store=1",
            "no-store=?0",
            "private=1",
            "max-age=1,",
        ] {
            assert_eq!(cdn(value), None, "{value}");
        }
        assert_eq!(
            of(&[("Cache-Control", "max-age=1")], &[CDN_CACHE_CONTROL]),
            None
        );
    }

    /// RFC 9213 section 2.2: the first valid field of the target list.
    #[test]
    fn the_first_valid_target_counts() {
        let fields = [
            ("CDN-Cache-Control", "max-age=1"),
            ("Own-Cache-Control", "max-age=2"),
            ("Broken-Cache-Control", "max-age"),
        ];
        let own: &[u8] = b"own-cache-control";
        let broken: &[u8] = b"broken-cache-control";
        let age = |targets: &[&[u8]]| of(&fields, targets).and_then(|found| found.max_age_s);
        assert_eq!(age(&[own, CDN_CACHE_CONTROL]), Some(2));
        assert_eq!(age(&[broken, CDN_CACHE_CONTROL, own]), Some(1));
        assert_eq!(age(&[]), None);
    }
}
