//! Proxying over sockets: requests as the upstream server gets them, and responses as the client gets them.
//!
//! Sources: nginx documentation, ngx_http_proxy_module, ngx_http_upstream_module; RFC 9112; docs/differences.md.

use crate::tls_client::site;
use firstbyte_tests::backend::{Backend, Gate, Step, chunk, ok, send};
use firstbyte_tests::client::request;
use firstbyte_tests::received::Request;
use firstbyte_tests::tls_pipe::tls_pipe;
use firstbyte_tests::{Client, H2Client, Server, SpdyClient, TempDir, peer, wait_until};

/// Responds with the request line.
fn mirror() -> Backend {
    Backend::answering(|r| ok(format!("{} {} {}", r.method(), r.target(), r.body.len())))
}

/// Bytes in which a piece that is lost, doubled or moved is seen.
fn pattern(len: usize) -> Vec<u8> {
    (0..len)
        .map(|n| (n % 251) as u8 ^ (n >> 12) as u8)
        .collect()
}

#[test]
fn get_is_passed_on_with_the_default_fields() {
    let backend = mirror();
    let server = backend.proxied("").start();
    let answer = server
        .client()
        .get_with("/a/b?c=%20", &["X-Own: yes", "Accept-Encoding: gzip"]);
    assert_eq!(
        (answer.status, answer.text().as_str()),
        (200, "GET /a/b?c=%20 0")
    );
    let seen = backend.latest();
    assert_eq!(seen.line, "GET /a/b?c=%20 HTTP/1.1");
    assert_eq!(seen.header("Host"), Some(backend.name().as_str()));
    assert_eq!(seen.header("X-Own"), Some("yes"));
    assert_eq!(seen.header("Accept-Encoding"), Some("gzip"));
    for absent in [
        "Content-Length",
        "Transfer-Encoding",
        "Keep-Alive",
        "Upgrade",
    ] {
        assert_eq!(seen.header(absent), None, "{}", seen.head());
    }
}

