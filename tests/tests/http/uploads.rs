//! Request bodies that wait in the socket: all received bytes are read without another event.
//!
//! The worker is stopped while a client sends, so that it finds a whole burst in the kernel's buffers. Sizes are around
//! multiples of one read. `UPLOADS=1000` sends this many of each kind.
//!
//! Source: nginx documentation, `client_body_buffer_size`; RFC 9112 section 6; RFC 9113 section 5.2.

use std::fmt::Write as _;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;

use firstbyte_tests::wait::DEADLINE;
use firstbyte_tests::{H2Client, Response, Server, Signal, SpdyClient, process, response};

use crate::tls_client::{Tls, site};

/// Bytes of one read of a worker (`SCRATCH_BYTES`).
const READ: usize = 65_536;

/// Bodies at the edges of reads, and far beyond.
const SIZES: [usize; 9] = [
    READ - 1,
    READ,
    READ + 1,
    2 * READ - 1,
    2 * READ,
    2 * READ + 1,
    300_000,
    8 * READ,
    2_000_000,
];

/// How a client sends its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length,
    Chunked,
    /// With its length, after `Expect: 100-continue`, without a wait.
    Expect,
}

/// A server that takes uploads: into memory first below `/memory/`, into a file at once below `/file/`.
fn server() -> Server {
    let leaf = site("a.test");
    Server::whole(
        "user root root; daemon off; pid %%DIR%%/nginx.pid; error_log %%DIR%%/error.log info; worker_processes 1;
         events { worker_connections 512; }
         http {
             client_body_temp_path %%DIR%%/up; access_log off; client_max_body_size 0; client_body_timeout 20s;
             ssl_certificate %%DIR%%/leaf.pem; ssl_certificate_key %%DIR%%/leaf.key;
             server {
                 listen 127.0.0.1:%%PORT%% spdy rcvbuf=4m; listen 127.0.0.1:%%PORT2%% ssl rcvbuf=4m;
                 http2 on; root %%DIR%%/html; dav_methods PUT;
                 location /memory/ { client_body_buffer_size 4m; }
                 location /file/ { client_body_buffer_size 1k; }
             }
         }",
    )
    .file("html/memory/old", "old")
    .file("html/file/old", "old")
    .file("leaf.pem", &leaf.certificate)
    .file("leaf.key", &leaf.key)
    .start()
}

/// How many uploads of each kind.
fn rounds() -> usize {
    let text = std::env::var("UPLOADS").unwrap_or_else(|_| "2".to_owned());
    text.parse().expect("UPLOADS is a number")
}

/// A body in which a piece that is lost, repeated or out of place shows.
fn body(size: usize) -> Vec<u8> {
    (0..size as u32)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect()
}

/// A request that puts a body to a path.
fn put(path: &str, body: &[u8], framing: Framing) -> Vec<u8> {
    let mut head = format!("PUT {path} HTTP/1.1\r\nHost: a.test\r\n");
    if framing == Framing::Expect {
        head.push_str("Expect: 100-continue\r\n");
    }
    if framing != Framing::Chunked {
        let _ = write!(head, "Content-Length: {}\r\n\r\n", body.len());
        return [head.as_bytes(), body].concat();
    }
    head.push_str("Transfer-Encoding: chunked\r\n\r\n");
    let mut bytes = head.into_bytes();
    for piece in body.chunks(10_000) {
        bytes.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        bytes.extend_from_slice(piece);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
    stream.set_nodelay(true).expect("a socket option");
    stream.set_read_timeout(Some(DEADLINE)).expect("not zero");
    stream
}

/// Sends the first `early` bytes, which the worker reads alone, and the rest in a burst.
fn in_two(server: &Server, stream: &mut TcpStream, bytes: &[u8], early: usize) {
    let (first, rest) = bytes.split_at(early);
    stream.write_all(first).expect("the server reads");
    if early > 0 {
        // The only thread sends this response after it has read the earlier bytes.
        assert_eq!(server.get("/file/old").text(), "old");
    }
    burst(server, stream, rest);
}

/// Sends bytes while the worker is stopped, as many as the kernel takes; resumes the worker, and sends the rest.
fn burst(server: &Server, stream: &mut TcpStream, mut bytes: &[u8]) {
    let workers = server.workers();
    let all = |signal| workers.iter().all(|pid| process::signal(*pid, signal));
    assert!(all(Signal::STOP), "the worker is there");
    stream.set_nonblocking(true).expect("a socket option");
    loop {
        match stream.write(bytes) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(e) if e.kind() == ErrorKind::WouldBlock => break,
            Err(e) => panic!("the connection is broken: {e}"),
        }
        if bytes.is_empty() {
            break;
        }
    }
    stream.set_nonblocking(false).expect("a socket option");
    assert!(all(Signal::CONT), "the worker is there");
    stream.write_all(bytes).expect("the server reads on");
}

