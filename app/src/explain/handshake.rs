//! The TLS of the connection: the server for the name in the handshake, by the rules of the worker.
//!
//! There is no real handshake, so version, cipher and session are unknown, and the client has no certificate.
//! Certificates with variables in their names are not checked.

use std::rc::Rc;

use engines::http::Fault;
use server_http::assemble::Level;
use server_http::certificates;
use server_http::conf_core::CoreSrv;
use server_http::exchange::{Exchange, Tls};
use server_http::http::Http;

use super::listener::Taken;
use super::report::Handshake;
use super::steps::{Teller, lossy_text};
use super::url::Url;

/// Start of a request's connection.
pub(super) struct Greeting {
    /// Name in the handshake and index of its server; `None` for a connection without TLS.
    pub(super) asked: Option<(Option<String>, usize)>,
    /// Reason of the handshake's failure.
    pub(super) refused: Option<&'static str>,
    /// Reason for which the request is refused.
    pub(super) fault: Option<Fault>,
}

/// Begins the connection of `x`, with TLS if the URL has it.
///
/// # Errors
/// The port does not use TLS.
pub(super) fn begin(
    x: &mut Exchange,
    url: &Url,
    http: &Http,
    taken: &Taken,
) -> Result<Greeting, String> {
    let port = &http.ports[taken.port];
    let mut greeting = Greeting {
        asked: None,
        refused: None,
        fault: None,
    };
    match (url.tls, port.addr(taken.local).ssl) {
        (true, true) => {}
        (true, false) => {
            return Err(format!(
                "{} does not use TLS: its \"listen\" has no \"ssl\"",
                port.listen.addr
            ));
        }
        (false, speaks_tls) => {
            greeting.fault = speaks_tls.then_some(Fault::PlainToTls);
            return Ok(greeting);
        }
    }
    let name = url.server_name();
    let bytes = name.as_ref().map(|name| name.as_bytes());
    let Ok(chosen) = certificates::handshake(http, taken.port, taken.local, bytes) else {
        return Err(
            "matching the server name of the handshake exceeded pcre_match_limit".to_owned(),
        );
    };
    match &http.tls[chosen.certificate].config {
        Some(config) if !config.rejects() => {
            let tls = Tls::with_server_name(config.shared(), bytes.map(<[u8]>::to_vec));
            x.tls = Some(Rc::new(tls));
        }
        Some(_) => greeting.refused = Some("the handshake is rejected by ssl_reject_handshake"),
        None => greeting.refused = Some("the handshake is rejected: there is no certificate"),
    }
    greeting.asked = Some((name, chosen.certificate));
    Ok(greeting)
}

/// The handshake in the report.
pub(super) fn report(greeting: &Greeting, teller: &Teller<'_>) -> Option<Handshake> {
    let (name, index) = greeting.asked.as_ref()?;
    let server = &teller.http.servers[*index];
    let at = teller.http.locations[server.location].at;
    let written = ["ssl_certificate", "ssl_reject_handshake"];
    let lines = written.map(|directive| {
        let level = Level::Location(server.location);
        let line = teller.written.at_level(directive, level).next();
        line.and_then(|line| teller.place(line.at))
    });
    let confs: &CoreSrv = server.confs.get();
    Some(Handshake {
        name: name.clone(),
        server: lossy_text(&confs.name),
        at: lines
            .into_iter()
            .flatten()
            .next()
            .or_else(|| teller.place(at)),
        refused: greeting.refused,
    })
}
