//! The access logs of a configuration: their files and formats.
//!
//! The configuration is read as text, as `lint` does. Unknown directives and missing files do not matter, so a
//! configuration of another machine can be used for its logs. Logs of `syslog:` have no file.
//!
//! Source: nginx documentation, `ngx_http_log_module`; logrotate(8) for names of rotated logs.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use conf::{ConfError, Directive, Disk, Item, Loader, Source};
use lab::map::log::Format;
use lint::DATA_BLOCKS;

use crate::argv;
use crate::paths::{Paths, defaults};

/// Formats and logs of a configuration.
#[derive(Debug, Default)]
pub(super) struct AccessLogs {
    formats: HashMap<String, Format>,
    logs: Vec<AccessLog>,
    /// `http` itself has an `access_log`, so the default log is not written.
    has_own: bool,
    /// Name of the file, for messages.
    file: String,
}

/// One `access_log` with a file.
#[derive(Debug, Clone)]
struct AccessLog {
    /// The full path; a variable is `*`.
    path: String,
    format: String,
    place: String,
}

/// A format of a log.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Name of the format.
    pub(super) name: String,
    /// `None` for a format that is known without a `log_format`.
    pub(super) format: Option<Format>,
    /// The `access_log`.
    pub(super) place: String,
}

impl AccessLogs {
    /// Reads a configuration and the files that it includes.
    ///
    /// # Errors
    /// A file cannot be read, or has an error of syntax.
    pub(super) fn read(file: &Path) -> Result<Self, String> {
        Self::of_source(Disk::default(), file)
    }

    fn of_source(source: impl Source + 'static, file: &Path) -> Result<Self, String> {
        let prefix = Paths::new(&argv::Options::default()).prefix;
        let mut reader = Reader {
            loader: Loader::new(source, file.parent().unwrap_or(Path::new(""))),
            prefix,
            found: Self {
                file: file.display().to_string(),
                ..Self::default()
            },
        };
        let loaded = reader.loader.load(file);
        let read = loaded.and_then(|text| reader.items(&text.items(), Block::Main));
        match read {
            Ok(()) => Ok(reader.found),
            Err(error) => Err(error.render(reader.loader.files())),
        }
    }

    /// Returns the format with a name.
    pub(super) fn format(&self, name: &str) -> Option<&Format> {
        self.formats.get(name)
    }

    /// Returns the formats of the directives that write a log. They are found by its path, else by its file name, as
    /// for a log of another machine. Rotated logs belong to the log they were rotated from.
    ///
    /// # Errors
    /// No directive writes it.
    pub(super) fn of_log(&self, log: &Path) -> Result<Vec<Found>, String> {
        let full = std::path::absolute(log).unwrap_or_else(|_| log.to_owned());
        let real = log.canonicalize().unwrap_or_else(|_| full.clone());
        let default = (!self.has_own).then(|| AccessLog {
            path: defaults().access_log.to_owned(),
            format: COMBINED.to_owned(),
            place: format!("default in {}", self.file),
        });
        let logs: Vec<&AccessLog> = self.logs.iter().chain(&default).collect();
        for is_by_path in [true, false] {
            for path in [&full, &real].into_iter().flat_map(|path| originals(path)) {
                let is_it = |log: &&&AccessLog| match is_by_path {
                    true => matches(&log.path, &path.to_string_lossy()),
                    false => is_same_name(&log.path, &path),
                };
                let mut found: Vec<Found> = Vec::new();
                for log in logs.iter().filter(is_it) {
                    if !found.iter().any(|known| known.name == log.format) {
                        found.push(self.format_of(log));
                    }
                }
                if !found.is_empty() {
                    return Ok(found);
                }
            }
        }
        let (file, log) = (&self.file, log.display());
        Err(format!(
            "no access_log in {file} writes {log}; set its format with --format"
        ))
    }

    fn format_of(&self, log: &AccessLog) -> Found {
        Found {
            name: log.format.clone(),
            format: self.formats.get(&log.format).cloned(),
            place: format!("access_log {}", log.place),
        }
    }
}

/// Blocks that matter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    Main,
    Http,
    /// A block within `http`.
    Inner,
    /// Another one, such as `stream`, or a table.
    Other,
}

struct Reader {
    loader: Loader,
    prefix: PathBuf,
    found: AccessLogs,
}