/// The next response that is not interim.
#[track_caller]
fn next(stream: &mut impl Read, buffer: &mut Vec<u8>) -> Response {
    loop {
        let read = response::read(buffer, false, |buffer| {
            let mut piece = [0; 4096];
            let len = stream.read(&mut piece)?;
            buffer.extend_from_slice(&piece[..len]);
            Ok(len)
        });
        match read {
            Ok(Some(response)) if response.status < 200 => {}
            Ok(Some(response)) => return response,
            other => panic!("no response: {other:?}"),
        }
    }
}

/// The status of the first response that is not interim.
#[track_caller]
fn status(stream: &mut impl Read) -> u16 {
    next(stream, &mut Vec::new()).status
}

#[track_caller]
fn arrived(server: &Server, path: &str, wanted: &[u8], what: &str) {
    let file = server.path(&format!("html{path}"));
    let found = fs::read(&file).unwrap_or_default();
    assert!(
        found == wanted,
        "{what}: {} bytes of {} arrived",
        found.len(),
        wanted.len()
    );
    fs::remove_file(&file).expect("the file is there");
}

/// Does something for uploads of each size, to memory and to a file.
fn each(mut upload: impl FnMut(&str, &[u8])) {
    for size in SIZES {
        let bytes = body(size);
        for path in ["/memory/new", "/file/new"] {
            for _ in 0..rounds() {
                upload(path, &bytes);
            }
        }
    }
}

fn over_http1(framing: Framing) {
    let server = server();
    each(|path, bytes| {
        let request = put(path, bytes, framing);
        let head = request.windows(4).position(|end| end == b"\r\n\r\n");
        let head = head.expect("a whole head") + 4;
        for early in [0, head, head + 1] {
            let mut stream = connect(server.port());
            in_two(&server, &mut stream, &request, early);
            let what = format!("{path}, {} bytes, {early} of them early", bytes.len());
            assert_eq!(status(&mut stream), 201, "{what}");
            arrived(&server, path, bytes, &what);
        }
    });
}

#[test]
fn body_with_a_length_in_one_burst_is_read_whole() {
    over_http1(Framing::Length);
}

#[test]
fn chunked_body_in_one_burst_is_read_whole() {
    over_http1(Framing::Chunked);
}

#[test]
fn body_behind_an_expectation_in_one_burst_is_read_whole() {
    over_http1(Framing::Expect);
}

/// A request that waits in the socket after a large one is read, too.
#[test]
fn request_behind_a_burst_is_answered() {
    let server = server();
    for size in SIZES {
        let bytes = body(size);
        let first = put("/file/new", &bytes, Framing::Length);
        let both = [
            &first[..],
            b"GET /file/old HTTP/1.1\r\nHost: a.test\r\n\r\n",
        ]
        .concat();
        let mut stream = connect(server.port());
        in_two(&server, &mut stream, &both, first.len() - size);
        let mut buffer = Vec::new();
        assert_eq!(next(&mut stream, &mut buffer).status, 201, "{size} bytes");
        assert_eq!(next(&mut stream, &mut buffer).text(), "old", "{size} bytes");
        arrived(&server, "/file/new", &bytes, "before another request");
    }
}

