//! `TCP_INFO` of a connection as the core takes it, which knows no system calls.

use server_base::transport::TcpInfo;
use sys::tcp_info;

/// Asks the kernel about the connection of a socket; `None` where the socket is none of TCP.
#[must_use]
pub fn tcp_info(socket: i32) -> Option<TcpInfo> {
    tcp_info::tcp_info(socket).map(|info| TcpInfo {
        rtt_us: info.rtt_us,
        rttvar_us: info.rttvar_us,
        snd_cwnd: info.snd_cwnd,
        rcv_space: info.rcv_space,
        unacked: info.unacked,
        total_retrans: info.total_retrans,
        notsent_bytes: info.notsent_bytes,
        dsack_dups: info.dsack_dups,
        min_rtt_us: info.min_rtt_us,
        delivery_rate: info.delivery_rate,
        busy_time_us: info.busy_time_us,
        rwnd_limited_us: info.rwnd_limited_us,
        sndbuf_limited_us: info.sndbuf_limited_us,
    })
}
