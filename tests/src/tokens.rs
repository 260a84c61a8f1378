//! The tokens of Rust source texts.

/// The tokens of a source text: names and numbers, `::`, single characters; no comments and no literals of text.
#[must_use]
pub fn tokens(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |at| at + 2),
            '"' => string(rest),
            'r' if rest[1..].trim_start_matches('#').starts_with('"') => raw_string(rest),
            '\'' => character(rest),
            c if is_word(c) => {
                let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                found.push(&rest[..length]);
                length
            }
            c if c.is_whitespace() => c.len_utf8(),
            ':' if rest.starts_with("::") => {
                found.push("::");
                2
            }
            c => {
                found.push(&rest[..c.len_utf8()]);
                c.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    found
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn string(text: &str) -> usize {
    let mut escaped = false;
    let end = text[1..].find(|c| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |at| at + 2)
}

fn raw_string(text: &str) -> usize {
    let hashes = text[1..].len() - text[1..].trim_start_matches('#').len();
    let close = format!("\"{}", "#".repeat(hashes));
    let start = hashes + 2;
    let end = text[start..].find(&close);
    end.map_or(text.len(), |at| start + at + close.len())
}

/// The length of a character literal, or of the quote that begins a lifetime.
fn character(text: &str) -> usize {
    let mut chars = text[1..].char_indices();
    match chars.next() {
        Some((_, '\\')) => {
            let end = text[3..].find('\'');
            end.map_or(text.len(), |at| at + 4)
        }
        Some((_, c)) if text[1 + c.len_utf8()..].starts_with('\'') => c.len_utf8() + 2,
        _ => 1,
    }
}
