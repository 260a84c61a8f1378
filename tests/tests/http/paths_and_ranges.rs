//! Paths that try to leave the root, text that tries to become header lines, and byte ranges.
//!
//! Sources: RFC 3986 section 5.2.4 (dot segments), RFC 9110 section 14 (ranges), nginx's answers.

use firstbyte_tests::cases::{Case, Since, check};
use firstbyte_tests::{Response, Server, peer};

const HTTP: &str = "
    types { text/plain txt; }
    server {
        listen 127.0.0.1:%%PORT%%;
        root %%DIR%%/html;
        location /files { alias %%DIR%%/files/; }
        location ~ ^/re(.*)$ { alias %%DIR%%/files/$1; }
        location /go/ { return 302 http://localhost$uri; }
        location /add/ { add_header X-Path $uri; return 200 ok; }
        location /rewrite/ { rewrite ^ http://localhost$uri? redirect; }
        location /capture/ { rewrite ^/capture/(.*)$ http://localhost/$1 redirect; }
        location /limited/ { alias %%DIR%%/html/; max_ranges 2; }
        location /none/ { alias %%DIR%%/html/; max_ranges 0; }
    }";

fn server() -> Server {
    Server::http(HTTP)
        .file("html/ten.txt", "0123456789")
        .file("html/index.html", "welcome")
        .file("html/a b.txt", "spaced")
        .file("html/dir/in.txt", "inside")
        .file("files/f.txt", "file")
        .file("secret.txt", "secret")
        .start()
}

fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

#[test]
fn leaving_the_root_is_400() {
    let targets = [
        "/../../etc/passwd",
        "/..",
        "/../",
        "/%2e%2e/secret.txt",
        "/%2e%2e/",
        "/..%2f",
        "/..%2fsecret.txt",
        "/%2E%2E%2Fsecret.txt",
        "/.%2e/secret.txt",
        "/dir/../../secret.txt",
        "/dir/%2e%2e/%2e%2e/secret.txt",
        "/./../secret.txt",
        "//../../secret.txt",
        "/files/../../secret.txt",
    ];
    let cases: Vec<Case> = targets
        .iter()
        .map(|target| Case::new(*target, get(target), &[400]))
        .collect();
    check(&server(), &cases);
}

#[test]
fn dot_segments_inside_the_root_are_resolved() {
    let server = server();
    let mut client = server.client();
    for (target, body) in [
        ("/dir/../ten.txt", "0123456789"),
        ("/dir/%2e%2e/ten.txt", "0123456789"),
        ("/./ten.txt", "0123456789"),
        ("/dir/./in.txt", "inside"),
        ("//ten.txt", "0123456789"),
        ("/dir//in.txt", "inside"),
        ("/x/y/../../ten.txt", "0123456789"),
        ("/%74en.txt", "0123456789"),
        ("/a%20b.txt", "spaced"),
        ("/ten.txt#fragment", "0123456789"),
        ("/ten.txt?../..", "0123456789"),
    ] {
        let answer = client.get(target);
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (200, body),
            "{target}"
        );
    }
    assert_eq!(client.get("/dir/..%00").status, 400);
}

#[test]
fn names_that_only_look_like_dot_segments_are_names() {
    let server = server();
    let mut client = server.client();
    for target in [
        "/...",
        "/..ten.txt",
        "/dir/..x",
        "/.x",
        "/ten.txt.",
        "/x..",
        "/..%5c..%5csecret.txt",
    ] {
        assert_eq!(client.get(target).status, 404, "{target}");
    }
}

#[test]
fn alias_without_its_slash_does_not_open_the_parent() {
    let server = server();
    let mut client = server.client();
    assert_eq!(
        client.get("/files/f.txt").text(),
        "file",
        "the location itself works"
    );
    if peer::is_firstbyte() {
        for target in [
            "/files../secret.txt",
            "/files..%2fsecret.txt",
            "/re../secret.txt",
            "/re/../secret.txt",
        ] {
            let answer = client.get(target);
            assert!(
                matches!(answer.status, 403 | 404),
                "{target}: {}",
                answer.status
            );
            assert!(!answer.text().contains("secret"), "{target}");
        }
    }
}

/// A response may be an error or have a cleaned value, but the text of the path must not become a field of its own.
fn assert_not_split(answer: &Response, target: &str) {
    assert!(
        answer.header("Injected").is_none(),
        "{target}: {:?}",
        answer.headers
    );
    assert!(
        !answer.text().contains("Injected"),
        "{target}: the head ended early"
    );
}

#[test]
fn line_ends_in_a_path_never_become_header_lines() {
    let server = server();
    let places: &[&str] = if peer::is_firstbyte() {
        &["go", "add", "rewrite", "capture"]
    } else {
        &["capture"]
    };
    for place in places {
        for attack in [
            "%0d%0aInjected:%20yes",
            "%0aInjected:%20yes",
            "%0d%0a%0d%0aInjected",
            "a%0dInjected:%20yes",
        ] {
            let target = format!("/{place}/{attack}");
            let mut client = server.client();
            let answer = client.send(get(&target)).response();
            assert_not_split(&answer, &target);
        }
    }
}

fn range(server: &Server, value: &str) -> Response {
    server
        .client()
        .get_with("/ten.txt", &[&format!("Range: {value}")])
}

#[test]
fn single_ranges_are_served() {
    let server = server();
    for (value, body, content_range) in [
        ("bytes=0-0", "0", "bytes 0-0/10"),
        ("bytes=0-4", "01234", "bytes 0-4/10"),
        ("bytes=5-", "56789", "bytes 5-9/10"),
        ("bytes=-3", "789", "bytes 7-9/10"),
        ("bytes=9-9", "9", "bytes 9-9/10"),
        ("bytes=8-100", "89", "bytes 8-9/10"),
        ("bytes=0-9223372036854775807", "0123456789", "bytes 0-9/10"),
        ("bytes= 1-2", "12", "bytes 1-2/10"),
        ("BYTES=1-2", "12", "bytes 1-2/10"),
        ("bytes=20-30,1-2", "12", "bytes 1-2/10"),
    ] {
        let answer = range(&server, value);
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (206, body),
            "{value}"
        );
        assert_eq!(
            answer.header("Content-Range"),
            Some(content_range),
            "{value}"
        );
        assert_eq!(
            answer.header("Content-Length"),
            Some(body.len().to_string().as_str()),
            "{value}"
        );
        assert_eq!(answer.header("Content-Type"), Some("text/plain"), "{value}");
    }
}

/// RFC 9110 section 5.6.1.2.
#[test]
fn empty_elements_of_a_list_of_ranges_are_ignored() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = server();
    for value in [
        "bytes=1-2,",
        "bytes=,1-2",
        "bytes=,\t,1-2 , ,",
        "bytes=1-2,20-30,",
    ] {
        let answer = range(&server, value);
        let text = answer.text();
        assert_eq!((answer.status, text.as_str()), (206, "12"), "{value:?}");
        let part = answer.header("Content-Range");
        assert_eq!(part, Some("bytes 1-2/10"), "{value:?}");
    }
    for value in ["bytes=,", "bytes=,10-", "bytes=,x", "bytes=1-2,;"] {
        assert_eq!(range(&server, value).status, 416, "{value:?}");
    }
}

