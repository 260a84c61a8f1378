//! Conditions and ranges of a client, which a cache evaluates in the place of the server.
//!
//! Source: RFC 9111 sections 3.3, 4.3.2; RFC 9110 sections 13.2.2, 14.

use engines::http::{FieldId, ResponseHead};
use server_cache::rfc9111::{FieldList, Precondition, evaluate_precondition};

use crate::exchange::{Ctx, Exchange, Reply};

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

/// Permits parts of a response with this head. The server need not accept ranges if the cache follows the RFC. The body of
/// a response that is being received is sent in its order, so one range at a time.
pub(super) fn allow_ranges(reply: &mut Reply, head: &ResponseHead, by_rfc: bool, is_whole: bool) {
    let accepts = head.get(FieldId::AcceptRanges).is_some();
    let may_cut = accepts || by_rfc && reply.status == 200;
    if may_cut && !reply.allow_ranges {
        (reply.allow_ranges, reply.single_range) = (true, true);
        // The range stage sends its own.
        reply.fields.remove(FieldId::AcceptRanges);
    }
    reply.single_range &= !is_whole;
}
