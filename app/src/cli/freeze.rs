//! `freeze`: a static site's tree with the hash of its content in the name of each file that pages refer to.
//!
//! The work is that of the crate `freeze`. Source: of our own; docs/freeze.md.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use freeze::{Coding, Effort, Site};

use super::output::{fail, status};
use super::status::CONDITION;
use super::values::count;
use crate::stdout;

/// copy a static site, with hashes in names and compressed copies
///
/// Copies the tree of a static site. Files referenced by pages get a name with the hash of their content, and references are
/// rewritten. Compressed copies are written if they save enough, and a manifest lists all files. A second run writes only
/// changes; the new tree replaces the old one as a whole.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// The tree
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Directory of the frozen tree
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// File of the manifest (beside the frozen tree, with .manifest.json after its name)
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// Files that keep their names; may be repeated
    #[arg(long, value_name = "GLOB")]
    keep: Vec<String>,
    /// Files to leave out; may be repeated
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,
    /// URL of the tree: https://host/path/ or /path/
    #[arg(long, value_name = "URL", default_value = "/", value_parser = site)]
    site: Site,
    /// Compressed copies to write, separated by commas, or none
    #[arg(long, value_name = "LIST", default_value = "br,zst,gz", value_delimiter = ',', value_parser = encodings())]
    encodings: Vec<Encoding>,
    /// Time for compressing
    #[arg(long, value_name = "LEVEL", default_value = "good", value_parser = efforts())]
    effort: Effort,
    /// Threads (one for each processor)
    #[arg(long, value_name = "N", value_parser = count::<THREADS_MAX>)]
    threads: Option<usize>,
    /// Also rename files without references
    #[arg(long)]
    all: bool,
    /// Follow symbolic links that lead out of the tree
    #[arg(long)]
    follow: bool,
    /// End with status 2 if a reference is broken, or blocked by a wrong digest
    #[arg(long)]
    strict: bool,
    /// Report files that keep their names because a script names them
    #[arg(long)]
    verbose: bool,
}

/// A coding; `None` for no compression.
type Encoding = Option<Coding>;

fn encodings() -> impl TypedValueParser<Value = Encoding> {
    PossibleValuesParser::new(["br", "zst", "gz", "none"]).map(|name| Coding::from_suffix(&name))
}

fn efforts() -> impl TypedValueParser<Value = Effort> {
    PossibleValuesParser::new(["fast", "good", "best"])
        .map(|name| Effort::from_name(&name).unwrap_or_default())
}

fn site(text: &str) -> Result<Site, String> {
    Site::parse(text).ok_or_else(|| "not a URL or path of a site".to_owned())
}

impl Options {
    fn work(&self) -> freeze::Options {
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        let mut codings = Vec::new();
        for coding in self.encodings.iter().flatten() {
            if !codings.contains(coding) {
                codings.push(*coding);
            }
        }
        freeze::Options {
            dir: self.dir.clone(),
            out: self.out.clone(),
            manifest: self.manifest.clone(),
            keep: self.keep.clone(),
            exclude: self.exclude.clone(),
            site: self.site.clone(),
            follow: self.follow,
            all: self.all,
            verbose: self.verbose,
            codings,
            effort: self.effort,
            threads: self.threads.unwrap_or_else(processors).min(THREADS_MAX),
        }
    }
}

/// Runs the verb.
pub(super) fn run(options: &Options) -> ExitCode {
    match freeze::freeze(&options.work()) {
        Ok(frozen) => match stdout::write(&frozen.summary) {
            Ok(()) if options.strict && frozen.broken + frozen.blocked > 0 => {
                ExitCode::from(CONDITION)
            }
            printed => status("freeze", printed),
        },
        Err(why) => fail("freeze", &why),
    }
}

/// More threads than this are a mistake.
const THREADS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::values::parsed;

    #[test]
    fn options_are_read() {
        let line = "www --out=o --keep *.pdf --keep=x/ --encodings gz,br,gz --threads 256 --strict --effort best";
        let options: Options = parsed(line).expect("it is accepted");
        let work = options.work();
        assert_eq!(work.keep, ["*.pdf", "x/"]);
        assert_eq!(work.codings, [Coding::Gzip, Coding::Brotli]);
        assert_eq!((work.threads, options.strict, work.all), (256, true, false));
        assert_eq!(work.effort, Effort::Best);
        let all: Options = parsed("www --out o").expect("it is accepted");
        assert_eq!(all.work().codings, Coding::ALL);
        let none: Options = parsed("www --out o --encodings none").expect("it is accepted");
        assert!(none.work().codings.is_empty());
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (line, why) in [
            ("--out o", "<DIR>"),
            ("www", "--out <DIR>"),
            ("a b --out o", "unexpected argument 'b'"),
            ("a --out o --threads 257", "not a number from 1 to 256"),
            (
                "a --out o --encodings=xz",
                "[possible values: br, zst, gz, none]",
            ),
            ("a --out o --site=docs", "not a URL or path of a site"),
            ("a --out o --all=1", "unexpected value '1' for '--all'"),
        ] {
            let told = parsed::<Options>(line)
                .map(|_| ())
                .expect_err("it is refused");
            assert!(told.contains(why), "{line}: {told}");
        }
    }
}
