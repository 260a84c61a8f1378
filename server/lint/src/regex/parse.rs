//! Text to [`Regex`].

use super::class;
use super::{Ast, Regex};
use crate::bytes::ByteSet;

pub(super) fn parse(pattern: &[u8], caseless: bool) -> Option<Regex> {
    let mut parser = Parser {
        text: pattern,
        at: 0,
        flags: Flags {
            caseless,
            dot_all: false,
        },
        groups: 0,
        names: Vec::new(),
        depth: 0,
    };
    let ast = parser.alternatives()?;
    (parser.at == pattern.len()).then_some(Regex {
        ast,
        names: parser.names,
    })
}

#[derive(Clone, Copy)]
struct Flags {
    caseless: bool,
    dot_all: bool,
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    flags: Flags,
    groups: usize,
    names: Vec<(String, usize)>,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn eat(&mut self, text: &[u8]) -> bool {
        let found = self.text[self.at..].starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    fn set(&self, set: ByteSet) -> Ast {
        Ast::Set(if self.flags.caseless {
            set.caseless()
        } else {
            set
        })
    }

    /// Up to a `)` or the end.
    fn alternatives(&mut self) -> Option<Ast> {
        let flags = self.flags;
        let mut all = vec![self.sequence()?];
        while self.eat(b"|") {
            all.push(self.sequence()?);
        }
        self.flags = flags;
        Some(if all.len() == 1 {
            all.remove(0)
        } else {
            Ast::Alternate(all)
        })
    }

    fn sequence(&mut self) -> Option<Ast> {
        let mut all = Vec::new();
        while let Some(byte) = self.peek() {
            if byte == b'|' || byte == b')' {
                break;
            }
            if self.eat(b"\\Q") {
                self.literal_text(&mut all);
                continue;
            }
            let atom = self.atom()?;
            all.push(self.repeats(atom)?);
        }
        Some(if all.len() == 1 {
            all.remove(0)
        } else {
            Ast::Concat(all)
        })
    }

    /// The text between `\Q` and `\E`.
    fn literal_text(&mut self, all: &mut Vec<Ast>) {
        while !self.eat(b"\\E") {
            let Some(byte) = self.next() else { return };
            all.push(self.set(ByteSet::of(byte)));
        }
    }

    fn atom(&mut self) -> Option<Ast> {
        Some(match self.next()? {
            b'(' => return self.group(),
            b'[' => {
                let set = self.class()?;
                self.set(set)
            }
            b'.' if self.flags.dot_all => Ast::Set(ByteSet::ALL),
            b'.' => Ast::Set(ByteSet::of(b'\n').not()),
            b'^' => Ast::Start,
            b'$' => Ast::End,
            b'\\' => return self.escape(),
            b'*' | b'+' | b'?' => return None,
            byte => self.set(ByteSet::of(byte)),
        })
    }

    fn escape(&mut self) -> Option<Ast> {
        let letter = self.next()?;
        Some(match letter {
            b'A' | b'G' => Ast::Start,
            b'z' | b'Z' => Ast::End,
            b'b' | b'B' => Ast::Assert,
            b'K' | b'E' => Ast::Empty,
            b'N' => Ast::Set(ByteSet::of(b'\n').not()),
            b'R' => Ast::Set(class::escape(b'v')?),
            b'x' => {
                let byte = self.hex()?;
                self.set(ByteSet::of(byte))
            }
            _ => {
                if let Some(set) = class::escape(letter) {
                    Ast::Set(set)
                } else if let Some(byte) = class::control(letter) {
                    Ast::Set(ByteSet::of(byte))
                } else if letter.is_ascii_alphanumeric() {
                    // A back reference, a property, something of a later version.
                    return None;
                } else {
                    Ast::Set(ByteSet::of(letter))
                }
            }
        })
    }

    /// Two hexadecimal digits, or any number of them in braces.
    fn hex(&mut self) -> Option<u8> {
        let digits = if self.eat(b"{") {
            let rest = &self.text[self.at..];
            let end = rest.iter().position(|byte| *byte == b'}')?;
            self.at += end + 1;
            &rest[..end]
        } else {
            let rest = &self.text[self.at..];
            let length = rest.iter().take(2).take_while(|b| b.is_ascii_hexdigit());
            let length = length.count();
            self.at += length;
            &rest[..length]
        };
        let hex = digits.iter().all(u8::is_ascii_hexdigit);
        let digits = std::str::from_utf8(digits).ok().filter(|_| hex)?;
        u8::from_str_radix(digits, 16).ok()
    }

    fn repeats(&mut self, mut atom: Ast) -> Option<Ast> {
        for _ in 0..STACKED_MAX {
            let start = self.at;
            let (min, max) = match self.peek() {
                Some(b'*') => (0, None),
                Some(b'+') => (1, None),
                Some(b'?') => (0, Some(1)),
                Some(b'{') => match self.counts() {
                    Some(counts) => counts,
                    None => return Some(atom),
                },
                _ => return Some(atom),
            };
            if self.at == start {
                self.at += 1;
            }
            atom = Ast::Repeat {
                inner: Box::new(atom),
                min,
                max,
            };
            // A lazy repetition tries the same ways in another order.
            if self.eat(b"+") {
                atom = Ast::Atomic(Box::new(atom));
            } else {
                self.eat(b"?");
            }
        }
        None
    }

    /// `{2}`, `{2,}`, `{2,3}`; anything else is text, and nothing is taken.
    fn counts(&mut self) -> Option<(u32, Option<u32>)> {
        let rest = &self.text[self.at + 1..];
        let end = rest.iter().position(|byte| *byte == b'}')?;
        let inside = std::str::from_utf8(&rest[..end]).ok()?;
        let number = |text: &str| conf::parse_digits(text).filter(|n| *n <= REPEAT_MAX);
        let counts = match inside.split_once(',') {
            None => {
                let exactly = number(inside)?;
                (exactly, Some(exactly))
            }
            Some((min, "")) => (number(min)?, None),
            Some((min, max)) => (number(min)?, Some(number(max)?)),
        };
        self.at += end + 2;
        Some(counts)
    }

    fn group(&mut self) -> Option<Ast> {
        self.depth += 1;
        if self.depth > DEPTH_MAX || self.peek() == Some(b'*') {
            return None;
        }
        let flags = self.flags;
        let ast = if self.eat(b"?") {
            self.special()?
        } else {
            self.capture(None)?
        };
        self.depth -= 1;
        // Options set by `(?i)` last to the end of the group around it; those of `(?i:...)` end with it.
        if !matches!(ast, Ast::Empty) {
            self.flags = flags;
        }
        Some(ast)
    }

    fn capture(&mut self, name: Option<String>) -> Option<Ast> {
        self.groups += 1;
        let index = self.groups;
        self.names.extend(name.map(|name| (name, index)));
        let inner = self.closed()?;
        Some(Ast::Group {
            index,
            inner: Box::new(inner),
        })
    }

    fn closed(&mut self) -> Option<Ast> {
        let inner = self.alternatives()?;
        self.eat(b")").then_some(inner)
    }

    /// Parses the rest after `(?`.
    fn special(&mut self) -> Option<Ast> {
        for ahead in [b"=".as_slice(), b"!", b"<=", b"<!"] {
            if self.eat(ahead) {
                self.closed()?;
                return Some(Ast::Assert);
            }
        }
        if self.eat(b">") {
            return Some(Ast::Atomic(Box::new(self.closed()?)));
        }
        if self.eat(b"P<") || self.eat(b"<") {
            let name = self.take_until(b'>')?;
            return self.capture(Some(name));
        }
        if self.eat(b"'") {
            let name = self.take_until(b'\'')?;
            return self.capture(Some(name));
        }
        if self.eat(b"#") {
            self.take_until(b')')?;
            return Some(Ast::Empty);
        }
        let mut on = true;
        loop {
            match self.next()? {
                b'i' => self.flags.caseless = on,
                b's' => self.flags.dot_all = on,
                b'm' | b'U' | b'J' => {}
                b'-' => on = false,
                b':' => {
                    let inner = self.closed()?;
                    // A group that is empty must not be taken for options.
                    return Some(Ast::Concat(vec![inner]));
                }
                b')' => return Some(Ast::Empty),
                _ => return None,
            }
        }
    }

    fn take_until(&mut self, end: u8) -> Option<String> {
        let rest = &self.text[self.at..];
        let length = rest.iter().position(|byte| *byte == end)?;
        self.at += length + 1;
        String::from_utf8(rest[..length].to_vec()).ok()
    }

    /// Parses the rest after `[`.
    fn class(&mut self) -> Option<ByteSet> {
        let negated = self.eat(b"^");
        let mut set = ByteSet::NONE;
        let mut first = true;
        loop {
            let byte = self.next()?;
            if byte == b']' && !first {
                break;
            }
            first = false;
            let low = match byte {
                b'[' if self.peek() == Some(b':') => {
                    let rest = &self.text[self.at + 1..];
                    let end = rest.windows(2).position(|w| w == b":]")?;
                    let (negated, name) = match rest[..end].split_first() {
                        Some((b'^', name)) => (true, name),
                        _ => (false, &rest[..end]),
                    };
                    let named = class::posix(name)?;
                    set = set.or(if negated { named.not() } else { named });
                    self.at += end + 3;
                    continue;
                }
                b'\\' => match self.class_escape()? {
                    Ok(byte) => byte,
                    Err(whole) => {
                        set = set.or(whole);
                        continue;
                    }
                },
                byte => byte,
            };
            let high = self.range_end(low)?;
            set = set.or(ByteSet::range(low, high));
        }
        if self.flags.caseless {
            set = set.caseless();
        }
        Some(if negated { set.not() } else { set })
    }

    /// The end of `a-z`, or the byte itself if it begins no range.
    fn range_end(&mut self, low: u8) -> Option<u8> {
        let rest = &self.text[self.at..];
        if rest.first() != Some(&b'-') || matches!(rest.get(1), None | Some(b']')) {
            return Some(low);
        }
        self.at += 1;
        let high = match self.next()? {
            b'\\' => match self.class_escape()? {
                Ok(byte) => byte,
                Err(_) => return None,
            },
            byte => byte,
        };
        (low <= high).then_some(high)
    }

    /// A byte, or a whole set, written with a backslash.
    fn class_escape(&mut self) -> Option<Result<u8, ByteSet>> {
        let letter = self.next()?;
        Some(if let Some(set) = class::escape(letter) {
            Err(set)
        } else if letter == b'b' {
            Ok(0x08)
        } else if letter == b'x' {
            Ok(self.hex()?)
        } else if let Some(byte) = class::control(letter) {
            Ok(byte)
        } else if letter.is_ascii_alphanumeric() {
            return None;
        } else {
            Ok(letter)
        })
    }
}

/// Groups may be nested this deep; deeper ones are not understood.
const DEPTH_MAX: usize = 50;
/// Repetitions directly behind one another, as in `a{2}{3}`; more are not understood.
const STACKED_MAX: usize = 8;
/// The largest number of repetitions PCRE takes.
const REPEAT_MAX: u32 = 65_535;

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(pattern: &str) -> ByteSet {
        parse(pattern.as_bytes(), false)
            .unwrap_or_else(|| panic!("{pattern} is understood"))
            .ast
            .bytes()
    }

