//! Possible texts of a value with variables at its use; variables are followed to their origins.
//!
//! [`ways`] follows a variable to `set`, `map` and to the captures of the expressions around its use. It returns every possible
//! composition of the value as a list of [`Piece`]s: text as written, or a run-time value with its possible contents. A value
//! that is not known to come from a client is harmless.
//!
//! The order of execution is ignored: every `set` of a variable that could have run counts.

mod client_variables;
mod parts;

pub(crate) use client_variables::{Contents, of_variable};
pub(crate) use parts::{Part, parts, variables};

use std::cell::Cell;

use crate::bytes::ByteSet;
use crate::regex::Regex;
use crate::tree::{Id, Tree};
use crate::uses::{self, Subject, Use};

/// A piece of a composition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Text of the configuration.
    Text(String),
    /// A variable (named with its `$`), described by its possible contents.
    Runtime(String, Contents),
}

/// Returns every possible composition of a value used by the directive `at`.
pub(crate) fn ways(tree: &Tree, at: Id, value: &str) -> Vec<Vec<Piece>> {
    let steps = Cell::new(0);
    Follow { tree, steps }.value(at, value, 0)
}

/// The first variable, with its `$`, that may add one of the bytes to a value.
pub(crate) fn brings(tree: &Tree, at: Id, value: &str, bytes: &[u8]) -> Option<String> {
    let all = ways(tree, at, value).into_iter().flatten();
    all.filter_map(|piece| match piece {
        Piece::Runtime(name, contents) if contents.bytes.has_any(bytes) => Some(name),
        _ => None,
    })
    .next()
}

/// The first variable, with its `$`, by which a client controls a value, and its possible contents.
pub(crate) fn from_client(tree: &Tree, at: Id, value: &str) -> Option<(String, Contents)> {
    let all = ways(tree, at, value).into_iter().flatten();
    all.filter_map(|piece| match piece {
        Piece::Runtime(name, contents) if contents.client => Some((name, contents)),
        _ => None,
    })
    .next()
}

struct Follow<'t> {
    tree: &'t Tree,
    /// Number of variables that were followed.
    steps: Cell<usize>,
}

