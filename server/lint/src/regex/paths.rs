//! The paths through an expression, each as a list of items, to examine its prefix and suffix.
//!
//! A repetition is taken zero times (if allowed) and once; a repeated single set is kept as such. This is enough to examine
//! both ends of a path.

use super::Ast;
use crate::bytes::ByteSet;

/// An element of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Item {
    /// One byte, letters in lower case.
    Byte(u8),
    /// One byte of several, or any number of them.
    Set(ByteSet, bool),
    Start,
    End,
    /// A condition, which is ignored.
    Assert,
}

/// Computes all paths through an expression.
pub(crate) struct Paths;

impl Paths {
    /// Returns the paths; `None` if there are too many.
    pub(crate) fn of(ast: &Ast) -> Option<Vec<Vec<Item>>> {
        paths(ast)
    }
}

fn paths(ast: &Ast) -> Option<Vec<Vec<Item>>> {
    Some(match ast {
        Ast::Empty => vec![Vec::new()],
        Ast::Start => vec![vec![Item::Start]],
        Ast::End => vec![vec![Item::End]],
        Ast::Assert => vec![vec![Item::Assert]],
        Ast::Set(set) => vec![vec![match set.single() {
            Some(byte) => Item::Byte(byte),
            None => Item::Set(*set, false),
        }]],
        Ast::Group { inner, .. } | Ast::Atomic(inner) => paths(inner)?,
        Ast::Alternate(list) => {
            let mut all = Vec::new();
            for child in list {
                all.extend(paths(child)?);
                if all.len() > PATHS_MAX {
                    return None;
                }
            }
            all
        }
        Ast::Concat(list) => {
            let mut all = vec![Vec::new()];
            for child in list {
                all = joined(&all, &paths(child)?)?;
            }
            all
        }
        Ast::Repeat { inner, min, max } => {
            let mut once = match inner.as_ref() {
                Ast::Set(set) if max.is_none_or(|max| max > 1) => {
                    vec![vec![Item::Set(*set, true)]]
                }
                inner => paths(inner)?,
            };
            if *min == 0 {
                once.push(Vec::new());
            }
            once
        }
    })
}

fn joined(before: &[Vec<Item>], after: &[Vec<Item>]) -> Option<Vec<Vec<Item>>> {
    if before.len() * after.len() > PATHS_MAX {
        return None;
    }
    let mut all = Vec::new();
    for a in before {
        for b in after {
            all.push([a.as_slice(), b.as_slice()].concat());
        }
    }
    Some(all)
}

/// Most paths; expressions with more are not analyzed.
const PATHS_MAX: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regex::Regex;

    fn shown(pattern: &str) -> Option<Vec<String>> {
        let regex = Regex::parse(pattern.as_bytes(), true).expect("the expression is understood");
        let paths = Paths::of(&regex.ast)?;
        let item = |item: &Item| match item {
            Item::Byte(byte) => (*byte as char).to_string(),
            Item::Set(_, many) => if *many { "+" } else { "." }.to_owned(),
            Item::Start => "^".to_owned(),
            Item::End => "$".to_owned(),
            Item::Assert => "!".to_owned(),
        };
        Some(
            paths
                .iter()
                .map(|path| path.iter().map(item).collect())
                .collect(),
        )
    }

    #[test]
    fn alternatives_and_options_are_ways() {
        let expected = ["^abX", "^acX", "^aX"].map(str::to_lowercase);
        assert_eq!(shown("^a(b|c)?x").expect("few"), expected);
        assert_eq!(shown("[a-z]*.$").expect("few"), ["+.$", ".$"]);
    }

    #[test]
    fn too_many_ways_are_not_judged() {
        assert_eq!(
            shown(&"(a|b)".repeat(9)).map(|paths| paths.len()),
            Some(PATHS_MAX)
        );
        assert!(shown(&"(a|b)".repeat(10)).is_none());
    }
}
