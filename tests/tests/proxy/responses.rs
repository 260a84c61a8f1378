//! Heads of responses from upstream servers: forwarded and hidden fields, and the limit of their size.
//!
//! Sources: nginx documentation, `proxy_buffer_size`, `proxy_hide_header`, `early_hints`; RFC 9110 section 15.2;
//! docs/differences.md.

use firstbyte_tests::backend::{Backend, answer, ok, send};
use firstbyte_tests::client::request;
use firstbyte_tests::{H2Client, peer};

#[test]
fn statuses_without_a_body_have_none() {
    let backend = Backend::answering(|r| {
        let status = match r.target() {
            "/204" => "204 No Content",
            "/304" => "304 Not Modified",
            _ => return ok("body"),
        };
        vec![send(format!("HTTP/1.1 {status}\r\nETag: \"x\"\r\n\r\n"))]
    });
    let server = backend.grouped("", "").start();
    let mut client = server.client();
    for (path, status) in [("/204", 204), ("/304", 304), ("/200", 200)] {
        let answer = client.get(path);
        assert_eq!(answer.status, status);
        assert_eq!(answer.header("Transfer-Encoding"), None);
    }
    assert_eq!(backend.accepted(), 1, "such an answer is whole at its head");
}

/// Those of a server are no answers. nginx takes 100 and 102 for one.
#[test]
fn interim_responses_come_before_the_response() {
    let backend = Backend::answering(|r| {
        let mut steps = vec![send(format!(
            "HTTP/1.1 {} Interim\r\nX-A: b\r\n\r\n",
            &r.target()[1..]
        ))];
        steps.push(steps[0].clone());
        steps.extend(ok("final"));
        steps
    });
    let server = backend.grouped("", "").start();
    let all = [100, 102, 103, 199];
    let known = if peer::is_firstbyte() {
        &all[..]
    } else {
        &all[2..3]
    };
    for status in known {
        let answer = server.get(&format!("/{status}"));
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (200, "final"),
            "{status}"
        );
    }
    assert_eq!(backend.accepted(), 1);
}

/// Early hints are passed on to clients that requested them; other clients may not support interim responses.
#[test]
fn early_hints_reach_clients_where_configured() {
    let backend = Backend::answering(|_| {
        let mut steps = vec![send(
            "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n",
        )];
        steps.extend(ok("final"));
        steps
    });
    let server = backend.proxied("early_hints 1;").start();
    let mut client = server.client();
    client.send(request("GET", "/", &[]));
    let hints = client.response();
    assert_eq!(hints.status, 103);
    assert_eq!(hints.header("Link"), Some("</a.css>; rel=preload"));
    assert_eq!(client.response().text(), "final");
    let mut client = H2Client::connect(server.port());
    let reply = client.fetch("/");
    assert_eq!((reply.status, &reply.interim[..]), (200, &[103][..]));
    let server = backend.proxied("").start();
    assert_eq!(server.get("/").status, 200);
}

/// A head with this many bytes in all.
fn head_of(bytes: usize) -> String {
    let fixed = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n".len();
    let mut lines = String::new();
    let mut left = bytes - fixed;
    while left > 0 {
        // A line has seven bytes besides its value; the last one has the rest.
        let len = if left > 1200 { 1000 } else { left };
        lines.push_str(&format!("X-A: {}\r\n", "v".repeat(len - 7)));
        left -= len;
    }
    format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n{lines}\r\n")
}

fn large_heads() -> Backend {
    Backend::answering(|r| {
        let bytes: usize = r.target()[1..].parse().unwrap_or(1000);
        vec![send(head_of(bytes) + "ok")]
    })
}

/// Applications set cookies by the dozen; nginx needs larger buffers for that, and answers 502 until then.
#[test]
fn large_heads_need_no_configuration() {
    let backend = large_heads();
    let server = backend.proxied("").start();
    assert_eq!(server.get("/3000").status, 200);
    let own = if peer::is_firstbyte() { 200 } else { 502 };
    for bytes in [20_000, 64 << 10] {
        assert_eq!(server.get(&format!("/{bytes}")).status, own, "{bytes}");
    }
    assert_eq!(server.get(&format!("/{}", (64 << 10) + 1)).status, 502);
    server.wait_for_text(
        "error.log",
        "upstream sent too big header while reading response header from upstream",
    );
    assert_eq!(server.get("/3000").status, 200);
}

#[test]
fn written_size_is_the_limit_of_heads() {
    let backend = large_heads();
    let server = backend.proxied("proxy_buffer_size 8k;").start();
    // nginx has no space for a body after a head of exactly this size.
    let fits = if peer::is_firstbyte() { 8192 } else { 8191 };
    assert_eq!(server.get(&format!("/{fits}")).text(), "ok");
    assert_eq!(server.get("/8193").status, 502);
    server.wait_for_text(
        "error.log",
        "upstream sent too big header while reading response header from upstream",
    );
}

#[test]
fn fields_of_responses_are_passed_hidden_and_added() {
    let backend = Backend::answering(|_| {
        let fields = [
            "Server: app/1",
            "X-Powered-By: app",
            "X-Accel-Buffering: no",
            "X-Pad: x",
            "Set-Cookie: a=1",
            "Set-Cookie: b=2",
            "Date: Mon, 01 Jan 2024 00:00:00 GMT",
            "Location: /elsewhere",
            "Keep-Alive: timeout=5",
        ];
        answer("201 Created", &fields, "made")
    });
    let server = backend
        .proxied("proxy_hide_header X-Powered-By; add_header X-Added yes always;")
        .start();
    let answer = server.get("/");
    assert_eq!(answer.status, 201);
    assert_eq!(answer.header_values("Set-Cookie"), ["a=1", "b=2"]);
    assert_eq!(answer.header("X-Added"), Some("yes"));
    assert_ne!(answer.header("Server"), Some("app/1"));
    for absent in ["X-Powered-By", "X-Accel-Buffering", "X-Pad", "Keep-Alive"] {
        assert_eq!(answer.header(absent), None, "{absent}");
    }
    let server = backend.proxied("proxy_pass_header Server;").start();
    assert_eq!(server.get("/").header("Server"), Some("app/1"));
}
