//! Reads `TCP_INFO` of a connection and maps offsets of `struct tcp_info` to the server's own type.
//!
//! Source: linux/tcp.h.

use server_base::transport::TcpInfo;
use sys::tcp_info;

/// Returns the kernel's statistics of a socket's connection; `None` if it is no TCP socket.
#[must_use]
pub fn tcp_info(socket: i32) -> Option<TcpInfo> {
    let info = tcp_info::tcp_info(socket)?;
    Some(TcpInfo {
        unacked: info.u32_at(24)?,
        rtt_us: info.u32_at(68)?,
        rttvar_us: info.u32_at(72)?,
        snd_cwnd: info.u32_at(80)?,
        rcv_space: info.u32_at(96)?,
        total_retrans: info.u32_at(100)?,
        notsent_bytes: info.u32_at(144).unwrap_or(0),
        min_rtt_us: info.min_rtt_us(),
        delivery_rate: info.u64_at(160),
        busy_time_us: info.u64_at(168),
        rwnd_limited_us: info.u64_at(176),
        sndbuf_limited_us: info.u64_at(184),
        bytes_acked: info.bytes_acked().unwrap_or(0),
        bytes_received: info.u64_at(128).unwrap_or(0),
        dsack_dups: info.u32_at(216),
    })
}
