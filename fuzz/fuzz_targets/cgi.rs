//! Heads of CGI, with and without permitted status lines: the same bytes, whole and cut, give the same heads, and
//! nothing panics.
//!
//! An accepted head has a status, and no framing but a length. The first two bytes choose the limit of heads and the
//! cuts of the rest. The rest are heads, one after the other.
#![no_main]

use engines::cgi::{HeadParser, ProtocolError, StatusLine};
use engines::http::{BodyLength, ResponseHead};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&[limit, step], text)) = input.split_first_chunk::<2>() else {
        return;
    };
    let head_bytes = [64 << 10, 64, usize::from(limit) + 1][usize::from(limit % 3)];
    for line in [StatusLine::Taken, StatusLine::Skipped] {
        let whole = read(HeadParser::new(head_bytes, line), [text].into_iter());
        let step = usize::from(step % 61) + 1;
        let cut = read(HeadParser::new(head_bytes, line), text.chunks(step));
        assert_eq!(whole, cut, "{line:?} cut into pieces of {step}");
    }
});

/// The heads of a text, and their sizes.
type Heads = Result<Vec<(Box<ResponseHead>, u64)>, ProtocolError>;

fn read<'a>(mut parser: HeadParser, pieces: impl Iterator<Item = &'a [u8]>) -> Heads {
    let (mut held, mut heads) = (Vec::new(), Vec::new());
    assert!(parser.is_fresh());
    for piece in pieces {
        held.extend_from_slice(piece);
        loop {
            let (used, done) = parser.advance(&held)?;
            held.drain(..used);
            if !done {
                break;
            }
            let parsed = parser.take(Box::default())?;
            check(&parsed.head);
            assert!(parser.is_fresh() && parsed.size_bytes > 0);
            heads.push((parsed.head, parsed.size_bytes));
        }
    }
    Ok(heads)
}

fn check(head: &ResponseHead) {
    assert!((200..1000).contains(&head.status) || head.status == 101);
    assert_ne!(head.body, BodyLength::Unknown);
    let bad = |byte: &u8| matches!(byte, b'\r' | b'\n' | 0);
    assert!(!head.phrase().iter().any(bad));
    for field in &head.fields {
        let (name, value) = (head.bytes(field.name), head.bytes(field.value));
        assert!(!name.iter().chain(value).any(bad), "a line ends early");
    }
}
