//! Reads frames of the server, and handles those specific to HTTP/2.
//!
//! Source: RFC 9113 sections 5.1, 6 and 8.1.

use super::super::budget;
use super::super::error::ProtocolError;
use super::super::frame::{self, FrameHead, number, put_head, unpadded};
use super::super::headers::{KEEP_BYTES, add_piece, spend_piece};
use super::super::request::Trailers;
use super::super::settings::{self, Setting};
use super::response::{Builder, Built};
use super::{Client, Event};
use crate::client::{Bodies, HeadSize, MAX_INTERIM, Malformed};
use crate::http::ResponseHead;
use crate::mux::client::Receiving;

/// An unfinished header block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    stream: u32,
    end_stream: bool,
    /// CONTINUATION frames that [`spend_piece`] counted.
    short_pieces: u8,
}

impl Client {
    /// Takes one frame.
    pub(super) fn frame(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), ProtocolError> {
        match head.kind {
            frame::DATA => self.body(head, payload),
            frame::HEADERS => self.headers(head, payload),
            frame::CONTINUATION => self.continuation(head, payload),
            frame::RST_STREAM => self.rst_stream(head, payload),
            frame::SETTINGS => self.peer_settings(head, payload),
            frame::PING => self.pinged(head, payload),
            frame::GOAWAY => self.goaway(head, payload),
            frame::WINDOW_UPDATE => self.window_update(head, payload),
            // Our SETTINGS refuse them (RFC 9113 section 6.6).
            frame::PUSH_PROMISE => Err(ProtocolError::PushUnasked),
            frame::PRIORITY if head.stream == 0 => Err(ProtocolError::WrongStream),
            // RFC 9113 section 5.5: unknown frames are ignored.
            _ => self.spend(budget::FRAME),
        }
    }

    fn body(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), ProtocolError> {
        if head.stream == 0 {
            return Err(ProtocolError::WrongStream);
        }
        let bytes = unpadded(head, payload).ok_or(ProtocolError::BadPadding)?;
        let (size, ended) = (payload.len() as u64, head.has(frame::END_STREAM));
        self.data(head.stream, bytes, size, ended)
    }

    fn headers(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), ProtocolError> {
        let id = head.stream;
        if id == 0 {
            return Err(ProtocolError::WrongStream);
        }
        let mut fragment = unpadded(head, payload).ok_or(ProtocolError::BadPadding)?;
        if head.has(frame::HAS_PRIORITY) {
            fragment = fragment.get(5..).ok_or(ProtocolError::FrameSize)?;
        }
        if self.streams.get(id).is_none() {
            self.absent(id)?;
        }
        let block = Block {
            stream: id,
            end_stream: head.has(frame::END_STREAM),
            short_pieces: 0,
        };
        if head.has(frame::END_HEADERS) {
            return self.whole_block(block, fragment);
        }
        let protocol = &mut self.protocol;
        protocol.block = Some(block);
        protocol.block_bytes.clear();
        protocol.block_bytes.extend_from_slice(fragment);
        Ok(())
    }

    fn continuation(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), ProtocolError> {
        let protocol = &mut self.protocol;
        let block = protocol.block.as_mut();
        let block = block.filter(|block| block.stream == head.stream);
        let block = block.ok_or(ProtocolError::BrokenHeaderBlock)?;
        spend_piece(&mut block.short_pieces, head, payload, &mut self.budget)?;
        let block = *block;
        let most = protocol.settings.header_bytes;
        add_piece(&mut protocol.block_bytes, payload, most)?;
        if !head.has(frame::END_HEADERS) {
            return Ok(());
        }
        protocol.block = None;
        let bytes = std::mem::take(&mut protocol.block_bytes);
        let result = self.whole_block(block, &bytes);
        self.protocol.block_bytes = bytes;
        self.protocol.block_bytes.shrink_to(KEEP_BYTES);
        result
    }

    fn whole_block(&mut self, block: Block, bytes: &[u8]) -> Result<(), ProtocolError> {
        let id = block.stream;
        let state = self.streams.get(id).map(|stream| stream.receiving);
        match state {
            Some(Receiving::Head) => self.response(block, bytes),
            Some(Receiving::Body) => self.trailers(block, bytes),
            Some(Receiving::Ended) => {
                self.dropped(bytes)?;
                self.malformed(id, Malformed::OutOfOrder)
            }
            None => self.dropped(bytes),
        }
    }

    /// Decodes a block only for its changes of the table.
    fn dropped(&mut self, bytes: &[u8]) -> Result<(), ProtocolError> {
        let result = self.protocol.decoder.decode(bytes, |_, _| {});
        result.map_err(ProtocolError::Compression)
    }

