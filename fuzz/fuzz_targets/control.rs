//! Messages between supervisor and worker: a parsed message is encoded and parsed again as an equal one.
//!
//! Any bytes of a compromised process are a message or an error for the other one. The first byte chooses the kind of
//! the rest, the second the number of descriptors.
#![no_main]

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use driver::bundle::{FromWorker, ToWorker};
use libfuzzer_sys::fuzz_target;
use sys::fdpass;

fuzz_target!(|input: &[u8]| {
    let Some((&[kind, fds], rest)) = input.split_first_chunk::<2>() else {
        return;
    };
    match kind % 4 {
        0 => to_worker(rest, usize::from(fds) % 8),
        1 => from_worker(rest),
        // Received from a socket.
        2 => drop(ToWorker::receive(raw(rest))),
        _ => drop(FromWorker::parse(rest)),
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

/// Parses a message with this text. A valid one is encoded to the same bytes.
fn from_worker(text: &[u8]) {
    let wire = [&fdpass::header(text.len(), 0)[..], text].concat();
    let Ok(Some((message, used))) = FromWorker::parse(&wire) else {
        return;
    };
    assert_eq!(used, wire.len());
    let written = message.encode().expect("what was read can be written");
    let again = FromWorker::parse(&written).expect("what was written can be read");
    let (again, used) = again.expect("it is whole");
    assert_eq!(used, written.len());
    assert_eq!(again.encode().expect("as before"), written);
    for end in [0, 1, written.len() - 1] {
        assert!(matches!(FromWorker::parse(&written[..end]), Ok(None)));
    }
}

/// Returns a socket that has received these bytes.
fn raw(bytes: &[u8]) -> OwnedFd {
    let (mut ours, theirs) = UnixStream::pair().expect("there are descriptors");
    ours.write_all(bytes).expect("they fit into the socket");
    theirs.into()
}
