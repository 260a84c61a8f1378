//! A pattern read from its start; each function returns `None` for syntax that it does not know.

/// Literals that each match of a pattern has.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Each match begins with this, at the start of the subject.
    pub(super) prefix: Vec<u8>,
    /// Each match contains one of these behind the prefix; empty for no condition.
    pub(super) any: Vec<Vec<u8>>,
}

/// A pattern that is read.
pub(super) struct Scan<'p> {
    rest: &'p [u8],
    caseless: bool,
    /// Groups around the place.
    depth: usize,
}

/// The items of one alternative.
#[derive(Default)]
struct Sequence {
    found: Found,
    /// Literals since the last item of another kind.
    run: Vec<u8>,
    /// The run is at the start of the subject.
    at_start: bool,
    /// Literals of the group that was the last item.
    group: Vec<Vec<u8>>,
}

impl Sequence {
    /// Ends the last item, which each match has.
    fn end_item(&mut self) {
        let run = std::mem::take(&mut self.run);
        if std::mem::take(&mut self.at_start) {
            self.found.prefix = run;
        } else if !run.is_empty() {
            self.offer(vec![run]);
        }
        let group = std::mem::take(&mut self.group);
        self.offer(group);
    }

    /// A quantifier allows a match without the last item.
    fn drop_item(&mut self) {
        self.run.pop();
        self.group.clear();
        self.end_item();
    }

    /// Takes literals of which one is necessary, if they are longer than those known.
    fn offer(&mut self, any: Vec<Vec<u8>>) {
        let shortest = |any: &[Vec<u8>]| any.iter().map(Vec::len).min().unwrap_or_default();
        if shortest(&any) > shortest(&self.found.any) {
            self.found.any = any;
        }
    }
}

impl<'p> Scan<'p> {
    /// Reads a pattern without the options in front of it.
    pub(super) fn new(pattern: &'p [u8], caseless: bool) -> Self {
        Self {
            rest: pattern,
            caseless,
            depth: 0,
        }
    }

    /// The whole pattern.
    pub(super) fn pattern(&mut self) -> Option<Found> {
        let found = self.alternatives()?;
        self.rest.is_empty().then_some(found)
    }

    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// Alternatives up to the end of the group or of the pattern. Of several, each must have a literal.
    fn alternatives(&mut self) -> Option<Found> {
        let first = self.sequence()?;
        if self.rest.first() != Some(&b'|') {
            return Some(first);
        }
        let mut any = first.one();
        while let Some(rest) = self.rest.strip_prefix(b"|") {
            self.rest = rest;
            let more = self.sequence()?.one();
            if more.is_empty() || any.len() + more.len() > LITERALS_MAX {
                any.clear();
            }
            if !any.is_empty() {
                any.extend(more);
            }
        }
        Some(Found {
            any,
            ..Found::default()
        })
    }

    /// The items of one alternative, up to its end.
    fn sequence(&mut self) -> Option<Found> {
        let mut items = Sequence::default();
        if let Some(rest) = self.rest.strip_prefix(b"^") {
            // A quantifier could make the assertion optional.
            if matches!(rest.first(), Some(b'*' | b'?' | b'+' | b'{')) {
                return None;
            }
            self.rest = rest;
            items.at_start = true;
        }
        while let Some(byte) = self.rest.first() {
            if matches!(byte, b'|' | b')') {
                break;
            }
            self.item(&mut items)?;
        }
        items.end_item();
        Some(items.found)
    }

    fn item(&mut self, items: &mut Sequence) -> Option<()> {
        match self.next()? {
            b'*' | b'?' => items.drop_item(),
            b'{' => {
                self.counts()?;
                items.drop_item();
            }
            // The item is there at least once.
            b'+' | b'^' | b'$' | b'.' => items.end_item(),
            b'[' => {
                items.end_item();
                self.class()?;
            }
            b'(' => {
                items.end_item();
                items.group = self.group()?;
            }
            b'\\' => match self.next()? {
                byte if byte.is_ascii_punctuation() => self.literal(byte, items),
                byte if ESCAPES.contains(&byte) => items.end_item(),
                _ => return None,
            },
            byte => self.literal(byte, items),
        }
        Some(())
    }

    fn literal(&self, byte: u8, items: &mut Sequence) {
        if !items.group.is_empty() {
            items.end_item();
        }
        match (self.caseless, byte.is_ascii()) {
            (false, _) => items.run.push(byte),
            (true, true) => items.run.push(byte.to_ascii_lowercase()),
            // The library's tables decide about its case.
            (true, false) => items.end_item(),
        }
    }

    /// The rest of `{2,3}`; braces around anything else may be literals.
    fn counts(&mut self) -> Option<()> {
        loop {
            match self.next()? {
                b'}' => return Some(()),
                b'0'..=b'9' | b',' | b' ' => {}
                _ => return None,
            }
        }
    }

    /// The rest of a class.
    fn class(&mut self) -> Option<()> {
        self.rest = self.rest.strip_prefix(b"^").unwrap_or(self.rest);
        // In the first place a bracket is a member.
        self.rest = self.rest.strip_prefix(b"]").unwrap_or(self.rest);
        loop {
            match self.next()? {
                b']' => return Some(()),
                b'\\' => match self.next()? {
                    // These change the meaning of bytes behind them.
                    b'Q' | b'E' | b'c' => return None,
                    _ => {}
                },
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

    /// The rest of a group; returns literals, one of which is necessary. Refuses verbs, options, comments, conditions and
    /// calls.
    fn group(&mut self) -> Option<Vec<Vec<u8>>> {
        let mut looks_around = false;
        match self.rest {
            [b'*', ..] => return None,
            [b'?', b':' | b'>', rest @ ..] => self.rest = rest,
            [b'?', b'=' | b'!', rest @ ..] | [b'?', b'<', b'=' | b'!', rest @ ..] => {
                looks_around = true;
                self.rest = rest;
            }
            [b'?', b'<', ..] | [b'?', b'P', b'<', ..] => {
                let end = memchr::memchr(b'>', self.rest)?;
                self.rest = &self.rest[end + 1..];
            }
            [b'?', ..] => return None,
            _ => {}
        }
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        let found = self.alternatives()?;
        self.depth -= 1;
        self.rest = self.rest.strip_prefix(b")")?;
        // Lookarounds match text outside of this position, or its absence.
        Some(match looks_around {
            true => Vec::new(),
            false => found.one(),
        })
    }
}

impl Found {
    /// The literals of which each match contains one, the prefix being one of them.
    fn one(self) -> Vec<Vec<u8>> {
        let shortest = self.any.iter().map(Vec::len).min();
        match self.prefix.len() > shortest.unwrap_or_default() {
            true => vec![self.prefix],
            false => self.any,
        }
    }
}

/// Maximum number of literals of which one is necessary.
const LITERALS_MAX: usize = 12;
/// Maximum depth of groups.
const DEPTH_MAX: usize = 50;
/// Escapes of one letter that are a class of bytes or an assertion.
const ESCAPES: &[u8] = b"dDwWsShHvVbBzZ";
