//! What each frame of the peer does.
//!
//! Source: RFC 9113 section 6, RFC 9218 section 7.

use super::budget;
use super::conn::{Conn, DRAIN_PING, Ending, MAX_WINDOW};
use super::error::{self, Misdeed};
use super::event::Event;
use super::frame::{self, FrameHead, number, put_head, unpadded};
use super::request::{Builder, Trailers};
use super::settings::Setting;
use super::stream::{Sending, Stream};
use crate::http::{BodyLength, Fault, Method};
use crate::mux::{Priority, Window};

/// A header block of which more is to come.
#[derive(Debug)]
pub(super) struct Block {
    stream: u32,
    end_stream: bool,
    kind: BlockKind,
}

/// What a header block is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockKind {
    Request,
    Trailers,
    /// It is decoded, since that changes the table, and dropped; the stream is reset with this code, if any.
    Dropped(Option<u32>),
}

impl Conn {
    /// Takes one frame.
    pub(super) fn frame(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), Misdeed> {
        if self.block.is_some() && head.kind != frame::CONTINUATION {
            return Err(Misdeed::BrokenHeaderBlock);
        }
        if !self.settled && head.kind != frame::SETTINGS {
            // RFC 9113 section 3.4: SETTINGS come first.
            return Err(Misdeed::BadPreface);
        }
        match head.kind {
            frame::DATA => self.data(head, payload),
            frame::HEADERS => self.headers(head, payload),
            frame::PRIORITY => self.priority(head, payload),
            frame::RST_STREAM => self.rst_stream(head, payload),
            frame::SETTINGS => self.peer_settings(head, payload),
            frame::PUSH_PROMISE => Err(Misdeed::PushFromClient),
            frame::PING => self.ping(head, payload),
            frame::GOAWAY => self.goaway(head, payload),
            frame::WINDOW_UPDATE => self.window_update(head, payload),
            frame::CONTINUATION => self.continuation(head, payload),
            frame::PRIORITY_UPDATE => self.priority_update(head, payload),
            // RFC 9113 section 5.5: what is not known is ignored.
            _ => self.spend(budget::FRAME),
        }
    }

    fn spend(&mut self, cost: u32) -> Result<(), Misdeed> {
        if self.budget.spend(cost) {
            Ok(())
        } else {
            Err(Misdeed::Flood)
        }
    }

    /// A frame on a stream that is not in the table: whether it may be dropped.
    fn absent(&self, id: u32) -> Result<(), Misdeed> {
        if id > self.last_stream || id.is_multiple_of(2) {
            return Err(Misdeed::BadStreamNumber);
        }
        let refused = matches!(self.ending, Ending::After(last) if id > last);
        if refused || self.reset_lately.contains(&id) {
            return Ok(());
        }
        Err(Misdeed::ClosedStream)
    }

    fn data(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), Misdeed> {
        if head.stream == 0 {
            return Err(Misdeed::WrongStream);
        }
        let size = payload.len() as u64;
        let bytes = unpadded(head, payload).ok_or(Misdeed::BadPadding)?;
        self.allowed_bytes = self
            .allowed_bytes
            .checked_sub(size)
            .ok_or(Misdeed::WindowExceeded)?;
        if self.allowed_bytes < MAX_WINDOW / 2 {
            self.put_window_update(0, MAX_WINDOW - self.allowed_bytes);
            self.allowed_bytes = MAX_WINDOW;
        }
        if bytes.len() >= budget::USEFUL_BYTES {
            self.budget.earn(budget::DATA);
        } else if !head.has(frame::END_STREAM) {
            self.spend(budget::FRAME)?;
        }
        let Some(stream) = self.streams.get(head.stream) else {
            self.absent(head.stream)?;
            return self.spend(budget::FRAME);
        };
        if stream.received {
            return self.break_stream(head.stream, error::STREAM_CLOSED);
        }
        let Some(allowed) = stream.allowed_bytes.checked_sub(size) else {
            return if stream.sending == Sending::Ended {
                // The response is sent, and what was allowed of the body has been read.
                self.reset(head.stream, error::NO_ERROR);
                Ok(())
            } else {
                self.break_stream(head.stream, error::FLOW_CONTROL_ERROR)
            };
        };
        stream.allowed_bytes = allowed;
        self.body(head, bytes, size)
    }

