//! The first bytes of a TLS connection: any cuts give the same result and the same remaining bytes for the handshake,
//! without duplicates or losses.
//!
//! The first byte chooses the cuts of the rest.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tls::{Conn, Parsed, Reader, parse};

fuzz_target!(|input: &[u8]| {
    let Some((&cut, bytes)) = input.split_first() else {
        return;
    };
    let cut = usize::from(cut) + 1;
    let whole = parse(bytes);
    let (found, left, read) = in_pieces(bytes, cut);
    assert_eq!(found, whole);
    // The remaining bytes parse to the same result. If the message ends inside a record, that record is split.
    assert!(left.len() <= bytes.len() + RECORD_HEAD_BYTES);
    assert_eq!(parse(&left), whole);
    if !matches!(whole, Parsed::More) {
        assert!(left.ends_with(&bytes[read..]));
    }
    if let Parsed::Hello(hello) = &whole {
        let name = hello.server_name.as_deref().unwrap_or_default();
        assert!(name.len() < bytes.len() && !name.iter().any(u8::is_ascii_uppercase));
    }
    assert_eq!(connect(bytes, cut), connect(bytes, bytes.len().max(1)));
});

/// Returns the result of parsing in pieces, the bytes left for the handshake, and the number of bytes read.
fn in_pieces(bytes: &[u8], cut: usize) -> (Parsed, Vec<u8>, usize) {
    let mut reader = Reader::default();
    let mut at = 0;
    for piece in bytes.chunks(cut) {
        let (found, rest) = reader.read(piece);
        assert!(rest.len() <= piece.len());
        at += piece.len() - rest.len();
        if found != Parsed::More {
            return (found, reader.unread(&bytes[at..]), at);
        }
        assert!(rest.is_empty());
    }
    (Parsed::More, reader.unread(b""), at)
}

/// Returns the result of a connection without a configuration.
fn connect(bytes: &[u8], cut: usize) -> (Option<String>, Option<Vec<u8>>, Vec<u8>) {
    let mut conn = Conn::new();
    let mut fault = None;
    for piece in bytes.chunks(cut) {
        let result = conn.receive(&mut piece.to_vec(), &mut |_| panic!("there are no keys"));
        if let Err(broken) = result {
            fault = Some(broken.to_string());
            break;
        }
        if conn.hello().is_some() {
            break;
        }
    }
    let asked = conn
        .hello()
        .map(|_| conn.asked().server_name.unwrap_or_default());
    (fault, asked, conn.take_output())
}

/// Overhead of another record.
const RECORD_HEAD_BYTES: usize = 5;