    fn response(&mut self, block: Block, bytes: &[u8]) -> Result<(), ProtocolError> {
        let id = block.stream;
        let stored = self.bodies == Bodies::Delivered;
        let mut builder = Builder::new(&self.protocol.settings, self.spares.take(), stored);
        let result = self
            .protocol
            .decoder
            .decode_noting(bytes, |name, value, note| builder.field(name, value, note));
        result.map_err(ProtocolError::Compression)?;
        let Built {
            head,
            text_bytes,
            broken,
        } = builder.finish(block.end_stream);
        if let Some(what) = broken {
            return self.malformed(id, what);
        }
        if head.status < 200 {
            return self.interim(block, head);
        }
        let size = HeadSize {
            wire_bytes: bytes.len() as u64,
            text_bytes,
        };
        self.answered(id, head, size, block.end_stream)
    }

    fn interim(&mut self, block: Block, head: Box<ResponseHead>) -> Result<(), ProtocolError> {
        let id = block.stream;
        let Some(stream) = self.streams.get(id) else {
            return Ok(());
        };
        stream.interim += 1;
        // RFC 9113 section 8.6: 101 does not exist here.
        if stream.interim > MAX_INTERIM || block.end_stream || head.status == 101 {
            return self.malformed(id, Malformed::Interim);
        }
        self.events.push_back(Event::Interim { stream: id, head });
        Ok(())
    }

    fn trailers(&mut self, block: Block, bytes: &[u8]) -> Result<(), ProtocolError> {
        let id = block.stream;
        let mut trailers = Trailers::new(&self.protocol.settings);
        let result = self
            .protocol
            .decoder
            .decode(bytes, |name, value| trailers.field(name, value));
        result.map_err(ProtocolError::Compression)?;
        if !block.end_stream {
            return self.malformed(id, Malformed::OutOfOrder);
        }
        if trailers.fault.is_some() {
            return self.malformed(id, Malformed::Field);
        }
        self.trailed(id, trailers.fields, true)
    }

    fn rst_stream(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), ProtocolError> {
        let id = head.stream;
        if id == 0 {
            return Err(ProtocolError::WrongStream);
        }
        let code = number(payload).filter(|_| payload.len() == 4);
        let code = code.ok_or(ProtocolError::FrameSize)?;
        self.reset(id, code)
    }

    fn peer_settings(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), ProtocolError> {
        let protocol = &mut self.protocol;
        if head.stream != 0 {
            return Err(ProtocolError::WrongStream);
        }
        if head.has(frame::ACK) {
            if !payload.is_empty() {
                return Err(ProtocolError::FrameSize);
            }
            if std::mem::replace(&mut protocol.acknowledged, true) {
                return self.spend(budget::FRAME);
            }
            let table_bytes = protocol.settings.header_table_bytes;
            protocol.decoder.set_allowed_bytes(table_bytes);
            return Ok(());
        }
        if std::mem::replace(&mut protocol.settled, true) {
            self.spend(budget::FRAME)?;
        } else {
            // Until then there was no limit; without this setting there is none.
            self.max_streams = usize::MAX;
        }
        let protocol = &mut self.protocol;
        let frame_bytes = &mut protocol.frame_bytes;
        let window = settings::take(payload, &mut protocol.encoder, frame_bytes, |setting| {
            match setting {
                Setting::MaxConcurrentStreams(most) => self.max_streams = most as usize,
                // RFC 9113 section 6.5.2: a server must not enable pushes.
                Setting::EnablePush(true) => return Err(ProtocolError::BadSetting),
                _ => {}
            }
            Ok(())
        })?;
        put_head(&mut self.out, 0, frame::SETTINGS, frame::ACK, 0);
        window.map_or(Ok(()), |bytes| self.change_windows(bytes))
    }

    fn pinged(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), ProtocolError> {
        if head.stream != 0 {
            return Err(ProtocolError::WrongStream);
        }
        let data = <[u8; 8]>::try_from(payload).map_err(|_| ProtocolError::FrameSize)?;
        self.spend(budget::FRAME)?;
        if head.has(frame::ACK) {
            self.events.push_back(Event::Pong(u64::from_be_bytes(data)));
        } else {
            put_head(&mut self.out, 8, frame::PING, frame::ACK, 0);
            self.out.extend_from_slice(&data);
        }
        Ok(())
    }

    fn goaway(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), ProtocolError> {
        if head.stream != 0 {
            return Err(ProtocolError::WrongStream);
        }
        let (Some(last), Some(code)) = (number(payload), payload.get(4..).and_then(number)) else {
            return Err(ProtocolError::FrameSize);
        };
        self.gone_away(last & frame::MAX_STREAM, code)
    }

    fn window_update(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), ProtocolError> {
        let id = head.stream;
        let grant = number(payload).filter(|_| payload.len() == 4);
        let grant = grant.ok_or(ProtocolError::FrameSize)? & frame::MAX_STREAM;
        self.spend(budget::FRAME)?;
        if grant == 0 && id == 0 {
            return Err(ProtocolError::ZeroWindowUpdate);
        }
        if grant == 0 && self.streams.get(id).is_some() {
            return self.malformed(id, Malformed::OutOfOrder);
        }
        self.granted(id, grant)
    }
}
