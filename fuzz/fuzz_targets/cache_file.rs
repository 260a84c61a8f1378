//! Files of a cache: any bytes are refused or parsed, and parsed ones are encoded to the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use server_cache::disk::{Invalid, Prefix, encode, framed_head, parse, parse_unknown};
use server_cache::key::CacheKey;
use server_cache::tags;
use server_cache::vary::select;

/// Position of the checksum.
const CRC32: usize = 48;

fuzz_target!(|input: &[u8]| {
    check(input);
    // Few inputs have the right checksum.
    if let Some(Ok(key)) = key_of(input).map(CacheKey::new) {
        let mut repaired = input.to_vec();
        repaired[CRC32..CRC32 + 4].copy_from_slice(&key.crc32().to_le_bytes());
        check(&repaired);
    }
    let _ = framed_head::unframe(input);
});

/// Returns the bytes at the position of a key.
fn key_of(input: &[u8]) -> Option<&[u8]> {
    let start = usize::from(u16::from_le_bytes([*input.get(54)?, *input.get(55)?]));
    input.get(342..start.checked_sub(1)?)
}

fn check(input: &[u8]) {
    let len = input.len() as u64;
    let found = parse_unknown(input, len);
    assert!(!matches!(found, Err(Invalid::Incomplete { needed }) if needed <= input.len()));
    let Ok(prefix) = found else {
        return;
    };
    let end = usize::from(prefix.header.body_start);
    let key = CacheKey::new(prefix.key).expect("its end has 16 bits");
    assert_eq!(parse(input, len, &key), Ok(prefix));
    assert_eq!(parse_unknown(&input[..end], len), Ok(prefix));
    let less = parse_unknown(&input[..end - 1], len);
    assert!(matches!(less, Err(Invalid::Incomplete { needed }) if needed == end));
    let main = key.id();
    let _ = select(&prefix.header, &main, &main, |name, add| add(name));
    assert!(tags::iter(prefix.notes.tags).count() <= input.len());
    encode_again(&prefix, &key, len);
}

/// Numbers of notes may have been written in another way, so bytes of a whole file are compared only without them.
fn encode_again(prefix: &Prefix<'_>, key: &CacheKey, len: u64) {
    let has_notes = prefix.head.len() + usize::from(prefix.header.header_start)
        < usize::from(prefix.header.body_start);
    let notes = has_notes.then_some(&prefix.notes);
    let Ok(bytes) = encode(&prefix.header, key, prefix.head, notes) else {
        return;
    };
    let file_len = len - u64::from(prefix.header.body_start) + bytes.len() as u64;
    let again = parse(&bytes, file_len, key).expect("it was encoded");
    let body_start = again.header.body_start;
    assert_eq!(again.notes, prefix.notes);
    assert_eq!((again.key, again.head), (prefix.key, prefix.head));
    assert_eq!(again.body_len, prefix.body_len);
    let mut header = prefix.header;
    header.body_start = body_start;
    if header.vary.is_empty() {
        header.variant = again.header.variant;
    }
    assert_eq!(again.header, header);
}
