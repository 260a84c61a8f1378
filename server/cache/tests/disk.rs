//! Encoded files are parsed to equal values, whatever they contain.
//!
//! Absent: files of nginx, which are in `nginx_files.rs`.

use fastrand::Rng;
use server_cache::directory::FileIdentity;
use server_cache::disk::{
    EncodeError, Header, Invalid, Notes, Prefix, VARY_BYTES_MAX, body_length_at, encode, parse,
    parse_unknown,
};
use server_cache::key::{CacheKey, EntryId, KEY_BYTES_MAX};
use server_cache::response_head::{self, HeadFormat};
use server_cache::rfc9111::ResponseFacts;
use server_cache::stored_head::{Damage, StoredHead};
use server_cache::tags::Tags;

fn text(rng: &mut Rng, max: usize) -> Vec<u8> {
    let len = rng.usize(..=max);
    (0..len).map(|_| rng.u8(..)).collect()
}

fn maybe<T>(rng: &mut Rng, value: T) -> Option<T> {
    rng.bool().then_some(value)
}

/// Encodes one random file, and parses it.
fn round_trip(rng: &mut Rng) {
    let key = CacheKey::new(text(rng, 300)).expect("it is short");
    let (etag, vary) = (text(rng, 128), text(rng, VARY_BYTES_MAX));
    let header = Header {
        valid_s: rng.i64(..),
        updating_s: rng.i64(..),
        error_s: rng.i64(..),
        last_modified_s: rng.i64(..),
        date_s: rng.i64(..),
        valid_ms: rng.u16(..),
        etag: &etag,
        vary: &vary,
        variant: if vary.is_empty() {
            EntryId::default()
        } else {
            EntryId(rng.u128(..).to_le_bytes())
        },
        ..Header::default()
    };
    let mut tags = Tags::default();
    for _ in 0..rng.usize(..6) {
        let tag: String = (0..rng.usize(1..20)).map(|_| rng.alphanumeric()).collect();
        tags.add_surrogate_key(tag.as_bytes())
            .expect("they are few");
    }
    let body_len = rng.u64(..1 << 40);
    let notes = Notes {
        request_ms: maybe(rng, rng.clone().i64(..)),
        response_ms: maybe(rng, rng.clone().i64(..)),
        age_s: maybe(rng, rng.clone().u32(..)),
        tags: tags.text(),
        body_len: maybe(rng, body_len),
    };
    let mut head = match rng.bool() {
        true => [&text(rng, 400)[..], b"\r\n\r\n"].concat(),
        false => format!("HTTP/1.1 20{} X\r\nA: b\r\n\r\n", rng.u8(..10)).into_bytes(),
    };
    // A head that begins with 0 is a frame of HTTP/2.
    head[0] = head[0].max(1);
    let has_notes = rng.bool();
    let bytes = encode(&header, &key, &head, has_notes.then_some(&notes)).expect("it is short");
    let file_len = bytes.len() as u64 + body_len;
    let prefix = parse(&bytes, file_len, &key).expect("it was encoded");
    assert_eq!(parse_unknown(&bytes, file_len), Ok(prefix));
    assert_eq!((prefix.key, prefix.head), (key.text(), &head[..]));
    assert_eq!(prefix.body_len, body_len);
    assert_eq!(
        prefix.notes,
        if has_notes { notes } else { Notes::default() }
    );
    let positions = (prefix.header.header_start, prefix.header.body_start);
    assert_eq!(usize::from(positions.0), key.header_start());
    assert_eq!(usize::from(positions.1), bytes.len());
    let expected = Header {
        crc32: key.crc32(),
        header_start: positions.0,
        body_start: positions.1,
        ..header
    };
    assert_eq!(prefix.header, expected);
    keeps_all(&bytes, file_len, &key, &prefix);
    // No byte of a damaged file may panic.
    let mut damaged = bytes.clone();
    damaged[rng.usize(..bytes.len())] = rng.u8(..);
    let _ = parse(&damaged, file_len, &key);
    let _ = parse_unknown(&damaged[..rng.usize(..bytes.len())], file_len);
}

/// A stored head has all parts of the prefix that it was parsed from.
fn keeps_all(bytes: &[u8], file_len: u64, key: &CacheKey, prefix: &Prefix<'_>) {
    let identity = FileIdentity {
        uniq: 7,
        len: file_len,
    };
    let parsed = StoredHead::parse(bytes, identity, key, HeadFormat::Http);
    let Some(head) = response_head::parse(prefix.head, HeadFormat::Http) else {
        return assert_eq!(parsed.err(), Some(Damage::Head));
    };
    let stored = parsed.expect("its head is no other");
    assert_eq!(
        (stored.header(), stored.notes()),
        (prefix.header, prefix.notes)
    );
    assert_eq!(stored.tags(), prefix.notes.tags);
    assert_eq!(stored.body_start(), u64::from(prefix.header.body_start));
    assert_eq!(
        (stored.body_len(), stored.identity()),
        (prefix.body_len, identity)
    );
    assert_eq!(stored.head().arena, head.arena);
    assert!(stored.is_of(key, HeadFormat::Http) && !stored.is_of(key, HeadFormat::Cgi));
    let other = CacheKey::new([key.text(), b"x"].concat()).expect("it is short");
    assert!(!stored.is_of(&other, HeadFormat::Http));
}

