//! Tables between charsets, and the body stage that applies one.
//!
//! A byte without an entry becomes `?`. A character missing in the target charset becomes a numeric character
//! reference, as in nginx. An incomplete sequence at the end of a chunk waits for the next one; at the end of the body
//! it is dropped.

use std::collections::VecDeque;
use std::sync::Arc;

use engines::http::Chunk;
use server_http::exchange::{BodyStage, Broken};

/// A table between two charsets.
pub(super) enum Table {
    /// Byte to byte, in both directions.
    Bytes(Box<[u8; 256]>, Box<[u8; 256]>),
    /// Bytes to UTF-8 sequences, and characters to bytes.
    Utf8(Box<[Sequence; 256]>, Pages),
}

impl Table {
    /// Whether a body may have another length afterwards.
    pub(super) fn changes_length(&self) -> bool {
        matches!(self, Self::Utf8(..))
    }
}

/// Up to three bytes of UTF-8, and in the last byte their number: four bytes are copied at once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Sequence([u8; 4]);

impl Sequence {
    /// The entry of an unchanged byte.
    fn same(byte: u8) -> Self {
        Self([byte, 0, 0, 1])
    }

    fn len(self) -> usize {
        usize::from(self.0[3])
    }

    fn bytes(&self) -> &[u8] {
        &self.0[..self.len()]
    }
}

/// A table from characters to bytes; 0 for characters without a byte.
pub(super) struct Pages {
    /// Pages of 256 characters.
    pages: Vec<Option<Box<[u8; 256]>>>,
    /// Characters with two bytes in UTF-8, the usual case.
    short: Box<[u8; 0x800]>,
}

impl Pages {
    fn new() -> Self {
        let mut pages: Vec<Option<Box<[u8; 256]>>> = (0..256).map(|_| None).collect();
        pages[0] = Some(Box::new(std::array::from_fn(|n| {
            if n < 128 { n as u8 } else { 0 }
        })));
        Self {
            pages,
            short: Box::new([0; 0x800]),
        }
    }

    fn set(&mut self, character: u32, byte: u8) {
        let page = &mut self.pages[(character >> 8) as usize];
        page.get_or_insert_with(|| Box::new([0; 256]))[(character & 0xff) as usize] = byte;
        if let Some(short) = self.short.get_mut(character as usize) {
            *short = byte;
        }
    }

    /// Returns the byte of a two-byte character, if it has one.
    #[inline]
    fn get_short(&self, text: &[u8]) -> Option<u8> {
        let &[first @ 0xc2..0xe0, second @ 0x80..0xc0, ..] = text else {
            return None;
        };
        let character = usize::from(first & 31) << 6 | usize::from(second & 63);
        Some(self.short[character]).filter(|byte| *byte != 0)
    }

    fn get(&self, character: u32) -> Option<u8> {
        let page = self.pages.get((character >> 8) as usize)?.as_ref()?;
        Some(page[(character & 0xff) as usize]).filter(|b| *b != 0)
    }
}

/// The direction of a conversion.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// From the first charset of `charset_map` to the second.
    Forth,
    /// From the second to the first.
    Back,
}

/// The wrong column of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    From,
    To,
}

/// Builds a table from the lines of `charset_map`.
pub(super) struct Builder(Table);

impl Builder {
    pub(super) fn new(utf8: bool) -> Self {
        let ascii = |n: usize| if n < 128 { n as u8 } else { b'?' };
        if !utf8 {
            let table = Box::new(std::array::from_fn(ascii));
            return Self(Table::Bytes(table.clone(), table));
        }
        let forth = Box::new(std::array::from_fn(|n| Sequence::same(ascii(n))));
        Self(Table::Utf8(forth, Pages::new()))
    }

