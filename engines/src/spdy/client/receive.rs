//! Handles frames of the server.
//!
//! Source: draft-mbelshe-httpbis-spdy-00 sections 2.2 and 2.6; the window of the connection is SPDY/3.1's.

use super::super::budget;
use super::super::error::{ProtocolError, REFUSED_STREAM};
use super::super::frame::{self, FrameHead, FrameKind, one, put_control, put_pair, two};
use super::super::settings::{
    INITIAL_WINDOW_SIZE, MAX_CONCURRENT_STREAMS, MAX_ENTRIES, MAX_WINDOW,
};
use super::{Client, Event, Spdy, response};
use crate::client::{Bodies, HeadSize, Malformed};
use crate::mux::client::Receiving;

impl Client {
    /// Takes one frame.
    pub(super) fn frame(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), ProtocolError> {
        let kind = match head.kind {
            FrameKind::Data(id) => {
                let size = payload.len() as u64;
                return self.data(id, payload, size, head.has(frame::FIN));
            }
            FrameKind::OtherVersion => return Err(ProtocolError::BadVersion),
            FrameKind::Control(kind) => kind,
        };
        let size = ProtocolError::FrameSize;
        match kind {
            frame::SYN_REPLY | frame::HEADERS => {
                let (id, block) = payload.split_at_checked(4).ok_or(size)?;
                let id = one(id).ok_or(size)? & frame::MAX_STREAM;
                self.head(kind, id, block, head.has(frame::FIN))
            }
            frame::SYN_STREAM => {
                let id = payload.get(..4).and_then(one).ok_or(size)? & frame::MAX_STREAM;
                self.inflate(payload.get(10..).ok_or(size)?)?;
                self.spend(budget::RESET)?;
                put_pair(&mut self.out, frame::RST_STREAM, id, REFUSED_STREAM);
                Ok(())
            }
            frame::RST_STREAM => {
                let (id, code) = two(payload).ok_or(size)?;
                self.reset(id & frame::MAX_STREAM, code)
            }
            frame::SETTINGS => self.peer_settings(payload),
            frame::PING => self.pinged(one(payload).ok_or(size)?),
            frame::GOAWAY => {
                let (last, code) = two(payload).ok_or(size)?;
                self.gone_away(last & frame::MAX_STREAM, code)
            }
            frame::WINDOW_UPDATE => {
                let (id, grant) = two(payload).ok_or(size)?;
                self.spend(budget::FRAME)?;
                self.granted(id & frame::MAX_STREAM, grant & frame::MAX_STREAM)
            }
            _ => self.spend(budget::FRAME),
        }
    }

    /// The text of a header block, into `text`.
    fn inflate(&mut self, block: &[u8]) -> Result<(), ProtocolError> {
        let Spdy {
            settings,
            inflater,
            text,
            ..
        } = &mut self.protocol;
        text.clear();
        let most = settings.header_bytes + BLOCK_EXTRA_BYTES;
        Ok(inflater.block(block, most, most, text)?)
    }

    fn head(&mut self, kind: u16, id: u32, block: &[u8], ended: bool) -> Result<(), ProtocolError> {
        self.inflate(block)?;
        let Some(stream) = self.streams.get(id) else {
            return self.absent(id);
        };
        match (stream.receiving, kind) {
            (Receiving::Head, frame::SYN_REPLY) => self.reply(id, block.len(), ended),
            (Receiving::Body, frame::HEADERS) => self.trailers(id, ended),
            _ => self.malformed(id, Malformed::OutOfOrder),
        }
    }

    fn reply(&mut self, id: u32, wire_bytes: usize, ended: bool) -> Result<(), ProtocolError> {
        let stored = self.bodies == Bodies::Delivered;
        let mut head = self.spares.take();
        let Spdy { settings, text, .. } = &self.protocol;
        let built = response::build(text, &mut head, settings, stored, ended);
        if let Some(what) = built.broken {
            return self.malformed(id, what);
        }
        let size = HeadSize {
            wire_bytes: wire_bytes as u64,
            text_bytes: built.text_bytes,
        };
        self.answered(id, head, size, ended)
    }

    fn trailers(&mut self, id: u32, ended: bool) -> Result<(), ProtocolError> {
        match response::trailers(&self.protocol.text, &self.protocol.settings) {
            Ok(fields) => self.trailed(id, fields, ended),
            Err(what) => self.malformed(id, what),
        }
    }

    fn peer_settings(&mut self, payload: &[u8]) -> Result<(), ProtocolError> {
        self.spend(budget::FRAME)?;
        let entries = payload.get(4..).ok_or(ProtocolError::FrameSize)?;
        let (entries, rest) = entries.as_chunks::<8>();
        if !rest.is_empty() || entries.len() > MAX_ENTRIES {
            return Err(ProtocolError::FrameSize);
        }
        for entry in entries {
            let (id, value) = two(entry).ok_or(ProtocolError::FrameSize)?;
            match id & 0x00ff_ffff {
                INITIAL_WINDOW_SIZE if u64::from(value) <= MAX_WINDOW => {
                    self.change_windows(value)?;
                }
                INITIAL_WINDOW_SIZE => return Err(ProtocolError::BadSetting),
                MAX_CONCURRENT_STREAMS => self.max_streams = value as usize,
                _ => {}
            }
        }
        Ok(())
    }

    fn pinged(&mut self, number: u32) -> Result<(), ProtocolError> {
        self.spend(budget::FRAME)?;
        if number % 2 == 1 {
            self.events.push_back(Event::Pong(u64::from(number)));
        } else {
            put_control(&mut self.out, frame::PING, 0, 4);
            self.out.extend_from_slice(&number.to_be_bytes());
        }
        Ok(())
    }
}

/// Bytes by which a header block may exceed the limit of its fields.
pub(super) const BLOCK_EXTRA_BYTES: usize = 16 << 10;
