//! Shell patterns as `include` uses them: `*`, `?`, `[a-z]`, `[!a]`, `\x`.
//!
//! As glob(3) without flags in the C locale: results in byte order of the whole path, a wildcard never matches
//! `/` nor a leading dot, directories that cannot be read match nothing. The directory is read through a closure;
//! nothing else of the file system is known here.
//!
//! Source: POSIX.1-2017, XCU 2.13 "Pattern Matching Notation"; glob(7).

/// Whether a path has a byte that makes `include` treat it as a pattern.
pub fn is_pattern(path: &str) -> bool {
    path.contains(['*', '?', '['])
}

/// Whether a name (one path component) matches a pattern.
pub fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let hidden = name.first() == Some(&b'.');
    let dot_written = pattern.first() == Some(&b'.') || pattern.starts_with(b"\\.");
    if hidden && !dot_written {
        return false;
    }
    matches_from(pattern, name)
}

/// Matches with one point of return: the position of the last `*` and the length it has matched. A `*` before it never has to
/// be tried again, so the cost is at most the product of both lengths.
fn matches_from(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p, n));
            p += 1;
            continue;
        }
        if let Some(width) = matches_one(&pattern[p..], name[n]) {
            p += width;
            n += 1;
            continue;
        }
        let Some((star_p, star_n)) = star else {
            return false;
        };
        star = Some((star_p, star_n + 1));
        p = star_p + 1;
        n = star_n + 1;
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// Whether the first element of the pattern matches a byte, and how many bytes the element has.
fn matches_one(pattern: &[u8], byte: u8) -> Option<usize> {
    match *pattern.first()? {
        b'?' => Some(1),
        b'[' => match set(pattern, byte) {
            Some((true, width)) => Some(width),
            Some((false, _)) => None,
            // A bracket without its end is an ordinary byte.
            None => (byte == b'[').then_some(1),
        },
        b'\\' if pattern.len() > 1 => (pattern[1] == byte).then_some(2),
        literal => (literal == byte).then_some(1),
    }
}

/// Whether a bracket expression contains a byte, and how many bytes it has; `None` when it is not closed.
fn set(pattern: &[u8], byte: u8) -> Option<(bool, usize)> {
    let negated = matches!(pattern.get(1), Some(b'!' | b'^'));
    let first = if negated { 2 } else { 1 };
    let mut at = first;
    let mut found = false;
    loop {
        let low = *pattern.get(at)?;
        if low == b']' && at > first {
            return Some((found != negated, at + 1));
        }
        if let Some((class, width)) = class(&pattern[at..]) {
            found |= class(byte);
            at += width;
            continue;
        }
        let (low, width) = set_byte(&pattern[at..])?;
        at += width;
        if pattern.get(at) == Some(&b'-') && pattern.get(at + 1).is_some_and(|next| *next != b']') {
            let (high, width) = set_byte(&pattern[at + 1..])?;
            at += 1 + width;
            found |= (low..=high).contains(&byte);
        } else {
            found |= low == byte;
        }
    }
}

/// A byte of a bracket expression, which a backslash may precede.
fn set_byte(pattern: &[u8]) -> Option<(u8, usize)> {
    match pattern {
        [b'\\', escaped, ..] => Some((*escaped, 2)),
        [byte, ..] => Some((*byte, 1)),
        [] => None,
    }
}

/// Whether a byte belongs to a class.
type IsMember = fn(u8) -> bool;

/// A character class such as `[:digit:]` and how many bytes its name takes.
fn class(pattern: &[u8]) -> Option<(IsMember, usize)> {
    const CLASSES: &[(&[u8], IsMember)] = &[
        (b"[:alnum:]", |b| b.is_ascii_alphanumeric()),
        (b"[:alpha:]", |b| b.is_ascii_alphabetic()),
        (b"[:blank:]", |b| b == b' ' || b == b'\t'),
        (b"[:cntrl:]", |b| b.is_ascii_control()),
        (b"[:digit:]", |b| b.is_ascii_digit()),
        (b"[:graph:]", |b| b.is_ascii_graphic()),
        (b"[:lower:]", |b| b.is_ascii_lowercase()),
        (b"[:print:]", |b| b.is_ascii_graphic() || b == b' '),
        (b"[:punct:]", |b| b.is_ascii_punctuation()),
        (b"[:space:]", |b| b.is_ascii_whitespace() || b == 0x0b),
        (b"[:upper:]", |b| b.is_ascii_uppercase()),
        (b"[:xdigit:]", |b| b.is_ascii_hexdigit()),
    ];
    CLASSES
        .iter()
        .find(|(name, _)| pattern.starts_with(name))
        .map(|(name, test)| (*test, name.len()))
}

