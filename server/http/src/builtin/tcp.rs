//! Variables with the kernel's statistics of the connection.
//!
//! `$tcpinfo_rtt`, `$tcpinfo_rttvar`, `$tcpinfo_snd_cwnd` and `$tcpinfo_rcv_space` are nginx's; the others are
//! ours. They have no value on a UNIX-domain socket.
//!
//! Source: nginx documentation, `ngx_http_core_module`, "Embedded Variables"; tcp(7).

use server_base::transport::TcpInfo;

use super::out::{Out, put_number};
use crate::exchange::{Ctx, Exchange};
use crate::variables;
use crate::vars::Variable;

/// The variables.
pub(super) const VARIABLES: &[Variable] = variables! {
    "tcpinfo_rtt": "smoothed round-trip time of the client's connection, microseconds"
        => |x, cx, _, o| show(x, cx, |info| Some(info.rtt_us.into()), o);
    "tcpinfo_rttvar": "mean deviation of the round-trip time, microseconds"
        => |x, cx, _, o| show(x, cx, |info| Some(info.rttvar_us.into()), o);
    "tcpinfo_snd_cwnd": "congestion window of the client's connection, segments"
        => |x, cx, _, o| show(x, cx, |info| Some(info.snd_cwnd.into()), o);
    "tcpinfo_rcv_space": "receive window for data of the client, bytes"
        => |x, cx, _, o| show(x, cx, |info| Some(info.rcv_space.into()), o);
    "tcpinfo_min_rtt": "recent minimum of the round-trip time, microseconds"
        => |x, cx, _, o| show(x, cx, |info| info.min_rtt_us.map(u64::from), o);
    "tcpinfo_delivery_rate": "latest rate of delivery to the client, bytes per second"
        => |x, cx, _, o| show(x, cx, |info| info.delivery_rate, o);
    "tcpinfo_total_retrans": "retransmitted segments of the client's connection"
        => |x, cx, _, o| show(x, cx, |info| Some(info.total_retrans.into()), o);
    "tcpinfo_busy_time": "time with data in flight to the client, microseconds"
        => |x, cx, _, o| show(x, cx, |info| info.busy_time_us, o);
    "tcpinfo_rwnd_limited": "time in which the client's window delayed data, microseconds"
        => |x, cx, _, o| show(x, cx, |info| info.rwnd_limited_us, o);
    "tcpinfo_sndbuf_limited": "time in which the send buffer delayed data, microseconds"
        => |x, cx, _, o| show(x, cx, |info| info.sndbuf_limited_us, o);
};

fn show(x: &Exchange, cx: &Ctx<'_>, field: fn(&TcpInfo) -> Option<u64>, out: &mut Out) -> bool {
    let info = cx.env.tcp_info.and_then(|read| read(x.client.socket));
    let value = info.as_ref().and_then(field);
    value.is_some_and(|value| put_number(out, value))
}
