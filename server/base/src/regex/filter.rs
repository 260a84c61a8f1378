//! Necessary conditions of a match, read from a pattern: bytes that each match begins with or contains.
//!
//! Most expressions of a long list do not match, and a call of the library costs ten times a comparison. A [`Filter`] has
//! false positives only. A pattern that this file does not understand gets a filter that every text passes.
//!
//! Source: `pcre2pattern(3)`.

use memchr::{memchr, memchr2};

/// Literals of a pattern, in one cache line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filter {
    /// Bytes of `text` that a match begins with, at the start of the subject.
    prefix: u8,
    /// Bytes of `text` that follow the prefix somewhere; they are contiguous.
    inner: u8,
    /// Index within the inner literal of the byte that is looked for first.
    rare: u8,
    caseless: bool,
    text: [u8; TEXT_BYTES],
}

impl Filter {
    /// Reads a pattern.
    pub(super) fn of(pattern: &[u8], caseless: bool) -> Self {
        let mut filter = Self {
            prefix: 0,
            inner: 0,
            rare: 0,
            caseless,
            text: [0; TEXT_BYTES],
        };
        let mut scan = Scan::new(pattern, caseless);
        if scan.sequence().is_none() {
            return filter;
        }
        let prefix = &scan.prefix[..scan.prefix.len().min(PREFIX_BYTES)];
        let room = TEXT_BYTES - prefix.len();
        let inner = &scan.inner[..scan.inner.len().min(room)];
        filter.text[..prefix.len()].copy_from_slice(prefix);
        filter.text[prefix.len()..][..inner.len()].copy_from_slice(inner);
        let rare = (0..inner.len()).max_by_key(|n| rarity(inner[*n]));
        filter.prefix = prefix.len() as u8;
        filter.inner = inner.len() as u8;
        filter.rare = rare.unwrap_or_default() as u8;
        filter.caseless = scan.caseless;
        filter
    }

    /// Whether a match is possible.
    #[inline]
    pub(super) fn passes(&self, subject: &[u8]) -> bool {
        let (prefix, inner) = self.text.split_at(usize::from(self.prefix));
        let Some((start, rest)) = subject.split_at_checked(prefix.len()) else {
            return false;
        };
        self.equal(start, prefix) && (self.inner == 0 || self.contains(rest, inner))
    }

    #[inline]
    fn equal(&self, text: &[u8], literal: &[u8]) -> bool {
        match self.caseless {
            false => text == literal,
            true => text.eq_ignore_ascii_case(literal),
        }
    }

    fn contains(&self, subject: &[u8], inner: &[u8]) -> bool {
        let (literal, rare) = (&inner[..usize::from(self.inner)], usize::from(self.rare));
        // Beyond these, the literal would not fit around its rare byte.
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

/// A pattern that is read from its start; each function returns `None` for syntax that it does not know.
struct Scan<'p> {
    rest: &'p [u8],
    caseless: bool,
    /// Literals since the last item of another kind.
    run: Vec<u8>,
    /// The run is at the start of the subject.
    at_start: bool,
    prefix: Vec<u8>,
    /// The longest run that is not the prefix.
    inner: Vec<u8>,
}

impl<'p> Scan<'p> {
    fn new(pattern: &'p [u8], caseless: bool) -> Self {
        let flagged = pattern.strip_prefix(b"(?i)");
        Self {
            rest: flagged.unwrap_or(pattern),
            caseless: caseless || flagged.is_some(),
            run: Vec::new(),
            at_start: false,
            prefix: Vec::new(),
            inner: Vec::new(),
        }
    }

    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// The items of the pattern one after another. An alternative makes none of them necessary.
    fn sequence(&mut self) -> Option<()> {
        if let Some(rest) = self.rest.strip_prefix(b"^") {
            // A quantifier could make the assertion optional.
            if matches!(rest.first(), Some(b'*' | b'?' | b'+' | b'{')) {
                return None;
            }
            self.rest = rest;
            self.at_start = true;
        }
        while let Some(byte) = self.next() {
            match byte {
                b'|' | b')' => return None,
                b'*' | b'?' => self.drop_last(),
                b'{' => self.counts()?,
                // The literal is there at least once.
                b'+' | b'^' | b'$' | b'.' => self.end_run(),
                b'[' => {
                    self.end_run();
                    self.class()?;
                }
                b'(' => {
                    self.end_run();
                    self.group()?;
                }
                b'\\' => match self.next()? {
                    byte if byte.is_ascii_punctuation() => self.literal(byte),
                    byte if ESCAPES.contains(&byte) => self.end_run(),
                    _ => return None,
                },
                byte => self.literal(byte),
            }
        }
        self.end_run();
        Some(())
    }

    fn literal(&mut self, byte: u8) {
        match (self.caseless, byte.is_ascii()) {
            (false, _) => self.run.push(byte),
            (true, true) => self.run.push(byte.to_ascii_lowercase()),
            // The library's tables decide about its case.
            (true, false) => self.end_run(),
        }
    }

    fn end_run(&mut self) {
        let run = std::mem::take(&mut self.run);
        if std::mem::take(&mut self.at_start) {
            self.prefix = run;
        } else if run.len() > self.inner.len() {
            self.inner = run;
        }
    }

    /// A quantifier makes the literal before it optional.
    fn drop_last(&mut self) {
        self.run.pop();
        self.end_run();
    }

    /// The rest of `{2,3}`; braces around anything else may be literals.
    fn counts(&mut self) -> Option<()> {
        loop {
            match self.next()? {
                b'}' => break,
                b'0'..=b'9' | b',' | b' ' => {}
                _ => return None,
            }
        }
        self.drop_last();
        Some(())
    }

