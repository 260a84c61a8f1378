//! Necessary conditions of a match, read from a pattern: bytes that each match begins with or contains.
//!
//! Most expressions of a long list do not match, and a call of the library costs ten times a comparison. A [`Filter`] has
//! false positives only: for unknown syntax, every text passes.
//!
//! Source: `pcre2pattern(3)`.

mod scan;

use memchr::{memchr, memchr2};

use scan::Scan;

/// Literals of a pattern, in one cache line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filter {
    /// Bytes of `text` that a match begins with, at the start of the subject.
    prefix: u8,
    /// Number of literals behind the prefix; a match contains one of them behind its prefix. 0 for no condition.
    literals: u8,
    caseless: bool,
    /// The prefix; then of each literal its length, the index of its rarest byte and its bytes.
    text: [u8; TEXT_BYTES],
}

impl Filter {
    /// Reads a pattern.
    pub(super) fn of(pattern: &[u8], caseless: bool) -> Self {
        let (mut scan, caseless) = match pattern.strip_prefix(b"(?i)") {
            Some(rest) => (Scan::new(rest, true), true),
            None => (Scan::new(pattern, caseless), caseless),
        };
        let mut filter = Self {
            prefix: 0,
            literals: 0,
            caseless,
            text: [0; TEXT_BYTES],
        };
        let Some(found) = scan.pattern() else {
            return filter;
        };
        let prefix = &found.prefix[..found.prefix.len().min(PREFIX_BYTES)];
        filter.text[..prefix.len()].copy_from_slice(prefix);
        filter.prefix = prefix.len() as u8;
        filter.add(&found.any);
        filter
    }

    /// Stores the literals of which a match contains one, cut to the same length; without enough room, none.
    fn add(&mut self, literals: &[Vec<u8>]) {
        let mut at = usize::from(self.prefix);
        let Some(room) = (TEXT_BYTES - at).checked_div(literals.len()) else {
            return;
        };
        if room < LITERAL_HEAD + 2 {
            return;
        }
        for literal in literals {
            let literal = &literal[..literal.len().min(room - LITERAL_HEAD)];
            let rare = (0..literal.len()).max_by_key(|n| rarity(literal[*n]));
            self.text[at] = literal.len() as u8;
            self.text[at + 1] = rare.unwrap_or_default() as u8;
            at += LITERAL_HEAD;
            self.text[at..at + literal.len()].copy_from_slice(literal);
            at += literal.len();
        }
        self.literals = literals.len() as u8;
    }

    /// Whether a match is possible.
    #[inline]
    pub(super) fn passes(&self, subject: &[u8]) -> bool {
        let (prefix, literals) = self.text.split_at(usize::from(self.prefix));
        let Some((start, rest)) = subject.split_at_checked(prefix.len()) else {
            return false;
        };
        self.equal(start, prefix) && (self.literals == 0 || self.contains_one(rest, literals))
    }

    #[inline]
    fn equal(&self, text: &[u8], literal: &[u8]) -> bool {
        match self.caseless {
            false => text == literal,
            true => text.eq_ignore_ascii_case(literal),
        }
    }

    fn contains_one(&self, subject: &[u8], mut literals: &[u8]) -> bool {
        (0..self.literals).any(|_| {
            let &[len, rare, ref rest @ ..] = literals else {
                return true;
            };
            let (literal, rest) = rest.split_at(usize::from(len));
            literals = rest;
            self.contains(subject, literal, usize::from(rare))
        })
    }

    /// Looks for the byte of the literal at `rare` first.
    fn contains(&self, subject: &[u8], literal: &[u8], rare: usize) -> bool {
        // Beyond this place of the rare byte, the literal would not fit around it.
        let Some(last) = subject.len().checked_sub(literal.len() - rare) else {
            return false;
        };
        let (byte, mut at) = (literal[rare], rare);
        while let Some(within) = subject.get(at..=last) {
            let found = match self.caseless {
                false => memchr(byte, within),
                true => memchr2(byte, byte.to_ascii_uppercase(), within),
            };
            let Some(next) = found else {
                return false;
            };
            at += next;
            if self.equal(&subject[at - rare..][..literal.len()], literal) {
                return true;
            }
            at += 1;
        }
        false
    }
}

