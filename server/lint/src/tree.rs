//! The whole configuration as one tree, with included files in place of `include`.
//!
//! [`Tree::read`] follows `include` and keeps every directive as a [`Node`] with its block. Nothing is applied or refused: an
//! unknown directive is a node, too. An incomplete text yields no tree, since some rules report missing directives.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use conf::{ConfError, Directive, Files, Item, Loader, Pos, Source, Word};

use crate::allow::{Allows, CodeLookup};

/// Directives that pass requests on to a server.
pub(crate) const PASSES: [&str; 6] = [
    "proxy_pass",
    "grpc_pass",
    "fastcgi_pass",
    "uwsgi_pass",
    "scgi_pass",
    "memcached_pass",
];

/// Which node of a tree.
pub(crate) type Id = usize;

/// Blocks that hold data in the form of directives.
pub const DATA_BLOCKS: [&str; 7] = [
    "types",
    "map",
    "geo",
    "split_clients",
    "charset_map",
    "match",
    "experiment",
];

/// Blocks with more directives than this have an index of them by name.
const CHILDREN_UNINDEXED_MAX: usize = 32;

/// Directives that make variables, and which of their arguments names one; `None`: the last.
const MAKERS: [(&str, Option<usize>); 5] = [
    ("set", Some(0)),
    ("auth_request_set", Some(0)),
    ("map", None),
    ("geo", None),
    ("split_clients", None),
];

/// Whether a word is one of these flags or values of lists, in any case.
pub(crate) fn is_one_of(word: &str, values: &[&str]) -> bool {
    values.iter().any(|value| word.eq_ignore_ascii_case(value))
}

/// One directive and its place in the tree.
pub(crate) struct Node {
    /// The directive; `children` has the content of its block.
    pub(crate) directive: Directive,
    /// Its block.
    pub(crate) parent: Option<Id>,
    /// The `include` through which it was read.
    pub(crate) via: Option<Id>,
    /// The items of its block, included files too.
    pub(crate) children: Vec<Id>,
    /// The children by name, if there are many.
    index: Option<HashMap<String, Vec<Id>>>,
    /// It is inside `http`.
    pub(crate) http: bool,
    /// It is an entry of a table (`map`, `types`), not a directive.
    pub(crate) data: bool,
}

/// A configuration as written, before any processing.
pub(crate) struct Tree {
    nodes: Vec<Node>,
    by_name: HashMap<String, Vec<Id>>,
    makers: HashMap<String, Vec<Id>>,
    /// The names of captures in all expressions, in lower case.
    captured: HashSet<String>,
    pub(crate) allows: Allows,
    pub(crate) files: Files,
}

/// A configuration that cannot be analyzed, since its text is incomplete.
#[derive(Debug)]
pub struct ReadError {
    /// The first error: a file that cannot be read, or an error of syntax.
    pub error: ConfError,
    /// The files that were read.
    pub files: Files,
}

impl Tree {
    /// Reads the file at `conf_path`, its includes, and the argument of `-g`. `known` looks up codes of silencing comments.
    ///
    /// # Errors
    /// A file cannot be read or has an error of syntax.
    pub(crate) fn read(
        source: impl Source + 'static,
        conf_path: &Path,
        globals: Option<&str>,
        known: CodeLookup,
    ) -> Result<Self, Box<ReadError>> {
        let prefix = conf_path.parent().unwrap_or(Path::new(""));
        let mut reader = Reader {
            loader: Loader::new(source, prefix),
            nodes: Vec::new(),
            allows: Allows::new(known),
        };
        if let Err(error) = reader.whole(conf_path, globals) {
            let files = reader.loader.into_files();
            return Err(Box::new(ReadError { error, files }));
        }
        let mut tree = Self {
            nodes: reader.nodes,
            by_name: HashMap::new(),
            makers: HashMap::new(),
            captured: HashSet::new(),
            allows: reader.allows,
            files: reader.loader.into_files(),
        };
        tree.index();
        Ok(tree)
    }

    /// Fills the indexes of nodes by name.
    fn index(&mut self) {
        let directives = (0..self.nodes.len()).filter(|id| !self.nodes[*id].data);
        self.by_name = self.by_names(directives);
        for (maker, argument) in MAKERS {
            for id in self.by_name.get(maker).into_iter().flatten() {
                let args = self.args(*id);
                let Some(made) = args.get(argument.unwrap_or(args.len().wrapping_sub(1))) else {
                    continue;
                };
                let name = made.as_str().trim_start_matches('$').to_ascii_lowercase();
                self.makers.entry(name).or_default().push(*id);
            }
        }
        for ids in self.makers.values_mut() {
            ids.sort_unstable();
        }
        for node in &self.nodes {
            for word in node.directive.args.iter().chain([&node.directive.name]) {
                self.captured.extend(captures(word.as_str()));
            }
        }
        for id in 0..self.nodes.len() {
            let children = &self.nodes[id].children;
            // Entries of a table are not requested by name, and there may be a million.
            let is_table = children
                .first()
                .is_some_and(|child| self.nodes[*child].data);
            if children.len() > CHILDREN_UNINDEXED_MAX && !is_table {
                self.nodes[id].index = Some(self.by_names(children.iter().copied()));
            }
        }
    }

