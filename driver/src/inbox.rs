//! Reassembles messages of a worker from the bytes received so far.
//!
//! The supervisor must not wait for its worker, which clients may have taken over. So it reads the available bytes and
//! continues. A message has a limit of bytes, brings no descriptors, and has one deadline from its first byte to its
//! last.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use sys::fdpass;

use crate::bundle::FromWorker;

/// The bytes of the message that is coming.
#[derive(Debug, Default)]
pub struct Inbox {
    bytes: Vec<u8>,
    /// Since when it is coming.
    began: Option<Instant>,
}

impl Inbox {
    /// Reads available bytes once, without waiting; false if there are none.
    ///
    /// # Errors
    /// `UnexpectedEof` at the end of the stream; its own error.
    pub fn receive(&mut self, socket: impl AsFd) -> io::Result<bool> {
        let mut piece = [0; READ_BYTES];
        match fdpass::recv_now(socket, &mut piece)? {
            None => Ok(false),
            Some(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Some(count) => {
                self.bytes.extend_from_slice(&piece[..count]);
                Ok(true)
            }
        }
    }

    /// Takes the next message, if it is whole.
    ///
    /// # Errors
    /// Those of [`FromWorker::parse`]; nothing can be taken after one.
    pub fn next(&mut self, now: Instant) -> io::Result<Option<FromWorker>> {
        match FromWorker::parse(&self.bytes)? {
            Some((message, length)) => {
                self.bytes.drain(..length);
                self.began = None;
                Ok(Some(message))
            }
            None => {
                let coming = !self.bytes.is_empty();
                self.began = coming.then(|| self.began.unwrap_or(now));
                Ok(None)
            }
        }
    }

    /// When the message that is coming must be whole.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        self.began.map(|began| began + MESSAGE_TIME)
    }
}

/// Whether an error of a control socket means that the peer process has ended.
#[must_use]
pub fn is_end(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), UnexpectedEof | ConnectionReset | BrokenPipe)
}

/// Time limit of a message.
pub const MESSAGE_TIME: Duration = Duration::from_secs(5);
const READ_BYTES: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::MESSAGE_BYTES_MAX;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    fn message() -> FromWorker {
        FromWorker::Failed {
            generation: 7,
            message: "no".to_owned(),
        }
    }

    fn wire(messages: &[FromWorker]) -> Vec<u8> {
        let wire = |message: &FromWorker| message.encode().expect("encode");
        messages.iter().flat_map(wire).collect()
    }

    #[test]
    fn messages_are_taken_however_they_are_cut() {
        let sent = [
            FromWorker::Ready { generation: 1 },
            message(),
            FromWorker::Panicked { count: 1 },
        ];
        let bytes = wire(&sent);
        let now = Instant::now();
        for cut in 0..=bytes.len() {
            let (mut ours, theirs) = UnixStream::pair().expect("a pair");
            let mut inbox = Inbox::default();
            let mut received = Vec::new();
            for part in [&bytes[..cut], &bytes[cut..]] {
                ours.write_all(part).expect("room for it");
                assert_eq!(inbox.receive(&theirs).expect("open"), !part.is_empty());
                while let Some(message) = inbox.next(now).expect("messages") {
                    received.push(message);
                }
            }
            assert_eq!(received, sent, "cut at {cut}");
            assert_eq!(inbox.due(), None);
            drop(ours);
            let end = inbox.receive(&theirs).expect_err("closed");
            assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof);
        }
    }

    #[test]
    fn one_deadline_counts_from_the_first_byte() {
        let (mut ours, theirs) = UnixStream::pair().expect("a pair");
        let (mut inbox, start) = (Inbox::default(), Instant::now());
        assert!(!inbox.receive(&theirs).expect("open"), "it does not wait");
        for (n, byte) in (0..).zip(wire(&[message()])) {
            ours.write_all(&[byte]).expect("room for it");
            assert!(inbox.receive(&theirs).expect("open"));
            let at = start + Duration::from_secs(n);
            match inbox.next(at).expect("no fault") {
                None => assert_eq!(inbox.due(), Some(start + MESSAGE_TIME)),
                Some(whole) => assert_eq!(whole, message()),
            }
        }
        assert_eq!(inbox.due(), None);
    }

    #[test]
    fn longer_messages_than_the_limit_and_descriptors_are_refused() {
        let header = |bytes: usize, descriptors: u64| {
            [(bytes as u64).to_le_bytes(), descriptors.to_le_bytes()].concat()
        };
        let parsed = FromWorker::parse(&header(MESSAGE_BYTES_MAX, 0)).expect("at the limit");
        assert_eq!(parsed, None);
        for bad in [header(MESSAGE_BYTES_MAX + 1, 0), header(2, 1)] {
            let error = FromWorker::parse(&bad).expect_err("one past");
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
    }

    #[test]
    fn long_reasons_are_cut_to_what_the_supervisor_takes() {
        // Each of these is six bytes of JSON.
        let message = FromWorker::Failed {
            generation: 1,
            message: "\u{1}".repeat(100_000),
        };
        let bytes = message.encode().expect("encode");
        let (taken, length) = FromWorker::parse(&bytes).expect("fits").expect("whole");
        assert_eq!(length, bytes.len());
        assert!(matches!(taken, FromWorker::Failed { generation: 1, .. }));
    }
}
