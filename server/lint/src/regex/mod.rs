//! Regular expressions as trees: the texts that an expression may match.
//!
//! [`Regex::parse`] reads the subset of PCRE that configurations use. An expression with other syntax (recursion, conditions,
//! back references, verbs, extended mode) yields no tree, and rules ignore it.
//!
//! Source: the documentation of PCRE2, "pcre2pattern".

mod class;
mod loops;
mod parse;
mod paths;

pub(crate) use loops::Loop;
pub(crate) use paths::{Item, Paths};

use crate::bytes::ByteSet;

/// An expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ast {
    /// Nothing, which always matches.
    Empty,
    /// One byte of a set.
    Set(ByteSet),
    /// `^`, `\A`
    Start,
    /// `$`, `\z`, `\Z`
    End,
    /// `\b`, a lookaround: matches the empty text under a condition.
    Assert,
    /// A sequence.
    Concat(Vec<Self>),
    /// Alternatives.
    Alternate(Vec<Self>),
    /// The bounds of the number of repetitions; `None` for no maximum.
    Repeat {
        inner: Box<Self>,
        min: u32,
        max: Option<u32>,
    },
    /// A capture, numbered from 1.
    Group { index: usize, inner: Box<Self> },
    /// A match that is never backtracked into: `(?>...)`, `a++`.
    Atomic(Box<Self>),
}

/// An expression that was read.
#[derive(Debug, Clone)]
pub(crate) struct Regex {
    pub(crate) ast: Ast,
    /// The names of captures and their numbers.
    names: Vec<(String, usize)>,
}

impl Regex {
    /// Reads an expression; `None` if its syntax is unknown or wrong.
    pub(crate) fn parse(pattern: &[u8], caseless: bool) -> Option<Self> {
        parse::parse(pattern, caseless)
    }

    /// The number of a named capture, as a variable: in any case.
    pub(crate) fn group_number(&self, name: &str) -> Option<usize> {
        let mut names = self.names.iter();
        let found = names.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, index)| *index)
    }

    /// The contents of the capture with a number; 0 is the whole expression.
    pub(crate) fn group(&self, index: usize) -> Option<&Ast> {
        if index == 0 {
            return Some(&self.ast);
        }
        self.ast.find(index)
    }
}

impl Ast {
    fn children(&self) -> &[Self] {
        match self {
            Self::Concat(list) | Self::Alternate(list) => list,
            Self::Repeat { inner, .. } | Self::Group { inner, .. } | Self::Atomic(inner) => {
                std::slice::from_ref(inner)
            }
            _ => &[],
        }
    }

    fn find(&self, wanted: usize) -> Option<&Self> {
        match self {
            Self::Group { index, inner } if *index == wanted => Some(inner),
            _ => self.children().iter().find_map(|child| child.find(wanted)),
        }
    }

    /// The possible bytes of a match.
    pub(crate) fn bytes(&self) -> ByteSet {
        match self {
            Self::Set(set) => *set,
            _ => self
                .children()
                .iter()
                .fold(ByteSet::NONE, |all, child| all.or(child.bytes())),
        }
    }

    /// Whether it may match nothing.
    pub(crate) fn nullable(&self) -> bool {
        match self {
            Self::Set(_) => false,
            Self::Concat(list) => list.iter().all(Self::nullable),
            Self::Alternate(list) => list.iter().any(Self::nullable),
            Self::Repeat { inner, min, .. } => *min == 0 || inner.nullable(),
            Self::Group { inner, .. } | Self::Atomic(inner) => inner.nullable(),
            Self::Empty | Self::Start | Self::End | Self::Assert => true,
        }
    }

    /// The possible first bytes of a match.
    pub(crate) fn first(&self) -> ByteSet {
        match self {
            Self::Set(set) => *set,
            Self::Concat(list) => {
                let mut all = ByteSet::NONE;
                for child in list {
                    all = all.or(child.first());
                    if !child.nullable() {
                        break;
                    }
                }
                all
            }
            _ => self
                .children()
                .iter()
                .fold(ByteSet::NONE, |all, child| all.or(child.first())),
        }
    }

    /// Whether everything it matches begins with a byte.
    pub(crate) fn begins_with(&self, byte: u8) -> bool {
        !self.nullable() && self.first() == ByteSet::of(byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regex(pattern: &str) -> Regex {
        Regex::parse(pattern.as_bytes(), false).expect("the expression is understood")
    }

    #[test]
    fn captures_are_found_by_number_and_name() {
        let regex = regex(r"^/(?:x|(a+))/(?<id>[0-9]+)$");
        assert_eq!(regex.group_number("id"), Some(2));
        assert_eq!(
            regex.group(2).map(Ast::bytes),
            Some(ByteSet::range(b'0', b'9'))
        );
        assert_eq!(regex.group(1).map(Ast::bytes), Some(ByteSet::of(b'a')));
        assert!(regex.group(3).is_none());
    }

    #[test]
    fn what_a_capture_begins_with_is_known() {
        for (pattern, expected) in [("(/.*)", true), ("(/.*)?", false), ("(/?a)", false)] {
            let regex = regex(&format!("x{pattern}"));
            assert_eq!(
                regex.ast.children()[1].begins_with(b'/'),
                expected,
                "{pattern}"
            );
        }
    }
}
