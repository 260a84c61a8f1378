//! A response in the place of another: nothing in it describes the content that is not sent.
//!
//! Sources: RFC 9110 sections 8.4, 8.8, 14.4, 14.6, 15.3.7 and 15.5.17; nginx's documentation of `error_page`, `gzip_static`,
//! `proxy_force_ranges`.

use firstbyte_tests::backend::{Backend, answer};
use firstbyte_tests::{H2Client, Response, Server, peer};

/// The content of each coded file; no test decodes it.
const CODED: &str = "0123456789";
/// Suffix and name of each coding.
const CODINGS: [(&str, &str); 3] = [("gz", "gzip"), ("br", "br"), ("zst", "zstd")];

/// Error pages of 416, as the rest of a location, with the status and the body of the response.
const PAGES: [(&str, u16, &str); 5] = [
    ("", 416, "<html>"),
    ("error_page 416 /page.html;", 416, "own page"),
    ("error_page 416 @named;", 416, "named"),
    ("error_page 416 =200 /text;", 200, "text"),
    ("error_page 416 = /text;", 200, "text"),
];

fn site(backend: &Backend) -> Server {
    let mut locations = String::new();
    for (n, (page, ..)) in PAGES.iter().enumerate() {
        locations += &format!(
            "location /static{n}/ {{ alias %%DIR%%/html/; {page} }}
             location /proxied{n}/ {{ proxy_pass http://{}/; proxy_force_ranges on; {page} }}
             location /added{n}/ {{ alias %%DIR%%/plain/; add_header Content-Encoding gzip; {page} }}",
            backend.name()
        );
    }
    let mut server = Server::http(&format!(
        "types {{ text/html html; text/plain txt; }} default_type text/own;
         server {{ listen 127.0.0.1:%%PORT%%; http2 on; root %%DIR%%/html;
             gzip_static on; brotli_static on; zstd_static on; {locations}
             location = /page.html {{ alias %%DIR%%/plain/page.html; etag off; gzip_static off; brotli_static off; zstd_static off; }}
             location = /text {{ return 200 text; }}
             location @named {{ return 200 named; }} }}"
    ));
    for (suffix, _) in CODINGS {
        server = server.bytes(&format!("html/{suffix}.txt.{suffix}"), CODED.as_bytes());
        server = server.bytes(&format!("html/{suffix}.txt"), b"plain text");
    }
    server
        .bytes("plain/gz.txt", CODED.as_bytes())
        .bytes("plain/page.html", b"own page")
        .start()
}

fn behind() -> Backend {
    Backend::answering(|_| {
        let lines = [
            "Content-Encoding: gzip",
            "Content-Type: text/plain; charset=koi8-r",
            "ETag: \"e\"",
            "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT",
        ];
        answer("200 OK", &lines, CODED)
    })
}

fn ask(server: &Server, path: &str, coding: &str, more: &[&str]) -> Response {
    let accept = format!("Accept-Encoding: {coding}");
    let lines = [&[accept.as_str()], more].concat();
    server.client().get_with(path, &lines)
}

/// All places of a coded content, with their coding, and the page of 416 there.
fn places() -> impl Iterator<
    Item = (
        String,
        &'static str,
        &'static (&'static str, u16, &'static str),
    ),
> {
    PAGES.iter().enumerate().flat_map(|(n, page)| {
        let files = CODINGS.map(|(suffix, coding)| (format!("/static{n}/{suffix}.txt"), coding));
        let others = ["proxied", "added"].map(|kind| (format!("/{kind}{n}/gz.txt"), "gzip"));
        files
            .into_iter()
            .chain(others)
            .map(move |(path, coding)| (path, coding, page))
    })
}

#[test]
fn a_416_does_not_describe_the_coded_content() {
    if !peer::is_firstbyte() {
        return;
    }
    let backend = behind();
    let server = site(&backend);
    for (path, coding, (page, status, body)) in places() {
        let whole = ask(&server, &path, coding, &[]);
        assert_eq!(
            (whole.status, whole.text().as_str()),
            (200, CODED),
            "{path}"
        );
        assert_eq!(whole.header("Content-Encoding"), Some(coding), "{path}");
        assert!(whole.header("ETag").is_some(), "{path}");
        let refused = ask(&server, &path, coding, &["Range: bytes=10-"]);
        assert_eq!(refused.status, *status, "{path}: {page}");
        assert!(refused.text().starts_with(body), "{path}: {refused:?}");
        for absent in ["Content-Encoding", "ETag", "Last-Modified", "Accept-Ranges"] {
            let is_own = *body == "own page" && absent == "Accept-Ranges";
            assert!(
                refused.header(absent).is_none() || is_own,
                "{path}: {page} {refused:?}"
            );
        }
        let range = (*status == 416).then_some("bytes */10");
        assert_eq!(refused.header("Content-Range"), range, "{path}: {page}");
        let length = refused.body.len().to_string();
        assert_eq!(
            refused.header("Content-Length"),
            Some(length.as_str()),
            "{path}: {page}"
        );
        let kind = match *body {
            "text" => "text/own",
            // Its URI is still that of the file.
            "named" => "text/plain",
            _ => "text/html",
        };
        assert_eq!(refused.header("Content-Type"), Some(kind), "{path}: {page}");
    }
}

#[test]
fn a_416_over_http2_does_not_describe_the_coded_content() {
    let backend = behind();
    let server = site(&backend);
    let mut client = H2Client::connect(server.port());
    for (path, coding, (_, status, _)) in places() {
        let more = [("accept-encoding", coding), ("range", "bytes=10-")];
        let stream = client.request("GET", &path, &more, true);
        let refused = client.reply(stream);
        assert_eq!(refused.status, *status, "{path}");
        if peer::is_firstbyte() {
            assert_eq!(refused.header("content-encoding"), None, "{path}");
            assert_eq!(refused.header("etag"), None, "{path}");
        }
    }
}

/// The coding is that of the bytes in each part. One range is a piece of the coded bytes.
#[test]
fn parts_of_a_coded_content_have_its_coding() {
    if !peer::is_firstbyte() {
        return;
    }
    let backend = behind();
    let server = site(&backend);
    for (suffix, coding) in CODINGS {
        let path = format!("/static0/{suffix}.txt");
        let one = ask(&server, &path, coding, &["Range: bytes=2-4"]);
        assert_eq!((one.status, one.text().as_str()), (206, "234"), "{path}");
        assert_eq!(one.header("Content-Encoding"), Some(coding), "{path}");
        assert_eq!(one.header("Content-Type"), Some("text/plain"), "{path}");
        let two = ask(&server, &path, coding, &["Range: bytes=2-4,9-"]);
        assert_eq!(
            (two.status, two.header("Content-Encoding")),
            (206, None),
            "{path}"
        );
        let kind = two.header("Content-Type").unwrap_or_default();
        let boundary = kind.strip_prefix("multipart/byteranges; boundary=");
        let boundary = boundary.expect("a boundary");
        let part = |range: &str, bytes: &str| {
            format!(
                "\r\n--{boundary}\r\nContent-Encoding: {coding}\r\nContent-Type: text/plain\r\n\
                 Content-Range: bytes {range}/10\r\n\r\n{bytes}"
            )
        };
        let expected = part("2-4", "234") + &part("9-9", "9") + &format!("\r\n--{boundary}--\r\n");
        assert_eq!(two.text(), expected, "{path}");
        let length = expected.len().to_string();
        assert_eq!(
            two.header("Content-Length"),
            Some(length.as_str()),
            "{path}"
        );
        assert!(
            two.header("ETag").is_some() && two.header("Last-Modified").is_some(),
            "{path}"
        );
        assert_eq!(two.header("Content-Range"), None, "{path}");
    }
}

#[test]
fn answers_to_conditions_have_no_coding() {
    let backend = behind();
    let server = site(&backend);
    for (suffix, coding) in CODINGS {
        let path = format!("/static0/{suffix}.txt");
        let etag = ask(&server, &path, coding, &[]);
        let etag = etag.header("ETag").expect("an ETag").to_owned();
        let same = ask(&server, &path, coding, &[&format!("If-None-Match: {etag}")]);
        assert_eq!((same.status, same.body.len()), (304, 0), "{path}");
        assert_eq!(same.header("ETag"), Some(etag.as_str()), "{path}");
        let failed = ask(&server, &path, coding, &["If-Match: \"other\""]);
        assert_eq!(
            (failed.status, failed.header("ETag")),
            (412, None),
            "{path}"
        );
        assert_eq!(failed.header("Content-Type"), Some("text/html"), "{path}");
        for answer in [same, failed] {
            assert_eq!(answer.header("Content-Encoding"), None, "{path}");
        }
    }
}