impl Follow<'_> {
    fn value(&self, at: Id, value: &str, depth: usize) -> Vec<Vec<Piece>> {
        let mut all = vec![Vec::new()];
        for part in parts(value) {
            let next = match part {
                Part::Text(text) => vec![vec![Piece::Text(text)]],
                Part::Variable(name) => self.variable(at, &name, depth),
            };
            let mut joined = Vec::new();
            for before in &all {
                for after in &next {
                    if joined.len() < WAYS_MAX {
                        joined.push([before.as_slice(), after.as_slice()].concat());
                    }
                }
            }
            all = joined;
        }
        all
    }

    fn variable(&self, at: Id, name: &str, depth: usize) -> Vec<Vec<Piece>> {
        self.steps.set(self.steps.get() + 1);
        if depth >= DEPTH_MAX || self.steps.get() > STEPS_MAX {
            return vec![Vec::new()];
        }
        if let Ok(number) = name.parse() {
            return self.expand(name, self.numbered(at, number, depth));
        }
        if let Some(contents) = self.assigned(at, name, depth) {
            return self.expand(name, Some(contents));
        }
        let sets = self.sets(at, name);
        if !sets.is_empty() {
            let values = sets.into_iter().flat_map(|set| {
                let value = self.tree.arg(set, 1);
                self.value(set, value, depth + 1)
            });
            return values.take(WAYS_MAX).collect();
        }
        if let Some(ways) = self.table(name, depth) {
            return ways;
        }
        self.expand(name, of_variable(name))
    }

    fn expand(&self, name: &str, contents: Option<Contents>) -> Vec<Vec<Piece>> {
        let piece = contents.map(|contents| Piece::Runtime(format!("${name}"), contents));
        vec![piece.into_iter().collect()]
    }

    /// `$1`: of the expression of the directive itself, or else of the innermost one around it.
    fn numbered(&self, at: Id, number: usize, depth: usize) -> Option<Contents> {
        if self.tree.node(at).data {
            let own = uses::of(self.tree, at);
            return self.of_capture(own.first()?, number, depth);
        }
        if self.tree.name(at) == "rewrite" {
            // A `rewrite` encodes its own numbered captures again, but not named ones.
            return None;
        }
        for block in self.tree.parents(at) {
            let found = self.expressions(block);
            if !found.is_empty() {
                return found
                    .iter()
                    .find_map(|found| self.of_capture(found, number, depth));
            }
        }
        None
    }

    /// A named capture: of the directive itself, its neighbours, or its outer levels.
    fn assigned(&self, at: Id, name: &str, depth: usize) -> Option<Contents> {
        // There may be thousands of rewrites to look through for each of them.
        if !self.tree.is_captured(name) {
            return None;
        }
        let capture = |found: Use| {
            let number = found.regex()?.group_number(name)?;
            self.of_capture(&found, number, depth)
        };
        if let Some(contents) = uses::of(self.tree, at).into_iter().find_map(capture) {
            return Some(contents);
        }
        for block in self.tree.parents(at) {
            let beside = ["rewrite", "if"].iter();
            let beside = beside.flat_map(|beside| self.tree.within(block, beside));
            let mut found: Vec<Use> = beside.flat_map(|id| uses::of(self.tree, id)).collect();
            found.extend(self.expressions(block));
            if let Some(contents) = found.into_iter().find_map(capture) {
                return Some(contents);
            }
        }
        None
    }

    /// The expressions that selected a block for a request.
    fn expressions(&self, block: Id) -> Vec<Use> {
        match self.tree.name(block) {
            "server" => {
                let names = self.tree.within(block, "server_name");
                names.flat_map(|id| uses::of(self.tree, id)).collect()
            }
            "location" | "if" => uses::of(self.tree, block),
            _ => Vec::new(),
        }
    }

    /// The possible contents of a capture: those of its parentheses and of the text they are matched against.
    fn of_capture(&self, found: &Use, number: usize, depth: usize) -> Option<Contents> {
        let regex: Regex = found.regex()?;
        let group = regex.group(number)?;
        let subject = match &found.subject {
            Subject::Value(value) => self.all(found.id, value, depth + 1)?,
            subject => uses::contents(subject)?,
        };
        let bytes = group.bytes().and(subject.bytes);
        Some(Contents {
            bytes,
            client: subject.client && !bytes.is_empty(),
            slash: group.begins_with(b'/'),
        })
    }

    /// The union of the contents of all ways of a value; `None` when there is no variable in it.
    fn all(&self, at: Id, value: &str, depth: usize) -> Option<Contents> {
        let pieces = self.value(at, value, depth).into_iter().flatten();
        let held = pieces.filter_map(|piece| match piece {
            Piece::Runtime(_, contents) => Some(contents),
            Piece::Text(_) => None,
        });
        held.reduce(|a, b| Contents {
            bytes: a.bytes.or(b.bytes),
            client: a.client || b.client,
            slash: false,
        })
    }

    /// The directives that set a variable for `at`: on its outer levels, else in the whole server.
    fn sets(&self, at: Id, name: &str) -> Vec<Id> {
        let tree = self.tree;
        let makers = tree.makers(name);
        if makers.is_empty() {
            return Vec::new();
        }
        let sets_it = |id: &Id| *id != at && makers.binary_search(id).is_ok();
        let mut nearest = Vec::new();
        for level in tree.parents(at) {
            // An `if` belongs to the level that contains it.
            for block in std::iter::once(level).chain(tree.within(level, "if")) {
                let sets = SETS.iter().flat_map(|set| tree.within(block, set));
                // More would have too many compositions.
                nearest.extend(sets.filter(sets_it).take(WAYS_MAX));
            }
        }
        if !nearest.is_empty() {
            nearest.sort_unstable();
            nearest.dedup();
            return nearest;
        }
        let server = tree.enclosing(at, "server");
        let sets = makers.iter().copied();
        sets.filter(|id| *id != at && SETS.contains(&tree.name(*id)))
            .filter(|id| tree.enclosing(*id, "server") == server)
            .collect()
    }

    /// The values of a `map`, `geo` or `split_clients` that makes the variable.
    fn table(&self, name: &str, depth: usize) -> Option<Vec<Vec<Piece>>> {
        let tree = self.tree;
        let tables = ["map", "geo", "split_clients"];
        let mut makers = tree.makers(name).iter().copied();
        let table = makers.find(|maker| tables.contains(&tree.name(*maker)))?;
        let entries = &tree.node(table).children;
        let mut all = Vec::new();
        for entry in entries.iter().filter(|entry| tree.args(**entry).len() == 1) {
            if all.len() >= WAYS_MAX {
                break;
            }
            let ways = match tree.name(table) {
                "map" => self.value(*entry, tree.arg(*entry, 0), depth + 1),
                _ => vec![vec![Piece::Text(tree.arg(*entry, 0).to_owned())]],
            };
            all.extend(ways);
        }
        all.truncate(WAYS_MAX);
        Some(all)
    }
}

