//! The command line of `freeze`.

use std::ffi::OsString;
use std::path::PathBuf;

use super::compress::{Coding, Effort};
use super::url::Site;
use crate::tools::long::{Asked, Long, plain, with};

/// What is to be frozen, and how.
#[derive(Debug)]
pub(super) struct Options {
    /// The tree.
    pub(super) dir: PathBuf,
    /// Where the frozen tree goes.
    pub(super) out: PathBuf,
    /// Where the manifest goes; beside the frozen tree without.
    pub(super) manifest: Option<PathBuf>,
    /// Patterns of what keeps its name, in addition to the usual ones.
    pub(super) keep: Vec<String>,
    /// Patterns of what is left out.
    pub(super) exclude: Vec<String>,
    /// Where the tree will be found.
    pub(super) site: Site,
    /// Follow symbolic links out of the tree.
    pub(super) follow: bool,
    /// Rename also what nothing refers to.
    pub(super) all: bool,
    /// Say which files keep their names because of what.
    pub(super) verbose: bool,
    /// Broken references are a failure.
    pub(super) strict: bool,
    /// Codings of siblings.
    pub(super) codings: Vec<Coding>,
    /// How much time compressing may take.
    pub(super) effort: Effort,
    /// How many threads work.
    pub(super) threads: usize,
}

/// The options, in the order of the help.
pub(crate) const LONGS: &[Long] = &[
    with("out", "DIR", "where the frozen tree goes"),
    with(
        "manifest",
        "FILE",
        "where the manifest goes (default: beside the frozen tree, with .manifest.json after its name)",
    ),
    with(
        "keep",
        "GLOB",
        "files that keep their names; may be repeated",
    ),
    with(
        "exclude",
        "GLOB",
        "files that are left out; may be repeated",
    ),
    with(
        "site",
        "URL",
        "where the tree will be found: https://host/path/ or /path/ (default: /)",
    ),
    with(
        "encodings",
        "LIST",
        "compressed copies to write: of br, zst and gz, or none (default: br,zst,gz)",
    ),
    with(
        "effort",
        "LEVEL",
        "fast, good or best: time for compressing (default: good)",
    ),
    with(
        "threads",
        "N",
        "how many threads work (default: one for each processor)",
    ),
    plain("all", "rename also what nothing refers to"),
    plain("follow", "follow symbolic links that lead out of the tree"),
    plain("strict", "end with status 2 when a reference is broken"),
    plain(
        "verbose",
        "say what keeps its name because a script names it",
    ),
];

/// Reads the words after the tool's name.
///
/// # Errors
/// What is wrong with them.
pub(super) fn parse(words: &[OsString]) -> Result<Asked<Options>, String> {
    let mut found = Found::default();
    let mut words = words.iter();
    let mut only_paths = false;
    while let Some(word) = words.next() {
        let text = word.to_str().filter(|_| !only_paths);
        match text {
            Some("--") => only_paths = true,
            Some("-h" | "-?" | "--help") => return Ok(Asked::Help),
            Some(text) if text.starts_with("--") => found.long(&text[2..], &mut words)?,
            Some(text) if text.starts_with('-') && text.len() > 1 => {
                return Err(format!("invalid option: \"{text}\""));
            }
            _ if found.dir.is_some() => {
                let word = word.to_string_lossy();
                return Err(format!("one tree at a time: \"{word}\" is another"));
            }
            _ => found.dir = Some(word.into()),
        }
    }
    found.finish()
}

#[derive(Default)]
struct Found {
    dir: Option<PathBuf>,
    out: Option<PathBuf>,
    manifest: Option<PathBuf>,
    keep: Vec<String>,
    exclude: Vec<String>,
    site: Site,
    codings: Option<Vec<Coding>>,
    effort: Effort,
    threads: Option<usize>,
    all: bool,
    follow: bool,
    strict: bool,
    verbose: bool,
}