    /// The rest of a class.
    fn class(&mut self) -> Option<()> {
        self.rest = self.rest.strip_prefix(b"^").unwrap_or(self.rest);
        // In the first place a bracket is a member.
        self.rest = self.rest.strip_prefix(b"]").unwrap_or(self.rest);
        loop {
            match self.next()? {
                b']' => return Some(()),
                b'\\' => self.escape()?,
                b'[' if matches!(self.rest.first()?, b':' | b'.' | b'=') => self.named_class()?,
                _ => {}
            }
        }
    }

    /// The rest of `[:alpha:]`.
    fn named_class(&mut self) -> Option<()> {
        let name = self.rest.strip_prefix(b":")?;
        let name = name.strip_prefix(b"^").unwrap_or(name);
        let len = name.iter().take_while(|b| b.is_ascii_lowercase()).count();
        self.rest = name[len..].strip_prefix(b":]")?;
        Some(())
    }

    /// The rest of a group, with the groups in it.
    fn group(&mut self) -> Option<()> {
        let mut depth = 1;
        self.group_kind()?;
        while depth > 0 {
            match self.next()? {
                b'(' => {
                    self.group_kind()?;
                    depth += 1;
                }
                b')' => depth -= 1,
                b'[' => self.class()?,
                b'\\' => self.escape()?,
                _ => {}
            }
        }
        Some(())
    }

    /// Refuses verbs, options, comments, conditions and calls.
    fn group_kind(&mut self) -> Option<()> {
        match self.rest {
            [b'*', ..] => None,
            [b'?', kind, ..] if !GROUPS.contains(kind) => None,
            _ => Some(()),
        }
    }

    /// The byte after a backslash, unless it changes the meaning of bytes behind it.
    fn escape(&mut self) -> Option<()> {
        match self.next()? {
            b'Q' | b'E' | b'c' => None,
            _ => Some(()),
        }
    }
}

/// Maximum length of both literals, bytes; longer ones are cut.
const TEXT_BYTES: usize = 60;
/// Maximum length of the prefix, bytes.
const PREFIX_BYTES: usize = 40;
/// Bytes that most URIs and names have, the most common first.
const COMMON: &[u8] = b"/eatoinsrlhdcum.-_pgwvbyfk";
/// Escapes of one letter that are a class of bytes or an assertion.
const ESCAPES: &[u8] = b"dDwWsShHvVbBzZ";
/// Bytes after `(?` that begin a group without options: looks ahead and behind, names, atomic groups.
const GROUPS: &[u8] = b":=!<>";

#[cfg(test)]
mod tests {
    use super::*;

    /// Prefix and inner literal of a pattern.
    fn literals(pattern: &str) -> (String, String) {
        let filter = Filter::of(pattern.as_bytes(), false);
        let (prefix, inner) = filter.text.split_at(usize::from(filter.prefix));
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (shown(prefix), shown(&inner[..usize::from(filter.inner)]))
    }

    #[test]
    fn necessary_literals_of_patterns() {
        for (pattern, prefix, inner) in [
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
            ("a|b", "", ""),
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
            ("(?i)^Ab(c)", "ab", ""),
            ("a(?i)b", "", ""),
            ("a(?i:b)c", "", ""),
            ("(?x)a b", "", ""),
            ("(*UTF8)ab", "", ""),
            ("a(*ACCEPT)b", "", ""),
            ("a(?#b)c", "", ""),
            ("a(?:bc)d(?=e)fg(?<!h)(?<n>i)", "", "fg"),
            ("(?|a)b", "", ""),
            ("(?(1)a)b", "", ""),
            ("(a)(?1)bcd", "", ""),
            ("^*ab", "", ""),
            ("a^bc", "", "bc"),
            ("ab)c", "", ""),
        ] {
            let expected = (prefix.to_owned(), inner.to_owned());
            assert_eq!(literals(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn literals_are_cut_at_their_limits() {
        for len in [PREFIX_BYTES - 1, PREFIX_BYTES, PREFIX_BYTES + 1] {
            let pattern = format!("^{}", "p".repeat(len));
            let subject = "p".repeat(len);
            let filter = Filter::of(pattern.as_bytes(), false);
            assert_eq!(usize::from(filter.prefix), len.min(PREFIX_BYTES));
            assert!(filter.passes(subject.as_bytes()));
        }
        for len in [TEXT_BYTES - 1, TEXT_BYTES, TEXT_BYTES + 1] {
            let pattern = "q".repeat(len);
            let filter = Filter::of(pattern.as_bytes(), false);
            assert_eq!(usize::from(filter.inner), len.min(TEXT_BYTES));
            assert!(filter.passes(pattern.as_bytes()));
            assert!(!filter.passes(&pattern.as_bytes()[..len.min(TEXT_BYTES) - 1]));
        }
        let both = format!("^{}.{}", "p".repeat(50), "q".repeat(50));
        let (prefix, inner) = literals(&both);
        assert_eq!(prefix.len(), PREFIX_BYTES);
        assert_eq!(inner.len(), TEXT_BYTES - PREFIX_BYTES);
    }

    /// Texts that differ by one byte from a match, and patterns of random pieces: a text that the filter keeps back never
    /// matches.
    #[test]
    fn no_match_is_kept_back() {
        const PIECES: [&str; 32] = [
            "a", "b", "ab", "A", "/", r"\.", r"\/", ".", "a?", "b*", "a+", "b{0,1}", "a{2}",
            "[ab]", "[^a]", "[]a]", "(a)", "(a|b)", "(?:ab)?", "(?=a)", "(?!b)", "(?<=a)",
            "(?<!b)", r"\d", r"\w", r"\b", "|", "$", "^", "(?i)", "b+?", "(b(a)?)",
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
