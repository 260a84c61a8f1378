//! The source tree: its files, found by path and by name.
//!
//! A symbolic link inside the tree represents its target. A link out of it is left out with a warning, unless the
//! options follow links. Names are UTF-8, because references and the manifest are.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sys::os_error;

use super::Options;
use super::kinds::{self, FileType};
use super::url;

/// A file of the tree.
#[derive(Debug)]
pub(super) struct File {
    /// Its path in the tree, with slashes.
    pub(super) path: String,
    /// Its path on the disk.
    pub(super) disk: PathBuf,
    /// Its type.
    pub(super) kind: FileType,
    /// Whether it keeps its name despite references.
    pub(super) fixed: bool,
}

impl File {
    /// The message about an unreadable file; a link's target has both names.
    pub(super) fn unreadable(&self, error: &io::Error) -> String {
        let why = failed("read", &self.disk, error);
        excludable(match self.disk.ends_with(&self.path) {
            true => why,
            false => format!("{}: {why}", self.path),
        })
    }

    /// Its directory: empty, or with a slash at its end.
    pub(super) fn dir(&self) -> &str {
        &self.path[..self.path.rfind('/').map_or(0, |slash| slash + 1)]
    }
}

/// Entry at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    /// The file with this index.
    File(usize),
    /// A directory.
    Directory,
    /// No entry.
    Nothing,
}

/// All files.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// The files, by path.
    pub(super) files: Vec<File>,
    /// Files left out, with reasons.
    pub(super) left_out: Vec<String>,
    by_path: HashMap<String, usize>,
    by_name: HashMap<String, Vec<usize>>,
    directories: HashSet<String>,
}

impl Tree {
    /// Looks at a directory and all that is below.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(super) fn read(options: &Options) -> Result<Self, String> {
        let root = fs::canonicalize(&options.dir).map_err(|e| failed("open", &options.dir, &e))?;
        let mut walk = Walk {
            options,
            root: &root,
            tree: Self::default(),
            open: Vec::new(),
        };
        walk.directory(&root, "")?;
        let mut tree = walk.tree;
        tree.files.sort_by(|a, b| a.path.cmp(&b.path));
        tree.index();
        Ok(tree)
    }

    fn index(&mut self) {
        for (id, file) in self.files.iter().enumerate() {
            self.by_path.insert(file.path.clone(), id);
            let name = file.path.rsplit('/').next().unwrap_or(&file.path);
            self.by_name.entry(name.to_owned()).or_default().push(id);
            for (slash, _) in file.path.match_indices('/') {
                self.directories.insert(file.path[..slash].to_owned());
            }
        }
    }

    /// Returns the entry at a path in the form of references. A page may be requested without its `.html`.
    pub(super) fn at(&self, path: &str) -> At {
        if let Some(id) = self.by_path.get(path) {
            return At::File(*id);
        }
        let bare = path.strip_suffix('/').unwrap_or(path);
        if bare.is_empty() || self.directories.contains(bare) {
            return At::Directory;
        }
        let page = (bare.len() == path.len()).then(|| self.by_path.get(&format!("{path}.html")));
        page.flatten().map_or(At::Nothing, |id| At::File(*id))
    }

    /// The files that a word of a script may mean: the path ends with the word, or the word with the path.
    pub(super) fn meant<'t>(&'t self, word: &str) -> impl Iterator<Item = usize> + use<'t> {
        let word = url::decoded(word.trim_end_matches('.'));
        let name = word.rsplit(['/', '\\']).next().unwrap_or_default();
        let candidates = self.by_name.get(name).map_or(&[][..], Vec::as_slice);
        candidates.iter().copied().filter(move |id| {
            let path = self.files[*id].path.rsplit('/');
            let said = word.rsplit(['/', '\\']);
            let said = said.filter(|part| !matches!(*part, "" | "." | ".."));
            path.zip(said).all(|(a, b)| a == b)
        })
    }
}

struct Walk<'a> {
    options: &'a Options,
    root: &'a Path,
    tree: Tree,
    /// The directories being read, so that links that lead back are seen.
    open: Vec<PathBuf>,
}

