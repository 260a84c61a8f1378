//! HTTP/2 servers that refuse requests without processing them (RFC 9113 sections 6.8 and 8.7).

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use engines::h2;

use super::super::options::MAX_ATTEMPTS;
use super::*;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
    [&head[..], payload].concat()
}

/// Streams of HTTP/2 requests.
fn requests(stream: &mut TcpStream) -> impl Iterator<Item = u32> + '_ {
    let mut preface = [0; 24];
    let mut is_there = stream.read_exact(&mut preface).is_ok();
    std::iter::from_fn(move || {
        while is_there {
            let mut head = [0; 9];
            is_there = stream.read_exact(&mut head).is_ok();
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            is_there &= stream.read_exact(&mut vec![0; length as usize]).is_ok();
            if is_there && head[3] == 1 {
                return Some(u32::from_be_bytes([head[5], head[6], head[7], head[8]]));
            }
        }
        None
    })
}

#[test]
fn requests_that_a_server_has_not_begun_are_sent_again() {
    let held: Mutex<Option<TcpStream>> = Mutex::default();
    let address = scripted(move |mut writer| {
        let mut reader = writer.try_clone().expect("a descriptor");
        let mut first = held.lock().expect("no panic");
        let is_first = first.is_none();
        let mut answered = 0;
        first.get_or_insert_with(|| writer.try_clone().expect("a descriptor"));
        drop(first);
        let _ = writer.write_all(&frame(4, 0, 0, &[]));
        for stream in requests(&mut reader) {
            // `:status: 200`, with the end of the stream or without.
            let head = |ends: u8| frame(1, 4 | ends, stream, &[0x88]);
            let sent = match (is_first, stream) {
                (true, 1) => {
                    let page = b"<img src=a><img src=b><img src=c><img src=d>";
                    [head(0), frame(0, 1, stream, page)].concat()
                }
                (true, 3) => head(0),
                (true, 5) => frame(3, 0, stream, &h2::REFUSED_STREAM.to_be_bytes()),
                // GOAWAY: streams after 5, present and future ones, are not processed.
                (true, 7) => frame(7, 0, 0, &[0, 0, 0, 5, 0, 0, 0, 0]),
                _ => head(1),
            };
            let _ = writer.write_all(&sent);
            answered += 1;
            // The stream that is in progress ends when all others have been answered elsewhere.
            if !is_first && answered == 3 {
                let first = held.lock().expect("no panic");
                let _ = first
                    .as_ref()
                    .map(|mut first| first.write_all(&frame(0, 1, 3, &[])));
            }
        }
    });
    let visit = cold(&options(address, Protocol::H2, None));
    for (path, connection) in [("/a", 0), ("/b", 1), ("/c", 1), ("/d", 1)] {
        let one = find(&visit, path);
        let found = (one.status, one.error.as_deref(), one.connection);
        assert_eq!(found, (200, None, Some(connection)), "{path}");
    }
}

#[test]
fn requests_are_sent_again_up_to_a_limit() {
    for refusals in [MAX_ATTEMPTS - 1, MAX_ATTEMPTS] {
        let refused = AtomicUsize::new(0);
        let address = scripted(move |mut writer| {
            let mut reader = writer.try_clone().expect("a descriptor");
            let _ = writer.write_all(&frame(4, 0, 0, &[]));
            for stream in requests(&mut reader) {
                let head = |ends: u8| frame(1, 4 | ends, stream, &[0x88]);
                let sent = match stream {
                    1 => [head(0), frame(0, 1, stream, b"<img src=a>")].concat(),
                    _ if refused.fetch_add(1, Ordering::Relaxed) < refusals => {
                        frame(3, 0, stream, &h2::REFUSED_STREAM.to_be_bytes())
                    }
                    _ => head(1),
                };
                let _ = writer.write_all(&sent);
            }
        });
        let visit = cold(&options(address, Protocol::H2, None));
        let error = find(&visit, "/a").error.as_deref();
        let told = (refusals == MAX_ATTEMPTS).then_some("the server did not process the request");
        assert_eq!(error, told, "{refusals}");
    }
}
