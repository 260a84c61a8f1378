//! The listing for programs: JSON and XML.

use engines::http::{Civil, civil, escape_html, http_date};

use super::{Entry, EntryKind};

impl EntryKind {
    fn name(self) -> &'static str {
        match self {
            Self::Directory => "directory",
            Self::File => "file",
            Self::Other => "other",
        }
    }
}

/// An array of objects; with a callback, its call.
pub(super) fn json(entries: &[Entry], callback: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    if !callback.is_empty() {
        out.extend_from_slice(b"/* callback */\r\n");
        out.extend_from_slice(callback);
        out.push(b'(');
    }
    out.push(b'[');
    for (n, entry) in entries.iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        out.extend_from_slice(b"\r\n{ \"name\":\"");
        escape_json(&entry.name, &mut out);
        out.extend_from_slice(b"\", \"type\":\"");
        out.extend_from_slice(entry.kind.name().as_bytes());
        out.extend_from_slice(b"\", \"mtime\":\"");
        out.extend_from_slice(&http_date(entry.modified_s));
        out.push(b'"');
        if entry.kind == EntryKind::File {
            out.extend_from_slice(format!(", \"size\":{}", entry.size).as_bytes());
        }
        out.extend_from_slice(b" }");
    }
    out.extend_from_slice(b"\r\n]");
    if !callback.is_empty() {
        out.extend_from_slice(b");");
    }
    out
}

/// Appends the content of a JSON string; invalid UTF-8 is unchanged.
fn escape_json(text: &[u8], out: &mut Vec<u8>) {
    for &b in text {
        match b {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', b]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            0..=0x1f => out.extend_from_slice(format!("\\u{b:04X}").as_bytes()),
            _ => out.push(b),
        }
    }
}

pub(super) fn xml(entries: &[Entry]) -> Vec<u8> {
    let mut out = b"<?xml version=\"1.0\"?>\r\n<list>\r\n".to_vec();
    for entry in entries {
        let kind = entry.kind.name();
        let Civil {
            year: y,
            month: mo,
            day: d,
            hour: h,
            minute: mi,
            second: s,
            ..
        } = civil(entry.modified_s);
        let start = format!("<{kind} mtime=\"{y:4}-{mo:02}-{d:02}T{h:02}:{mi:02}:{s:02}Z\"");
        out.extend_from_slice(start.as_bytes());
        if entry.kind == EntryKind::File {
            out.extend_from_slice(format!(" size=\"{}\"", entry.size).as_bytes());
        }
        out.push(b'>');
        escape_html(&entry.name, &mut out);
        out.extend_from_slice(format!("</{kind}>\r\n").as_bytes());
    }
    out.extend_from_slice(b"</list>\r\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_strings_are_escaped() {
        let mut out = Vec::new();
        escape_json(b"a\"b\\\n\x01\x1f/\xff", &mut out);
        assert_eq!(out, b"a\\\"b\\\\\\n\\u0001\\u001F/\xff");
    }

    #[test]
    fn nothing_is_an_empty_array() {
        assert_eq!(json(&[], b""), b"[\r\n]");
        assert_eq!(json(&[], b"f"), b"/* callback */\r\nf([\r\n]);");
    }
}
