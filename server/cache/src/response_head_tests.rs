//! Stored heads: forms that nginx accepts and refuses, and heads that are encoded and parsed again.

use engines::http::Fields;

use super::HeadFormat::{Cgi, Fcgi, Http};
use super::*;

/// Returns status, phrase and fields of a head.
fn shown(head: &ResponseHead) -> String {
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut shown = format!("{} {}", head.status, lossy(head.phrase()));
    for field in &head.fields {
        let (name, value) = (head.bytes(field.name), head.bytes(field.value));
        assert_eq!(field.id, FieldId::of(name));
        shown += &format!("|{}={}", lossy(name), lossy(value));
    }
    shown
}

fn parsed(text: &str, format: HeadFormat) -> Option<String> {
    let framed = frame(text.as_bytes());
    let bytes = match format {
        Fcgi => &framed[..],
        Http | Cgi => text.as_bytes(),
    };
    parse(bytes, format).as_ref().map(shown)
}

#[track_caller]
fn assert_parsed(cases: &[(&str, &str)], formats: &[HeadFormat]) {
    for format in formats {
        for (text, expected) in cases {
            let found = parsed(text, *format);
            assert_eq!(found.as_deref(), Some(*expected), "{format:?} {text:?}");
        }
    }
}

#[track_caller]
fn assert_refused(cases: &[&str], formats: &[HeadFormat]) {
    for format in formats {
        for text in cases {
            assert_eq!(parsed(text, *format), None, "{format:?} {text:?}");
        }
    }
}

/// RFC 9112 section 4; further forms are those of nginx's parser.
#[test]
fn status_lines_are_read_as_in_nginx() {
    assert_parsed(
        &[
            ("HTTP/1.1 200 OK\r\n\r\n", "200 OK"),
            ("HTTP/1.1 404 Nothing here\n\n", "404 Nothing here"),
            ("HTTP/1.0 200\r\n\r\n", "200 "),
            ("HTTP/1.1 200\n\r\n", "200 "),
            ("HTTP/1.1 200 \r\n\r\n", "200 "),
            ("HTTP/1.1   302 Found\r\n\n", "302 Found"),
            ("HTTP/2.0 999 x\u{e4}\r\n\r\n", "999 x\u{e4}"),
            ("HTTP/100.123 200 a\r\n\r\n", "200 a"),
            ("HTTP/1.1 403.7 IIS\r\n\r\n", "403 Forbidden"),
            (
                "HTTP/1.1 200 OK\r\nHTTP/1.1 404 x\r\nA: b\r\n\r\n",
                "200 OK|A=b",
            ),
        ],
        &[Http, Cgi],
    );
}

#[test]
fn an_empty_head_is_a_response_of_http_09() {
    assert_parsed(&[("", "200 OK")], &[Http]);
    assert_refused(&[""], &[Cgi, Fcgi]);
    assert_eq!(parse(b"", Fcgi), None);
}

#[test]
fn invalid_and_interim_status_lines_are_refused() {
    assert_refused(
        &[
            "HTTP/1.1 20 x\r\n\r\n",
            "HTTP/1.1 2000 x\r\n\r\n",
            "HTTP/1.1 099 x\r\n\r\n",
            "HTTP/1.1 2x0 x\r\n\r\n",
            "HTTP/1.1\r\n\r\n",
            "HTTP/1 200 x\r\n\r\n",
            "HTTP/.1 200 x\r\n\r\n",
            "HTTP/0.9 200 x\r\n\r\n",
            "HTTP/1. 200 x\r\n\r\n",
            "HTTP/1.1234 200 x\r\n\r\n",
            "HTTP/1.1 200 a\rb\r\n\r\n",
            "HTTP/1.1 200 a\r\r\n\r\n",
            "http/1.1 200 OK\r\n\r\n",
            "A: b\r\n\r\n",
            "\r\n",
            "\n",
        ],
        &[Http],
    );
    let interim = ["HTTP/1.1 100 x\r\n\r\n", "HTTP/1.1 199 x\r\n\r\n"];
    assert_refused(&interim, &[Http, Cgi]);
}

