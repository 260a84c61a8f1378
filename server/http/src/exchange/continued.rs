//! A request that continues after its response, without its client: `post_action`.
//!
//! nginx sends the same request through its phases again, and the connection waits. Here a [`DetachedRequest`] takes the
//! record of the ended exchange, so that variables have the values of the log: status, bytes, times, servers, body. The
//! connection takes its next request at once.
//!
//! Source: nginx 1.31.4 (its documentation does not have `post_action`).

use super::detached::DetachedRequest;
use super::subrequest::TooMany;
use super::{Ctx, Exchange};

impl DetachedRequest {
    /// Continues an ended exchange under another URI of its server, without arguments; `None`: under its own. Takes parts
    /// of `x`: call it in the log phase, after the logs.
    ///
    /// # Errors
    /// Requests have started each other too many times; the log has a line.
    pub fn continued(x: &mut Exchange, cx: &Ctx<'_>, uri: Option<&[u8]>) -> Result<Self, TooMany> {
        let (uri, args) = match uri {
            None => (x.target.uri.as_slice(), x.target.args.as_slice()),
            Some(uri) => (uri, &b""[..]),
        };
        let request = Self::child_of(x, cx, uri, args)?;
        let mut request = request.method(x.target.method).with_body_of(x);
        let own = &mut request.exchange;
        own.started_ms = x.started_ms;
        own.started_unix_ms = x.started_unix_ms;
        own.timings = x.timings;
        std::mem::swap(&mut own.vars.captures, &mut x.vars.captures);
        own.input.bytes = x.input.bytes;
        own.reply.status = x.status();
        std::mem::swap(&mut own.reply.trailers, &mut x.reply.trailers);
        let (sent, response) = (&mut x.response, &mut own.response);
        std::mem::swap(&mut response.head, &mut sent.head);
        response.header_bytes = sent.header_bytes;
        response.bytes_sent = sent.bytes_sent;
        response.completed = sent.completed;
        own.upstream = x.upstream.take();
        if let Some(upstream) = &mut own.upstream {
            upstream.end_pass(cx.clock.mono_ms);
        }
        Ok(request)
    }
}