    /// Adds a line of two hexadecimal columns.
    pub(super) fn add(&mut self, from: &[u8], to: &[u8]) -> Result<(), Wrong> {
        let from = hex(from)
            .and_then(|n| u8::try_from(n).ok())
            .ok_or(Wrong::From)?;
        match &mut self.0 {
            Table::Bytes(forth, back) => {
                let to = hex(to)
                    .and_then(|n| u8::try_from(n).ok())
                    .ok_or(Wrong::To)?;
                forth[usize::from(from)] = to;
                back[usize::from(to)] = from;
            }
            Table::Utf8(forth, pages) => {
                let sequence = utf8_sequence(to).ok_or(Wrong::To)?;
                let Ok(Decoded::Character(character, _)) = decode(sequence.bytes()) else {
                    return Err(Wrong::To);
                };
                forth[usize::from(from)] = sequence;
                pages.set(character, from);
            }
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Table {
        self.0
    }
}

fn hex(text: &[u8]) -> Option<u32> {
    if text.is_empty() || text.len() > 8 {
        return None;
    }
    text.iter()
        .try_fold(0u32, |n, b| Some(n << 4 | char::from(*b).to_digit(16)?))
}

fn utf8_sequence(text: &[u8]) -> Option<Sequence> {
    let mut sequence = Sequence([0, 0, 0, (text.len() / 2) as u8]);
    if text.is_empty() || !text.len().is_multiple_of(2) || text.len() > 6 {
        return None;
    }
    for (byte, pair) in sequence.0.iter_mut().zip(text.chunks(2)) {
        *byte = hex(pair)? as u8;
    }
    Some(sequence)
}

/// The first character of a text in UTF-8.
enum Decoded {
    /// A character and the length of its sequence.
    Character(u32, usize),
    /// This number of bytes that are no character.
    Invalid(usize),
}

/// More bytes are needed.
struct Incomplete;

/// Decodes a sequence of at least two bytes at the start of a text (RFC 3629). ASCII counts as invalid.
fn decode(text: &[u8]) -> Result<Decoded, Incomplete> {
    let (more, mut character, least) = match text.first() {
        Some(b @ 0xf0..0xf8) => (3, u32::from(b & 7), 0x1_0000),
        Some(b @ 0xe0..0xf0) => (2, u32::from(b & 15), 0x800),
        Some(b @ 0xc2..0xe0) => (1, u32::from(b & 31), 0x80),
        _ => return Ok(Decoded::Invalid(1)),
    };
    for n in 1..=more {
        match text.get(n) {
            None => return Err(Incomplete),
            Some(b @ 0x80..0xc0) => character = character << 6 | u32::from(b & 63),
            Some(_) => return Ok(Decoded::Invalid(n)),
        }
    }
    let sound = (least..=0x10_ffff).contains(&character);
    Ok(if sound {
        Decoded::Character(character, more + 1)
    } else {
        Decoded::Invalid(more + 1)
    })
}

/// The body stage.
pub(super) struct Recode {
    table: Arc<Table>,
    direction: Direction,
    /// The incomplete sequence at the end of the last chunk.
    held: Vec<u8>,
}

impl Recode {
    pub(super) fn new(table: Arc<Table>, direction: Direction) -> Self {
        Self {
            table,
            direction,
            held: Vec::new(),
        }
    }

    fn recode(&mut self, text: &[u8]) -> Vec<u8> {
        match (&*self.table, self.direction) {
            (Table::Bytes(table, _), Direction::Forth)
            | (Table::Bytes(_, table), Direction::Back) => {
                text.iter().map(|b| table[usize::from(*b)]).collect()
            }
            (Table::Utf8(table, _), Direction::Forth) => to_utf8(table, text),
            (Table::Utf8(_, pages), Direction::Back) => from_utf8(pages, &mut self.held, text),
        }
    }
}

fn to_utf8(table: &[Sequence; 256], text: &[u8]) -> Vec<u8> {
    let keeps_ascii = (0..128).all(|n| table[usize::from(n)] == Sequence::same(n));
    let mut out = Vec::with_capacity(text.len());
    let mut made = [0; 4 * BLOCK_BYTES];
    for block in text.chunks(BLOCK_BYTES) {
        if keeps_ascii && block.is_ascii() {
            out.extend_from_slice(block);
            continue;
        }
        let mut len = 0;
        for byte in block {
            // All four bytes are stored; the next sequence overwrites the unused ones. A branch costs more.
            let sequence = table[usize::from(*byte)];
            made[len..len + 4].copy_from_slice(&sequence.0);
            len += sequence.len();
        }
        out.extend_from_slice(&made[..len]);
    }
    out
}

fn from_utf8(pages: &Pages, held: &mut Vec<u8>, text: &[u8]) -> Vec<u8> {
    let joined;
    let mut rest = text;
    if !held.is_empty() {
        held.extend_from_slice(text);
        joined = std::mem::take(held);
        rest = &joined;
    }
    let mut out = Vec::with_capacity(rest.len());
    loop {
        rest = copy_ascii(rest, &mut out);
        rest = short_characters(pages, rest, &mut out);
        match rest.first() {
            None => break,
            // A block was full.
            Some(first) if first.is_ascii() => continue,
            Some(_) => {}
        }
        match decode(rest) {
            Ok(Decoded::Character(character, len)) => {
                match pages.get(character) {
                    Some(byte) => out.push(byte),
                    None => out.extend_from_slice(format!("&#{character};").as_bytes()),
                }
                rest = &rest[len..];
            }
            Ok(Decoded::Invalid(len)) => {
                out.push(b'?');
                rest = &rest[len..];
            }
            Err(Incomplete) => {
                held.extend_from_slice(rest);
                break;
            }
        }
    }
    out
}

/// Copies whole blocks of ASCII from the start of a text; returns the rest.
fn copy_ascii<'t>(text: &'t [u8], out: &mut Vec<u8>) -> &'t [u8] {
    let blocks = text.chunks_exact(16).take_while(|block| block.is_ascii());
    let (run, rest) = text.split_at(blocks.count() * 16);
    out.extend_from_slice(run);
    rest
}

