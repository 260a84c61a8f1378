//! Fills: progress, wakes, ends, limits.

use std::io::Write;
use std::os::unix::fs::FileExt;
use std::sync::mpsc;

use server_base::waker::{WakeKey, WakeQueue, Waker};

use super::*;
use crate::disk::{self, Header};

fn waker(queue: &WakeQueue, owner: u64) -> Waker {
    Waker::new(WakeKey { owner, stream: 0 }, queue)
}

fn head() -> FillHead {
    let file = File::open("/dev/null").expect("every system has it");
    FillHead::new((*b"prefix").into(), Arc::new(file))
}

#[test]
fn consumers_are_woken_once_by_each_progress() {
    let queue = WakeQueue::default();
    let (one, two) = (waker(&queue, 1), waker(&queue, 2));
    let fill = Arc::new(Fill::new(3, 40));
    assert_eq!((fill.epoch(), fill.started_ms()), (3, 40));
    let readers = [(); 2].map(|()| FillReader::join(&fill).expect("there are few"));
    let seen = readers[0].progress();
    assert_eq!(seen, Progress::default());
    assert!(readers[0].wait(seen, || one.remote()));
    assert!(readers[1].wait(seen, || two.remote()));
    fill.advance(0);
    assert!(!one.is_woken(), "nothing has changed");
    fill.set_head(head());
    assert!(one.take() && two.take());
    assert_eq!(
        fill.head().map(|head| &head.prefix[..]),
        Some(&b"prefix"[..])
    );
    assert!(!readers[0].wait(seen, || unreachable!("there is progress")));
    let seen = readers[0].progress();
    assert!(readers[0].wait(seen, || one.remote()));
    assert!(readers[0].wait(seen, || one.remote()), "it waits again");
    fill.advance(10);
    assert!(one.take() && !two.take());
    fill.advance(5);
    assert!(!one.take(), "it does not wait");
    assert_eq!(readers[1].progress().available, 15);
    let seen = readers[1].progress();
    assert!(readers[1].wait(seen, || two.remote()));
    fill.finish();
    assert!(two.take());
    assert_eq!(readers[1].progress().end, Some(FillEnd::Done));
}

#[test]
fn the_first_end_counts() {
    type End = fn(&Fill);
    let ends: [(End, FillEnd); 4] = [
        (Fill::finish, FillEnd::Done),
        (Fill::fail, FillEnd::Failed),
        (Fill::settle, FillEnd::Settled),
        (Fill::refuse, FillEnd::NotStorable),
    ];
    for (first, end) in ends {
        let fill = Fill::new(0, 0);
        first(&fill);
        for (second, _) in ends {
            second(&fill);
        }
        assert_eq!(fill.progress().end, Some(end));
    }
}

#[test]
fn a_consumer_that_has_left_is_not_woken() {
    let queue = WakeQueue::default();
    let one = waker(&queue, 1);
    let fill = Arc::new(Fill::new(0, 0));
    let reader = FillReader::join(&fill).expect("there are few");
    assert!(reader.wait(reader.progress(), || one.remote()));
    drop(reader);
    assert_eq!(fill.readers(), 0);
    fill.advance(1);
    assert!(!one.is_woken());
}

#[test]
fn consumers_are_limited() {
    let fill = Arc::new(Fill::new(0, 0));
    let mut readers = Vec::new();
    for count in 1..=READERS_MAX {
        readers.push(FillReader::join(&fill).expect("the limit is not reached"));
        assert_eq!(fill.readers(), count);
    }
    assert_eq!(FillReader::join(&fill).err(), Some(TooManyReaders));
    drop(readers.pop());
    assert_eq!(fill.readers(), READERS_MAX - 1);
    readers.push(FillReader::join(&fill).expect("one has left"));
    assert_eq!(FillReader::join(&fill).err(), Some(TooManyReaders));
}

#[test]
fn readers_of_other_threads_read_all_bytes_of_a_growing_file() {
    const PIECES: u32 = 2000;
    let path = std::env::temp_dir().join(format!("firstbyte-fill-{}", std::process::id()));
    let mut file = File::create(&path).expect("a temporary file");
    let read = File::open(&path).expect("it was created");
    std::fs::remove_file(&path).expect("it was created");
    let fill = Arc::new(Fill::new(0, 0));
    let consumers: Vec<_> = (0..4)
        .map(|n| {
            let reader = FillReader::join(&fill).expect("there are few");
            std::thread::spawn(move || consume(&reader, n))
        })
        .collect();
    fill.set_head(FillHead::new(Box::default(), Arc::new(read)));
    for n in 0..PIECES {
        file.write_all(&n.to_le_bytes()).expect("there is space");
        fill.advance(4);
    }
    fill.finish();
    let expected: Vec<u8> = (0..PIECES).flat_map(u32::to_le_bytes).collect();
    for consumer in consumers {
        assert_eq!(consumer.join().expect("it does not panic"), expected);
    }
    assert_eq!(fill.readers(), 0);
}

/// Reads a fill to its end on its own thread, woken by progress alone.
fn consume(reader: &FillReader, owner: u64) -> Vec<u8> {
    let (notify, notified) = mpsc::channel();
    let queue = WakeQueue::new(move || notify.send(()).unwrap_or_default());
    let waker = waker(&queue, owner);
    let mut bytes = Vec::new();
    loop {
        let progress = reader.progress();
        if let Some(head) = reader.fill().head() {
            let (at, end) = (bytes.len(), progress.available as usize);
            bytes.resize(end, 0);
            let read = head.file.read_exact_at(&mut bytes[at..], at as u64);
            read.expect("bytes are published after they are written");
        }
        if progress.end.is_some() {
            return bytes;
        }
        if reader.wait(progress, || waker.remote()) {
            notified.recv().expect("a wake follows");
            queue.receive();
            queue.take();
        }
    }
}

#[test]
fn consumers_share_the_parsed_head_of_their_key() {
    let [own, other] =
        ["key", "other"].map(|text| CacheKey::new(text.as_bytes()).expect("it is short"));
    let response = b"HTTP/1.1 200 OK\r\nX-Own: 1\r\n\r\n";
    let prefix = disk::encode(&Header::default(), &own, response, None).expect("it is short");
    let file = File::open("/dev/null").expect("every system has it");
    let head = FillHead::new(prefix.into(), Arc::new(file));
    // A failure with another key, as the first use or later, is not kept.
    assert!(head.parse(&other, HeadFormat::Http).is_none());
    let first = head
        .parse(&own, HeadFormat::Http)
        .expect("it is that of the key");
    let second = head
        .parse(&own, HeadFormat::Http)
        .expect("it is that of the key");
    assert!(Arc::ptr_eq(&first, &second), "it is parsed once");
    assert!(head.parse(&other, HeadFormat::Http).is_none());
}