    /// Takes body bytes on an open stream.
    fn body(&mut self, head: FrameHead, bytes: &[u8], size: u64) -> Result<(), Misdeed> {
        let id = head.stream;
        let Some(stream) = self.streams.get(id) else {
            return Ok(());
        };
        let ended = head.has(frame::END_STREAM);
        if let Some(left) = stream.length_left {
            let left = left.checked_sub(bytes.len() as u64);
            if left.is_none_or(|left| ended && left > 0) {
                return self.wrong_length(id);
            }
            stream.length_left = left;
        }
        let discarding = stream.discarding;
        if !discarding && !bytes.is_empty() {
            self.events.push_back(Event::Data {
                stream: id,
                bytes: bytes.to_vec(),
            });
        }
        let unread = if discarding {
            size
        } else {
            size - bytes.len() as u64
        };
        if ended {
            self.received_whole(id);
        } else if unread > 0 {
            self.consumed(id, unread);
        }
        Ok(())
    }

    /// The body is not as long as announced (RFC 9113 section 8.1.1).
    fn wrong_length(&mut self, id: u32) -> Result<(), Misdeed> {
        self.spend(budget::RESET)?;
        let Some(stream) = self.streams.get(id) else {
            return Ok(());
        };
        if stream.sending == Sending::Ended {
            self.reset(id, error::PROTOCOL_ERROR);
            return Ok(());
        }
        stream.malformed = true;
        stream.received = true;
        self.events
            .push_back(Event::BodyFault(id, Fault::BadContentLength));
        Ok(())
    }

    /// The peer has ended its side.
    fn received_whole(&mut self, id: u32) {
        let Some(stream) = self.streams.get(id) else {
            return;
        };
        stream.received = true;
        if stream.sending == Sending::Ended {
            self.streams.remove(id);
        } else if !stream.discarding {
            self.events.push_back(Event::BodyEnd(id));
        }
    }

    /// Body bytes have been used up: the peer may send as many again.
    pub fn consumed(&mut self, id: u32, bytes: u64) {
        let threshold = u64::from(self.settings.preread_bytes) / 2;
        let Some(stream) = self.streams.get(id) else {
            return;
        };
        // After the response nothing more is allowed than has been.
        if stream.received || stream.sending == Sending::Ended {
            return;
        }
        stream.consumed_bytes += bytes;
        if stream.consumed_bytes > threshold {
            let grant = std::mem::take(&mut stream.consumed_bytes);
            stream.allowed_bytes += grant;
            self.put_window_update(id, grant);
        }
    }

    /// Gives no more `Data` and `Trailers` of this request.
    pub fn discard_body(&mut self, id: u32) {
        if let Some(stream) = self.streams.get(id) {
            stream.discarding = true;
        }
    }

    /// Ends a stream that the peer has broken.
    fn break_stream(&mut self, id: u32, code: u32) -> Result<(), Misdeed> {
        self.spend(budget::RESET)?;
        let running = self
            .streams
            .get(id)
            .is_some_and(|stream| stream.sending != Sending::Ended);
        self.reset(id, code);
        if running {
            self.events.push_back(Event::Reset(id));
        }
        Ok(())
    }

