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
        timing.push(head, reply);
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
