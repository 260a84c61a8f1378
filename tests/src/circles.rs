//! Import circles of a crate: files or folders that import each other, directly or through others.
//!
//! The source is read as tokens, not as syntax: `use` trees, and paths that begin with `crate`, `self`, `super` or the name
//! of a child module. Re-exports are followed to the file that defines the name. The crate root is not counted: it declares
//! every module, and what it re-exports is defined elsewhere. Unit tests are left out.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use crate::source::{read, root, rust_files, shown};
use crate::tokens::tokens;

/// A module's path below the crate root; empty for the root.
type Module = Vec<String>;

/// A set of files or folders that all import each other.
#[derive(Debug, Default)]
pub struct Circle {
    /// Lines of all its files.
    pub lines: usize,
    /// Their share of the lines of the crate, percent, rounded up.
    pub percent: usize,
    /// Their modules, as `a::b`, in alphabetical order.
    pub modules: Vec<String>,
}

/// The circle with the most lines below a source folder such as `engines/src`; an empty one if no files import each other.
#[must_use]
pub fn largest(source: &str) -> Circle {
    let crate_ = Crate::read(source);
    crate_.largest(&crate_.arrows(), usize::MAX)
}

/// The circle of folders with the most lines: files below a folder `depth` levels deep count as that folder.
#[must_use]
pub fn largest_of_folders(source: &str, depth: usize) -> Circle {
    let crate_ = Crate::read(source);
    crate_.largest(&folded(&crate_.arrows(), depth), depth)
}

/// The folder of a module, `depth` levels deep, or the module itself if it is not that deep.
fn folder(module: &Module, depth: usize) -> Module {
    module.iter().take(depth).cloned().collect()
}

/// The arrows between folders of files that import each other.
fn folded(
    arrows: &BTreeMap<Module, BTreeSet<Module>>,
    depth: usize,
) -> BTreeMap<Module, BTreeSet<Module>> {
    let mut folders: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for (module, targets) in arrows {
        let from = folder(module, depth);
        let to = targets.iter().map(|target| folder(target, depth));
        let to: Vec<Module> = to.filter(|to| *to != from).collect();
        folders.entry(from).or_default().extend(to);
    }
    folders
}

/// Modules that a file declares and uses.
#[derive(Default)]
struct File {
    lines: usize,
    children: BTreeSet<String>,
    /// Paths that it imports or names.
    uses: Vec<Vec<String>>,
    /// Paths that it re-exports, with the names under which it does.
    exports: Vec<(String, Vec<String>)>,
}

struct Crate {
    files: BTreeMap<Module, File>,
}

impl Crate {
    fn read(source: &str) -> Self {
        let folder = root().join(source);
        let files = rust_files(source).into_iter().filter_map(|path| {
            let inside = path.strip_prefix(&folder).ok()?;
            is_shipped(inside).then(|| (module(inside), File::of(&read(&path))))
        });
        Self {
            files: files.collect(),
        }
    }

    /// Returns the file that a path names as seen from a module, and the rest of the path.
    fn resolve<'p>(&self, from: &Module, path: &'p [String]) -> Option<(Module, &'p [String])> {
        let (mut at, mut rest) = match path.first()?.as_str() {
            "crate" => (Module::new(), &path[1..]),
            "self" => (from.clone(), &path[1..]),
            "super" => {
                let ups = path.iter().take_while(|name| *name == "super").count();
                let kept = from.len().checked_sub(ups)?;
                (from[..kept].to_vec(), &path[ups..])
            }
            name if self.files[from].children.contains(name) => (from.clone(), path),
            _ => return None,
        };
        while let Some((name, behind)) = rest.split_first() {
            let mut below = at.clone();
            below.push(name.clone());
            if !self.files.contains_key(&below) {
                break;
            }
            (at, rest) = (below, behind);
        }
        self.files.contains_key(&at).then_some((at, rest))
    }

    /// The largest circle of these arrows between modules, or between folders `depth` levels deep.
    fn largest(&self, arrows: &BTreeMap<Module, BTreeSet<Module>>, depth: usize) -> Circle {
        let lines = |circle: &BTreeSet<Module>| -> usize {
            let inside = |module: &Module| circle.contains(&folder(module, depth));
            let files = self.files.iter().filter(|(module, _)| inside(module));
            files.map(|(_, file)| file.lines).sum()
        };
        let all: usize = self.files.values().map(|file| file.lines).sum();
        let circles = components(arrows).into_iter().map(|circle| {
            let lines = lines(&circle);
            Circle {
                lines,
                percent: (lines * 100).div_ceil(all),
                modules: circle.iter().map(|module| module.join("::")).collect(),
            }
        });
        circles
            .max_by_key(|circle| circle.lines)
            .unwrap_or_default()
    }

    /// Which modules each module imports from.
    fn arrows(&self) -> BTreeMap<Module, BTreeSet<Module>> {
        let mut exports: HashMap<(Module, String), Module> = HashMap::new();
        for (module, file) in &self.files {
            for (name, path) in &file.exports {
                if let Some((target, _)) = self.resolve(module, path) {
                    exports.insert((module.clone(), name.clone()), target);
                }
            }
        }
        let mut arrows: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
        for (module, file) in &self.files {
            let targets = arrows.entry(module.clone()).or_default();
            for path in &file.uses {
                let Some((mut target, rest)) = self.resolve(module, path) else {
                    continue;
                };
                for _ in 0..EXPORTS_MAX {
                    let Some(name) = rest.first() else { break };
                    match exports.get(&(target.clone(), name.clone())) {
                        Some(behind) => target = behind.clone(),
                        None => break,
                    }
                }
                if target != *module && !target.is_empty() {
                    targets.insert(target);
                }
            }
        }
        arrows
    }
}

