//! `TCP_INFO`: the kernel's data about a TCP connection.
//!
//! The struct has grown with the kernel, and a kernel fills as much of it as it knows and as fits. So it is read as
//! bytes, and a field is present if the result is long enough. Source: tcp(7); linux/tcp.h `struct tcp_info`.

use std::os::fd::RawFd;

/// The kernel's answer about a TCP connection, field by field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpInfo {
    bytes: [u8; ANSWER_BYTES],
    len: usize,
}

/// Reads the kernel's data about the connection of a socket; `None` if it is not a TCP socket.
#[must_use]
pub fn tcp_info(socket: RawFd) -> Option<TcpInfo> {
    let mut bytes = [0; ANSWER_BYTES];
    let mut len = ANSWER_BYTES as libc::socklen_t;
    // SAFETY: the pointers are valid for the call and `len` is the number of bytes there. Any number may be passed;
    // one that is no descriptor is an error.
    let result = unsafe {
        libc::getsockopt(
            socket,
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            bytes.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    let len = (len as usize).min(ANSWER_BYTES);
    (result == 0).then_some(TcpInfo { bytes, len })
}

impl TcpInfo {
    /// The field of four bytes at this offset of `struct tcp_info`; `None` if the kernel is too old for it.
    #[must_use]
    pub fn u32_at(&self, offset: usize) -> Option<u32> {
        self.at(offset).map(u32::from_ne_bytes)
    }

    /// The field of eight bytes at this offset of `struct tcp_info`; `None` if the kernel is too old for it.
    #[must_use]
    pub fn u64_at(&self, offset: usize) -> Option<u64> {
        self.at(offset).map(u64::from_ne_bytes)
    }

    /// Bytes acknowledged by the peer; on a connection begun by this side, one more for its first segment.
    #[must_use]
    pub fn bytes_acked(&self) -> Option<u64> {
        self.u64_at(120)
    }

    /// For a listening socket, the number of connections that wait to be accepted (`tcpi_unacked`).
    #[must_use]
    pub fn accept_queue(&self) -> Option<u32> {
        self.u32_at(24)
    }

    /// The recent minimum round-trip time, microseconds, if it has been measured.
    #[must_use]
    pub fn min_rtt_us(&self) -> Option<u32> {
        self.u32_at(148).filter(|us| *us != UNMEASURED)
    }

    /// Received segments with data, each counted alone even if the device has merged several.
    #[must_use]
    pub fn data_segs_in(&self) -> Option<u32> {
        self.u32_at(152)
    }

    fn at<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        let known = &self.bytes[..self.len];
        known.get(offset..offset + N)?.try_into().ok()
    }
}

/// Bytes of the struct to read.
const ANSWER_BYTES: usize = 220;
/// The minimum round-trip time before the first measurement.
const UNMEASURED: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_connection_is_described() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let mut client = TcpStream::connect(address).expect("it listens");
        let (mut served, _) = listener.accept().expect("a client came");
        served.write_all(b"x").expect("connected");
        client.read_exact(&mut [0]).expect("it was sent");
        let info = tcp_info(served.as_raw_fd()).expect("a TCP socket");
        let (rtt_us, snd_cwnd) = (info.u32_at(68), info.u32_at(80));
        assert!(rtt_us > Some(0) && snd_cwnd > Some(0), "{info:?}");
        assert!(info.min_rtt_us().is_none_or(|us| us > 0), "{info:?}");
        let info = tcp_info(client.as_raw_fd()).expect("a TCP socket");
        assert_eq!(info.data_segs_in(), Some(1), "{info:?}");
    }

    #[test]
    fn other_sockets_have_no_answer() {
        let (one, _other) = UnixStream::pair().expect("a socket pair");
        assert_eq!(tcp_info(one.as_raw_fd()), None);
        assert_eq!(tcp_info(-1), None);
    }

    #[test]
    fn what_an_older_kernel_does_not_tell_is_unknown() {
        let mut info = TcpInfo {
            bytes: [1; ANSWER_BYTES],
            len: 104,
        };
        assert_eq!(info.u32_at(100), Some(0x0101_0101));
        assert_eq!((info.bytes_acked(), info.min_rtt_us()), (None, None));
        info.len = 103;
        assert_eq!(info.u32_at(100), None);
        info.len = 191;
        assert!(info.u64_at(176).is_some() && info.u64_at(184).is_none());
    }

    #[test]
    fn round_trip_that_was_not_measured_is_unknown() {
        let info = TcpInfo {
            bytes: [0xff; ANSWER_BYTES],
            len: ANSWER_BYTES,
        };
        assert_eq!(info.min_rtt_us(), None);
    }
}
