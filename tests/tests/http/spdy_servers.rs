//! SPDY/3.1 in the client role with a server of another project, over TLS with `spdy/3.1` chosen by ALPN.
//!
//! `tests/peers/spdy_server.js` is that server, on node; `.ci/setup` installs its library. The client is the engine
//! that `bench` uses.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::tls_client::{Tls, site};
use engines::client::Bodies;
use engines::spdy::{Client, ClientEvent, Settings};
use firstbyte_tests::{TempDir, node};
use rustls::{ClientConnection, StreamOwned};

/// The server; it ends when its standard input does.
struct NodeServer {
    child: Child,
    input: Option<ChildStdin>,
    port: u16,
    _dir: TempDir,
}

impl NodeServer {
    fn start() -> Self {
        let dir = TempDir::new();
        let leaf = site("localhost");
        let [certificate, key] = ["c.pem", "k.pem"].map(|name| dir.path().join(name));
        std::fs::write(&certificate, leaf.certificate).expect("the directory is ours");
        std::fs::write(&key, leaf.key).expect("the directory is ours");
        let mut child = Command::new("node")
            .arg(node::script("spdy_server.js"))
            .arg(node::modules())
            .args([&certificate, &key])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node is there; .ci/setup installs it");
        let mut line = String::new();
        let output = child.stdout.take().expect("it is piped");
        let read = BufReader::new(output).read_line(&mut line);
        read.expect("it says its port");
        Self {
            input: child.stdin.take(),
            child,
            port: line.trim().parse().expect("a port"),
            _dir: dir,
        }
    }
}

impl Drop for NodeServer {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// A response so far.
#[derive(Default)]
struct Response {
    status: u16,
    body: Vec<u8>,
    ended: bool,
    reset: bool,
}

/// A connection of the engine's client.
struct Connection {
    wire: StreamOwned<ClientConnection, TcpStream>,
    client: Client,
    responses: BTreeMap<u32, Response>,
    pongs: Vec<u64>,
}

impl Connection {
    fn open(port: u16) -> Self {
        let mut wire = Tls::speaking(&[b"spdy/3.1"]).connect(port, "localhost");
        while wire.conn.is_handshaking() {
            let done = wire.conn.complete_io(&mut wire.sock);
            done.expect("the handshake succeeds");
        }
        assert_eq!(wire.conn.alpn_protocol(), Some(&b"spdy/3.1"[..]));
        let settings = Settings {
            headers_level: 9,
            ..Settings::default()
        };
        Self {
            wire,
            client: Client::new(settings, Bodies::Delivered),
            responses: BTreeMap::new(),
            pongs: Vec::new(),
        }
    }

    fn request(&mut self, method: &str, path: &str, priority: u8, body: Option<&[u8]>) -> u32 {
        let fields = [
            (":method", method),
            (":path", path),
            (":version", "HTTP/1.1"),
            (":host", "localhost"),
            (":scheme", "https"),
        ];
        let fields = fields.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let stream = self.client.request_at(fields, priority, body.is_none());
        let stream = stream.expect("there is room");
        if let Some(body) = body {
            self.client.send(stream, body, true);
        }
        self.responses.insert(stream, Response::default());
        stream
    }

    /// Sends and reads until all responses are there, or reset.
    fn finish(&mut self) {
        let mut piece = vec![0; 64 << 10];
        loop {
            let mut out = Vec::new();
            self.client.transmit(&mut out);
            self.wire.write_all(&out).expect("the server reads");
            if self.responses.values().all(|r| r.ended || r.reset) {
                return;
            }
            let length = self.wire.read(&mut piece).expect("the server answers");
            assert_ne!(length, 0, "the server ended the connection");
            self.client.receive(&piece[..length]);
            self.take();
        }
    }

    fn take(&mut self) {
        while let Some(event) = self.client.event() {
            match event {
                ClientEvent::Head { stream, head, .. } => self.of(stream).status = head.status,
                ClientEvent::Data { stream, bytes } => {
                    self.client.consumed(stream, bytes.len() as u64);
                    self.of(stream).body.extend(bytes);
                }
                ClientEvent::End { stream, .. } => self.of(stream).ended = true,
                ClientEvent::Reset { stream, .. } => self.of(stream).reset = true,
                ClientEvent::Pong(number) => self.pongs.push(number),
                other => panic!("{other:?}"),
            }
        }
    }

    fn of(&mut self, stream: u32) -> &mut Response {
        let response = self.responses.get_mut(&stream);
        response.expect("it belongs to a request")
    }

    fn body(&self, stream: u32) -> &[u8] {
        let response = &self.responses[&stream];
        assert!(response.ended && response.status == 200);
        &response.body
    }
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|n| b'a' + (n % 23) as u8).collect()
}

#[test]
fn hundred_streams_of_all_priorities_come_back() {
    let server = NodeServer::start();
    let mut connection = Connection::open(server.port);
    let streams: Vec<u32> = (0..100)
        .map(|n| connection.request("GET", &format!("/{}", n * 50), (n % 8) as u8, None))
        .collect();
    connection.client.ping(7);
    connection.finish();
    for (n, stream) in streams.into_iter().enumerate() {
        assert_eq!(connection.body(stream), pattern(n * 50), "stream {stream}");
    }
    assert_eq!(connection.pongs, [7]);
}

#[test]
fn ten_megabytes_move_each_way_to_a_server_of_others() {
    const LEN: usize = 10 << 20;
    let server = NodeServer::start();
    let mut connection = Connection::open(server.port);
    let posted = connection.request("POST", "/", 3, Some(&pattern(LEN)));
    let asked = connection.request("GET", &format!("/{LEN}"), 3, None);
    connection.finish();
    assert_eq!(connection.body(posted), format!("{LEN} true").as_bytes());
    assert!(connection.body(asked) == pattern(LEN), "the body is whole");
}

#[test]
fn stream_that_the_server_resets_harms_no_other() {
    let server = NodeServer::start();
    let mut connection = Connection::open(server.port);
    let reset = connection.request("GET", "/reset", 0, None);
    let whole = connection.request("GET", "/1000", 7, None);
    connection.finish();
    assert!(connection.responses[&reset].reset);
    assert_eq!(connection.body(whole), pattern(1000));
}
