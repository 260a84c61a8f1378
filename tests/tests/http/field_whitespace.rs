//! Optional white space around field values: SP and HTAB, on every path by which a field arrives or leaves.
//!
//! Sources: RFC 9110 sections 5.5 and 5.6.3, RFC 9112 section 5, RFC 9113 section 8.2.1.

use firstbyte_tests::backend::{Backend, Step, chunk, send};
use firstbyte_tests::client::request;
use firstbyte_tests::fastcgi;
use firstbyte_tests::{H2Client, Reply, Server, SpdyClient, peer};

/// Fields of a response with tabs around their values, in the form of CGI and of HTTP.
const PADDED: &str = "X-Own:\t \tv\tw \t\r\nContent-Type:\ttext/own\t\r\n";

fn echo() -> Server {
    Server::http(
        "server { listen 127.0.0.1:%%PORT%%; server_name a.example;
             location / { return 200 \"[$host][$http_x_own][$content_length]\"; } }",
    )
    .start()
}

#[test]
fn tabs_around_values_of_a_request_are_no_part_of_them() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = echo();
    for (lines, body, answer) in [
        ("Host:\ta.example\t", "", "[a.example][][]"),
        (
            "Host: a.example\r\nX-Own:\t \the\ty\t ",
            "",
            "[a.example][he\ty][]",
        ),
        ("Host: a.example\r\nX-Own:\t", "", "[a.example][][]"),
        (
            "Host: a.example\r\nContent-Length:\t3\t",
            "abc",
            "[a.example][][3]",
        ),
        (
            "Host: a.example\r\nTransfer-Encoding:\tchunked \t",
            "3\r\nabc\r\n0\r\nX-Sum:\t1\t\r\n\r\n",
            "[a.example][][]",
        ),
    ] {
        let mut client = server.client();
        client.send(format!("POST / HTTP/1.1\r\n{lines}\r\n\r\n{body}"));
        let first = client.response();
        assert_eq!(
            (first.status, first.text().as_str()),
            (200, answer),
            "{lines:?}"
        );
        // The body ended at the right byte.
        client.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
        assert_eq!(client.response().text(), "[a.example][][]", "{lines:?}");
    }
}

/// The upstream server must not read another framing field than this server.
#[test]
fn a_proxied_request_has_no_tabs_around_its_values() {
    if !peer::is_firstbyte() {
        return;
    }
    let backend = Backend::saying("HTTP/1.1 204 No Content\r\n\r\n");
    let server = backend.proxied("").start();
    let lines = ["X-Own:\tv\tw\t", "Transfer-Encoding:\tchunked\t"];
    let mut client = server.client();
    client.send(request("POST", "/", &lines) + "3\r\nabc\r\n0\r\n\r\n");
    assert_eq!(client.response().status, 204);
    let seen = backend.latest();
    assert_eq!(seen.header("X-Own"), Some("v\tw"), "{}", seen.head());
    assert_eq!(seen.body, b"abc");
    assert!(!seen.head().contains(":\t"), "{}", seen.head());
}

/// RFC 9112 section 6.1: bytes before a coding that are no white space stay refused.
#[test]
fn other_bytes_before_a_framing_field_are_refused() {
    let server = echo();
    for (line, status) in [
        ("Transfer-Encoding: \x0bchunked", [400, 400]),
        ("Transfer-Encoding: \x0cchunked", [400, 501]),
        ("Transfer-Encoding: \u{a0}chunked", [501, 501]),
        ("Transfer-Encoding:\t\u{a0}chunked", [501, 501]),
        ("Transfer-Encoding\t: chunked", [400, 400]),
        ("Content-Length: \x0b3", [400, 400]),
        ("Content-Length:\t\u{a0}3", [400, 400]),
    ] {
        let mut client = server.client();
        client.send(request("POST", "/", &[line]) + "abc");
        let answer = client.response();
        assert!(
            status.contains(&answer.status),
            "{line:?}: {}",
            answer.status
        );
        assert!(answer.announces_close(), "{line:?}");
    }
}

/// Checks the fields of [`PADDED`] over HTTP/1, HTTP/2 and SPDY.
#[track_caller]
fn arrives_without_tabs(server: &Server, path: &str) {
    let answer = server.get(path);
    assert_eq!(
        (answer.status, answer.text().as_str()),
        (200, "ok"),
        "{path}"
    );
    assert_eq!(answer.header("X-Own"), Some("v\tw"), "{path}: {answer:?}");
    assert_eq!(answer.header("Content-Type"), Some("text/own"), "{path}");
    let get = request("GET", path, &["Connection: close"]);
    let bytes = server.client().send(get).rest();
    let head = String::from_utf8_lossy(&bytes);
    let (_, fields) = head.split_once("\r\n").unwrap_or_default();
    assert!(fields.contains("X-Own: v\tw\r\n"), "{head:?}");
    assert!(
        !fields.contains(":\t") && !fields.contains("\t\r"),
        "{head:?}"
    );
    let over_http2 = H2Client::connect(server.port()).fetch(path);
    let over_spdy = SpdyClient::connect(server.port_number(2)).fetch(path);
    for reply in [over_http2, over_spdy] {
        assert_eq!((reply.status, reply.text().as_str()), (200, "ok"), "{path}");
        assert_eq!(reply.header("x-own"), Some("v\tw"), "{path}");
        assert_eq!(reply.header("content-type"), Some("text/own"), "{path}");
    }
}

