//! Requests that are streams of one connection (HTTP/2): each has a mailbox of its own, and the connection has one engine.
//!
//! ```text
//! add       a request -> the engine, which numbers the stream; the number is part of the key that wakes it
//! pass      socket -> engine -> events -> mailboxes; woken mailboxes -> engine -> output queue -> socket
//! leave     the last stream has ended -> idle with its engine, or closed
//! ```
//!
//! Windows carry back-pressure: a stream's window opens again while its exchange has room. After GOAWAY, or at the
//! limits of the pool, no request is added; those in progress continue. A stream that the server refused or did not
//! begin is *untouched*: the request may be sent again with any method.
//!
//! Source: RFC 9113 sections 5.1, 6.8 and 8.7.

use engines::http::BodyLength;
use server_base::waker::WakeKey;
use server_upstream::request::{Failure, UpstreamCall, UpstreamError, UpstreamEvent};
use server_upstream::route::{Route, Timeouts};

use super::link::{self, Flushed, READ_BYTES};
use super::outcome::Ending;
use super::upload::feed;
use crate::worker::net::Net;
use crate::worker::server_state::engine::StreamEvent;
use crate::worker::server_state::{
    ActiveConn, Io, Link, Requests, Sending, Stream, Streams, Transport, UnsentBytes,
};
use crate::worker::shared::Shared;
use crate::worker::slab::Key;

/// Adds a request to a connection with a free stream.
pub(super) fn add<N: Net>(
    link: &mut Link<N::Socket>,
    io: &mut Io,
    streams: &mut Streams,
    (timeouts, call): (Timeouts, UpstreamCall),
    connected_ms: Option<u64>,
    sh: &mut Shared<N>,
) {
    let now_ms = sh.clock.mono_ms;
    let reused = link.requests > 0;
    // A connection without a response yet proves nothing about the server: a failure counts as an attempt.
    let was_answered = streams.was_answered;
    link.requests = link.requests.saturating_add(1);
    let spec = call.take_head().unwrap_or_default();
    if let Some(head) = sh.dialer.spares.head() {
        io.engine.recycle(head);
    }
    // Earlier bytes of the engine, such as its preface, are not part of the request.
    io.engine.transmit(&mut io.out);
    let before = io.out.len();
    let is_secure = matches!(link.transport, Transport::Tls(_));
    let opened = io.engine.open_stream(&spec, is_secure, &mut streams.names);
    let request = match spec.body {
        BodyLength::None => Sending::Queued,
        _ => Sending::Body,
    };
    call.put_head_back(spec);
    // Bytes of different streams are distinguished by their offsets.
    io.engine.transmit(&mut io.out);
    call.record(|facts| {
        facts.reused = reused;
        facts.connected_ms = connected_ms;
    });
    match opened {
        Ok(id) => {
            call.attach(WakeKey {
                owner: streams.owner,
                stream: id,
            });
            streams.woken.push(id);
            streams.open.push(Stream {
                id,
                call,
                timeouts,
                request,
                end: 0,
                sent_bytes: 0,
                has_head: false,
                paused: false,
                rest: None,
                is_held: false,
                encoded_bytes: 0,
                read_ms: now_ms,
                wrote_ms: now_ms,
                unconsumed: 0,
                was_answered,
            });
            streams.record_queued(streams.open.len() - 1, io, before);
        }
        Err(why) => {
            let error = UpstreamError::unsent(Failure::Unsendable(why), reused);
            call.deliver(UpstreamEvent::Failed(error));
        }
    }
}

/// One pass; true if there may be more to do at once.
pub(super) fn pass<N: Net>(
    link: &mut Link<N::Socket>,
    io: &mut Io,
    streams: &mut Streams,
    sh: &mut Shared<N>,
) -> Result<bool, Ending> {
    let read = receive(link, io, streams, sh)?;
    let mut woken = std::mem::take(&mut streams.woken);
    for id in woken.drain(..) {
        serve(io, streams, id, sh);
    }
    streams.woken = woken;
    let wrote = write(link, io, streams, sh)?;
    if streams.open.is_empty() && link::is_flushed(link, io) && !link.flags.readable {
        return Err(Ending::Complete);
    }
    announce(link, io, streams, sh);
    Ok(read || wrote)
}