impl Walk<'_> {
    fn directory(&mut self, disk: &Path, path: &str) -> Result<(), String> {
        if self.open.iter().any(|open| open == disk) {
            self.tree
                .left_out
                .push(format!("{path}: a link to a directory around it"));
            return Ok(());
        }
        self.open.push(disk.to_owned());
        let entries = fs::read_dir(disk).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let entries = entries.map_err(|e| failed("read", disk, &e));
        // The source itself cannot be left out.
        let entries = entries.map_err(|why| match path {
            "" => why,
            _ => excludable(why),
        });
        for entry in entries? {
            let name = entry.file_name();
            // A pattern matches the replacement character by "?" or "*".
            let shown = name.to_string_lossy();
            let path = join(path, &shown);
            if self.is_excluded(&path) {
                continue;
            }
            let Some(name) = name.to_str() else {
                return Err(format!(
                    "{:?}: a name that is not UTF-8; {EXCLUDE}",
                    entry.path()
                ));
            };
            self.entry(&entry.path(), &path, name).map_err(excludable)?;
        }
        self.open.pop();
        Ok(())
    }

    fn is_excluded(&self, path: &str) -> bool {
        let excluded = |glob: &String| kinds::matches(glob, path);
        self.options.exclude.iter().any(excluded)
    }

    fn entry(&mut self, disk: &Path, path: &str, name: &str) -> Result<(), String> {
        let own = fs::symlink_metadata(disk).map_err(|e| failed("stat", disk, &e))?;
        let (disk, meta) = if own.is_symlink() {
            let target = match fs::canonicalize(disk) {
                Ok(target) => target,
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    return Err(failed("open", disk, &error));
                }
                Err(_) => {
                    self.tree
                        .left_out
                        .push(format!("{path}: a link to nothing"));
                    return Ok(());
                }
            };
            if !self.options.follow && !target.starts_with(self.root) {
                self.tree
                    .left_out
                    .push(format!("{path}: a link out of the tree"));
                return Ok(());
            }
            let meta = fs::metadata(&target).map_err(|e| failed("stat", &target, &e))?;
            (target, meta)
        } else {
            (disk.to_owned(), own)
        };
        if meta.is_dir() {
            // All below is left out: there is no need to read it, which may not be allowed.
            return match self.is_excluded(&format!("{path}/")) {
                true => Ok(()),
                false => self.directory(&disk, path),
            };
        }
        if !meta.is_file() {
            self.tree
                .left_out
                .push(format!("{path}: neither file nor directory"));
            return Ok(());
        }
        let kind = FileType::of(name);
        let mut kept = kinds::KEPT
            .iter()
            .copied()
            .chain(self.options.keep.iter().map(String::as_str));
        let fixed = kind.is_page() || kept.any(|glob| kinds::matches(glob, path));
        self.tree.files.push(File {
            path: path.to_owned(),
            disk,
            kind,
            fixed,
        });
        Ok(())
    }
}

fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() {
        return name.to_owned();
    }
    format!("{directory}/{name}")
}

/// An error about a file of the tree, with the way round it.
fn excludable(why: String) -> String {
    match why.ends_with(EXCLUDE) {
        true => why,
        false => format!("{why}; {EXCLUDE}"),
    }
}

/// The way round a file that cannot be frozen.
const EXCLUDE: &str = "--exclude leaves it out";

/// `open /srv/a: 2: No such file or directory`.
pub(super) fn failed(what: &str, path: &Path, error: &io::Error) -> String {
    format!("{what} {}: {}", path.display(), os_error(error))
}

/// A tree of these paths, which are on no disk.
#[cfg(test)]
pub(super) fn of_paths(paths: &[&str]) -> Tree {
    let mut tree = Tree::default();
    for path in paths {
        let kind = FileType::of(path.rsplit('/').next().unwrap_or(path));
        tree.files.push(File {
            path: (*path).to_owned(),
            disk: PathBuf::new(),
            kind,
            fixed: kind.is_page(),
        });
    }
    tree.index();
    tree
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_has_the_systems_error_in_nginx_form() {
        let error = io::Error::from_raw_os_error(2);
        assert_eq!(
            failed("open", Path::new("/srv/a"), &error),
            "open /srv/a: 2: No such file or directory"
        );
    }

    #[test]
    fn what_is_at_a_path_is_found() {
        let tree = of_paths(&["a/b.css", "about.html", "a/index.html"]);
        assert_eq!(tree.at("a/b.css"), At::File(0));
        assert_eq!(tree.at("about"), At::File(1));
        assert_eq!(tree.at("a"), At::Directory);
        assert_eq!(tree.at("a/"), At::Directory);
        assert_eq!(tree.at(""), At::Directory);
        assert_eq!(tree.at("about/"), At::Nothing);
        assert_eq!(tree.at("b.css"), At::Nothing);
    }

    #[test]
    fn words_mean_files_by_the_ends_of_their_paths() {
        let tree = of_paths(&["img/a.png", "x/img/a.png", "b.js"]);
        let meant = |word: &str| tree.meant(word).collect::<Vec<_>>();
        assert_eq!(meant("a.png"), [0, 1]);
        assert_eq!(meant("../img/a.png"), [0, 1]);
        assert_eq!(meant("x/img/a.png"), [0, 1]);
        assert_eq!(meant("y/img/a.png"), [0]);
        assert_eq!(meant("/static/b.js."), [2]);
        assert_eq!(meant("c.js"), [0; 0]);
    }
}
