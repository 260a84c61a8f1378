//! Header blocks of the peer: requests, trailers, and blocks decoded only for their changes of the table.
//!
//! Source: RFC 9113 sections 4.3, 6.2, 6.10, 8.1.

use super::budget::{self, Budget};
use super::conn::{Conn, Ending};
use super::error::{self, ProtocolError};
use super::event::Event;
use super::frame::{self, FrameHead, number, unpadded};
use super::request::{Builder, Note, Trailers};
use super::settings::DEFAULT_WINDOW;
use crate::hpack::Decoder;
use crate::http::RequestHead;
use crate::mux::Priority;
use crate::mux::server::State;

/// An unfinished header block.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) stream: u32,
    end_stream: bool,
    kind: BlockKind,
    /// CONTINUATION frames that [`spend_piece`] counted.
    short_pieces: u8,
}

/// Purpose of a header block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockKind {
    Request,
    Trailers,
    /// It is decoded and dropped; the stream is reset with this code, if any.
    Dropped(Option<u32>),
}

impl Conn {
    pub(super) fn headers(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), ProtocolError> {
        let id = head.stream;
        if id == 0 {
            return Err(ProtocolError::WrongStream);
        }
        let mut block = unpadded(head, payload).ok_or(ProtocolError::BadPadding)?;
        let mut depends_on_itself = false;
        if head.has(frame::HAS_PRIORITY) {
            let depends = number(block).ok_or(ProtocolError::FrameSize)?;
            depends_on_itself = depends & frame::MAX_STREAM == id;
            block = block.get(5..).ok_or(ProtocolError::FrameSize)?;
        }
        let mut kind = self.kind_of_block(head)?;
        if depends_on_itself && kind == BlockKind::Request {
            kind = BlockKind::Dropped(Some(error::PROTOCOL_ERROR));
        }
        let early =
            !self.protocol.acknowledged && self.protocol.settings.preread_bytes < DEFAULT_WINDOW;
        if early && kind == BlockKind::Request && !head.has(frame::END_STREAM) {
            // Its body may exceed a window not yet known to the peer.
            kind = BlockKind::Dropped(Some(error::REFUSED_STREAM));
        }
        self.last_stream = self.last_stream.max(id);
        self.protocol.block_bytes.clear();
        self.protocol.block = Some(Block {
            stream: id,
            end_stream: head.has(frame::END_STREAM),
            kind,
            short_pieces: 0,
        });
        if head.has(frame::END_HEADERS) {
            return self.whole_block(Some(block));
        }
        self.protocol.block_bytes.extend_from_slice(block);
        Ok(())
    }

    fn kind_of_block(&mut self, head: FrameHead) -> Result<BlockKind, ProtocolError> {
        let id = head.stream;
        let most = self.protocol.settings.max_concurrent_streams as usize;
        if id.is_multiple_of(2) {
            return Err(ProtocolError::BadStreamNumber);
        }
        let open = self.streams.len() - self.pushed_streams();
        if let Some(stream) = self.streams.get(id) {
            return Ok(match stream.state {
                State::Malformed { ended: true } => BlockKind::Dropped(None),
                State::HalfClosedRemote => BlockKind::Dropped(Some(error::STREAM_CLOSED)),
                _ if !head.has(frame::END_STREAM) => {
                    BlockKind::Dropped(Some(error::PROTOCOL_ERROR))
                }
                _ => BlockKind::Trailers,
            });
        }
        if id <= self.last_stream {
            // RFC 9113 section 5.1.1: stream numbers must increase.
            self.absent(id)
                .map_err(|_| ProtocolError::BadStreamNumber)?;
            return Ok(BlockKind::Dropped(None));
        }
        Ok(match self.ending {
            Ending::After(_) | Ending::Failed => BlockKind::Dropped(None),
            _ if open >= most => BlockKind::Dropped(Some(error::REFUSED_STREAM)),
            _ => BlockKind::Request,
        })
    }

