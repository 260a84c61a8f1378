//! no-http2: what a browser offers, what the server chose, and why it was not HTTP/2.
//!
//! Source: RFC 7301, RFC 9113 sections 3.2 and 9.2.

use serde_json::{Value, json};

use crate::client::Protocol;
use crate::doctor::command::server_name;
use crate::doctor::finding::name_of_server;
use crate::doctor::{Code, Examination, Failure, Finding, NetworkPath, Severity};

/// The choice of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Figures {
    /// Whether it is https.
    pub(super) tls: bool,
    /// Names offered by ALPN.
    pub(super) offered: Vec<String>,
    /// The name that the server chose; `None` where it answered without one.
    pub(super) chosen: Option<String>,
    /// The version of TLS.
    pub(super) version: String,
    /// Why a handshake that offers HTTP/2 alone fails, where one was tried.
    pub(super) refusal: Option<String>,
    pub(super) server: (String, String),
}

impl Figures {
    pub(super) fn measured(&self) -> Value {
        json!({
            "offered": self.offered,
            "chosen": self.chosen,
            "tls": self.version,
            "refusal": self.refusal,
        })
    }
}

/// Offers what browsers offer, and HTTP/2 alone where it was not chosen.
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

/// no-http2: warned of over TLS; a note without it, because browsers speak HTTP/2 over TLS alone.
pub(super) fn judge(figures: &Figures) -> Option<Finding> {
    let chosen = figures.chosen.as_deref();
    if matches!(chosen, Some("h2" | "h3")) {
        return None;
    }
    let (server, name) = &figures.server;
    let found = if figures.tls {
        let why = match chosen {
            None => "the server takes no part in ALPN".to_owned(),
            Some(other) => format!("the server chose {}", name_of_server(other)),
        };
        let title = format!("A client that offers HTTP/2 does not get it: {why}");
        Finding::new(Code::NoHttp2, Severity::Warn, title)
            .mend("nginx (1.25.1 and later) and firstbyte: http2 on;")
            .mend("nginx before: listen 443 ssl http2;")
            .mend("a balancer that ends TLS has to offer h2 itself")
            .mend(format!("openssl s_client -connect {server} -servername {name} -alpn h2,http/1.1 </dev/null | grep ALPN"))
    } else {
        let title = "Without TLS browsers speak HTTP/1.1: one request at a time on a connection";
        Finding::new(Code::NoHttp2, Severity::Note, title)
            .mend("nginx and firstbyte: listen 443 ssl; http2 on; and a redirect from http")
    };
    // Each request that has to wait for a connection's turn loses a round trip; how many do is a matter of the page.
    Some(found.costs(0.0, 0.0).proof("alpn", figures.measured()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(tls: bool, chosen: Option<&str>) -> Figures {
        Figures {
            tls,
            offered: vec!["h2".to_owned(), "http/1.1".to_owned()],
            chosen: chosen.map(str::to_owned),
            ..Figures::default()
        }
    }

    #[test]
    fn http2_is_not_found_and_all_else_is() {
        assert_eq!(judge(&figures(true, Some("h2"))), None);
        let old = judge(&figures(true, Some("http/1.1"))).expect("it is not HTTP/2");
        assert_eq!(old.severity, Severity::Warn);
        assert!(old.title.ends_with("chose http/1.1"), "{}", old.title);
        let none = judge(&figures(true, None)).expect("it is not HTTP/2");
        assert!(none.title.contains("no part in ALPN"), "{}", none.title);
        let plain = judge(&figures(false, None)).expect("it is not HTTP/2");
        assert_eq!(plain.severity, Severity::Note);
    }
}
