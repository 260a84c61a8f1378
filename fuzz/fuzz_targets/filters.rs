//! Body stages on bodies in pieces: `gunzip`, `sub_filter`, and the parser of `ssi` commands.
//!
//! The same bytes, whole and cut, have the same output, or both fail. A single output stays below its limit.
#![no_main]

use engines::http::Chunk;
use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "the server alone calls the rest")]
#[path = "../../server/modules/src/compress/inflate.rs"]
mod inflate;
#[allow(dead_code, reason = "the server alone calls the rest")]
#[path = "../../server/modules/src/sub_filter/replace.rs"]
mod replace;
#[allow(dead_code, reason = "the server alone calls the rest")]
#[path = "../../server/modules/src/sub_filter/search.rs"]
mod search;
#[allow(dead_code, reason = "the server alone calls the rest")]
#[path = "../../server/modules/src/ssi/parse.rs"]
mod ssi;

use inflate::Inflate;
use replace::{Pair, Replace};

fuzz_target!(|input: &[u8]| {
    let Some((&[kind, cut], rest)) = input.split_first_chunk::<2>() else {
        return;
    };
    let cut = usize::from(cut).max(1);
    if kind & 0x80 != 0 {
        let pieces: Vec<&[u8]> = rest.chunks(cut).collect();
        assert_eq!(found(&pieces), found(&[rest]));
    } else if kind & 1 == 0 {
        let pieces: Vec<&[u8]> = rest.chunks(cut).collect();
        assert_eq!(inflated(&pieces), inflated(&[rest]));
        // A valid body is decompressed to itself.
        let packed = gzipped(rest);
        let pieces: Vec<&[u8]> = packed.chunks(cut).collect();
        assert_eq!(inflated(&pieces).as_deref(), Ok(rest));
    } else {
        let mut words = rest.splitn(6, |byte| *byte == b'\n');
        let mut strings = Vec::new();
        for _ in 0..kind >> 1 & 3 {
            let (Some(string), Some(replacement)) = (words.next(), words.next()) else {
                return;
            };
            if !string.is_empty() {
                strings.push((string.to_ascii_lowercase(), replacement.to_vec()));
            }
        }
        if strings.is_empty() {
            return;
        }
        let text: Vec<u8> = words.collect::<Vec<_>>().join(&b'\n');
        let once = kind & 8 == 0;
        let expected = plainly(&strings, once, &text);
        let pieces: Vec<&[u8]> = text.chunks(cut).collect();
        assert_eq!(replaced(&strings, once, &pieces), expected);
        assert_eq!(replaced(&strings, once, &[&text]), expected);
    }
});

/// Decompresses pieces of a gzip body.
fn inflated(pieces: &[&[u8]]) -> Result<Vec<u8>, &'static str> {
    let mut inflate = Inflate::new(STEP_BYTES);
    let mut made = Vec::new();
    for piece in pieces {
        inflate.take(Chunk::Owned(piece.to_vec()));
        while let Some(bytes) = inflate.next()? {
            assert!(
                bytes.len() as u64 <= STEP_BYTES,
                "{} bytes at a time",
                bytes.len()
            );
            made.extend(bytes);
        }
    }
    inflate.end().map(|()| made)
}

/// Returns the text of pieces, with the commands in it.
fn found(pieces: &[&[u8]]) -> Vec<u8> {
    let mut parser = ssi::Parser::new(VALUE_BYTES);
    let mut made = Vec::new();
    for piece in pieces {
        let mut rest = *piece;
        while !rest.is_empty() {
            let (taken, event) = parser.next(rest);
            assert!(taken > 0 || event.is_some(), "it goes on");
            rest = &rest[taken..];
            match event {
                Some(ssi::Event::Text(text)) => made.extend_from_slice(text),
                Some(event) => made.extend(format!("{event:?}").bytes()),
                None => {}
            }
        }
    }
    made.extend_from_slice(parser.end());
    made
}

/// Replaces strings in pieces.
fn replaced(strings: &[(Vec<u8>, Vec<u8>)], once: bool, pieces: &[&[u8]]) -> Vec<u8> {
    let pairs = strings.iter().cloned();
    let mut replace = Replace::new(pairs.map(|(s, r)| Pair::new(s, r)).collect(), once);
    let mut made = Vec::new();
    for piece in pieces {
        let passed = replace.take(Chunk::Owned(piece.to_vec()));
        made.extend(passed.iter().flat_map(|chunk| chunk.bytes()));
        while let Some(bytes) = replace.next() {
            made.extend(bytes);
        }
    }
    replace.finish();
    while let Some(bytes) = replace.next() {
        made.extend(bytes);
    }
    made
}

/// A simple reference implementation of replacing.
fn plainly(strings: &[(Vec<u8>, Vec<u8>)], once: bool, text: &[u8]) -> Vec<u8> {
    let mut live = vec![true; strings.len()];
    let (mut made, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let here = |string: &[u8]| {
            let end = at + string.len();
            text.get(at..end)
                .is_some_and(|part| part.eq_ignore_ascii_case(string))
        };
        match (0..strings.len()).find(|n| live[*n] && here(&strings[*n].0)) {
            Some(n) => {
                made.extend_from_slice(&strings[n].1);
                at += strings[n].0.len();
                live[n] = !once;
            }
            None => {
                made.push(text[at]);
                at += 1;
            }
        }
    }
    made
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::Compress::new_gzip(flate2::Compression::new(2), 15);
    let mut packed = Vec::with_capacity(bytes.len() + 1024);
    let status = encoder.compress_vec(bytes, &mut packed, flate2::FlushCompress::Finish);
    assert!(matches!(status, Ok(flate2::Status::StreamEnd)));
    packed
}

/// Maximum length of a value of an SSI command.
const VALUE_BYTES: usize = 16;
/// Minimum size of `gunzip_buffers`, bytes.
const STEP_BYTES: u64 = 512;
