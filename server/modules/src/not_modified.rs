//! Conditional requests: `If-Modified-Since`, `If-Unmodified-Since`, `If-Match`, `If-None-Match`.
//!
//! Source: RFC 9110, section 13; nginx's order and rules (`if_modified_since`).

use engines::http::{FieldId, etag_matches, parse_http_date};
use server_http::conf_core::IfModifiedSince;
use server_http::exchange::{Ctx, Exchange};
use server_http::module::Module;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "not_modified",
    header_stage: Some(stage),
    ..Module::EMPTY
};

fn stage(x: &mut Exchange, _: &mut Ctx<'_>) -> Result<(), u16> {
    if x.reply.status != 200 || x.reply.unconditional || !is_conditional(x) {
        return Ok(());
    }
    if !precondition_holds(x) {
        x.clear_reply();
        return Err(412);
    }
    let since = x.head.field(FieldId::IfModifiedSince);
    let names_none = x.head.field(FieldId::IfNoneMatch).is_some();
    if since.is_none() && !names_none {
        return Ok(());
    }
    let modified = since.is_some_and(|value| is_modified(x, value));
    let unmatched = names_none && !lists_etag(x, FieldId::IfNoneMatch, true);
    if modified || unmatched {
        return Ok(());
    }
    x.reply.status = 304;
    x.reply.content_type.clear();
    x.reply.content_length = None;
    x.reply.allow_ranges = false;
    x.reply.fields.remove(FieldId::ContentEncoding);
    x.body.chunks.clear();
    Ok(())
}

/// Whether the request has any of the four fields: one pass over its fields, since most have none.
fn is_conditional(x: &Exchange) -> bool {
    x.head.fields.iter().any(|field| {
        matches!(
            field.id,
            FieldId::IfModifiedSince
                | FieldId::IfUnmodifiedSince
                | FieldId::IfMatch
                | FieldId::IfNoneMatch
        )
    })
}

/// Returns whether the fields `id` list the ETag of the response.
fn lists_etag(x: &Exchange, id: FieldId, weak: bool) -> bool {
    let etag = x.reply.etag.as_deref().unwrap_or_default();
    etag_matches(x.head.fields_by_id(id), etag, weak)
}

/// `If-Unmodified-Since` and `If-Match`.
fn precondition_holds(x: &Exchange) -> bool {
    if let Some(value) = x.head.field(FieldId::IfUnmodifiedSince) {
        let unmodified = matches!((x.reply.modified_s(), parse_http_date(value)), (Some(last), Some(time)) if time >= last);
        if !unmodified {
            return false;
        }
    }
    x.head.field(FieldId::IfMatch).is_none() || lists_etag(x, FieldId::IfMatch, false)
}

fn is_modified(x: &Exchange, value: &[u8]) -> bool {
    let (Some(last), rule) = (x.reply.modified_s(), *x.route.core_loc().if_modified_since) else {
        return true;
    };
    match (rule, parse_http_date(value)) {
        (IfModifiedSince::Off, _) | (_, None) => true,
        (IfModifiedSince::Exact, Some(time)) => time != last,
        (IfModifiedSince::Before, Some(time)) => time < last,
    }
}
