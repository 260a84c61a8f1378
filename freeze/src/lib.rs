//! Rewrites the tree of a static site: each file referenced by pages gets the hash of its content in its name.
//!
//! The tree is read (`tree`, `scan`). Every file that has references, and no other possible use, gets a name with a
//! hash (`names`). A copy with the new names in it is written (`output`) and put in place as a whole (`stage`).
//! Uncertain files are unchanged: if a script holds a file's name, the file keeps it. Nothing outside the two trees and
//! the manifest is touched. Absent: minifying, bundling, and references that scripts build at run time.
//!
//! Source: of our own; docs/freeze.md.

#![forbid(unsafe_code)]

mod compress;
mod integrity;
mod kinds;
mod names;
mod output;
mod pool;
mod scan;
mod stage;
mod text;
mod tree;
mod url;

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;

use sha2::{Digest, Sha256};

pub use compress::{Coding, Effort};
use names::{Names, Read};
use output::Done;
use stage::Stage;
use tree::Tree;
pub use url::Site;

/// Options of a freeze.
#[derive(Debug, Clone)]
pub struct Options {
    /// The tree.
    pub dir: PathBuf,
    /// Path of the frozen tree.
    pub out: PathBuf,
    /// Path of the manifest; `None` puts it beside the frozen tree.
    pub manifest: Option<PathBuf>,
    /// Patterns of files that keep their names, in addition to the usual ones.
    pub keep: Vec<String>,
    /// Patterns of files that are left out.
    pub exclude: Vec<String>,
    /// URL at which the tree will be served.
    pub site: Site,
    /// Follow symbolic links out of the tree.
    pub follow: bool,
    /// Rename also files without references.
    pub all: bool,
    /// Print the files that keep their names, with the reason.
    pub verbose: bool,
    /// Codings of siblings.
    pub codings: Vec<Coding>,
    /// Effort of compression.
    pub effort: Effort,
    /// Number of threads.
    pub threads: usize,
}

/// Summary of a freeze.
#[derive(Debug, Clone)]
pub struct Frozen {
    /// References to files that are not there.
    pub broken: usize,
    /// References that browsers block, since the digest with them is wrong.
    pub blocked: usize,
    /// Numbers of files, references, copies and writes, a line each.
    pub summary: String,
}

/// Freezes a tree. Warnings go to standard error.
///
/// # Errors
/// A file cannot be read or written.
pub fn freeze(options: &Options) -> Result<Frozen, String> {
    let begin = Instant::now();
    let mut stage = Stage::find(options)?;
    // A run waits for another one before it reads. A missing directory is made at the end: an unreadable source must
    // leave nothing behind.
    stage.lock_if_possible()?;
    let tree = Tree::read(options)?;
    let read = pool::each(options.threads, "reading", tree.files.len(), |index| {
        let file = &tree.files[index];
        let bytes = fs::read(&file.disk).map_err(|error| file.unreadable(&error))?;
        Ok(Read {
            hash: Sha256::digest(&bytes).into(),
            found: scan::scan(&tree, &options.site, index, &bytes),
        })
    })?;
    let files = taken(&tree, &read);
    let renamed = renamed(options, &tree, &read, &files);
    let names = Names::new(&tree, &read, &renamed)?;
    let blocked = blocked(&tree, &names)?;
    let broken = warn(options, &tree, &read, &blocked);
    stage.lock()?;
    let done = output::write(options, &tree, &files, &names, &stage)?;
    let count = files.iter().filter(|file| names.is_renamed(**file)).count();
    let references: usize = read.iter().map(|read| read.found.resolved).sum();
    let summary = Summary {
        files: files.len(),
        renamed: count,
        named: files_named(&read).len(),
        references,
        broken,
        blocked: blocked.len(),
        seconds: begin.elapsed().as_secs_f64(),
    };
    let manifest = format!("manifest: {}\n", stage.manifest().display());
    Ok(Frozen {
        broken,
        blocked: blocked.len(),
        summary: summary.text(&done) + &manifest,
    })
}

