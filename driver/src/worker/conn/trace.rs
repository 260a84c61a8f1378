//! Debug log of a connection, in nginx's words: bytes received and sent, its end.
//!
//! Source: nginx documentation, "A debugging log".

use std::fmt;

use server_base::errlog::{Level, Record, Topics};
use server_http::debug_http;
use server_http::exchange::Exchange;

use super::state::{Conn, State};
use crate::worker::net::Net;
use crate::worker::shared::Shared;
use crate::worker::state::serving::Protocol;

/// Logs a debugging message about a connection; its arguments are evaluated only if a log wants it.
macro_rules! debug_conn {
    ($topics:ident, $c:expr, $sh:expr, $($text:tt)+) => {
        if server_base::errlog::debugging() {
            $crate::worker::conn::trace::write(
                $c,
                $sh,
                server_base::errlog::Topics::$topics,
                format_args!($($text)+),
            );
        }
    };
}
pub(super) use debug_conn;

/// Writes to the log of HTTP/1's exchange in progress, or else of the port's default server.
#[cold]
pub(crate) fn write<N: Net>(
    c: &Conn<N::Socket>,
    sh: &Shared<N>,
    topics: Topics,
    text: fmt::Arguments<'_>,
) {
    if let State::Serving(Protocol::H1(h1)) = &c.state
        && let Some(x) = h1.exchanges.front()
    {
        return x.debug(topics, text);
    }
    let Some(log) = sh.generation.http.port_log(c.port()) else {
        return;
    };
    log.record(&Record {
        level: Level::Debug,
        topics,
        connection: Some(c.serial),
        message: text,
        request: None,
        everywhere: c.debug,
    });
}

/// Bytes have come; 0 is the end.
#[inline]
pub(super) fn received<N: Net>(c: &Conn<N::Socket>, sh: &Shared<N>, n: usize) {
    let most = sh.scratch.len();
    debug_conn!(
        EVENT,
        c,
        sh,
        "recv: fd:{} {n} of {most}",
        sh.net.number(&c.socket)
    );
}

/// Logs the bytes sent and those still queued.
#[inline]
pub(super) fn sent<N: Net>(c: &Conn<N::Socket>, sh: &Shared<N>, bytes: u64, left: u64) {
    let fd = sh.net.number(&c.socket);
    debug_conn!(EVENT, c, sh, "send: fd:{fd} {bytes} of {}", bytes + left);
}

/// The body of a response has ended.
#[inline]
pub(super) fn finalized(x: &Exchange) {
    debug_http!(x, "http finalize request: 0, {} a:1, c:1", x.shown_uri());
}

/// The head of a response, on one line.
pub(super) struct Head<'a>(pub(super) &'a engines::http::ResponseHead);

impl fmt::Display for Head<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use server_base::errlog::Shown;
        let Self(head) = self;
        write!(f, "HTTP/1.1 {} {}", head.status, Shown(head.phrase()))?;
        for field in &head.fields {
            let (name, value) = (head.bytes(field.name), head.bytes(field.value));
            write!(f, " {}: {}", Shown(name), Shown(value))?;
        }
        Ok(())
    }
}
