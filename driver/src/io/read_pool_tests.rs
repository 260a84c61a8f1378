//! Tests of fetching, with threads and files of the system.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use server_base::thread_pool::ThreadPools;
use server_base::waker::{WakeKey, WakeQueue, Waker};

use super::*;

const TMPFILE: i32 = 0o20_200_000;

fn range(len: u64, promised: u64) -> FileRange {
    let file = File::options()
        .read(true)
        .write(true)
        .custom_flags(TMPFILE)
        .open(std::env::temp_dir())
        .expect("a file without a name");
    file.set_len(len).expect("it is sparse");
    FileRange {
        file: Rc::new(file.into()),
        offset: 0,
        len: promised,
    }
}

/// A waker, and the receiver of its wakes.
fn waker() -> (RemoteWaker, Receiver<()>) {
    let (told, tells) = channel();
    let told = Mutex::new(told);
    let queue = WakeQueue::new(move || {
        let told = told.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = told.send(());
    });
    (Waker::new(WakeKey::default(), &queue).remote(), tells)
}

fn wait(tells: &Receiver<()>) {
    tells
        .recv_timeout(Duration::from_secs(8))
        .expect("it is woken");
}

#[test]
fn a_piece_is_read_and_its_connection_woken() {
    let pool = ThreadPools::default().default_pool();
    for (len, promised) in [(3 << 20, 3 << 20), (1, 1), (0, 4096)] {
        let range = range(len, promised);
        let (waker, tells) = waker();
        let fetch = fetch(&range, &pool, waker).expect("there is room");
        wait(&tells);
        assert!(fetch.is_done());
        let piece = promised.min(FETCH_BYTES);
        assert_eq!(cached_bytes(&range, piece), piece, "of {promised}");
    }
}

#[test]
fn a_fetch_that_is_dropped_is_not_begun() {
    let (waker, tells) = waker();
    let (fetch, work) = task(&range(4096, 4096), waker).expect("there is a descriptor");
    assert!(!fetch.is_done());
    drop(fetch);
    work();
    assert!(tells.try_recv().is_err(), "nobody is woken");
}

#[test]
fn a_fetch_of_a_file_that_was_cut_wakes() {
    let range = range(3 << 20, 3 << 20);
    let (waker, tells) = waker();
    let (fetch, work) = task(&range, waker).expect("there is a descriptor");
    let file = File::from(range.file.try_clone().expect("a descriptor"));
    file.set_len(10).expect("it is cut");
    work();
    wait(&tells);
    assert!(fetch.is_done());
}