/// A response that is sent while its request body still waits in the socket: the body is read and dropped, the
/// connection stays.
#[test]
fn body_that_nobody_wants_is_dropped_whole() {
    let server = server();
    for size in SIZES {
        let mut request =
            format!("GET /file/old HTTP/1.1\r\nHost: a.test\r\nContent-Length: {size}\r\n\r\n");
        let head = request.len();
        request.push_str(&"x".repeat(size));
        request.push_str("GET /memory/old HTTP/1.1\r\nHost: a.test\r\n\r\n");
        let mut stream = connect(server.port());
        in_two(&server, &mut stream, request.as_bytes(), head);
        let mut buffer = Vec::new();
        for _ in 0..2 {
            assert_eq!(next(&mut stream, &mut buffer).text(), "old", "{size} bytes");
        }
    }
}

#[test]
fn body_over_tls_in_one_burst_is_read_whole() {
    let server = server();
    let tls = Tls::new();
    each(|path, bytes| {
        let mut stream = tls.connect(server.port_number(2), "a.test");
        while stream.conn.is_handshaking() {
            stream
                .conn
                .complete_io(&mut stream.sock)
                .expect("TLS is spoken");
        }
        let mut records = Vec::new();
        let mut early = None;
        for piece in put(path, bytes, Framing::Length).chunks(16 << 10) {
            let tls = &mut stream.conn;
            tls.writer().write_all(piece).expect("there is room");
            tls.write_tls(&mut records).expect("memory takes it");
            // The server keeps a part of a record, so that the next read completes as many records as fit.
            early.get_or_insert(records.len() + 10_000);
        }
        in_two(&server, &mut stream.sock, &records, early.unwrap_or(0));
        assert_eq!(status(&mut stream), 201, "{path}, {} bytes", bytes.len());
        arrived(&server, path, bytes, "over TLS");
    });
}

/// With flow control, a body is sent as far as its windows allow; the burst is the content of the first windows.
#[test]
fn body_over_http2_and_spdy_is_read_whole() {
    let server = server();
    each(|path, bytes| {
        let mut client = H2Client::connect(server.port());
        let stream = client.request("PUT", path, &[], false);
        // The server takes a body wanted whole without windows, once it has the request.
        client.settle();
        let mut pieces = bytes.chunks(16 << 10).peekable();
        while let Some(piece) = pieces.next() {
            client.data(stream, piece, pieces.peek().is_none());
        }
        assert_eq!(client.reply(stream).status, 201, "{path}, {}", bytes.len());
        arrived(&server, path, bytes, "in frames");
    });
    each(|path, bytes| {
        let mut client = SpdyClient::connect(server.port());
        let stream = client.request("PUT", path, &[], false);
        client.settle();
        let mut pieces = bytes.chunks(16 << 10).peekable();
        while let Some(piece) = pieces.next() {
            client.data(stream, piece, pieces.peek().is_none());
        }
        assert_eq!(client.reply(stream).status, 201, "{path}, {}", bytes.len());
        arrived(&server, path, bytes, "in frames");
    });
}

/// Several uploads at the same time share a thread.
#[test]
fn uploads_beside_each_other_are_read_whole() {
    let server = server();
    let bytes = body(2_000_000);
    let port = server.port();
    thread::scope(|scope| {
        for n in 0..16 {
            let bytes = &bytes;
            scope.spawn(move || {
                let mut stream = connect(port);
                let path = format!("/file/beside{n}");
                let request = put(&path, bytes, Framing::Length);
                stream.write_all(&request).expect("the server reads");
                assert_eq!(status(&mut stream), 201);
            });
        }
    });
    for n in 0..16 {
        arrived(
            &server,
            &format!("/file/beside{n}"),
            &bytes,
            "beside others",
        );
    }
}