impl Reader {
    fn items(&mut self, items: &[Item], block: Block) -> Result<(), ConfError> {
        for item in items {
            let directive = match item {
                Item::Directive(directive) => directive,
                Item::Error(error) => return Err(error.clone()),
            };
            if directive.block.is_some() {
                let inner = match (block, directive.name()) {
                    (Block::Main, "http") => Block::Http,
                    (Block::Http | Block::Inner, name) if !DATA_BLOCKS.contains(&name) => {
                        Block::Inner
                    }
                    _ => Block::Other,
                };
                self.items(directive.items(), inner)?;
                continue;
            }
            match directive.name() {
                "include" if !directive.args.is_empty() && block != Block::Other => {
                    for path in self.loader.include_paths(directive)? {
                        let text = self.loader.enter(directive, &path)?;
                        self.items(&text.items(), block)?;
                        self.loader.leave();
                    }
                }
                "log_format" if block == Block::Http => self.format(directive)?,
                "access_log" if matches!(block, Block::Http | Block::Inner) => {
                    self.log(directive, block);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn format(&mut self, directive: &Directive) -> Result<(), ConfError> {
        let words = directive.args.iter().skip(1).map(|word| word.as_bytes());
        let format = Format::of_words(words).map_err(|why| ConfError::at(directive, why))?;
        let name = directive.arg_str(0).to_owned();
        self.found.formats.insert(name, format);
        Ok(())
    }

    fn log(&mut self, directive: &Directive, block: Block) {
        self.found.has_own |= block == Block::Http;
        let path = directive.arg_str(0);
        if path == "off" || path.starts_with("syslog:") {
            return;
        }
        let name = directive.args.get(1).map_or(COMBINED, |word| word.as_str());
        let file = self.loader.files().path(directive.pos.file);
        let file = file.map_or_else(String::new, |file| file.display().to_string());
        self.found.logs.push(AccessLog {
            path: self.prefix.join(pattern(path)).display().to_string(),
            format: name.to_owned(),
            place: format!("in {file}:{}", directive.pos.line),
        });
    }
}

/// A path with `*` in place of its variables.
fn pattern(path: &str) -> String {
    let mut parts = path.split('$');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let behind = match part.strip_prefix('{') {
            Some(braced) => braced.split_once('}').map_or("", |(_, behind)| behind),
            None => part.trim_start_matches(is_name),
        };
        out.push('*');
        out.push_str(behind);
    }
    out
}

/// Returns whether a path matches a pattern; `*` is at least one byte.
fn matches(pattern: &str, path: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('*') else {
        return pattern == path;
    };
    let Some(path) = path.strip_prefix(begin) else {
        return false;
    };
    let mut ends = path.char_indices().skip(1).map(|(at, _)| at);
    ends.any(|end| matches(rest, &path[end..])) || (rest.is_empty() && !path.is_empty())
}

/// Returns whether the last part of a pattern matches the name of a file.
fn is_same_name(pattern: &str, path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let (_, last) = pattern.rsplit_once('/').unwrap_or(("", pattern));
    // A pattern that is only a variable would match any file.
    last != "*" && matches(last, &name)
}

/// The path, and those it may have had before it was rotated and compressed: `a.log.2.gz` was `a.log`, and `a-20261129.log` too.
fn originals(path: &Path) -> Vec<PathBuf> {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return vec![path.to_owned()];
    };
    let mut names = vec![name.to_owned()];
    let plain = COMPRESSED.iter().find_map(|end| name.strip_suffix(end));
    names.extend(plain.map(str::to_owned));
    let plain = plain.unwrap_or(name);
    names.extend(rotated(plain).map(str::to_owned));
    // logrotate's `extension` keeps the extension of the name at the end.
    if let Some((stem, extension)) = plain.rsplit_once('.') {
        names.extend(rotated(stem).map(|stem| format!("{stem}.{extension}")));
    }
    names.iter().map(|name| path.with_file_name(name)).collect()
}

/// Returns the prefixes of a name before a number or date after `.`, `-` or `_`, the longest first.
fn rotated(name: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_ascii_digit() || SEPARATORS.contains(&c);
    let kept = name.trim_end_matches(is_part).len();
    let ends = name.char_indices().rev();
    let ends = ends.filter(move |(at, c)| *at >= kept.max(1) && SEPARATORS.contains(c));
    ends.map(|(at, _)| &name[..at])
        .filter(move |begin| begin.len() + 1 < name.len())
}

const SEPARATORS: [char; 4] = ['.', '-', '_', ':'];
const COMPRESSED: [&str; 3] = [".gz", ".zst", ".zstd"];
const COMBINED: &str = "combined";

#[cfg(test)]
mod tests {
    use conf::Memory;

    use super::*;

    const CONF: &str = "
        log_format outer '$status';
        stream { log_format s '$remote_addr'; access_log /log/stream.log s; }
        http {
            log_format main '$remote_addr ' '$status';
            log_format other escape=json '{\"a\":\"$remote_addr\"}';
            access_log /log/access.log main buffer=32k;
            include sites/*;
        }";
    const SITE: &str = "
        server {
            access_log /log/access.log other;
            access_log /log/access.log main if=$a;
            access_log /log/$host/site.log other;
            access_log /log/v-${server_name}.log;
            location / { access_log off; access_log syslog:server=127.0.0.1 main; }
            location /a { access_log logs/relative.log other; }
            location /b { if ($a) { access_log /log/access.log.1 combined; } }
        }";

    fn logs() -> AccessLogs {
        let source = Memory::default()
            .with_file("/c/nginx.conf", CONF)
            .with_file("/c/sites/a", SITE);
        AccessLogs::of_source(source, Path::new("/c/nginx.conf")).expect("it is sound")
    }

    fn names(log: &str) -> Vec<String> {
        let found = logs().of_log(Path::new(log)).unwrap_or_default();
        found.into_iter().map(|one| one.name).collect()
    }

    #[test]
    fn formats_are_those_of_the_directives_that_write_a_log() {
        for (log, expected) in [
            ("/log/access.log", &["main", "other"][..]),
            ("/log/access.log.2.gz", &["main", "other"]),
            ("/log/access.log-20261129", &["main", "other"]),
            ("/log/access.log-20261129.zst", &["main", "other"]),
            ("/log/access.log-2026-11-29_07", &["main", "other"]),
            ("/log/access-20261129.log.gz", &["main", "other"]),
            // A log with such a name of its own.
            ("/log/access.log.1", &["combined"]),
            ("/log/a.example/site.log.1", &["other"]),
            ("/log/v-a.example.log", &["combined"]),
            ("/log/v-a.example-20261129.log", &["combined"]),
            // From another machine.
            ("/copies/access.log.3", &["main", "other"]),
            ("/copies/relative.log", &["other"]),
            ("/copies/none.log", &[]),
            ("/log/stream.log", &[]),
            ("/log/access.log2", &[]),
        ] {
            assert_eq!(names(log), expected, "{log}");
        }
        let found = &logs().of_log(Path::new("/log/a/site.log")).expect("found")[0];
        assert_eq!(found.place, "access_log in /c/sites/a:5");
        assert!(
            found
                .format
                .as_ref()
                .is_some_and(|own| own.has("remote_addr"))
        );
        assert!(logs().format("outer").is_none() && logs().format("s").is_none());
    }

    #[test]
    fn a_log_that_nobody_writes_is_an_error() {
        let why = logs().of_log(Path::new("/x/none.log")).expect_err("no");
        assert_eq!(
            why,
            "no access_log in /c/nginx.conf writes /x/none.log; set its format with --format"
        );
    }

    #[test]
    fn without_access_log_the_default_is_written() {
        let of = |text: &str| {
            let source = Memory::default().with_file("/c/n.conf", text);
            let logs = AccessLogs::of_source(source, Path::new("/c/n.conf"));
            let default = Path::new(defaults().access_log);
            logs.expect("it is sound")
                .of_log(default)
                .map(|found| found[0].name.clone())
        };
        assert_eq!(of("http { }"), Ok("combined".to_owned()));
        assert_eq!(
            of("http { server { access_log /a; } }"),
            Ok("combined".to_owned())
        );
        assert!(of("http { access_log off; }").is_err());
    }

    #[test]
    fn wrong_configurations_are_errors_with_their_line() {
        for (text, why) in [
            ("http {\n log_format a '$';\n}", "without a name"),
            ("http {\n log_format a escape=x '$a';\n}", "/c/n.conf:2"),
            ("http {", "unexpected end of file"),
            ("include none;", "none"),
        ] {
            let source = Memory::default().with_file("/c/n.conf", text);
            let error = AccessLogs::of_source(source, Path::new("/c/n.conf")).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn variables_of_paths_are_at_least_a_byte() {
        assert_eq!(pattern("/a/$b.log"), "/a/*.log");
        assert_eq!(pattern("/a/${b}c$d"), "/a/*c*");
        assert!(matches("/a/*.log", "/a/b.log") && matches("/a/*", "/a/b"));
        assert!(!matches("/a/*.log", "/a/.log") && !matches("/a/*", "/a/"));
        assert!(matches("*a*", "xaax") && !matches("*a*", "axxa"));
    }
}