/// How rare a byte is in URIs and names: a rough order is enough.
fn rarity(byte: u8) -> usize {
    let place = COMMON.iter().position(|common| *common == byte);
    place.unwrap_or(COMMON.len())
}

/// Room for literals, bytes; longer ones are cut.
const TEXT_BYTES: usize = 60;
/// Maximum length of the prefix, bytes.
const PREFIX_BYTES: usize = 40;
/// Bytes before a stored literal.
const LITERAL_HEAD: usize = 2;
/// Bytes that most URIs and names have, the most common first.
const COMMON: &[u8] = b"/eatoinsrlhdcum.-_pgwvbyfk";

#[cfg(test)]
mod tests {
    use super::*;

    /// Prefix of a pattern, and the literals of which one is necessary.
    fn literals(pattern: &str) -> (String, String) {
        let filter = Filter::of(pattern.as_bytes(), false);
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (prefix, mut rest) = filter.text.split_at(usize::from(filter.prefix));
        let literal = |_| {
            let (literal, behind) = rest[LITERAL_HEAD..].split_at(usize::from(rest[0]));
            rest = behind;
            shown(literal)
        };
        let any: Vec<String> = (0..filter.literals).map(literal).collect();
        (shown(prefix), any.join("|"))
    }

    #[test]
    fn necessary_literals_of_patterns() {
        for (pattern, prefix, any) in [
            ("", "", ""),
            ("abc", "", "abc"),
            ("^/a/b", "/a/b", ""),
            ("^/ab?c", "/a", "c"),
            ("^/ab+c", "/ab", "c"),
            ("^/ab*cd", "/a", "cd"),
            ("^/ab{0,2}cd", "/a", "cd"),
            ("^/ab{x}cd", "", ""),
            ("^/ab{2", "", ""),
            ("ab*?cde", "", "cde"),
            ("a|b", "", "a|b"),
            ("^/a|^/bc", "", "/a|/bc"),
            ("a|", "", ""),
            ("|a", "", ""),
            ("a|.|bc", "", ""),
            (r"\.(gif|jpg)$", "", "gif|jpg"),
            ("^(foo|ba(r|z))", "", "foo|ba"),
            ("(?:ab|cd)?x", "", "x"),
            ("(?>ab|cd)*x", "", "x"),
            ("(ab|cd){0}x", "", "x"),
            ("(ab|cd)+x", "", "ab|cd"),
            ("(ab|)x", "", "x"),
            ("(?P<n>ab)(?<m>cde)", "", "cde"),
            (r"\.php$", "", ".php"),
            (r"^/(\d+)/m12", "/", "/m12"),
            (r"^(www\.)?host1\.org", "", "host1.org"),
            (r"^/a(b|(c)[)]\))d\-e", "/a", "d-e"),
            ("[]^a]b[^]]cd", "", "cd"),
            ("[[:alpha:]]xy", "", "xy"),
            ("[[.a.]]xy", "", ""),
            ("[[:<:]]xy", "", ""),
            (r"[\]]xy", "", "xy"),
            (r"[\Q]\E]xy", "", ""),
            (r"\Qa.b\E", "", ""),
            (r"a\x41", "", ""),
            (r"(a)\1b", "", ""),
            ("(?i)Ab", "", "ab"),
            ("(?i)^Ab(c)", "ab", "c"),
            ("(?i)Ab|cD", "", "ab|cd"),
            ("a(?i)b", "", ""),
            ("a(?i:b)c", "", ""),
            ("(?x)a b", "", ""),
            ("(*UTF8)ab", "", ""),
            ("a(*ACCEPT)b", "", ""),
            ("a(?#b)c", "", ""),
            ("a(?=bcd)e", "", "a"),
            ("a(?!bcd)ef", "", "ef"),
            ("a(?<=bcd)ef(?<!hij)", "", "ef"),
            ("(?|a)b", "", ""),
            ("(?(1)a)b", "", ""),
            ("(a)(?1)bcd", "", ""),
            ("^*ab", "", ""),
            ("a^bc", "", "bc"),
            ("ab)c", "", ""),
            ("(ab", "", ""),
        ] {
            let expected = (prefix.to_owned(), any.to_owned());
            assert_eq!(literals(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn literals_are_cut_at_their_limits() {
        for len in [PREFIX_BYTES - 1, PREFIX_BYTES, PREFIX_BYTES + 1] {
            let pattern = format!("^{}", "p".repeat(len));
            assert_eq!(literals(&pattern).0.len(), len.min(PREFIX_BYTES));
            assert!(Filter::of(pattern.as_bytes(), false).passes(&pattern.as_bytes()[1..]));
        }
        let most = TEXT_BYTES - LITERAL_HEAD;
        for len in [most - 1, most, most + 1] {
            let pattern = "q".repeat(len);
            let filter = Filter::of(pattern.as_bytes(), false);
            assert_eq!(literals(&pattern).1.len(), len.min(most));
            assert!(filter.passes(pattern.as_bytes()));
            assert!(!filter.passes(&pattern.as_bytes()[..len.min(most) - 1]));
        }
        let both = format!("^{}.{}", "p".repeat(50), "q".repeat(50));
        let (prefix, any) = literals(&both);
        assert_eq!(prefix.len(), PREFIX_BYTES);
        assert_eq!(any.len(), TEXT_BYTES - PREFIX_BYTES - LITERAL_HEAD);
    }

    #[test]
    fn alternatives_and_depths_have_limits() {
        for (count, known) in [(11, true), (12, true), (13, false)] {
            let words: Vec<String> = (0..count).map(|n| format!("w{n:02}")).collect();
            assert_eq!(!literals(&words.join("|")).1.is_empty(), known, "{count}");
        }
        for (depth, known) in [(49, "ab"), (50, "ab"), (51, "")] {
            let pattern = ["(".repeat(depth), "ab".to_owned(), ")".repeat(depth)].concat();
            assert_eq!(literals(&pattern).1, known, "{depth}");
        }
    }

    /// Patterns of random pieces and random texts: the library finds no match in a text that the filter refuses.
    #[test]
    fn no_match_is_kept_back() {
        const PIECES: [&str; 38] = [
            "a", "b", "ab", "A", "/", r"\.", r"\/", ".", "a?", "b*", "a+", "b{0,1}", "a{2}",
            "[ab]", "[^a]", "[]a]", "(a)", "(a|b)", "(?:ab)?", "(?=a)", "(?!b)", "(?<=a)",
            "(?<!b)", r"\d", r"\w", r"\b", "|", "$", "^", "(?i)", "b+?", "(b(a)?)", "(ab|b/)",
            "(ab|/)?", "(?:a|b)+", "(", ")", "^a",
        ];
        const BYTES: &[u8] = b"abABab/.1\n";
        let seed = 7;
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut kept_back, mut matched) = (0, 0);
        for _ in 0..20_000 {
            let mut pattern = ["", "^", "(?i)", "(?i)^"][random.usize(..4)].to_owned();
            for _ in 0..random.usize(1..7) {
                pattern += PIECES[random.usize(..PIECES.len())];
            }
            let caseless = random.bool();
            let mut builder = pcre2::bytes::RegexBuilder::new();
            let Ok(regex) = builder.caseless(caseless).build(&pattern) else {
                continue;
            };
            let filter = Filter::of(pattern.as_bytes(), caseless);
            for _ in 0..10 {
                let len = random.usize(..9);
                let byte = |_| BYTES[random.usize(..BYTES.len())];
                let subject: Vec<u8> = (0..len).map(byte).collect();
                let matches = regex.is_match(&subject).expect("the subject is short");
                let passes = filter.passes(&subject);
                let shown = String::from_utf8_lossy(&subject);
                assert!(passes || !matches, "seed {seed}: {pattern} {shown:?}");
                matched += u32::from(matches);
                kept_back += u32::from(!passes);
            }
        }
        assert!(matched > 1000 && kept_back > 1000, "{matched} {kept_back}");
    }
}
