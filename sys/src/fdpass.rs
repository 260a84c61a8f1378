//! Messages of any size with any number of descriptors over a UNIX-domain stream pair.
//!
//! A message is a header (the payload's length and the number of descriptors), the descriptors in batches with one
//! byte each, and the payload. A stream keeps the descriptors of one batch from being read with another's byte, so
//! both sides always match descriptors to messages. Both ends are blocking; a time limit keeps a stalled or slow
//! peer from blocking its partner. Source: unix(7), SCM_RIGHTS.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, sockopt,
};

use super::retry;

/// Makes the two ends of a control connection: blocking, closed on exec.
///
/// # Errors
/// The descriptor limit is reached.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC;
    Ok(rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        flags,
        None,
    )?)
}

/// Sends one message; the descriptors stay open here and are duplicated for the receiver.
///
/// # Errors
/// `InvalidInput` past `PAYLOAD_BYTES_MAX` or `FDS_MAX`; `TimedOut` if the peer has not taken all of it within
/// `limit`; the socket's error. After either of the latter two the stream must not be used again.
pub fn send_msg(
    socket: impl AsFd,
    payload: &[u8],
    fds: &[BorrowedFd<'_>],
    limit: Duration,
) -> io::Result<()> {
    if payload.len() > PAYLOAD_BYTES_MAX || fds.len() > FDS_MAX {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "message is too large",
        ));
    }
    let socket = socket.as_fd();
    let until = Some(Instant::now() + limit);
    send_all(socket, &header(payload.len(), fds.len()), until)?;
    for batch in fds.chunks(FDS_PER_BATCH) {
        send_batch(socket, batch, until)?;
    }
    send_all(socket, payload, until)
}

/// Sends bytes, and waits without a time limit.
///
/// # Errors
/// The socket's.
pub fn send_bytes(socket: impl AsFd, bytes: &[u8]) -> io::Result<()> {
    send_all(socket.as_fd(), bytes, None)
}

/// Receives bytes without waiting; `None` if there are none yet. Descriptors that came with them are dropped.
///
/// # Errors
/// The socket's.
pub fn recv_now(socket: impl AsFd, bytes: &mut [u8]) -> io::Result<Option<usize>> {
    let flags = RecvFlags::DONTWAIT;
    match retry(|| rustix::net::recv(socket.as_fd(), &mut *bytes, flags)) {
        Ok((received, _)) => Ok(Some(received)),
        Err(Errno::AGAIN) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the header of a message.
#[must_use]
pub fn header(payload_bytes: usize, descriptors: usize) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&(payload_bytes as u64).to_le_bytes());
    header[8..].copy_from_slice(&(descriptors as u64).to_le_bytes());
    header
}

/// A message as it came.
#[derive(Debug, Default)]
pub struct Message {
    /// Its payload.
    pub payload: Vec<u8>,
    /// Its descriptors, closed on exec.
    pub fds: Vec<OwnedFd>,
    /// Number of descriptors for which this process had no room. It is unknown which of them are missing.
    pub missing: usize,
}

/// Receives one message.
///
/// # Errors
/// `UnexpectedEof` if the peer closed; `InvalidData` for a header past the limits; `TimedOut` within a message.
/// Nothing can be received after an error.
pub fn recv_msg(socket: impl AsFd) -> io::Result<Message> {
    let socket = socket.as_fd();
    let mut header = [0; HEADER_BYTES];
    receive_all(socket, &mut header)?;
    let (len, count) = parse_header(&header)?;
    let mut message = Message::default();
    let mut left = count;
    while left > 0 {
        let expected = left.min(FDS_PER_BATCH);
        receive_batch(socket, &mut message.fds)?;
        left -= expected;
    }
    // With the limit reached the kernel passes as many as there is room for, and drops the others.
    message.missing = count.saturating_sub(message.fds.len());
    message.payload = vec![0; len];
    receive_all(socket, &mut message.payload)?;
    Ok(message)
}

/// The payload's length and the number of descriptors.
///
/// # Errors
/// `InvalidData` past `PAYLOAD_BYTES_MAX` or `FDS_MAX`.
pub fn parse_header(header: &[u8; HEADER_BYTES]) -> io::Result<(usize, usize)> {
    let number = |bytes: &[u8]| {
        let value = bytes
            .iter()
            .rev()
            .fold(0, |value, byte| (value << 8) | u64::from(*byte));
        usize::try_from(value).unwrap_or(usize::MAX)
    };
    let (len, count) = (number(&header[..8]), number(&header[8..]));
    if len > PAYLOAD_BYTES_MAX || count > FDS_MAX {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "message is too large",
        ));
    }
    Ok((len, count))
}

fn send_batch(
    socket: BorrowedFd<'_>,
    batch: &[BorrowedFd<'_>],
    until: Option<Instant>,
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_PER_BATCH))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(
        control.push(SendAncillaryMessage::ScmRights(batch)),
        "the space is that of the largest batch"
    );
    let byte = [IoSlice::new(&[0])];
    let flags = SendFlags::NOSIGNAL;
    wait_until(socket, until)?;
    timed(retry(|| {
        rustix::net::sendmsg(socket, &byte, &mut control, flags)
    }))?;
    Ok(())
}

fn receive_batch(socket: BorrowedFd<'_>, fds: &mut Vec<OwnedFd>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_PER_BATCH))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = timed(retry(|| {
        rustix::net::recvmsg(
            socket,
            &mut [IoSliceMut::new(&mut byte)],
            &mut control,
            flags,
        )
    }))?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(passed) = message {
            fds.extend(passed);
        }
    }
    if received.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

