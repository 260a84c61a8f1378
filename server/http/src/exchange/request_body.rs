//! The received part of a request body, as an exchange keeps it. [`request_body`](crate::request_body) works on it.

mod pace;
mod pieces;

use std::collections::VecDeque;
use std::rc::Rc;

use server_base::errlog::Level;
use server_base::files::TempFile;

use crate::conf_core::{CoreLoc, InFile};
pub(crate) use pace::Pace;
pub(crate) use pieces::{Limits, Stream, Unread};

/// The received part of a request body.
#[derive(Default)]
pub(crate) struct RequestBody {
    /// Pieces that no handler has taken yet.
    pub(crate) held: VecDeque<Vec<u8>>,
    pub(crate) held_bytes: u64,
    /// All that has come.
    pub(crate) received: u64,
    /// Bytes consumed since the driver last read this.
    pub(crate) used: u64,
    /// Nothing comes any more.
    pub(crate) ended: bool,
    /// Collects the whole body, if a handler wants it.
    pub(crate) reader: Option<Reader>,
    /// Or piece by piece.
    pub(crate) stream: Option<Stream>,
    /// Or counts a body without a reader.
    pub(crate) unread: Option<Unread>,
}

/// Options of collecting a body.
#[derive(Clone, Copy, Debug)]
pub struct CollectOptions {
    /// Whether it is to be in a file, small or large.
    pub in_file: InFile,
    /// Permission bits of the file.
    pub mode: u32,
    /// Level of the log line about the file; `None` for no line.
    pub log: Option<Level>,
    /// Maximum length of a body without an announced one, bytes, if that is below `client_max_body_size`; all of it is in
    /// memory.
    pub most: Option<u64>,
}

impl CollectOptions {
    /// The options of the location.
    pub fn of(loc: &CoreLoc) -> Self {
        let in_file = *loc.bodies.client_body_in_file_only;
        Self {
            in_file,
            mode: 0o600,
            log: Some(match in_file {
                InFile::Off => Level::Warn,
                InFile::Clean | InFile::On => Level::Notice,
            }),
            most: None,
        }
    }
}

/// Collects a body.
pub(crate) struct Reader {
    pub(crate) plan: CollectOptions,
    /// The part that is not in a file.
    pub(crate) memory: Vec<u8>,
    /// The whole body in place of `memory`, if several requests have it.
    pub(crate) shared: Option<Rc<[u8]>>,
    /// Maximum number of bytes in memory.
    pub(crate) memory_limit: u64,
    pub(crate) file: Option<TempFile>,
    /// Maximum length of a body without an announced one, bytes; 0 for none.
    pub(crate) most: u64,
    pub(crate) pace: Pace,
    pub(crate) end: Option<Result<(), u16>>,
    /// The handler knows of the end.
    pub(crate) told: bool,
}

impl Reader {
    /// Whether nothing more is waited for.
    pub(crate) fn is_done(&self) -> bool {
        self.end.is_some()
    }

    /// Whether nothing more is waited for, and the handler is to run.
    pub(crate) fn is_due(&self) -> bool {
        self.is_done() && !self.told
    }

    /// The whole body, if it is in memory.
    pub(crate) fn whole_in_memory(&self) -> Option<&[u8]> {
        let whole = self.end == Some(Ok(())) && self.file.is_none();
        whole.then(|| self.shared.as_deref().unwrap_or(&self.memory))
    }

    /// A second owner of a body that was collected; `None` if it is not whole. The first call copies a body in memory.
    fn share(&mut self) -> Option<Self> {
        if self.end != Some(Ok(())) {
            return None;
        }
        if self.file.is_none() && self.shared.is_none() {
            self.shared = Some(std::mem::take(&mut self.memory).into());
        }
        Some(Self {
            plan: self.plan,
            memory: Vec::new(),
            shared: self.shared.clone(),
            memory_limit: self.memory_limit,
            file: self.file.as_ref().map(TempFile::share),
            most: self.most,
            pace: self.pace.clone(),
            end: self.end,
            told: true,
        })
    }
}

impl RequestBody {
    /// A second owner of a body that was collected, for another request; `None` if it is not whole.
    pub(crate) fn share(&mut self) -> Option<Self> {
        let reader = self.reader.as_mut()?.share()?;
        Some(Self {
            received: self.received,
            ended: true,
            reader: Some(reader),
            ..Self::default()
        })
    }

    /// Holds a piece until the handler takes it.
    pub(crate) fn hold(&mut self, bytes: Vec<u8>) {
        self.held_bytes += bytes.len() as u64;
        // Small pieces are joined, since each costs an allocation.
        match self.held.back_mut() {
            Some(last) if last.len() + bytes.len() <= JOINED_BYTES => {
                last.extend_from_slice(&bytes);
            }
            _ => self.held.push_back(bytes),
        }
    }

    /// Whether pieces have arrived since the handler last ran.
    pub(crate) fn is_due(&self) -> bool {
        self.reader.as_ref().is_some_and(Reader::is_due)
            || self.stream.as_ref().is_some_and(Stream::is_due)
            || self
                .unread
                .as_ref()
                .is_some_and(|unread| self.ended || unread.is_exceeded(self.received))
    }

    /// Marks all arrivals as seen: the handler runs now.
    pub(crate) fn forget_arrivals(&mut self) {
        if let Some(stream) = &mut self.stream {
            stream.due = false;
        }
    }

    /// When more of it must have come for the handler that takes pieces, monotonic milliseconds.
    pub(crate) fn due_ms(&self) -> Option<u64> {
        self.stream.as_ref()?.until_ms()
    }
}

/// Bytes up to which pieces that are held are joined.
pub(crate) const JOINED_BYTES: usize = 4 << 10;