    pub(super) fn continuation(
        &mut self,
        head: FrameHead,
        payload: &[u8],
    ) -> Result<(), ProtocolError> {
        let block = self
            .protocol
            .block
            .as_mut()
            .filter(|b| b.stream == head.stream);
        let block = block.ok_or(ProtocolError::BrokenHeaderBlock)?;
        spend_piece(&mut block.short_pieces, head, payload, &mut self.budget)?;
        add_piece(
            &mut self.protocol.block_bytes,
            payload,
            self.protocol.settings.header_bytes,
        )?;
        if head.has(frame::END_HEADERS) {
            return self.whole_block(None);
        }
        Ok(())
    }

    /// Abandons a header block that was not complete in time: its stream is reset, and the rest is dropped on
    /// arrival. Returns the received part of an abandoned request, if no event has reported it.
    pub fn give_up_block(&mut self) -> Option<Box<RequestHead>> {
        let unfinished = self.unfinished();
        let (id, is_request) = match &mut self.protocol.block {
            Some(block) if block.kind == BlockKind::Dropped(None) => return None,
            Some(block) => {
                let kind = std::mem::replace(&mut block.kind, BlockKind::Dropped(None));
                (block.stream, kind != BlockKind::Trailers)
            }
            None => match self.held_headers() {
                Some(id) if id > self.last_stream && !id.is_multiple_of(2) => (id, true),
                _ => return None,
            },
        };
        if !is_request && self.streams.get(id).is_none() {
            // Its trailers had begun when the stream was reset for another reason.
            return None;
        }
        self.last_stream = self.last_stream.max(id);
        self.remove_stream(id);
        self.put_reset(id, error::PROTOCOL_ERROR);
        is_request.then_some(unfinished)
    }

    /// Returns the received part of a request with an incomplete header block, for the log.
    pub fn unfinished_request(&self) -> Option<Box<RequestHead>> {
        let is_request = match &self.protocol.block {
            Some(block) => block.kind == BlockKind::Request,
            None => self
                .held_headers()
                .is_some_and(|id| id > self.last_stream && !id.is_multiple_of(2)),
        };
        is_request.then(|| self.unfinished())
    }

    /// Decodes the received part of a header block and leaves the table unchanged.
    fn unfinished(&self) -> Box<RequestHead> {
        let mut builder = Builder::new(&self.protocol.settings, Box::default());
        let bytes = &self.protocol.block_bytes;
        // The end of the received part is no error here.
        let _ = decode(
            &mut self.protocol.decoder.clone(),
            bytes,
            |name, value, note| builder.field(name, value, note),
        );
        let mut head = builder.unfinished();
        head.size_bytes = bytes.len() as u64;
        head
    }

    /// Handles a complete header block: one frame, or the collected pieces.
    fn whole_block(&mut self, single: Option<&[u8]>) -> Result<(), ProtocolError> {
        let Some(block) = self.protocol.block.take() else {
            return Ok(());
        };
        let partial = std::mem::take(&mut self.protocol.block_bytes);
        let bytes = single.unwrap_or(&partial);
        let late = matches!(self.ending, Ending::After(last) if block.stream > last);
        let result = match block.kind {
            BlockKind::Request if late => self.dropped(&block, bytes, None),
            BlockKind::Request => self.request(&block, bytes),
            BlockKind::Trailers => self.trailers(&block, bytes),
            BlockKind::Dropped(code) => self.dropped(&block, bytes, code),
        };
        self.protocol.block_bytes = partial;
        self.protocol.block_bytes.clear();
        self.protocol.block_bytes.shrink_to(KEEP_BYTES);
        result
    }

    fn dropped(
        &mut self,
        block: &Block,
        bytes: &[u8],
        code: Option<u32>,
    ) -> Result<(), ProtocolError> {
        decode(&mut self.protocol.decoder, bytes, |_, _, _| {})?;
        match code {
            Some(code) => self.break_stream(block.stream, code),
            None => self.spend(budget::RESET),
        }
    }

