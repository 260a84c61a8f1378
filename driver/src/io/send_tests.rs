//! Tests of sending on socket pairs.

use super::*;
use std::io::{Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::rc::Rc;

use engines::http::Chunk;

fn pair() -> (UnixStream, UnixStream) {
    let (ours, peer) = UnixStream::pair().expect("a socket pair");
    ours.set_nonblocking(true).expect("non-blocking");
    peer.set_nonblocking(true).expect("non-blocking");
    (ours, peer)
}

fn in_chunks(max_bytes: u64) -> Pieces {
    Pieces {
        max_bytes,
        nopush: false,
        now_ms: 0,
    }
}

fn send(
    socket: impl AsFd,
    gather: &mut OutputQueue,
    limit: u64,
    pieces: Pieces,
    missing: Missing<'_>,
) -> io::Result<Sent> {
    send_gather(
        socket,
        gather,
        limit,
        pieces,
        missing,
        &mut PageCacheHints::default(),
    )
}

fn file_of(bytes: &[u8]) -> std::fs::File {
    let path = std::env::temp_dir().join(format!(
        "firstbyte-socket-{}-{:?}-{}",
        std::process::id(),
        std::thread::current().id(),
        bytes.len()
    ));
    let mut file = std::fs::File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)
        .expect("a temporary file");
    std::fs::remove_file(&path).expect("remove");
    file.write_all(bytes).expect("write");
    file.rewind().expect("rewind");
    file
}

fn range(bytes: &[u8], offset: u64, len: u64) -> Chunk {
    let file = Rc::new(OwnedFd::from(file_of(bytes)));
    Chunk::File(FileRange { file, offset, len })
}

fn read_available(peer: &mut UnixStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Fails with WouldBlock, after all available bytes.
    let _ = peer.read_to_end(&mut bytes);
    bytes
}

#[test]
fn small_file_leaves_with_the_head_in_one_send() {
    // A datagram socket preserves the boundaries of sends.
    let (ours, peer) = std::os::unix::net::UnixDatagram::pair().expect("a pair");
    let mut gather = OutputQueue::default();
    gather.push_bytes(b"head ");
    gather.push(range(b"xxbody", 2, 4));
    let sent = send(&ours, &mut gather, u64::MAX, in_chunks(0), Missing::Wait).expect("send");
    assert_eq!(
        sent,
        Sent {
            bytes: 9,
            blocked: false
        }
    );
    let mut buffer = [0; 64];
    let len = peer.recv(&mut buffer).expect("receive");
    assert_eq!(&buffer[..len], b"head body");
}

#[test]
fn large_file_and_full_socket_arrive_whole_and_in_order() {
    let (ours, mut peer) = pair();
    let body: Vec<u8> = (0..3_000_000u32).map(|i| (i % 251) as u8).collect();
    let mut gather = OutputQueue::default();
    gather.push_bytes(b"head");
    gather.push(range(&body, 0, body.len() as u64));
    gather.push_bytes(b"tail");
    let (mut received, mut blocked) = (Vec::new(), 0);
    while !gather.is_empty() {
        let sent = send(
            &ours,
            &mut gather,
            u64::MAX,
            in_chunks(64 * 1024),
            Missing::Wait,
        )
        .expect("send");
        blocked += usize::from(sent.blocked);
        received.extend(read_available(&mut peer));
    }
    received.extend(read_available(&mut peer));
    assert!(blocked > 0, "3 MB do not fit a socket's buffer");
    assert_eq!(received.len(), body.len() + 8);
    assert!(received.starts_with(b"head") && received.ends_with(b"tail"));
    assert_eq!(received[4..4 + body.len()], body[..]);
}

#[test]
fn limit_is_kept_in_memory_and_in_files() {
    let (ours, mut peer) = pair();
    let body = vec![7; 100_000];
    let mut gather = OutputQueue::default();
    gather.push_bytes(b"0123456789");
    gather.push(range(&body, 0, 100_000));
    for (limit, total) in [(4, 4), (10, 14), (1_000, 1_014), (0, 1_014)] {
        let sent = send(&ours, &mut gather, limit, in_chunks(0), Missing::Wait).expect("send");
        assert_eq!(
            sent,
            Sent {
                bytes: limit,
                blocked: false
            }
        );
        assert_eq!(gather.len(), 100_010 - total);
    }
    assert_eq!(read_available(&mut peer).len(), 1_014);
}

#[test]
fn file_shorter_than_promised_is_unexpected_eof() {
    for len in [50, INLINE_FILE_BYTES + 1] {
        let (ours, _peer) = pair();
        let mut gather = OutputQueue::default();
        gather.push_bytes(b"head");
        gather.push(range(b"short", 0, len));
        let error =
            send(&ours, &mut gather, u64::MAX, in_chunks(0), Missing::Wait).expect_err("too short");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}

#[test]
fn closed_peer_is_an_error_and_no_signal() {
    let (ours, peer) = pair();
    drop(peer);
    let mut gather = OutputQueue::default();
    gather.push_bytes(b"x");
    let error =
        send(&ours, &mut gather, u64::MAX, in_chunks(0), Missing::Wait).expect_err("closed");
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}

#[test]
fn the_head_of_a_large_file_waits_for_no_page() {
    for (len, ready, nopush, shares) in [
        (HEAD_ALONE_BYTES - 1, 1, false, true),
        (HEAD_ALONE_BYTES, 1, false, false),
        (HEAD_ALONE_BYTES, 1, true, true),
        (HEAD_ALONE_BYTES - 1, 0, false, false),
        (HEAD_ALONE_BYTES, 0, true, false),
    ] {
        let pieces = Pieces {
            max_bytes: 0,
            nopush,
            now_ms: 0,
        };
        let mut next = NextFile::new(len, ready);
        assert_eq!(next.shares_packet(pieces), shares, "{len} {ready} {nopush}");
    }
}

#[test]
fn bytes_read_by_a_pool_are_sent_after_the_read() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::super::read_pool::Fetch;

    for len in [1000, INLINE_FILE_BYTES + 1] {
        let (ours, mut peer) = pair();
        let body = range(&vec![1; len as usize], 0, len);
        let Chunk::File(whole) = body.clone() else {
            panic!("it is of a file");
        };
        let done = Arc::new(AtomicBool::new(false));
        let mut ahead = ReadAhead::default();
        ahead.await_read(&whole, Fetch::new(len - 1, Arc::clone(&done)));
        let mut gather = OutputQueue::default();
        gather.push_bytes(b"head");
        gather.push(body);
        // The pages are cached, but the read has not been reported as done.
        let mut sent = |ahead: &ReadAhead| {
            let missing = Missing::Stop(Some(ahead));
            let sent = send(&ours, &mut gather, u64::MAX, in_chunks(0), missing);
            sent.expect("send").bytes
        };
        assert_eq!(sent(&ahead), 4);
        assert_eq!(sent(&ahead), 0);
        done.store(true, Ordering::Release);
        ahead.take_done();
        assert_eq!(sent(&ahead), len - 1);
        assert_eq!(sent(&ahead), 0);
        assert_eq!(read_available(&mut peer).len() as u64, len + 3);
    }
}
