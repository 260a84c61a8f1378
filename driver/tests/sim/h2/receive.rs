//! Frames received by a client. Each must be one that the server may send now.

use engines::h2::NO_ERROR;
use sim::{Link, Wire};

use super::super::checker::RunContext;
use super::{
    ACK, Block, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, MAX_WINDOW, PING,
    Peer, RST_STREAM, SETTINGS, WINDOW_UPDATE,
};

/// A frame of the server, with its start and end.
struct Frame<'a> {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: &'a [u8],
    start: usize,
    end: usize,
}

impl Peer {
    /// Parses the bytes received since the last call.
    pub(super) fn receive(
        &mut self,
        wire: &Wire,
        link: &Link,
        context: &RunContext<'_>,
    ) -> Result<(), String> {
        while let Some(head) = wire.sent()[self.received..].first_chunk::<9>() {
            let len = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
            let (start, end) = (self.received, self.received + 9 + len);
            let Some(payload) = wire.sent().get(start + 9..end) else {
                break;
            };
            let frame = Frame {
                kind: head[3],
                flags: head[4],
                stream: number(&head[5..]),
                payload,
                start,
                end,
            };
            self.log(format!(
                "< at {start}: kind {} flags {} stream {} length {len}",
                frame.kind, frame.flags, frame.stream
            ));
            self.received = end;
            self.take(&frame, wire, link, context)?;
        }
        Ok(())
    }

    fn take(
        &mut self,
        frame: &Frame<'_>,
        wire: &Wire,
        link: &Link,
        context: &RunContext<'_>,
    ) -> Result<(), String> {
        if self.block.is_some() && frame.kind != CONTINUATION {
            return Err("a frame inside of a header block".to_owned());
        }
        if frame.payload.len() > self.settings.frame_bytes {
            return Err(format!("a frame of {} bytes", frame.payload.len()));
        }
        if matches!(self.goaway, Some((_, code)) if code != NO_ERROR) {
            return Err("a frame after the connection has failed".to_owned());
        }
        match frame.kind {
            DATA => self.data(frame)?,
            HEADERS | CONTINUATION => self.headers_of(frame)?,
            RST_STREAM => return self.reset(frame, wire, link, context),
            SETTINGS => return self.settings(frame),
            PING => return self.pong(frame),
            GOAWAY => return self.goodbye(frame, wire, link, context),
            WINDOW_UPDATE => return self.window(frame),
            kind => return Err(format!("a frame of kind {kind}")),
        }
        let Some(stream) = self.streams.get(&frame.stream) else {
            return Ok(());
        };
        if stream.ended && !stream.cancelled {
            self.answered += 1;
            let at_ms = (frame.start, frame.end);
            self.check_response(frame.stream, at_ms, wire, link, context)?;
        }
        Ok(())
    }

    fn data(&mut self, frame: &Frame<'_>) -> Result<(), String> {
        let id = frame.stream;
        let len = frame.payload.len() as i64;
        self.window -= len;
        if self.overflows && self.window <= 0 {
            // The window was used up before the excessive update arrived, so the update was valid.
            self.window += MAX_WINDOW;
            (self.overflows, self.sin) = (false, None);
        }
        let connection = self.window;
        let stream = self
            .streams
            .get_mut(&id)
            .ok_or("DATA on a stream of nobody")?;
        stream.window -= len;
        if connection < 0 || (stream.window < 0 && len > 0 && stream.sin.is_none()) {
            return Err(format!(
                "DATA on stream {id} beyond its window: {connection}, {}",
                stream.window
            ));
        }
        if stream.status == 0 || stream.ended || stream.reset.is_some() {
            return Err(format!("DATA on stream {id} out of place"));
        }
        stream.body.extend_from_slice(frame.payload);
        stream.bytes += 9 + len as u64;
        stream.ended = frame.flags & END_STREAM != 0;
        Ok(())
    }

