//! SARIF 2.1.0 for code hosts: a run with its rules, and results with levels, messages and regions.
//!
//! URIs of files below the current directory are relative to it, as a pipeline runs in its checkout; others are absolute.
//! Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0", sections 3.13 to 3.30.

use std::env;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use lint::{Finding, Level, Report, Rule};
use serde_json::{Value, json};
use sys::os_error;

use super::Region;

/// The log of one run about the configuration at `conf_path`.
///
/// # Errors
/// A sentence: the current directory is not known.
pub(crate) fn log(report: &Report, conf_path: &Path) -> Result<Value, String> {
    let here = env::current_dir()
        .map_err(|error| format!("the current directory is not known ({})", os_error(&error)))?;
    let results = report.findings.iter();
    let results = results.map(|finding| result(finding, report, conf_path, &here));
    Ok(json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "firstbyte lint",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": lint::rules().iter().map(rule).collect::<Vec<_>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "results": results.collect::<Vec<_>>(),
        }],
    }))
}

/// A rule with the text of its section in docs/lint.md.
fn rule(rule: &Rule) -> Value {
    let section = lint::section(rule.code).unwrap_or(rule.title);
    let first = section.split("\n\n").next().unwrap_or(section);
    json!({
        "id": rule.code,
        "shortDescription": { "text": rule.title },
        "fullDescription": { "text": first.replace('\n', " ") },
        "help": {
            "text": format!("See {} in docs/lint.md.", rule.code),
            "markdown": section,
        },
        "defaultConfiguration": { "level": level(rule.level) },
    })
}

/// The word of SARIF for a level.
fn level(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Warn => "warning",
        Level::Notice => "note",
    }
}

fn result(finding: &Finding, report: &Report, conf_path: &Path, here: &Path) -> Value {
    let index = lint::rules()
        .iter()
        .position(|rule| rule.code == finding.rule.code);
    let message = match finding.warning.hint() {
        Some(hint) => format!("{}\n{hint}", finding.message()),
        None => finding.message().to_owned(),
    };
    // Code hosts want a place in a file; the command line of the run is none.
    let (path, place) = match finding.path(&report.files) {
        Some(path) => (path, Region::of(finding, report)),
        None => (conf_path, None),
    };
    let region = match place {
        Some(place) => json!({
            "startLine": place.line,
            "startColumn": place.column,
            "endLine": place.line,
            "endColumn": place.end_column,
        }),
        None => json!({ "startLine": 1 }),
    };
    json!({
        "ruleId": finding.rule.code,
        "ruleIndex": index,
        "level": level(finding.rule.level),
        "message": { "text": message },
        "locations": [{ "physicalLocation": {
            "artifactLocation": artifact(path, here),
            "region": region,
        }}],
    })
}

fn artifact(path: &Path, here: &Path) -> Value {
    match below(path, here) {
        Some(relative) => json!({ "uri": encoded(&relative), "uriBaseId": "%SRCROOT%" }),
        None => json!({ "uri": format!("file://{}", encoded(&plain(&here.join(path)))) }),
    }
}

/// The path relative to the directory `here`, if it is below it. Symbolic links are followed only if that is needed.
fn below(path: &Path, here: &Path) -> Option<PathBuf> {
    let whole = plain(&here.join(path));
    if let Ok(relative) = whole.strip_prefix(here) {
        return Some(relative.to_owned());
    }
    let real = path.canonicalize().ok()?;
    real.strip_prefix(here).map(Path::to_owned).ok()
}

/// An absolute path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

/// The path of a URI (RFC 3986, section 3.3): other bytes than unreserved ones and slashes are percent-encoded.
fn encoded(path: &Path) -> String {
    let mut out = String::new();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                out.push(char::from(*byte));
            }
            // Writing to a String cannot fail.
            byte => drop(write!(out, "%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_are_relative_below_the_current_directory() {
        let here = Path::new("/srv/site");
        for (path, uri, is_relative) in [
            ("nginx.conf", "nginx.conf", true),
            ("./a/../conf/b.conf", "conf/b.conf", true),
            ("/srv/site/a b\u{e9}.conf", "a%20b%C3%A9.conf", true),
            (
                "/etc/nginx/nginx.conf",
                "file:///etc/nginx/nginx.conf",
                false,
            ),
            ("../a:b.conf", "file:///srv/a%3Ab.conf", false),
            ("/srv/sites/a", "file:///srv/sites/a", false),
        ] {
            let artifact = artifact(Path::new(path), here);
            assert_eq!(artifact["uri"], uri, "{path}");
            assert_eq!(artifact.get("uriBaseId").is_some(), is_relative, "{path}");
        }
    }

    #[test]
    fn rules_have_what_code_hosts_read() {
        for known in lint::rules() {
            let rule = rule(known);
            let text = |part: &str| rule[part]["text"].as_str().unwrap_or_default().to_owned();
            assert_eq!(text("shortDescription"), known.title);
            let full = text("fullDescription");
            assert!(full.len() > 20 && !full.contains('\n'), "{full}");
            assert!(text("help").contains(known.code));
            let markdown = rule["help"]["markdown"].as_str().unwrap_or_default();
            assert!(markdown.contains("```nginx"), "{markdown}");
        }
    }
}