    /// Ids by the names of their directives.
    fn by_names(&self, ids: impl Iterator<Item = Id>) -> HashMap<String, Vec<Id>> {
        let mut all: HashMap<String, Vec<Id>> = HashMap::new();
        for id in ids {
            all.entry(self.name(id).to_owned()).or_default().push(id);
        }
        all
    }

    /// The directives that make a variable, by its name in lower case without the `$`; sorted.
    pub(crate) fn makers(&self, variable: &str) -> &[Id] {
        self.makers.get(variable).map_or(&[], Vec::as_slice)
    }

    /// Whether any expression may capture by a name.
    pub(crate) fn is_captured(&self, name: &str) -> bool {
        self.captured.contains(&name.to_ascii_lowercase())
    }

    /// Number of nodes; their ids are the numbers below.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The node with an id.
    pub(crate) fn node(&self, id: Id) -> &Node {
        &self.nodes[id]
    }

    /// The directive with an id.
    pub(crate) fn directive(&self, id: Id) -> &Directive {
        &self.nodes[id].directive
    }

    /// The name of a directive.
    pub(crate) fn name(&self, id: Id) -> &str {
        self.nodes[id].directive.name()
    }

    /// The arguments of a directive.
    pub(crate) fn args(&self, id: Id) -> &[Word] {
        &self.nodes[id].directive.args
    }

    /// An argument of a directive; empty if it is missing.
    pub(crate) fn arg(&self, id: Id, index: usize) -> &str {
        self.nodes[id].directive.arg_str(index)
    }

    /// Whether the first argument of a directive is one of these values. As in nginx, flags and values of lists are
    /// case-insensitive; words that a directive reads itself, such as `off` of `access_log`, are not.
    pub(crate) fn is_value(&self, id: Id, values: &[&str]) -> bool {
        is_one_of(self.arg(id, 0), values)
    }

    /// All directives of a name, in the order of the files.
    pub(crate) fn everywhere(&self, name: &str) -> &[Id] {
        self.by_name.get(name).map_or(&[], Vec::as_slice)
    }

    /// The directives of a name that lie in `http`.
    pub(crate) fn http(&self, name: &str) -> impl Iterator<Item = Id> {
        let all = self.everywhere(name).iter().copied();
        all.filter(|id| self.nodes[*id].http)
    }

    /// The directives of all these names that lie in `http`, in the order of the files.
    pub(crate) fn http_all(&self, names: &[&str]) -> Vec<Id> {
        let mut ids: Vec<Id> = names.iter().flat_map(|name| self.http(name)).collect();
        ids.sort_unstable();
        ids
    }

    /// The directives in the block of `id` with a name.
    pub(crate) fn within<'t>(&'t self, id: Id, name: &'t str) -> impl Iterator<Item = Id> + 't {
        let node = &self.nodes[id];
        let children = match &node.index {
            Some(index) => index.get(name).map_or(&[][..], Vec::as_slice),
            None => &node.children,
        };
        let children = children.iter().copied();
        // Bytes are compared without a UTF-8 check, since there may be many.
        children.filter(move |child| self.nodes[*child].directive.name == *name)
    }

    /// Whether the block of `id` has a directive with one of the names.
    pub(crate) fn has(&self, id: Id, names: &[&str]) -> bool {
        names
            .iter()
            .any(|name| self.within(id, name).next().is_some())
    }

    /// The blocks around a directive, the innermost first.
    pub(crate) fn parents(&self, id: Id) -> impl Iterator<Item = Id> {
        std::iter::successors(self.nodes[id].parent, |id| self.nodes[*id].parent)
    }

    /// The block of a directive.
    pub(crate) fn parent(&self, id: Id) -> Option<Id> {
        self.nodes[id].parent
    }

    /// The innermost block of a name around a directive.
    pub(crate) fn enclosing(&self, id: Id, name: &str) -> Option<Id> {
        self.parents(id).find(|parent| self.name(*parent) == name)
    }

    /// The first directive of a name on the levels of a block and of those around it, the block's own first.
    pub(crate) fn inherited(&self, block: Id, name: &str) -> Option<Id> {
        std::iter::once(block)
            .chain(self.parents(block))
            .find_map(|level| self.within(level, name).next())
    }

    /// `/etc/nginx/nginx.conf:12`, the beginning of a directive.
    pub(crate) fn place(&self, id: Id) -> String {
        let Pos { file, line, .. } = self.nodes[id].directive.pos;
        match self.files.path(file) {
            Some(path) => format!("{}:{line}", path.display()),
            None => "the command line".to_owned(),
        }
    }

