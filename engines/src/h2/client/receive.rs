//! What the frames of the server do.
//!
//! Source: RFC 9113 sections 5.1, 6 and 8.1.

use super::super::budget;
use super::super::error::{FLOW_CONTROL_ERROR, Misdeed, PROTOCOL_ERROR, REFUSED_STREAM};
use super::super::frame::{self, FrameHead, number, put_head, unpadded};
use super::super::request::Trailers;
use super::super::settings::Setting;
use super::response::{Builder, Built};
use super::{Client, Ending, Event};
use crate::client::{Bodies, HeadSize, MAX_INTERIM, Malformed};
use crate::http::BodyLength;
use crate::mux::MAX_WINDOW;
use crate::mux::client::{Receiving, Sending};

/// A header block of which more is to come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    stream: u32,
    end_stream: bool,
}

impl Client {
    /// Takes one frame.
    pub(super) fn frame(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), Misdeed> {
        match head.kind {
            frame::DATA => self.data(head, payload),
            frame::HEADERS => self.headers(head, payload),
            frame::CONTINUATION => self.continuation(head, payload),
            frame::RST_STREAM => self.rst_stream(head, payload),
            frame::SETTINGS => self.peer_settings(head, payload),
            frame::PING => self.pinged(head, payload),
            frame::GOAWAY => self.goaway(head, payload),
            frame::WINDOW_UPDATE => self.window_update(head, payload),
            // Our SETTINGS refuse them (RFC 9113 section 6.6).
            frame::PUSH_PROMISE => Err(Misdeed::PushUnasked),
            frame::PRIORITY if head.stream == 0 => Err(Misdeed::WrongStream),
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

    /// A frame on a stream that is not open: one that we have given up or that is complete may still get some.
    fn absent(&mut self, id: u32) -> Result<(), Misdeed> {
        if id >= self.next_stream || id.is_multiple_of(2) {
            return Err(Misdeed::BadStreamNumber);
        }
        self.spend(budget::FRAME)
    }

    /// Gives up a stream whose response breaks the protocol.
    fn malformed(&mut self, stream: u32, what: Malformed) -> Result<(), Misdeed> {
        self.spend(budget::RESET)?;
        let code = match what {
            Malformed::Window => FLOW_CONTROL_ERROR,
            _ => PROTOCOL_ERROR,
        };
        self.lose(stream, Event::Malformed { stream, what });
        self.put_reset(stream, code);
        Ok(())
    }

    /// Forgets a stream; `event` tells how its exchange has ended, unless its response had come whole.
    fn lose(&mut self, id: u32, event: Event) {
        let stream = self.streams.get(id);
        let ended = stream.is_some_and(|stream| stream.receiving == Receiving::Ended);
        self.streams.remove(id);
        if !ended {
            self.events.push_back(event);
        }
    }

    fn data(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), Misdeed> {
        let id = head.stream;
        if id == 0 {
            return Err(Misdeed::WrongStream);
        }
        let size = payload.len() as u64;
        let bytes = unpadded(head, payload).ok_or(Misdeed::BadPadding)?;
        let left = self.allowed_bytes.checked_sub(size);
        self.allowed_bytes = left.ok_or(Misdeed::WindowExceeded)?;
        if self.allowed_bytes < MAX_WINDOW / 2 {
            self.put_window_update(0, MAX_WINDOW - self.allowed_bytes);
            self.allowed_bytes = MAX_WINDOW;
        }
        let ended = head.has(frame::END_STREAM);
        if bytes.len() >= budget::USEFUL_BYTES {
            self.budget.earn(budget::DATA);
        } else if bytes.is_empty() && !ended {
            self.spend(budget::FRAME)?;
        }
        let Some(stream) = self.streams.get(id) else {
            return self.absent(id);
        };
        let len = bytes.len() as u64;
        if stream.receiving != Receiving::Body {
            return self.malformed(id, Malformed::Order);
        }
        let Some(allowed) = stream.allowed_bytes.checked_sub(size) else {
            return self.malformed(id, Malformed::Window);
        };
        stream.allowed_bytes = allowed;
        stream.body_bytes += len;
        if let Some(left) = stream.length_left {
            let left = left.checked_sub(len);
            if left.is_none_or(|left| ended && left > 0) {
                return self.malformed(id, Malformed::Length);
            }
            stream.length_left = left;
        }
        let told = self.bodies == Bodies::Told;
        if told && !bytes.is_empty() {
            self.events.push_back(Event::Data {
                stream: id,
                bytes: bytes.to_vec(),
            });
        }
        if ended {
            self.received_whole(id);
        } else {
            self.consumed(id, if told { size - len } else { size });
        }
        Ok(())
    }

    /// Bytes of a body have been used up: the server may send as many again.
    pub fn consumed(&mut self, id: u32, bytes: u64) {
        let threshold = u64::from(self.settings.preread_bytes) / 2;
        let Some(stream) = self.streams.get(id) else {
            return;
        };
        stream.consumed_bytes += bytes;
        if stream.consumed_bytes > threshold && stream.receiving == Receiving::Body {
            let grant = std::mem::take(&mut stream.consumed_bytes);
            stream.allowed_bytes += grant;
            self.put_window_update(id, grant);
        }
    }

    fn received_whole(&mut self, id: u32) {
        let Some(stream) = self.streams.get(id) else {
            return;
        };
        stream.receiving = Receiving::Ended;
        let body_bytes = stream.body_bytes;
        if stream.sending == Sending::Ended {
            self.streams.remove(id);
        }
        self.budget.earn(budget::RESPONSE);
        self.events.push_back(Event::End {
            stream: id,
            body_bytes,
        });
    }

    fn headers(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), Misdeed> {
        let id = head.stream;
        if id == 0 {
            return Err(Misdeed::WrongStream);
        }
        let mut fragment = unpadded(head, payload).ok_or(Misdeed::BadPadding)?;
        if head.has(frame::HAS_PRIORITY) {
            fragment = fragment.get(5..).ok_or(Misdeed::FrameSize)?;
        }
        if self.streams.get(id).is_none() {
            self.absent(id)?;
        }
        let block = Block {
            stream: id,
            end_stream: head.has(frame::END_STREAM),
        };
        if head.has(frame::END_HEADERS) {
            return self.whole_block(block, fragment);
        }
        self.block = Some(block);
        self.block_bytes.clear();
        self.block_bytes.extend_from_slice(fragment);
        Ok(())
    }

    fn continuation(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), Misdeed> {
        let block = self.block.filter(|block| block.stream == head.stream);
        let block = block.ok_or(Misdeed::BrokenHeaderBlock)?;
        self.spend(if payload.is_empty() {
            budget::EMPTY_CONTINUATION
        } else {
            budget::FRAME
        })?;
        if self.block_bytes.len() + payload.len() > self.settings.header_bytes + BLOCK_EXTRA_BYTES {
            return Err(Misdeed::HeaderFlood);
        }
        self.block_bytes.extend_from_slice(payload);
        if !head.has(frame::END_HEADERS) {
            return Ok(());
        }
        self.block = None;
        let bytes = std::mem::take(&mut self.block_bytes);
        let result = self.whole_block(block, &bytes);
        self.block_bytes = bytes;
        self.block_bytes.shrink_to(KEEP_BYTES);
        result
    }

    fn whole_block(&mut self, block: Block, bytes: &[u8]) -> Result<(), Misdeed> {
        let id = block.stream;
        let state = self.streams.get(id).map(|stream| stream.receiving);
        match state {
            Some(Receiving::Head) => self.response(block, bytes),
            Some(Receiving::Body) => self.trailers(block, bytes),
            Some(Receiving::Ended) => {
                self.dropped(bytes)?;
                self.malformed(id, Malformed::Order)
            }
            None => self.dropped(bytes),
        }
    }

    /// Decodes a block only because that changes the table.
    fn dropped(&mut self, bytes: &[u8]) -> Result<(), Misdeed> {
        let result = self.decoder.decode(bytes, |_, _| {});
        result.map_err(Misdeed::Compression)
    }

    fn response(&mut self, block: Block, bytes: &[u8]) -> Result<(), Misdeed> {
        let id = block.stream;
        let stored = self.bodies == Bodies::Told;
        let mut builder = Builder::new(&self.settings, self.spares.take(), stored);
        let result = self
            .decoder
            .decode_noting(bytes, |name, value, note| builder.field(name, value, note));
        result.map_err(Misdeed::Compression)?;
        let Built {
            head,
            text_bytes,
            broken,
        } = builder.finish(block.end_stream);
        if let Some(what) = broken {
            return self.malformed(id, what);
        }
        let Some(stream) = self.streams.get(id) else {
            return Ok(());
        };
        if head.status < 200 {
            stream.interim += 1;
            // RFC 9113 section 8.6: 101 does not exist here.
            if stream.interim > MAX_INTERIM || block.end_stream || head.status == 101 {
                return self.malformed(id, Malformed::Interim);
            }
            self.events.push_back(Event::Interim { stream: id, head });
            return Ok(());
        }
        stream.receiving = Receiving::Body;
        let bodiless = stream.is_head || matches!(head.status, 204 | 304);
        stream.length_left = match head.body {
            _ if bodiless => Some(0),
            BodyLength::Length(length) => Some(length),
            _ => None,
        };
        if block.end_stream && stream.length_left.is_some_and(|left| left > 0) {
            return self.malformed(id, Malformed::Length);
        }
        let size = HeadSize {
            wire_bytes: bytes.len() as u64,
            text_bytes,
        };
        self.events.push_back(Event::Head {
            stream: id,
            head,
            size,
        });
        if block.end_stream {
            self.received_whole(id);
        }
        Ok(())
    }

    fn trailers(&mut self, block: Block, bytes: &[u8]) -> Result<(), Misdeed> {
        let id = block.stream;
        let mut trailers = Trailers::new(&self.settings);
        let result = self
            .decoder
            .decode(bytes, |name, value| trailers.field(name, value));
        result.map_err(Misdeed::Compression)?;
        let (fields, fault) = (trailers.fields, trailers.fault);
        let left = self.streams.get(id).and_then(|stream| stream.length_left);
        if !block.end_stream {
            return self.malformed(id, Malformed::Order);
        }
        if fault.is_some() {
            return self.malformed(id, Malformed::Field);
        }
        if left.is_some_and(|left| left > 0) {
            return self.malformed(id, Malformed::Length);
        }
        if !fields.is_empty() && self.bodies == Bodies::Told {
            self.events
                .push_back(Event::Trailers { stream: id, fields });
        }
        self.received_whole(id);
        Ok(())
    }

    fn rst_stream(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), Misdeed> {
        let id = head.stream;
        if id == 0 {
            return Err(Misdeed::WrongStream);
        }
        let code = number(payload).filter(|_| payload.len() == 4);
        let code = code.ok_or(Misdeed::FrameSize)?;
        if self.streams.get(id).is_none() {
            return self.absent(id);
        }
        // After a whole response it says that the rest of the request is not needed (RFC 9113 section 8.1).
        self.lose(id, Event::Reset { stream: id, code });
        self.spend(budget::RESET)
    }

    fn peer_settings(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), Misdeed> {
        if head.stream != 0 {
            return Err(Misdeed::WrongStream);
        }
        if head.has(frame::ACK) {
            if !payload.is_empty() {
                return Err(Misdeed::FrameSize);
            }
            if std::mem::replace(&mut self.acknowledged, true) {
                return self.spend(budget::FRAME);
            }
            self.decoder
                .set_allowed_bytes(self.settings.header_table_bytes);
            return Ok(());
        }
        if self.settled {
            self.spend(budget::FRAME)?;
        } else {
            // Until then there was no limit; a server that names none has none.
            self.max_streams = usize::MAX;
        }
        self.settled = true;
        let (settings, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(Misdeed::FrameSize);
        }
        let mut window = None;
        for setting in settings {
            match Setting::parse(setting)? {
                Setting::HeaderTableSize(bytes) => self.encoder.set_allowed_bytes(bytes as usize),
                Setting::MaxFrameSize(bytes) => self.peer.frame_bytes = bytes as usize,
                Setting::InitialWindowSize(bytes) => window = Some(bytes),
                Setting::MaxConcurrentStreams(most) => self.max_streams = most as usize,
                // RFC 9113 section 6.5.2: a server must not offer to take pushes.
                Setting::EnablePush(true) => return Err(Misdeed::BadSetting),
                Setting::EnablePush(false) | Setting::Other => {}
            }
        }
        put_head(&mut self.out, 0, frame::SETTINGS, frame::ACK, 0);
        if let Some(bytes) = window {
            self.change_windows(bytes)?;
        }
        Ok(())
    }

    /// Another initial window changes those of all streams (RFC 9113 section 6.9.2).
    fn change_windows(&mut self, bytes: u32) -> Result<(), Misdeed> {
        let change = i64::from(bytes) - i64::from(self.peer.window_bytes);
        self.peer.window_bytes = bytes;
        let mut overflow = false;
        self.streams
            .each(|_, stream| overflow |= stream.window.adjust(change).is_err());
        if overflow {
            return Err(Misdeed::WindowOverflow);
        }
        let ids: Vec<u32> = self.streams.ids().collect();
        self.waiting.clear();
        for id in ids {
            self.flush(id);
        }
        Ok(())
    }

    fn pinged(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), Misdeed> {
        if head.stream != 0 {
            return Err(Misdeed::WrongStream);
        }
        let data = <[u8; 8]>::try_from(payload).map_err(|_| Misdeed::FrameSize)?;
        self.spend(budget::FRAME)?;
        if head.has(frame::ACK) {
            self.events.push_back(Event::Pong(u64::from_be_bytes(data)));
        } else {
            put_head(&mut self.out, 8, frame::PING, frame::ACK, 0);
            self.out.extend_from_slice(&data);
        }
        Ok(())
    }

    fn goaway(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), Misdeed> {
        if head.stream != 0 {
            return Err(Misdeed::WrongStream);
        }
        let (Some(last), Some(code)) = (number(payload), payload.get(4..).and_then(number)) else {
            return Err(Misdeed::FrameSize);
        };
        self.spend(budget::FRAME)?;
        let last = last & frame::MAX_STREAM;
        if self.ending == Ending::Open {
            self.ending = Ending::Closing;
        }
        self.events.push_back(Event::Closing { last, code });
        // They were not begun, and may be asked for elsewhere (RFC 9113 section 6.8).
        let later: Vec<u32> = self.streams.ids().filter(|id| *id > last).collect();
        for stream in later {
            let code = REFUSED_STREAM;
            self.lose(stream, Event::Reset { stream, code });
        }
        Ok(())
    }

    fn window_update(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), Misdeed> {
        let id = head.stream;
        let grant = number(payload).filter(|_| payload.len() == 4);
        let grant = grant.ok_or(Misdeed::FrameSize)? & frame::MAX_STREAM;
        self.spend(budget::FRAME)?;
        if id == 0 {
            if grant == 0 {
                return Err(Misdeed::ZeroWindowUpdate);
            }
            let grown = self.window.adjust(i64::from(grant));
            grown.map_err(|_| Misdeed::WindowOverflow)?;
            self.flush_waiting();
            return Ok(());
        }
        let Some(stream) = self.streams.get(id) else {
            return self.absent(id);
        };
        if grant == 0 {
            return self.malformed(id, Malformed::Order);
        }
        if stream.window.adjust(i64::from(grant)).is_err() {
            return self.malformed(id, Malformed::Window);
        }
        if !self.waiting.contains(&id) {
            self.flush(id);
        }
        Ok(())
    }
}

/// A header block may be longer than the fields it gives: names and values that are refused are still read.
const BLOCK_EXTRA_BYTES: usize = 16 << 10;
/// Capacity that is kept for the next block of several frames.
const KEEP_BYTES: usize = 4096;
