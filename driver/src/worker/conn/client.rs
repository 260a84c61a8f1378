//! Properties of a connection for its exchanges.

use std::io;
use std::rc::Rc;

use engines::http::{FieldId, RequestHead};
use server_base::errlog::Level;
use server_base::waker::WakeKey;
use server_http::decision::CLIENT_CLOSED;
use server_http::detached;
use server_http::exchange::{Client, Exchange};
use server_http::stats::{self, Activity};

use super::probe::{self, ProbeState};
use super::state::{Closed, Conn, State};
use crate::worker::net::Net;
use crate::worker::shared::Shared;
use crate::worker::state::serving::{H1_STREAM, Protocol};

/// Returns the properties of the connection that exchanges see.
pub(super) fn client<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    hostless: bool,
) -> Client {
    let port = &sh.generation.http.ports[c.port as usize];
    let wanted = port.needs_local_addr || (hostless && port.listen.addr.is_wildcard());
    if wanted {
        c.local_addr(&mut sh.net);
    }
    let pipelined = match &c.state {
        State::Serving(Protocol::H1(h1)) => h1.exchanges.queued > 0,
        _ => false,
    };
    Client {
        peer: c.peer,
        local: c.local.as_deref().copied(),
        connection: c.serial,
        requests: u64::from(c.requests),
        since_ms: c.since_ms,
        pipelined,
        may_push: false,
        offers: None,
        debug: c.debug,
        socket: sh.net.number(&c.socket),
        wake: WakeKey {
            owner: sh.owner,
            stream: H1_STREAM,
        },
    }
}

/// Whether a request names no host, so that the address itself names the server.
#[inline]
pub(super) fn is_hostless(head: &RequestHead) -> bool {
    head.authority.get().is_none() && head.field(FieldId::Host).is_none()
}

/// Makes the exchange of a request that has just come.
pub(super) fn open_exchange<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    hostless: bool,
) -> Result<Box<Exchange>, Closed> {
    if c.drain.is_listener_removed() {
        return Err(Closed);
    }
    c.requests = c.requests.saturating_add(1);
    stats::request();
    c.counted.set(Activity::Writing);
    let client = client(c, sh, hostless);
    let mut x = sh.exchange(client, c.port());
    if let Some(header) = &c.proxied {
        x.proxied = Some(Rc::clone(header));
    }
    if let Some(tls) = c.transport.tls() {
        x.tls = tls.facts();
    }
    probe::head(c, sh, &mut x);
    Ok(x)
}

/// The client has left: a request without a response is logged so.
pub(super) fn abandon(x: &mut Exchange) {
    detached::abandon(x, CLIENT_CLOSED);
}

/// Logs that a file became shorter than it was promised to be, if that is the error.
pub(super) fn log_truncated(x: &Exchange, probe_state: &mut ProbeState, error: &io::Error) {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        probe::file_became_shorter(probe_state);
        x.log(
            Level::Error,
            format_args!("the file was truncated while it was sent"),
        );
    }
}