/// False for the files that only tests compile.
fn is_shipped(inside: &Path) -> bool {
    let name = inside.to_string_lossy();
    let is_test = |part: &str| part == "tests" || part == "test" || part == "bench";
    let stem = name.trim_end_matches(".rs");
    !stem.split('/').any(is_test) && !stem.ends_with("_tests") && !stem.ends_with("_test")
}

fn module(inside: &Path) -> Module {
    let name = inside.to_string_lossy();
    let mut path: Module = name
        .trim_end_matches(".rs")
        .split('/')
        .map(str::to_owned)
        .collect();
    if path
        .last()
        .is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str()))
    {
        path.pop();
    }
    path
}

impl File {
    fn of(text: &str) -> Self {
        let mut file = Self {
            lines: text.lines().count(),
            ..Self::default()
        };
        let tokens = tokens(text);
        let end = unit_tests(&tokens).unwrap_or(tokens.len());
        let tokens = &tokens[..end];
        for n in 0..tokens.len() {
            if tokens[n] == "mod" && tokens.get(n + 2) == Some(&";") {
                file.children.insert(tokens[n + 1].to_owned());
            }
        }
        let mut n = 0;
        while n < tokens.len() {
            let begins_path = matches!(tokens[n], "crate" | "self" | "super")
                || file.children.contains(tokens[n]);
            if tokens[n] == "use" {
                let end = n + position(&tokens[n..], ";");
                let mut found = Vec::new();
                expand(&tokens[n + 1..end], &[], &mut found);
                if is_exported(&tokens[..n]) {
                    file.exports.extend(found);
                } else {
                    file.uses.extend(found.into_iter().map(|(_, path)| path));
                }
                n = end;
            } else if begins_path && tokens.get(n + 1) == Some(&"::") {
                let is_inner = n > 0 && tokens[n - 1] == "::";
                let mut path = vec![tokens[n].to_owned()];
                while tokens.get(n + 1) == Some(&"::")
                    && tokens.get(n + 2).is_some_and(|next| is_name(next))
                {
                    path.push(tokens[n + 2].to_owned());
                    n += 2;
                }
                if !is_inner {
                    file.uses.push(path);
                }
            }
            n += 1;
        }
        file
    }
}

/// True if the `use` that follows these tokens has a visibility.
fn is_exported(before: &[&str]) -> bool {
    match before.last() {
        Some(&"pub") => true,
        Some(&")") => {
            let open = before.iter().rposition(|token| *token == "(");
            open.is_some_and(|at| at > 0 && before[at - 1] == "pub")
        }
        _ => false,
    }
}

/// The paths of a `use` tree, with the names that they bring.
fn expand(tree: &[&str], before: &[String], found: &mut Vec<(String, Vec<String>)>) {
    let mut path = before.to_vec();
    let mut n = 0;
    while n < tree.len() {
        match tree[n] {
            "{" => {
                let mut depth = 0;
                let mut start = n + 1;
                for (at, token) in tree.iter().enumerate().skip(n) {
                    match *token {
                        "{" => depth += 1,
                        "}" => depth -= 1,
                        _ => {}
                    }
                    if (depth == 1 && *token == ",") || depth == 0 {
                        expand(&tree[start..at], &path, found);
                        start = at + 1;
                    }
                    if depth == 0 {
                        return;
                    }
                }
                return;
            }
            "as" => {
                let name = tree.get(n + 1).copied().unwrap_or_default();
                found.push((name.to_owned(), path));
                return;
            }
            "::" => {}
            name => path.push(name.to_owned()),
        }
        n += 1;
    }
    if let Some(last) = path.last().filter(|_| !tree.is_empty()) {
        found.push((last.clone(), path.clone()));
    }
}

/// Index of the first module of unit tests.
fn unit_tests(tokens: &[&str]) -> Option<usize> {
    let head = ["#", "[", "cfg", "("];
    tokens.windows(head.len()).enumerate().find_map(|(n, w)| {
        let close = n + position(&tokens[n..], "]");
        let is_test = w == head && tokens[n..close].contains(&"test");
        let behind = tokens[close..].iter().take(4);
        (is_test && behind.into_iter().any(|token| *token == "mod")).then_some(n)
    })
}

