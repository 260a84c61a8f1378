//! Requests and responses between the connections and the pages.

use std::rc::Rc;

use engines::http::{BodyLength, Chunk, FieldId, RequestHead, ResponseHead, SharedBytes, decimal};

/// A request for a page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::web) struct Request {
    /// Path without its first slash, as sent; no path of a page has a percent sign.
    pub(in crate::web) path: String,
    /// Query without its question mark, as sent.
    pub(in crate::web) query: String,
}

impl Request {
    /// Reads the target of a request. A target without UTF-8 has no page.
    pub(super) fn of(head: &RequestHead) -> Self {
        let target = String::from_utf8_lossy(head.bytes(head.target));
        let target = target.split('#').next().unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Self {
            path: path.strip_prefix('/').unwrap_or(path).to_owned(),
            query: query.to_owned(),
        }
    }
}

/// Content of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::web) enum Body {
    /// A file of the program.
    Static(&'static [u8]),
    /// Made for this request.
    Made(Vec<u8>),
}

/// A response; the connection adds framing and fields that all responses have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::web) struct Response {
    /// Status code.
    pub(in crate::web) status: u16,
    /// Media type.
    pub(in crate::web) kind: &'static str,
    /// Name of the file if a browser is to save it.
    pub(in crate::web) file: Option<String>,
    /// Whether the content of this target never changes.
    pub(in crate::web) is_fixed: bool,
    /// Content.
    pub(in crate::web) body: Body,
}

impl Response {
    /// Returns a page or another text made for a request.
    pub(in crate::web) fn made(status: u16, kind: &'static str, body: String) -> Self {
        Self {
            status,
            kind,
            file: None,
            is_fixed: false,
            body: Body::Made(body.into_bytes()),
        }
    }

    /// Returns a line of text.
    pub(in crate::web) fn line(status: u16, text: &str) -> Self {
        Self::made(status, TEXT, format!("{text}\n"))
    }

    /// Returns the response to HEAD of an event stream.
    pub(super) fn stream_head() -> Self {
        Self::made(200, EVENTS, String::new())
    }

    /// Returns a file of the program. Its target has a hash of the content.
    pub(in crate::web) fn fixed(kind: &'static str, body: &'static [u8]) -> Self {
        Self {
            status: 200,
            kind,
            file: None,
            is_fixed: true,
            body: Body::Static(body),
        }
    }

    /// Returns the response as connections share it.
    pub(super) fn shared(self) -> Shared {
        let mut head = head(self.status, self.kind);
        let cache: &[u8] = match self.is_fixed {
            true => b"public, max-age=31536000, immutable",
            false => b"no-store",
        };
        head.push(b"Cache-Control", cache);
        if let Some(file) = &self.file {
            let value = format!("attachment; filename=\"{file}\"");
            head.push(b"Content-Disposition", value.as_bytes());
        }
        match self.status {
            405 => head.push(b"Allow", b"GET, HEAD"),
            503 => head.push(b"Retry-After", b"5"),
            _ => {}
        }
        let body = match self.body {
            Body::Static(bytes) => Chunk::Static(bytes),
            Body::Made(bytes) => Chunk::Shared(SharedBytes::from(Rc::<[u8]>::from(bytes))),
        };
        head.body = BodyLength::Length(body.len());
        let mut digits = [0; 20];
        let length = decimal(body.len(), &mut digits);
        head.push_id(FieldId::ContentLength, b"Content-Length", length);
        Shared { head, body }
    }
}

/// A response that several connections send; its body is in memory once.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) head: ResponseHead,
    pub(super) body: Chunk,
}

/// Returns the head of an event stream, which has no length.
pub(super) fn stream_head() -> ResponseHead {
    let mut head = head(200, EVENTS);
    head.push(b"Cache-Control", b"no-store");
    // Proxies such as nginx must not hold events back.
    head.push(b"X-Accel-Buffering", b"no");
    head.body = BodyLength::Unknown;
    head
}

/// Returns a head with the fields of all responses.
fn head(status: u16, kind: &str) -> ResponseHead {
    let mut head = ResponseHead {
        status,
        keep_alive: true,
        ..ResponseHead::default()
    };
    head.push_id(FieldId::ContentType, b"Content-Type", kind.as_bytes());
    for (name, value) in FIELDS {
        head.push(name.as_bytes(), value.as_bytes());
    }
    head
}

/// Media types.
pub(in crate::web) const HTML: &str = "text/html; charset=utf-8";
pub(in crate::web) const TEXT: &str = "text/plain; charset=utf-8";
pub(in crate::web) const CSV: &str = "text/csv; charset=utf-8; header=present";
pub(in crate::web) const JSON: &str = "application/json";
pub(in crate::web) const CSS: &str = "text/css; charset=utf-8";
pub(in crate::web) const SCRIPT: &str = "text/javascript; charset=utf-8";
const EVENTS: &str = "text/event-stream; charset=utf-8";
pub(in crate::web) const SVG: &str = "image/svg+xml";

/// The policy of all responses: nothing but own files, no script or style within a page.
pub(in crate::web) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Fields of all responses.
const FIELDS: [(&str, &str); 5] = [
    ("Content-Security-Policy", POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
];
