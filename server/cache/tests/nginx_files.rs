//! Files that nginx 1.31.4 wrote: our responses in its format, under the names that it chose.
//!
//! They were made by a cache of nginx with `levels=1:2`, `levels=2:1:2` and `levels=1`, in front of a server with the
//! responses below. Absent: files that a running nginx reads, since tests need no nginx.

use server_cache::disk::{Header, Invalid, Notes, encode, framed_head, parse, parse_unknown};
use server_cache::key::{CacheKey, EntryId};
use server_cache::names::Levels;
use server_cache::vary::{Add, Selected, select, variant_id};

const OK: &[u8] = include_bytes!("data/ok");
const NOT_FOUND: &[u8] = include_bytes!("data/not_found");
const HTTP09: &[u8] = include_bytes!("data/http09");
const VARY_FIRST: &[u8] = include_bytes!("data/vary_first");
const VARY_SECOND: &[u8] = include_bytes!("data/vary_second");
const CHUNKED: &[u8] = include_bytes!("data/chunked");
const FASTCGI: &[u8] = include_bytes!("data/fastcgi");

fn key(text: &str) -> CacheKey {
    CacheKey::new(text.as_bytes()).expect("it is short")
}

fn id(name: &str) -> EntryId {
    EntryId::parse(name.as_bytes()).expect("a name")
}

/// Returns head and body of a file.
fn split<'a>(bytes: &'a [u8], text: &str) -> (Header<'a>, &'a str, &'a str) {
    let prefix = parse(bytes, bytes.len() as u64, &key(text)).expect("nginx wrote it");
    assert_eq!(parse_unknown(bytes, bytes.len() as u64), Ok(prefix));
    assert_eq!(
        (prefix.key, prefix.notes),
        (text.as_bytes(), Notes::default())
    );
    let body = &bytes[usize::from(prefix.header.body_start)..];
    assert_eq!(prefix.body_len, body.len() as u64);
    let head = std::str::from_utf8(prefix.head).unwrap_or("binary");
    (
        prefix.header,
        head,
        std::str::from_utf8(body).expect("text"),
    )
}

#[test]
fn a_response_with_validators_is_read() {
    let (header, head, body) = split(OK, "http://cache.test/a");
    assert_eq!(body, "hello\n");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\nServer: origin\r\n"));
    assert!(head.ends_with("stale-if-error=300\r\n\r\n"));
    assert_eq!((header.updating_s, header.error_s), (20, 300));
    assert_eq!(header.valid_s, header.date_s + 1000);
    assert_eq!(header.last_modified_s, 784_111_777);
    assert_eq!((header.etag, header.vary), (&b"\"v1\""[..], &b""[..]));
    assert_eq!(header.variant, EntryId::default());
}

#[test]
fn other_statuses_and_http_09_are_read() {
    let (header, head, body) = split(NOT_FOUND, "http://cache.test/404");
    assert!(head.starts_with("HTTP/1.1 404 Not Found\r\n"));
    assert_eq!((header.last_modified_s, body), (-1, "none\n"));
    let (header, head, body) = split(HTTP09, "http://cache.test/old");
    assert_eq!((head, body), ("", "plain old body\n"));
    assert_eq!(header.header_start, header.body_start);
    let (header, head, body) = split(CHUNKED, "/deep/x");
    assert!(head.contains("chunked"), "the head is stored as received");
    assert_eq!((header.valid_s, body), (4_102_444_555, "abc"));
}

#[test]
fn variants_have_the_names_that_nginx_chose() {
    let main = key("http://cache.test/vary");
    let first = [("accept-encoding", "gzip,  br"), ("x-class", "One")];
    let second = [("accept-encoding", "deflate")];
    let values = |fields: &[(&'static str, &'static str)]| {
        let fields = fields.to_vec();
        move |name: &[u8], add: &mut Add<'_>| {
            let named = fields.iter().filter(|(n, _)| n.as_bytes() == name);
            named.for_each(|(_, value)| add(value.as_bytes()));
        }
    };
    let (header, ..) = split(VARY_FIRST, "http://cache.test/vary");
    assert_eq!(main.id(), id("c2a8d8e73c76cde0a060027fcca2667c"));
    let other = id("a84761fec417451cbdc829869a623a4e");
    let at = |fields| select(&header, &main.id(), &main.id(), values(fields));
    assert_eq!(at(&first), Selected::This);
    assert_eq!(at(&second), Selected::Other(other));
    let (header, ..) = split(VARY_SECOND, "http://cache.test/vary");
    assert_eq!(header.vary, b"Accept-Encoding, X-Class");
    let found = select(&header, &main.id(), &other, values(&second));
    assert_eq!(found, Selected::This);
    assert_eq!(variant_id(&main.id(), header.vary, values(&second)), other);
}

