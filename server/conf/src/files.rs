//! The texts a configuration was read from.
//!
//! Positions name a file by its index here; `-T` prints the files in the order they were first read, each once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Loaded files in first-read order, and the command line's text.
#[derive(Debug, Default, Clone)]
pub struct Files {
    files: Vec<(PathBuf, FileContent)>,
    index: HashMap<PathBuf, u32>,
    command_line: FileContent,
}

/// A text, and the offsets of its lines, computed at the first request: there may be a message for each line.
#[derive(Debug, Default, Clone)]
struct FileContent {
    bytes: Arc<Vec<u8>>,
    starts: OnceLock<Vec<usize>>,
}

impl FileContent {
    fn new(bytes: &Arc<Vec<u8>>) -> Self {
        Self {
            bytes: Arc::clone(bytes),
            starts: OnceLock::new(),
        }
    }

    /// A line, counted from 0, without its line feed.
    fn line(&self, index: usize) -> Option<&[u8]> {
        let starts = self.starts.get_or_init(|| {
            let bytes = self.bytes.iter().enumerate();
            let ends = bytes.filter(|(_, byte)| **byte == b'\n');
            std::iter::once(0)
                .chain(ends.map(|(end, _)| end + 1))
                .collect()
        });
        let end = match starts.get(index + 1) {
            Some(next) => next - 1,
            None => self.bytes.len(),
        };
        self.bytes.get(*starts.get(index)?..end)
    }
}

impl Files {
    /// Adds a file and returns its index; a path that is known keeps its first text and index.
    pub fn add(&mut self, path: &Path, text: &Arc<Vec<u8>>) -> u32 {
        let entry = match self.index.entry(path.to_path_buf()) {
            Entry::Occupied(known) => return *known.get(),
            Entry::Vacant(entry) => entry,
        };
        // One below the index of the command line; no configuration has four billion files.
        let index = u32::try_from(self.files.len()).unwrap_or(COMMAND_LINE - 1);
        self.files
            .push((path.to_path_buf(), FileContent::new(text)));
        *entry.insert(index)
    }

    /// Keeps the text given with `-g`.
    pub fn set_command_line(&mut self, text: &Arc<Vec<u8>>) {
        self.command_line = FileContent::new(text);
    }

    /// The files in first-read order, as `-T` prints them.
    pub fn iter(&self) -> impl Iterator<Item = (&Path, &[u8])> {
        self.files
            .iter()
            .map(|(path, text)| (path.as_path(), text.bytes.as_slice()))
    }

    /// Number of files.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether no file was read.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The path of a file.
    pub fn path(&self, file: u32) -> Option<&Path> {
        self.files
            .get(file as usize)
            .map(|(path, _)| path.as_path())
    }

    /// The text of a file, or of the command line.
    pub fn text(&self, file: u32) -> Option<&[u8]> {
        self.entry(file).map(|text| text.bytes.as_slice())
    }

    fn entry(&self, file: u32) -> Option<&FileContent> {
        match file {
            COMMAND_LINE => Some(&self.command_line),
            _ => self.files.get(file as usize).map(|(_, text)| text),
        }
    }

    /// A line (from 1) of a file, without its line end.
    pub fn line(&self, file: u32, line: u32) -> Option<&[u8]> {
        let index = (line as usize).checked_sub(1)?;
        let text = self.entry(file)?.line(index)?;
        Some(text.strip_suffix(b"\r").unwrap_or(text))
    }
}

/// The index of the text given with `-g`, which is no file.
pub const COMMAND_LINE: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_read_twice_is_kept_once() {
        let mut files = Files::default();
        assert_eq!(files.add(Path::new("/b"), &Arc::new(b"1".to_vec())), 0);
        assert_eq!(files.add(Path::new("/a"), &Arc::new(b"2".to_vec())), 1);
        assert_eq!(files.add(Path::new("/b"), &Arc::new(b"3".to_vec())), 0);
        let kept: Vec<_> = files.iter().collect();
        assert_eq!(
            kept,
            [
                (Path::new("/b"), b"1".as_slice()),
                (Path::new("/a"), b"2".as_slice())
            ]
        );
    }

    #[test]
    fn lines_are_counted_from_one_and_have_no_end() {
        let mut files = Files::default();
        files.add(Path::new("/a"), &Arc::new(b"one\r\ntwo\n".to_vec()));
        files.set_command_line(&Arc::new(b"daemon off;".to_vec()));
        assert_eq!(files.line(0, 1), Some(b"one".as_slice()));
        assert_eq!(files.line(0, 2), Some(b"two".as_slice()));
        assert_eq!(files.line(0, 3), Some(b"".as_slice()));
        assert_eq!(files.line(0, 4), None);
        assert_eq!(files.line(0, 0), None);
        assert_eq!(files.line(9, 1), None);
        assert_eq!(files.line(COMMAND_LINE, 1), Some(b"daemon off;".as_slice()));
    }
}
