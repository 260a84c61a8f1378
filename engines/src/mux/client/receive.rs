//! Effects of frames of the server, once they are parsed.
//!
//! Source: RFC 9113 sections 5.1, 6.1, 6.4, 6.8, 8.1.

use super::stream::{Receiving, Sending};
use super::{Broken, Client, Protocol};
use crate::client::{Bodies, Event, HeadSize, Malformed};
use crate::http::{BodyLength, Fields, ResponseHead};
use crate::mux::{Frames, budget};

impl<P: Protocol> Client<P> {
    /// Pays for a frame.
    pub(crate) fn spend(&mut self, cost: u32) -> Result<(), P::ProtocolError> {
        let paid = self.budget.spend(cost).then_some(());
        paid.ok_or_else(|| Broken::Flood.into())
    }

    /// A frame on a stream that is not open: an abandoned or complete stream may still receive some.
    pub(crate) fn absent(&mut self, id: u32) -> Result<(), P::ProtocolError> {
        if id >= self.next_stream || id.is_multiple_of(2) {
            return Err(Broken::StreamNumber.into());
        }
        self.spend(budget::FRAME)
    }

    /// Resets the stream of a response that breaks the protocol.
    pub(crate) fn malformed(
        &mut self,
        stream: u32,
        what: Malformed,
    ) -> Result<(), P::ProtocolError> {
        self.spend(budget::RESET)?;
        let code = match what {
            Malformed::Window => P::Frames::CODES.flow_control_error,
            _ => P::Frames::CODES.protocol_error,
        };
        self.remove_stream(stream, Event::Malformed { stream, what });
        P::Frames::put_reset(&mut self.out, stream, code);
        Ok(())
    }

    /// Removes a stream; `event` reports how its exchange ended, unless its response was complete.
    fn remove_stream(&mut self, id: u32, event: Event<P::ProtocolError>) {
        let stream = self.streams.get(id);
        let ended = stream.is_some_and(|stream| stream.receiving == Receiving::Ended);
        self.streams.remove(id);
        if !ended {
            self.events.push_back(event);
        }
    }

    /// Handles a response head and its size in bytes; with `ended` it is also the end.
    pub(crate) fn answered(
        &mut self,
        id: u32,
        head: Box<ResponseHead>,
        size: HeadSize,
        ended: bool,
    ) -> Result<(), P::ProtocolError> {
        let Some(stream) = self.streams.get(id) else {
            return Ok(());
        };
        stream.receiving = Receiving::Body;
        let bodiless = stream.is_head || matches!(head.status, 204 | 304);
        stream.incoming.length_left = match head.body {
            _ if bodiless => Some(0),
            BodyLength::Length(length) => Some(length),
            _ => None,
        };
        if ended && stream.incoming.is_short() {
            return self.malformed(id, Malformed::Length);
        }
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

    /// Handles bytes of a body, in a frame that counts as `size` against windows.
    pub(crate) fn data(
        &mut self,
        id: u32,
        bytes: &[u8],
        size: u64,
        ended: bool,
    ) -> Result<(), P::ProtocolError> {
        let grant = self.recv_window.take(size).ok_or(Broken::WindowExceeded)?;
        if grant > 0 {
            P::Frames::put_grant(&mut self.out, 0, grant as u32);
        }
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
            return self.malformed(id, Malformed::OutOfOrder);
        }
        if !stream.incoming.take(size) {
            return self.malformed(id, Malformed::Window);
        }
        stream.body_bytes += len;
        if !stream.incoming.fits(len, ended) {
            return self.malformed(id, Malformed::Length);
        }
        let told = self.bodies == Bodies::Delivered;
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

    /// Bytes of a body have been consumed: the server may send as many again.
    pub fn consumed(&mut self, id: u32, bytes: u64) {
        let window_bytes = u64::from(self.preread_bytes);
        let Some(stream) = self.streams.get(id) else {
            return;
        };
        if stream.receiving == Receiving::Body
            && let Some(grant) = stream.incoming.consumed(bytes, window_bytes)
        {
            P::Frames::put_grant(&mut self.out, id, grant as u32);
        }
    }

    /// Handles trailers; with `ended` they are the end.
    pub(crate) fn trailed(
        &mut self,
        id: u32,
        fields: Fields,
        ended: bool,
    ) -> Result<(), P::ProtocolError> {
        let stream = self.streams.get(id);
        if ended && stream.is_some_and(|stream| stream.incoming.is_short()) {
            return self.malformed(id, Malformed::Length);
        }
        if !fields.is_empty() && self.bodies == Bodies::Delivered {
            self.events
                .push_back(Event::Trailers { stream: id, fields });
        }
        if !ended {
            return self.spend(budget::FRAME);
        }
        self.received_whole(id);
        Ok(())
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

    /// The server resets a stream. After a complete response the rest of the request is not needed (RFC 9113
    /// section 8.1).
    pub(crate) fn reset(&mut self, stream: u32, code: u32) -> Result<(), P::ProtocolError> {
        if self.streams.get(stream).is_none() {
            return self.absent(stream);
        }
        self.remove_stream(stream, Event::Reset { stream, code });
        self.spend(budget::RESET)
    }

    /// The server takes no stream after the last one. Later requests were not begun and may be sent elsewhere (RFC
    /// 9113 section 6.8).
    pub(crate) fn gone_away(&mut self, last: u32, code: u32) -> Result<(), P::ProtocolError> {
        self.spend(budget::FRAME)?;
        self.close();
        self.events.push_back(Event::Closing { last, code });
        let later: Vec<u32> = self.streams.ids().filter(|id| *id > last).collect();
        for stream in later {
            let code = P::Frames::CODES.refused_stream;
            self.remove_stream(stream, Event::Reset { stream, code });
        }
        Ok(())
    }
}