#[test]
fn fields_are_read_as_in_nginx() {
    for (fields, expected) in [
        ("\r\n", ""),
        ("\n", ""),
        ("A:b\r\nC:   d e  \r\n\r\n", "|A=b|C=d e"),
        ("A: \t b\t\r\n\r\n", "|A=b"),
        ("A:\r\nB: \r\nC: \t\n\r\n", "|A=|B=|C="),
        ("a-b: x:y\nSet-Cookie: c=d\n\n", "|a-b=x:y|Set-Cookie=c=d"),
        ("A: \u{e4}\r\n\r\n", "|A=\u{e4}"),
        ("A: b\r\r\nC\r\r\r\n\r\n", "|A=b|C="),
        ("no-colon\r\nA: b\r\n\r\n", "|no-colon=|A=b"),
        ("A: a\tb\u{1}c\r\n\r\n", "|A=a\tb\u{1}c"),
        ("_a: b\r\nx_y: z\r\n\r\n", "|_a=b|x_y=z"),
    ] {
        let text = format!("HTTP/1.1 200 OK\r\n{fields}");
        let expected = format!("200 OK{expected}");
        assert_parsed(&[(text.as_str(), expected.as_str())], &[Http, Cgi, Fcgi]);
    }
}

/// `push` leaves out such fields, too, so none of them reaches a client.
#[test]
fn a_line_with_an_odd_name_is_left_out() {
    assert_parsed(
        &[
            ("HTTP/1.1 200 OK\r\nX(Y): z\r\nA: b\r\n\r\n", "200 OK|A=b"),
            ("HTTP/1.1 200 OK\r\n\u{e4}: z\r\n\r\n", "200 OK"),
            ("HTTP/1.1 200 OK\r\n</a>\r\n\r\n", "200 OK"),
        ],
        &[Http, Cgi, Fcgi],
    );
}

/// RFC 9112 sections 2.2, 5.1 and 5.2.
#[test]
fn damaged_lines_are_refused() {
    for fields in [
        "A: b\r\n folded\r\n\r\n",
        "A: b\r\n\tfolded\r\n\r\n",
        " A: b\r\n\r\n",
        ": b\r\n\r\n",
        "A : b\r\n\r\n",
        "A b: c\r\n\r\n",
        "A\u{7f}: b\r\n\r\n",
        "A\u{1}: b\r\n\r\n",
        "A: b\rc\r\n\r\n",
        "A\rb: c\r\n\r\n",
        "A: b\0\r\n\r\n",
        "A\0: b\r\n\r\n",
        "\0",
        "HTTP/1.1 200\0\r\n\r\n",
        "\r\r\n",
        "A: b\r\n\r",
        "A: b\r\n",
        "A: b",
        "",
        "\r\n\r\n",
        "\r\nbody",
        "A: b\r\n\r\nrequest-ms: 1\n",
    ] {
        let text = format!("HTTP/1.1 200 OK\r\n{fields}");
        assert_refused(&[text.as_str()], &[Http, Cgi, Fcgi]);
    }
}

/// RFC 9112 section 6.3: nginx accepts none of the refused heads from a server.
#[test]
fn framing_fields_are_verified() {
    let body = |fields: &str, format| {
        let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        parse(text.as_bytes(), format).map(|head| head.body)
    };
    let (length, chunked) = ("Content-Length: 5\r\n", "transfer-encoding: Chunked\r\n");
    assert_eq!(body("", Http), Some(BodyLength::None));
    assert_eq!(body(length, Http), Some(BodyLength::Length(5)));
    assert_eq!(body(chunked, Http), Some(BodyLength::Unknown));
    assert_eq!(body(length, Cgi), Some(BodyLength::Length(5)));
    assert_eq!(body(chunked, Cgi), None);
    for refused in [
        "Content-Length: 5\r\ncontent-length: 5\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: \r\n",
        "Content-Length: 5, 5\r\n",
    ] {
        assert_eq!(body(refused, Http), None, "{refused}");
    }
}

