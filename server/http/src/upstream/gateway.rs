//! `Gateway`: the specifics of a protocol spoken with servers.
//!
//! A module supplies four functions; the others have defaults.

use std::sync::Arc;

use engines::http::{FieldId, ResponseHead};
use server_cache::response_head::HeadFormat;
use server_upstream::group::Target;
use server_upstream::protocol::ProtocolSpec;
use server_upstream::request::RequestSpec;
use server_upstream::route::ServerTls;

use super::UpstreamConf;
use crate::exchange::{Ctx, Exchange};
use crate::http::Http;

/// A protocol spoken with servers, as the upstream machine needs it.
pub trait Gateway: Sync {
    /// The settings of the exchange's location.
    fn conf<'h>(&self, x: &Exchange, http: &'h Http) -> &'h UpstreamConf;

    /// The servers for the request.
    ///
    /// # Errors
    /// The status that answers the request; the reason is logged.
    fn target(&self, x: &mut Exchange, cx: &mut Ctx<'_>) -> Result<Target, u16>;

    /// The request as it is sent. Called once before the first attempt, and again before each with
    /// `*_request_dynamic on`. The body's length is that of `body`.
    ///
    /// # Errors
    /// The status that answers the request; the reason is logged.
    fn request(
        &self,
        x: &mut Exchange,
        cx: &mut Ctx<'_>,
        outgoing: &Outgoing,
    ) -> Result<RequestSpec, u16>;

    /// The key of the request in a cache, without `*_cache_key`.
    ///
    /// # Errors
    /// The status that answers the request; the reason is logged.
    fn cache_key(&self, _: &mut Exchange, _: &mut Ctx<'_>) -> Result<Vec<u8>, u16> {
        Ok(Vec::new())
    }

    /// The form of response heads in files of a cache.
    fn head_format(&self) -> HeadFormat {
        HeadFormat::Http
    }

    /// The protocol spoken with a server.
    fn protocol(&self) -> &'static ProtocolSpec;

    /// Start of the servers' URLs in variables and logs.
    fn scheme(&self, _: &Exchange) -> &'static str {
        self.protocol().scheme
    }

    /// TLS of a connection to the chosen server; `None`: the connection is in the clear.
    ///
    /// # Errors
    /// The status that answers the request; the reason is logged.
    fn tls(&self, _: &mut Exchange, _: &mut Ctx<'_>) -> Result<Option<Arc<ServerTls>>, u16> {
        Ok(None)
    }

    /// Maximum size of a response head, bytes.
    fn head_bytes(&self, conf: &UpstreamConf) -> usize {
        let size = conf.buffering.head_bytes;
        size.map_or(self.protocol().head_bytes, |bytes| bytes as usize)
    }

    /// Looks at the head of a response before anything is done about it. A status: an error page answers in the place of
    /// the response, unless another server is tried.
    fn received(&self, _: &mut Exchange, _: &mut Ctx<'_>, _: &ResponseHead) -> Option<u16> {
        None
    }

    /// Changes the head of a response, in `x.reply`, before header stages see it: `Location`, `Refresh`, cookies.
    fn head(&self, _: &mut Exchange, _: &mut Ctx<'_>, _: &ResponseHead) -> Verdict {
        Verdict::Pass
    }

    /// Logs output that an application wrote to its error stream, and returns whether the attempt has failed by
    /// that. It can fail only before there is a head.
    fn note(&self, _: &Exchange, _: &Note<'_>) -> Verdict {
        Verdict::Pass
    }

    /// Whether requests have bodies; if not, the client's body is not read.
    fn takes_body(&self) -> bool {
        true
    }

    /// Whether the location has a body that is sent in the place of the client's (`*_set_body`).
    fn has_body(&self, _: &Exchange, _: &Http) -> bool {
        false
    }

    /// That body.
    fn body(&self, _: &mut Exchange, _: &mut Ctx<'_>) -> Option<Vec<u8>> {
        None
    }

    /// Whether a body of unknown length can be sent.
    fn sends_unknown_length(&self, _: &Exchange, _: &Http) -> bool {
        true
    }

    /// Whether early hints of a server are passed on.
    fn passes_hints(&self, _: &mut Exchange, _: &mut Ctx<'_>) -> bool {
        false
    }
}

/// The properties of a request that is made for a server.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing {
    /// The length of the request body as it will be sent.
    pub body: engines::http::BodyLength,
    /// The group keeps idle connections, if the request and the response allow it.
    pub is_pooled: bool,
    /// The response may be stored: conditions and ranges of the client are not sent.
    pub is_cached: bool,
    /// HEAD is sent as GET (`*_cache_convert_head`).
    pub gets_body: bool,
}

/// Whether a field of a client is about its own copy or a part of a response. A cache does not send it.
#[must_use]
pub fn is_of_client_cache(id: FieldId) -> bool {
    matches!(
        id,
        FieldId::IfMatch
            | FieldId::IfNoneMatch
            | FieldId::IfModifiedSince
            | FieldId::IfUnmodifiedSince
            | FieldId::IfRange
            | FieldId::Range
    )
}

/// A piece of an application's error stream.
#[derive(Clone, Copy, Debug)]
pub struct Note<'n> {
    /// All of it.
    pub text: &'n [u8],
    /// Number of its bytes that may still be logged for the request.
    pub loggable_bytes: usize,
    /// The action on the server, as the log names it behind "while".
    pub action: &'static str,
}

/// A gateway's verdict on a response head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is passed on.
    Pass,
    /// It is invalid; the attempt has failed.
    Invalid(&'static str),
    /// It is invalid, and that is logged already.
    Refused,
}
