//! Clients that leave while a server works for them: `*_ignore_client_abort on` lets it finish, by default its connection ends.
//!
//! Each client leaves before the head of the response, or between pieces that a server flushes. Sources: nginx documentation,
//! `proxy_ignore_client_abort`, `fastcgi_ignore_client_abort`; docs/differences.md.

use firstbyte_tests::backend::{Backend, Gate, Step, chunk, send};
use firstbyte_tests::client::request;
use firstbyte_tests::dir::set_mode;
use firstbyte_tests::h2::Http2;
use firstbyte_tests::mux::{Frames, MuxClient};
use firstbyte_tests::spdy::Spdy;
use firstbyte_tests::{Client, H2Client, Server, Signal, SpdyClient, fastcgi, peer, wait_until};

/// A protocol of the upstream server.
#[derive(Clone, Copy, Debug)]
enum Gateway {
    Proxy,
    FastCgi,
}

/// The way in which a client leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaves {
    Reset,
    Fin,
    ResetsStream,
    ClosesH2,
    ResetsSpdy,
    ClosesSpdy,
}

/// The moment at which it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    BeforeHead,
    BetweenPieces,
}

/// Pieces that follow the first one.
const PIECES: usize = 20;
/// A body of all pieces.
const BODY_BYTES: usize = 5 * (PIECES + 1);

impl Gateway {
    fn read(self) -> Step {
        match self {
            Self::Proxy => Step::ReadHead,
            Self::FastCgi => fastcgi::request(),
        }
    }

    fn head(self) -> Step {
        match self {
            Self::Proxy => send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
            Self::FastCgi => fastcgi::stdout("Content-Type: a/b\r\n\r\n"),
        }
    }

    fn piece(self) -> Step {
        match self {
            Self::Proxy => chunk("piece"),
            Self::FastCgi => fastcgi::stdout("piece"),
        }
    }

    fn end(self) -> Step {
        match self {
            Self::Proxy => chunk(""),
            Self::FastCgi => fastcgi::end(),
        }
    }

    fn server(self, backend: &Backend, main: &str, directives: &str) -> Server {
        let (pass, prefix) = match self {
            Self::Proxy => (format!("proxy_pass http://{};", backend.name()), "proxy"),
            Self::FastCgi => (format!("fastcgi_pass {};", backend.name()), "fastcgi"),
        };
        let spdy = if peer::is_firstbyte() { "spdy" } else { "" };
        let directives = directives.replace("%_", &format!("{prefix}_"));
        Server::http_with(
            &format!("worker_processes 1; {main}"),
            &format!(
                "log_format ends '$uri $status $upstream_response_length.';
                 server {{ listen 127.0.0.1:%%PORT%% {spdy}; http2 on; access_log %%DIR%%/ends.log ends;
                     location /work {{ {pass} proxy_http_version 1.1; {directives} }}
                     location /look {{ access_log off; return 204; }} }}"
            ),
        )
        .prepare(|dir| {
            let kept = dir.join("kept");
            std::fs::create_dir(&kept).expect("the folder is the test's");
            set_mode(&kept, 0o777);
        })
        .start()
    }
}

impl Leaves {
    /// Sends a request and leaves; the server has noticed it at the return.
    fn run(self, server: &Server, when: When, method: &str) {
        let body = if method == "POST" { "body" } else { "" };
        let length = body.len().to_string();
        match self {
            Self::Reset | Self::Fin => {
                let mut client = Client::connect(server.port());
                let field = format!("Content-Length: {length}");
                client.send(request(method, "/work", &[&field]) + body);
                if when == When::BetweenPieces {
                    client.response_to_head();
                    client.bytes(5);
                } else {
                    arrived(server);
                }
                match self {
                    Self::Reset => client.reset(),
                    _ => drop(client),
                }
            }
            Self::ResetsStream | Self::ClosesH2 => {
                let mut client = H2Client::connect(server.port());
                let stream = over_streams(&mut client, server, when, (method, &length));
                if self == Self::ResetsStream {
                    client.cancel(stream);
                    assert_eq!(client.fetch("/look").status, 204, "the connection stays");
                }
            }
            Self::ResetsSpdy | Self::ClosesSpdy => {
                let mut client = SpdyClient::connect(server.port());
                let stream = over_streams(&mut client, server, when, (method, &length));
                if self == Self::ResetsSpdy {
                    client.cancel(stream);
                    assert_eq!(client.fetch("/look").status, 204, "the connection stays");
                }
            }
        }
        arrived(server);
    }
}

