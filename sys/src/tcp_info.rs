//! `TCP_INFO`: what the kernel knows of a TCP connection.
//!
//! The struct has grown with the kernel, and a kernel fills as much of it as it has and is asked for. So it is asked for
//! as bytes, and a field is there if the answer is long enough. Source: tcp(7); linux/tcp.h `struct tcp_info`.

use std::os::fd::RawFd;

/// State of a TCP connection as the kernel knows it. Values that an older kernel does not report, or that are not
/// measured yet, are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Smoothed round-trip time, microseconds.
    pub rtt_us: u32,
    /// Its mean deviation, microseconds.
    pub rttvar_us: u32,
    /// Congestion window, segments.
    pub snd_cwnd: u32,
    /// Receive window announced to the peer, in bytes.
    pub rcv_space: u32,
    /// Segments that the peer has not acknowledged.
    pub unacked: u32,
    /// Segments sent again since the connection began.
    pub total_retrans: u32,
    /// Bytes that wait to be sent for the first time.
    pub notsent_bytes: u32,
    /// Bytes that the peer has acknowledged; on a connection that this side has begun, one more for its first segment.
    pub bytes_acked: Option<u64>,
    /// Segments sent again of which the peer said that it had them already.
    pub dsack_dups: Option<u32>,
    /// The least round-trip time of late, microseconds.
    pub min_rtt_us: Option<u32>,
    /// The latest rate at which the peer got data, bytes per second.
    pub delivery_rate: Option<u64>,
    /// Time with data to send or to be acknowledged, in microseconds.
    pub busy_time_us: Option<u64>,
    /// Time limited by the peer's window, in microseconds.
    pub rwnd_limited_us: Option<u64>,
    /// Time limited by our send buffer, in microseconds.
    pub sndbuf_limited_us: Option<u64>,
}

/// Asks the kernel about the connection of a socket; `None` where the socket is none of TCP.
#[must_use]
pub fn tcp_info(socket: RawFd) -> Option<TcpInfo> {
    let mut answer = Answer {
        bytes: [0; ANSWER_BYTES],
        len: ANSWER_BYTES,
    };
    let mut len = ANSWER_BYTES as libc::socklen_t;
    // SAFETY: the pointers are valid for the call and `len` says how many bytes there are; any number may be asked about,
    // and one that is no descriptor gives an error.
    let result = unsafe {
        libc::getsockopt(
            socket,
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            answer.bytes.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    if result != 0 {
        return None;
    }
    answer.len = (len as usize).min(ANSWER_BYTES);
    answer.read()
}

struct Answer {
    bytes: [u8; ANSWER_BYTES],
    len: usize,
}

impl Answer {
    fn read(&self) -> Option<TcpInfo> {
        Some(TcpInfo {
            unacked: self.u32_at(24)?,
            rtt_us: self.u32_at(68)?,
            rttvar_us: self.u32_at(72)?,
            snd_cwnd: self.u32_at(80)?,
            rcv_space: self.u32_at(96)?,
            total_retrans: self.u32_at(100)?,
            notsent_bytes: self.u32_at(144).unwrap_or(0),
            bytes_acked: self.u64_at(120),
            dsack_dups: self.u32_at(216),
            min_rtt_us: self.u32_at(148).filter(|us| *us != UNMEASURED),
            delivery_rate: self.u64_at(160),
            busy_time_us: self.u64_at(168),
            rwnd_limited_us: self.u64_at(176),
            sndbuf_limited_us: self.u64_at(184),
        })
    }

    fn at<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        let known = &self.bytes[..self.len];
        known.get(offset..offset + N)?.try_into().ok()
    }

    fn u32_at(&self, offset: usize) -> Option<u32> {
        self.at(offset).map(u32::from_ne_bytes)
    }

    fn u64_at(&self, offset: usize) -> Option<u64> {
        self.at(offset).map(u64::from_ne_bytes)
    }
}

/// Bytes of the struct up to and with the last field that is read.
const ANSWER_BYTES: usize = 220;
/// The least round-trip time before there was one.
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
        assert!(info.rtt_us > 0 && info.snd_cwnd > 0, "{info:?}");
        assert!(info.min_rtt_us.is_none_or(|us| us > 0), "{info:?}");
        assert_eq!(info.total_retrans, 0);
    }

    #[test]
    fn other_sockets_have_no_answer() {
        let (one, _other) = UnixStream::pair().expect("a socket pair");
        assert_eq!(tcp_info(one.as_raw_fd()), None);
        assert_eq!(tcp_info(-1), None);
    }

    #[test]
    fn what_an_older_kernel_does_not_tell_is_unknown() {
        let mut answer = Answer {
            bytes: [1; ANSWER_BYTES],
            len: 104,
        };
        let info = answer.read().expect("the oldest fields are there");
        assert_eq!(info.total_retrans, 0x0101_0101);
        assert_eq!((info.min_rtt_us, info.delivery_rate), (None, None));
        answer.len = 103;
        assert_eq!(answer.read(), None);
        answer.len = 191;
        let info = answer.read().expect("the oldest fields are there");
        assert!(info.rwnd_limited_us.is_some() && info.sndbuf_limited_us.is_none());
    }

    #[test]
    fn round_trip_that_was_not_measured_is_unknown() {
        let answer = Answer {
            bytes: [0xff; ANSWER_BYTES],
            len: ANSWER_BYTES,
        };
        assert_eq!(answer.read().and_then(|info| info.min_rtt_us), None);
    }
}