/// The file system as a path walk needs it.
pub(crate) trait Tree {
    /// The names in a directory ("" is the current one), without `.` and `..`; nothing when it cannot be read.
    fn names(&mut self, directory: &str) -> Vec<String>;
    /// Whether something has this path; a link counts though it leads nowhere.
    fn exists(&mut self, path: &str) -> bool;
}

/// The paths that match a pattern, sorted.
pub(crate) fn expand(tree: &mut impl Tree, pattern: &str) -> Vec<String> {
    let (root, rest) = if pattern.starts_with('/') {
        ("/", pattern.trim_start_matches('/'))
    } else {
        ("", pattern)
    };
    let mut paths = vec![root.to_owned()];
    for component in rest.split('/').filter(|component| !component.is_empty()) {
        paths = paths
            .iter()
            .flat_map(|path| step(tree, path, component))
            .collect();
    }
    paths.sort_unstable();
    paths
}

/// The paths one component below `path`.
fn step(tree: &mut impl Tree, path: &str, component: &str) -> Vec<String> {
    let slash = if path.is_empty() || path.ends_with('/') {
        ""
    } else {
        "/"
    };
    let below = |name: &str| format!("{path}{slash}{name}");
    if !is_pattern(component) {
        let literal = below(&unescaped(component));
        return if tree.exists(&literal) {
            vec![literal]
        } else {
            Vec::new()
        };
    }
    let names = tree.names(path);
    names
        .iter()
        .filter(|name| matches(component.as_bytes(), name.as_bytes()))
        .map(|name| below(name))
        .collect()
}

fn unescaped(component: &str) -> String {
    let mut out = String::with_capacity(component.len());
    let mut chars = component.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.push(chars.next().unwrap_or('\\')),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(pattern: &str, name: &str) -> bool {
        matches(pattern.as_bytes(), name.as_bytes())
    }

    #[test]
    fn a_star_matches_any_run_of_bytes() {
        assert!(ok("*", ""));
        assert!(ok("*.conf", "a.conf"));
        assert!(ok("a*b*c", "a-b-b-c"));
        assert!(ok("*a", "aaa"));
        assert!(!ok("*.conf", "a.conf.bak"));
        assert!(!ok("a*b", "a"));
    }

    #[test]
    fn a_question_mark_matches_one_byte() {
        assert!(ok("?.conf", "a.conf"));
        assert!(!ok("?.conf", ".conf"));
        assert!(!ok("?", "ab"));
    }

    #[test]
    fn a_set_matches_one_of_its_bytes() {
        assert!(ok("[ab]", "b"));
        assert!(!ok("[ab]", "c"));
        assert!(ok("[a-c]x", "bx"));
        assert!(ok("[!a-c]", "d"));
        assert!(ok("[^a-c]", "d"));
        assert!(!ok("[!a-c]", "a"));
        assert!(ok("[]a]", "]"));
        assert!(ok("[a-]", "-"));
        assert!(ok("[[:digit:]x][[:upper:]]", "7A"));
        assert!(!ok("[[:digit:]]", "a"));
    }

    #[test]
    fn an_open_bracket_stands_for_itself_when_it_is_not_closed() {
        assert!(ok("[a", "[a"));
        assert!(!ok("[a", "a"));
    }

    #[test]
    fn a_backslash_takes_the_meaning_away() {
        assert!(ok("\\*", "*"));
        assert!(!ok("\\*", "a"));
        assert!(ok("[\\]]", "]"));
    }

    #[test]
    fn a_leading_dot_must_be_written() {
        assert!(!ok("*", ".hidden"));
        assert!(!ok("?hidden", ".hidden"));
        assert!(!ok("[.]hidden", ".hidden"));
        assert!(ok(".*", ".hidden"));
        assert!(ok("a*", "a.b"));
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        assert!(!ok(&format!("{}b", "a*".repeat(40)), &"a".repeat(4000)));
    }
}
