//! The formats of the logs: by `--format`, by a configuration, or detected.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use conf::{Item, Origin, parse};
use lab::map::log::{Field, Format, Input, LineFormat, format_named, names};

use super::access_logs::AccessLogs;
use crate::cli::output::fail;

/// Logs of a command line.
#[derive(Debug)]
pub(crate) struct Logs<'o> {
    /// The verb, for messages.
    pub(crate) verb: &'o str,
    /// Files; `-` is standard input.
    pub(crate) paths: &'o [PathBuf],
    /// The configuration of the server.
    pub(crate) conf: Option<&'o Path>,
    /// Text or name of the format.
    pub(crate) format: Option<&'o str>,
    /// Fields to be read.
    pub(crate) client: &'o Field,
}

/// The logs with their formats.
///
/// # Errors
/// A sentence: a format is wrong or unknown, or the configuration cannot be read.
pub(crate) fn inputs(logs: &Logs<'_>) -> Result<Vec<Input>, String> {
    let conf = logs.conf.map(AccessLogs::read).transpose()?;
    let client = logs.client;
    let given = logs.format;
    let given = given.map(|text| of_option(text, conf.as_ref(), client));
    let given = given.transpose()?.map(|format| Arc::new(vec![format]));
    let input = |path: &Path| {
        let path = (path != Path::new(STDOUT)).then(|| path.to_owned());
        let formats = match (&given, &conf, &path) {
            (Some(given), ..) => Some(Arc::clone(given)),
            (None, Some(conf), Some(path)) => {
                Some(Arc::new(of_log(logs.verb, conf, path, client)?))
            }
            (None, Some(_), None) => {
                return Err("standard input has no name; set its format with --format".to_owned());
            }
            (None, None, _) => None,
        };
        Ok(Input { path, formats })
    };
    logs.paths.iter().map(|path| input(path)).collect()
}

/// The formats of the `access_log` directives that write a log.
fn of_log(
    verb: &str,
    conf: &AccessLogs,
    path: &Path,
    client: &Field,
) -> Result<Vec<LineFormat>, String> {
    let found = conf.of_log(path)?;
    let mut formats = Vec::new();
    for one in found {
        let name = format!(
            "{}: the format is \"{}\", by {}",
            path.display(),
            one.name,
            one.place
        );
        let _ = fail(verb, &name);
        formats.push(compiled(&one.name, one.format.as_ref(), client)?);
    }
    Ok(formats)
}

/// The format of `--format`.
fn of_option(text: &str, conf: Option<&AccessLogs>, client: &Field) -> Result<LineFormat, String> {
    let of_conf = conf.and_then(|conf| conf.format(text));
    if of_conf.is_some() || format_named(text, client).is_some() {
        return compiled(text, of_conf, client);
    }
    let wrong = |why: String| format!("--format: {why}");
    if let Some(words) = text.trim_start().strip_prefix(DIRECTIVE) {
        let (name, format) = directive(words).map_err(wrong)?;
        return LineFormat::compile(&name, &format, client);
    }
    if text.contains('$') {
        let format = Format::of_option(text).map_err(wrong)?;
        return LineFormat::compile("of --format", &format, client);
    }
    Err(wrong(format!(
        "unknown format \"{text}\"; formats are {}, those of -c, or a text with variables such as $remote_addr",
        names()
    )))
}

/// Compiles a format of a configuration, or a predefined one.
fn compiled(name: &str, format: Option<&Format>, client: &Field) -> Result<LineFormat, String> {
    match format {
        Some(format) => LineFormat::compile(name, format, client),
        None => format_named(name, client)
            .unwrap_or_else(|| Err(format!("unknown log format \"{name}\""))),
    }
}

/// The words of a whole directive behind `log_format`.
fn directive(words: &str) -> Result<(String, Format), String> {
    let text = format!("{DIRECTIVE}{}", words.trim_end().trim_end_matches(';'));
    let text = text.into_bytes();
    let items = parse(
        &Arc::new([&text[..], b";"].concat()),
        0,
        &Origin::CommandLine,
    );
    let Some(Item::Directive(directive)) = items.into_iter().next() else {
        return Err("not a complete directive".to_owned());
    };
    if directive.args.len() < 2 {
        return Err("it lacks a name or a text".to_owned());
    }
    let words = directive.args[1..].iter().map(|word| word.as_bytes());
    Ok((directive.arg_str(0).to_owned(), Format::of_words(words)?))
}

/// Standard input as a log, and standard output as a file.
pub(crate) const STDOUT: &str = "-";

const DIRECTIVE: &str = "log_format ";

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Result<String, String> {
        of_option(text, None, &Field::default()).map(|format| format.name)
    }

    #[test]
    fn formats_have_a_name_a_text_or_a_directive() {
        for (text, expected) in [
            ("combined", "combined"),
            ("json", "json"),
            ("$remote_addr $status", "of --format"),
            ("escape=json {\"a\":\"$remote_addr\"}", "of --format"),
            ("log_format x '$remote_addr ' '$status';", "x"),
            ("log_format y escape=none \"$remote_addr\"", "y"),
        ] {
            assert_eq!(name(text), Ok(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn wrong_formats_are_refused() {
        for (text, why) in [
            (
                "none",
                "unknown format \"none\"; formats are min_rtt, rtt, combined",
            ),
            ("$status", "has no $remote_addr"),
            ("$remote_addr ${x", "--format: the closing bracket"),
            (
                "$remote_addr$status",
                "follow each other without a separator",
            ),
            ("log_format x", "it lacks a name or a text"),
            ("log_format x '$remote_addr", "not a complete directive"),
            (
                "log_format x escape=a '$remote_addr'",
                "unknown log format escaping",
            ),
        ] {
            let error = name(text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
