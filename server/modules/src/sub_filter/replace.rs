//! Replaces strings in a body that arrives in chunks. Only text that may begin a match is held back.
//!
//! A copy of the text in lower case is searched. Its last bytes, too few for the longest string, are compared place by
//! place.

use engines::http::Chunk;

use super::search::Search;

/// A string, in lower case, and its replacement.
pub(super) struct Pair {
    string: Vec<u8>,
    replacement: Vec<u8>,
    /// Whether the search for the string has ended (`sub_filter_once`).
    done: bool,
}

impl Pair {
    pub(super) fn new(string: Vec<u8>, replacement: Vec<u8>) -> Self {
        Self {
            string,
            replacement,
            done: false,
        }
    }
}

/// Beginning of a string.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Candidate {
    /// The string of this pair begins here.
    Match(usize),
    /// A string may begin here, if more follows.
    Begun,
}

/// The strings of one body.
pub(super) struct Replace {
    pairs: Vec<Pair>,
    once: bool,
    search: Search,
    /// Number of active pairs.
    live: usize,
    /// Length of the longest active string at the last chunk.
    longest: usize,
    /// Buffered input; its first `at` bytes have been put out.
    text: Vec<u8>,
    /// The text in lower case.
    lower: Vec<u8>,
    at: usize,
    /// Whether the text has to be searched further.
    more: bool,
    /// Nothing follows it.
    ends: bool,
}

impl Replace {
    pub(super) fn new(pairs: Vec<Pair>, once: bool) -> Self {
        let strings = pairs.iter().map(|pair| pair.string.as_slice());
        Self {
            once,
            search: Search::new(strings.enumerate()),
            live: pairs.len(),
            pairs,
            longest: 0,
            text: Vec::new(),
            lower: Vec::new(),
            at: 0,
            more: false,
            ends: false,
        }
    }

    /// Returns the next position from `at` on at which a string begins or may begin.
    fn next_candidate(&mut self, at: usize) -> Option<(usize, Candidate)> {
        if self.live == 0 {
            return None;
        }
        // Before this position every string fits into the text.
        let end = (self.lower.len() + 1).saturating_sub(self.longest);
        if at < end
            && let Some((at, n)) = self.search.next(&self.lower, at, end)
        {
            return Some((at, Candidate::Match(n)));
        }
        (at.max(end)..self.lower.len()).find_map(|at| Some((at, self.compare(at)?)))
    }

    /// Compares each string with the text at `at`; returns the first that matches or may match.
    fn compare(&self, at: usize) -> Option<Candidate> {
        let text = &self.lower[at..];
        let mut live = self.pairs.iter().enumerate().filter(|(_, pair)| !pair.done);
        live.find_map(|(n, Pair { string, .. })| {
            if string[0] != text[0] {
                None
            } else if string.len() <= text.len() {
                text.starts_with(string).then_some(Candidate::Match(n))
            } else {
                (!self.ends && string.starts_with(text)).then_some(Candidate::Begun)
            }
        })
    }

    /// Sets the next input; the previous one must be consumed. Returns it if nothing in it is replaced or held back.
    pub(super) fn take(&mut self, chunk: Chunk) -> Option<Chunk> {
        if self.live == 0 && self.text.len() == self.at {
            return Some(chunk);
        }
        let live = self.pairs.iter().filter(|pair| !pair.done);
        let longest = live.map(|pair| pair.string.len()).max();
        self.longest = longest.unwrap_or_default();
        self.text.drain(..self.at);
        self.lower.drain(..self.at);
        self.at = 0;
        self.search.reset();
        let held = self.lower.len();
        self.lower.extend_from_slice(chunk.bytes());
        self.lower[held..].make_ascii_lowercase();
        if held == 0 && self.next_candidate(0).is_none() {
            self.lower.clear();
            return Some(chunk);
        }
        self.text.extend_from_slice(chunk.bytes());
        self.more = true;
        None
    }

    /// Ends the input, so that held bytes are decided.
    pub(super) fn finish(&mut self) {
        self.ends = true;
        self.more = true;
    }

    /// Returns the next output; `None` if more input is needed.
    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        if !std::mem::take(&mut self.more) {
            return None;
        }
        let mut out = Vec::with_capacity(self.text.len() - self.at);
        let (mut copied, mut at) = (self.at, self.at);
        loop {
            let Some((place, kind)) = self.next_candidate(at) else {
                at = self.text.len();
                break;
            };
            at = place;
            let Candidate::Match(n) = kind else {
                break;
            };
            out.extend_from_slice(&self.text[copied..at]);
            let pair = &mut self.pairs[n];
            out.extend_from_slice(&pair.replacement);
            at += pair.string.len();
            copied = at;
            if self.once {
                pair.done = true;
                self.live -= 1;
                self.search.forget(n);
            }
            if out.len() >= STEP_BYTES {
                self.more = true;
                break;
            }
        }
        out.extend_from_slice(&self.text[copied..at]);
        self.at = at;
        Some(out)
    }
}

