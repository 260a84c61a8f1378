//! Replaces strings of a body that comes in pieces; no more is held back than may begin one of them.

use engines::http::Chunk;
use memchr::{memchr, memchr2, memchr3};

/// A string, in lower case, and what is put in its place.
pub(super) struct Pair {
    string: Vec<u8>,
    replacement: Vec<u8>,
    /// It is not looked for any more.
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

/// A match of a string in a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Match {
    Whole,
    /// Its beginning, and the text ends.
    Begun,
    None,
}

/// The strings of one body.
pub(super) struct Replace {
    pairs: Vec<Pair>,
    once: bool,
    /// The bytes that one of the strings begins with, in either case.
    firsts: Vec<u8>,
    /// Input that has not been put out; its first `at` bytes have been.
    text: Vec<u8>,
    at: usize,
    /// There is something to look for in it.
    more: bool,
    /// Nothing follows it.
    ends: bool,
}

impl Replace {
    pub(super) fn new(pairs: Vec<Pair>, once: bool) -> Self {
        let mut replace = Self {
            pairs,
            once,
            firsts: Vec::new(),
            text: Vec::new(),
            at: 0,
            more: false,
            ends: false,
        };
        replace.note_firsts();
        replace
    }

    fn note_firsts(&mut self) {
        self.firsts.clear();
        for pair in self.pairs.iter().filter(|pair| !pair.done) {
            for first in [pair.string[0], pair.string[0].to_ascii_uppercase()] {
                if !self.firsts.contains(&first) {
                    self.firsts.push(first);
                }
            }
        }
    }

    /// Where the next string may begin.
    fn candidate(&self, text: &[u8]) -> Option<usize> {
        match *self.firsts.as_slice() {
            [] => None,
            [a] => memchr(a, text),
            [a, b] => memchr2(a, b, text),
            [a, b, c] => memchr3(a, b, c, text),
            _ => text.iter().position(|byte| self.firsts.contains(byte)),
        }
    }

    /// The string that a text begins with, or may begin with if more follows; the first that does counts.
    fn found(&self, text: &[u8]) -> Option<(usize, Match)> {
        let live = self.pairs.iter().enumerate().filter(|(_, pair)| !pair.done);
        let mut tried = live.map(|(n, pair)| (n, compare(&pair.string, text)));
        tried.find(|(_, found)| *found == Match::Whole || (*found == Match::Begun && !self.ends))
    }

    /// Takes a piece; the one before must have been used up. Gives it back where nothing of it is looked for.
    pub(super) fn take(&mut self, chunk: Chunk) -> Option<Chunk> {
        self.text.drain(..self.at);
        self.at = 0;
        if self.text.is_empty() && self.candidate(chunk.bytes()).is_none() {
            return Some(chunk);
        }
        self.text.extend_from_slice(chunk.bytes());
        self.more = true;
        None
    }

    /// Nothing follows: what was held back is decided.
    pub(super) fn finish(&mut self) {
        self.ends = true;
        self.more = true;
    }

    /// Some of what was taken, strings replaced; `None` when the next piece is needed.
    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        if !std::mem::take(&mut self.more) {
            return None;
        }
        let text = std::mem::take(&mut self.text);
        let mut out = Vec::with_capacity(text.len() - self.at);
        let (mut copied, mut at) = (self.at, self.at);
        loop {
            let Some(next) = self.candidate(&text[at..]) else {
                at = text.len();
                break;
            };
            at += next;
            match self.found(&text[at..]) {
                None => at += 1,
                Some((n, Match::Whole)) => {
                    out.extend_from_slice(&text[copied..at]);
                    let pair = &mut self.pairs[n];
                    out.extend_from_slice(&pair.replacement);
                    at += pair.string.len();
                    copied = at;
                    pair.done = self.once;
                    if self.once {
                        self.note_firsts();
                    }
                    if out.len() >= STEP_BYTES {
                        self.more = true;
                        break;
                    }
                }
                // Whether it is this string is not known yet.
                Some(_) => break,
            }
        }
        out.extend_from_slice(&text[copied..at]);
        self.text = text;
        self.at = at;
        Some(out)
    }
}

fn compare(string: &[u8], text: &[u8]) -> Match {
    let len = string.len().min(text.len());
    if !string[..len].eq_ignore_ascii_case(&text[..len]) {
        Match::None
    } else if len < string.len() {
        Match::Begun
    } else {
        Match::Whole
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
