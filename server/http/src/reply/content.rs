//! Fields of a response about its content: type, length, time of change; and the fields for scripts that measure it.

use engines::http::{BodyLength, FieldId, ResponseHead, decimal};

use crate::exchange::Reply;
use crate::resource_timing::ResourceTiming;

/// Adds the fields to the head of a response.
#[inline]
pub(super) fn describe(head: &mut ResponseHead, reply: &Reply, timing: ResourceTiming) {
    if !reply.content_type.is_empty() {
        reply.content_type.push_to(head, &reply.charset);
    }
    head.body = BodyLength::Unknown;
    if let Some(length) = reply.content_length {
        let mut digits = [0; 20];
        let digits = decimal(length, &mut digits);
        head.push_own(FieldId::ContentLength, b"Content-Length: ", digits);
        head.body = BodyLength::Length(length);
    }
    if timing.is_any() {
        push_timing(timing, head, reply);
    }
    if reply.fields.get(FieldId::LastModified).is_some() {
        // `add_header` has put its own in the place of ours.
    } else if let Some(text) = &reply.last_modified_text {
        head.push_id(FieldId::LastModified, b"Last-Modified", text);
    } else if let Some(time) = reply.last_modified {
        match &reply.source {
            Some(file) if file.meta.mtime_s == time => {
                head.push_own(
                    FieldId::LastModified,
                    b"Last-Modified: ",
                    file.last_modified(),
                );
            }
            _ => {
                let text = engines::http::http_date(time);
                head.push_own(FieldId::LastModified, b"Last-Modified: ", &text);
            }
        }
    }
}

/// Adds the fields for scripts to the head of a response.
#[cold]
#[inline(never)]
fn push_timing(timing: ResourceTiming, head: &mut ResponseHead, reply: &Reply) {
    if timing.announces_lengths {
        match (reply.status, length(head)) {
            (200, Some(length)) => {
                // Without an allocation: most responses of such a server have the field.
                let mut value = [0; SIZE.len() + 20];
                let value = &mut value[..SIZE.len() + length.len()];
                value[..SIZE.len()].copy_from_slice(SIZE);
                value[SIZE.len()..].copy_from_slice(length);
                head.push_own(FieldId::Other, b"Server-Timing: ", value);
            }
            (400.., _) => head.push_own(FieldId::Other, b"Server-Timing: ", b"error"),
            _ => {}
        }
    }
    let fields = &reply.fields;
    let mut names = fields.fields.iter().map(|field| fields.bytes(field.name));
    if timing.shows_times && !names.any(|name| name.eq_ignore_ascii_case(TIMING)) {
        head.push_own(FieldId::Other, b"Timing-Allow-Origin: ", b"*");
    }
}

/// Returns the decimal length of the body, if its field was added last.
fn length(head: &ResponseHead) -> Option<&[u8]> {
    let last = head.fields.last()?;
    (last.id == FieldId::ContentLength).then(|| head.bytes(last.value))
}

/// The metric of `Server-Timing` with the length.
const SIZE: &[u8] = b"size;dur=";
/// The field that lets scripts see times.
const TIMING: &[u8] = b"Timing-Allow-Origin";
