//! Minifies the script: removes comments, indentation and most spaces.
//!
//! `script.js` allows this line by line: a comment has its own line, statements end with semicolons, and no string
//! contains an operator with a space beside it. Tests compare the strings of both texts.

use std::sync::LazyLock;

use base64ct::{Base64, Encoding};
use sha2::{Digest, Sha256};

/// The script.
pub(super) struct Script {
    /// The text.
    pub(super) text: String,
    /// The strong ETag, with its quotes.
    pub(super) etag: String,
    /// The value of the attribute `integrity`, which is also the hash for a Content-Security-Policy.
    pub(super) integrity: String,
}

/// The script of this version.
pub(super) static SCRIPT: LazyLock<Script> = LazyLock::new(|| {
    let text = minified(SOURCE);
    let digest = Sha256::digest(text.as_bytes());
    let integrity = format!("sha256-{}", Base64::encode_string(&digest));
    let etag = digest[..ETAG_BYTES]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<String>();
    Script {
        text,
        etag: format!("\"{etag}\""),
        integrity,
    }
});

/// Removes comments, indentation and spaces around operators.
fn minified(source: &str) -> String {
    let lines = source.lines().map(str::trim);
    let code = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
    let mut text = String::with_capacity(source.len());
    for line in code {
        text.push_str(line);
        text.push('\n');
    }
    for operator in OPERATORS {
        let spaces = [
            format!(" {operator} "),
            format!("{operator} "),
            format!(" {operator}"),
        ];
        for spaced in spaces {
            text = text.replace(&spaced, operator);
        }
    }
    text
}

const SOURCE: &str = include_str!("script.js");
/// Operators and marks that need no spaces.
const OPERATORS: [&str; 21] = [
    "=>", "===", "!==", "=", "?", ":", "&&", "||", "{", "}", "<", ">", "+", "-", "*", "/", ",",
    "(", ")", "[", "]",
];
/// Bytes of the digest in the ETag.
const ETAG_BYTES: usize = 8;

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    /// The strings of a script, in order.
    fn strings(text: &str) -> Vec<&str> {
        let code = text.lines().filter(|line| !line.trim().starts_with("//"));
        code.flat_map(|line| line.split('\'').skip(1).step_by(2))
            .collect()
    }

    #[test]
    fn compressed_script_is_below_two_kilobytes() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        let written = encoder.write_all(SCRIPT.text.as_bytes());
        let compressed = written.and_then(|()| encoder.finish()).expect("in memory");
        assert!(compressed.len() < 2048, "{}", compressed.len());
    }

    #[test]
    fn strings_are_served_as_they_are_written() {
        assert!(strings(SOURCE).len() > 30);
        assert_eq!(strings(&SCRIPT.text), strings(SOURCE));
    }

    #[test]
    fn nothing_but_spaces_and_comments_is_removed() {
        let code = |text: &str| {
            let lines = text.lines().filter(|line| !line.trim().starts_with("//"));
            let bare = |line: &str| line.replace(' ', "");
            lines.map(bare).collect::<String>()
        };
        assert_eq!(code(&SCRIPT.text), code(SOURCE));
        assert!(!SCRIPT.text.contains("  ") && !SCRIPT.text.contains("//"));
        assert!(SCRIPT.text.is_ascii() && !SCRIPT.text.contains(['"', '`']));
    }

    /// `//` in a line of code, or a line without its end, would not survive.
    #[test]
    fn lines_of_code_end_where_a_statement_or_list_may() {
        for line in SCRIPT.text.lines() {
            assert!(
                line.ends_with([';', '{', '}', ',', '[', '(']) || line.ends_with("+'.'"),
                "{line}"
            );
        }
    }

    /// Pages with a hash in their policy need a new one if this fails: note it in docs/beacon.md.
    #[test]
    fn documentation_has_the_hash() {
        let docs = include_str!("../../../../docs/beacon.md");
        assert!(docs.contains(&SCRIPT.integrity), "{}", SCRIPT.integrity);
    }
}
