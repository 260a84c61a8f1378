//! The frozen tree on the disk: written beside the existing one, put in its place by one rename.
//!
//! Unchanged files are not written but linked, so that they keep their inode and times. Readers see the old tree or the
//! new one, never a part of one, and a run that is killed leaves the old one. The manifest of the new tree exists under
//! the name `FILE.next` before the tree does, so that the next run knows the files that it may remove. Absent:
//! durability after a power failure; nothing is flushed to the disk.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use server_modules::freeze_manifest::format::Manifest;

use super::Options;
use super::tree::failed;

/// Paths of the trees and manifests.
#[derive(Debug)]
pub(super) struct Stage {
    /// The frozen tree.
    out: PathBuf,
    /// The new tree while it is written.
    new: PathBuf,
    /// The previous tree, if two renames were needed.
    old: PathBuf,
    manifest: PathBuf,
    next: PathBuf,
    /// The directory of the frozen tree, and its lock once it is there. Held for as long as this runs; another run waits.
    parent: PathBuf,
    lock: Option<File>,
}

/// State left by the last run.
#[derive(Debug, Default)]
pub(super) struct Before {
    /// The files in the frozen tree.
    pub(super) files: BTreeSet<String>,
    /// Manifests of these files, the last one first.
    pub(super) manifests: Vec<Manifest>,
}

impl Stage {
    /// Finds the places and makes nothing.
    ///
    /// # Errors
    /// An obstacle.
    pub(super) fn find(options: &Options) -> Result<Self, String> {
        let wanted =
            std::path::absolute(&options.out).map_err(|e| failed("find", &options.out, &e))?;
        // A link to the frozen tree stays a link.
        let out = fs::canonicalize(&wanted).unwrap_or(wanted);
        let (Some(parent), Some(name)) = (out.parent(), out.file_name().and_then(|n| n.to_str()))
        else {
            return Err(format!("{}: not a name for a tree", out.display()));
        };
        let parent = resolved(parent)?;
        let out = parent.join(name);
        let dir = fs::canonicalize(&options.dir).map_err(|e| failed("open", &options.dir, &e))?;
        if out.starts_with(&dir) || dir.starts_with(&out) {
            return Err("the frozen tree and the one it is made of are in each other".to_owned());
        }
        let manifest = match &options.manifest {
            Some(file) => std::path::absolute(file).map_err(|e| failed("find", file, &e))?,
            None => parent.join(format!("{name}.manifest.json")),
        };
        if manifest.starts_with(&out) || manifest.starts_with(&dir) {
            return Err(
                "the manifest is inside of a tree: it would be served or frozen".to_owned(),
            );
        }
        let mut next = manifest.clone().into_os_string();
        next.push(".next");
        Ok(Self {
            new: parent.join(format!(".{name}.freeze-new")),
            old: parent.join(format!(".{name}.freeze-old")),
            out,
            next: next.into(),
            manifest,
            parent,
            lock: None,
        })
    }