impl Found {
    /// An option of the form `--name value` or `--name=value`.
    fn long<'a>(
        &mut self,
        word: &str,
        words: &mut impl Iterator<Item = &'a OsString>,
    ) -> Result<(), String> {
        let (name, given) = match word.split_once('=') {
            Some((name, value)) => (name, Some(OsString::from(value))),
            None => (word, None),
        };
        let Some(long) = LONGS.iter().find(|long| long.name == name) else {
            return Err(format!("invalid option: \"--{word}\""));
        };
        if long.value.is_none() {
            if given.is_some() {
                return Err(format!("option \"--{name}\" takes no value"));
            }
            match name {
                "all" => self.all = true,
                "follow" => self.follow = true,
                "strict" => self.strict = true,
                _ => self.verbose = true,
            }
            return Ok(());
        }
        let value = given.or_else(|| words.next().cloned());
        let value = value
            .filter(|value| !value.is_empty())
            .ok_or_else(|| format!("option \"--{name}\" requires a value"))?;
        match name {
            "out" => self.out = Some(value.into()),
            "manifest" => self.manifest = Some(value.into()),
            _ => {
                let text = value.to_str();
                let text = text.ok_or_else(|| format!("the value of \"--{name}\" is not UTF-8"))?;
                self.text(name, text)?;
            }
        }
        Ok(())
    }

    fn text(&mut self, name: &str, value: &str) -> Result<(), String> {
        let wrong = |what: &str| format!("\"{value}\" is no {what}");
        match name {
            "keep" => self.keep.push(value.to_owned()),
            "exclude" => self.exclude.push(value.to_owned()),
            "site" => self.site = Site::parse(value).ok_or_else(|| wrong("site"))?,
            "effort" => self.effort = Effort::named(value).ok_or_else(|| wrong("effort"))?,
            "encodings" if value == "none" => self.codings = Some(Vec::new()),
            "encodings" => {
                let mut codings = Vec::new();
                for name in value.split(',') {
                    let coding = Coding::named(name).ok_or_else(|| wrong("list of encodings"))?;
                    if !codings.contains(&coding) {
                        codings.push(coding);
                    }
                }
                self.codings = Some(codings);
            }
            _ => {
                let number = value.parse().ok().filter(|n| (1..=THREADS_MAX).contains(n));
                self.threads = Some(number.ok_or_else(|| wrong("number of threads"))?);
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Asked<Options>, String> {
        let dir = self.dir.ok_or("no directory is given")?;
        let out = self.out.ok_or("no --out is given")?;
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Asked::Work(Box::new(Options {
            dir,
            out,
            manifest: self.manifest,
            keep: self.keep,
            exclude: self.exclude,
            site: self.site,
            follow: self.follow,
            all: self.all,
            verbose: self.verbose,
            strict: self.strict,
            codings: self.codings.unwrap_or_else(|| Coding::ALL.to_vec()),
            effort: self.effort,
            threads: self.threads.unwrap_or_else(processors).min(THREADS_MAX),
        })))
    }
}

/// More threads than this are a mistake.
const THREADS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(words: &[&str]) -> String {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        parse(&words).expect_err("it is refused")
    }

    #[test]
    fn options_are_read() {
        let words = "www --out=o --keep *.pdf --keep=x/ --encodings gz,br --threads 256 --strict --effort best";
        let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
        let Ok(Asked::Work(options)) = parse(&words) else {
            panic!("it is accepted")
        };
        assert_eq!(options.keep, ["*.pdf", "x/"]);
        assert_eq!(options.codings, [Coding::Gzip, Coding::Brotli]);
        assert_eq!(
            (options.threads, options.strict, options.all),
            (256, true, false)
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert_eq!(refused(&[]), "no directory is given");
        assert_eq!(refused(&["www"]), "no --out is given");
        assert_eq!(refused(&["a", "b"]), "one tree at a time: \"b\" is another");
        assert_eq!(refused(&["-x"]), "invalid option: \"-x\"");
        assert_eq!(refused(&["--wrong=1"]), "invalid option: \"--wrong=1\"");
        assert_eq!(refused(&["--all=1"]), "option \"--all\" takes no value");
        assert_eq!(refused(&["--out"]), "option \"--out\" requires a value");
        assert_eq!(
            refused(&["--threads", "257"]),
            "\"257\" is no number of threads"
        );
        assert_eq!(
            refused(&["--encodings=xz"]),
            "\"xz\" is no list of encodings"
        );
        assert_eq!(refused(&["--site=docs"]), "\"docs\" is no site");
    }
}
