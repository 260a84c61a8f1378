//! Kernel timestamps of sent bytes: when a byte left the machine, and when its acknowledgement arrived.
//!
//! They are requested with a send and refer to its last byte. They arrive in the socket's error queue, which a
//! poller reports as an error. A retransmitted byte is reported again. The clock is that of
//! [`super::clock::wall_us`]. Absent: times of network cards and of queueing disciplines.
//!
//! Source: Linux, Documentation/networking/timestamping.rst; recvmsg(2), `MSG_ERRQUEUE`; cmsg(3).

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd};

use super::check;

/// Event of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// It was handed to the network device.
    Left,
    /// The peer acknowledged it.
    Acked,
}

/// A timestamp of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The event.
    pub passed: Passed,
    /// When, microseconds since 1970.
    pub wall_us: u64,
}

/// Lets [`send`] request times on this socket.
///
/// # Errors
/// The kernel has none for such a socket.
pub fn enable(socket: impl AsFd) -> io::Result<()> {
    let flags = libc::SOF_TIMESTAMPING_SOFTWARE | libc::SOF_TIMESTAMPING_OPT_TSONLY;
    // SAFETY: the pointer is valid for the call and for as many bytes as the length.
    check(unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPING,
            (&raw const flags).cast(),
            size_of_val(&flags) as libc::socklen_t,
        )
    })
    .map(|_| ())
}

/// Sends bytes with MSG_MORE and requests the times of the last of them; returns the number that the socket took, 0
/// if it is full. If it did not take all, the times are those of the last one taken.
///
/// # Errors
/// The socket's error.
pub fn send(socket: impl AsFd, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
    let flags = libc::SOF_TIMESTAMPING_TX_SOFTWARE | libc::SOF_TIMESTAMPING_TX_ACK;
    let mut control = Control::new();
    let len = control.put(libc::SO_TIMESTAMPING, flags);
    // SAFETY: all zeroes is a valid value of this struct of numbers and pointers.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = bytes.as_ptr().cast_mut().cast();
    message.msg_iovlen = bytes.len() as _;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = len as _;
    loop {
        // SAFETY: an `IoSlice` has the layout of an `iovec`; slices and control bytes outlive the call, have the
        // given lengths, and are only read.
        let sent = unsafe {
            libc::sendmsg(
                socket.as_fd().as_raw_fd(),
                &raw const message,
                libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT | libc::MSG_MORE,
            )
        };
        if let Ok(sent) = usize::try_from(sent) {
            return Ok(sent);
        }
        let error = io::Error::last_os_error();
        match error.kind() {
            io::ErrorKind::Interrupted => {}
            io::ErrorKind::WouldBlock => return Ok(0),
            _ => return Err(error),
        }
    }
}

/// Takes the next time from the socket's error queue; other messages are skipped.
pub fn next(socket: impl AsFd) -> Option<Stamp> {
    for _ in 0..PASSED_OVER_MAX {
        let mut control = Control::new();
        let len = receive(socket.as_fd().as_raw_fd(), &mut control)?;
        if let Some(stamp) = stamp(&control.0[..len]) {
            return Some(stamp);
        }
    }
    None
}

/// Receives one message of the error queue; returns the number of its control bytes, the only part used.
fn receive(socket: i32, control: &mut Control) -> Option<usize> {
    // SAFETY: all zeroes is a valid value of this struct of numbers and pointers.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control.0) as _;
    // SAFETY: the control bytes live until the call is over and are as long as is said; there is no room for others.
    let received = unsafe {
        libc::recvmsg(
            socket,
            &raw mut message,
            libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT,
        )
    };
    (received >= 0).then(|| (message.msg_controllen as usize).min(size_of_val(&control.0)))
}

/// The time in the control bytes of a message, and its sort.
fn stamp(mut control: &[u8]) -> Option<Stamp> {
    let (mut passed, mut wall_us) = (None, None);
    while let Some(len) = word(control, 0) {
        let (level, kind) = (int(control, WORD)?, int(control, WORD + 4)?);
        let data = control.get(HEADER..len)?;
        match (level, kind) {
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => {
                let (seconds, nanos) = (word(data, 0)?, word(data, WORD)?);
                wall_us = Some(seconds as u64 * 1_000_000 + nanos as u64 / 1000);
            }
            // struct sock_extended_err: an error number, four bytes (the first is the origin), and its sort.
            (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR)
                if data.get(4) == Some(&ORIGIN_TIMESTAMPING) =>
            {
                passed = match int(data, 8)? {
                    SENT => Some(Passed::Left),
                    ACKED => Some(Passed::Acked),
                    _ => None,
                };
            }
            _ => {}
        }
        control = control.get(len.next_multiple_of(WORD)..).unwrap_or(&[]);
    }
    Some(Stamp {
        passed: passed?,
        wall_us: wall_us.filter(|us| *us > 0)?,
    })
}

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at + WORD)?.try_into().ok()?;
    Some(usize::from_ne_bytes(bytes))
}

fn int(bytes: &[u8], at: usize) -> Option<i32> {
    let bytes = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(i32::from_ne_bytes(bytes))
}

/// Control bytes, aligned as their headers must be.
#[repr(align(8))]
struct Control([u8; CONTROL_BYTES]);

