//! Files to items: opens the files of `-c` and `include`, counts depth, keeps texts and warnings.
//!
//! Relative paths are below the configuration's own directory. An `include` of a plain path must exist; one of a
//! pattern may match nothing. Included files are read one by one, as the walk comes to them.
//!
//! Source: nginx documentation, `include` of ngx_core_module.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::regular::EISDIR;
use crate::{
    COMMAND_LINE, ConfError, Directive, Files, Item, Origin, Source, glob, parse, parse::Part,
    parse::Reader,
};

/// How bad a collected message is; an error that stops the load is always `emerg`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// `nginx: [warn] ...`
    Warn,
    /// `nginx: [notice] ...`
    Notice,
}

impl Level {
    /// The name in brackets.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Warn => "warn",
            Self::Notice => "notice",
        }
    }
}

/// A file that was read.
#[derive(Debug)]
pub struct FileText {
    text: Arc<Vec<u8>>,
    file: u32,
    origin: Origin,
}

impl FileText {
    /// All its items.
    pub fn items(&self) -> Vec<Item> {
        parse(&self.text, self.file, &self.origin)
    }

    /// Hands each item to `f` before the next one is parsed.
    ///
    /// # Errors
    /// The first of `f`, which ends it.
    pub fn each(&self, mut f: impl FnMut(&Item) -> Result<(), ConfError>) -> Result<(), ConfError> {
        let mut reader = self.reader();
        while let Part::Item(item) = reader.next(&|_| false) {
            f(&item)?;
        }
        Ok(())
    }

    /// A reader of its items.
    pub(crate) fn reader(&self) -> Reader {
        Reader::new(Arc::clone(&self.text), self.file, self.origin.clone())
    }
}

/// Reads the files of one configuration.
pub struct Loader {
    source: Box<dyn Source>,
    files: Files,
    conf_prefix: PathBuf,
    warnings: Vec<(Level, ConfError)>,
    depth: usize,
    included: usize,
    /// Reader of the block that a directive opens, from its head on until its row takes it, and back afterwards.
    open: Option<Reader>,
}

impl Loader {
    /// Reads from `source`; relative includes are below `conf_prefix`, the directory of the main file.
    pub fn new(source: impl Source + 'static, conf_prefix: impl Into<PathBuf>) -> Self {
        Self {
            source: Box::new(source),
            files: Files::default(),
            conf_prefix: conf_prefix.into(),
            warnings: Vec::new(),
            depth: 0,
            included: 0,
            open: None,
        }
    }

    /// Reads a file: the main one, or any other outside an `include`.
    ///
    /// # Errors
    /// When it cannot be opened or read; without a place, as nginx has none then. Syntax errors are in the items.
    pub fn load(&mut self, path: &Path) -> Result<FileText, ConfError> {
        let text = self.source.read_text(path);
        let text = text.map_err(|error| read_error(path, &error))?;
        let file = self.files.add(path, &text);
        let origin = Origin::file(path);
        Ok(FileText { text, file, origin })
    }

    /// Parses the argument of `-g`.
    pub fn command_line(&mut self, text: &[u8]) -> Vec<Item> {
        let text = Arc::new(text.to_vec());
        self.files.set_command_line(&text);
        parse(&text, COMMAND_LINE, &Origin::CommandLine)
    }

    /// The full path of a name that is relative to the configuration's directory.
    pub fn conf_path(&self, name: &[u8]) -> PathBuf {
        self.conf_prefix.join(OsStr::from_bytes(name))
    }

    /// Reads a file that a directive names (a password file, a table); relative to the configuration's directory.
    ///
    /// # Errors
    /// The I/O error.
    pub fn read(&mut self, name: &[u8]) -> io::Result<Vec<u8>> {
        let path = self.conf_path(name);
        self.source.read(&path)
    }

    /// The files the first argument of an `include` names, in order.
    ///
    /// # Errors
    /// When the source cannot be searched.
    pub fn include_paths(&mut self, include: &Directive) -> Result<Vec<PathBuf>, ConfError> {
        let path = self.conf_path(include.arg(0));
        let pattern = path.to_string_lossy();
        if !glob::is_pattern(&pattern) {
            return Ok(vec![path]);
        }
        self.source
            .glob(&pattern)
            .map_err(|error| ConfError::io("glob", &path, &error).or_at(include, include.word(0)))
    }

    /// Reads an included file; [`Loader::leave`] when its items have been walked.
    ///
    /// # Errors
    /// When it cannot be read, or includes are nested too deep or too many.
    pub fn enter(&mut self, include: &Directive, path: &Path) -> Result<FileText, ConfError> {
        let too_many = if self.depth >= INCLUDE_DEPTH_MAX {
            Some(format!(
                "\"{}\" is included deeper than {INCLUDE_DEPTH_MAX} levels",
                path.display()
            ))
        } else if self.included >= INCLUDES_MAX {
            Some(format!("more than {INCLUDES_MAX} files are included"))
        } else {
            None
        };
        if let Some(message) = too_many {
            return Err(ConfError::word(include, include.word(0), message));
        }
        let text = self
            .load(path)
            .map_err(|error| error.or_at(include, include.word(0)))?;
        self.depth += 1;
        self.included += 1;
        Ok(text)
    }

    /// Leaves the file of [`Loader::enter`].
    pub fn leave(&mut self) {
        debug_assert!(self.depth > 0, "leave without enter");
        self.depth = self.depth.saturating_sub(1);
    }

