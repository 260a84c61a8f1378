//! The body of a request on its way in: what the driver delivers, and what becomes of it.
//!
//! ```text
//! driver:   deliver_body, end_body        as the engine tells; then, if is_body_due, phases::resume
//!           body_used                     bytes that are used up: the peer may send as many again
//!           has_body_room                 whether more may be read where nobody gives back windows
//! handler:  collect                       the whole body, in memory or in a file; Wait until it is there
//! ```
//!
//! Nothing asks for a body but the handler that needs it; until one does, what comes is held, up to what the peer may send
//! unasked, and once a response has been decided nothing is delivered any more. A handler that takes pieces as they come
//! would stand beside `collect`, and take from what is held.
//!
//! Source: nginx documentation, directives `client_body_*`, `client_max_body_size`.

mod collect;
mod pace;

use std::collections::VecDeque;

use engines::http::BodyLength;
use server_base::errlog::Level;
use server_base::files::TempFile;

use crate::exchange::{Ctx, Exchange, State, Wait};
use collect::Reader;
pub use collect::{Collected, InFile, Plan, collect};
pub use pace::BodyRate;

/// What has come of the body of a request.
#[derive(Default)]
pub struct RequestBody {
    /// What nobody has asked for yet.
    held: VecDeque<Vec<u8>>,
    held_bytes: u64,
    /// All that has come.
    received: u64,
    /// Bytes used up since the driver asked.
    used: u64,
    /// Nothing comes any more.
    ended: bool,
    /// Who takes it.
    reader: Option<Reader>,
}

impl Exchange {
    /// Takes a piece of the body. Called while the response is not decided.
    pub fn deliver_body(&mut self, bytes: Vec<u8>, cx: &mut Ctx<'_>) {
        let mut request_body = self.request_body.take().unwrap_or_default();
        let len = bytes.len() as u64;
        request_body.received += len;
        match &mut request_body.reader {
            None => {
                request_body.held_bytes += len;
                // Small pieces are joined: what is held is not to be more than its bytes.
                match request_body.held.back_mut() {
                    Some(last) if last.len() + bytes.len() <= JOINED_BYTES => {
                        last.extend_from_slice(&bytes);
                    }
                    _ => request_body.held.push_back(bytes),
                }
            }
            Some(reader) => {
                request_body.used += len;
                reader.take(self, cx, bytes, request_body.received);
                if matches!(self.state, State::Waiting(wait) if wait.body) {
                    self.state = State::Waiting(Wait::body_or_until(reader.pace.until_ms()));
                }
            }
        }
        self.request_body = Some(request_body);
    }

    /// The body is complete.
    pub fn end_body(&mut self, cx: &mut Ctx<'_>) {
        let mut request_body = self.request_body.take().unwrap_or_default();
        request_body.ended = true;
        if let Some(reader) = &mut request_body.reader {
            reader.end(self, cx);
        }
        self.request_body = Some(request_body);
    }

    /// Whether the exchange waits for something of the body that is there now.
    #[inline]
    pub fn is_body_due(&self) -> bool {
        let reader = self
            .request_body
            .as_ref()
            .and_then(|request_body| request_body.reader.as_ref());
        reader.is_some_and(Reader::is_due) && self.is_waiting()
    }

    /// Whether the exchange waits for more of the body.
    pub fn awaits_body(&self) -> bool {
        let reader = self
            .request_body
            .as_ref()
            .and_then(|request_body| request_body.reader.as_ref());
        reader.is_some_and(|reader| !reader.is_done()) && self.is_waiting()
    }

    /// Bytes that were used up since this was asked.
    pub fn body_used(&mut self) -> u64 {
        self.request_body
            .as_mut()
            .map_or(0, |request_body| std::mem::take(&mut request_body.used))
    }

    /// Whether more of the body may come without being held in heaps.
    #[inline]
    pub fn has_body_room(&self) -> bool {
        self.request_body
            .as_ref()
            .is_none_or(|request_body| request_body.held_bytes < HELD_BYTES)
    }

    /// The peer has gone in the middle of the body: there is nobody to answer.
    pub fn lose_body(&mut self) {
        self.log(
            Level::Info,
            format_args!("client prematurely closed connection"),
        );
        self.err_status = 400;
        self.reply.status = 400;
    }

    /// The whole body, where it was collected and lies in memory.
    pub fn body_bytes(&self) -> Option<&[u8]> {
        let reader = self.request_body.as_ref()?.reader.as_ref()?;
        reader.whole_in_memory()
    }

    /// The file with the body, where it was collected and lies in one.
    pub fn body_file(&self) -> Option<&TempFile> {
        self.request_body.as_ref()?.reader.as_ref()?.file.as_ref()
    }

    /// The same, to be written to or renamed.
    pub fn body_file_mut(&mut self) -> Option<&mut TempFile> {
        self.request_body.as_mut()?.reader.as_mut()?.file.as_mut()
    }

    /// How long the body is, where that was found out by reading it.
    pub fn body_size(&self) -> Option<u64> {
        let request_body = self.request_body.as_ref()?;
        request_body.ended.then_some(request_body.received)
    }

    /// Whether the body has come to its end, or there is none.
    fn is_body_complete(&self) -> bool {
        let empty = matches!(self.head.body, BodyLength::None | BodyLength::Length(0));
        empty
            || self
                .request_body
                .as_ref()
                .is_some_and(|request_body| request_body.ended)
    }
}

/// Bytes of a body that are held before anybody has asked for it; as much is read ahead over HTTP/2.
const HELD_BYTES: u64 = 64 << 10;
/// Bytes up to which pieces that are held are joined.
const JOINED_BYTES: usize = 4 << 10;

#[cfg(test)]
#[path = "held_tests.rs"]
mod tests;