/// Maximum output of one step, bytes: replacements may be much longer than the strings they replace.
const STEP_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn run(pairs: &[(&str, &str)], once: bool, pieces: &[&[u8]]) -> Vec<u8> {
        let pairs = pairs.iter().map(|(string, replacement)| {
            Pair::new(
                string.to_ascii_lowercase().into_bytes(),
                replacement.as_bytes().to_vec(),
            )
        });
        let mut replace = Replace::new(pairs.collect(), once);
        let longest = replace.pairs.iter().map(|pair| pair.string.len()).max();
        let mut made = Vec::new();
        for piece in pieces {
            if let Some(chunk) = replace.take(Chunk::Owned(piece.to_vec())) {
                made.extend_from_slice(chunk.bytes());
            }
            while let Some(bytes) = replace.next() {
                made.extend(bytes);
            }
            let held = replace.text.len() - replace.at;
            assert!(Some(held) < longest, "{held}");
        }
        replace.finish();
        while let Some(bytes) = replace.next() {
            made.extend(bytes);
        }
        made
    }

    #[test]
    fn strings_are_replaced_however_the_body_is_cut() {
        type Case = (
            &'static [(&'static str, &'static str)],
            bool,
            &'static str,
            &'static str,
        );
        let cases: [Case; 12] = [
            (&[("foo", "bar")], true, "foofoo", "barfoo"),
            (&[("foo", "bar")], false, "xFOOfoOfo", "xbarbarfo"),
            (&[("abac", "+")], false, "abaabacababac", "aba+ab+"),
            (&[("aab", "+")], false, "aaaab", "aa+"),
            (&[("a", "")], false, "abaca", "bc"),
            (
                &[("aabb", "+"), ("aaabb", "-")],
                false,
                "aabbaaabbaabb",
                "+-+",
            ),
            (
                &[("aaabb", "-"), ("aabb", "+"), ("b", "*")],
                false,
                "aaabaaabbb",
                "aaa*-*",
            ),
            (&[("ab", "1"), ("abc", "2")], false, "abcab", "1c1"),
            (&[("abc", "2"), ("ab", "1")], false, "abcab", "21"),
            (
                &[("aab", "+"), ("yyz", "-")],
                true,
                "yyzyyzaabaabyyz",
                "-yyz+aabyyz",
            ),
            (
                &[("ab", "+"), ("cd", "-"), ("ef", "*"), ("x", "_")],
                false,
                "AAabcdefBxCxC",
                "AA+-*B_C_C",
            ),
            (&[("паттерн", "x")], false, "aпаттернпа", "axпа"),
        ];
        for (pairs, once, text, expected) in cases {
            let bytes = text.as_bytes();
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            for cut in 0..=bytes.len() {
                let pieces = [&bytes[..cut], &bytes[cut..]];
                let made = run(pairs, once, &pieces);
                assert_eq!(made, expected.as_bytes(), "{text} cut at {cut}");
            }
            assert_eq!(run(pairs, once, &single), expected.as_bytes(), "{text}");
        }
    }

    /// The specification: at each position the first matching string of the configuration is replaced.
    fn place_by_place(pairs: &[(&str, &str)], once: bool, text: &[u8]) -> Vec<u8> {
        let mut pairs = pairs.to_vec();
        let (mut made, mut at) = (Vec::new(), 0);
        while at < text.len() {
            let begins = |(string, _): &(&str, &str)| {
                let start = text[at..].get(..string.len());
                start.is_some_and(|start| start.eq_ignore_ascii_case(string.as_bytes()))
            };
            let Some(n) = pairs.iter().position(begins) else {
                made.push(text[at]);
                at += 1;
                continue;
            };
            made.extend_from_slice(pairs[n].1.as_bytes());
            at += pairs[n].0.len();
            if once {
                pairs.remove(n);
            }
        }
        made
    }

    #[test]
    fn random_strings_are_replaced_as_place_by_place() {
        const STRINGS: [&str; 16] = [
            "a", "B", "ab", "Aa", "aab", "ba", "bb", "abab", "aabb", "c", "cab", "bca", "abcabc",
            "ccc", "ac", "aaaaaaa",
        ];
        let seed = 11;
        let mut random = fastrand::Rng::with_seed(seed);
        for round in 0..4_000 {
            let count = [1, 2, 3, 8, 9, 16][round % 6];
            let mut strings = STRINGS;
            random.shuffle(&mut strings);
            let pairs: Vec<(&str, &str)> = strings
                .iter()
                .take(count)
                .map(|string| (*string, "<x>"))
                .collect();
            let len = random.usize(..50);
            let text: Vec<u8> = (0..len).map(|_| b"abcABC"[random.usize(..6)]).collect();
            let once = random.bool();
            let pieces: Vec<&[u8]> = text.chunks(random.usize(1..20)).collect();
            let made = run(&pairs, once, &pieces);
            let expected = place_by_place(&pairs, once, &text);
            assert_eq!(made, expected, "seed {seed}: {pairs:?} {once} {pieces:?}");
        }
    }

    #[test]
    fn only_what_may_begin_a_string_waits_for_more() {
        let mut replace = Replace::new(vec![Pair::new(b"za".to_vec(), b"ZA".to_vec())], false);
        assert!(replace.take(Chunk::Static(b"xyz")).is_none());
        assert_eq!(replace.next().as_deref(), Some(&b"xy"[..]));
        assert_eq!(replace.next(), None);
        let passed = replace.take(Chunk::Static(b"b"));
        assert!(passed.is_none());
        assert_eq!(replace.next().as_deref(), Some(&b"zb"[..]));
        let passed = replace.take(Chunk::Static(b"xy"));
        assert!(passed.is_some_and(|chunk| chunk.bytes() == b"xy"));
    }

    #[test]
    fn a_body_that_grows_is_put_out_in_pieces() {
        let long = vec![b'x'; 10_000];
        let mut replace = Replace::new(vec![Pair::new(b"a".to_vec(), long)], false);
        assert!(replace.take(Chunk::Owned(vec![b'a'; 1000])).is_none());
        let mut total = 0;
        while let Some(bytes) = replace.next() {
            assert!(bytes.len() < STEP_BYTES + 10_000 + 1000, "{}", bytes.len());
            total += bytes.len();
        }
        assert_eq!(total, 10_000_000);
    }
}