/// Protocols with streams.
trait Sends: Frames {
    /// Sends the whole body of a request.
    fn body(client: &mut MuxClient<Self>, stream: u32);
}

impl Sends for Http2 {
    fn body(client: &mut MuxClient<Self>, stream: u32) {
        client.data(stream, b"body", true);
    }
}

impl Sends for Spdy {
    fn body(client: &mut MuxClient<Self>, stream: u32) {
        client.data(stream, b"body", true);
    }
}

/// Sends a request and waits for the moment to leave; returns the stream.
fn over_streams<F: Sends>(
    client: &mut MuxClient<F>,
    server: &Server,
    when: When,
    (method, length): (&str, &str),
) -> u32 {
    let has_body = length != "0";
    let stream = client.request(method, "/work", &[("content-length", length)], !has_body);
    if has_body {
        F::body(client, stream);
    }
    match when {
        When::BetweenPieces => client.until("a piece", |c| c.so_far(stream).body.len() >= 5),
        When::BeforeHead => arrived(server),
    }
    stream
}

/// The one thread of the server has handled whatever was sent before.
fn arrived(server: &Server) {
    assert_eq!(server.get("/look").status, 204);
}

/// All combinations; current nginx has no SPDY.
fn all_ways() -> impl Iterator<Item = Leaves> {
    let ways = [
        Leaves::Reset,
        Leaves::Fin,
        Leaves::ResetsStream,
        Leaves::ClosesH2,
        Leaves::ResetsSpdy,
        Leaves::ClosesSpdy,
    ];
    let count = if peer::is_firstbyte() { 6 } else { 4 };
    ways.into_iter().take(count)
}

/// Asserts that a request without its client is logged with the status and length of the whole response.
fn finishes(gateway: Gateway, leaves: Leaves, when: When, directives: &str) {
    let gate = Gate::default();
    let of_script = gate.clone();
    let backend = Backend::scripted(move |_| {
        let first = [gateway.head(), gateway.piece()];
        let mut steps = vec![gateway.read()];
        match when {
            When::BeforeHead => {
                steps.push(Step::Gate(of_script.clone()));
                steps.extend(first);
            }
            When::BetweenPieces => {
                steps.extend(first);
                steps.push(Step::Gate(of_script.clone()));
            }
        }
        for _ in 0..PIECES {
            steps.extend([gateway.piece(), Step::Wait(1)]);
        }
        steps.extend([gateway.end(), Step::Hold]);
        steps
    });
    let all = format!("%_ignore_client_abort on; {directives}");
    let server = gateway.server(&backend, "", &all);
    let method = match gateway {
        Gateway::Proxy => "GET",
        Gateway::FastCgi => "POST",
    };
    leaves.run(&server, when, method);
    let log = std::fs::read_to_string(server.path("ends.log")).unwrap_or_default();
    assert_eq!(log, "", "{gateway:?} {leaves:?} {when:?}: it goes on");
    gate.open();
    let line = format!("/work 200 {BODY_BYTES}.\n");
    let log = server.wait_for_text("ends.log", "/work");
    assert_eq!(log, line, "{gateway:?} {leaves:?} {when:?} {directives}");
    wait_until("the connection ends", || backend.open() == 0);
    server.stop();
}