fn position(tokens: &[&str], wanted: &str) -> usize {
    let found = tokens.iter().position(|token| *token == wanted);
    found.unwrap_or(tokens.len())
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The strongly connected components of more than one module (Tarjan's algorithm).
fn components(arrows: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<BTreeSet<Module>> {
    let mut search = Search {
        arrows,
        order: HashMap::new(),
        low: HashMap::new(),
        open: Vec::new(),
        found: Vec::new(),
    };
    for module in arrows.keys() {
        if !search.order.contains_key(module) {
            search.visit(module);
        }
    }
    search.found
}

struct Search<'a> {
    arrows: &'a BTreeMap<Module, BTreeSet<Module>>,
    order: HashMap<&'a Module, usize>,
    low: HashMap<&'a Module, usize>,
    open: Vec<&'a Module>,
    found: Vec<BTreeSet<Module>>,
}

impl<'a> Search<'a> {
    fn visit(&mut self, module: &'a Module) {
        let number = self.order.len();
        self.order.insert(module, number);
        self.low.insert(module, number);
        self.open.push(module);
        for target in &self.arrows[module] {
            if !self.order.contains_key(target) {
                self.visit(target);
                let low = self.low[module].min(self.low[target]);
                self.low.insert(module, low);
            } else if self.open.contains(&target) {
                let low = self.low[module].min(self.order[target]);
                self.low.insert(module, low);
            }
        }
        if self.low[module] == number {
            let start = self.open.iter().position(|open| *open == module);
            let circle = self.open.split_off(start.expect("it was opened here"));
            if circle.len() > 1 {
                self.found.push(circle.into_iter().cloned().collect());
            }
        }
    }
}

/// Longest chain of Rust re-exports that is followed from one name. A longer chain is taken for a circle.
const EXPORTS_MAX: usize = 5;

/// The source folder of every crate of the workspace that is shipped.
#[must_use]
pub fn sources() -> Vec<String> {
    let libs = rust_files("").into_iter().filter_map(|path| {
        let name = shown(&path);
        let source = name
            .strip_suffix("/lib.rs")
            .or_else(|| name.strip_suffix("/main.rs"))?;
        let ships =
            source.ends_with("/src") && !["tests/", "fuzz/"].iter().any(|t| name.starts_with(t));
        ships.then(|| source.to_owned())
    });
    libs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrows(files: &[(&str, &str)]) -> BTreeMap<Module, BTreeSet<Module>> {
        let files = files
            .iter()
            .map(|(name, text)| (module(Path::new(name)), File::of(text)));
        Crate {
            files: files.collect(),
        }
        .arrows()
    }

    fn circles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let found = components(&arrows(files)).into_iter();
        found
            .map(|circle| circle.iter().map(|module| module.join("::")).collect())
            .collect()
    }

    #[test]
    fn files_that_import_each_other_are_a_circle() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c; use a::A;"),
            ("a.rs", "use crate::{b::{self, B}, c};"),
            ("b.rs", "fn f() { super::c::g() }"),
            ("c/mod.rs", "mod d; fn g() { d::h() }"),
            (
                "c/d.rs",
                "pub(crate) use crate::a; fn h() -> crate::a::A {}",
            ),
        ];
        assert_eq!(circles(&files), [["a", "b", "c", "c::d"]]);
        let cut = (
            "c/d.rs",
            "// crate::a\nfn h() -> &'static str { \"crate::a::A\" }",
        );
        assert!(circles(&[files[0], files[1], files[2], files[3], cut]).is_empty());
    }

    #[test]
    fn folders_are_a_circle_if_their_files_are_none() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a/mod.rs", "mod low; mod high; use high::H;"),
            ("a/low.rs", ""),
            ("a/high.rs", "use crate::b::B;"),
            ("b.rs", "use crate::a::low::L;"),
        ];
        assert_eq!(circles(&files), [[""; 0]; 0]);
        let shown = |depth| -> Vec<Vec<String>> {
            let found = components(&folded(&arrows(&files), depth)).into_iter();
            found
                .map(|circle| circle.iter().map(|module| module.join("::")).collect())
                .collect()
        };
        assert_eq!(shown(1), [["a", "b"]]);
        assert_eq!(shown(2), [[""; 0]; 0]);
    }

    #[test]
    fn re_exports_are_followed_and_tests_are_left_out() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a/mod.rs", "mod inner; pub use inner::{Name as Renamed};"),
            ("a/inner.rs", "use crate::b::X;"),
            ("b.rs", "use crate::a::Renamed;"),
        ];
        assert_eq!(circles(&files), [["a::inner", "b"]]);
        let tested = ("b.rs", "#[cfg(test)]\nmod tests { use crate::a::Renamed; }");
        assert!(circles(&[files[0], files[1], files[2], tested]).is_empty());
    }

    #[test]
    fn literals_and_lifetimes_are_no_paths() {
        let text = "fn f<'a>(x: &'a str) { let q = '\\''; let s = r#\"a \" crate::x\"#; let c = ':'; crate::y::z() }";
        let found = File::of(text);
        assert_eq!(found.uses, [["crate", "y", "z"]]);
    }
}
