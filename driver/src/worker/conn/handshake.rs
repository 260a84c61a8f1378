//! The receiving side of TLS: the handshake, and decryption of the bytes after it.
//!
//! The server name in the ClientHello chooses the server that provides the settings. ALPN may choose a protocol with
//! streams; its state is made here. Otherwise HTTP/1 begins with its first byte.

use std::rc::Rc;
use std::sync::Arc;

use engines::http::Protocol;
use server_base::errlog::Level;
use server_base::handshakes::HandshakeResult;
use server_http::meters::{self, Event};
use server_http::{certificates, exchange};
use sys::prefetch::prefetch;
use tls::{Fault, Identity};

use super::client::client;
use super::ended::log;
use super::state::{Closed, Conn, State, Transport};
use super::tls::Tls;
use super::{mux, probe};
use crate::worker::net::Net;
use crate::worker::shared::Shared;
use crate::worker::transport::RECORD_BYTES;

/// Result of decrypting or sniffing received bytes.
pub(super) struct Opened {
    /// Bytes for the protocol above; their memory returns to [`TlsBuffers`](crate::worker::transport::TlsBuffers).
    pub(super) plain: Vec<u8>,
    /// The peer has announced its end.
    pub(super) peer_closed: bool,
}

/// Decrypts received bytes, and continues the handshake.
pub(super) fn receive<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    input: &mut [u8],
) -> Result<Opened, Closed> {
    // It is taken out while the connection works with it.
    let Transport::Tls(mut tls) = std::mem::replace(&mut c.transport, Transport::Plain) else {
        return Err(Closed);
    };
    let mut plain = std::mem::take(&mut sh.tls_buffers.opened);
    plain.clear();
    let mut result = tls.stream.open(input, &mut plain);
    if result.is_ok() && tls.stream.session.hello().is_some() {
        tls.client_hello_us = sh.read_us;
        result = start(c, sh, &mut tls, &mut plain);
    }
    let peer_closed = tls.stream.session.peer_closed();
    match result {
        Ok(()) => {
            choose_protocol(c, sh, &tls);
            record_facts(c, sh, &mut tls);
            c.transport = Transport::Tls(tls);
            Ok(Opened { plain, peer_closed })
        }
        Err(fault @ Fault::PlainHttp) => {
            tls.count_failure(&fault);
            // HTTP/1 answers in the clear, with 497. The connection of TLS goes.
            c.transport = Transport::PlainOnTlsPort;
            plain.clear();
            plain.extend_from_slice(&tls.stream.session.take_held());
            Ok(Opened { plain, peer_closed })
        }
        Err(fault) => {
            tls.count_failure(&fault);
            c.transport = Transport::Tls(tls);
            sh.tls_buffers.opened = plain;
            let text = format_args!("{fault} while SSL handshaking");
            log(c, sh, Level::Info, text);
            Err(Closed)
        }
    }
}

/// Chooses the server by its name in the ClientHello, and begins the handshake with its configuration.
fn start<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    tls: &mut Tls,
    plain: &mut Vec<u8>,
) -> Result<(), Fault> {
    let client = client(c, sh, true);
    let http = &sh.generation.http;
    let name = tls
        .stream
        .session
        .hello()
        .and_then(|hello| hello.server_name.as_deref());
    let is_named = name.is_some();
    let chosen = match certificates::handshake(http, c.port(), client.local, name) {
        Ok(chosen) => chosen,
        Err(unmatched) => {
            let text = format_args!("{unmatched} while SSL handshaking");
            log(c, sh, Level::Alert, text);
            return Err(tls.stream.session.abandon());
        }
    };
    tls.zone = http.status_zone(chosen.named).cloned();
    let settings = http.tls[chosen.certificate].config.as_ref();
    let Some(settings) = settings.filter(|settings| !settings.rejects()) else {
        return Err(tls.stream.session.reject());
    };
    // Without a name, a program that tries addresses would be a connection of the default server's arm.
    if is_named {
        probe::add_host_arm(c, sh, chosen.named);
    }
    // Of one server among many no cache has them; the request comes after the handshake.
    prefetch(&http.servers[chosen.certificate]);
    let identity = settings.identity();
    identity.inspect(|identity| prefetch(identity.memory()));
    let offer: Vec<&[u8]> = chosen.offer.alpn().collect();
    let config = match settings.is_late() {
        false => settings.shared(),
        true => match load_certificates(c, sh, tls, chosen.certificate) {
            Some(loaded) => loaded,
            None => return Err(tls.stream.session.abandon()),
        },
    };
    tls.stream.record_bytes = Some(config.record_bytes()).filter(|bytes| *bytes != RECORD_BYTES);
    if let Some((key, chain)) = config.identity().map(Identity::parts) {
        prefetch(key);
        prefetch(chain);
    }
    let result = tls.stream.session.start(&config, &offer, &mut |opened| {
        plain.extend_from_slice(opened);
    });
    tls.config = Some(config);
    result
}

/// Returns the settings of a server with variables in its certificate paths, with the certificates for this handshake.
fn load_certificates<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    tls: &Tls,
    server: usize,
) -> Option<Arc<tls::Config>> {
    let client = client(c, sh, true);
    let mut x = sh.exchange(client, c.port());
    if let Some(header) = &c.proxied {
        x.proxied = Some(Rc::clone(header));
    }
    let loaded = certificates::load(&mut x, &mut sh.ctx(), server, tls.stream.session.asked());
    sh.drop_unlogged(x);
    loaded
}

/// Begins the protocol that ALPN has chosen, if it is not HTTP/1.
fn choose_protocol<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>, tls: &Tls) {
    if !matches!(c.state, State::Idle) {
        return;
    }
    if let Some(protocol) = tls.stream.session.alpn().and_then(Protocol::from_alpn) {
        mux::open(c, sh, protocol);
    }
}

/// Records the negotiated parameters, once the handshake is over.
fn record_facts<N: Net>(c: &mut Conn<N::Socket>, sh: &Shared<N>, tls: &mut Tls) {
    if tls.facts.is_none()
        && let Some(info) = tls.stream.session.info()
        && let Some(config) = &tls.config
    {
        let (event, result) = match info.resumed {
            true => (Event::HandshakeResumed, HandshakeResult::Resumed),
            false => (Event::HandshakeFull, HandshakeResult::Full),
        };
        meters::event(event);
        tls.count_in_zone(result);
        let mut facts = exchange::Tls::new(Arc::clone(config), info);
        if let Some(error) = config.refuses(facts.verified) {
            tls.count_certificate(error);
        }
        facts.handshake_us = probe::handshake(c, sh, tls);
        tls.facts = Some(Rc::new(facts));
    }
    if let Some(facts) = &tls.facts {
        facts.early_data.set(tls.stream.session.is_early());
    }
}
