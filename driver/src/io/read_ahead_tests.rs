//! Tests of read-ahead without a disk.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engines::http::FileHandle;

use super::*;

const PIECE: u64 = 100;

fn file() -> FileHandle {
    Rc::new(File::open("/dev/null").expect("there is one").into())
}

/// The rest of a file of 1000 bytes, from `offset` on.
fn from(file: &FileHandle, offset: u64) -> FileRange {
    FileRange {
        file: Rc::clone(file),
        offset,
        len: 1000 - offset,
    }
}

fn fetch() -> (Fetch, Arc<AtomicBool>) {
    let done = Arc::new(AtomicBool::new(false));
    (Fetch::new(PIECE, Arc::clone(&done)), done)
}

/// A file after the read of its first piece, which a client waited for.
fn begun(file: &FileHandle) -> ReadAhead {
    let mut ahead = ReadAhead::default();
    let (fetch, done) = fetch();
    assert_eq!(ahead.step(&from(file, 0), true, PIECE), Step::Read);
    ahead.await_read(&from(file, 0), fetch);
    assert_eq!(ahead.step(&from(file, 0), true, PIECE), Step::Wait);
    done.store(true, Ordering::Release);
    ahead.take_done();
    assert_eq!(ahead.read_bytes(&from(file, 0)), Some(PIECE));
    ahead
}

#[test]
fn a_file_in_memory_is_none_of_its_business() {
    let mut ahead = ReadAhead::default();
    assert_eq!(ahead.step(&from(&file(), 0), false, PIECE), Step::Send);
    assert_eq!(ahead.read_bytes(&from(&file(), 0)), None);
}

#[test]
fn the_next_piece_is_read_when_something_of_the_last_was_taken() {
    let file = file();
    let mut ahead = begun(&file);
    let mut step = |at| ahead.step(&from(&file, at), false, PIECE);
    assert_eq!(step(0), Step::Send, "the client takes nothing");
    assert_eq!(step(1), Step::ReadAhead(PIECE));
    let (next, done) = fetch();
    ahead.read_on(&from(&file, 1), next);
    let mut step = |at| ahead.step(&from(&file, at), false, PIECE);
    assert_eq!(step(2), Step::Send, "one read at a time");
    assert_eq!(step(PIECE), Step::Wait);
    done.store(true, Ordering::Release);
    assert_eq!(step(PIECE), Step::Send);
    assert_eq!(step(PIECE + 1), Step::ReadAhead(2 * PIECE));
    assert_eq!(ahead.read_bytes(&from(&file, 150)), Some(50));
}

#[test]
fn no_more_than_a_piece_lies_ahead_of_the_one_that_is_sent() {
    let file = file();
    let mut ahead = begun(&file);
    let (next, done) = fetch();
    ahead.read_on(&from(&file, 1), next);
    done.store(true, Ordering::Release);
    for at in [2, PIECE] {
        let step = ahead.step(&from(&file, at), false, PIECE);
        assert_eq!(step, Step::Send, "{at}");
    }
}

#[test]
fn nothing_is_read_behind_the_end_of_a_range() {
    let file = file();
    let mut ahead = begun(&file);
    let last = |len| FileRange {
        len,
        ..from(&file, 50)
    };
    assert_eq!(ahead.step(&last(50), false, PIECE), Step::Send);
    assert_eq!(ahead.step(&last(51), false, PIECE), Step::ReadAhead(PIECE));
}

#[test]
fn a_piece_that_is_missing_again_is_read_again_and_then_here() {
    let file = file();
    let mut ahead = begun(&file);
    let first = ahead.step(&from(&file, 0), true, PIECE);
    assert_eq!(first, Step::ReadHere, "it was read for this place");
    assert_eq!(ahead.step(&from(&file, 30), true, PIECE), Step::Read);
    let (again, done) = fetch();
    ahead.await_read(&from(&file, 30), again);
    assert_eq!(ahead.read_bytes(&from(&file, 30)), Some(0));
    done.store(true, Ordering::Release);
    assert_eq!(ahead.step(&from(&file, 30), true, PIECE), Step::Send);
    assert_eq!(ahead.step(&from(&file, 30), true, PIECE), Step::ReadHere);
    assert_eq!(ahead.read_bytes(&from(&file, 30)), Some(PIECE));
}

#[test]
fn a_read_without_a_waiter_ends_no_pause() {
    let file = file();
    let mut ahead = begun(&file);
    let (next, done) = fetch();
    ahead.read_on(&from(&file, 1), next);
    done.store(true, Ordering::Release);
    assert!(!ahead.resume());
    assert_eq!(ahead.read_bytes(&from(&file, 1)), Some(2 * PIECE - 1));
    ahead.pause(7);
    ahead.pause(8);
    assert_eq!(ahead.paused_ms(), Some(7));
    assert!(ahead.resume());
    assert!(!ahead.resume(), "it has ended");
    assert_eq!(ahead.paused_ms(), None);
}

#[test]
fn parts_of_several_files_are_known_up_to_the_limit() {
    let mut ahead = ReadAhead::default();
    let files: Vec<FileHandle> = (0..=PARTS_MAX).map(|_| file()).collect();
    for file in &files {
        ahead.await_read(&from(file, 0), fetch().0);
        ahead.await_read(&from(file, 500), fetch().0);
    }
    assert_eq!(ahead.parts.len(), PARTS_MAX);
    assert_eq!(ahead.read_bytes(&from(&files[0], 0)), None);
    let last = &files[PARTS_MAX];
    assert_eq!(ahead.read_bytes(&from(last, 500)), Some(0));
    assert_eq!(ahead.read_bytes(&from(last, 501)), None);
}