/// The contents of the URI that locations and rewrites are matched against.
pub(crate) const DECODED_URI: Contents = Contents {
    bytes: ByteSet::ALL.without(b"\0"),
    client: true,
    slash: true,
};
/// Variables are followed this far; a variable that is set from itself ends here.
const DEPTH_MAX: usize = 6;
/// Most compositions of a value; others are left out.
const WAYS_MAX: usize = 64;
/// Most variables followed for one value; others count as harmless.
const STEPS_MAX: usize = 2000;
/// Directives that set a variable when they run.
const SETS: [&str; 2] = ["set", "auth_request_set"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tree;

    /// The compositions of the value of the first `add_header`, with `<name>` for run-time values.
    fn shown(text: &str) -> Vec<String> {
        let tree = tree(&format!("http {{ {text} }}"));
        let id = tree.http("add_header").next().expect("there is one");
        let ways = ways(&tree, id, tree.arg(id, 1)).into_iter();
        let piece = |piece: Piece| match piece {
            Piece::Text(text) => text,
            Piece::Runtime(name, contents) => {
                let mut marks = String::new();
                marks.push_str(if contents.client { "!" } else { "" });
                marks.push_str(if contents.bytes.has(b'\n') { "n" } else { "" });
                marks.push_str(if contents.slash { "/" } else { "" });
                format!("<{name}{marks}>")
            }
        };
        ways.map(|way| way.into_iter().map(piece).collect())
            .collect()
    }

    #[test]
    fn a_variable_is_followed_to_where_it_is_set() {
        let set = "server { set $a x$uri; location / { add_header A y$a; } }";
        assert_eq!(shown(set), ["yx<$uri!n/>"]);
        let two = "server { set $a x; location / { if ($b) { set $a y; } add_header A $a; } }";
        assert_eq!(shown(two), ["x", "y"]);
        let itself = "server { set $a $a; add_header A $a; }";
        assert_eq!(shown(itself), [""]);
    }

    #[test]
    fn captures_hold_what_their_expression_lets_through() {
        let location = |pattern: &str, value: &str| {
            shown(&format!(
                "server {{ location ~ {pattern} {{ add_header A {value}; }} }}"
            ))
        };
        assert_eq!(location("^/(.*)$", "$1"), ["<$1!>"]);
        assert_eq!(location("^/([^/]*)$", "$1"), ["<$1!n>"]);
        assert_eq!(location("^(?<p>/[^/]+)$", "$p"), ["<$p!n/>"]);
        assert_eq!(location(r"^/(\d+)$", "$2"), [""]);
        let host = r"server { server_name ~^(?<sub>[^.]+)\.a$; add_header A $sub; }";
        assert_eq!(shown(host), ["<$sub!>"]);
        let test = "server { if ($request_uri ~ ^/([^?]+)) { add_header A $1; } }";
        assert_eq!(shown(test), ["<$1!>"]);
    }

    #[test]
    fn tables_give_their_values() {
        let map = "map $uri $b { default $uri; a one; ~^/x/(?<rest>[^/]+)$ $rest; } server { add_header A $b; }";
        assert_eq!(shown(map), ["<$uri!n/>", "one", "<$rest!n>"]);
        assert_eq!(
            shown("geo $b { default x; } server { add_header A $b; }"),
            ["x"]
        );
    }

    #[test]
    fn values_are_followed_within_limits() {
        let chain = |length: usize| {
            let sets: String = (1..=length)
                .map(|n| format!("set $a{n} $a{};", n - 1))
                .collect();
            shown(&format!(
                "server {{ set $a0 $uri; {sets} add_header A $a{length}; }}"
            ))
        };
        assert_eq!(chain(DEPTH_MAX - 2), ["<$uri!n/>"]);
        assert_eq!(chain(DEPTH_MAX - 1), [""]);
        let sets = |count| "set $a x;".repeat(count);
        let ways = |count| shown(&format!("server {{ {} add_header A $a; }}", sets(count))).len();
        assert_eq!((ways(WAYS_MAX), ways(WAYS_MAX + 1)), (WAYS_MAX, WAYS_MAX));
        let steps = |count| {
            shown(&format!(
                "server {{ add_header A {}$uri; }}",
                "$b".repeat(count)
            ))
        };
        assert_eq!(steps(STEPS_MAX - 1), ["<$uri!n/>"]);
        assert_eq!(steps(STEPS_MAX), [""]);
    }

    #[test]
    fn what_is_not_known_is_harmless() {
        assert_eq!(
            shown("server { add_header A $upstream_addr-$status; }"),
            ["-"]
        );
    }
}
