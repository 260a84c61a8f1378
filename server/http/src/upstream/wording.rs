//! Error log texts of failing servers, in nginx's words.

use std::io;

use server_base::errlog::{Level, Printable};
use server_upstream::request::Failure;

use crate::exchange::Exchange;

/// The actions on a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Connecting,
    Handshaking,
    Sending,
    ReadingHead,
    Reading,
    Tunnel,
}

impl Action {
    /// Behind "while".
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Connecting => "connecting to upstream",
            Self::Handshaking => "SSL handshaking to upstream",
            Self::Sending => "sending request to upstream",
            Self::ReadingHead => "reading response header from upstream",
            Self::Reading => "reading upstream",
            Self::Tunnel => "proxying upgraded connection",
        }
    }
}

/// Logs a failure.
pub(super) fn log_failure(x: &Exchange, failure: &Failure, action: Action) {
    let action = action.text();
    match *failure {
        Failure::Socket { call, errno } => log_socket(x, call, errno, action),
        Failure::NoConnection => {}
        Failure::TimedOut => x.log_while(
            Level::Error,
            action,
            format_args!("upstream timed out (110: Connection timed out)"),
        ),
        Failure::Closed => x.log_while(
            Level::Error,
            action,
            format_args!("upstream prematurely closed connection"),
        ),
        Failure::Invalid(what) => {
            x.log_while(Level::Error, action, format_args!("upstream {what}"))
        }
        Failure::InvalidDetail(ref text)
        | Failure::Handshake(ref text)
        | Failure::Certificate(ref text) => {
            x.log_while(Level::Error, action, format_args!("{text}"))
        }
        Failure::Unsendable(what) => x.log_while(Level::Error, action, format_args!("{what}")),
    }
}

fn log_socket(x: &Exchange, call: &str, errno: i32, action: &str) {
    let reason = conf::os_error(&io::Error::from_raw_os_error(errno));
    let name = x.upstream.as_deref().and_then(|up| up.last_name());
    let name = name.unwrap_or_default();
    // Errors that the call itself returns are logged with the address; later ones are not.
    let at_once = call == BIND
        || call == CONNECT && (name.starts_with(b"unix:") || !BECOMES_KNOWN.contains(&errno));
    if !at_once {
        let text = format_args!("{call} failed ({reason})");
        return x.log_while(Level::Error, action, text);
    }
    let level = match UNREACHED.contains(&errno) {
        true => Level::Error,
        false => Level::Crit,
    };
    let name = Printable(name);
    x.log_while(
        level,
        action,
        format_args!("{call} to {name} failed ({reason})"),
    );
}

/// Whether a call prepares a socket before it connects: if it fails, nothing was sent to a server.
pub(super) fn makes_socket(call: &str) -> bool {
    ![CONNECT, "recv()", "writev()"].contains(&call)
}

/// Calls that are logged with the address.
const CONNECT: &str = "connect()";
const BIND: &str = "bind()";
/// ECONNREFUSED, ETIMEDOUT, EHOSTUNREACH, ECONNRESET: the answers of a server or a router.
const BECOMES_KNOWN: [i32; 4] = [111, 110, 113, 104];
/// ECONNREFUSED, EAGAIN, ECONNRESET, ENETDOWN, ENETUNREACH, EHOSTDOWN, EHOSTUNREACH.
const UNREACHED: [i32; 7] = [111, 11, 104, 100, 101, 112, 113];
