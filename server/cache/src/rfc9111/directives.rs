//! Cache directives as text: names, arguments, delta-seconds.
//!
//! Well-formed directives have their exact meaning. A malformed one keeps its name, so that a restriction still applies; a
//! permission needs correct syntax. Source: RFC 9111 sections 1.2.2, 4.2.1, 5.2.

use std::borrow::Cow;

use engines::http::is_token;

use super::field_list::unquoted;

/// The largest delta-seconds, 2^31, which represents infinity. Greater values count as this one (RFC 9111 section
/// 1.2.2).
pub const DELTA_SECONDS_MAX: u32 = 1 << 31;

/// Directives without an argument, as a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectiveSet(u16);

impl DirectiveSet {
    /// `no-store`, of requests and responses.
    pub const NO_STORE: Self = Self(1);
    /// `no-cache` without field names, of requests and responses.
    pub const NO_CACHE: Self = Self(1 << 1);
    /// `no-transform`, of requests and responses.
    pub const NO_TRANSFORM: Self = Self(1 << 2);
    /// `only-if-cached`, of requests.
    pub const ONLY_IF_CACHED: Self = Self(1 << 3);
    /// `private` without field names.
    pub const PRIVATE: Self = Self(1 << 4);
    /// `public`.
    pub const PUBLIC: Self = Self(1 << 5);
    /// `must-revalidate`.
    pub const MUST_REVALIDATE: Self = Self(1 << 6);
    /// `proxy-revalidate`.
    pub const PROXY_REVALIDATE: Self = Self(1 << 7);
    /// `must-understand`.
    pub const MUST_UNDERSTAND: Self = Self(1 << 8);
    /// `immutable` (RFC 8246). It concerns caches of browsers alone.
    pub const IMMUTABLE: Self = Self(1 << 9);

    /// Whether all directives of `other` are in this set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether one of the directives of `other` is in this set.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the directives of both sets.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The argument of a directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Argument<'a> {
    /// There is none.
    None,
    /// A token, or the text of a quoted string. Both forms are accepted for every directive (RFC 9111 section 5.2).
    Text(Cow<'a, [u8]>),
    /// The text behind the name is not an argument.
    Malformed,
}

impl Argument<'_> {
    /// The argument as delta-seconds; `None` if it is none.
    pub(super) fn delta_seconds(&self) -> Option<u32> {
        match self {
            Self::Text(text) => delta_seconds(text),
            Self::None | Self::Malformed => None,
        }
    }
}

/// Splits an element of `Cache-Control` into name and argument. Returns `None` if it does not begin with a name.
pub(super) fn split_directive(element: &[u8]) -> Option<(&[u8], Argument<'_>)> {
    let is_name = |byte: &&u8| is_token(std::slice::from_ref(*byte));
    let (name, rest) = element.split_at(element.iter().take_while(is_name).count());
    let argument = match rest {
        [] => Argument::None,
        [b'=', value @ ..] if is_token(value) => Argument::Text(Cow::Borrowed(value)),
        [b'=', value @ ..] => {
            unquoted(value).map_or(Argument::Malformed, |text| Argument::Text(Cow::Owned(text)))
        }
        _ => Argument::Malformed,
    };
    (!name.is_empty()).then_some((name, argument))
}

/// Bytes of the longest known name, `stale-while-revalidate`, and some more.
pub(super) const NAME_BYTES: usize = 24;

/// Returns a name in lower case, in `buffer`; empty if it is longer than all known ones.
pub(super) fn lower_name<'a>(name: &[u8], buffer: &'a mut [u8; NAME_BYTES]) -> &'a [u8] {
    let Some(lower) = buffer.get_mut(..name.len()) else {
        return b"";
    };
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    lower
}

/// Parses delta-seconds, saturating at [`DELTA_SECONDS_MAX`]. Returns `None` if `text` has other bytes than digits, or
/// none.
#[must_use]
pub fn delta_seconds(text: &[u8]) -> Option<u32> {
    if text.is_empty() {
        return None;
    }
    let seconds = text.iter().try_fold(0_u64, |seconds, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        Some((seconds * 10 + digit).min(u64::from(DELTA_SECONDS_MAX)))
    })?;
    Some(seconds as u32)
}

