//! A request head under construction: the common part of both protocols' header blocks.
//!
//! Source: RFC 9113 sections 8.1.1, 8.2.3; draft-mbelshe-httpbis-spdy-00 section 3.2.1.

use crate::http::{
    BodyLength, Fault, FieldId, RequestHead, Span, Version, expects_continue, parse_length,
};

/// The head, and the counters of its fields.
#[derive(Debug)]
pub(crate) struct HeadBuilder {
    pub(crate) head: Box<RequestHead>,
    pub(crate) fault: Option<Fault>,
    /// Values of cookies; each may arrive as a field of its own.
    cookie: Vec<u8>,
    /// The numbers of the fields so far.
    seen: u64,
    /// Bytes of names and values so far.
    bytes: usize,
    /// Fields so far.
    count: u32,
}

impl HeadBuilder {
    pub(crate) fn new(mut head: Box<RequestHead>) -> Self {
        head.clear();
        Self {
            head,
            fault: None,
            cookie: Vec::new(),
            seen: 0,
            bytes: 0,
            count: 0,
        }
    }

    /// Counts a field; false if it is longer than `longest`, or all of them are longer than `most`, bytes.
    #[inline]
    pub(crate) fn fits(&mut self, name: &[u8], value: &[u8], most: usize, longest: usize) -> bool {
        self.bytes += name.len() + value.len();
        self.bytes <= most && name.len().max(value.len()) <= longest
    }

    /// Adds a piece of the cookie.
    pub(crate) fn cookie(&mut self, value: &[u8]) {
        if !self.cookie.is_empty() {
            self.cookie.extend_from_slice(b"; ");
        }
        self.cookie.extend_from_slice(value);
    }

    /// Stores a field and returns the range of its value; `None` if there are more than `most`.
    #[inline]
    pub(crate) fn store(
        &mut self,
        id: FieldId,
        name: &[u8],
        value: &[u8],
        most: u32,
    ) -> Option<Span> {
        // As in nginx, neither cookies nor dropped fields count.
        self.count += 1;
        if self.count > most {
            return None;
        }
        self.seen |= id.bit();
        Some(self.head.push_id(id, name, value))
    }

    /// Whether there is a field of this name.
    pub(crate) fn has(&self, id: FieldId) -> bool {
        self.seen & id.bit() != 0
    }

    /// The header block has ended.
    pub(crate) fn end(&mut self, version: Version) {
        if !self.cookie.is_empty() {
            self.head.push(b"cookie", &self.cookie);
        }
        self.head.version = version;
        self.head.keep_alive = true;
        if self.has(FieldId::Expect) {
            let expects = self
                .head
                .fields_by_id(FieldId::Expect)
                .any(expects_continue);
            self.head.expect_continue = expects;
        }
    }

    /// Sets the length of the body; `ended`: there is none. Returns the fault of `content-length`, and whether it
    /// announces a body that does not come.
    pub(crate) fn length(&mut self, ended: bool) -> (Option<Fault>, bool) {
        let none = match ended {
            true => BodyLength::None,
            false => BodyLength::Unknown,
        };
        if !self.has(FieldId::ContentLength) {
            self.head.body = none;
            return (None, false);
        }
        let mut lengths = self.head.fields_by_id(FieldId::ContentLength);
        let first = lengths.next().map(parse_length);
        let again = lengths.next().map(<[u8]>::to_vec);
        drop(lengths);
        let more = again.is_some();
        if let Some(again) = again.filter(|_| self.fault.is_none()) {
            self.head
                .blame_repeated(b"header line", b"content-length", &again);
        }
        self.head.body = match first {
            None => none,
            Some(Some(length)) if !ended => BodyLength::Length(length),
            Some(_) => BodyLength::None,
        };
        let fault = match first {
            _ if more => Some(Fault::DuplicateContentLength),
            Some(None) => Some(Fault::BadContentLength),
            _ => None,
        };
        (fault, ended && matches!(first, Some(Some(1..))))
    }
}
