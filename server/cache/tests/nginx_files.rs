//! Files that nginx 1.31.4 wrote: our responses in its format, under the names that it chose.
//!
//! They were made by a cache of nginx with `levels=1:2`, `levels=2:1:2` and `levels=1`, in front of a server with the
//! responses below. Absent: files that a running nginx reads, since tests need no nginx.

use engines::http::Fields;
use server_cache::disk::{
    HEADER_BYTES, Header, Invalid, Notes, Prefix, encode, framed_head, parse, parse_unknown,
};
use server_cache::key::{CacheKey, EntryId};
use server_cache::names::Levels;
use server_cache::rfc9111::{
    DELTA_SECONDS_MAX, FieldList, IgnoredFields, RequestDirectives, ResponseFacts, Stored,
    may_serve_on_error, may_serve_while_updating,
};
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

/// Returns the begin of a file, and the facts of its response head.
fn read<'a>(bytes: &'a [u8], text: &str) -> (Prefix<'a>, ResponseFacts) {
    let prefix = parse(bytes, bytes.len() as u64, &key(text)).expect("it is a file");
    let mut fields = Fields::default();
    for line in std::str::from_utf8(prefix.head).expect("text").lines() {
        if let Some((name, value)) = line.split_once(": ") {
            fields.push(name.as_bytes(), value.as_bytes());
        }
    }
    let (list, ignored) = (FieldList::from(&fields), IgnoredFields::default());
    let facts = ResponseFacts::of(200, list, prefix.header.date_s, &[], ignored);
    (prefix, facts)
}

/// The file has `max-age=1000, stale-while-revalidate=20, stale-if-error=300`.
#[test]
fn a_file_of_nginx_is_fresh_and_stale_at_its_times() {
    let (prefix, facts) = read(OK, "http://cache.test/a");
    let (stored, date_s) = (
        Stored::of_file(&prefix.header, &prefix.notes, &facts),
        prefix.header.date_s,
    );
    let request = RequestDirectives::default();
    for (age_s, fresh, updating, error) in [
        (0, true, true, true),
        (999, true, true, true),
        (1000, false, true, true),
        (1020, false, true, true),
        (1021, false, false, true),
        (1300, false, false, true),
        (1301, false, false, false),
    ] {
        let now_s = date_s + age_s;
        assert_eq!(i64::from(stored.age_s(now_s)), age_s);
        assert_eq!(stored.is_fresh(now_s), fresh, "{age_s}");
        let found = may_serve_while_updating(&stored, false, now_s);
        assert_eq!(found, updating, "{age_s}");
        let found = may_serve_on_error(&request, &stored, false, now_s);
        assert_eq!(found, error, "{age_s}");
    }
    assert_eq!(stored.header(&prefix.header), prefix.header);
    let aged = ResponseFacts {
        age_s: Some(40),
        ..facts
    };
    let stored = Stored::of_file(&prefix.header, &prefix.notes, &aged);
    assert_eq!((stored.age_s(date_s + 2), stored.ttl_s(date_s)), (42, 1000));
}

/// `X-Accel-Expires`, `proxy_cache_valid` and a 304 change the times of the binary head alone.
#[test]
fn times_of_the_binary_head_override_the_response_head() {
    let (mut prefix, facts) = read(OK, "http://cache.test/a");
    let date_s = prefix.header.date_s;
    for (valid_s, updating_s, error_s) in [
        (date_s + 50, 5, 0),
        (date_s - 7, 0, 9),
        (date_s + 5000, 0, 0),
        (i64::MAX, i64::from(DELTA_SECONDS_MAX), 1),
        (i64::MIN, 1, 1),
    ] {
        let header = &mut prefix.header;
        (header.valid_s, header.updating_s, header.error_s) = (valid_s, updating_s, error_s);
        let stored = Stored::of_file(&prefix.header, &prefix.notes, &facts);
        assert_eq!(stored.ttl_s(date_s), valid_s.saturating_sub(date_s));
        assert_eq!(
            (stored.updating_s(), stored.error_s()),
            (updating_s, error_s)
        );
    }
    let (prefix, facts) = read(CHUNKED, "/deep/x");
    let stored = Stored::of_file(&prefix.header, &prefix.notes, &facts);
    let end_s = 4_102_444_555;
    assert!(stored.is_fresh(end_s - 1) && !stored.is_fresh(end_s));
}