fn send_all(socket: BorrowedFd<'_>, mut bytes: &[u8], until: Option<Instant>) -> io::Result<()> {
    while !bytes.is_empty() {
        wait_until(socket, until)?;
        // The kernel restarts the timeout for each part of a call; small pieces enforce the remaining time.
        let piece = &bytes[..bytes.len().min(PIECE_BYTES)];
        let sent = timed(retry(|| {
            rustix::net::send(socket, piece, SendFlags::NOSIGNAL)
        }))?;
        bytes = &bytes[sent..];
    }
    Ok(())
}

fn receive_all(socket: BorrowedFd<'_>, mut bytes: &mut [u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let (received, _) = timed(retry(|| {
            rustix::net::recv(socket, &mut *bytes, RecvFlags::empty())
        }))?;
        if received == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes = &mut bytes[received..];
    }
    Ok(())
}

/// Limits the duration of the next step of sending.
fn wait_until(socket: BorrowedFd<'_>, until: Option<Instant>) -> io::Result<()> {
    let Some(until) = until else { return Ok(()) };
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        // To the system no time at all means any time.
        return Err(io::ErrorKind::TimedOut.into());
    }
    sockopt::set_socket_timeout(socket, sockopt::Timeout::Send, Some(left))?;
    Ok(())
}

/// A socket with a time limit reports its passing as EAGAIN.
fn timed<T>(result: Result<T, Errno>) -> io::Result<T> {
    result.map_err(|error| match error {
        Errno::AGAIN => io::ErrorKind::TimedOut.into(),
        error => error.into(),
    })
}

/// Bytes before the descriptors and the payload of every message.
pub const HEADER_BYTES: usize = 16;

/// Bytes sent at once.
const PIECE_BYTES: usize = 16 << 10;

/// The kernel's SCM_MAX_FD.
const FDS_PER_BATCH: usize = 253;

/// The most descriptors of one message.
pub const FDS_MAX: usize = 16_384;

/// The largest payload: far more than any configuration, far less than memory.
pub const PAYLOAD_BYTES_MAX: usize = 256 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_megabyte_and_three_hundred_descriptors_arrive_in_order() {
        const LIMIT: Duration = Duration::from_secs(60);
        let (ours, theirs) = pair().expect("a pair");
        let payload: Vec<u8> = (0..1_048_576u32).map(|i| (i * 31 % 255) as u8).collect();
        let files: Vec<File> = (0..300)
            .map(|i| File::open(if i % 3 == 0 { "/dev/null" } else { "/dev/zero" }))
            .collect::<io::Result<_>>()
            .expect("device files");
        let expected: Vec<u64> = files
            .iter()
            .map(|file| file.metadata().expect("fstat").rdev())
            .collect();
        let sent = payload.clone();
        let sender = std::thread::spawn(move || {
            let fds: Vec<BorrowedFd<'_>> = files.iter().map(AsFd::as_fd).collect();
            send_msg(&ours, &sent, &fds, LIMIT)?;
            send_msg(&ours, b"second", &fds[..1], LIMIT)?;
            send_msg(&ours, b"", &[], LIMIT)
        });
        let received = recv_msg(&theirs).expect("receive");
        assert_eq!((received.payload, received.missing), (payload, 0));
        let devices: Vec<u64> = received
            .fds
            .into_iter()
            .map(|fd| File::from(fd).metadata().expect("fstat").rdev())
            .collect();
        assert_eq!(devices, expected);
        let second = recv_msg(&theirs).expect("receive");
        assert_eq!((second.payload, second.fds.len()), (b"second".to_vec(), 1));
        assert_eq!(recv_msg(&theirs).expect("receive").payload, b"");
        sender.join().expect("no panic").expect("send");
        let end = recv_msg(&theirs).expect_err("closed");
        assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn peer_that_reads_little_or_nothing_does_not_hold_the_sender() {
        const LIMIT: Duration = Duration::from_millis(300);
        for reads in [0, 1_000_000] {
            let (ours, theirs) = pair().expect("a pair");
            let reader = std::thread::spawn(move || {
                let mut piece = [0; 16 << 10];
                for _ in 0..reads {
                    // Each step of sending makes progress, and the whole would take minutes.
                    std::thread::park_timeout(Duration::from_millis(50));
                    match rustix::net::recv(&theirs, &mut piece, RecvFlags::empty()) {
                        Ok((1.., _)) => {}
                        _ => return None,
                    }
                }
                Some(theirs)
            });
            let began = Instant::now();
            let error = send_msg(&ours, &vec![0; 32 << 20], &[], LIMIT).expect_err("too slow");
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            assert!(began.elapsed() < 10 * LIMIT, "{:?}", began.elapsed());
            drop(ours);
            let _theirs = reader.join().expect("no panic");
        }
    }

    #[test]
    fn header_past_the_limit_is_refused() {
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(&(PAYLOAD_BYTES_MAX as u64).to_le_bytes());
        header[8..].copy_from_slice(&(FDS_MAX as u64).to_le_bytes());
        assert_eq!(
            parse_header(&header).expect("at the limit"),
            (PAYLOAD_BYTES_MAX, FDS_MAX)
        );
        header[8..].copy_from_slice(&(FDS_MAX as u64 + 1).to_le_bytes());
        parse_header(&header).expect_err("one past");
        header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(&(PAYLOAD_BYTES_MAX as u64 + 1).to_le_bytes());
        parse_header(&header).expect_err("one past");
    }
}
