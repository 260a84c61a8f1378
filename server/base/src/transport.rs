//! The kernel's data on a connection's transport, for variables.
//!
//! A server has no sockets of its own: an exchange has the number of its connection's socket. The driver lends a function that
//! reads the kernel's data ([`crate::context::Env::tcp_info`]). It is called only when a variable is evaluated.
//!
//! Source: tcp(7) `TCP_INFO`; linux/tcp.h `struct tcp_info`, with the same units.

/// The kernel's data on a TCP connection. Fields that an older kernel lacks, or that have not been measured yet, are
/// `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Smoothed round-trip time, microseconds.
    pub rtt_us: u32,
    /// Its mean deviation, microseconds.
    pub rttvar_us: u32,
    /// Congestion window, segments.
    pub snd_cwnd: u32,
    /// The receive buffer that the peer may fill, bytes.
    pub rcv_space: u32,
    /// Segments that the peer has not acknowledged.
    pub unacked: u32,
    /// Segments sent again since the connection began.
    pub total_retrans: u32,
    /// Bytes that wait to be sent for the first time.
    pub notsent_bytes: u32,
    /// Bytes that the peer has acknowledged.
    pub bytes_acked: u64,
    /// Bytes received from the peer.
    pub bytes_received: u64,
    /// Retransmitted segments that the peer reported as duplicates.
    pub dsack_dups: Option<u32>,
    /// The recent minimum of the round-trip time, microseconds.
    pub min_rtt_us: Option<u32>,
    /// The latest rate at which the peer got data, bytes per second.
    pub delivery_rate: Option<u64>,
    /// Time with something to send or to be acknowledged, microseconds.
    pub busy_time_us: Option<u64>,
    /// Time that sending was limited by the peer's window, microseconds.
    pub rwnd_limited_us: Option<u64>,
    /// Time that sending was limited by our send buffer, microseconds.
    pub sndbuf_limited_us: Option<u64>,
}

/// Reads the data of the socket of this number; `None` if it is no TCP socket.
pub type ReadTcpInfo = fn(i32) -> Option<TcpInfo>;

/// The number of a socket that is none.
pub const NO_SOCKET: i32 = -1;
