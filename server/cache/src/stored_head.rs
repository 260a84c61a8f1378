//! All before the body of a stored response, parsed once for many requests.
//!
//! Absent: the choice of a response ([`crate::vary`]), and the check of purges ([`crate::index::Index::check_hit`]).

use std::sync::OnceLock;

use engines::http::ResponseHead;

use crate::directory::FileIdentity;
use crate::disk::{Header, Invalid, Notes, Prefix, parse};
use crate::key::CacheKey;
use crate::response_head::{self, HeadFormat};
use crate::rfc9111::ResponseFacts;

/// The parsed begin of a file.
#[derive(Debug, Default)]
pub struct StoredHead {
    identity: FileIdentity,
    /// Without `etag` and `vary`.
    header: Header<'static>,
    etag: Box<[u8]>,
    vary: Box<[u8]>,
    key: Box<[u8]>,
    /// Without `tags`.
    notes: Notes<'static>,
    tags: Box<[u8]>,
    body_len: u64,
    format: HeadFormat,
    head: ResponseHead,
    facts: OnceLock<(u32, ResponseFacts)>,
}

/// Why a file is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// Its begin.
    Begin(Invalid),
    /// Its response head.
    Head,
}

impl std::fmt::Display for Damage {
    /// Writes the text that follows `cache file "..."` in the log.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Begin(why) => why.fmt(f),
            Self::Head => f.write_str("contains invalid header"),
        }
    }
}

impl StoredHead {
    /// Parses all bytes before the body of a file, and verifies that it belongs to a key. Further bytes are ignored.
    ///
    /// # Errors
    /// The file is damaged, or has another key.
    pub fn parse(
        bytes: &[u8],
        identity: FileIdentity,
        key: &CacheKey,
        format: HeadFormat,
    ) -> Result<Self, Damage> {
        let prefix = parse(bytes, identity.len, key).map_err(Damage::Begin)?;
        let head = response_head::parse(prefix.head, format).ok_or(Damage::Head)?;
        Ok(Self::of(&prefix, identity, format, head))
    }

    fn of(
        prefix: &Prefix<'_>,
        identity: FileIdentity,
        format: HeadFormat,
        head: ResponseHead,
    ) -> Self {
        let (header, notes) = (&prefix.header, &prefix.notes);
        Self {
            identity,
            header: Header {
                etag: &[],
                vary: &[],
                valid_s: header.valid_s,
                updating_s: header.updating_s,
                error_s: header.error_s,
                last_modified_s: header.last_modified_s,
                date_s: header.date_s,
                crc32: header.crc32,
                valid_ms: header.valid_ms,
                header_start: header.header_start,
                body_start: header.body_start,
                variant: header.variant,
            },
            etag: header.etag.into(),
            vary: header.vary.into(),
            key: prefix.key.into(),
            notes: Notes {
                request_ms: notes.request_ms,
                response_ms: notes.response_ms,
                age_s: notes.age_s,
                body_len: notes.body_len,
                tags: &[],
            },
            tags: notes.tags.into(),
            body_len: prefix.body_len,
            format,
            head,
            facts: OnceLock::new(),
        }
    }

    /// Whether it is that of a key, for a gateway with this format.
    #[must_use]
    pub fn is_of(&self, key: &CacheKey, format: HeadFormat) -> bool {
        self.format == format && *self.key == *key.text()
    }

    /// Returns the identity of its file.
    #[must_use]
    pub fn identity(&self) -> FileIdentity {
        self.identity
    }

    /// Returns the binary head.
    #[must_use]
    pub fn header(&self) -> Header<'_> {
        Header {
            etag: &self.etag,
            vary: &self.vary,
            ..self.header
        }
    }

    /// Returns our notes.
    #[must_use]
    pub fn notes(&self) -> Notes<'_> {
        Notes {
            tags: &self.tags,
            ..self.notes
        }
    }

    /// Returns the tags of the response ([`crate::tags::Tags::text`]).
    #[must_use]
    pub fn tags(&self) -> &[u8] {
        &self.tags
    }

    /// Returns the position of the body in the file, bytes.
    #[must_use]
    pub fn body_start(&self) -> u64 {
        u64::from(self.header.body_start)
    }

    /// Returns the length of the body, bytes.
    #[must_use]
    pub fn body_len(&self) -> u64 {
        self.body_len
    }

    /// Returns the response head.
    #[must_use]
    pub fn head(&self) -> &ResponseHead {
        &self.head
    }

    /// Calls a function with the facts of the response head. `make` returns them. `settings` has all else that they
    /// depend on: the facts of the first value are kept.
    pub fn with_facts<T>(
        &self,
        settings: u32,
        make: impl Fn(&ResponseHead) -> ResponseFacts,
        f: impl FnOnce(&ResponseFacts) -> T,
    ) -> T {
        let kept = self.facts.get_or_init(|| (settings, make(&self.head)));
        match kept.0 == settings {
            true => f(&kept.1),
            false => f(&make(&self.head)),
        }
    }

    /// Returns its memory, bytes, without that of this value itself.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let texts = [&self.etag, &self.vary, &self.key, &self.tags];
        texts.iter().map(|text| text.len()).sum::<usize>() + self.head.arena.len()
    }
}
