//! The first bytes of a connection, and the way of all received bytes to their protocol.
//!
//! A header of the PROXY protocol comes first if the listener expects it. Then the first bytes of a plain connection choose
//! its protocol, if several are possible. Each begins with its [`preface`]; everything else is HTTP/1.
//!
//! Source: nginx documentation, `listen ... proxy_protocol`.

use std::rc::Rc;

use engines::http;
use engines::proxy_protocol::{self, Fault};
use server_base::errlog::{Level, Printable};

use super::ended;
use super::handshake::{self, Opened};
use super::mux;
use super::probe;
use super::state::{Closed, Conn, FirstBytes, State, Transport};
use super::trace::debug_conn;
use super::transport::{self, Input};
use crate::worker::net::Net;
use crate::worker::shared::Shared;
use crate::worker::state::mux_engine::preface;
use crate::worker::state::serving::{H1Input, Protocol};

/// Reads once, if input may be there and is wanted, and passes the bytes to the protocol; true if anything came.
pub(super) fn receive<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<bool, Closed> {
    if !c.flags.readable || !c.wants_input() {
        return Ok(false);
    }
    let n = match transport::read(c, sh)? {
        Input::Nothing => return Ok(false),
        Input::End => return end_of_input(c, sh),
        Input::Bytes(n) => n,
    };
    let start = match &c.state {
        State::ProxyHeader(..) => read_proxy_header(c, sh, n)?,
        _ => 0,
    };
    if start == n {
        return Ok(true);
    }
    // The buffer is the thread's; it is taken out while the connection works on it.
    let mut input = std::mem::take(&mut sh.scratch);
    let result = match &c.transport {
        Transport::Tls(_) => feed_tls(c, sh, &mut input[start..n]),
        _ => feed(c, sh, &input[start..n]),
    };
    sh.scratch = input;
    result.map(|()| true)
}

/// Decrypts bytes and passes them to the protocol, as well as the end that TLS announces.
fn feed_tls<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    input: &mut [u8],
) -> Result<(), Closed> {
    let Opened {
        mut plain,
        peer_closed,
    } = handshake::receive(c, sh, input)?;
    let fed = match plain.is_empty() {
        true => Ok(()),
        false => feed(c, sh, &plain),
    };
    plain.clear();
    sh.tls_buffers.opened = plain;
    fed?;
    if peer_closed {
        c.flags.readable = false;
        end_of_input(c, sh)?;
    }
    Ok(())
}

/// Passes bytes to the protocol of the connection; the first ones may decide which.
fn feed<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>, input: &[u8]) -> Result<(), Closed> {
    let now_ms = sh.clock.mono_ms;
    match &mut c.state {
        State::Serving(Protocol::H1(h1)) => {
            if h1.input != H1Input::Requests {
                c.last_progress_ms = now_ms;
            }
            h1.engine.receive(input);
        }
        State::Serving(Protocol::Mux(mux)) => mux.receive(input, now_ms, &mut sh.pools.heads),
        State::Idle => begin_h1(c, sh, input),
        State::Sniffing(..) => sniff(c, sh, input)?,
        State::Lingering(_) => c.last_progress_ms = now_ms,
        // The header has been read before, and nothing is read after the end.
        State::ProxyHeader(..) | State::Outlived(_) | State::Closed => return Err(Closed),
    }
    probe::fed(c, sh);
    Ok(())
}

/// Begins to serve HTTP/1 with the first bytes of a request.
fn begin_h1<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>, input: &[u8]) {
    debug_conn!(HTTP, c, sh, "{}", c.waiting());
    if c.requests > 0 {
        // As in nginx: the first head has its time from the accept on, its handshake included; later ones from their
        // first byte.
        c.last_progress_ms = sh.clock.mono_ms;
    }
    let mut h1 = sh.begin_h1(c.port());
    h1.engine.receive(input);
    c.state = State::Serving(Protocol::H1(h1));
}

/// Finds out which protocol a plain connection begins with.
fn sniff<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>, input: &[u8]) -> Result<(), Closed> {
    let State::Sniffing(protocols, received) = &mut c.state else {
        return Err(Closed);
    };
    let (protocols, first) = (*protocols, join(received, input));
    let begins = |protocol: &http::Protocol| {
        let known = first.len().min(preface(*protocol).len());
        first[..known] == preface(*protocol)[..known]
    };
    let protocol = protocols.newest_first().find(begins);
    if protocol.is_some_and(|protocol| first.len() < preface(protocol).len()) {
        *received = Some(Box::new(FirstBytes(first)));
        return Ok(());
    }
    c.state = State::Idle;
    if let Some(protocol) = protocol {
        mux::open(c, sh, protocol);
    }
    feed(c, sh, &first)
}

/// Appends new bytes to the bytes received before.
fn join(received: &mut Option<Box<FirstBytes>>, input: &[u8]) -> Vec<u8> {
    let mut first = received.take().map_or(Vec::new(), |received| received.0);
    first.extend_from_slice(input);
    first
}

/// The peer has ended its side; true, or the end of the connection.
fn end_of_input<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<bool, Closed> {
    c.flags.hung_up = false;
    match &mut c.state {
        State::Serving(Protocol::H1(h1)) => h1.engine.receive_eof(),
        State::Serving(Protocol::Mux(mux)) => mux.engine.receive_eof(),
        _ => {
            ended::by_client(c, sh, None);
            return Err(Closed);
        }
    }
    Ok(true)
}

/// Takes the bytes of the header from the first `n` received bytes; returns the offset of the client's own bytes.
#[cold]
fn read_proxy_header<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    n: usize,
) -> Result<usize, Closed> {
    let State::ProxyHeader(protocols, received) = &mut c.state else {
        return Ok(0);
    };
    let before = received.as_ref().map_or(0, |received| received.0.len());
    let input = join(received, &sh.scratch[..n]);
    let parsed = match proxy_protocol::parse(&input) {
        Ok(None) => {
            *received = Some(Box::new(FirstBytes(input)));
            return Ok(n);
        }
        Ok(Some(parsed)) => parsed,
        Err(fault) => {
            refuse_proxy_header(c, sh, fault, &input);
            return Err(Closed);
        }
    };
    c.proxied = parsed.header.map(Rc::new);
    c.state = State::of_first_bytes(*protocols);
    Ok(parsed.used.saturating_sub(before))
}

/// Logs a header that breaks the protocol, with the line it came on.
fn refuse_proxy_header<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    fault: Fault,
    received: &[u8],
) {
    let end = received.iter().position(|b| matches!(b, b'\r' | b'\n'));
    let line = &received[..end.unwrap_or(received.len()).min(SHOWN_BYTES)];
    let shown = match fault {
        Fault::Broken => format!(": \"{}\"", Printable(line)),
        _ => String::new(),
    };
    let text = format_args!("{fault}{shown} while reading PROXY protocol");
    ended::log(c, sh, Level::Error, text);
}

/// Most bytes of a broken header that the log shows.
const SHOWN_BYTES: usize = proxy_protocol::MAX_V1_BYTES;
