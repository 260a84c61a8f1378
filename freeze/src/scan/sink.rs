//! Takes the references and mentions that readers find, and resolves them against the tree.

use std::ops::Range;

use crate::text::Text;
use crate::tree::{At, Tree};
use crate::url::{Site, Target, hash_place};

/// A reference to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edge {
    /// The referenced file.
    pub(crate) target: usize,
    /// Position in this file at which the hash is inserted.
    pub(crate) at: usize,
    /// Position in this file of the other one's digest.
    pub(crate) integrity: Option<Range<usize>>,
}

/// References found in a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// References to files that may be renamed, and those with a digest.
    pub(crate) edges: Vec<Edge>,
    /// Files that must keep their names, each with the line that mentions it.
    pub(crate) named: Vec<(usize, usize)>,
    /// References to missing files, with their lines.
    pub(crate) broken: Vec<(usize, String)>,
    /// Number of references to existing files.
    pub(crate) resolved: usize,
}

/// Whether a reference to a missing file causes a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Report {
    Broken,
    Nothing,
}

/// Collects the findings of readers.
pub(super) struct Sink<'t> {
    tree: &'t Tree,
    site: &'t Site,
    /// The base directory of references; `None` if it is outside the tree.
    dir: Option<String>,
    /// The findings, with byte positions in place of line numbers.
    found: Found,
}

impl<'t> Sink<'t> {
    /// For a file in a directory of the tree.
    pub(super) fn new(tree: &'t Tree, site: &'t Site, dir: &str) -> Self {
        Self {
            tree,
            site,
            dir: Some(dir.to_owned()),
            found: Found::default(),
        }
    }

    /// A `base` element.
    pub(super) fn base(&mut self, url: &Text<'_>) {
        if let Some(dir) = &self.dir {
            self.dir = self.site.base(dir, url.bytes());
        }
    }

    fn resolve(&self, url: &[u8]) -> Target {
        match &self.dir {
            Some(dir) => self.site.resolve(dir, url),
            // Then only a complete URL can point into the tree.
            None if url.trim_ascii().starts_with(b"/") => Target::Elsewhere(String::new()),
            None => match self.site.resolve("", url) {
                Target::Inside(_) if !url.contains(&b':') => Target::Elsewhere(String::new()),
                target => target,
            },
        }
    }

    /// Adds a reference; returns its target.
    pub(super) fn reference(
        &mut self,
        url: &Text<'_>,
        report: Report,
        integrity: Option<Range<usize>>,
    ) -> Option<usize> {
        let place = url.place(0);
        match self.resolve(url.bytes()) {
            Target::Nothing => None,
            Target::Elsewhere(path) => {
                if let At::File(id) = self.tree.at(&path) {
                    self.found.named.push((place, id));
                }
                None
            }
            Target::Inside(path) => match self.tree.at(&path) {
                At::Nothing => {
                    if report == Report::Broken {
                        let shown = String::from_utf8_lossy(url.bytes().trim_ascii());
                        self.found.broken.push((place, shown.into_owned()));
                    }
                    None
                }
                At::Directory => {
                    self.found.resolved += 1;
                    None
                }
                At::File(target) => {
                    self.found.resolved += 1;
                    if !self.tree.files[target].fixed || integrity.is_some() {
                        self.found.edges.push(Edge {
                            target,
                            at: url.place(hash_place(url.bytes())),
                            integrity,
                        });
                    }
                    Some(target)
                }
            },
        }
    }

    /// Keeps the name of a file, since this position uses it by name.
    pub(super) fn pin(&mut self, place: usize, file: usize) {
        self.found.named.push((place, file));
    }

    /// Text that may be the name of a file as a whole.
    pub(super) fn word(&mut self, text: &Text<'_>) {
        let Ok(word) = std::str::from_utf8(text.bytes()) else {
            return;
        };
        let word = word.trim();
        if word.is_empty() || word.len() > WORD_BYTES_MAX {
            return;
        }
        let path = &word[..word.find(['?', '#']).unwrap_or(word.len())];
        let place = text.place(0);
        for id in self.tree.meant(path) {
            self.found.named.push((place, id));
        }
        // Module loaders add the omitted suffix.
        if path.contains('/') && !path.rsplit('/').next().is_some_and(|n| n.contains('.')) {
            for id in self.tree.meant(&format!("{path}.js")) {
                self.found.named.push((place, id));
            }
        }
    }

    /// Text in which names of files may stand.
    pub(super) fn words(&mut self, text: &Text<'_>) {
        self.word(text);
        let bytes = text.bytes();
        let mut from = 0;
        while from < bytes.len() {
            let length = bytes[from..].iter().take_while(|b| in_word(**b)).count();
            let word = &bytes[from..from + length];
            if length > 0
                && length <= WORD_BYTES_MAX
                && length < bytes.len()
                && let Ok(word) = std::str::from_utf8(word)
            {
                for id in self.tree.meant(word) {
                    self.found.named.push((text.place(from), id));
                }
            }
            from += length + 1;
        }
    }

    /// Converts byte positions to line numbers.
    pub(super) fn finish(self, bytes: &[u8]) -> Found {
        let mut found = self.found;
        found.named.retain(|(_, id)| !self.tree.files[*id].fixed);
        found.named.sort_unstable();
        let mut seen = std::collections::HashSet::new();
        found.named.retain(|(_, id)| seen.insert(*id));
        found.broken.sort();
        found.edges.sort_by_key(|edge| edge.at);
        let (mut line, mut counted) = (1, 0);
        let mut line_of = |place: usize| {
            let place = place.min(bytes.len());
            if place < counted {
                (line, counted) = (1, 0);
            }
            line += bytes[counted..place]
                .iter()
                .filter(|b| **b == b'\n')
                .count();
            counted = place;
            line
        };
        for (place, _) in &mut found.named {
            *place = line_of(*place);
        }
        for (place, _) in &mut found.broken {
            *place = line_of(*place);
        }
        found
    }
}

/// Characters of file names, percent signs included.
fn in_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b >= 0x80 || b"_-./\\%~+@".contains(&b)
}

/// Longer words are no names.
const WORD_BYTES_MAX: usize = 1024;