#[test]
fn impossible_times_break_nothing() {
    let (file, facts) = read(OK, "http://cache.test/a");
    let now_s = file.header.date_s;
    let times = [i64::MIN, -1, 0, now_s, now_s + 1, i64::MAX];
    let notes = times.map(Some).into_iter().chain([None]);
    for response_ms in notes {
        for (valid_s, date_s) in times
            .iter()
            .flat_map(|one| times.map(|other| (*one, other)))
        {
            for stale_s in times {
                let mut prefix = file;
                prefix.notes.response_ms = response_ms;
                prefix.header.valid_s = valid_s;
                prefix.header.date_s = date_s;
                (prefix.header.updating_s, prefix.header.error_s) = (stale_s, stale_s);
                let stored = Stored::of_file(&prefix.header, &prefix.notes, &facts);
                assert!(!(stored.is_fresh(now_s) && valid_s <= now_s));
                let is_served = may_serve_while_updating(&stored, false, now_s);
                assert!(!is_served || stale_s > 0 || valid_s > now_s);
                assert!(stored.age_s(now_s) <= DELTA_SECONDS_MAX);
                let again = stored.header(&prefix.header);
                assert!(again.updating_s >= 0 && again.error_s >= 0);
                assert_eq!(again.valid_s, valid_s);
            }
        }
    }
}

/// RFC 9111 section 4.3.4: times, among them the age, are those of the 304.
#[test]
fn a_304_changes_only_the_times_of_the_binary_head() {
    let (text, (old, facts)) = ("http://cache.test/a", read(OK, "http://cache.test/a"));
    let first = Stored::received(&facts.directives, 1000, 10, 5000);
    let notes = Notes {
        request_ms: Some(4_999_300),
        response_ms: Some(5_000_400),
        age_s: Some(9),
        ..Notes::default()
    };
    let header = first.header(&old.header);
    let encoded = encode(&header, &key(text), old.head, Some(&notes));
    let mut bytes = encoded.expect("it is short");
    let (prefix, facts) = read(&bytes, text);
    let stored = Stored::of_file(&prefix.header, &prefix.notes, &facts);
    assert_eq!((stored.age_s(5000), stored.ttl_s(5000)), (10, 990));
    assert_eq!((stored.age_s(4000), stored.ttl_s(4000)), (10, 990));

    let mut directives = facts.directives.clone();
    directives.stale_while_revalidate_s = Some(7);
    directives.stale_if_error_s = None;
    // The age of the 304 may be greater than the time since the first response.
    for (age_s, now_s) in [(0, 7000), (30, 7000), (3000, 7000), (10, 5000)] {
        let (prefix, _) = read(&bytes, text);
        let validated = Stored::received(&directives, 4000, age_s, now_s);
        let newer = validated.header(&prefix.header);
        assert!(prefix.header.may_update(&newer));
        let (response_ms, head) = (prefix.notes.response_ms, prefix.head.to_vec());
        let binary = newer.encode().expect("the values of Vary fit");
        bytes[..HEADER_BYTES].copy_from_slice(&binary);

        let (prefix, facts) = read(&bytes, text);
        assert_eq!(
            (prefix.notes.response_ms, prefix.head),
            (response_ms, &head[..])
        );
        let stored = Stored::of_file(&prefix.header, &prefix.notes, &facts);
        assert_eq!(stored.age_s(now_s + 5), age_s + 5);
        assert_eq!(stored.fresh_until_s, now_s + 4000 - i64::from(age_s));
        assert_eq!(stored.ttl_s(now_s), 4000 - i64::from(age_s));
        assert_eq!((stored.updating_s(), stored.error_s()), (7, 0));
    }
}