    /// Stores a reader for the code that continues: the row of a block, or the walk of the outer text.
    pub(crate) fn put_open(&mut self, reader: Reader) {
        self.open = Some(reader);
    }

    /// Takes the reader that was put back.
    pub(crate) fn take_open(&mut self) -> Option<Reader> {
        self.open.take()
    }

    /// Keeps a message that does not stop the load.
    pub fn warn(&mut self, level: Level, message: ConfError) {
        self.warnings.push((level, message));
    }

    /// The messages kept, in order.
    pub fn warnings(&self) -> &[(Level, ConfError)] {
        &self.warnings
    }

    /// The texts read so far.
    pub fn files(&self) -> &Files {
        &self.files
    }

    /// The texts that were read.
    pub fn into_files(self) -> Files {
        self.files
    }

    /// The directory relative includes are below.
    pub fn conf_prefix(&self) -> &Path {
        &self.conf_prefix
    }

    /// The source, for directives that look for other files.
    pub fn source(&mut self) -> &mut dyn Source {
        self.source.as_mut()
    }
}

fn read_error(path: &Path, error: &io::Error) -> ConfError {
    // nginx opens a directory without an error and fails at reading it.
    let call = if error.raw_os_error() == Some(EISDIR) {
        "pread"
    } else {
        "open"
    };
    ConfError::io(call, path, error)
}

/// Includes may be nested this deep; a file that includes itself ends here. (nginx runs out of descriptors.)
pub const INCLUDE_DEPTH_MAX: usize = 32;
/// Files that may be included in one load, repetitions counted: bounds files that include each other many times.
pub const INCLUDES_MAX: usize = 200_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memory;
    use crate::testing::directive;

    fn loader(files: &[(&str, &str)]) -> Loader {
        let memory = files
            .iter()
            .fold(Memory::default(), |memory, (path, text)| {
                memory.with_file(*path, *text)
            });
        Loader::new(memory, "/etc/nginx")
    }

    fn included(loader: &mut Loader, name: &str) -> Vec<String> {
        let paths = loader
            .include_paths(&directive(&format!("include {name};")))
            .expect("memory can be searched");
        paths
            .iter()
            .map(|path| path.display().to_string())
            .collect()
    }

    #[test]
    fn names_are_relative_to_the_configuration() {
        let mut loader = loader(&[("/etc/nginx/conf.d/a.conf", ""), ("/srv/b.conf", "")]);
        assert_eq!(
            included(&mut loader, "mime.types"),
            ["/etc/nginx/mime.types"]
        );
        assert_eq!(included(&mut loader, "/srv/b.conf"), ["/srv/b.conf"]);
        assert_eq!(
            included(&mut loader, "conf.d/*"),
            ["/etc/nginx/conf.d/a.conf"]
        );
        assert_eq!(included(&mut loader, "none/*"), [""; 0]);
    }

    #[test]
    fn a_missing_main_file_has_no_place() {
        let error = loader(&[])
            .load(Path::new("/x"))
            .expect_err("it is not there");
        assert_eq!(
            error.to_string(),
            "open() \"/x\" failed (2: No such file or directory)"
        );
    }

    #[test]
    fn a_missing_included_file_is_an_error_of_the_include() {
        let include = directive("\ninclude x;");
        let error = loader(&[])
            .enter(&include, Path::new("/x"))
            .expect_err("it is not there");
        assert_eq!(
            error.to_string(),
            "open() \"/x\" failed (2: No such file or directory) in /a.conf:2"
        );
    }

    #[test]
    fn a_directory_cannot_be_read() {
        let error = Loader::new(crate::Disk::default(), "/")
            .load(Path::new("/"))
            .expect_err("it is a directory");
        assert_eq!(
            error.to_string(),
            "pread() \"/\" failed (21: Is a directory)"
        );
    }

    #[test]
    fn the_depth_of_includes_is_limited() {
        let mut loader = loader(&[("/x", "a;")]);
        let include = directive("include x;");
        for _ in 0..INCLUDE_DEPTH_MAX {
            loader
                .enter(&include, Path::new("/x"))
                .expect("within the limit");
        }
        let error = loader
            .enter(&include, Path::new("/x"))
            .expect_err("one past the limit");
        assert_eq!(
            error.to_string(),
            "\"/x\" is included deeper than 32 levels in /a.conf:1"
        );
        loader.leave();
        assert!(loader.enter(&include, Path::new("/x")).is_ok());
    }

    #[test]
    fn the_number_of_includes_is_limited() {
        let mut loader = loader(&[("/x", "")]);
        let include = directive("include x;");
        loader.included = INCLUDES_MAX - 1;
        loader
            .enter(&include, Path::new("/x"))
            .expect("within the limit");
        loader.leave();
        let error = loader
            .enter(&include, Path::new("/x"))
            .expect_err("one past the limit");
        assert_eq!(error.message(), "more than 200000 files are included");
    }

    #[test]
    fn warnings_are_kept_in_order() {
        let mut loader = loader(&[]);
        loader.warn(Level::Warn, ConfError::new("a"));
        loader.warn(Level::Notice, ConfError::new("b"));
        let kept: Vec<_> = loader
            .warnings()
            .iter()
            .map(|(l, e)| format!("[{}] {e}", l.as_str()))
            .collect();
        assert_eq!(kept, ["[warn] a", "[notice] b"]);
    }
}