#[test]
fn ranges_that_make_no_sense_are_ignored_or_416() {
    let server = server();
    for value in ["lines=0-1", "bytes", "bytes 0-1", "bytes=", ""] {
        let answer = range(&server, value);
        assert_eq!((answer.status, answer.body.len()), (200, 10), "{value}");
        assert_eq!(answer.header("Accept-Ranges"), Some("bytes"), "{value}");
    }
    for value in [
        "bytes=10-",
        "bytes=10-20",
        "bytes=-0",
        "bytes=a-b",
        "bytes=1",
        "bytes=--1",
        "bytes=1-2x",
    ] {
        let answer = range(&server, value);
        assert_eq!(answer.status, 416, "{value}");
        assert_eq!(
            answer.header("Content-Range"),
            Some("bytes */10"),
            "{value}"
        );
    }
}

#[test]
fn numbers_past_the_end_of_an_integer_do_not_overflow() {
    let server = server();
    for value in [
        "bytes=0-18446744073709551616",
        "bytes=0-9223372036854775808",
        "bytes=18446744073709551616-",
    ] {
        assert_eq!(range(&server, value).status, 416, "{value}");
    }
    for value in [
        "bytes=-9223372036854775608",
        "bytes=-9223372036854775807",
        "bytes=-11",
        "bytes=-10",
    ] {
        let answer = range(&server, value);
        assert_eq!(answer.text(), "0123456789", "{value}: the whole file");
        assert!(matches!(answer.status, 200 | 206), "{value}");
    }
    for value in [
        "bytes=-18446744073709551616",
        "bytes=0-1,-9223372036854775808",
    ] {
        assert_eq!(range(&server, value).status, 416, "{value}");
    }
}