#[test]
fn paths_are_those_of_nginx() {
    for (levels, text, path) in [
        (
            "1:2",
            "http://cache.test/404",
            "3/82/63ba7eeadbdc85271880e78e6b66c823",
        ),
        (
            "2:1:2",
            "/deep/x",
            "18/f/a1/3fc98e2897bdc012e8c3ad30cbca1f18",
        ),
        ("1", "/app/p", "9/b4ed1afac8d0506b661f7410a0d3a549"),
    ] {
        let levels = Levels::parse(levels.as_bytes()).expect("levels");
        let found = levels.path(b"", &key(text).id());
        assert_eq!(found.strip_prefix(b"/"), Some(path.as_bytes()));
    }
}

#[test]
fn a_head_of_fastcgi_is_found_in_its_records() {
    let (_, head, body) = split(FASTCGI, "/app/p");
    let head = framed_head::unframe(head.as_bytes()).expect("it is in records");
    let text = "Status: 200 OK\r\nContent-Type: text/html\r\nX-Long: abcd\r\n\r\n";
    assert_eq!(std::str::from_utf8(&head), Ok(text));
    assert_eq!(body, "page\n");
}

#[test]
fn each_file_is_encoded_to_its_own_bytes() {
    for (bytes, text) in [
        (OK, "http://cache.test/a"),
        (NOT_FOUND, "http://cache.test/404"),
        (HTTP09, "http://cache.test/old"),
        (VARY_FIRST, "http://cache.test/vary"),
        (VARY_SECOND, "http://cache.test/vary"),
        (CHUNKED, "/deep/x"),
        (FASTCGI, "/app/p"),
    ] {
        let key = key(text);
        let prefix = parse(bytes, bytes.len() as u64, &key).expect("nginx wrote it");
        let encoded = encode(&prefix.header, &key, prefix.head, None);
        let body_start = usize::from(prefix.header.body_start);
        assert_eq!(encoded.as_deref(), Ok(&bytes[..body_start]), "{text}");
    }
}

#[test]
fn a_file_that_was_cut_is_refused_at_each_length() {
    let key = key("http://cache.test/a");
    let whole = parse(OK, OK.len() as u64, &key).expect("nginx wrote it");
    let (start, end) = (key.header_start(), usize::from(whole.header.body_start));
    for len in 0..end {
        // The file itself was cut.
        let error = parse(&OK[..len], len as u64, &key);
        let expected = if len < start {
            Invalid::TooSmall
        } else {
            Invalid::HeadLength
        };
        assert_eq!(error, Err(expected), "{len}");
        // More of the file can be read.
        let needed = if len < 336 { 336 } else { end };
        let error = parse(&OK[..len], OK.len() as u64, &key);
        assert_eq!(error, Err(Invalid::Incomplete { needed }), "{len}");
    }
    assert!(parse(&OK[..end], OK.len() as u64, &key).is_ok());
}

#[test]
fn a_file_of_another_key_is_refused() {
    let len = OK.len() as u64;
    for text in ["http://cache.test/b", "http://cache.test/aa", ""] {
        assert_eq!(parse(OK, len, &key(text)), Err(Invalid::Key), "{text}");
    }
    for at in 336..OK.len() - 6 {
        let mut bytes = OK.to_vec();
        bytes[at] ^= 1;
        let is_key = at < key("http://cache.test/a").header_start();
        let found = parse(&bytes, len, &key("http://cache.test/a"));
        assert_eq!(found == Err(Invalid::Key), is_key, "{at}");
        assert_eq!(parse_unknown(&bytes, len).is_err(), is_key, "{at}");
    }
}
