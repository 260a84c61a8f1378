//! no-http2: protocols that browsers offer, the server's choice, and the reason if it is not HTTP/2.

use crate::client::Protocol;
use crate::doctor::command::server_name;
use crate::doctor::judge::http2::{Figures, judge};
use crate::doctor::{Examination, Failure, Finding, NetworkPath};

/// Offers the protocols of browsers, then HTTP/2 alone if the server chose another one.
pub(super) fn run(x: &mut Examination<'_>) -> Result<Vec<Finding>, Failure> {
    let offered = [Protocol::H2, Protocol::H1];
    let mut figures = Figures {
        tls: x.plan.url.tls,
        server: server_name(&x.plan.url),
        ..Figures::default()
    };
    if figures.tls {
        figures.offered = offered
            .map(|one| String::from_utf8_lossy(one.alpn()).into_owned())
            .to_vec();
        let (chosen, version) = x.visit(NetworkPath::Direct, |visitor| {
            let mut dial = visitor.dial();
            dial.protocols = offered.to_vec();
            let session = visitor.open(&dial)?;
            let handshake = session.record().handshake.clone();
            let version = handshake.as_ref().map(|one| format!("{:?}", one.version));
            Ok::<_, Failure>((handshake.and_then(|one| one.alpn), version))
        })??;
        figures.version = version.unwrap_or_default();
        if chosen.as_deref() != Some("h2") {
            figures.refusal = x.visit(NetworkPath::Direct, |visitor| {
                let mut dial = visitor.dial();
                dial.protocols = vec![Protocol::H2];
                visitor.open(&dial).err().map(|failure| failure.to_string())
            })?;
        }
        figures.chosen = chosen;
    }
    x.measure("alpn", figures.measured());
    Ok(judge(&figures).into_iter().collect())
}
