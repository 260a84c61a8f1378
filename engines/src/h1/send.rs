//! The response side of a connection: framing, and whether it is kept.
//!
//! Source: RFC 9112 sections 6.3 and 9.3; nginx's header and chunked filters.

use super::Conn;
use super::encode::{self, Connection, HeadPlan};
use crate::http::{BodyLength, Chunk, FieldId, ResponseHead, Version};

/// State of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sending {
    /// No head has been sent.
    Waiting,
    /// The body is being sent; `keep`: the connection is kept after it.
    Body {
        framing: Framing,
        keep: bool,
    },
    Ended {
        keep: bool,
    },
}

/// How the peer finds the end of the response body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// By its length; `left` bytes are outstanding.
    Counted {
        left: u64,
    },
    Chunked,
    /// By the end of the connection.
    UntilClose,
    /// No body, regardless of the head (HEAD, 204, 304).
    Suppressed,
}

impl Conn {
    /// Sends an interim response, 1xx but not 101, with `fields` if any. Nothing is sent to clients older than
    /// HTTP/1.1 (RFC 9110 section 15.2), nor after the head. Returns its length in bytes.
    pub fn send_interim(&mut self, status: u16, fields: Option<&ResponseHead>) -> u64 {
        debug_assert!(
            (100..200).contains(&status) && status != 101,
            "an interim status"
        );
        let wanted = self.has_request()
            && self.sending == Sending::Waiting
            && self.request.version >= Version::Http11;
        let before = self.out.len();
        if wanted {
            self.out
                .push_with(|out| encode::interim(out, status, fields));
        }
        self.out.len() - before
    }

    /// Sends the head of the response and returns its length in bytes; HTTP/0.9 has none.
    pub fn send_head(&mut self, head: &ResponseHead) -> u64 {
        if !self.has_request() || self.sending != Sending::Waiting {
            debug_assert!(false, "one head for one request");
            return 0;
        }
        let framing = self.framing(head);
        let keep = head.keep_alive
            && !self.request.close
            && !self.last
            && !self.is_broken()
            && framing != Framing::UntilClose;
        self.sending = Sending::Body { framing, keep };
        if self.request.version < Version::Http10 {
            return 0;
        }
        let plan = HeadPlan {
            chunked: framing == Framing::Chunked,
            empty: head.body == BodyLength::None
                && framing == Framing::Counted { left: 0 }
                && head.get(FieldId::ContentLength).is_none(),
            connection: match keep {
                _ if head.status == 101 => Connection::Upgrade,
                true => Connection::KeepAlive,
                false => Connection::Close,
            },
        };
        let before = self.out.len();
        self.out.push_with(|out| encode::head(out, head, plan));
        if head.status == 101 {
            self.begin_tunnel();
        }
        self.out.len() - before
    }

    fn framing(&self, head: &ResponseHead) -> Framing {
        match (head.status, head.body) {
            (101, _) => Framing::UntilClose,
            // RFC 9110 section 6.4.1.
            (100..200 | 204 | 304, _) => Framing::Suppressed,
            _ if self.request.is_head => Framing::Suppressed,
            (_, BodyLength::None) => Framing::Counted { left: 0 },
            (_, BodyLength::Length(left)) => Framing::Counted { left },
            (_, BodyLength::Unknown)
                if self.request.version >= Version::Http11 && !head.forbid_chunked =>
            {
                Framing::Chunked
            }
            (_, BodyLength::Unknown) => Framing::UntilClose,
        }
    }

    /// Sends a piece of the body; nothing if the response has no body. Bytes beyond the announced
    /// length are dropped, and the connection is closed.
    pub fn send_data(&mut self, chunk: Chunk) {
        let Sending::Body { framing, keep } = &mut self.sending else {
            debug_assert!(false, "data comes between head and end");
            return;
        };
        let len = chunk.len();
        if len == 0 {
            return;
        }
        match framing {
            Framing::Suppressed => {}
            Framing::UntilClose => self.out.push(chunk),
            Framing::Counted { left } => {
                if len > *left {
                    *keep = false;
                }
                let chunk = chunk.truncated(*left);
                *left -= chunk.len();
                self.out.push(chunk);
            }
            Framing::Chunked => {
                self.out.push_with(|out| encode::chunk_size(out, len));
                self.out.push(chunk);
                self.out.push_bytes(b"\r\n");
            }
        }
    }

    /// Ends the body, with `trailers` if it is chunked. A body shorter than
    /// announced ends the connection.
    pub fn send_end(&mut self, trailers: Option<&ResponseHead>) {
        let Sending::Body { framing, keep } = self.sending else {
            debug_assert!(false, "the end follows a head");
            return;
        };
        if framing == Framing::Chunked {
            self.out.push_with(|out| encode::last_chunk(out, trailers));
        }
        let whole = !matches!(framing, Framing::Counted { left: 1.. });
        self.sending = Sending::Ended {
            keep: keep && whole,
        };
    }
}