/// One pass of an idle connection: the server may change its settings, send a PING, or announce its end.
pub(super) fn pass_idle<N: Net>(
    link: &mut Link<N::Socket>,
    active: &mut ActiveConn,
    sh: &mut Shared<N>,
) -> Result<bool, Ending> {
    let ActiveConn { io, requests } = active;
    let Requests::Streams(streams) = requests else {
        return Err(Ending::GivenUp);
    };
    let read = receive(link, io, streams, sh)?;
    let wrote = write(link, io, streams, sh)?;
    match streams.closing {
        true => Err(Ending::GivenUp),
        false => Ok(read || wrote),
    }
}

/// Reads once, and delivers the events; true if there was input.
fn receive<N: Net>(
    link: &mut Link<N::Socket>,
    io: &mut Io,
    streams: &mut Streams,
    sh: &mut Shared<N>,
) -> Result<bool, Ending> {
    let mut has_read = false;
    if link.flags.readable {
        match link::read(link, io, sh, READ_BYTES)? {
            None => {}
            Some(input) if input.bytes == 0 => io.engine.receive_eof(link.transport.is_whole()),
            Some(_) => {
                has_read = true;
                io.engine.receive(&mut sh.attempts.buffer);
            }
        }
    }
    let now_ms = sh.clock.mono_ms;
    while let Some(event) = io.engine.stream_event(now_ms) {
        streams.deliver(io, event, now_ms)?;
    }
    let before = io.out.len();
    io.engine.transmit(&mut io.out);
    if has_read && io.out.len() > before {
        streams.record_released(io, before, now_ms);
    }
    Ok(has_read)
}

impl Streams {
    fn deliver(&mut self, io: &mut Io, event: StreamEvent, now_ms: u64) -> Result<(), Ending> {
        let (id, event) = match event {
            StreamEvent::Upstream(id, event) => (id, event),
            StreamEvent::Lost {
                stream,
                failure,
                refused,
            } => {
                self.fail(io, stream, failure, refused, now_ms);
                return Ok(());
            }
            StreamEvent::Closing => {
                self.closing = true;
                return Ok(());
            }
            StreamEvent::Failed(failure) => return Err(Ending::Failed(failure)),
            StreamEvent::Ended => return Err(Ending::GivenUp),
        };
        let Some(at) = self.find(id) else {
            return Ok(());
        };
        let stream = &mut self.open[at];
        stream.read_ms = now_ms;
        match &event {
            UpstreamEvent::Head(_, bytes) => {
                stream.has_head = true;
                self.was_answered = true;
                stream.call.record(|facts| {
                    facts.head_ms = Some(now_ms);
                    facts.received_bytes += bytes;
                });
            }
            UpstreamEvent::Data(chunk) => {
                stream.unconsumed += chunk.len();
                let bytes = chunk.len();
                stream.call.record(|facts| facts.received_bytes += bytes);
                // The window opens in this pass if the exchange has room.
                self.woken.push(id);
            }
            UpstreamEvent::End => {
                let stream = self.open.remove(at);
                if stream.request == Sending::Body || stream.is_held {
                    // The server needs no more of the request.
                    io.engine.cancel(id);
                }
                end(&stream.call, now_ms);
                stream.call.deliver(event);
                return Ok(());
            }
            _ => {}
        }
        stream.call.deliver(event);
        Ok(())
    }

    /// Fails one stream.
    pub(super) fn fail(&mut self, io: &Io, id: u32, failure: Failure, refused: bool, now_ms: u64) {
        let Some(at) = self.find(id) else {
            return;
        };
        let stream = self.open.remove(at);
        stream.fail(io, failure, refused, now_ms);
    }

    /// Records bytes of bodies behind the first `before` of the output queue: windows that the server has opened let the
    /// engine encode them. Control frames may be among them, so that all end with the queue.
    fn record_released(&mut self, io: &mut Io, before: u64, now_ms: u64) {
        let (mut begin, out_end) = (self.taken_bytes + before, self.taken_bytes + io.out.len());
        for stream in self.open.iter_mut().filter(|stream| stream.is_held) {
            let encoded_bytes = io.engine.encoded_bytes(stream.id);
            let bytes = encoded_bytes.saturating_sub(stream.encoded_bytes);
            if bytes == 0 {
                continue;
            }
            begin += bytes;
            stream.encoded_bytes = encoded_bytes;
            stream.end = out_end;
            stream.wrote_ms = now_ms;
            stream.is_held = io.engine.pending_bytes(stream.id) > 0;
            self.unsent.push_back(UnsentBytes {
                stream: stream.id,
                bytes,
                end: begin,
            });
        }
    }