    /// Takes the lock if the directory of the frozen tree is there.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn lock_if_possible(&mut self) -> Result<(), String> {
        match self.parent.is_dir() {
            true => self.lock(),
            false => Ok(()),
        }
    }

    /// Takes the lock, unless it is held; makes its directory if it is missing.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn lock(&mut self) -> Result<(), String> {
        if self.lock.is_some() {
            return Ok(());
        }
        let parent = &self.parent;
        fs::create_dir_all(parent).map_err(|e| failed("create", parent, &e))?;
        let lock = File::open(parent).map_err(|e| failed("open", parent, &e))?;
        lock.lock().map_err(|e| failed("lock", parent, &e))?;
        self.lock = Some(lock);
        Ok(())
    }

    /// Reads the last run's state, after leftovers of an interrupted run are cleared away.
    ///
    /// # Errors
    /// The tree cannot be read, or was not written by this tool.
    pub(super) fn before(&self) -> Result<Before, String> {
        if !self.out.exists() && self.old.exists() {
            rename(&self.old, &self.out)?;
        }
        remove_tree(&self.new)?;
        remove_tree(&self.old)?;
        let mut before = Before::default();
        for path in [&self.manifest, &self.next] {
            match fs::read(path) {
                Ok(bytes) => {
                    let manifest = Manifest::parse(&bytes);
                    let wrong = |why| format!("{}: not a manifest: {why}", path.display());
                    before.manifests.push(manifest.map_err(wrong)?);
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(failed("read", path, &error)),
            }
        }
        match list(&self.out, "", &mut before.files) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(failed("read", &self.out, &error)),
        }
        let mut own = BTreeSet::new();
        for entry in before.manifests.iter().flat_map(|m| m.files.values()) {
            own.insert(entry.path.clone());
            own.extend(
                entry
                    .encodings
                    .keys()
                    .map(|coding| format!("{}.{coding}", entry.path)),
            );
        }
        if let Some(foreign) = before.files.difference(&own).next() {
            let place = self.out.join(foreign);
            return Err(format!(
                "{}: not written by freeze, as far as {} tells; it would be removed, so nothing is done",
                place.display(),
                self.manifest.display()
            ));
        }
        Ok(before)
    }

    /// The bytes of a file of the old tree.
    pub(super) fn old(&self, path: &str) -> Option<Vec<u8>> {
        fs::read(self.out.join(path)).ok()
    }

    /// Writes a file of the new tree.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn write(&self, path: &str, bytes: &[u8]) -> Result<(), String> {
        let place = self.place(path)?;
        fs::write(&place, bytes).map_err(|error| failed("write", &place, &error))
    }

    /// Takes a file of the old tree into the new one.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn take(&self, path: &str) -> Result<(), String> {
        let (old, new) = (self.out.join(path), self.place(path)?);
        if fs::hard_link(&old, &new).is_ok() {
            return Ok(());
        }
        // File systems without links, or with too many to this file.
        let copied = fs::copy(&old, &new).and_then(|_| {
            let times = fs::FileTimes::new().set_modified(fs::metadata(&old)?.modified()?);
            File::options().write(true).open(&new)?.set_times(times)
        });
        copied.map_err(|error| failed("copy", &old, &error))
    }

    fn place(&self, path: &str) -> Result<PathBuf, String> {
        let place = self.new.join(path);
        let directory = place.parent().unwrap_or(&self.new);
        fs::create_dir_all(directory).map_err(|error| failed("create", directory, &error))?;
        Ok(place)
    }

    /// Puts the new tree in the place of the old one, and its manifest in the place of the old one's.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn swap(&self, manifest: &[u8]) -> Result<(), String> {
        fs::create_dir_all(&self.new).map_err(|error| failed("create", &self.new, &error))?;
        self.write_next(manifest)?;
        if !self.out.exists() {
            rename(&self.new, &self.out)?;
        } else if renameat_with(CWD, &self.new, CWD, &self.out, RenameFlags::EXCHANGE).is_err() {
            // For file systems that cannot exchange two names. If this run ends in between, the next one repairs the
            // rest.
            rename(&self.out, &self.old)?;
            rename(&self.new, &self.out)?;
        }
        rename(&self.next, &self.manifest)?;
        remove_tree(&self.new)?;
        remove_tree(&self.old)
    }

    /// Writes the manifest alone, if the tree is unchanged.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn replace_manifest(&self, manifest: &[u8]) -> Result<(), String> {
        self.write_next(manifest)?;
        rename(&self.next, &self.manifest)
    }

    /// Whether the manifest that is there has these bytes and no run was interrupted after it.
    pub(super) fn has_manifest(&self, manifest: &[u8]) -> bool {
        fs::read(&self.manifest).is_ok_and(|bytes| bytes == manifest) && !self.next.exists()
    }

    fn write_next(&self, manifest: &[u8]) -> Result<(), String> {
        if let Some(parent) = self.next.parent() {
            fs::create_dir_all(parent).map_err(|error| failed("create", parent, &error))?;
        }
        fs::write(&self.next, manifest).map_err(|error| failed("write", &self.next, &error))
    }

    /// Path of the manifest.
    pub(super) fn manifest(&self) -> &Path {
        &self.manifest
    }
}

/// A path without links, of which the last directories may be missing.
fn resolved(path: &Path) -> Result<PathBuf, String> {
    match (fs::canonicalize(path), path.parent(), path.file_name()) {
        (Ok(path), ..) => Ok(path),
        (Err(error), Some(parent), Some(name)) if error.kind() == ErrorKind::NotFound => {
            Ok(resolved(parent)?.join(name))
        }
        (Err(error), ..) => Err(failed("open", path, &error)),
    }
}

fn rename(from: &Path, to: &Path) -> Result<(), String> {
    fs::rename(from, to).map_err(|error| failed("rename", from, &error))
}

fn remove_tree(path: &Path) -> Result<(), String> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed("remove", path, &error)),
        _ => Ok(()),
    }
}

/// All that is below a directory and no directory itself.
fn list(directory: &Path, path: &str, files: &mut BTreeSet<String>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let path = format!("{path}{}", name.to_string_lossy());
        if entry.file_type()?.is_dir() {
            list(&entry.path(), &format!("{path}/"), files)?;
        } else {
            files.insert(path);
        }
    }
    Ok(())
}
