//! `location` as it is written: its modifier and its name.

use crate::tree::{Id, Tree};

/// The matching rule of a location.
pub(super) struct Location<'t> {
    /// `=`, `^~`, `~`, `~*`, `@` or nothing.
    pub(super) modifier: &'t str,
    /// The rest.
    pub(super) name: &'t str,
    /// Which argument the name is in.
    pub(super) argument: usize,
}

impl<'t> Location<'t> {
    /// Reads the arguments of a `location`.
    pub(super) fn of(tree: &'t Tree, id: Id) -> Option<Self> {
        if tree.name(id) != "location" {
            return None;
        }
        match tree.args(id) {
            [_, _] => Some(Self {
                modifier: tree.arg(id, 0),
                name: tree.arg(id, 1),
                argument: 1,
            }),
            [_] => {
                let text = tree.arg(id, 0);
                let marks = ["=", "^~", "~*", "~", "@"];
                let modifier = marks.into_iter().find(|mark| text.starts_with(mark));
                let modifier = modifier.unwrap_or("");
                Some(Self {
                    modifier,
                    name: &text[modifier.len()..],
                    argument: 0,
                })
            }
            _ => None,
        }
    }

    /// Selected by a prefix of the URI.
    pub(super) fn is_prefix(&self) -> bool {
        matches!(self.modifier, "" | "^~")
    }

    /// Chosen by an expression.
    pub(super) fn is_regex(&self) -> bool {
        matches!(self.modifier, "~" | "~*")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tree;

    #[test]
    fn the_modifier_may_stick_to_the_name() {
        let tree =
            tree("http { location = /a { } location ^~/b { } location /c { } location @d { } }");
        let read: Vec<_> = tree
            .http("location")
            .filter_map(|id| Location::of(&tree, id))
            .map(|location| (location.modifier, location.name, location.argument))
            .collect();
        assert_eq!(
            read,
            [
                ("=", "/a", 1),
                ("^~", "/b", 0),
                ("", "/c", 0),
                ("@", "d", 0)
            ]
        );
    }
}