    fn headers_of(&mut self, frame: &Frame<'_>) -> Result<(), String> {
        let mut block = match (frame.kind, self.block.take()) {
            (HEADERS, None) => Block {
                stream: frame.stream,
                ends: frame.flags & END_STREAM != 0,
                bytes: Vec::new(),
            },
            (CONTINUATION, Some(block)) if block.stream == frame.stream => block,
            _ => return Err("CONTINUATION out of place".to_owned()),
        };
        block.bytes.extend_from_slice(frame.payload);
        let id = frame.stream;
        let last = self.goaway.map_or(u32::MAX, |(last, _)| last);
        let stream = self
            .streams
            .get_mut(&id)
            .ok_or("HEADERS on a stream of nobody")?;
        if stream.ended || stream.reset.is_some() || id > last {
            return Err(format!("HEADERS on stream {id} out of place"));
        }
        if stream.bytes == 0 {
            stream.begun = frame.start;
        }
        stream.bytes += 9 + frame.payload.len() as u64;
        if frame.flags & END_HEADERS == 0 {
            self.block = Some(block);
            return Ok(());
        }
        let mut fields = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let decoded = self.decoder.decode(&block.bytes, |name, value| {
            fields.push((text(name), text(value)))
        });
        decoded.map_err(|fault| format!("a header block that is none: {fault:?}"))?;
        stream.ended = block.ends;
        if stream.status != 0 {
            stream.trailers = fields;
            return match stream.ended {
                true => Ok(()),
                false => Err("trailers that do not end the stream".to_owned()),
            };
        }
        let status = fields.first().filter(|(name, _)| name == ":status");
        stream.status = status
            .and_then(|(_, value)| value.parse().ok())
            .ok_or("a response without a status")?;
        stream.fields = fields;
        Ok(())
    }

    fn reset(
        &mut self,
        frame: &Frame<'_>,
        wire: &Wire,
        link: &Link,
        context: &RunContext<'_>,
    ) -> Result<(), String> {
        let (id, code) = (frame.stream, number(frame.payload));
        self.check_reset(id, code, frame.end, wire, link, context)?;
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.reset = Some(code);
            stream.upload = None;
        }
        Ok(())
    }

    fn settings(&mut self, frame: &Frame<'_>) -> Result<(), String> {
        if frame.flags & ACK != 0 {
            let pending_settings = self
                .pending_settings
                .pop_front()
                .ok_or("an acknowledgement of nothing")?;
            let change =
                i64::from(pending_settings.settings.window) - i64::from(self.settings.window);
            for (_, stream) in self.streams.range_mut(..=pending_settings.last) {
                stream.window += change;
            }
            if pending_settings.settings.table_bytes != self.settings.table_bytes {
                self.decoder
                    .set_allowed_bytes(pending_settings.settings.table_bytes);
            }
            self.settings = pending_settings.settings;
            return Ok(());
        }
        for pair in frame.payload.chunks(6) {
            let value = number(&pair[2..]);
            match u16::from_be_bytes([pair[0], pair[1]]) {
                1 => self.encoder.set_allowed_bytes(value as usize),
                4 => {
                    let change = i64::from(value) - self.their_initial;
                    self.their_initial = i64::from(value);
                    for stream in self.streams.values_mut() {
                        stream.their_window += change;
                    }
                }
                _ => {}
            }
        }
        self.acknowledge(SETTINGS, &[]);
        Ok(())
    }

    fn pong(&mut self, frame: &Frame<'_>) -> Result<(), String> {
        if frame.flags & ACK == 0 {
            self.acknowledge(PING, frame.payload);
            return Ok(());
        }
        let sent = self.pings.pop_front().ok_or("an answer to no PING")?;
        if sent == frame.payload {
            Ok(())
        } else {
            Err("another PING comes back".to_owned())
        }
    }

    fn goodbye(
        &mut self,
        frame: &Frame<'_>,
        wire: &Wire,
        link: &Link,
        context: &RunContext<'_>,
    ) -> Result<(), String> {
        let (last, code) = (number(frame.payload), number(&frame.payload[4..]));
        self.log(format!("  goodbye after {last} with {code}"));
        if self.goaway.is_some_and(|(before, _)| before < last) {
            return Err("a later GOAWAY tells a higher stream".to_owned());
        }
        self.goaway = Some((last, code));
        self.check_goodbye(last, code, frame.end, wire, link, context)
    }

    fn window(&mut self, frame: &Frame<'_>) -> Result<(), String> {
        let bytes = i64::from(number(frame.payload));
        let window = match self.streams.get_mut(&frame.stream) {
            Some(stream) => &mut stream.their_window,
            None if frame.stream == 0 => &mut self.their_window,
            None => return Err("a window of a stream of nobody".to_owned()),
        };
        *window += bytes;
        if bytes > 0 && *window <= MAX_WINDOW {
            Ok(())
        } else {
            Err(format!("WINDOW_UPDATE by {bytes} to {window}"))
        }
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes
        .first_chunk()
        .map_or(0, |bytes| u32::from_be_bytes(*bytes))
}
