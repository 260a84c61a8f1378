//! Suggests a known name for a misspelt one.
//!
//! A name within two edits (one for short names), or of which the word typed is the beginning.

/// The candidate nearest to `typed`; the first in alphabetical order of those equally near.
pub(crate) fn nearest(
    typed: &str,
    candidates: impl Iterator<Item = &'static str>,
) -> Option<&'static str> {
    let best = candidates
        .filter_map(|name| Some((cost(typed, name)?, name)))
        .min();
    best.map(|(_, name)| name)
}

/// Lower is nearer; `None` is too far. Any edit distance in reach beats a beginning.
fn cost(typed: &str, name: &str) -> Option<usize> {
    if typed.len() > NAME_MAX || name.len() > NAME_MAX || typed == name {
        return None;
    }
    let reach = if typed.len().min(name.len()) <= SHORT {
        1
    } else {
        2
    };
    // If the lengths differ by more than the reach, the edit distance is not computed.
    if typed.len().abs_diff(name.len()) <= reach {
        let edits = distance(&typed.to_ascii_lowercase(), name);
        if edits <= reach {
            return Some(edits);
        }
    }
    let begins = typed.len() >= PREFIX_MIN && name.starts_with(typed);
    begins.then(|| NAME_MAX + name.len() - typed.len())
}

/// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut before_last = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replace = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replace.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

/// Shorter words are not completed to a longer name.
const PREFIX_MIN: usize = 4;
/// Names up to this length are only suggested at one edit: most short words are two edits apart.
const SHORT: usize = 4;
/// Names longer than this are not compared; no directive is.
const NAME_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &[&str] = &[
        "listen",
        "root",
        "server",
        "server_name",
        "server_tokens",
        "types",
        "if",
    ];

    fn suggested(typed: &str) -> Option<&'static str> {
        nearest(typed, NAMES.iter().copied())
    }

    #[test]
    fn a_swap_is_one_edit() {
        assert_eq!(distance("srever", "server"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn what_is_within_two_edits_is_suggested() {
        assert_eq!(suggested("sevrer_nam"), Some("server_name"));
        assert_eq!(suggested("Listen"), Some("listen"));
        assert_eq!(suggested("lisssten"), Some("listen"));
        assert_eq!(suggested("lissssten"), None);
    }

    #[test]
    fn short_names_allow_one_edit() {
        assert_eq!(suggested("rot"), Some("root"));
        assert_eq!(suggested("rt"), None);
        assert_eq!(suggested("of"), Some("if"));
    }

    #[test]
    fn a_beginning_is_completed_to_the_shortest_name() {
        assert_eq!(suggested("server_"), Some("server"));
        assert_eq!(suggested("server_to"), Some("server_tokens"));
        assert_eq!(suggested("ser"), None);
    }
}