    /// Records that a stream has queued the bytes behind the first `before` of the output queue.
    pub(super) fn record_queued(&mut self, at: usize, io: &Io, before: u64) {
        let bytes = io.out.len() - before;
        let stream = &mut self.open[at];
        stream.end = self.taken_bytes + io.out.len();
        self.unsent.push_back(UnsentBytes {
            stream: stream.id,
            bytes,
            end: stream.end,
        });
    }

    /// Records that the socket took bytes, for each stream its own.
    fn record_sent(&mut self, bytes: u64) {
        self.taken_bytes += bytes;
        while let Some(unsent) = self.unsent.front_mut() {
            let begin = unsent.end - unsent.bytes;
            let taken = self.taken_bytes.saturating_sub(begin).min(unsent.bytes);
            unsent.bytes -= taken;
            let (id, is_rest) = (unsent.stream, unsent.bytes > 0);
            if let Some(at) = self.find(id) {
                let stream = &mut self.open[at];
                stream.sent_bytes += taken;
                stream.call.record(|facts| facts.sent_bytes += taken);
            }
            if is_rest {
                return;
            }
            self.unsent.pop_front();
        }
    }
}

impl Stream {
    /// Reports to the exchange that its request has failed.
    fn fail(&self, io: &Io, failure: Failure, refused: bool, now_ms: u64) {
        end(&self.call, now_ms);
        self.call.deliver(UpstreamEvent::Failed(UpstreamError {
            failure,
            sent_bytes: if refused { 0 } else { self.sent_bytes },
            reused: io.reused || self.was_answered || refused,
            untouched: refused || self.sent_bytes == 0,
        }));
    }
}

fn end(call: &UpstreamCall, now_ms: u64) {
    call.record(|facts| {
        facts.ended_ms.get_or_insert(now_ms);
    });
}

/// Serves the mailbox of a stream: abandons the stream, opens its window, takes its body.
fn serve<N: Net>(io: &mut Io, streams: &mut Streams, id: u32, sh: &mut Shared<N>) {
    let Some(at) = streams.find(id) else {
        return;
    };
    let stream = &mut streams.open[at];
    if stream.call.is_given_up() {
        end(&stream.call, sh.clock.mono_ms);
        streams.open.remove(at);
        io.engine.cancel(id);
        io.engine.transmit(&mut io.out);
        return;
    }
    stream.look_at_window(sh.clock.mono_ms);
    if !stream.paused {
        // A mailbox that is not full has room for a window more; a full one wakes the stream once it has room.
        let taken = std::mem::take(&mut stream.unconsumed);
        if taken > 0 {
            io.engine.consumed(id, taken);
        }
    }
    feed(io, streams, at, sh);
}

/// Writes the output queue, and feeds bodies behind it; true if there may be more to do at once.
fn write<N: Net>(
    link: &mut Link<N::Socket>,
    io: &mut Io,
    streams: &mut Streams,
    sh: &mut Shared<N>,
) -> Result<bool, Ending> {
    let mut fed = false;
    // Backwards, since a failed stream is removed.
    for at in (0..streams.open.len()).rev() {
        let stream = &streams.open[at];
        if stream.request == Sending::Body || stream.is_held {
            let before = io.out.len();
            feed(io, streams, at, sh);
            fed |= io.out.len() > before;
        }
    }
    let Flushed { bytes, is_broken } = link::flush(link, io, sh, false)?;
    streams.record_sent(bytes);
    if is_broken {
        return Ok(true);
    }
    let now_ms = sh.clock.mono_ms;
    for stream in &mut streams.open {
        let is_gone = streams.taken_bytes >= stream.end;
        if stream.request == Sending::Queued && !stream.is_held && is_gone {
            stream.request = Sending::Sent;
            stream.read_ms = now_ms;
            stream.call.record(|facts| {
                facts.sent_ms.get_or_insert(now_ms);
            });
        }
    }
    Ok(link.flags.writable && (fed || !io.out.is_empty()))
}

