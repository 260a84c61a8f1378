//! What the frames of the server do.
//!
//! Source: draft-mbelshe-httpbis-spdy-00 sections 2.2 and 2.6; the window of the connection is SPDY/3.1's.

use super::super::budget;
use super::super::error::{FLOW_CONTROL_ERROR, Misdeed, PROTOCOL_ERROR, REFUSED_STREAM};
use super::super::frame::{self, FrameHead, Kind, one, put_control, put_pair, two};
use super::super::settings::{
    INITIAL_WINDOW_SIZE, MAX_CONCURRENT_STREAMS, MAX_ENTRIES, MAX_WINDOW,
};
use super::super::zlib::Unreadable;
use super::response;
use super::{Client, Event};
use crate::client::{Bodies, HeadSize, Malformed};
use crate::http::BodyLength;
use crate::mux::client::{Receiving, Sending};

impl Client {
    /// Refuses a frame before it is whole.
    pub(super) fn refuse_by_head(&self, head: FrameHead) -> Result<(), Misdeed> {
        match head.kind {
            Kind::OtherVersion => Err(Misdeed::BadVersion),
            Kind::Control(_) if head.len > self.settings.header_bytes + BLOCK_EXTRA_BYTES => {
                Err(Misdeed::HeaderFlood)
            }
            _ => Ok(()),
        }
    }