impl Control {
    const fn new() -> Self {
        Self([0; CONTROL_BYTES])
    }

    /// Puts one message of SOL_SOCKET with a number; returns its length.
    fn put(&mut self, kind: i32, value: u32) -> usize {
        let bytes = &mut self.0;
        bytes[..WORD].copy_from_slice(&(HEADER + size_of_val(&value)).to_ne_bytes());
        bytes[WORD..WORD + 4].copy_from_slice(&libc::SOL_SOCKET.to_ne_bytes());
        bytes[WORD + 4..HEADER].copy_from_slice(&kind.to_ne_bytes());
        bytes[HEADER..HEADER + 4].copy_from_slice(&value.to_ne_bytes());
        HEADER + WORD
    }
}

/// A length in a header of control bytes, and their alignment.
const WORD: usize = size_of::<usize>();
/// Such a header: length, level, kind.
const HEADER: usize = WORD + 8;
/// A time (three pairs of words), its sort with an address, and their headers, with room to spare.
const CONTROL_BYTES: usize = 192;
/// Messages without a time until the search ends; no others are requested, so there are none.
const PASSED_OVER_MAX: usize = 8;
/// `SO_EE_ORIGIN_TIMESTAMPING`, `SCM_TSTAMP_SND` and `SCM_TSTAMP_ACK` of linux/errqueue.h.
const ORIGIN_TIMESTAMPING: u8 = 4;
const SENT: i32 = 0;
const ACKED: i32 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::wall_us;
    use crate::poll::{Events, Interest, Poller};
    use crate::tcp_info::tcp_info;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    fn pair(address: &str) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(address).expect("a port is free");
        let client = TcpStream::connect(listener.local_addr().expect("it is bound"));
        let (served, _) = listener.accept().expect("a client came");
        served.set_nodelay(true).expect("a TCP socket");
        (client.expect("it listens"), served)
    }

    /// Takes stamps until the acknowledgement's.
    fn timestamps(served: &TcpStream) -> Vec<Stamp> {
        let poller = Poller::new().expect("epoll");
        let mut events = Events::with_capacity(1);
        poller
            .add(served, 1, Interest::Connection)
            .expect("it can be polled");
        let mut all = Vec::new();
        loop {
            while let Some(stamp) = next(served) {
                all.push(stamp);
                if stamp.passed == Passed::Acked {
                    return all;
                }
            }
            poller.wait(&mut events, Some(5000)).expect("epoll works");
            assert!(!events.is_empty(), "no acknowledgement within 5 s: {all:?}");
        }
    }

    fn first_byte_is_stamped(address: &str) {
        let (mut client, mut served) = pair(address);
        enable(&served).expect("TCP sockets have stamps");
        let before = wall_us();
        let head = [IoSlice::new(b"le"), IoSlice::new(b"adH")];
        assert_eq!(send(&served, &head).expect("connected"), 5);
        // `tcpi_unacked`
        let segments_before = tcp_info(served.as_raw_fd()).and_then(|info| info.u32_at(24));
        assert_eq!(segments_before, Some(0), "it waits for what follows");
        served.write_all(b"TTP/1.1").expect("connected");
        let mut got = [0; 12];
        client.read_exact(&mut got).expect("it was sent");
        assert_eq!(&got, b"leadHTTP/1.1");
        // An answer carries the acknowledgement.
        client.write_all(b"x").expect("connected");
        let all = timestamps(&served);
        let passed: Vec<_> = all.iter().map(|stamp| stamp.passed).collect();
        assert_eq!(passed, [Passed::Left, Passed::Acked]);
        assert!(before <= all[0].wall_us && all[0].wall_us <= all[1].wall_us);
        assert!(all[1].wall_us <= wall_us());
    }

    #[test]
    fn leaving_and_acknowledgement_of_a_byte_are_told() {
        first_byte_is_stamped("127.0.0.1:0");
    }

    #[test]
    fn so_they_are_over_ipv6() {
        if TcpListener::bind("[::1]:0").is_ok() {
            first_byte_is_stamped("[::1]:0");
        }
    }

    #[test]
    fn other_sends_are_not_told_of() {
        let (mut client, mut served) = pair("127.0.0.1:0");
        enable(&served).expect("TCP sockets have stamps");
        served.write_all(b"x").expect("connected");
        client.read_exact(&mut [0]).expect("it was sent");
        assert_eq!(next(&served), None);
    }

    #[test]
    fn unix_sockets_have_no_times() {
        let (one, _other) = UnixStream::pair().expect("a socket pair");
        assert_eq!(next(&one), None);
    }

    #[test]
    fn control_bytes_that_are_cut_tell_nothing() {
        let mut control = Control::new();
        let len = control.put(libc::SO_TIMESTAMPING, 1);
        let bytes = control.0[..len].to_vec();
        for end in 0..len {
            assert_eq!(stamp(&bytes[..end]), None);
        }
        let mut long = bytes;
        long[..WORD].copy_from_slice(&usize::MAX.to_ne_bytes());
        assert_eq!(stamp(&long), None);
        long[..WORD].copy_from_slice(&0_usize.to_ne_bytes());
        assert_eq!(stamp(&long), None);
    }
}
