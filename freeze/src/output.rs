//! Writes each file and its compressed copies, unless the old tree has an equal one.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use server_modules::freeze_manifest::format::{Entry, Manifest, Sibling, VERSION};
use sha2::{Digest, Sha256};

use super::Options;
use super::compress;
use super::names::{Names, hex};
use super::pool;
use super::stage::{Before, Stage};
use super::tree::Tree;

/// Summary of a freeze.
#[derive(Debug, Default)]
pub(super) struct Done {
    /// The manifest.
    pub(super) manifest: Manifest,
    /// Files and siblings that were written.
    pub(super) written: usize,
    /// Unchanged files and siblings.
    pub(super) unchanged: usize,
    /// Removed files and siblings.
    pub(super) removed: usize,
    /// Number of siblings, and their total length in bytes.
    pub(super) siblings: usize,
    pub(super) siblings_bytes: u64,
    /// Total length of the files that have siblings, counted for each sibling.
    pub(super) packed_bytes: u64,
}

/// A file of the frozen tree with its siblings.
struct Made {
    entry: Entry,
    /// The paths that were written, and those that are as they were.
    written: Vec<String>,
    same: Vec<String>,
}

/// Writes the frozen tree, as far as there is anything new.
///
/// # Errors
/// A file cannot be read or written.
pub(super) fn write(
    options: &Options,
    tree: &Tree,
    files: &[usize],
    names: &Names<'_>,
    stage: &Stage,
) -> Result<Done, String> {
    let before = stage.before()?;
    let settings = compress::settings(&options.codings, options.effort);
    let maker = Maker {
        options,
        tree,
        names,
        stage,
        old: old_entries(&before, &settings),
        taken: files.iter().map(|file| names.path(*file)).collect(),
    };
    // Names hold a hash of the content; two files of one name would silently become one.
    if maker.taken.len() != files.len() {
        return Err("two files would have the same name".to_owned());
    }
    let made = pool::each(options.threads, "writing", files.len(), |index| {
        maker.make(files[index])
    })?;
    let mut done = Done::default();
    done.manifest.version = VERSION;
    done.manifest.compression = settings;
    let mut all = BTreeSet::new();
    for (made, file) in made.iter().zip(files) {
        let path = tree.files[*file].path.clone();
        done.manifest.files.insert(path, made.entry.clone());
        done.written += made.written.len();
        done.unchanged += made.same.len();
        done.siblings += made.entry.encodings.len();
        for sibling in made.entry.encodings.values() {
            done.siblings_bytes += sibling.size;
            done.packed_bytes += made.entry.size;
        }
        all.extend(made.written.iter().chain(&made.same).cloned());
    }
    done.removed = before.files.difference(&all).count();
    let json =
        serde_json::to_string_pretty(&done.manifest).map_err(|error| error.to_string())? + "\n";
    // Without a change the tree is not replaced, so modification times stay; only the manifest may differ.
    if done.written + done.removed == 0 {
        if !stage.has_manifest(json.as_bytes()) {
            stage.replace_manifest(json.as_bytes())?;
        }
        return Ok(done);
    }
    for path in made.iter().flat_map(|made| &made.same) {
        stage.take(path)?;
    }
    stage.swap(json.as_bytes())?;
    Ok(done)
}

/// Entries by their path in the old tree, with whether their siblings were made as they would be now.
fn old_entries<'b>(before: &'b Before, settings: &str) -> HashMap<&'b str, Vec<(&'b Entry, bool)>> {
    let mut old: HashMap<&str, Vec<(&Entry, bool)>> = HashMap::new();
    for manifest in &before.manifests {
        let same_settings = manifest.compression == settings;
        for entry in manifest.files.values() {
            old.entry(&entry.path)
                .or_default()
                .push((entry, same_settings));
        }
    }
    old
}

struct Maker<'a> {
    options: &'a Options,
    tree: &'a Tree,
    names: &'a Names<'a>,
    stage: &'a Stage,
    old: HashMap<&'a str, Vec<(&'a Entry, bool)>>,
    /// Paths that files have.
    taken: BTreeSet<String>,
}

impl Maker<'_> {
    fn make(&self, file: usize) -> Result<Made, String> {
        let path = self.names.path(file);
        let content = self.names.content(file)?;
        let kind = self.tree.files[file].kind;
        let mut made = Made {
            entry: Entry {
                path: path.clone(),
                size: content.len() as u64,
                hash: hex(&Sha256::digest(&content)),
                media_type: kind.media_type.to_owned(),
                encodings: BTreeMap::new(),
            },
            written: Vec::new(),
            same: Vec::new(),
        };
        // An unchanged file is linked from the old tree, so that it keeps its modification time and its ETag.
        if self.stage.old(&path).is_some_and(|old| old == content) {
            made.same.push(path.clone());
        } else {
            self.stage.write(&path, &content)?;
            made.written.push(path.clone());
        }
        if !kind.compressible {
            return Ok(made);
        }
        if let Some(encodings) = self.old_siblings(&made.entry) {
            made.same
                .extend(encodings.keys().map(|coding| format!("{path}.{coding}")));
            made.entry.encodings = encodings;
            return Ok(made);
        }
        for coding in &self.options.codings {
            let sibling = format!("{path}.{}", coding.suffix());
            if self.taken.contains(&sibling) {
                continue;
            }
            // `None`: the compressed form is not smaller.
            let Some(packed) = coding.compress(&content, self.options.effort)? else {
                continue;
            };
            let size = packed.len() as u64;
            let hash = hex(&Sha256::digest(&packed));
            made.entry
                .encodings
                .insert(coding.suffix().to_owned(), Sibling { size, hash });
            if self.stage.old(&sibling).is_some_and(|old| old == packed) {
                made.same.push(sibling);
            } else {
                self.stage.write(&sibling, &packed)?;
                made.written.push(sibling);
            }
        }
        Ok(made)
    }

    /// The siblings of the old tree, if they are those of this content and whole.
    fn old_siblings(&self, entry: &Entry) -> Option<BTreeMap<String, Sibling>> {
        let old = self.old.get(entry.path.as_str())?;
        let whole = |(old, same_settings): &&(&Entry, bool)| {
            *same_settings
                && old.hash == entry.hash
                && old.encodings.iter().all(|(coding, sibling)| {
                    let path = format!("{}.{coding}", entry.path);
                    !self.taken.contains(&path)
                        && self
                            .stage
                            .old(&path)
                            .is_some_and(|bytes| hex(&Sha256::digest(bytes)) == sibling.hash)
                })
        };
        old.iter().find(whole).map(|(old, _)| old.encodings.clone())
    }
}