    /// Takes one frame.
    pub(super) fn frame(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), Misdeed> {
        let kind = match head.kind {
            Kind::Data(id) => return self.data(id, payload, head.has(frame::FIN)),
            Kind::OtherVersion => return Err(Misdeed::BadVersion),
            Kind::Control(kind) => kind,
        };
        let size = Misdeed::FrameSize;
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
            frame::RST_STREAM => self.rst_stream(two(payload).ok_or(size)?),
            frame::SETTINGS => self.peer_settings(payload),
            frame::PING => self.pinged(one(payload).ok_or(size)?),
            frame::GOAWAY => self.goaway(two(payload).ok_or(size)?),
            frame::WINDOW_UPDATE => self.window_update(two(payload).ok_or(size)?),
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

    /// The text of a header block, into `text`.
    fn inflate(&mut self, block: &[u8]) -> Result<(), Misdeed> {
        self.text.clear();
        let most = self.settings.header_bytes + BLOCK_EXTRA_BYTES;
        let result = self.inflater.block(block, most, most, &mut self.text);
        result.map_err(|why| match why {
            Unreadable::Corrupted => Misdeed::Compression,
            Unreadable::WrongDictionary => Misdeed::WrongDictionary,
            Unreadable::TooLong => Misdeed::HeaderFlood,
        })
    }

    fn head(&mut self, kind: u16, id: u32, block: &[u8], ended: bool) -> Result<(), Misdeed> {
        self.inflate(block)?;
        let Some(stream) = self.streams.get(id) else {
            return self.absent(id);
        };
        match (stream.receiving, kind) {
            (Receiving::Head, frame::SYN_REPLY) => self.reply(id, block.len(), ended),
            (Receiving::Body, frame::HEADERS) => self.trailers(id, ended),
            _ => self.malformed(id, Malformed::Order),
        }
    }

    fn reply(&mut self, id: u32, wire_bytes: usize, ended: bool) -> Result<(), Misdeed> {
        let stored = self.bodies == Bodies::Told;
        let mut head = self.spares.take();
        let built = response::build(&self.text, &mut head, &self.settings, stored, ended);
        if let Some(what) = built.broken {
            return self.malformed(id, what);
        }
        let Some(stream) = self.streams.get(id) else {
            return Ok(());
        };
        stream.receiving = Receiving::Body;
        let bodiless = stream.is_head || matches!(head.status, 204 | 304);
        stream.length_left = match head.body {
            _ if bodiless => Some(0),
            BodyLength::Length(length) => Some(length),
            _ => None,
        };
        if ended && stream.length_left.is_some_and(|left| left > 0) {
            return self.malformed(id, Malformed::Length);
        }
        let size = HeadSize {
            wire_bytes: wire_bytes as u64,
            text_bytes: built.text_bytes,
        };
        self.events.push_back(Event::Head {
            stream: id,
            head,
            size,
        });
        if ended {
            self.received_whole(id);
        }
        Ok(())
    }

    fn trailers(&mut self, id: u32, ended: bool) -> Result<(), Misdeed> {
        let fields = match response::trailers(&self.text, &self.settings) {
            Ok(fields) => fields,
            Err(what) => return self.malformed(id, what),
        };
        let left = self.streams.get(id).and_then(|stream| stream.length_left);
        if ended && left.is_some_and(|left| left > 0) {
            return self.malformed(id, Malformed::Length);
        }
        if !fields.is_empty() && self.bodies == Bodies::Told {
            self.events
                .push_back(Event::Trailers { stream: id, fields });
        }
        if ended {
            self.received_whole(id);
            return Ok(());
        }
        self.spend(budget::FRAME)
    }

    fn data(&mut self, id: u32, bytes: &[u8], ended: bool) -> Result<(), Misdeed> {
        let size = bytes.len() as u64;
        let left = self.allowed_bytes.checked_sub(size);
        self.allowed_bytes = left.ok_or(Misdeed::WindowExceeded)?;
        if self.allowed_bytes < MAX_WINDOW / 2 {
            let grant = (MAX_WINDOW - self.allowed_bytes) as u32;
            put_pair(&mut self.out, frame::WINDOW_UPDATE, 0, grant);
            self.allowed_bytes = MAX_WINDOW;
        }
        if bytes.len() >= budget::USEFUL_BYTES {
            self.budget.earn(budget::DATA);
        } else if bytes.is_empty() && !ended {
            self.spend(budget::FRAME)?;
        }
        let Some(stream) = self.streams.get(id) else {
            return self.absent(id);
        };
        if stream.receiving != Receiving::Body {
            return self.malformed(id, Malformed::Order);
        }
        let Some(allowed) = stream.allowed_bytes.checked_sub(size) else {
            return self.malformed(id, Malformed::Window);
        };
        stream.allowed_bytes = allowed;
        stream.body_bytes += size;
        if let Some(left) = stream.length_left {
            let left = left.checked_sub(size);
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
        } else if !told {
            self.consumed(id, size);
        }
        Ok(())
    }

    /// Bytes of a body have been used up: the server may send as many again.
    pub fn consumed(&mut self, id: u32, bytes: u64) {
        let threshold = u64::from(self.settings.window_bytes()) / 2;
        let Some(stream) = self.streams.get(id) else {
            return;
        };
        stream.consumed_bytes += bytes;
        if stream.consumed_bytes > threshold && stream.receiving == Receiving::Body {
            let grant = std::mem::take(&mut stream.consumed_bytes);
            stream.allowed_bytes += grant;
            put_pair(&mut self.out, frame::WINDOW_UPDATE, id, grant as u32);
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

    fn rst_stream(&mut self, (id, code): (u32, u32)) -> Result<(), Misdeed> {
        let id = id & frame::MAX_STREAM;
        if self.streams.get(id).is_none() {
            return self.absent(id);
        }
        self.lose(id, Event::Reset { stream: id, code });
        self.spend(budget::RESET)
    }

    fn peer_settings(&mut self, payload: &[u8]) -> Result<(), Misdeed> {
        self.spend(budget::FRAME)?;
        let entries = payload.get(4..).ok_or(Misdeed::FrameSize)?;
        let (entries, rest) = entries.as_chunks::<8>();
        if !rest.is_empty() || entries.len() > MAX_ENTRIES {
            return Err(Misdeed::FrameSize);
        }
        for entry in entries {
            let (id, value) = two(entry).ok_or(Misdeed::FrameSize)?;
            match id & 0x00ff_ffff {
                INITIAL_WINDOW_SIZE if u64::from(value) <= MAX_WINDOW => {
                    self.change_windows(value)?;
                }
                INITIAL_WINDOW_SIZE => return Err(Misdeed::BadSetting),
                MAX_CONCURRENT_STREAMS => self.max_streams = value as usize,
                _ => {}
            }
        }
        Ok(())
    }

    fn change_windows(&mut self, bytes: u32) -> Result<(), Misdeed> {
        let change = i64::from(bytes) - i64::from(self.window_bytes);
        self.window_bytes = bytes;
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

    fn pinged(&mut self, number: u32) -> Result<(), Misdeed> {
        self.spend(budget::FRAME)?;
        if number % 2 == 1 {
            self.events.push_back(Event::Pong(u64::from(number)));
        } else {
            put_control(&mut self.out, frame::PING, 0, 4);
            self.out.extend_from_slice(&number.to_be_bytes());
        }
        Ok(())
    }

    fn goaway(&mut self, (last, code): (u32, u32)) -> Result<(), Misdeed> {
        self.spend(budget::FRAME)?;
        let last = last & frame::MAX_STREAM;
        self.closing = true;
        self.events.push_back(Event::Closing { last, code });
        let later: Vec<u32> = self.streams.ids().filter(|id| *id > last).collect();
        for stream in later {
            let code = REFUSED_STREAM;
            self.lose(stream, Event::Reset { stream, code });
        }
        Ok(())
    }

    fn window_update(&mut self, (id, grant): (u32, u32)) -> Result<(), Misdeed> {
        let (id, grant) = (id & frame::MAX_STREAM, grant & frame::MAX_STREAM);
        self.spend(budget::FRAME)?;
        if id == 0 {
            let grown = self.window.adjust(i64::from(grant));
            grown.map_err(|_| Misdeed::WindowOverflow)?;
            self.flush_waiting();
            return Ok(());
        }
        let Some(stream) = self.streams.get(id) else {
            return self.absent(id);
        };
        if stream.window.adjust(i64::from(grant)).is_err() {
            return self.malformed(id, Malformed::Window);
        }
        if !self.waiting.contains(&id) {
            self.flush(id);
        }
        Ok(())
    }
}

/// A header block may be longer than the fields it gives.
const BLOCK_EXTRA_BYTES: usize = 16 << 10;