    fn headers(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), Misdeed> {
        let id = head.stream;
        if id == 0 {
            return Err(Misdeed::WrongStream);
        }
        let mut block = unpadded(head, payload).ok_or(Misdeed::BadPadding)?;
        let mut depends_on_itself = false;
        if head.has(frame::HAS_PRIORITY) {
            let depends = number(block).ok_or(Misdeed::FrameSize)?;
            depends_on_itself = depends & frame::MAX_STREAM == id;
            block = block.get(5..).ok_or(Misdeed::FrameSize)?;
        }
        let mut kind = self.kind_of_block(head)?;
        if depends_on_itself && kind == BlockKind::Request {
            kind = BlockKind::Dropped(Some(error::PROTOCOL_ERROR));
        }
        self.last_stream = self.last_stream.max(id);
        self.block_bytes.clear();
        self.block = Some(Block {
            stream: id,
            end_stream: head.has(frame::END_STREAM),
            kind,
        });
        if head.has(frame::END_HEADERS) {
            return self.whole_block(Some(block));
        }
        self.block_bytes.extend_from_slice(block);
        Ok(())
    }

    fn kind_of_block(&mut self, head: FrameHead) -> Result<BlockKind, Misdeed> {
        let id = head.stream;
        let most = self.settings.max_concurrent_streams as usize;
        let open = self.streams.len();
        if let Some(stream) = self.streams.get(id) {
            return Ok(if stream.received {
                BlockKind::Dropped(Some(error::STREAM_CLOSED))
            } else if !head.has(frame::END_STREAM) {
                BlockKind::Dropped(Some(error::PROTOCOL_ERROR))
            } else {
                BlockKind::Trailers
            });
        }
        if id.is_multiple_of(2) {
            return Err(Misdeed::BadStreamNumber);
        }
        if id <= self.last_stream {
            self.absent(id)?;
            return Ok(BlockKind::Dropped(None));
        }
        Ok(match self.ending {
            Ending::After(_) | Ending::Failed => BlockKind::Dropped(None),
            _ if open >= most => BlockKind::Dropped(Some(error::REFUSED_STREAM)),
            _ => BlockKind::Request,
        })
    }

    fn continuation(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), Misdeed> {
        let Some(block) = &self.block else {
            return Err(Misdeed::BrokenHeaderBlock);
        };
        if block.stream != head.stream {
            return Err(Misdeed::BrokenHeaderBlock);
        }
        self.spend(if payload.is_empty() {
            budget::EMPTY_CONTINUATION
        } else {
            budget::FRAME
        })?;
        if self.block_bytes.len() + payload.len() > self.settings.header_bytes + BLOCK_EXTRA_BYTES {
            return Err(Misdeed::HeaderFlood);
        }
        self.block_bytes.extend_from_slice(payload);
        if head.has(frame::END_HEADERS) {
            return self.whole_block(None);
        }
        Ok(())
    }

    /// A header block is here whole: in one frame, or in what was collected.
    fn whole_block(&mut self, single: Option<&[u8]>) -> Result<(), Misdeed> {
        let Some(block) = self.block.take() else {
            return Ok(());
        };
        let held = std::mem::take(&mut self.block_bytes);
        let bytes = single.unwrap_or(&held);
        let result = match block.kind {
            BlockKind::Request => self.request(&block, bytes),
            BlockKind::Trailers => self.trailers(&block, bytes),
            BlockKind::Dropped(code) => self.dropped(&block, bytes, code),
        };
        self.block_bytes = held;
        self.block_bytes.shrink_to(frame::HEAD_BYTES);
        result
    }

    fn dropped(&mut self, block: &Block, bytes: &[u8], code: Option<u32>) -> Result<(), Misdeed> {
        self.decoder
            .decode(bytes, |_, _| {})
            .map_err(Misdeed::Compression)?;
        self.spend(budget::RESET)?;
        let Some(code) = code else { return Ok(()) };
        if self.streams.get(block.stream).is_some() {
            return self.break_stream(block.stream, code);
        }
        self.put_reset(block.stream, code);
        Ok(())
    }