/// The files that are taken over: all but compressed copies of others that nothing refers to.
fn taken(tree: &Tree, read: &[Read]) -> Vec<usize> {
    let mut referred = referred(read);
    referred.extend(files_named(read));
    let is_copy = |file: usize| {
        let path = &tree.files[file].path;
        let bare = [".br", ".zst", ".gz"]
            .iter()
            .find_map(|end| path.strip_suffix(end));
        let original = bare.map(|bare| tree.at(bare));
        let original = match original {
            Some(tree::At::File(id)) => bare.is_some_and(|bare| tree.files[id].path == bare),
            _ => false,
        };
        original && !referred.contains(&file)
    };
    (0..tree.files.len())
        .filter(|file| !is_copy(*file))
        .collect()
}

/// Files that something surely refers to.
fn referred(read: &[Read]) -> HashSet<usize> {
    let edges = read.iter().flat_map(|read| &read.found.edges);
    edges.map(|edge| edge.target).collect()
}

/// Files that keep their names because they may be requested by name.
fn files_named(read: &[Read]) -> HashSet<usize> {
    let named = read.iter().flat_map(|read| &read.found.named);
    named.map(|(_, file)| *file).collect()
}

/// Which files get another name.
fn renamed(options: &Options, tree: &Tree, read: &[Read], files: &[usize]) -> Vec<bool> {
    let referred = referred(read);
    let mut renamed = vec![false; tree.files.len()];
    for file in files {
        renamed[*file] = !tree.files[*file].fixed && (options.all || referred.contains(file));
    }
    for file in files_named(read) {
        renamed[file] = false;
    }
    renamed
}

/// Sentences about references that browsers block, since the digest with them is wrong.
fn blocked(tree: &Tree, names: &Names<'_>) -> Result<Vec<String>, String> {
    let mut sentences = Vec::new();
    for (page, file) in tree.files.iter().enumerate() {
        for (line, target) in names.blocked(page)? {
            let (page, target) = (&file.path, &tree.files[target].path);
            sentences.push(format!(
                "{page}:{line}: integrity has a wrong digest of \"{target}\", so browsers block it; it is left as it is"
            ));
        }
    }
    Ok(sentences)
}

/// Reports broken and blocked references, and files left out; returns the number of broken references.
fn warn(options: &Options, tree: &Tree, read: &[Read], blocked: &[String]) -> usize {
    let mut text = String::new();
    for left_out in &tree.left_out {
        text.push_str(&format!("warning: {left_out}; it is left out\n"));
    }
    for sentence in blocked {
        text.push_str(&format!("warning: {sentence}\n"));
    }
    let mut broken = 0;
    let mut said = HashSet::new();
    for (file, read) in tree.files.iter().zip(read) {
        for (line, url) in &read.found.broken {
            text.push_str(&format!(
                "warning: {}:{line}: \"{url}\" is not there\n",
                file.path
            ));
        }
        broken += read.found.broken.len();
        for (line, id) in &read.found.named {
            if options.verbose && said.insert(*id) {
                let kept = &tree.files[*id].path;
                text.push_str(&format!(
                    "{kept}: keeps its name, {}:{line} may ask for it\n",
                    file.path
                ));
            }
        }
    }
    let _ = io::stderr().write_all(text.as_bytes());
    broken
}

struct Summary {
    files: usize,
    renamed: usize,
    named: usize,
    references: usize,
    broken: usize,
    blocked: usize,
    seconds: f64,
}

impl Summary {
    fn text(&self, done: &Done) -> String {
        let share = (done.siblings_bytes * 100).checked_div(done.packed_bytes);
        format!(
            "files: {}, {} with a hash in their name, {} that scripts name\n\
             references: {}, {} broken, {} blocked\n\
             compressed copies: {}, {}% of the originals\n\
             written: {}, unchanged: {}, removed: {}\n\
             time: {:.1} s\n",
            self.files,
            self.renamed,
            self.named,
            self.references + self.broken,
            self.broken,
            self.blocked,
            done.siblings,
            share.unwrap_or(100),
            done.written,
            done.unchanged,
            done.removed,
            self.seconds
        )
    }
}
