//! From the fields of a header block to a response head.
//!
//! A pair's role in a response is determined once and kept with the pair's entry in the header table.
//!
//! Source: RFC 9113 section 8.

use super::super::Settings;
use super::super::request::{Role, check};
use crate::client::{Announced, Malformed, parse_status};
use crate::http::{BodyLength, FieldId, ResponseHead};

/// Role of a pair in a response.
#[derive(Clone, Copy, Debug)]
pub(super) enum Note {
    /// `:status`.
    Status(Option<u16>),
    Good(FieldId),
    /// To be dropped.
    Odd,
    Malformed,
}

impl Note {
    fn of(name: &[u8], value: &[u8], settings: &Settings) -> Self {
        match name {
            b":status" => Self::Status(parse_status(value)),
            [b':', ..] => Self::Malformed,
            _ => match check(name, value, settings, Role::Good) {
                Role::Good => Self::Good(FieldId::of(name)),
                Role::Odd => Self::Odd,
                _ => Self::Malformed,
            },
        }
    }
}

/// A head in the making.
pub(super) struct Builder<'a> {
    settings: &'a Settings,
    head: Box<ResponseHead>,
    /// Whether fields are stored, or only counted.
    stored: bool,
    text_bytes: usize,
    count: u32,
    length: Announced,
    broken: Option<Malformed>,
}

/// A finished head.
pub(super) struct Built {
    pub(super) head: Box<ResponseHead>,
    pub(super) text_bytes: u64,
    pub(super) broken: Option<Malformed>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(settings: &'a Settings, head: Box<ResponseHead>, stored: bool) -> Self {
        Self {
            settings,
            head,
            stored,
            text_bytes: 0,
            count: 0,
            length: Announced::default(),
            broken: None,
        }
    }

    /// Checks and stores one field; findings about it go to `note`.
    #[inline]
    pub(super) fn field(&mut self, name: &[u8], value: &[u8], note: &mut Option<Note>) {
        self.text_bytes += name.len() + value.len();
        let longest = name.len().max(value.len());
        if self.text_bytes > self.settings.header_bytes || longest > self.settings.field_bytes {
            self.breaks(Malformed::TooLarge);
            return;
        }
        let settings = self.settings;
        match *note.get_or_insert_with(|| Note::of(name, value, settings)) {
            Note::Status(Some(status)) if self.head.status == 0 && self.count == 0 => {
                self.head.status = status;
            }
            Note::Status(_) => self.breaks(Malformed::Status),
            Note::Malformed => self.breaks(Malformed::Field),
            Note::Odd => {}
            Note::Good(id) => self.good(id, name, value),
        }
    }

    #[inline]
    fn good(&mut self, id: FieldId, name: &[u8], value: &[u8]) {
        self.count += 1;
        if self.count > self.settings.max_headers {
            return self.breaks(Malformed::TooLarge);
        }
        if id == FieldId::ContentLength {
            self.length.take(value);
        }
        if self.stored {
            self.head.push_id(id, name, value);
        }
    }

    fn breaks(&mut self, what: Malformed) {
        self.broken.get_or_insert(what);
    }

    /// The head, once the block has ended; `ended`: the response has no body.
    pub(super) fn finish(mut self, ended: bool) -> Built {
        if self.head.status == 0 {
            self.breaks(Malformed::Status);
        }
        self.head.keep_alive = true;
        self.head.body = self.length.body(ended).unwrap_or_else(|| {
            self.broken.get_or_insert(Malformed::Length);
            BodyLength::None
        });
        Built {
            head: self.head,
            text_bytes: self.text_bytes as u64,
            broken: self.broken,
        }
    }
}
