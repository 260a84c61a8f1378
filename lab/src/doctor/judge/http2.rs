//! no-http2: the server's choice among the protocols that browsers offer.
//!
//! Source: RFC 7301, RFC 9113 sections 3.2 and 9.2.

use serde_json::{Value, json};

use super::{Case, count, of_page};
use crate::doctor::code::no_http2;
use crate::doctor::finding::name_of_server;
use crate::doctor::{Finding, Severity};

/// The choice of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    /// Whether it is https.
    pub(crate) tls: bool,
    /// Names offered by ALPN.
    pub(crate) offered: Vec<String>,
    /// The name that the server chose; `None` if it answered without one.
    pub(crate) chosen: Option<String>,
    /// The version of TLS.
    pub(crate) version: String,
    /// Why a handshake that offers HTTP/2 alone fails, if one was tried.
    pub(crate) refusal: Option<String>,
    pub(crate) server: (String, String),
}

impl Figures {
    pub(crate) fn measured(&self) -> Value {
        json!({
            "offered": self.offered,
            "chosen": self.chosen,
            "tls": self.version,
            "refusal": self.refusal,
        })
    }
}

/// no-http2: warned of over TLS; a note without TLS, since browsers use HTTP/2 only over TLS.
pub(crate) fn judge(figures: &Figures) -> Option<Finding> {
    let (server, name) = &figures.server;
    let (severity, text) = match figures.chosen.as_deref() {
        Some("h2" | "h3") => return None,
        _ if !figures.tls => (Severity::Note, no_http2::without_tls()),
        None => (Severity::Warn, no_http2::no_alpn(server, name)),
        Some(other) => {
            let other = name_of_server(other);
            (Severity::Warn, no_http2::other_chosen(other, server, name))
        }
    };
    // No cost: each request that waits for a connection loses a round trip, but their number depends on the page.
    Some(Finding::of(text, severity).proof("alpn", figures.measured()))
}

/// no-http2 in a page: warned of from [`STREAMS_MIN`] requests to a server on.
pub(crate) fn judge_page(cases: Vec<Case>) -> Option<Finding> {
    let has_many = |one: &Case| one.size >= STREAMS_MIN as f64;
    of_page(cases, has_many, Severity::Warn, |n, worst_ms| {
        no_http2::page(count(n, "server"), STREAMS_MIN, worst_ms)
    })
}

/// Least requests to one server for which streams save time.
pub(crate) const STREAMS_MIN: usize = 6;

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
        assert!(none.title.contains("does not use ALPN"), "{}", none.title);
        let plain = judge(&figures(false, None)).expect("it is not HTTP/2");
        assert_eq!(plain.severity, Severity::Note);
    }
}