    #[test]
    fn classes_are_sets() {
        assert_eq!(bytes(r"[a-c\d]"), bytes("[abc0-9]"));
        assert_eq!(bytes("[]a]"), ByteSet::of(b']').with(b'a'));
        assert_eq!(bytes("[^]]"), ByteSet::of(b']').not());
        assert_eq!(bytes("[a-]"), ByteSet::of(b'a').with(b'-'));
        assert_eq!(bytes("[[:alpha:]]"), bytes("[a-zA-Z]"));
        assert_eq!(bytes(r"\x41\x{42}"), bytes("[AB]"));
        assert!(bytes(r"\W").has(b'\n') && !bytes(".").has(b'\n') && bytes("(?s).").has(b'\n'));
    }

    #[test]
    fn case_is_folded_where_it_should_be() {
        let caseless = parse(b"a[b-c]", true).expect("it is understood");
        assert_eq!(caseless.ast.bytes(), bytes("[a-cA-C]"));
        assert_eq!(bytes("(?i)a"), bytes("[aA]"));
        assert_eq!(bytes("(?i:a)b"), bytes("[aA]").with(b'b'));
        assert_eq!(bytes("((?i)a)b"), bytes("[aA]").with(b'b'));
    }

    #[test]
    fn repetitions_are_counted() {
        let counts = |pattern: &str| match parse(pattern.as_bytes(), false).expect("read").ast {
            Ast::Repeat { min, max, .. } => (min, max),
            other => panic!("{pattern}: {other:?}"),
        };
        assert_eq!(counts("a*"), (0, None));
        assert_eq!(counts("a+?"), (1, None));
        assert_eq!(counts("a{2,5}"), (2, Some(5)));
        assert_eq!(counts("a{3}"), (3, Some(3)));
        assert_eq!(counts("a{3,}"), (3, None));
        assert!(matches!(
            parse(b"a++", false).expect("read").ast,
            Ast::Atomic(_)
        ));
        assert_eq!(bytes("a{x}"), bytes("[a{x}]"));
        assert_eq!(bytes("a{+2}b"), bytes("[a{2}b]"));
    }

    #[test]
    fn what_is_not_understood_gives_nothing() {
        for pattern in [
            "(", "a)", "[a", "(?R)", r"(a)\1", "(*UTF)a", "(?x)a", "+a", "[z-a]", "\\", "(?<a",
        ] {
            assert!(parse(pattern.as_bytes(), false).is_none(), "{pattern}");
        }
        let nested = |depth| format!("{}{}", "(".repeat(depth), ")".repeat(depth));
        assert!(parse(nested(DEPTH_MAX).as_bytes(), false).is_some());
        assert!(parse(nested(DEPTH_MAX + 1).as_bytes(), false).is_none());
    }

    #[test]
    fn quoted_text_is_text() {
        assert_eq!(bytes(r"\Qa.b\E"), bytes(r"[a.b]"));
    }
}