    fn request(&mut self, block: &Block, bytes: &[u8]) -> Result<(), Misdeed> {
        let id = block.stream;
        let mut builder = Builder::new(&self.settings, std::mem::take(&mut self.spare));
        self.decoder
            .decode(bytes, |name, value| builder.field(name, value))
            .map_err(Misdeed::Compression)?;
        let built = builder.finish(block.end_stream);
        let early = self
            .early_priorities
            .iter()
            .position(|(early, _)| *early == id);
        let priority = match (early, built.priority) {
            (Some(at), _) => self.early_priorities.swap_remove(at).1,
            (None, Some(span)) => {
                self.prioritised = true;
                Priority::parse(built.head.bytes(span))
            }
            (None, None) => self.default_priority(),
        };
        let window = Window::new(self.peer.window_bytes);
        let allowed_bytes = u64::from(self.settings.preread_bytes);
        let stream = self.streams.insert_with(id, Stream::new);
        stream.begin(window, allowed_bytes, priority);
        stream.received = block.end_stream;
        stream.is_head = built.head.method == Method::Head;
        stream.malformed = built.malformed;
        stream.discarding = built.head.fault.is_some();
        if let BodyLength::Length(length) = built.head.body {
            stream.length_left = Some(length);
        }
        self.events.push_back(Event::Head {
            stream: id,
            head: built.head,
        });
        Ok(())
    }

    /// Streams of a client that tells no priorities take turns.
    fn default_priority(&self) -> Priority {
        Priority {
            incremental: !self.prioritised,
            ..Priority::default()
        }
    }

    fn trailers(&mut self, block: &Block, bytes: &[u8]) -> Result<(), Misdeed> {
        let id = block.stream;
        let mut trailers = Trailers::new(&self.settings);
        self.decoder
            .decode(bytes, |name, value| trailers.field(name, value))
            .map_err(Misdeed::Compression)?;
        let (fields, fault) = (trailers.fields, trailers.fault);
        let Some(stream) = self.streams.get(id) else {
            return Ok(());
        };
        if fault.is_some() {
            return self.break_stream(id, error::PROTOCOL_ERROR);
        }
        if stream.length_left.is_some_and(|left| left > 0) {
            return self.wrong_length(id);
        }
        if !stream.discarding && !fields.is_empty() {
            self.events
                .push_back(Event::Trailers { stream: id, fields });
        }
        self.received_whole(id);
        Ok(())
    }

    /// The priorities of RFC 7540, which are no more (RFC 9113 section 5.3.2); only their form is checked.
    fn priority(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), Misdeed> {
        if head.stream == 0 {
            return Err(Misdeed::WrongStream);
        }
        self.spend(budget::FRAME)?;
        let depends = match payload.len() {
            5 => number(payload).unwrap_or_default() & frame::MAX_STREAM,
            _ => return self.break_absent(head.stream, error::FRAME_SIZE_ERROR),
        };
        if depends == head.stream {
            return self.break_absent(head.stream, error::PROTOCOL_ERROR);
        }
        Ok(())
    }

    /// Resets a stream that may be in any state, even none.
    fn break_absent(&mut self, id: u32, code: u32) -> Result<(), Misdeed> {
        if self.streams.get(id).is_some() {
            return self.break_stream(id, code);
        }
        if id > self.last_stream {
            // A stream that is not there cannot be reset.
            return Err(match code {
                error::FRAME_SIZE_ERROR => Misdeed::FrameSize,
                _ => Misdeed::WrongStream,
            });
        }
        Ok(())
    }

    fn priority_update(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), Misdeed> {
        if head.stream != 0 {
            return Err(Misdeed::WrongStream);
        }
        let id = number(payload).ok_or(Misdeed::FrameSize)? & frame::MAX_STREAM;
        if id == 0 {
            return Err(Misdeed::WrongStream);
        }
        self.spend(budget::FRAME)?;
        self.prioritised = true;
        let priority = Priority::parse(&payload[4..]);
        if let Some(stream) = self.streams.get(id) {
            stream.priority = priority;
        } else if id > self.last_stream {
            self.early_priorities.retain(|(early, _)| *early != id);
            if self.early_priorities.len() < EARLY_PRIORITIES {
                self.early_priorities.push((id, priority));
            }
        }
        Ok(())
    }