/// Lets other attempts see how many more requests the connection takes, if that number has changed.
pub(super) fn announce<N: Net>(
    link: &Link<N::Socket>,
    io: &Io,
    streams: &mut Streams,
    sh: &mut Shared<N>,
) {
    let Some(pool) = &io.pool else {
        return;
    };
    let age_ms = sh.clock.mono_ms.saturating_sub(link.since_ms);
    let is_over = streams.closing || sh.stopping || io.unwritable.is_some();
    let left = match is_over || age_ms >= pool.time_ms {
        true => 0,
        false => pool.requests.saturating_sub(u64::from(link.requests)),
    };
    let streams_max = STREAMS_MAX.saturating_sub(streams.open.len());
    let left = io
        .engine
        .room()
        .min(streams_max)
        .min(usize::try_from(left).unwrap_or(usize::MAX));
    if streams.announced.replace(left) != Some(left) {
        let key = Key::from_token(streams.owner);
        sh.attempts.available.set(pool.id, &io.addr, key, left);
    }
}

/// No request is added any more.
pub(super) fn leave<N: Net>(io: &Io, streams: &Streams, sh: &mut Shared<N>) {
    if let Some(pool) = &io.pool {
        let key = Key::from_token(streams.owner);
        sh.attempts.available.set(pool.id, &io.addr, key, 0);
    }
}

/// Fails all streams.
pub(super) fn fail_all(io: &Io, streams: &mut Streams, failure: &Failure, now_ms: u64) {
    for stream in streams.open.drain(..) {
        stream.fail(io, failure.clone(), false, now_ms);
    }
}

/// Prepares a kept connection for requests of a route.
pub(super) fn resume(mut active: Box<ActiveConn>, route: &Route) -> Box<ActiveConn> {
    active.io.pool = route.pool;
    active.io.timeouts = route.timeouts;
    active
}

/// When the connection is to take a turn if nothing happens before.
pub(super) fn deadline<S>(link: &Link<S>, io: &Io, streams: &Streams) -> u64 {
    let mut deadline_ms = u64::MAX;
    if !link::is_flushed(link, io) {
        deadline_ms = io.wrote_ms.saturating_add(io.timeouts.send_ms);
    }
    for stream in &streams.open {
        deadline_ms = deadline_ms.min(stream.deadline());
        deadline_ms = deadline_ms.min(stream.call.wake_at_ms().unwrap_or(u64::MAX));
    }
    deadline_ms
}

impl Stream {
    /// Notes whether the exchange has room. After a pause the server's time begins anew, since it could not send.
    fn look_at_window(&mut self, now_ms: u64) {
        let is_full = self.call.window() == 0;
        if std::mem::replace(&mut self.paused, is_full) && !is_full {
            self.read_ms = now_ms;
        }
    }

    /// When its own time is over.
    fn deadline(&self) -> u64 {
        let mut deadline_ms = match self.is_held {
            true => self.wrote_ms.saturating_add(self.timeouts.send_ms),
            false => u64::MAX,
        };
        // A response that has begun is awaited even while the body of the request is sent.
        let awaits = self.request == Sending::Sent || self.has_head;
        if awaits && self.call.window() > 0 {
            deadline_ms = deadline_ms.min(self.read_ms.saturating_add(self.timeouts.read_ms));
        }
        deadline_ms
    }
}

/// Fails late streams; true if there were some, and their resets are to be written.
pub(super) fn expire<S>(
    link: &Link<S>,
    io: &mut Io,
    streams: &mut Streams,
    now_ms: u64,
) -> Result<bool, Ending> {
    let send_ms = io.wrote_ms.saturating_add(io.timeouts.send_ms);
    if !link::is_flushed(link, io) && send_ms <= now_ms {
        return Err(Ending::Failed(Failure::TimedOut));
    }
    for stream in &mut streams.open {
        // An exchange may have opened the window in this turn, and the wake of the stream comes later.
        stream.look_at_window(now_ms);
    }
    let late = |stream: &&Stream| stream.deadline() <= now_ms;
    let late: Vec<u32> = streams
        .open
        .iter()
        .filter(late)
        .map(|stream| stream.id)
        .collect();
    for id in &late {
        io.engine.cancel(*id);
        streams.fail(io, *id, Failure::TimedOut, false, now_ms);
    }
    io.engine.transmit(&mut io.out);
    Ok(!late.is_empty())
}

/// Maximum number of streams on one connection. Before the SETTINGS of the server the engine opens up to 100: RFC 9113
/// section 6.5.2 sets no initial limit and recommends no limit below 100. A server with a lower limit refuses the excess
/// streams, and each of those requests may be sent again.
const STREAMS_MAX: usize = 128;