/// A server for all three protocols.
fn site(inside: &str) -> Server {
    Server::http(&format!(
        "server {{ listen 127.0.0.1:%%PORT%%; listen 127.0.0.1:%%PORT2%% spdy; http2 on; default_type text/plain;
             proxy_http_version 1.1; {inside} }}"
    ))
    .start()
}

#[test]
fn tabs_around_values_of_a_response_are_no_part_of_them() {
    if !peer::is_firstbyte() {
        return;
    }
    let http = Backend::answering(|r| match r.target() {
        "/length" => vec![send(format!(
            "HTTP/1.1 200 OK\r\n{PADDED}Content-Length:\t2\t\r\n\r\nok"
        ))],
        "/chunked" => vec![
            send(format!(
                "HTTP/1.1 200 OK\r\n{PADDED}Transfer-Encoding:\tchunked\t\r\n\r\n"
            )),
            chunk("ok"),
            send("0\r\n\r\n"),
        ],
        _ => vec![
            send(format!(
                "HTTP/1.1 200 OK\r\n{PADDED}Connection:\tclose\t\r\n\r\nok"
            )),
            Step::Close,
        ],
    });
    let name = http.name();
    let server = site(&format!("location / {{ proxy_pass http://{name}; }}"));
    for path in ["/length", "/chunked", "/close"] {
        arrives_without_tabs(&server, path);
    }
}

#[test]
fn tabs_around_values_of_an_application_are_no_part_of_them() {
    if !peer::is_firstbyte() {
        return;
    }
    let cgi = format!("Status:\t200 OK\t\r\n{PADDED}Content-Length:\t2\t\r\n\r\nok");
    let records = cgi.clone();
    let fastcgi = Backend::scripted(move |_| {
        vec![
            fastcgi::request(),
            fastcgi::stdout(&records),
            fastcgi::end(),
            Step::Close,
        ]
    });
    let (for_scgi, for_uwsgi) = (cgi.clone(), cgi.replace("Status:\t", "HTTP/1.1 "));
    let scgi = Backend::scripted(move |_| {
        vec![
            Step::Until(b",".to_vec()),
            send(&for_scgi),
            Step::HalfClose,
            Step::Hold,
        ]
    });
    let uwsgi = Backend::scripted(move |_| {
        vec![Step::Read(4), send(&for_uwsgi), Step::HalfClose, Step::Hold]
    });
    let server = site(&format!(
        "location /fastcgi {{ fastcgi_pass {}; fastcgi_param A b; }}
         location /scgi {{ scgi_pass {}; scgi_param A b; }}
         location /uwsgi {{ uwsgi_pass {}; uwsgi_param A b; }}",
        fastcgi.name(),
        scgi.name(),
        uwsgi.name()
    ));
    for path in ["/fastcgi", "/scgi", "/uwsgi"] {
        arrives_without_tabs(&server, path);
    }
}

#[test]
fn tabs_around_values_of_trailers_are_no_part_of_them() {
    if !peer::is_firstbyte() {
        return;
    }
    let backend = Backend::answering(|_| {
        vec![
            send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
            chunk("ok"),
            send("0\r\nX-Sum:\t1\t2\t\r\n\r\n"),
        ]
    });
    let name = backend.name();
    let server = site(&format!(
        "location / {{ proxy_pass http://{name}; proxy_pass_trailers on; proxy_set_header TE trailers;
             proxy_set_header Connection te; }}"
    ));
    let reply = H2Client::connect(server.port()).fetch("/");
    assert_eq!(reply.trailers, [("x-sum".to_owned(), "1\t2".to_owned())]);
    let mut client = server.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: close, te\r\n\r\n");
    let rest = client.rest();
    let rest = String::from_utf8_lossy(&rest).to_ascii_lowercase();
    assert!(rest.contains("\r\nx-sum: 1\t2\r\n"), "{rest:?}");
}

/// Values of directives are free to begin and end with blanks. Over HTTP/2 and SPDY these would make a response malformed.
#[test]
fn values_of_directives_are_trimmed_over_http2_and_spdy() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = site(
        "add_header X-Pad \"  v\t\" always;
         location /own { default_type \" text/own \"; return 200 ok; }
         location /redirect { return 302 \"/target \"; }
         location /trailer { alias %%DIR%%/; default_type \"\ttext/own\"; try_files /file =404; add_trailer X-After \"\tt \"; }",
    );
    let check = |reply: &Reply, fields: &[(&str, &str)]| {
        for (name, value) in fields {
            assert_eq!(reply.header(name), Some(*value), "{reply:?}");
        }
        for (name, value) in reply.fields.iter().chain(&reply.trailers) {
            assert_eq!(value.trim_matches([' ', '\t']), value, "{name}");
        }
    };
    let own = [("x-pad", "v"), ("content-type", "text/own")];
    let mut http2 = H2Client::connect(server.port());
    let mut spdy = SpdyClient::connect(server.port_number(2));
    check(&http2.fetch("/own"), &own);
    check(&spdy.fetch("/own"), &own);
    let target = |port: u16| format!("http://localhost:{port}/target");
    let redirect = http2.fetch("/redirect");
    assert_eq!(redirect.status, 302);
    check(&redirect, &[("location", &target(server.port()))]);
    check(&spdy.fetch("/redirect"), &[("x-pad", "v")]);
    // Over HTTP/1 a receiver trims.
    assert_eq!(server.get("/own").header("X-Pad"), Some("v"));
}