    fn rst_stream(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), Misdeed> {
        if head.stream == 0 {
            return Err(Misdeed::WrongStream);
        }
        if payload.len() != 4 {
            return Err(Misdeed::FrameSize);
        }
        if head.stream > self.last_stream {
            return Err(Misdeed::BadStreamNumber);
        }
        self.spend(budget::RESET)?;
        let running = self
            .streams
            .get(head.stream)
            .is_some_and(|stream| stream.sending != Sending::Ended);
        self.streams.remove(head.stream);
        if running {
            self.events.push_back(Event::Reset(head.stream));
        }
        Ok(())
    }

    fn peer_settings(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), Misdeed> {
        if head.stream != 0 {
            return Err(Misdeed::WrongStream);
        }
        if self.settled {
            self.spend(budget::FRAME)?;
        }
        if head.has(frame::ACK) {
            return if payload.is_empty() && self.settled {
                Ok(())
            } else {
                Err(Misdeed::FrameSize)
            };
        }
        self.settled = true;
        let (settings, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(Misdeed::FrameSize);
        }
        for setting in settings {
            self.apply(Setting::parse(setting)?)?;
        }
        self.out
            .push_with(|out| put_head(out, 0, frame::SETTINGS, frame::ACK, 0));
        Ok(())
    }

    fn apply(&mut self, setting: Setting) -> Result<(), Misdeed> {
        match setting {
            Setting::HeaderTableSize(bytes) => self.encoder.set_allowed_bytes(bytes as usize),
            Setting::MaxFrameSize(bytes) => self.peer.frame_bytes = bytes as usize,
            Setting::InitialWindowSize(bytes) => {
                let change = i64::from(bytes) - i64::from(self.peer.window_bytes);
                self.peer.window_bytes = bytes;
                let mut overflow = false;
                self.streams
                    .each(|_, stream| overflow |= stream.window.adjust(change).is_err());
                if overflow {
                    return Err(Misdeed::WindowOverflow);
                }
                if change > 0 {
                    self.requeue_all();
                }
            }
            Setting::EnablePush(_) | Setting::Other => {}
        }
        Ok(())
    }

    fn ping(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), Misdeed> {
        if head.stream != 0 {
            return Err(Misdeed::WrongStream);
        }
        let Ok(data) = <[u8; 8]>::try_from(payload) else {
            return Err(Misdeed::FrameSize);
        };
        self.spend(budget::FRAME)?;
        if head.has(frame::ACK) {
            if data == DRAIN_PING && self.ending == Ending::Announced {
                self.end();
            }
            return Ok(());
        }
        self.out.push_with(|out| {
            put_head(out, 8, frame::PING, frame::ACK, 0);
            out.extend_from_slice(&data);
        });
        Ok(())
    }

    fn goaway(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), Misdeed> {
        if head.stream != 0 {
            return Err(Misdeed::WrongStream);
        }
        if payload.len() < 8 {
            return Err(Misdeed::FrameSize);
        }
        // The client opens no more streams; those that are open go on.
        self.spend(budget::FRAME)
    }

    fn window_update(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), Misdeed> {
        let grant = match payload.len() {
            4 => number(payload).unwrap_or_default() & frame::MAX_STREAM,
            _ => return Err(Misdeed::FrameSize),
        };
        if grant == 0 {
            return Err(Misdeed::ZeroWindowUpdate);
        }
        self.spend(budget::FRAME)?;
        let id = head.stream;
        let window = match self.streams.get(id) {
            _ if id == 0 => &mut self.window,
            Some(stream) => &mut stream.window,
            None if id > self.last_stream => return Err(Misdeed::BadStreamNumber),
            None => return Ok(()),
        };
        window
            .adjust(i64::from(grant))
            .map_err(|_| Misdeed::WindowOverflow)?;
        if id != 0 {
            self.requeue(id);
        }
        Ok(())
    }
}

/// A header block may be longer than the fields it gives: names and values that are refused are still read.
const BLOCK_EXTRA_BYTES: usize = 16 << 10;
/// Priorities of streams that are not open yet.
pub(super) const EARLY_PRIORITIES: usize = 32;
