//! Certificates of clients: whether a request may be answered on its connection.
//!
//! A handshake accepts any certificate; the server of the request verifies it here. If that server demands another
//! certificate than the server named in the handshake, the client is told to open a new connection (status 421).
//!
//! Source: nginx documentation, `ssl_verify_client`; RFC 9110 section 15.5.20 for 421.

use server_base::errlog::Level;
use tls::{ClientCertError, Verified};

use crate::exchange::{Exchange, Tls};
use crate::http::{Http, LocalHttp};

/// Whether the request must come on a new connection: its server is not the one of the handshake, and would have requested a
/// client certificate differently.
pub(crate) fn is_misdirected(x: &Exchange, http: &LocalHttp, server: usize) -> bool {
    let (Some(tls), Some(config)) = (&x.tls, &http.tls[server].config) else {
        return false;
    };
    let misdirected = config.asks_for_certificates()
        && tls.info.server_name.as_deref() != Some(&x.target.host)
        && tls.named_server(http, x.route.port, x.client.local) != Ok(None)
        && !config.has_policy_of(&tls.config);
    if misdirected {
        x.log(
            Level::Info,
            format_args!(
                "client attempted to request the server name different from the one that was negotiated"
            ),
        );
    }
    misdirected
}

/// The status that a client gets for its certificate, or for having none.
#[inline(always)] // Every request asks, most of them without TLS.
pub(crate) fn refusal(x: &Exchange, http: &Http) -> Option<u16> {
    refusal_over(x.tls.as_ref()?, x, http)
}

fn refusal_over(tls: &Tls, x: &Exchange, http: &Http) -> Option<u16> {
    let config = http.tls[x.route.server].config.as_ref()?;
    if !config.asks_for_certificates() {
        return None;
    }
    // The server was reached without a name, or its settings have changed since the handshake.
    let verified: Verified = if config.has_policy_of(&tls.config) {
        tls.verified
    } else {
        config.verify(&tls.info.certificates)
    };
    match config.refuses(verified)? {
        ClientCertError::NoCertificate => {
            x.log_while(
                Level::Info,
                READING,
                format_args!("client sent no required SSL certificate"),
            );
            Some(496)
        }
        ClientCertError::BadCertificate(reason) => {
            x.log_while(
                Level::Info,
                READING,
                format_args!(
                    "client SSL certificate verify error: ({}:{reason})",
                    reason.0
                ),
            );
            Some(495)
        }
    }
}

/// The action that errors of client certificates name.
const READING: &str = "reading client request headers";
