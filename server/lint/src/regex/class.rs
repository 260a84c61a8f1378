//! Classes of bytes: `\d`, `[a-z]`, `[[:alpha:]]`.

use crate::bytes::ByteSet;

/// The set of `\` and a letter, inside and outside brackets.
pub(super) fn escape(letter: u8) -> Option<ByteSet> {
    Some(match letter {
        b'd' => DIGIT,
        b'D' => DIGIT.not(),
        b'w' => WORD,
        b'W' => WORD.not(),
        b's' => SPACE,
        b'S' => SPACE.not(),
        b'h' => BLANK,
        b'H' => BLANK.not(),
        b'v' => VERTICAL,
        b'V' => VERTICAL.not(),
        _ => return None,
    })
}

/// The byte of `\` and a letter.
pub(super) fn control(letter: u8) -> Option<u8> {
    Some(match letter {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'f' => 0x0c,
        b'e' => 0x1b,
        b'a' => 0x07,
        _ => return None,
    })
}

/// The set of `[:name:]`.
pub(super) fn posix(name: &[u8]) -> Option<ByteSet> {
    let lower = ByteSet::range(b'a', b'z');
    let upper = ByteSet::range(b'A', b'Z');
    let graph = ByteSet::range(0x21, 0x7e);
    Some(match name {
        b"alpha" => lower.or(upper),
        b"digit" => DIGIT,
        b"alnum" => lower.or(upper).or(DIGIT),
        b"lower" => lower,
        b"upper" => upper,
        b"word" => WORD,
        b"space" => SPACE,
        b"blank" => BLANK,
        b"graph" => graph,
        b"print" => graph.with(b' '),
        b"punct" => graph.and(lower.or(upper).or(DIGIT).not()),
        b"cntrl" => ByteSet::range(0, 0x1f).with(0x7f),
        b"xdigit" => DIGIT
            .or(ByteSet::range(b'a', b'f'))
            .or(ByteSet::range(b'A', b'F')),
        _ => return None,
    })
}

pub(super) const DIGIT: ByteSet = ByteSet::range(b'0', b'9');
const WORD: ByteSet = DIGIT
    .or(ByteSet::range(b'a', b'z'))
    .or(ByteSet::range(b'A', b'Z'))
    .with(b'_');
const BLANK: ByteSet = ByteSet::of(b' ').with(b'\t');
const VERTICAL: ByteSet = ByteSet::range(0x0a, 0x0d);
const SPACE: ByteSet = BLANK.or(VERTICAL);
