//! The number of arguments of a directive.
//!
//! A set of counts, named as in nginx's command tables: `TAKE12` is one or two, `ONE_MORE` at least one. `FLAG` is one argument
//! with the value `on` or `off`.
//!
//! Source: nginx development guide, "Configuration directives".

/// A set of argument counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arity(u16);

/// Counts above this one are only reached by the open-ended sets.
const TAKE_MAX: usize = 7;
const FLAG_BIT: u16 = 1 << 8;
const ONE_MORE_BIT: u16 = 1 << 9;
const TWO_MORE_BIT: u16 = 1 << 10;
const ANY_BIT: u16 = 1 << 11;

impl Arity {
    /// No argument.
    pub const NOARGS: Self = Self(1);
    /// One argument.
    pub const TAKE1: Self = Self(1 << 1);
    /// No argument or one.
    pub const TAKE01: Self = Self::NOARGS.or(Self::TAKE1);
    /// Two arguments.
    pub const TAKE2: Self = Self(1 << 2);
    /// Three arguments.
    pub const TAKE3: Self = Self(1 << 3);
    /// Four arguments.
    pub const TAKE4: Self = Self(1 << 4);
    /// One or two arguments.
    pub const TAKE12: Self = Self::TAKE1.or(Self::TAKE2);
    /// No argument to two.
    pub const TAKE012: Self = Self::TAKE01.or(Self::TAKE2);
    /// Two or three arguments.
    pub const TAKE23: Self = Self::TAKE2.or(Self::TAKE3);
    /// One to three arguments.
    pub const TAKE123: Self = Self::TAKE12.or(Self::TAKE3);
    /// One to four arguments.
    pub const TAKE1234: Self = Self::TAKE123.or(Self::TAKE4);
    /// One argument, `on` or `off`.
    pub const FLAG: Self = Self(FLAG_BIT);
    /// At least one argument.
    pub const ONE_MORE: Self = Self(ONE_MORE_BIT);
    /// At least two arguments.
    pub const TWO_MORE: Self = Self(TWO_MORE_BIT);
    /// Any number of arguments; the directive checks for itself.
    pub const ANY: Self = Self(ANY_BIT);

    /// The union of both sets.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether a directive of this arity may have `count` arguments.
    #[must_use]
    pub const fn accepts(self, count: usize) -> bool {
        self.0 & ANY_BIT != 0
            || (self.0 & FLAG_BIT != 0 && count == 1)
            || (self.0 & ONE_MORE_BIT != 0 && count >= 1)
            || (self.0 & TWO_MORE_BIT != 0 && count >= 2)
            || (count <= TAKE_MAX && self.0 & (1 << count) != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(arity: Arity) -> Vec<usize> {
        (0..10).filter(|count| arity.accepts(*count)).collect()
    }

    #[test]
    fn each_set_accepts_its_counts() {
        assert_eq!(accepted(Arity::NOARGS), [0]);
        assert_eq!(accepted(Arity::TAKE23), [2, 3]);
        assert_eq!(accepted(Arity::TAKE1234), [1, 2, 3, 4]);
        assert_eq!(accepted(Arity::NOARGS.or(Arity::TAKE2)), [0, 2]);
        assert_eq!(accepted(Arity::FLAG), [1]);
        assert_eq!(accepted(Arity::ONE_MORE), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(accepted(Arity::TWO_MORE), [2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(accepted(Arity::ANY).len(), 10);
    }
}