    fn request(&mut self, block: &Block, bytes: &[u8]) -> Result<(), ProtocolError> {
        let id = block.stream;
        self.protocol.last_request = id;
        let mut builder = Builder::new(
            &self.protocol.settings,
            self.spares.pop().unwrap_or_default(),
        );
        decode(&mut self.protocol.decoder, bytes, |name, value, note| {
            builder.field(name, value, note)
        })?;
        let mut built = builder.finish(block.end_stream);
        built.head.size_bytes = bytes.len() as u64;
        let early = self
            .protocol
            .early_priorities
            .iter()
            .position(|(early, _)| *early == id);
        let priority = match (early, built.priority) {
            (Some(at), _) => self.protocol.early_priorities.swap_remove(at).1,
            (None, Some(span)) => {
                self.protocol.prioritised = true;
                Priority::parse(built.head.bytes(span))
            }
            (None, None) => self.default_priority(),
        };
        let allowed_bytes = self.protocol.settings.preread_bytes;
        let stream = self.open(id, built.head, priority, allowed_bytes, block.end_stream);
        if built.malformed {
            stream.state = stream.state.malformed();
        }
        Ok(())
    }

    /// Streams of a client that sends no priorities take turns.
    fn default_priority(&self) -> Priority {
        Priority {
            incremental: !self.protocol.prioritised,
            ..Priority::default()
        }
    }

    fn trailers(&mut self, block: &Block, bytes: &[u8]) -> Result<(), ProtocolError> {
        let id = block.stream;
        let mut trailers = Trailers::new(&self.protocol.settings);
        decode(&mut self.protocol.decoder, bytes, |name, value, _| {
            trailers.field(name, value)
        })?;
        let (fields, fault) = (trailers.fields, trailers.fault);
        let Some(stream) = self.streams.get(id) else {
            return Ok(());
        };
        if fault.is_some() {
            return self.break_stream(id, error::PROTOCOL_ERROR);
        }
        if stream.incoming.is_short() {
            return self.wrong_length(id);
        }
        if stream.state.wants_body() && !fields.is_empty() {
            self.events
                .push_back(Event::Trailers { stream: id, fields });
        }
        self.received_whole(id);
        Ok(())
    }
}

/// Charges a CONTINUATION to the budget. Short ones that do not end their header block are counted: past
/// [`MAX_SHORT_CONTINUATIONS`] the connection ends, however large its budget.
pub(super) fn spend_piece(
    short_pieces: &mut u8,
    head: FrameHead,
    payload: &[u8],
    budget: &mut Budget,
) -> Result<(), ProtocolError> {
    if payload.len() < budget::USEFUL_BYTES && !head.has(frame::END_HEADERS) {
        if *short_pieces == MAX_SHORT_CONTINUATIONS {
            return Err(ProtocolError::Flood);
        }
        *short_pieces += 1;
    }
    let cost = match payload.is_empty() {
        true => budget::EMPTY_CONTINUATION,
        false => budget::FRAME,
    };
    budget.spend(cost).then_some(()).ok_or(ProtocolError::Flood)
}

/// Adds the payload of a CONTINUATION to a header block with a limit for the bytes of its fields.
pub(super) fn add_piece(
    block: &mut Vec<u8>,
    payload: &[u8],
    header_bytes: usize,
) -> Result<(), ProtocolError> {
    if block.len() + payload.len() > header_bytes + BLOCK_EXTRA_BYTES {
        return Err(ProtocolError::HeaderFlood);
    }
    block.extend_from_slice(payload);
    Ok(())
}

/// Decodes a block; a field without a name ends the connection, as in nginx.
fn decode(
    decoder: &mut Decoder<Option<Note>>,
    bytes: &[u8],
    mut sink: impl FnMut(&[u8], &[u8], &mut Option<Note>),
) -> Result<(), ProtocolError> {
    let mut nameless = false;
    let take = |name: &[u8], value: &[u8], note: &mut _| {
        nameless |= name.is_empty();
        sink(name, value, note);
    };
    let result = decoder.decode_noting(bytes, take);
    result.map_err(ProtocolError::Compression)?;
    if nameless {
        return Err(ProtocolError::EmptyFieldName);
    }
    Ok(())
}

/// Most CONTINUATION frames of one header block with fewer than [`budget::USEFUL_BYTES`] each that do not end it. A
/// legitimate peer splits a block only because it does not fit in a frame.
const MAX_SHORT_CONTINUATIONS: u8 = 99;
/// Bytes by which a header block may exceed the limit of its fields: refused names and values are still read.
const BLOCK_EXTRA_BYTES: usize = 16 << 10;
/// Capacity kept for the next block of several frames.
pub(super) const KEEP_BYTES: usize = 4096;
