//! Messages of any size with any number of descriptors over a UNIX-domain stream pair.
//!
//! A message is a header (the payload's length and the number of descriptors), the descriptors in
//! batches that each ride on one byte, and the payload. A stream keeps the descriptors of one batch
//! from being read with another's byte, so both sides always agree on what belongs where.
//! Both ends are blocking; a time limit keeps a peer that stopped reading or that sends half a
//! message from holding its partner. Source: unix(7), SCM_RIGHTS.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

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

/// Bounds how long one step of sending or receiving on `socket` may wait.
///
/// # Errors
/// `socket` is not a socket.
pub fn set_timeout(socket: impl AsFd, timeout: Duration) -> io::Result<()> {
    let socket = socket.as_fd();
    sockopt::set_socket_timeout(socket, sockopt::Timeout::Send, Some(timeout))?;
    sockopt::set_socket_timeout(socket, sockopt::Timeout::Recv, Some(timeout))?;
    Ok(())
}

/// Sends one message; the descriptors stay open here and are duplicated for the receiver.
///
/// # Errors
/// `InvalidInput` past `PAYLOAD_BYTES_MAX` or `FDS_MAX`; `TimedOut` when the peer does not read;
/// the socket's error, after which the stream is of no more use.
pub fn send_msg(socket: impl AsFd, payload: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    if payload.len() > PAYLOAD_BYTES_MAX || fds.len() > FDS_MAX {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "message is too large",
        ));
    }
    let socket = socket.as_fd();
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&(payload.len() as u64).to_le_bytes());
    header[8..].copy_from_slice(&(fds.len() as u64).to_le_bytes());
    send_all(socket, &header)?;
    for batch in fds.chunks(FDS_PER_BATCH) {
        send_batch(socket, batch)?;
    }
    send_all(socket, payload)
}

/// A message as it came.
#[derive(Debug, Default)]
pub struct Message {
    /// Its payload.
    pub payload: Vec<u8>,
    /// Its descriptors, closed on exec.
    pub fds: Vec<OwnedFd>,
    /// Descriptors for which this process had no room. Which of them are missing is not known.
    pub missing: usize,
}

/// Receives one message.
///
/// # Errors
/// `UnexpectedEof` when the peer closed; `InvalidData` for a header past the limits; `TimedOut` within a message. Nothing
/// can be received after an error.
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

fn parse_header(header: &[u8; HEADER_BYTES]) -> io::Result<(usize, usize)> {
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

fn send_batch(socket: BorrowedFd<'_>, batch: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_PER_BATCH))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(
        control.push(SendAncillaryMessage::ScmRights(batch)),
        "the space is that of the largest batch"
    );
    let byte = [IoSlice::new(&[0])];
    let flags = SendFlags::NOSIGNAL;
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

fn send_all(socket: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let sent = timed(retry(|| {
            rustix::net::send(socket, bytes, SendFlags::NOSIGNAL)
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

/// A socket with a time limit reports its passing as EAGAIN.
fn timed<T>(result: Result<T, Errno>) -> io::Result<T> {
    result.map_err(|error| match error {
        Errno::AGAIN => io::ErrorKind::TimedOut.into(),
        error => error.into(),
    })
}

const HEADER_BYTES: usize = 16;

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
            send_msg(&ours, &sent, &fds)?;
            send_msg(&ours, b"second", &fds[..1])?;
            send_msg(&ours, b"", &[])
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
    fn silent_peer_times_out() {
        let (ours, _theirs) = pair().expect("a pair");
        set_timeout(&ours, Duration::from_millis(1)).expect("a socket");
        let error = recv_msg(&ours).expect_err("nothing came");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let error = send_msg(&ours, &vec![0; 8 << 20], &[]).expect_err("nobody reads");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
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
