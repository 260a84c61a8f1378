//! Effects of frames of either protocol: requests, their bodies, windows, and the end of streams.
//!
//! Source: RFC 9113 sections 5.1, 6.1, 6.4, 6.9; draft-mbelshe-httpbis-spdy-00 sections 2.2, 2.3, 2.6.3, 2.6.8.

use super::{Conn, Protocol, State, Stream};
use crate::http::{BodyLength, Method, RequestHead};
use crate::mux::{Broken, Event, Frames, Priority, Window, budget};

impl<P: Protocol> Conn<P> {
    pub(crate) fn spend(&mut self, cost: u32) -> Result<(), P::ProtocolError> {
        let is_spent = self.budget.spend(cost);
        is_spent.then_some(()).ok_or_else(|| Broken::Flood.into())
    }

    /// Opens the stream of a request with an initial window of `allowed_bytes` for its body; `ended`: there is
    /// none.
    #[inline(always)]
    pub(crate) fn open(
        &mut self,
        id: u32,
        head: Box<RequestHead>,
        priority: Priority,
        allowed_bytes: u32,
        ended: bool,
    ) -> &mut Stream {
        let stream = self.streams.insert_with(id, Stream::default);
        let window = Window::new(self.window_bytes);
        stream.begin(window, u64::from(allowed_bytes), priority);
        stream.state = match ended {
            true => State::HalfClosedRemote,
            false if head.fault.is_some() => State::Discarding,
            false => State::Open,
        };
        stream.is_head = head.method == Method::Head;
        if let BodyLength::Length(length) = head.body {
            stream.incoming.length_left = Some(length);
        }
        self.events.push_back(Event::Head { stream: id, head });
        stream
    }

    /// Takes from the window of the connection, which is reopened long before it could block a sender.
    pub(crate) fn take_allowed(&mut self, size: u64) -> Result<(), P::ProtocolError> {
        let grant = self.recv_window.take(size).ok_or(Broken::WindowExceeded)?;
        if grant > 0 {
            self.put_grant(0, grant);
        }
        Ok(())
    }

    pub(crate) fn put_grant(&mut self, id: u32, bytes: u64) {
        let bytes = u32::try_from(bytes).unwrap_or(0);
        self.out
            .push_with(|out| P::Frames::put_grant(out, id, bytes));
    }

    /// The peer has ended its side.
    pub(crate) fn received_whole(&mut self, id: u32) {
        let Some(stream) = self.streams.get(id) else {
            return;
        };
        if !stream.is_running() {
            self.streams.remove(id);
            return;
        }
        let is_wanted = stream.state.wants_body();
        stream.state = stream.state.end_remote();
        if is_wanted {
            self.events.push_back(Event::BodyEnd(id));
        }
    }

    /// Opens the receive window of the stream fully: the caller accepts the whole body.
    pub fn want_whole_body(&mut self, id: u32) {
        let Some(stream) = self.streams.get(id) else {
            return;
        };
        if stream.state.wants_body()
            && let Some(grant) = stream.incoming.open_fully()
        {
            self.put_grant(id, grant);
        }
    }

    /// Opens the body's window piece by piece, so that at most `bytes` are in flight or unread; no effect if the
    /// initial window is larger.
    pub fn want_body(&mut self, id: u32, bytes: u32) {
        let Some(stream) = self.streams.get(id) else {
            return;
        };
        if stream.state.wants_body()
            && let Some(grant) = stream.incoming.open_to(u64::from(bytes))
        {
            self.put_grant(id, grant);
        }
    }

    /// Suppresses `Data` and `Trailers` events of this request.
    pub fn discard_body(&mut self, id: u32) {
        if let Some(stream) = self.streams.get(id) {
            stream.state = stream.state.discard();
        }
    }

    /// Ends a stream that the peer has broken.
    pub(crate) fn break_stream(&mut self, id: u32, code: u32) -> Result<(), P::ProtocolError> {
        self.spend(budget::RESET)?;
        self.remove_stream(id);
        self.put_reset(id, code);
        Ok(())
    }

    /// The peer has reset a stream.
    pub(crate) fn peer_reset(&mut self, id: u32) -> Result<(), P::ProtocolError> {
        self.spend(budget::RESET)?;
        self.remove_stream(id);
        Ok(())
    }

    /// Grows the window of a stream, or that of the connection if the number is 0.
    pub(crate) fn grow_window(&mut self, id: u32, grant: u32) -> Result<(), P::ProtocolError> {
        let grant = i64::from(grant);
        if id == 0 {
            let grown = self.sender.window.adjust(grant);
            return grown.map_err(|_| Broken::WindowOverflow.into());
        }
        let Some(stream) = self.streams.get(id) else {
            return Ok(());
        };
        if stream.out.window.adjust(grant).is_err() {
            return self.break_stream(id, P::Frames::CODES.flow_control_error);
        }
        self.sender.requeue(id, &mut stream.out);
        Ok(())
    }

    /// A new initial window changes the windows of all streams (RFC 9113 section 6.9.2); returns the streams with a
    /// window that overflows.
    pub(crate) fn change_windows(&mut self, bytes: u32) -> Vec<u32> {
        let change = i64::from(bytes) - i64::from(self.window_bytes);
        self.window_bytes = bytes;
        let mut overflown = Vec::new();
        self.streams.each(|id, stream| {
            if stream.out.window.adjust(change).is_err() {
                overflown.push(id);
            }
        });
        if change > 0 {
            self.sender.requeue_all(&mut self.streams);
        }
        overflown
    }
}
