//! Receive buffers that are passed on with their bytes, and buffers that stay.

use super::*;

/// A driver's buffer with these bytes.
fn buffer(capacity: usize, parts: &[&[u8]]) -> Vec<u8> {
    let mut buffer = Vec::with_capacity(capacity);
    parts.iter().for_each(|part| buffer.extend_from_slice(part));
    buffer
}

/// The reported data, with its address.
fn data(client: &mut Client) -> Vec<(*const u8, usize)> {
    let events = std::iter::from_fn(|| client.event());
    let data = events.filter_map(|event| match event {
        ClientEvent::Data { bytes, .. } => Some((bytes.as_ptr(), bytes.len())),
        _ => None,
    });
    data.collect()
}

const LENGTH: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n";
const CLOSE: &[u8] = b"HTTP/1.1 200 OK\r\n\r\n";
const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n186A0\r\n";

#[test]
fn full_buffers_of_a_body_are_handed_on() {
    for head in [LENGTH, CLOSE, CHUNKED] {
        let mut client = asked("GET");
        for parts in [&[head, &[b'x'; 30_000]][..], &[&[b'x'; 30_000]]] {
            let mut read = buffer(32 << 10, parts);
            let at = read.as_ptr();
            client.receive_buffer(&mut read);
            assert_eq!(
                data(&mut client),
                [(at, 30_000)],
                "it is told where it lies"
            );
            assert_eq!(read.capacity(), 0);
        }
    }
}

#[test]
fn small_pieces_leave_the_buffer_with_the_driver() {
    for head in [LENGTH, CLOSE, CHUNKED] {
        let mut client = asked("GET");
        for parts in [&[head, b"abc"][..], &[b"abc"]] {
            let mut read = buffer(32 << 10, parts);
            let at = read.as_ptr();
            client.receive_buffer(&mut read);
            assert!(read.is_empty() && read.capacity() == 32 << 10);
            let told = data(&mut client);
            assert!(matches!(told[..], [(other, 3)] if other != at));
        }
    }
}

#[test]
fn chunk_framing_is_squeezed_out_of_a_buffer() {
    let chunk = [&b"3e8\r\n"[..], &[b'x'; 1000], b"\r\n"].concat();
    let mut read = buffer(
        32 << 10,
        &[
            &CHUNKED[..CHUNKED.len() - 7],
            &chunk.repeat(20),
            b"0\r\n\r\n",
        ],
    );
    let at = read.as_ptr();
    let mut client = asked("GET");
    client.receive_buffer(&mut read);
    assert_eq!(data(&mut client), [(at, 20_000)]);
    assert!(client.is_reusable());
    // A buffer with few remaining bytes is not kept alive by them.
    let mut read = buffer(
        32 << 10,
        &[&CHUNKED[..CHUNKED.len() - 7], &b"1\r\nx\r\n".repeat(3000)],
    );
    let mut client = asked("GET");
    client.receive_buffer(&mut read);
    let Some(ClientEvent::Data { bytes, .. }) = std::iter::from_fn(|| client.event()).last() else {
        panic!("data is told")
    };
    assert!(
        bytes.len() == 3000 && bytes.capacity() < 6000,
        "{}",
        bytes.capacity()
    );
}

#[test]
fn bytes_behind_a_body_do_not_come_along() {
    let mut client = asked("GET");
    let mut read = buffer(64, &[b"HTTP/1.1 200\r\nContent-Length: 3\r\n\r\nabcd"]);
    client.receive_buffer(&mut read);
    let lines = ["200 Content-Length=3", "+abc", "end 3", "DataAfterLength"];
    assert_eq!(events(&mut client), lines);
    assert!(read.is_empty());
}

#[test]
fn half_a_head_is_kept_from_buffer_to_buffer() {
    let mut client = asked("GET");
    let mut told = Vec::new();
    for part in [
        &b"HTTP/1.1 200 OK\r\nContent-Le"[..],
        b"ngth: 3\r\n\r\na",
        b"bc",
    ] {
        client.receive_buffer(&mut part.to_vec());
        client.check_invariants();
        told.extend(events(&mut client));
    }
    assert_eq!(told, ["200 Content-Length=3", "+a", "+bc", "end 3"]);
}

/// An idle connection costs the driver next to nothing, so a client is made or reset for each request.
#[test]
fn client_is_small() {
    let bytes = size_of::<Client>();
    assert!(bytes <= 448, "{bytes}");
}