/// Converts characters of one and two bytes, at most one block; returns the rest.
fn short_characters<'t>(pages: &Pages, mut text: &'t [u8], out: &mut Vec<u8>) -> &'t [u8] {
    // `Vec::push` would compare the capacity for each character.
    let mut made = [0; BLOCK_BYTES];
    let mut len = 0;
    while let Some(&first) = text.first()
        && let Some(place) = made.get_mut(len)
    {
        if first.is_ascii() {
            *place = first;
            text = &text[1..];
        } else if let Some(byte) = pages.get_short(text) {
            *place = byte;
            text = &text[2..];
        } else {
            break;
        }
        len += 1;
    }
    out.extend_from_slice(&made[..len]);
    text
}

/// Bytes that are made at a time.
const BLOCK_BYTES: usize = 256;

impl BodyStage for Recode {
    fn chunk(&mut self, chunk: Chunk, out: &mut VecDeque<Chunk>) -> Result<(), Broken> {
        let bytes = self.recode(chunk.bytes());
        if !bytes.is_empty() {
            out.push_back(Chunk::Owned(bytes));
        }
        Ok(())
    }

    fn end(&mut self, _: &mut VecDeque<Chunk>) -> Result<(), Broken> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(utf8: bool, lines: &[(&str, &str)]) -> Arc<Table> {
        let mut builder = Builder::new(utf8);
        for (from, to) in lines {
            assert_eq!(builder.add(from.as_bytes(), to.as_bytes()), Ok(()));
        }
        Arc::new(builder.finish())
    }