#[test]
fn what_is_encoded_is_parsed() {
    let mut rng = Rng::with_seed(20_261_130);
    for _ in 0..4000 {
        round_trip(&mut rng);
    }
}

#[test]
fn the_begin_of_a_file_has_16_bits() {
    let key = CacheKey::new(*b"k").expect("it is short");
    let overhead = key.header_start();
    for (len, is_stored) in [(65534, true), (65535, true), (65536, false)] {
        let head = vec![b'\n'; len - overhead];
        let found = encode(&Header::default(), &key, &head, None);
        let expected = is_stored.then_some(len).ok_or(EncodeError::HeadTooLong);
        assert_eq!(found.map(|bytes| bytes.len()), expected);
    }
    let longest = CacheKey::new(vec![b'k'; KEY_BYTES_MAX]).expect("it is the limit");
    let bytes = encode(&Header::default(), &longest, b"", None).expect("it fits");
    assert!(parse(&bytes, 65535, &longest).is_ok());
    let longer = encode(&Header::default(), &longest, b"\n", None);
    assert_eq!(longer, Err(EncodeError::HeadTooLong));
}

#[test]
fn a_body_has_its_noted_length() {
    let key = CacheKey::new(*b"k").expect("it is short");
    let notes = Notes::default();
    let mut bytes = encode(&Header::default(), &key, b"A: b\r\n\r\n", Some(&notes)).expect("short");
    let start = bytes.len() as u64;
    assert!(parse(&bytes, start + 9, &key).is_ok(), "it is not known");
    let at = body_length_at(start as u16) as usize;
    bytes[at..at + 8].copy_from_slice(&9_u64.to_le_bytes());
    for (len, error) in [
        (8, Some(Invalid::BodyLength)),
        (9, None),
        (10, Some(Invalid::BodyLength)),
    ] {
        assert_eq!(parse(&bytes, start + len, &key).err(), error, "{len}");
    }
}

#[test]
fn positions_out_of_bounds_are_refused() {
    let key = CacheKey::new(*b"k").expect("it is short");
    let bytes = encode(&Header::default(), &key, b"A: b\r\n\r\n", None).expect("short");
    let len = bytes.len() as u64;
    let with = |at: usize, value: u16| {
        let mut bytes = bytes.clone();
        bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
        let known = parse(&bytes, len, &key).map(|_| ());
        (known, parse_unknown(&bytes, len).map(|_| ()))
    };
    for header_start in [0, 335, 342, 343, 345, 65535] {
        let (known, unknown) = with(54, header_start);
        assert_eq!(known, Err(Invalid::Key));
        assert!(unknown.is_err());
    }
    for (body_start, error) in [
        (0, Invalid::BodyStart),
        (343, Invalid::BodyStart),
        (bytes.len() as u16 + 1, Invalid::HeadLength),
        (65535, Invalid::HeadLength),
    ] {
        assert_eq!(with(56, body_start), (Err(error), Err(error)));
    }
}

#[test]
fn a_head_in_frames_of_http_2_is_refused() {
    let key = CacheKey::new(*b"k").expect("it is short");
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let headers = [&[0, 0x40, 0, 1, 4, 0, 0, 0, 1][..], &[0x88; 0x4000]].concat();
    for frames in [&settings[..], &headers] {
        let bytes = encode(&Header::default(), &key, frames, None).expect("it is short");
        let len = bytes.len() as u64;
        assert_eq!(parse(&bytes, len, &key), Err(Invalid::Frames));
        assert_eq!(parse_unknown(&bytes, len), Err(Invalid::Frames));
    }
}

#[test]
fn facts_are_kept_for_the_first_settings() {
    let key = CacheKey::new(*b"k").expect("it is short");
    let bytes = encode(&Header::default(), &key, b"HTTP/1.1 200 OK\r\n\r\n", None);
    let bytes = bytes.expect("it is short");
    let identity = FileIdentity {
        uniq: 0,
        len: bytes.len() as u64,
    };
    let stored = StoredHead::parse(&bytes, identity, &key, HeadFormat::Http).expect("it is whole");
    let status = |settings, status| {
        let make = |_: &_| ResponseFacts {
            status,
            ..ResponseFacts::default()
        };
        stored.with_facts(settings, make, |facts| facts.status)
    };
    assert_eq!((status(1, 201), status(1, 202)), (201, 201));
    assert_eq!((status(2, 203), status(1, 204)), (203, 201));
}
