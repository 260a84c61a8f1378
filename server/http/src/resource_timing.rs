//! Fields by which the script of an experiment sees times and lengths of static files.
//!
//! Modules decide about servers when the configuration is read. The head of a response has the fields at once, without a header
//! stage, so that responses of other servers pay nothing.
//!
//! Source: W3C Resource Timing, `Timing-Allow-Origin`; W3C Server Timing.

use engines::http::{FieldId, ResponseHead};

use crate::exchange::Reply;

/// Fields of a server's responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceTiming {
    /// Scripts of all hosts see times, unless the configuration has the field.
    pub shows_times: bool,
    /// The length of a body is announced, or an error: an element can fail before the script sees its event, and browsers hide
    /// the status of files from other hosts.
    pub announces_lengths: bool,
}

impl ResourceTiming {
    /// Returns whether there are fields.
    #[inline]
    pub(crate) fn is_any(self) -> bool {
        self.shows_times || self.announces_lengths
    }

    /// Adds the fields to the head of a response.
    #[cold]
    #[inline(never)]
    pub(crate) fn push(self, head: &mut ResponseHead, reply: &Reply) {
        if self.announces_lengths {
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
        if self.shows_times && !names.any(|name| name.eq_ignore_ascii_case(TIMING)) {
            head.push_own(FieldId::Other, b"Timing-Allow-Origin: ", b"*");
        }
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