/// A difference of times as delta-seconds: 0 if negative, at most [`DELTA_SECONDS_MAX`].
pub(super) fn saturated(seconds: i64) -> u32 {
    seconds.clamp(0, i64::from(DELTA_SECONDS_MAX)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> Argument<'_> {
        Argument::Text(Cow::Borrowed(value.as_bytes()))
    }

    /// RFC 9111 section 5.2: `token [ "=" ( token / quoted-string ) ]`.
    #[test]
    fn directives_have_a_name_and_perhaps_an_argument() {
        for (element, name, argument) in [
            ("no-store", "no-store", Argument::None),
            ("max-age=5", "max-age", text("5")),
            ("max-age=\"5\"", "max-age", text("5")),
            ("no-cache=\"a, b\"", "no-cache", text("a, b")),
            ("a=\"b\\\"c\"", "a", text("b\"c")),
            ("a=\"\"", "a", text("")),
            ("a='5'", "a", text("'5'")),
            ("max-age=", "max-age", Argument::Malformed),
            ("max-age =5", "max-age", Argument::Malformed),
            ("max-age= 5", "max-age", Argument::Malformed),
            ("max-age=\"5", "max-age", Argument::Malformed),
            ("max-age=\"5\"6", "max-age", Argument::Malformed),
            ("no-store;x", "no-store", Argument::Malformed),
            ("no-store x", "no-store", Argument::Malformed),
        ] {
            let expected = Some((name.as_bytes(), argument));
            assert_eq!(split_directive(element.as_bytes()), expected, "{element}");
        }
        for element in ["", "=5", "\"no-store\"", "(a)", "\u{e9}"] {
            assert_eq!(split_directive(element.as_bytes()), None, "{element}");
        }
    }

    /// RFC 9111 section 1.2.2: greater values are 2^31, never negative ones.
    #[test]
    fn delta_seconds_saturate() {
        for (text, seconds) in [
            ("0", 0),
            ("003600", 3600),
            ("2147483647", DELTA_SECONDS_MAX - 1),
            ("2147483648", DELTA_SECONDS_MAX),
            ("2147483649", DELTA_SECONDS_MAX),
            ("4294967296", DELTA_SECONDS_MAX),
            ("18446744073709551616", DELTA_SECONDS_MAX),
        ] {
            assert_eq!(delta_seconds(text.as_bytes()), Some(seconds), "{text}");
        }
        assert_eq!(delta_seconds(&[b'9'; 10_000]), Some(DELTA_SECONDS_MAX));
        for text in ["", "-1", "+1", "1.0", "3600a", "a3600", " 1", "1 ", "0x1"] {
            assert_eq!(delta_seconds(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn names_are_lowered_up_to_the_longest() {
        let lower = |name: &str| lower_name(name.as_bytes(), &mut [0; NAME_BYTES]).to_vec();
        assert_eq!(lower("No-Store"), b"no-store");
        assert_eq!(lower(&"A".repeat(NAME_BYTES)), [b'a'; NAME_BYTES]);
        assert_eq!(lower(&"A".repeat(NAME_BYTES + 1)), b"");
    }

    #[test]
    fn differences_saturate_on_both_sides() {
        assert_eq!(saturated(-1), 0);
        assert_eq!(saturated(i64::MIN), 0);
        assert_eq!(saturated(i64::MAX), DELTA_SECONDS_MAX);
        assert_eq!(saturated(5), 5);
    }

    #[test]
    fn sets_contain_and_intersect() {
        let both = DirectiveSet::PUBLIC.with(DirectiveSet::NO_CACHE);
        assert!(both.contains(DirectiveSet::PUBLIC) && both.contains(both));
        assert!(!DirectiveSet::PUBLIC.contains(both) && DirectiveSet::PUBLIC.intersects(both));
        assert!(!DirectiveSet::PRIVATE.intersects(both));
    }
}
