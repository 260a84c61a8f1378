//! Request bodies that are streams of a connection to a server (HTTP/2): windows, times, and the bytes that count.
//!
//! The handler of `/uploaded/BYTES` sends this many bytes of a body, and no end. That of `/paused/BYTES/MS` sends one byte
//! more in a piece of its own, and reads the response from this time on. Both report the failure of the attempt.

use engines::http::{BodyLength, Chunk};
use server_http::exchange::{Ctx, Exchange, State, Wait};
use server_upstream::request::{UpstreamEvent, UpstreamRequest};

use super::server_streams::{Server, secured, streams};
use super::servers::{UpstreamServers, route, spec};
use super::site::{body, get};

struct Upload {
    request: UpstreamRequest,
    /// When the response is read, monotonic milliseconds.
    open_ms: u64,
}

/// Passes on a request with a body without an end, and reads its response after `pause_ms`, if that is not 0. Returns
/// its failure and the bytes sent.
pub(crate) fn upload(
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    bytes: u64,
    pause_ms: u64,
) -> Option<String> {
    let upload = match x.extensions.take::<Upload>() {
        Some(upload) => upload,
        None => {
            let waker = x.waker(cx);
            let mut spec = spec();
            spec.body = BodyLength::Unknown;
            let request = cx.connector.call(route(2), spec, waker);
            request.send(Chunk::Static(&UPLOAD[..bytes as usize]));
            if pause_ms > 0 {
                request.set_window(0);
                request.send(Chunk::Static(b"u"));
            }
            Upload {
                request,
                open_ms: cx.clock.mono_ms + pause_ms,
            }
        }
    };
    if pause_ms > 0 && cx.clock.mono_ms >= upload.open_ms {
        upload.request.set_window(65_536);
    }
    while let Some(event) = upload.request.next() {
        if let UpstreamEvent::Failed(error) = event {
            let sent = upload.request.facts().sent_bytes;
            return Some(format!("{:?}, {sent} bytes sent", error.failure));
        }
    }
    let open_ms = upload.open_ms;
    x.extensions.push(upload);
    x.progress.state = State::Waiting(match cx.clock.mono_ms < open_ms {
        true => Wait::woken_or_until(open_ms),
        false => Wait::woken(),
    });
    None
}

/// Bytes of frames that the client has sent on stream 1, with their heads (RFC 9113 section 4.1).
fn sent_on_stream_1(behind: &UpstreamServers) -> usize {
    let sent = behind.with(0, |wire| {
        wire.fetch(usize::MAX);
        wire.sent().to_vec()
    });
    let (mut rest, mut bytes) = (&sent[PREFACE_BYTES..], 0);
    while let Some(head) = rest.get(..9) {
        let len =
            9 + (usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]));
        if head[5..] == [0, 0, 0, 1] {
            bytes += len;
        }
        rest = &rest[len..];
    }
    assert!(rest.is_empty(), "a part of a frame");
    bytes
}

/// SETTINGS without any, the first frame of a server (RFC 9113 section 3.4).
const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

/// WINDOW_UPDATE of a stream, or of the connection (RFC 9113 section 6.9).
fn window_update(stream: u8, bytes: u16) -> Vec<u8> {
    let [high, low] = bytes.to_be_bytes();
    vec![0, 0, 4, 8, 0, 0, 0, 0, stream, 0, 0, high, low]
}

/// HEADERS with `:status: 200` and without an end (RFC 9113 section 6.2).
const HEAD_OF_STREAM_1: [u8; 10] = [0, 0, 1, 1, 4, 0, 0, 0, 1, 0x88];

#[test]
fn a_response_that_stops_while_the_request_is_sent_has_the_read_timeout() {
    let (mut talk, behind, _) = streams(0, None);
    talk.send(get("/uploaded/100"));
    let mut server = Server::new(0, None);
    server.act(&behind);
    assert_eq!(talk.pass(10_000), "", "nothing has begun that could stop");
    behind.push(0, HEAD_OF_STREAM_1);
    assert_eq!(talk.turn(), "");
    assert_eq!(talk.pass(2999), "");
    assert!(body(&talk.pass(1)).starts_with("TimedOut, "));
}

#[test]
fn bytes_of_a_request_count_once_the_socket_has_taken_them() {
    let (mut talk, behind, _) = secured(true, true);
    assert_eq!(behind.count(), 1);
    assert!(body(&talk.pass(1000)).starts_with("TimedOut"));
    talk.send(get("/uploaded/100"));
    assert_eq!(body(&talk.pass(1000)), "TimedOut, 0 bytes sent");
}

/// The server cannot send while its client pauses. Meanwhile the request body goes on, 10 bytes at a time.
#[test]
fn a_response_that_was_paused_has_the_whole_read_timeout_again() {
    let (mut talk, behind, _) = streams(0, None);
    let go_on = || behind.push(0, [window_update(1, 10), window_update(0, 10)].concat());
    talk.send(get("/paused/70000/6000"));
    behind.push(0, [&SETTINGS[..], &HEAD_OF_STREAM_1].concat());
    for ms in [1500, 3000, 4500, 6000, 7500] {
        assert_eq!(talk.pass(1500), "", "{ms}");
        go_on();
        assert_eq!(talk.turn(), "", "{ms}");
    }
    assert_eq!(talk.pass(1499), "");
    assert!(body(&talk.pass(1)).starts_with("TimedOut, "));
}

#[test]
fn bytes_that_a_window_lets_through_count_and_renew_the_send_timeout() {
    let (mut talk, behind, _) = streams(0, None);
    talk.send(get("/uploaded/100000"));
    behind.push(0, SETTINGS);
    assert_eq!(talk.turn(), "");
    let first = sent_on_stream_1(&behind);
    assert!((65_535..66_000).contains(&first), "{first}");
    assert_eq!(talk.pass(1999), "");
    behind.push(
        0,
        [window_update(1, 10_000), window_update(0, 10_000)].concat(),
    );
    assert_eq!(talk.turn(), "");
    let all = sent_on_stream_1(&behind);
    assert_eq!(all, first + 9 + 10_000);
    assert_eq!(talk.pass(1999), "", "it goes on: the time begins anew");
    let answer = talk.pass(1);
    assert_eq!(body(&answer), format!("TimedOut, {all} bytes sent"));
}

const PREFACE_BYTES: usize = 24;
/// The body of all uploads.
static UPLOAD: [u8; 100_000] = [b'u'; 100_000];
