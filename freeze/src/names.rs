//! The names that files get, and their content with the names of others in it.
//!
//! A file's hash is that of its content with the hashed names of its references, so that a change reaches all files that
//! refer to it. Files that refer to each other in a circle are hashed together: their contents, with the circle's own
//! names as they were, in the order of their paths; each one's hash is that of the circle's and its own path.
//!
//! Source: Tarjan's algorithm for strongly connected components, without recursion.

use std::fs;
use std::ops::Range;
use std::sync::Mutex;

use server_modules::freeze_manifest::format::{HASH_DIGITS, hashed_name};
use sha2::{Digest, Sha256};

use super::integrity::{self, Algorithm};
use super::scan::Found;
use super::tree::{Tree, failed};

/// A file as it was read the first time.
#[derive(Debug)]
pub(super) struct Read {
    /// SHA-256 of its content.
    pub(super) hash: [u8; 32],
    /// Its references.
    pub(super) found: Found,
}

/// New names, by the old ones.
pub(super) struct Names<'t> {
    tree: &'t Tree,
    read: &'t [Read],
    /// The digits in the name of each file; `None` for one that keeps its own.
    digits: Vec<Option<String>>,
    /// Digests of files for pages that contain them, computed on demand.
    digests: Mutex<Vec<(Digested, String)>>,
}

/// A file, the algorithm of a digest, and the digested content.
type Digested = (usize, Algorithm, Content);

/// A content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    /// The content of the source.
    Source,
    /// The content of the frozen tree.
    Frozen,
}

impl<'t> Names<'t> {
    /// Names all files that `renamed` marks.
    ///
    /// # Errors
    /// A file cannot be read, or was changed meanwhile.
    pub(super) fn new(tree: &'t Tree, read: &'t [Read], renamed: &[bool]) -> Result<Self, String> {
        let mut names = Self {
            tree,
            read,
            digits: vec![None; read.len()],
            digests: Mutex::new(Vec::new()),
        };
        let targets = |file: usize| {
            let edges = read[file].found.edges.iter().map(|edge| edge.target);
            edges.filter(|target| renamed[*target]).collect::<Vec<_>>()
        };
        for circle in circles(read.len(), |file| renamed[file], targets) {
            names.name(&circle)?;
        }
        // Digests computed before all names were known may be wrong.
        names.digests = Mutex::default();
        Ok(names)
    }

    /// Names files that refer to each other; all they refer to otherwise have their names.
    fn name(&mut self, circle: &[usize]) -> Result<(), String> {
        let refers_to_own = |file: usize| {
            let edges = &self.read[file].found.edges;
            edges.iter().any(|edge| circle.contains(&edge.target))
        };
        if let [file] = circle
            && !refers_to_own(*file)
        {
            let hash = match self.read[*file].found.edges.is_empty() {
                true => self.read[*file].hash,
                false => Sha256::digest(self.content(*file)?).into(),
            };
            self.digits[*file] = Some(digits(&hash));
            return Ok(());
        }
        let mut whole = Sha256::new();
        for file in circle {
            let (path, content) = (&self.tree.files[*file].path, self.content(*file)?);
            for part in [path.as_bytes(), &content] {
                whole.update((part.len() as u64).to_be_bytes());
                whole.update(part);
            }
        }
        let whole = whole.finalize();
        for file in circle {
            let mut own = Sha256::new_with_prefix(whole);
            own.update(self.tree.files[*file].path.as_bytes());
            self.digits[*file] = Some(digits(&own.finalize().into()));
        }
        Ok(())
    }

    /// The path of a file in the frozen tree.
    pub(super) fn path(&self, file: usize) -> String {
        let path = &self.tree.files[file].path;
        match &self.digits[file] {
            Some(digits) => hashed_name(path, digits),
            None => path.clone(),
        }
    }

    /// Whether a file has another name than before.
    pub(super) fn is_renamed(&self, file: usize) -> bool {
        self.digits[file].is_some()
    }

    /// The content of a file in the frozen tree, as far as those it refers to have names.
    ///
    /// # Errors
    /// A file cannot be read, or was changed meanwhile.
    pub(super) fn content(&self, file: usize) -> Result<Vec<u8>, String> {
        let bytes = self.source(file)?;
        let read = &self.read[file];
        let mut edits: Vec<(Range<usize>, String)> = Vec::new();
        for edge in &read.found.edges {
            if let Some(digits) = &self.digits[edge.target] {
                edits.push((edge.at..edge.at, format!(".{digits}")));
            }
            if let Some(range) = &edge.integrity
                && edge.target != file
            {
                edits.extend(self.follow(&bytes, range.clone(), edge.target)?);
            }
        }
        if edits.is_empty() {
            return Ok(bytes);
        }
        edits.sort_by_key(|(range, _)| range.start);
        let mut out = Vec::with_capacity(bytes.len() + edits.len() * (HASH_DIGITS + 1));
        let mut copied = 0;
        for (range, text) in edits {
            // Two readers may have found the same reference.
            if range.start < copied
                || (range.is_empty() && out.ends_with(text.as_bytes()) && range.start == copied)
            {
                continue;
            }
            out.extend_from_slice(&bytes[copied..range.start]);
            out.extend_from_slice(text.as_bytes());
            copied = range.end;
        }
        out.extend_from_slice(&bytes[copied..]);
        Ok(out)
    }

