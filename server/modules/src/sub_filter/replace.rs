//! Replaces strings of a body that comes in pieces; no more is held back than may begin one of them.

use std::collections::VecDeque;

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

/// What a text has of a string.
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
    /// The end of what came, which begins one of the strings.
    held: Vec<u8>,
}

impl Replace {
    pub(super) fn new(pairs: Vec<Pair>, once: bool) -> Self {
        let mut stage = Self {
            pairs,
            once,
            firsts: Vec::new(),
            held: Vec::new(),
        };
        stage.note_firsts();
        stage
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

    /// Appends what becomes of a text; gives how much of it is decided. All of it where nothing follows.
    fn scan(&mut self, text: &[u8], ends: bool, out: &mut Vec<u8>) -> usize {
        let (mut copied, mut at) = (0, 0);
        while let Some(next) = self.candidate(&text[at..]) {
            at += next;
            let live = self.pairs.iter().enumerate().filter(|(_, pair)| !pair.done);
            let mut tried = live.map(|(n, pair)| (n, compare(&pair.string, &text[at..])));
            match tried.find(|(_, found)| *found == Match::Whole || *found == Match::Begun && !ends)
            {
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
                }
                // The first that matches counts, and whether this one does is not known yet.
                Some(_) => {
                    out.extend_from_slice(&text[copied..at]);
                    return at;
                }
            }
        }
        out.extend_from_slice(&text[copied..]);
        text.len()
    }

    fn pass(&mut self, text: &[u8], ends: bool, out: &mut VecDeque<Chunk>) {
        let mut made = Vec::with_capacity(text.len());
        let decided = self.scan(text, ends, &mut made);
        self.held.clear();
        self.held.extend_from_slice(&text[decided..]);
        if !made.is_empty() {
            out.push_back(Chunk::Owned(made));
        }
    }

    /// Takes a piece and puts out what is decided.
    pub(super) fn take(&mut self, chunk: Chunk, out: &mut VecDeque<Chunk>) {
        if self.held.is_empty() {
            if self.candidate(chunk.bytes()).is_none() {
                out.push_back(chunk);
            } else {
                self.pass(chunk.bytes(), false, out);
            }
        } else {
            let mut text = std::mem::take(&mut self.held);
            text.extend_from_slice(chunk.bytes());
            self.pass(&text, false, out);
        }
    }

    /// Nothing follows: what was held back is decided.
    pub(super) fn finish(&mut self, out: &mut VecDeque<Chunk>) {
        let text = std::mem::take(&mut self.held);
        self.pass(&text, true, out);
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
        let mut stage = Replace::new(pairs.collect(), once);
        let longest = stage.pairs.iter().map(|pair| pair.string.len()).max();
        let mut out = VecDeque::new();
        for piece in pieces {
            stage.take(Chunk::Owned(piece.to_vec()), &mut out);
            assert!(Some(stage.held.len()) < longest, "{:?}", stage.held);
        }
        stage.finish(&mut out);
        out.iter()
            .flat_map(|chunk| chunk.bytes().to_vec())
            .collect()
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
        let mut stage = Replace::new(vec![Pair::new(b"za".to_vec(), b"ZA".to_vec())], false);
        let mut out = VecDeque::new();
        stage.take(Chunk::Static(b"xyz"), &mut out);
        let bytes: Vec<u8> = out
            .iter()
            .flat_map(|chunk| chunk.bytes().to_vec())
            .collect();
        assert_eq!(bytes, b"xy");
    }
}
