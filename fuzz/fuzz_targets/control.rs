//! What supervisor and worker say to each other: a message that can be read is written and read again as the same; whatever
//! a process that was taken over sends, the other one reads a message or an error.
//!
//! The first byte chooses what the rest is, the second how many descriptors come with it.
#![no_main]

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use driver::bundle::{FromWorker, ToWorker};
use driver::sys::fdpass;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&[kind, fds], rest)) = input.split_first_chunk::<2>() else {
        return;
    };
    match kind % 4 {
        0 => to_worker(rest, usize::from(fds) % 8),
        1 => from_worker(rest),
        // As they come over the socket.
        2 => drop(ToWorker::receive(raw(rest))),
        _ => drop(FromWorker::receive(raw(rest))),
    }
});

fn to_worker(payload: &[u8], fds: usize) {
    let null = || OwnedFd::from(File::open("/dev/null").expect("every system has it"));
    let Ok(message) = ToWorker::decode(payload, (0..fds).map(|_| null()).collect()) else {
        return;
    };
    let (written, used) = message.encode().expect("what was read can be written");
    assert_eq!(used.len(), fds);
    let again = ToWorker::decode(&written, (0..fds).map(|_| null()).collect());
    let again = again.expect("what was written can be read");
    assert_eq!(again.encode().expect("as before").0, written);
}

fn from_worker(payload: &[u8]) {
    let Some(message) = pass(payload) else { return };
    let (ours, theirs) = fdpass::pair().expect("there are descriptors");
    message.send(&ours).expect("it fits into the socket");
    assert_eq!(FromWorker::receive(&theirs).ok(), Some(message));
}

/// The message of a payload.
fn pass(payload: &[u8]) -> Option<FromWorker> {
    let (ours, theirs) = fdpass::pair().expect("there are descriptors");
    fdpass::send_msg(&ours, payload, &[]).ok()?;
    FromWorker::receive(&theirs).ok()
}

/// A socket at whose other end these bytes were written, and the end.
fn raw(bytes: &[u8]) -> OwnedFd {
    let (mut ours, theirs) = UnixStream::pair().expect("there are descriptors");
    ours.write_all(bytes).expect("they fit into the socket");
    theirs.into()
}
