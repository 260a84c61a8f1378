//! Request bodies without an announced length that are whole before they are passed on: servers get their length.
//!
//! An application of FastCGI reads `CONTENT_LENGTH` bytes, so without it a body is lost. Sources: RFC 3875 section 4.1.2; nginx
//! documentation, `fastcgi_request_buffering`, `proxy_request_buffering`.

use firstbyte_tests::backend::{Backend, Step, ok};
use firstbyte_tests::client::request;
use firstbyte_tests::h2::{self, DATA, END_HEADERS, END_STREAM, HEADERS};
use firstbyte_tests::{Client, H2Client, Server, fastcgi, hpack, peer, wait_until};

/// A FastCGI application, and a server that passes bodies on as they come.
fn application() -> (Backend, Server) {
    let backend = Backend::scripted(|_| {
        let answer = fastcgi::stdout("Content-Type: a/b\r\n\r\nhello");
        let end_of_input = fastcgi::record(fastcgi::STDIN, fastcgi::ID, "");
        vec![
            Step::Keep(end_of_input),
            answer,
            fastcgi::end(),
            Step::Close,
        ]
    });
    let server = Server::http(&format!(
        "auth_request off;
         server {{ listen 127.0.0.1:%%PORT%%; http2 on; fastcgi_request_buffering off;
             fastcgi_param CONTENT_LENGTH $content_length;
             location / {{ fastcgi_pass {0}; }}
             location /checked {{ auth_request /check; fastcgi_pass {0}; }}
             location = /check {{ return 204; }} }}",
        backend.name()
    ))
    .start();
    (backend, server)
}

/// Asserts that an application got this parameter and this body.
#[track_caller]
fn got(backend: &Backend, length: &str, body: &str) {
    let kept = backend.kept();
    let param = [
        &[14, length.len() as u8][..],
        b"CONTENT_LENGTH",
        length.as_bytes(),
    ]
    .concat();
    let contains = |part: &[u8]| kept.windows(part.len()).any(|window| window == part);
    let shown = String::from_utf8_lossy(&kept);
    assert!(contains(&param), "CONTENT_LENGTH={length}: {shown:?}");
    if !body.is_empty() {
        let record = fastcgi::record(fastcgi::STDIN, fastcgi::ID, body);
        assert!(contains(&record[8..]), "{body}: {shown:?}");
    }
}

const CHUNKED: &[&str] = &["Transfer-Encoding: chunked"];

#[test]
fn an_application_gets_the_length_of_a_chunked_body_that_came_with_its_head() {
    for (path, chunks, length, body) in [
        ("/", "5\r\nhello\r\n0\r\n\r\n", "5", "hello"),
        ("/", "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", "5", "hello"),
        ("/", "0\r\n\r\n", "0", ""),
        ("/checked", "5\r\nhello\r\n0\r\n\r\n", "5", "hello"),
    ] {
        let (backend, server) = application();
        let mut client = Client::connect(server.port());
        client.send(request("PUT", path, CHUNKED) + chunks);
        assert_eq!(client.response().text(), "hello");
        got(&backend, length, body);
        server.stop();
    }
}

#[test]
fn without_the_rest_of_a_body_no_length_is_announced() {
    let (backend, server) = application();
    let mut client = Client::connect(server.port());
    client.send(request("PUT", "/", CHUNKED) + "5\r\nhello\r\n");
    wait_until("the request is passed on", || backend.accepted() == 1);
    client.send("0\r\n\r\n");
    assert_eq!(client.response().text(), "hello");
    got(&backend, "", "hello");
    server.stop();
}

/// nginx passes the request on before it reads the frame after the head.
#[test]
fn an_application_gets_the_length_of_a_body_of_http2() {
    if !peer::is_firstbyte() {
        return;
    }
    for (body, frames, length) in [("hello", 1, "5"), ("hello", 2, "5"), ("", 1, "0")] {
        let (backend, server) = application();
        let mut client = H2Client::connect(server.port());
        let stream = client.take_stream();
        let fields = h2::request_fields("PUT", "/");
        let mut bytes = h2::frame(HEADERS, END_HEADERS, stream, &hpack::write(&fields));
        if frames == 2 {
            bytes.extend(h2::frame(DATA, 0, stream, body.as_bytes()));
            bytes.extend(h2::frame(DATA, END_STREAM, stream, b""));
        } else {
            bytes.extend(h2::frame(DATA, END_STREAM, stream, body.as_bytes()));
        }
        client.send(bytes);
        assert_eq!(client.reply(stream).text(), "hello");
        got(&backend, length, body);
        server.stop();
    }
}

#[test]
fn a_server_gets_the_length_of_a_chunked_body_that_came_with_its_head() {
    for version in ["1.0", "1.1"] {
        let backend = Backend::answering(|_| ok("done"));
        let directives = format!("proxy_request_buffering off; proxy_http_version {version};");
        let server = backend.proxied(&directives).start();
        let mut client = Client::connect(server.port());
        client.send(request("PUT", "/", CHUNKED) + "5\r\nhello\r\n0\r\n\r\n");
        assert_eq!(client.response().text(), "done");
        let got = backend.latest();
        let framing = (
            got.header("Content-Length"),
            got.header("Transfer-Encoding"),
        );
        assert_eq!(framing, (Some("5"), None), "{version}");
        assert_eq!(got.body, b"hello", "{version}");
        server.stop();
    }
}

/// The header of a request that expects an interim response is passed on too.
#[test]
fn a_request_without_a_body_gets_the_interim_response_it_expects() {
    let expects = request("GET", "/", &["Expect: 100-continue"]);
    let continues = b"HTTP/1.1 100 Continue\r\n\r\n";
    let (_backend, server) = application();
    let mut client = Client::connect(server.port());
    client.send(&expects);
    assert_eq!(client.bytes(continues.len()), continues);
    assert_eq!(client.response().text(), "hello");
    server.stop();
    let backend = Backend::answering(|_| ok("done"));
    let server = backend.proxied("").start();
    let mut client = Client::connect(server.port());
    client.send(&expects);
    assert_eq!(client.bytes(continues.len()), continues);
    assert_eq!(client.response().text(), "done");
}