    fn run(table: &Arc<Table>, direction: Direction, pieces: &[&'static [u8]]) -> Vec<u8> {
        let mut stage = Recode::new(Arc::clone(table), direction);
        let mut out = VecDeque::new();
        for piece in pieces {
            assert_eq!(stage.chunk(Chunk::Static(piece), &mut out), Ok(()));
        }
        assert_eq!(stage.end(&mut out), Ok(()));
        out.iter().flat_map(|c| c.bytes().to_vec()).collect()
    }

    #[test]
    fn bytes_are_changed_there_and_back() {
        let table = table(false, &[("58", "59"), ("E0", "c0")]);
        assert_eq!(run(&table, Direction::Forth, &[b"aX\xe0\xe1"]), b"aY\xc0?");
        assert_eq!(run(&table, Direction::Back, &[b"aY\xc0"]), b"aX\xe0");
    }

    #[test]
    fn utf8_is_changed_across_chunks() {
        let table = table(true, &[("E0", "D0B0"), ("A4", "E282AC")]);
        assert_eq!(
            run(&table, Direction::Forth, &[b"a\xe0\xa4\xff"]),
            "aа€?".as_bytes()
        );
        let text = "aа€ж😀".as_bytes();
        let expected = b"a\xe0\xa4&#1078;&#128512;";
        assert_eq!(run(&table, Direction::Back, &[text]), expected);
        for cut in 0..text.len() {
            assert_eq!(
                run(&table, Direction::Back, &[&text[..cut], &text[cut..]]),
                expected,
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn texts_of_several_blocks_are_changed_there_and_back() {
        let table = table(true, &[("E0", "D0B0"), ("A4", "E282AC")]);
        let mut random = fastrand::Rng::with_seed(5);
        for len in [
            BLOCK_BYTES - 1,
            BLOCK_BYTES,
            BLOCK_BYTES + 1,
            3 * BLOCK_BYTES + 7,
        ] {
            for kinds in [
                &b"a"[..],
                b"\xe0",
                b"a\xe0",
                b"abc\xe0\xa4",
                b"aaaaaaaaaaaa\xa4",
            ] {
                let text: Vec<u8> = (0..len)
                    .map(|_| kinds[random.usize(..kinds.len())])
                    .collect();
                let character = |byte: &u8| match byte {
                    0xe0 => "а".to_owned(),
                    0xa4 => "€".to_owned(),
                    ascii => char::from(*ascii).to_string(),
                };
                let expected: String = text.iter().map(character).collect();
                let made = Recode::new(Arc::clone(&table), Direction::Forth).recode(&text);
                assert_eq!(made, expected.as_bytes());
                let mut back = Recode::new(Arc::clone(&table), Direction::Back);
                let cut = random.usize(..made.len());
                let pieces = [back.recode(&made[..cut]), back.recode(&made[cut..])];
                assert_eq!(pieces.concat(), text, "cut at {cut}");
            }
        }
    }

    #[test]
    fn what_is_no_utf8_becomes_a_question_mark() {
        let table = table(true, &[]);
        assert_eq!(
            run(&table, Direction::Back, &[b"\x80a\xffb\xe2\x82c\xc0\xaf"]),
            b"?a?b?c??"
        );
        assert_eq!(
            run(&table, Direction::Back, &[b"\xed\xa0\x80"]),
            b"&#55296;"
        );
        assert_eq!(run(&table, Direction::Back, &[b"a\xe2\x82"]), b"a");
    }

    #[test]
    fn lines_are_hexadecimal() {
        let mut bytes = Builder::new(false);
        assert_eq!(bytes.add(b"100", b"00"), Err(Wrong::From));
        assert_eq!(bytes.add(b"80", b"zz"), Err(Wrong::To));
        let mut utf8 = Builder::new(true);
        assert_eq!(utf8.add(b"80", b"F09F9880"), Err(Wrong::To));
        assert_eq!(utf8.add(b"80", b"41"), Err(Wrong::To));
        assert_eq!(utf8.add(b"80", b"D0"), Err(Wrong::To));
    }
}