/// nginx continues until a write fails.
#[test]
fn a_server_finishes_without_its_client_if_that_is_configured() {
    if !peer::is_firstbyte() {
        return;
    }
    for gateway in [Gateway::Proxy, Gateway::FastCgi] {
        for leaves in all_ways() {
            for when in [When::BeforeHead, When::BetweenPieces] {
                for directives in ["", "%_buffering off;"] {
                    finishes(gateway, leaves, when, directives);
                }
            }
        }
    }
}

#[test]
fn by_default_the_connection_to_the_server_ends_with_the_client() {
    for gateway in [Gateway::Proxy, Gateway::FastCgi] {
        for leaves in all_ways() {
            for when in [When::BeforeHead, When::BetweenPieces] {
                let backend = Backend::scripted(move |_| {
                    let mut steps = vec![gateway.read()];
                    if when == When::BetweenPieces {
                        steps.extend([gateway.head(), gateway.piece()]);
                    }
                    steps.push(Step::Hold);
                    steps
                });
                let server = gateway.server(&backend, "", "%_buffering off;");
                leaves.run(&server, when, "GET");
                wait_until("the connection ends", || backend.open() == 0);
                let line = match when {
                    When::BeforeHead => "/work 499",
                    When::BetweenPieces => "/work 200",
                };
                let log = server.wait_for_text("ends.log", "/work");
                assert!(log.starts_with(line), "{gateway:?} {leaves:?}: {log}");
                server.stop();
            }
        }
    }
}

/// A worker that ends does not wait for longer than it may.
#[test]
fn the_end_of_a_worker_bounds_work_without_a_client() {
    if !peer::is_firstbyte() {
        return;
    }
    for leaves in [Leaves::Reset, Leaves::ResetsStream, Leaves::ClosesH2] {
        let backend = Backend::scripted(|_| vec![Step::ReadHead, Step::Hold]);
        let main = "worker_shutdown_timeout 200ms;";
        let server = Gateway::Proxy.server(&backend, main, "%_ignore_client_abort on;");
        leaves.run(&server, When::BeforeHead, "GET");
        server.signal(Signal::QUIT);
        wait_until("the connection ends", || backend.open() == 0);
        let log = server.wait_for_text("ends.log", "/work");
        assert!(log.starts_with("/work 499"), "{leaves:?}: {log}");
    }
}

#[test]
fn an_upload_that_is_reset_is_a_bad_request() {
    for buffering in ["on", "off"] {
        for leaves in [Leaves::Reset, Leaves::Fin] {
            let backend = Backend::scripted(|_| vec![Step::ReadHead, Step::Hold]);
            let directives = format!("%_request_buffering {buffering};");
            let server = Gateway::Proxy.server(&backend, "", &directives);
            let mut client = Client::connect(server.port());
            client.send(request("POST", "/work", &["Content-Length: 1000"]) + "part");
            arrived(&server);
            match leaves {
                Leaves::Reset => client.reset(),
                _ => drop(client),
            }
            let log = server.wait_for_text("ends.log", "/work");
            assert!(
                log.starts_with("/work 400"),
                "{buffering} {leaves:?}: {log}"
            );
            server.stop();
        }
    }
}

/// A page is kept although the client of the first request is gone.
#[test]
fn a_response_is_stored_although_its_client_resets_the_connection() {
    for leaves in all_ways() {
        let gate = Gate::default();
        let of_script = gate.clone();
        let backend = Backend::scripted(move |_| {
            let gateway = Gateway::Proxy;
            let gate = Step::Gate(of_script.clone());
            let first = [gateway.read(), gateway.head(), gateway.piece(), gate];
            let rest = [gateway.piece(), gateway.end(), Step::Hold];
            first.into_iter().chain(rest).collect()
        });
        let server = Gateway::Proxy.server(&backend, "", "%_store %%DIR%%/kept/stored;");
        leaves.run(&server, When::BetweenPieces, "GET");
        gate.open();
        server.wait_for_text("ends.log", "/work 200");
        let stored = std::fs::read_to_string(server.path("kept/stored"));
        assert_eq!(stored.expect("it is kept"), "piecepiece", "{leaves:?}");
        server.stop();
    }
}