/// RFC 3875 section 6.3.3; without a status, nginx's defaults.
#[test]
fn heads_of_cgi_have_their_status_in_a_field() {
    assert_parsed(
        &[
            ("A: b\r\n\r\n", "200 OK|A=b"),
            ("\r\n", "200 OK"),
            ("Location: /x\n\n", "302 Moved Temporarily|Location=/x"),
            (
                "Location: /x\r\nstatus: 201 Made\r\n\r\n",
                "201 Made|Location=/x|status=201 Made",
            ),
            ("Status:404\r\n\r\n", "404 Not Found|Status=404"),
            ("Status: 404 \r\n\r\n", "404 Not Found|Status=404"),
            ("Status: 500 a b\r\n\r\n", "500 a b|Status=500 a b"),
            (
                "Status: 201\r\nStatus: 404\r\n\r\n",
                "201 Created|Status=201|Status=404",
            ),
        ],
        &[Cgi, Fcgi],
    );
    let refused = [
        "Status: \r\n\r\n",
        "Status: 20\r\n\r\n",
        "Status: 2000\r\n\r\n",
        "Status: x\r\n\r\n",
        "Status: 099\r\n\r\n",
        "Status: 100 Continue\r\n\r\n",
        "Status: 199\r\n\r\n",
    ];
    assert_refused(&refused, &[Cgi, Fcgi]);
    // A status line overrides the field, except in FastCGI. In a head of HTTP the field has no meaning.
    let both = [(
        "HTTP/1.1 404 x\r\nStatus: 201 y\r\n\r\n",
        "404 x|Status=201 y",
    )];
    assert_parsed(&both, &[Http, Cgi]);
    assert_eq!(
        parsed(both[0].0, Fcgi).as_deref(),
        Some("201 y|Status=201 y")
    );
    let odd = [("HTTP/1.1 40x\r\nA: b\r\n\r\n", "200 OK|A=b")];
    assert_parsed(&odd, &[Cgi, Fcgi]);
}

#[test]
fn a_head_of_fastcgi_is_parsed_within_its_records() {
    let record = |kind: u8, content: &[u8]| {
        let len = (content.len() as u16).to_be_bytes();
        let head = [1, kind, 0, 1, len[0], len[1], 3, 0];
        [&head[..], content, &[0; 3]].concat()
    };
    let records = [
        record(7, b"warning\n\n"),
        record(6, b"Status: 40"),
        record(6, b"4 x\r\nA: b\r\n\r\nbo"),
    ];
    let mut stored = records.concat();
    // The body begins within the last record.
    stored.truncate(stored.len() - 2 - 3);
    assert_eq!(
        parse(&stored, Fcgi).as_ref().map(shown).as_deref(),
        Some("404 x|Status=404 x|A=b")
    );
    assert_eq!(parse(b"Status: 200 OK\r\n\r\n", Fcgi), None);
}

fn encoded(status: u16, phrase: &str, fields: &[(&str, &str)], format: HeadFormat) -> String {
    let mut head = ResponseHead {
        status,
        ..ResponseHead::default()
    };
    if !phrase.is_empty() {
        head.set_phrase(status, phrase.as_bytes());
    }
    let mut list = Fields::default();
    for (name, value) in fields {
        list.push(name.as_bytes(), value.as_bytes());
    }
    let bytes = encode(&head, FieldList::from(&list), format);
    String::from_utf8(bytes).expect("it is text")
}

#[test]
fn heads_are_encoded_in_their_format() {
    let fields = [("A", "b"), ("status", "404"), ("Date", "")];
    assert_eq!(
        encoded(200, "", &fields, Http),
        "HTTP/1.1 200 OK\r\nA: b\r\nstatus: 404\r\nDate: \r\n\r\n"
    );
    let cgi = "HTTP/1.1 299 Own\r\nA: b\r\nDate: \r\n\r\n";
    assert_eq!(encoded(299, "Own", &fields, Cgi), cgi);
    let fcgi = "Status: 299 Own\r\nA: b\r\nDate: \r\n\r\n";
    let framed = encoded(299, "Own", &fields, Fcgi);
    assert_eq!(framed.as_bytes(), frame(fcgi.as_bytes()));
    assert_eq!(encoded(418, "", &[], Http), "HTTP/1.1 418 \r\n\r\n");
}

