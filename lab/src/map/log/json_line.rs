//! Lines of JSON with an unknown format: fields are found by their names.
//!
//! A line is one object. Names are those of variables, with or without `$`. Values within other values are skipped.
//!
//! Source: RFC 8259. Strings may have any byte but a bare quote, and a value may be missing, since nginx writes
//! `"rtt":$tcpinfo_rtt` without a value as `"rtt":`.

use super::pattern::quote;

/// Calls `field` with the name and the value of each member; quotes are removed, escapes stay. Returns false if the line is no
/// object.
pub(super) fn members<'l>(line: &'l [u8], mut field: impl FnMut(&'l [u8], &'l [u8])) -> bool {
    walk(line, &mut field).is_some()
}

fn walk<'l>(line: &'l [u8], field: &mut impl FnMut(&'l [u8], &'l [u8])) -> Option<()> {
    let mut rest = line.trim_ascii().strip_prefix(b"{")?.trim_ascii_start();
    if rest == b"}" {
        return Some(());
    }
    loop {
        let (name, behind) = string(rest)?;
        let behind = behind.trim_ascii_start().strip_prefix(b":")?;
        let (value, behind) = value(behind.trim_ascii_start())?;
        field(name, value);
        rest = match behind.trim_ascii_start().split_first()? {
            (b',', behind) => behind.trim_ascii_start(),
            (b'}', []) => return Some(()),
            _ => return None,
        };
    }
}

/// A string without its quotes, and the text behind it.
fn string(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let inside = text.strip_prefix(b"\"")?;
    let end = quote(inside)?;
    Some((&inside[..end], &inside[end + 1..]))
}

/// A value and the text behind it.
fn value(text: &[u8]) -> Option<(&[u8], &[u8])> {
    match text.first()? {
        b'"' => string(text),
        b'{' | b'[' => nested(text),
        _ => {
            let is_end = |byte: &u8| matches!(byte, b',' | b'}' | b' ' | b'\t' | b'"' | b':');
            let end = text.iter().position(is_end)?;
            let (value, behind) = text.split_at(end);
            Some((if value == b"null" { b"" } else { value }, behind))
        }
    }
}

/// An object or array, which is skipped.
fn nested(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (mut depth, mut at) = (0_usize, 0);
    loop {
        match text.get(at)? {
            b'"' => at += 1 + quote(&text[at + 1..])?,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some((b"", &text[at..]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Option<Vec<(String, String)>> {
        let mut found = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        members(line.as_bytes(), |name, value| {
            found.push((text(name), text(value)));
        })
        .then_some(found)
    }

    #[test]
    fn members_are_found() {
        let line = r#" { "a" : "x, \"}" , "b":12,"c":null,"d":{"a":["}",{}]},"e":-1.5e3} "#;
        let members = [
            ("a", r#"x, \"}"#),
            ("b", "12"),
            ("c", ""),
            ("d", ""),
            ("e", "-1.5e3"),
        ];
        let members = members.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(found(line), Some(members.to_vec()));
        assert_eq!(found("{}"), Some(Vec::new()));
        let empty = Some(vec![("a".to_owned(), String::new())]);
        assert_eq!(found(r#"{"a":}"#), empty);
    }

    #[test]
    fn other_texts_are_no_objects() {
        for line in [
            "",
            "{",
            "}",
            "[]",
            "1",
            "\"a\"",
            "{\"a\"}",
            "{\"a\":",
            "{\"a\":1",
            "{\"a\":1,",
            "{\"a\":1,}",
            "{\"a\":1}}",
            "{\"a\":1} x",
            "{\"a\":\"",
            "{\"a\":\"\\\"}",
            "{\"a\":[}",
            "{\"a\":[1}",
            "{a:1}",
            "{\"a\":1 \"b\":2}",
        ] {
            assert_eq!(found(line), None, "{line}");
        }
    }

    #[test]
    fn objects_are_those_of_a_library() {
        let mut random = fastrand::Rng::with_seed(7);
        let text = br#"{}[]",:\ ab1u0"#;
        let mut objects = 0;
        for _ in 0..20_000 {
            let length = random.usize(0..14);
            let tail: Vec<u8> = (0..length)
                .map(|_| text[random.usize(0..text.len())])
                .collect();
            let line = [b"{\"a\":\"b", &tail[..]].concat();
            let theirs: Option<serde_json::Map<String, serde_json::Value>> =
                serde_json::from_slice(&line).ok();
            let Some(theirs) = theirs else { continue };
            objects += 1;
            let mut own = None;
            assert!(members(&line, |name, value| {
                // The last one counts in both.
                if name == b"a" {
                    own = Some(value.to_vec());
                }
            }));
            let theirs = theirs.get("a").and_then(|value| value.as_str());
            let has_escape = own.as_ref().is_some_and(|own| own.contains(&b'\\'));
            if let (Some(theirs), false) = (theirs, has_escape) {
                assert_eq!(own.as_deref(), Some(theirs.as_bytes()), "{line:?}");
            }
        }
        assert!(objects > 20, "{objects}");
    }
}
