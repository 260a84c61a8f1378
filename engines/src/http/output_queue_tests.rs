//! Contents of an output queue: order, lengths, memory.

use super::*;
use std::os::fd::OwnedFd;
use std::rc::Rc;

/// A file range; any descriptor will do, since it is never read.
fn file(offset: u64, len: u64) -> Chunk {
    let (reader, _) = std::io::pipe().unwrap();
    Chunk::File(FileRange {
        file: Rc::new(OwnedFd::from(reader)),
        offset,
        len,
    })
}

/// Queued output: bytes as text, file ranges as "<offset+len>".
fn drain(queue: &mut OutputQueue) -> String {
    let mut out = Vec::new();
    loop {
        queue.drain_bytes(&mut out);
        let Some(Front::File(range)) = queue.front() else {
            break;
        };
        let len = range.len;
        out.extend(format!("<{}+{len}>", range.offset).bytes());
        queue.advance(len);
    }
    assert_eq!(queue.len(), 0);
    String::from_utf8(out).unwrap()
}

fn head_and_file() -> OutputQueue {
    let mut queue = OutputQueue::default();
    queue.push_bytes(b"head ");
    queue.push(file(7, 4));
    queue
}

#[test]
fn small_pieces_become_one_run_and_large_ones_are_not_copied() {
    let mut queue = OutputQueue::default();
    queue.push_bytes(b"a");
    queue.push(Chunk::Owned(vec![b'b'; COPY_BYTES]));
    assert!(matches!(queue.front(), Some(Front::Bytes(bytes)) if bytes.len() == COPY_BYTES + 1));
    let large: Rc<[u8]> = Rc::from(vec![b'c'; COPY_BYTES + 1]);
    queue.push(Chunk::from(Rc::clone(&large)));
    queue.push(Chunk::Static(b""));
    assert_eq!(queue.pieces.len(), 2);
    assert_eq!(queue.len(), 2 * COPY_BYTES as u64 + 2);
    queue.advance(COPY_BYTES as u64 + 1);
    let Some(Front::Bytes(front)) = queue.front() else {
        panic!("memory is left")
    };
    assert!(std::ptr::eq(front, &*large));
}

#[test]
fn pieces_leave_in_order_in_steps_of_any_size() {
    for step in 1..12 {
        let mut queue = head_and_file();
        queue.push_bytes(b" tail");
        let mut left = 14;
        while left > 0 {
            assert_eq!(queue.len(), left);
            queue.advance(step);
            left = left.saturating_sub(step);
        }
        assert!(queue.is_empty() && queue.front().is_none());
    }
    let mut queue = head_and_file();
    queue.advance(6);
    assert_eq!(drain(&mut queue), "<8+3>");
    queue.advance(99);
    assert!(queue.is_empty());
}

#[test]
fn slices_are_the_memory_before_the_first_file() {
    let mut queue = OutputQueue::default();
    queue.push_bytes(b"head ");
    queue.push(Chunk::Owned(vec![b'x'; COPY_BYTES + 1]));
    queue.push_bytes(b"more");
    queue.push(file(0, 1));
    queue.push_bytes(b"tail");
    queue.advance(2);
    let mut slices = [IoSlice::new(&[]); 8];
    assert_eq!(queue.slices(&mut slices), 3);
    assert_eq!(
        (&*slices[0], slices[1].len(), &*slices[2]),
        (&b"ad "[..], COPY_BYTES + 1, &b"more"[..])
    );
    let mut few = [IoSlice::new(&[]); 1];
    assert_eq!(queue.slices(&mut few), 1);
}

#[test]
fn append_moves_everything_behind_what_is_there() {
    let mut first = OutputQueue::default();
    let mut second = head_and_file();
    second.push_bytes(b" tail");
    second.advance(2);
    first.append(&mut second);
    assert!(second.is_empty());
    let mut third = head_and_file();
    third.push(Chunk::Owned(vec![b'x'; COPY_BYTES + 1]));
    first.append(&mut third);
    assert!(third.is_empty());
    let wanted = format!("ad <7+4> tailhead <7+4>{}", "x".repeat(COPY_BYTES + 1));
    assert_eq!(drain(&mut first), wanted);
}

#[test]
fn the_first_file_can_be_replaced_by_its_bytes() {
    let read = |range: &FileRange, run: &mut Vec<u8>| {
        run.extend(std::iter::repeat_n(b'f', range.len as usize));
        Ok::<(), ()>(())
    };
    let mut queue = head_and_file();
    assert_eq!(queue.inline_front_file(read), Ok(()));
    assert_eq!(queue.pieces.len(), 1, "head and file are one run");
    assert_eq!(drain(&mut queue), "head ffff");

    let mut queue = head_and_file();
    queue.push_bytes(b" middle ");
    queue.push(file(0, 2));
    queue.push_bytes(b" tail");
    queue.advance(1);
    assert_eq!(queue.inline_front_file(read), Ok(()));
    assert_eq!(queue.len(), 23);
    assert_eq!(drain(&mut queue), "ead ffff middle <0+2> tail");
    assert_eq!(
        queue.inline_front_file(read),
        Ok(()),
        "without a file nothing happens"
    );
}

#[test]
fn a_file_that_cannot_be_read_stays() {
    let mut queue = head_and_file();
    queue.push_bytes(b" tail");
    let result = queue.inline_front_file(|_, run| {
        run.extend_from_slice(b"half");
        Err("cannot read")
    });
    assert_eq!(result, Err("cannot read"));
    assert_eq!(drain(&mut queue), "head <7+4> tail");
}

#[test]
fn what_waits_for_long_takes_no_more_memory_than_it_has_bytes() {
    let mut queue = OutputQueue::default();
    queue.push_bytes(&[b'h'; 3000]);
    let mut large = Vec::with_capacity(1 << 16);
    large.resize(40_000, b'x');
    queue.push(Chunk::Owned(large));
    queue.push_bytes(b" run");
    queue.advance(3000 + 39_000);
    queue.push(file(7, 4));
    queue.shrink();
    let Some(Piece::Memory(Chunk::Owned(bytes), 0)) = queue.pieces.front() else {
        panic!("the large piece is in front");
    };
    assert!(bytes.capacity() < 2000 && queue.run.capacity() < 100);
    queue.advance(999);
    queue.push_bytes(b"end");
    assert_eq!(queue.len(), 12);
    queue.shrink();
    assert_eq!(drain(&mut queue), "x run<7+4>end");
    queue.shrink();
    assert!(queue.is_empty());
}

#[test]
fn a_gather_that_never_empties_does_not_grow() {
    let mut queue = OutputQueue::default();
    queue.push_bytes(&[b'x'; 100]);
    for _ in 0..10_000 {
        queue.push_bytes(&[b'y'; 100]);
        queue.advance(100);
    }
    assert_eq!(queue.len(), 100);
    assert!(queue.run.len() < 4 * COPY_BYTES);
}