    /// Directives with silencing comments that apply to this one: itself, its block, the `include` of its file, and so on
    /// outwards.
    pub(crate) fn holders(&self, id: Id) -> impl Iterator<Item = Id> {
        std::iter::successors(Some(id), |id| {
            let node = &self.nodes[*id];
            node.via.or(node.parent)
        })
    }
}

/// Possible names of captures in an expression, in lower case.
fn captures(text: &str) -> impl Iterator<Item = String> {
    text.match_indices("(?").filter_map(|(at, open)| {
        let rest = &text[at + open.len()..];
        let rest = rest.strip_prefix('P').unwrap_or(rest);
        let (name, _) = rest.strip_prefix(['<', '\''])?.split_once(['>', '\''])?;
        Some(name.to_ascii_lowercase())
    })
}

/// The surroundings of the items being read.
#[derive(Clone, Copy, Default)]
struct Context {
    parent: Option<Id>,
    via: Option<Id>,
    http: bool,
    data: bool,
}

struct Reader {
    loader: Loader,
    nodes: Vec<Node>,
    allows: Allows,
}

impl Reader {
    fn whole(&mut self, conf_path: &Path, globals: Option<&str>) -> Result<(), ConfError> {
        if let Some(globals) = globals {
            let items = self.loader.command_line(globals.as_bytes());
            self.items(items, Context::default())?;
        }
        let items = self.loader.load(conf_path)?.items();
        self.file(items, Context::default())
    }

    /// The items of a file of its own, with its comments.
    fn file(&mut self, items: Vec<Item>, place: Context) -> Result<(), ConfError> {
        let first = items.iter().find_map(|item| match item {
            Item::Directive(d) => Some(d.pos.file),
            Item::Error(_) => None,
        });
        if let Some(file) = first
            && let Some(text) = self.loader.files().text(file)
        {
            self.allows.add_file(file, text, &items);
        }
        self.items(items, place)
    }

    fn items(&mut self, items: Vec<Item>, place: Context) -> Result<(), ConfError> {
        for item in items {
            let mut directive = match item {
                Item::Directive(directive) => directive,
                Item::Error(error) => return Err(error),
            };
            let inside = directive.block.replace(Vec::new());
            if inside.is_none() {
                directive.block = None;
            }
            let id = self.nodes.len();
            let is_include = directive.name == *"include" && inside.is_none();
            let name = directive.name().to_owned();
            self.nodes.push(Node {
                directive,
                parent: place.parent,
                via: place.via,
                children: Vec::new(),
                index: None,
                http: place.http,
                data: place.data,
            });
            if let Some(parent) = place.parent {
                self.nodes[parent].children.push(id);
            }
            if is_include {
                self.include(id, place)?;
            }
            if let Some(inside) = inside {
                let within = Context {
                    parent: Some(id),
                    via: None,
                    http: place.http || (place.parent.is_none() && name == "http"),
                    data: place.data || DATA_BLOCKS.contains(&name.as_str()),
                };
                self.items(inside, within)?;
            }
        }
        Ok(())
    }

    fn include(&mut self, id: Id, place: Context) -> Result<(), ConfError> {
        let include = self.nodes[id].directive.clone();
        for path in self.loader.include_paths(&include)? {
            let items = self.loader.enter(&include, &path)?.items();
            let place = Context {
                via: Some(id),
                ..place
            };
            self.file(items, place)?;
            self.loader.leave();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tree;
    use conf::Memory;

    #[test]
    fn what_is_included_stands_where_it_is_included() {
        let source = Memory::default()
            .with_file("/c/nginx.conf", "http { include a; server { root /b; } }")
            .with_file("/c/a", "root /a;");
        let tree =
            Tree::read(source, Path::new("/c/nginx.conf"), None, |_| None).expect("it is sound");
        let roots: Vec<Id> = tree.http("root").collect();
        assert_eq!(roots.len(), 2);
        let [first, second] = [roots[0], roots[1]];
        assert_eq!(tree.place(first), "/c/a:1");
        let http = tree.parent(first).expect("in http");
        assert_eq!(tree.inherited(http, "root"), Some(first));
        let server = tree.parent(second).expect("in the server");
        assert_eq!(tree.inherited(server, "root"), Some(second));
        let holders: Vec<&str> = tree.holders(first).map(|id| tree.name(id)).collect();
        assert_eq!(holders, ["root", "include", "http"]);
    }

    #[test]
    fn tables_hold_no_directives() {
        let tree = tree("http { map $a $b { root x; } stream { } } stream { root y; }");
        assert_eq!(tree.everywhere("root").len(), 1);
        assert_eq!(tree.http("root").count(), 0);
    }

    #[test]
    fn a_text_that_is_not_whole_gives_no_tree() {
        for text in ["http { ", "a; }", "include missing;"] {
            let source = Memory::default().with_file("/c/nginx.conf", text);
            assert!(
                Tree::read(source, Path::new("/c/nginx.conf"), None, |_| None).is_err(),
                "{text}"
            );
        }
    }
}