    /// New digests of a changed file, by their places in a page. A wrong digest stays.
    fn follow(
        &self,
        page: &[u8],
        place: Range<usize>,
        target: usize,
    ) -> Result<Vec<(Range<usize>, String)>, String> {
        let edges = &self.read[target].found.edges;
        if !edges.iter().any(|edge| self.digits[edge.target].is_some()) {
            return Ok(Vec::new());
        }
        let mut edits = Vec::new();
        for one in integrity::stated(page, place) {
            if one.is(&self.digest(target, one.algorithm, Content::Source)?) {
                let new = self.digest(target, one.algorithm, Content::Frozen)?;
                edits.push((one.place, new));
            }
        }
        Ok(edits)
    }

    /// The files that browsers block by digests in a page, with the line of each.
    ///
    /// # Errors
    /// A file cannot be read, or was changed meanwhile.
    pub(super) fn blocked(&self, file: usize) -> Result<Vec<(usize, usize)>, String> {
        let edges = &self.read[file].found.edges;
        let mut stating = edges.iter().filter(|edge| edge.integrity.is_some());
        let Some(first) = stating.next() else {
            return Ok(Vec::new());
        };
        let page = self.source(file)?;
        let mut found = Vec::new();
        for edge in std::iter::once(first).chain(stating) {
            let place = edge.integrity.clone().unwrap_or_default();
            let line = page[..place.start].iter().filter(|byte| **byte == b'\n');
            let line = line.count() + 1;
            let stated = integrity::stated(&page, place);
            let digest = |algorithm| self.digest(edge.target, algorithm, Content::Source);
            if integrity::block(&stated, digest)? {
                found.push((line, edge.target));
            }
        }
        // Two readers may have found the same reference.
        found.dedup();
        Ok(found)
    }

    fn digest(&self, file: usize, algorithm: Algorithm, of: Content) -> Result<String, String> {
        let key = (file, algorithm, of);
        let poisoned = std::sync::PoisonError::into_inner;
        let known = self.digests.lock().unwrap_or_else(poisoned);
        if let Some((_, digest)) = known.iter().find(|(of, _)| *of == key) {
            return Ok(digest.clone());
        }
        drop(known);
        let digest = algorithm.digest(&match of {
            Content::Source => self.source(file)?,
            Content::Frozen => self.content(file)?,
        });
        let mut known = self.digests.lock().unwrap_or_else(poisoned);
        known.push((key, digest.clone()));
        Ok(digest)
    }

    /// The content of a file in the source.
    fn source(&self, file: usize) -> Result<Vec<u8>, String> {
        let disk = &self.tree.files[file].disk;
        let bytes = fs::read(disk).map_err(|error| failed("read", disk, &error))?;
        match <[u8; 32]>::from(Sha256::digest(&bytes)) == self.read[file].hash {
            true => Ok(bytes),
            false => Err(format!("{}: changed while it was read", disk.display())),
        }
    }
}

/// The digits of a name.
fn digits(hash: &[u8; 32]) -> String {
    let mut all = hex(hash);
    all.truncate(HASH_DIGITS);
    all
}

/// A hash in hexadecimal digits.
pub(super) fn hex(hash: &[u8]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the circles of references among the files that `meant` selects, of `count` files. A file in no circle is a
/// circle of its own. A circle comes after those that it refers to. Its members are in order.
fn circles(
    count: usize,
    meant: impl Fn(usize) -> bool,
    targets: impl Fn(usize) -> Vec<usize>,
) -> Vec<Vec<usize>> {
    const UNSEEN: usize = usize::MAX;
    let mut found = Vec::new();
    let (mut order, mut low) = (vec![UNSEEN; count], vec![UNSEEN; count]);
    let mut on_stack = vec![false; count];
    let (mut stack, mut next) = (Vec::new(), 0);
    for root in (0..count).filter(|file| meant(*file)) {
        if order[root] != UNSEEN {
            continue;
        }
        let mut open = vec![(root, targets(root), 0)];
        (order[root], low[root]) = (next, next);
        next += 1;
        stack.push(root);
        on_stack[root] = true;
        while let Some((file, edges, at)) = open.last_mut() {
            let file = *file;
            if let Some(target) = edges.get(*at).copied() {
                *at += 1;
                if order[target] == UNSEEN {
                    (order[target], low[target]) = (next, next);
                    next += 1;
                    stack.push(target);
                    on_stack[target] = true;
                    open.push((target, targets(target), 0));
                } else if on_stack[target] {
                    low[file] = low[file].min(order[target]);
                }
                continue;
            }
            open.pop();
            if let Some((parent, ..)) = open.last() {
                low[*parent] = low[*parent].min(low[file]);
            }
            if low[file] == order[file] {
                let from = stack.iter().rposition(|f| *f == file).unwrap_or(0);
                let mut circle = stack.split_off(from);
                circle.iter().for_each(|f| on_stack[*f] = false);
                circle.sort_unstable();
                found.push(circle);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_come_after_what_they_refer_to() {
        // 0 and 1 refer to each other and to 2; 3 to 0, 4 to itself; 5 is not meant.
        let edges = [vec![1], vec![0, 2], vec![], vec![0], vec![4], vec![0]];
        let found = circles(6, |file| file != 5, |file| edges[file].clone());
        assert_eq!(found, [vec![2], vec![0, 1], vec![3], vec![4]]);
    }

    #[test]
    fn a_long_chain_takes_no_stack() {
        let count = 200_000;
        let found = circles(
            count,
            |_| true,
            |file| {
                if file + 1 < count {
                    vec![file + 1]
                } else {
                    vec![]
                }
            },
        );
        assert_eq!(found.len(), count);
        assert_eq!(found[0], [count - 1]);
    }
}
