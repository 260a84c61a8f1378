//! Conditions of a client, which a cache evaluates in the place of the server.
//!
//! Source: RFC 9111 section 4.3.2; RFC 9110 section 13.2.2.

use engines::http::{FieldId, ResponseHead};
use server_cache::rfc9111::{FieldList, Precondition, evaluate_precondition};

use crate::exchange::{Ctx, Exchange};

/// Evaluates conditions by the RFC, and makes the reply a 304 if the client has the response. Otherwise a header stage
/// evaluates them by nginx's rules.
pub(super) fn apply(x: &mut Exchange, head: &ResponseHead, by_rfc: bool, cx: &Ctx<'_>) {
    x.reply.unconditional = false;
    // The parent of a subrequest needs its body.
    if !by_rfc || x.reply.status != 200 || x.is_subrequest() {
        return;
    }
    x.reply.unconditional = true;
    let now_s = cx.clock.unix_s();
    let (request, stored) = (FieldList::from(&x.head), FieldList::from(head));
    let found = evaluate_precondition(x.target.method, request, stored, now_s, now_s);
    if found == Precondition::NotModified {
        let reply = &mut x.reply;
        reply.status = 304;
        reply.content_type.clear();
        reply.content_length = None;
        reply.allow_ranges = false;
        reply.fields.remove(FieldId::ContentEncoding);
    }
}
