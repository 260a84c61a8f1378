//! References in JSON: web app manifests, source maps, import maps; any other JSON only mentions files.
//!
//! Invalid JSON is read as far as possible: strings are found by their quotes. Absent: source maps with a source root
//! of their own; their sources are mentions.
//!
//! Source: W3C Web Application Manifest; ECMA-426; HTML, "Import maps".

use super::sink::{Report, Sink};
use crate::text::Text;

/// Purpose of a JSON file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// For scripts.
    Data,
    /// A web app manifest.
    AppManifest,
    /// A source map.
    SourceMap,
    /// A map of imports, or rules of speculation.
    ImportMap,
}

/// Reads JSON.
pub(super) fn scan(text: &Text<'_>, sink: &mut Sink<'_>, form: Form) {
    let bytes = text.bytes();
    // The keys that enclose the reader's position; an array's key stays until its end.
    let mut keys: Vec<Vec<u8>> = vec![Vec::new()];
    let rooted = form == Form::SourceMap && has_root(bytes);
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'{' => {
                keys.push(Vec::new());
                at += 1;
            }
            b'[' => {
                let key = keys.last().cloned().unwrap_or_default();
                keys.push(key);
                at += 1;
            }
            b'}' | b']' => {
                if keys.len() > 1 {
                    keys.pop();
                }
                at += 1;
            }
            b'"' => {
                let (from, to) = string(bytes, at);
                at = (to + 1).min(bytes.len());
                let blanks = bytes[at..].iter().take_while(|b| b.is_ascii_whitespace());
                let blanks = blanks.count();
                let is_key = bytes.get(at + blanks) == Some(&b':');
                // A string far too long for a name is not copied.
                if to - from <= STRING_BYTES_MAX || form == Form::Data {
                    let value = text.js(from, to);
                    let key = keys.last().map_or(&b""[..], Vec::as_slice);
                    take(sink, form, rooted, is_key, key, &value);
                }
                if is_key && let Some(key) = keys.last_mut() {
                    *key = bytes[from..to].to_vec();
                }
            }
            _ => at += 1,
        }
    }
}

fn take(sink: &mut Sink<'_>, form: Form, rooted: bool, is_key: bool, key: &[u8], value: &Text<'_>) {
    match form {
        Form::Data => sink.words(value),
        Form::SourceMap if is_key || key != b"sources" => {}
        Form::SourceMap if rooted => sink.word(value),
        Form::SourceMap => {
            sink.reference(value, Report::Nothing, None);
        }
        Form::AppManifest if is_key => {}
        Form::AppManifest => match key {
            b"src" => {
                sink.reference(value, Report::Broken, None);
            }
            b"start_url" | b"scope" | b"url" | b"action" => {
                sink.reference(value, Report::Nothing, None);
            }
            _ => sink.word(value),
        },
        Form::ImportMap => {
            let url = value.bytes();
            if [&b"./"[..], b"../", b"/"]
                .iter()
                .any(|s| url.starts_with(s))
            {
                let report = if is_key {
                    Report::Nothing
                } else {
                    Report::Broken
                };
                sink.reference(value, report, None);
            } else {
                sink.word(value);
            }
        }
    }
}

/// Reads the text between quotes, the first of which is here.
fn string(bytes: &[u8], at: usize) -> (usize, usize) {
    let mut to = at + 1;
    while to < bytes.len() && bytes[to] != b'"' {
        to += if bytes[to] == b'\\' { 2 } else { 1 };
    }
    (at + 1, to.min(bytes.len()))
}

/// Returns whether a source map has a source root.
fn has_root(bytes: &[u8]) -> bool {
    let name = b"\"sourceRoot\"";
    let Some(place) = bytes.windows(name.len()).position(|w| w == name) else {
        return false;
    };
    let mut rest = bytes[place + name.len()..]
        .iter()
        .filter(|b| !b.is_ascii_whitespace());
    let (colon, quote, first) = (rest.next(), rest.next(), rest.next());
    colon == Some(&b':') && quote == Some(&b'"') && first != Some(&b'"')
}

/// Longer strings of manifests and maps, such as whole sources, are no names.
const STRING_BYTES_MAX: usize = 4096;