#[test]
fn head_has_no_body_and_the_connection_goes_on() {
    let backend = Backend::answering(|r| match r.method() {
        "HEAD" => vec![send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")],
        _ => ok("after"),
    });
    let server = backend.proxied("").start();
    let mut client = server.client();
    let head = client.head("/");
    assert_eq!(head.header("Content-Length"), Some("1000"));
    assert_eq!(client.get("/").text(), "after");
    assert_eq!(backend.requests()[0].method(), "HEAD");
}

#[test]
fn body_with_a_length_arrives_with_it() {
    let backend = mirror();
    let server = backend.proxied("").start();
    let mut client = server.client();
    client.send(request("POST", "/", &["Content-Length: 5"]) + "hello");
    assert_eq!(client.response().text(), "POST / 5");
    let seen = backend.latest();
    assert_eq!(seen.header("Content-Length"), Some("5"));
    assert_eq!(seen.body, b"hello");
    // A length of 0 is sent, too.
    client.send(request("POST", "/", &["Content-Length: 0"]));
    assert_eq!(client.response().text(), "POST / 0");
    assert_eq!(backend.latest().header("Content-Length"), Some("0"));
}

const CHUNKED: &str = "Transfer-Encoding: chunked";

#[test]
fn chunked_body_is_given_a_length_or_stays_chunked() {
    let backend = mirror();
    let server = backend.proxied("").start();
    let body = "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    let mut client = server.client();
    client.send(request("POST", "/", &[CHUNKED]) + body);
    assert_eq!(client.response().text(), "POST / 5");
    let seen = backend.latest();
    // It was collected, so its length is known.
    assert_eq!(seen.header("Content-Length"), Some("5"));
    assert_eq!(seen.header("Transfer-Encoding"), None);
    assert_eq!(seen.body, b"abcde");
}

/// The first part is passed on before the rest is there, so its length is not known.
#[test]
fn unbuffered_body_is_passed_on_as_it_comes() {
    let gate = Gate::default();
    let of_script = gate.clone();
    let backend = Backend::at_heads(move |_| {
        let mut steps = vec![Step::Read(8), Step::Gate(of_script.clone()), Step::ReadBody];
        steps.extend(ok("read"));
        steps
    });
    let server = backend.proxied("proxy_request_buffering off;").start();
    let mut client = server.client();
    client.send(request("POST", "/", &[CHUNKED]) + "3\r\nabc\r\n");
    wait_until("the head is there before the end", || {
        backend.request_count() == 1
    });
    gate.open();
    client.send("2\r\nde\r\n0\r\n\r\n");
    assert_eq!(client.response().text(), "read");
    let seen = backend.latest();
    assert_eq!(seen.header("Transfer-Encoding"), Some("chunked"));
    assert_eq!(
        (seen.header("Content-Length"), &seen.body[..]),
        (None, &b"de"[..])
    );
}

/// HTTP/1.0 has no chunks: such a body is collected, whatever the configuration.
#[test]
fn chunked_body_has_a_length_over_http_1_0() {
    let backend = Backend::answering(|_| vec![send("HTTP/1.0 200 OK\r\n\r\nold"), Step::Close]);
    for more in ["", "proxy_request_buffering off;"] {
        let server = backend
            .proxied(&format!("proxy_http_version 1.0; {more}"))
            .start();
        let mut client = server.client();
        client.send(request("POST", "/", &[CHUNKED]) + "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
        assert_eq!(client.response().text(), "old");
        let seen = backend.latest();
        assert_eq!(seen.line, "POST / HTTP/1.0");
        assert_eq!(seen.header("Content-Length"), Some("5"), "{more}");
        assert_eq!(seen.body, b"abcde");
    }
}

/// Around the size from which a body goes to a file, and far beyond it.
#[test]
fn bodies_of_all_sizes_arrive_whole() {
    let backend = mirror();
    let sizes = "client_body_buffer_size 16k;";
    for more in ["", "proxy_request_buffering off;"] {
        let server = backend.proxied(&format!("{sizes} {more}")).start();
        for len in [1, 16_383, 16_384, 16_385, 10 << 20] {
            let body = pattern(len);
            let mut client = server.client();
            client.send(request("PUT", "/", &[&format!("Content-Length: {len}")]));
            client.send(&body);
            assert_eq!(client.response().text(), format!("PUT / {len}"), "{more}");
            assert!(backend.latest().body == body, "{len} {more}");

            client.send(request("PUT", "/", &[CHUNKED]));
            for piece in body.chunks(100_000) {
                client
                    .send(format!("{:x}\r\n", piece.len()))
                    .send(piece)
                    .send("\r\n");
            }
            client.send("0\r\n\r\n");
            assert_eq!(client.response().text(), format!("PUT / {len}"), "{more}");
            assert!(backend.latest().body == body, "{len} chunked {more}");
        }
    }
}

/// The three ways in which a body can end.
fn framed(r: &Request) -> Vec<Step> {
    let body = pattern(300_000);
    let head = |line: &str| send(format!("HTTP/1.1 200 OK\r\n{line}\r\n"));
    match r.target() {
        "/length" => ok(body),
        "/chunked" => {
            let mut steps = vec![head("Transfer-Encoding: chunked\r\n")];
            steps.extend(body.chunks(7001).map(chunk));
            steps.push(send("0\r\n\r\n"));
            steps
        }
        _ => vec![head(""), Step::Send(body), Step::Close],
    }
}

#[test]
fn bodies_of_responses_end_in_three_ways() {
    let backend = Backend::answering(framed);
    for more in ["", "proxy_buffering off;", "proxy_http_version 1.0;"] {
        let server = backend.proxied(more).start();
        let mut client = server.client();
        for path in ["/length", "/chunked", "/close"] {
            let answer = client.get(path);
            assert_eq!(answer.status, 200);
            assert!(answer.body == pattern(300_000), "{path} {more}");
            let length = answer.header("Content-Length").is_some();
            assert_eq!(length, path == "/length", "{path} {more}");
        }
    }
}

#[test]
fn kept_connection_carries_all_requests() {
    let backend = mirror();
    let server = backend.grouped("keepalive 4;", "").start();
    for _ in 0..20 {
        assert_eq!(server.get("/x").status, 200);
    }
    assert_eq!(backend.accepted(), 1);
    let last = backend.latest();
    assert_eq!((last.number, last.header("Connection")), (20, None));
}

#[test]
fn keepalive_requests_and_time_end_a_connection() {
    let backend = mirror();
    let server = backend
        .grouped("keepalive 4; keepalive_requests 5;", "")
        .start();
    for _ in 0..20 {
        assert_eq!(server.get("/x").status, 200);
    }
    assert_eq!(backend.accepted(), 4);
    assert!(backend.requests().iter().all(|r| r.number <= 5));
    wait_until("the last is closed with its fifth request", || {
        backend.open() == 0
    });
}

/// Idle connections beyond `keepalive` are closed, those within stay.
#[test]
fn keepalive_limits_the_idle_connections() {
    let backend = Backend::answering(|_| {
        let mut steps = vec![Step::Wait(100)];
        steps.extend(ok("late"));
        steps
    });
    let server = backend.grouped("keepalive 2;", "").start();
    let mut clients: Vec<Client> = (0..6).map(|_| server.client()).collect();
    for client in &mut clients {
        client.send(request("GET", "/", &[]));
    }
    for client in &mut clients {
        assert_eq!(client.response().text(), "late");
    }
    assert_eq!(backend.accepted(), 6);
    wait_until("all but two are closed", || backend.open() == 2);
}

#[test]
fn http2_clients_are_served() {
    let backend = Backend::answering(framed);
    let server = backend.proxied("").start();
    let mut client = H2Client::connect(server.port());
    let streams = ["/length", "/chunked", "/close"].map(|path| client.get(path));
    for stream in streams {
        let reply = client.reply(stream);
        assert_eq!((reply.status, reply.reset), (200, None));
        assert!(reply.body == pattern(300_000));
    }
    // The upstream server uses HTTP/1.
    let seen = backend.latest();
    assert!(seen.line.ends_with(" HTTP/1.1") && seen.header("Host").is_some());
    assert!(seen.headers.iter().all(|(name, _)| !name.starts_with(':')));
}

#[test]
fn http2_bodies_arrive_whole() {
    let backend = mirror();
    for more in ["", "proxy_request_buffering off;"] {
        let server = backend.proxied(more).start();
        let mut client = H2Client::connect(server.port());
        let body = pattern(60_000);
        let stream = client.request("POST", "/", &[], false);
        client.data(stream, &body[..16_000], false);
        client.data(stream, &body[16_000..32_000], false);
        client.data(stream, &body[32_000..48_000], false);
        client.data(stream, &body[48_000..], true);
        assert_eq!(client.reply(stream).text(), "POST / 60000", "{more}");
        assert!(backend.latest().body == body, "{more}");
    }
}

/// A server for clients over TLS: HTTP/1.1, HTTP/2, and SPDY if supported.
fn over_tls(backend: &Backend) -> Server {
    let leaf = site("localhost");
    let spdy = if peer::is_firstbyte() { "spdy" } else { "" };
    let pass = backend.name();
    Server::http(&format!(
        "ssl_certificate %%DIR%%/c.pem; ssl_certificate_key %%DIR%%/k.pem; client_max_body_size 0;
         server {{ listen 127.0.0.1:%%PORT%% ssl {spdy}; http2 on; location / {{ proxy_pass http://{pass}; }} }}"
    ))
    .bytes("c.pem", leaf.certificate.as_bytes())
    .bytes("k.pem", leaf.key.as_bytes())
    .start()
}

#[test]
fn clients_over_tls_are_served() {
    let backend = Backend::answering(framed);
    let server = over_tls(&backend);
    let mut client = Client::connect(tls_pipe(server.port(), "http/1.1"));
    for path in ["/length", "/chunked", "/close"] {
        assert!(client.get(path).body == pattern(300_000), "{path}");
    }
    let mut client = H2Client::connect(tls_pipe(server.port(), "h2"));
    for path in ["/length", "/chunked", "/close"] {
        assert!(client.fetch(path).body == pattern(300_000), "{path}");
    }
}

#[test]
fn spdy_clients_are_served() {
    if !peer::is_firstbyte() {
        return;
    }
    let backend = Backend::answering(framed);
    let server = over_tls(&backend);
    let mut client = SpdyClient::connect(tls_pipe(server.port(), "spdy/3.1"));
    for path in ["/length", "/chunked", "/close"] {
        assert!(client.fetch(path).body == pattern(300_000), "{path}");
    }
    let uploads = mirror();
    let server = over_tls(&uploads);
    let mut client = SpdyClient::connect(tls_pipe(server.port(), "spdy/3.1"));
    let body = pattern(60_000);
    let stream = client.request("POST", "/", &[], false);
    client.data(stream, &body[..30_000], false);
    client.data(stream, &body[30_000..], true);
    assert_eq!(client.reply(stream).text(), "POST / 60000");
    assert!(uploads.latest().body == body);
}

#[test]
fn server_on_a_unix_socket_is_reached() {
    let dir = TempDir::new();
    let backend = Backend::answering_on(&dir.path().join("app.sock"), |r| ok(r.target()));
    for pass in [
        format!("http://{}:/sub/", backend.name()),
        "http://b/sub/".to_owned(),
    ] {
        let server = Server::http(&format!(
            "upstream b {{ server {}; }}
             server {{ listen 127.0.0.1:%%PORT%%; location /in/ {{ proxy_pass {pass}; }} }}",
            backend.name()
        ))
        .start();
        assert_eq!(server.get("/in/x?y").text(), "/sub/x?y");
        let host = backend.latest().header("Host").map(str::to_owned);
        let expected = if pass.contains("unix") {
            "localhost"
        } else {
            "b"
        };
        assert_eq!(host.as_deref(), Some(expected));
    }
}

#[test]
fn websocket_upgrade_becomes_a_tunnel() {
    let backend = Backend::answering(|_| {
        let head =
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
        vec![send(head), send("first"), Step::Echo, Step::Close]
    });
    let upgrade = "proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade;
        proxy_set_header Connection \"upgrade\";";
    let server = backend.proxied(upgrade).start();
    let mut client = server.client();
    // Bytes that come with the request belong to the tunnel.
    client.send(
        request(
            "GET",
            "/chat",
            &["Upgrade: websocket", "Connection: Upgrade"],
        ) + "early",
    );
    let answer = client.response();
    assert_eq!(answer.status, 101);
    assert_eq!(answer.header("Upgrade"), Some("websocket"));
    assert_eq!(client.bytes(10), b"firstearly");
    let body = pattern(1 << 20);
    for piece in body.chunks(64 << 10) {
        client.send(piece);
        assert!(client.bytes(piece.len()) == piece);
    }
    client.finish_sending();
    assert!(client.closed());
    assert_eq!(backend.latest().header("Upgrade"), Some("websocket"));
    wait_until("the server's side is over, too", || backend.open() == 0);
}

/// The old way from HTTP/1.1 to HTTP/2 would go around every rule for requests.
#[test]
fn h2c_is_never_passed_on() {
    let backend = mirror();
    let server = backend
        .proxied("proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;")
        .start();
    let fields = [
        "Upgrade: h2c",
        "Connection: Upgrade, HTTP2-Settings",
        "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA",
    ];
    let answer = server.client().get_with("/", &fields);
    assert_eq!(answer.status, 200);
    if peer::is_firstbyte() {
        assert_eq!(
            backend.latest().header("Upgrade"),
            None,
            "{}",
            backend.latest().head()
        );
    }
}

/// An upgrade is between two neighbours: it is passed on if configured, and `proxy_upgrade` limits it.
#[test]
fn upgrade_is_passed_on_only_where_it_is_configured() {
    let backend = mirror();
    let set = "proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;";
    let narrow = format!("{set} proxy_upgrade websocket;");
    let mut cases = vec![
        ("", "websocket", None),
        (set, "websocket", Some("websocket")),
        (set, "other/1", Some("other/1")),
    ];
    if peer::is_firstbyte() {
        cases.push((&narrow, "WebSocket", Some("WebSocket")));
        cases.push((&narrow, "other/1", None));
        cases.push((&narrow, "h2c", None));
    }
    for (directives, name, expected) in cases {
        let server = backend.proxied(directives).start();
        let fields = [&format!("Upgrade: {name}"), "Connection: Upgrade"];
        assert_eq!(server.client().get_with("/", &fields).status, 200);
        let seen = backend.latest();
        assert_eq!(seen.header("Upgrade"), expected, "{directives} {name}");
    }
}