/// Fields of a response never begin a line of their own.
#[test]
fn encoded_heads_have_no_lines_from_names_and_values() {
    let fields = [
        ("A", "1\r\nSet-Cookie: x\0"),
        ("a b", "2"),
        ("", "3"),
        ("C\r\nD", "4"),
        ("HTTP/1.1 404", "5"),
    ];
    let text = "HTTP/1.1 200 OK\r\nA: 1%0D%0ASet-Cookie: x%00\r\n\r\n";
    assert_eq!(encoded(200, "", &fields, Http), text);
    let mut head = ResponseHead {
        status: 200,
        arena: b"a\r\nB: c".to_vec(),
        ..ResponseHead::default()
    };
    (head.phrase_status, head.phrase_text) = (200, Span::new(0, 7));
    let bytes = encode(&head, FieldList::from(&Fields::default()), Http);
    assert_eq!(bytes, b"HTTP/1.1 200 OK\r\n\r\n");
}

fn random_text(rng: &mut fastrand::Rng, bytes: &[u8], max: usize) -> Vec<u8> {
    let len = rng.usize(..=max);
    (0..len).map(|_| bytes[rng.usize(..bytes.len())]).collect()
}

/// Returns a head with random status, phrase and fields.
fn random_head(rng: &mut fastrand::Rng) -> ResponseHead {
    let mut head = ResponseHead {
        status: rng.u16(200..1000),
        ..ResponseHead::default()
    };
    let phrase = random_text(rng, b"aZ1 \xe4.", 8).trim_ascii().to_vec();
    if !phrase.is_empty() {
        head.set_phrase(head.status, &phrase);
    }
    let known = [&b"Date"[..], b"ETag", b"Vary", b"Set-Cookie", b"Age"];
    for _ in 0..rng.usize(..12) {
        let name = match rng.bool() {
            true => known[rng.usize(..known.len())].to_vec(),
            false => [&b"x"[..], &random_text(rng, b"aB9-_!~", 12)[..]].concat(),
        };
        let value = random_text(rng, b"ab \t:;,=\"\xff\x01", 30);
        head.push(&name, trim_ows(&value));
    }
    head
}

#[test]
fn an_encoded_head_is_parsed_to_the_same_head() {
    let rng = &mut fastrand::Rng::with_seed(1);
    for _ in 0..300 {
        let head = random_head(rng);
        for format in [Http, Cgi, Fcgi] {
            let bytes = encode(&head, FieldList::from(&head), format);
            let mut found = parse(&bytes, format).expect("it was encoded");
            if format == Fcgi {
                let status = found.fields.remove(0);
                assert!(is_status(found.bytes(status.name)));
            }
            assert_eq!(shown(&found), shown(&head), "{format:?}");
            for len in 0..bytes.len() {
                let is_old = len == 0 && format == Http;
                assert_eq!(
                    parse(&bytes[..len], format).is_some(),
                    is_old,
                    "cut at {len}"
                );
            }
        }
    }
}

/// An accepted head is encoded to one with the same meaning.
#[test]
fn a_damaged_head_is_refused_or_has_lines_of_text() {
    let rng = &mut fastrand::Rng::with_seed(2);
    for _ in 0..20_000 {
        let format = [Http, Cgi, Fcgi][rng.usize(..3)];
        let head = random_head(rng);
        let mut bytes = encode(&head, FieldList::from(&head), format);
        for _ in 0..=rng.usize(..3) {
            let at = rng.usize(..bytes.len());
            match rng.u8(..3) {
                0 => bytes[at] = rng.u8(..),
                1 => bytes.insert(at, b"\r\n\0 :\t"[rng.usize(..6)]),
                _ => drop(bytes.drain(at..)),
            }
            if bytes.is_empty() {
                break;
            }
        }
        let Some(found) = parse(&bytes, format) else {
            continue;
        };
        assert!((200..1000).contains(&found.status));
        assert!(!found.phrase().iter().any(ends_text));
        for field in &found.fields {
            let (name, value) = (found.bytes(field.name), found.bytes(field.value));
            assert!(is_token(name) && !value.iter().any(ends_text));
        }
        let again = encode(&found, FieldList::from(&found), format);
        let again = parse(&again, format).expect("it was encoded");
        assert_eq!((again.status, again.body), (found.status, found.body));
    }
}