#[test]
fn a_thousand_overlapping_ranges_get_the_file_once() {
    let server = server();
    let value = format!("bytes={}", vec!["0-"; 1000].join(","));
    let answer = range(&server, &value);
    assert_eq!((answer.status, answer.text().as_str()), (200, "0123456789"));
    let answer = range(&server, "bytes=0-9,0-9");
    assert_eq!(
        (answer.status, answer.text().as_str()),
        (200, "0123456789"),
        "more than the file in sum"
    );
}

#[test]
fn several_ranges_come_as_multipart() {
    let server = server();
    let answer = range(&server, "bytes=0-1, 3-4 ,-1");
    assert_eq!(answer.status, 206);
    let kind = answer.header("Content-Type").unwrap_or_default();
    let boundary = kind
        .strip_prefix("multipart/byteranges; boundary=")
        .unwrap_or_else(|| panic!("{kind:?}"));
    let part = |range: &str, body: &str| {
        format!(
            "\r\n--{boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes {range}/10\r\n\r\n{body}"
        )
    };
    let wanted = part("0-1", "01")
        + &part("3-4", "34")
        + &part("9-9", "9")
        + &format!("\r\n--{boundary}--\r\n");
    assert_eq!(answer.text(), wanted);
    assert_eq!(
        answer.header("Content-Length"),
        Some(wanted.len().to_string().as_str())
    );
    assert_eq!(answer.header("Content-Range"), None);
}

#[test]
fn max_ranges_bounds_how_many_are_served() {
    let server = server();
    let mut client = server.client();
    let status = |client: &mut firstbyte_tests::Client, path: &str, value: &str| {
        client
            .get_with(path, &[&format!("Range: bytes={value}")])
            .status
    };
    assert_eq!(status(&mut client, "/limited/ten.txt", "0-0,2-2"), 206);
    assert_eq!(status(&mut client, "/limited/ten.txt", "0-0,2-2,4-4"), 200);
    assert_eq!(status(&mut client, "/none/ten.txt", "0-0"), 200);
    assert_eq!(client.get("/none/ten.txt").header("Accept-Ranges"), None);
}

#[test]
fn range_of_a_head_request_tells_the_length() {
    let server = server();
    let mut client = server.client();
    let text = "HEAD /ten.txt HTTP/1.1\r\nHost: localhost\r\nRange: bytes=2-3\r\n\r\n";
    let answer = client.send(text).response_to_head();
    assert_eq!(
        (answer.status, answer.header("Content-Length")),
        (206, Some("2"))
    );
    assert_eq!(
        client.get("/ten.txt").text(),
        "0123456789",
        "nothing followed the head"
    );
}

#[test]
fn a_range_of_an_empty_file_is_ignored() {
    let server = Server::http("server { listen 127.0.0.1:%%PORT%%; root %%DIR%%/html; }")
        .file("html/empty", "")
        .start();
    let answer = server.client().get_with("/empty", &["Range: bytes=0-0"]);
    assert_eq!(
        answer.status, 200,
        "there is nothing a range could be part of"
    );
    let answer = server.client().get_with("/empty", &["Range: bytes=1-1"]);
    assert_eq!(answer.status, 416);
    let answer = server.client().get("/empty");
    assert_eq!(
        (answer.status, answer.header("Content-Length")),
        (200, Some("0"))
    );
}

#[test]
fn merge_slashes_off_keeps_them() {
    let server = Server::http(
        "merge_slashes off;
         server { listen 127.0.0.1:%%PORT%%; location / { return 200 $uri; } location //two { return 200 two; } }",
    )
    .start();
    let mut client = server.client();
    assert_eq!(client.get("/a//b").text(), "/a//b");
    assert_eq!(client.get("//two").text(), "two");
}

#[test]
fn a_target_of_many_segments_is_answered_quickly() {
    let server = server();
    let deep = "/a/..".repeat(1500);
    check(
        &server,
        &[Case::new("one too far", get(&format!("{deep}/../x")), &[400]).since(Since::Always)],
    );
    assert_eq!(server.get(&format!("{deep}/ten.txt")).text(), "0123456789");
}
