//! The contexts of directives.
//!
//! A [`Contexts`] is a set: a table row has the contexts that allow its directive, a walk has the single current context. The
//! names are those of nginx's documentation ("if in location").
//!
//! Source: the "Context" line of every directive of the nginx documentation.

use std::fmt;

/// A set of configuration contexts.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Contexts(u32);

macro_rules! contexts {
    ($($name:ident = $bit:literal, $text:literal;)*) => {
        impl Contexts {
            $(#[doc = concat!("The context `", $text, "`.")] pub const $name: Self = Self(1 << $bit);)*
            const NAMES: &[(Self, &'static str)] = &[$((Self::$name, $text)),*];
        }
    };
}

contexts! {
    MAIN = 0, "main";
    EVENTS = 1, "events";
    HTTP = 2, "http";
    SERVER = 3, "server";
    LOCATION = 4, "location";
    IF_IN_SERVER = 5, "if in server";
    IF_IN_LOCATION = 6, "if in location";
    LIMIT_EXCEPT = 7, "limit_except";
    UPSTREAM = 8, "upstream";
    TYPES = 9, "types";
    STREAM = 10, "stream";
    STREAM_SERVER = 11, "server in stream";
    STREAM_UPSTREAM = 12, "upstream in stream";
    MAIL = 13, "mail";
    MAIL_SERVER = 14, "server in mail";
    MODULE_BLOCK = 15, "a block of its module";
}

impl Contexts {
    /// Nowhere.
    pub const NONE: Self = Self(0);
    /// Everywhere, as `include`.
    pub const ANY: Self = Self(u32::MAX);
    /// `http` and `server`.
    pub const HTTP_SERVER: Self = Self::HTTP.or(Self::SERVER);
    /// `http`, `server` and `location`: the contexts of most directives.
    pub const HTTP_SERVER_LOCATION: Self = Self::HTTP_SERVER.or(Self::LOCATION);
    /// `http`, `server`, `location` and `if in location`.
    pub const HTTP_TO_IF: Self = Self::HTTP_SERVER_LOCATION.or(Self::IF_IN_LOCATION);

    /// The union of both sets, usable in a `const` table, unlike `|`.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the sets have a context in common; with one context on either side, whether it is in the other.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl std::ops::BitOr for Contexts {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.or(other)
    }
}

impl fmt::Display for Contexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::ANY {
            return f.write_str("any");
        }
        let mut comma = "";
        for (context, name) in Self::NAMES {
            if self.contains(*context) {
                write!(f, "{comma}{name}")?;
                comma = ", ";
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Contexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Contexts({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_shown_with_the_documented_names_in_order() {
        let set = Contexts::LOCATION | Contexts::HTTP | Contexts::IF_IN_LOCATION;
        assert_eq!(set.to_string(), "http, location, if in location");
        assert_eq!(Contexts::ANY.to_string(), "any");
        assert_eq!(Contexts::NONE.to_string(), "");
    }

    #[test]
    fn contains_asks_for_one_common_context() {
        assert!(Contexts::HTTP_SERVER.contains(Contexts::SERVER));
        assert!(!Contexts::HTTP_SERVER.contains(Contexts::LOCATION));
        assert!(Contexts::ANY.contains(Contexts::MODULE_BLOCK));
        assert!(!Contexts::NONE.contains(Contexts::ANY));
    }
}
