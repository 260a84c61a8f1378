//! Benchmark of one HTTP/1 exchange in the engine: parses a request head, encodes a response head, queues a body.
//!
//! `h1_exchange CASE N` does it N times on one connection. `benches/run` counts the instructions of two runs with
//! different N; their difference is the cost of the exchanges alone.

use std::hint::black_box;
use std::process::ExitCode;
use std::rc::Rc;

use engines::h1::{Conn, Event, Next, Settings};
use engines::http::{BodyLength, Chunk, OutputQueue, ResponseHead};

/// Five fields, as a load generator or a small client sends them.
const PLAIN: &[u8] = b"GET /index.html HTTP/1.1\r\n\
    Host: www.example.org\r\n\
    User-Agent: client/1.0\r\n\
    Accept: */*\r\n\
    Accept-Encoding: gzip\r\n\
    Connection: keep-alive\r\n\r\n";

/// Thirteen fields, as a browser sends them.
const BROWSER: &[u8] = b"GET /assets/site.css?v=20240117 HTTP/1.1\r\n\
    Host: www.example.org\r\n\
    Connection: keep-alive\r\n\
    Pragma: no-cache\r\n\
    Cache-Control: no-cache\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36\r\n\
    Accept: text/css,*/*;q=0.1\r\n\
    Sec-Fetch-Site: same-origin\r\n\
    Sec-Fetch-Mode: no-cors\r\n\
    Sec-Fetch-Dest: style\r\n\
    Referer: http://www.example.org/notes/reload.html\r\n\
    Accept-Encoding: gzip, deflate\r\n\
    Accept-Language: en-GB,en;q=0.9\r\n\
    Cookie: session=0123456789abcdef0123456789abcdef; theme=dark\r\n\r\n";

/// Length of the body, that of a well-known welcome page.
const BODY_BYTES: usize = 612;

#[expect(
    clippy::disallowed_methods,
    reason = "a program has arguments, an engine has none"
)]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let request = match arguments.first().map(String::as_str) {
        Some("plain") => PLAIN,
        Some("browser") => BROWSER,
        _ => return ExitCode::from(2),
    };
    let Some(count) = arguments.get(1).and_then(|n| n.parse::<u32>().ok()) else {
        return ExitCode::from(2);
    };
    let mut conn = Conn::new(Rc::new(Settings::default()));
    let body: Rc<[u8]> = vec![b'x'; BODY_BYTES].into();
    let (mut response, mut out) = (ResponseHead::default(), OutputQueue::default());
    for _ in 0..count {
        if !exchange(
            &mut conn,
            black_box(request),
            &body,
            &mut response,
            &mut out,
        ) {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// One exchange; false if its result is not the expected one.
fn exchange(
    conn: &mut Conn,
    request: &[u8],
    body: &Rc<[u8]>,
    response: &mut ResponseHead,
    out: &mut OutputQueue,
) -> bool {
    conn.receive(request);
    let Some(Event::Head(head)) = conn.event() else {
        return false;
    };
    response.clear();
    response.status = 200;
    for (name, value) in [
        (&b"Server"[..], &b"firstbyte/0.1.0"[..]),
        (b"Date", b"Wed, 17 Jan 2024 10:00:00 GMT"),
        (b"Content-Type", b"text/html"),
        (b"Content-Length", b"612"),
        (b"Last-Modified", b"Tue, 16 Jan 2024 09:00:00 GMT"),
        (b"ETag", b"\"65a64710-264\""),
        (b"Accept-Ranges", b"bytes"),
    ] {
        response.push(name, value);
    }
    response.body = BodyLength::Length(BODY_BYTES as u64);
    response.keep_alive = true;
    conn.send_head(response);
    conn.send_data(Chunk::from(Rc::clone(body)));
    conn.send_end(None);
    conn.transmit(out);
    let len = black_box(&*out).len();
    out.advance(len);
    conn.recycle(head);
    conn.finish() == Next::KeepAlive
}
