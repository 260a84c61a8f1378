//! Lines of the error log about clients that close their connections or are too slow, in nginx's words.
//!
//! A request with an incomplete head gets its line in the access log, too, with the received part of the head. So an attack
//! with slow heads is seen in the log of the attacked server.

use std::fmt;
use std::io;

use engines::h1::Phase;
use engines::http::RequestHead;
use server_base::errlog::{Details, Level, Record, Topics};
use server_http::phases;

use super::client::{client, is_hostless};
use super::probe::{self, EndedBy};
use super::state::{Conn, State};
use super::tls::Tls;
use crate::worker::net::Net;
use crate::worker::shared::Shared;
use crate::worker::state::mux_engine::with_engine;
use crate::worker::state::serving::Protocol;

/// Writes a line about the connection to the error log of the port's default server, with the address of the listener.
#[cold]
pub(super) fn log<N: Net>(
    c: &Conn<N::Socket>,
    sh: &Shared<N>,
    level: Level,
    text: fmt::Arguments<'_>,
) {
    let http = &sh.generation.http;
    // A port that is in no configuration any more has no log either.
    let Some(port) = http
        .ports
        .get(c.port())
        .filter(|_| !c.drain.is_listener_removed())
    else {
        return;
    };
    let listener = port.listen.addr.to_string();
    let details = Details {
        client: c.peer,
        server: listener.as_bytes(),
        request: None,
        subrequest: None,
        upstream: None,
        host: None,
        referrer: None,
    };
    write(c, sh, level, text, Some(&details));
}

fn write<N: Net>(
    c: &Conn<N::Socket>,
    sh: &Shared<N>,
    level: Level,
    message: fmt::Arguments<'_>,
    request: Option<&Details<'_>>,
) {
    if let Some(log) = sh.generation.http.port_log(c.port()) {
        log.record(&Record {
            level,
            topics: Topics::NONE,
            connection: Some(c.serial),
            message,
            request,
            everywhere: c.debug,
        });
    }
}

/// Whether a line about the connection would be written.
fn logs_info<N: Net>(c: &Conn<N::Socket>, sh: &Shared<N>) -> bool {
    let log = || sh.generation.http.port_log(c.port());
    c.debug || log().is_some_and(|log| log.enabled(Level::Info))
}

/// The action of a connection on which no request has begun, as the log names it.
fn action<S>(c: &Conn<S>) -> &'static str {
    match &c.state {
        State::ProxyHeader(..) => "reading PROXY protocol",
        _ if c.transport.tls().is_some_and(Tls::is_handshaking) => "SSL handshaking",
        _ => "waiting for request",
    }
}

/// The action of a connection with streams, as the log names it.
pub(super) fn processing<S>(c: &Conn<S>) -> &'static str {
    match &c.state {
        State::Serving(Protocol::Mux(mux)) => mux.engine.action(),
        _ => "",
    }
}

/// Logs that the client has closed the connection, or with `error` that a read failed. Logs nothing if a response was in
/// progress.
#[inline(never)]
pub(super) fn by_client<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    error: Option<&io::Error>,
) {
    match &mut c.state {
        State::ProxyHeader(..) | State::Sniffing(..) | State::Idle => closed_idle(c, sh, error),
        State::Serving(Protocol::H1(h1)) => match h1.engine.phase() {
            Phase::Head => {
                let mut head = RequestHead::default();
                h1.engine.take_unfinished(&mut head);
                let text = cause(error, "client prematurely closed connection");
                unfinished(c, sh, head, 400, &text);
            }
            Phase::Idle if h1.exchanges.is_settled() => closed_idle(c, sh, error),
            _ => {}
        },
        State::Serving(Protocol::Mux(mux)) => {
            let head = with_engine!(&mux.engine, engine => engine.unfinished_request());
            if (head.is_some() || mux.exchanges.is_busy()) && logs_info(c, sh) {
                let text = cause(error, "client prematurely closed connection");
                let action = processing(c);
                log(c, sh, Level::Info, format_args!("{text} while {action}"));
            }
            if let Some(head) = head {
                unfinished(c, sh, *head, 0, "");
            }
        }
        State::Outlived(_) | State::Lingering(_) | State::Closed => {}
    }
}

fn closed_idle<N: Net>(c: &Conn<N::Socket>, sh: &Shared<N>, error: Option<&io::Error>) {
    if !logs_info(c, sh) || c.drain.is_listener_removed() {
        return;
    }
    if c.requests == 0 {
        let (text, action) = (cause(error, "client closed connection"), action(c));
        log(c, sh, Level::Info, format_args!("{text} while {action}"));
    } else if error.is_none() {
        let text = format_args!("client {} closed keepalive connection", c.peer);
        write(c, sh, Level::Info, text, None);
    }
}

fn cause(error: Option<&io::Error>, closed: &str) -> String {
    match error {
        Some(error) => format!("recv() failed ({})", sys::os_error(error)),
        None => closed.to_owned(),
    }
}

/// Logs that no request has come in time; nothing for a connection that had one, as in nginx.
#[cold]
pub(super) fn wait_timed_out<N: Net>(c: &Conn<N::Socket>, sh: &Shared<N>) {
    let waits = matches!(
        c.state,
        State::ProxyHeader(..) | State::Sniffing(..) | State::Idle
    );
    if waits && c.requests == 0 && logs_info(c, sh) {
        let action = action(c);
        log(
            c,
            sh,
            Level::Info,
            format_args!("{TIMED_OUT} while {action}"),
        );
    }
}

/// Logs a request with an incomplete head, in the access log as well. Returns whether a client that timed out gets a reset
/// (`reset_timedout_connection`). Without `why` there is no line in the error log.
#[cold]
pub(super) fn unfinished<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    head: RequestHead,
    status: u16,
    why: &str,
) -> bool {
    if c.drain.is_listener_removed() {
        return false;
    }
    c.requests = c.requests.saturating_add(1);
    let client = client(c, sh, is_hostless(&head));
    let mut x = sh.exchange(client, c.port());
    x.proxied.clone_from(&c.proxied);
    x.tls = c.transport.tls().and_then(Tls::facts);
    x.head = head;
    phases::place_unfinished(&mut x);
    x.route.err_status = status;
    if !why.is_empty() {
        x.log(Level::Info, format_args!("{why}"));
    }
    let loc = x.route.core_loc();
    let reset = *loc.connection.reset_timedout_connection;
    if c.requests == 1 {
        // No earlier request has set the idle time of the connection.
        c.idle_ms = loc.connection.keepalive().idle_ms;
    }
    probe::abort(&mut c.probe, sh, x, EndedBy::Unfinished);
    reset
}

/// The message about a client that is too slow, with the error that nginx names.
pub(super) const TIMED_OUT: &str = "client timed out (110: Connection timed out)";
