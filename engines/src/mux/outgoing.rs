//! The sending half of multiplexed streams: pending data of each, the next stream to serve, and the number of bytes
//! to send.
//!
//! [`Sender::next`] is the core. It takes the stream whose turn it is. If at most one frame of its body is queued
//! and more may come, it requests more first, so that the last piece carries the end. A source is not polled before
//! its bytes can be sent, since it would cost memory. The protocol defines the frame format.
//!
//! Source: RFC 9113 sections 5.2, 6.9, 8.1; RFC 9218 section 10.

use std::collections::VecDeque;

use super::{Priority, Scheduler, SendAction, SendOptions, StreamTable, Window};
use crate::http::{BodyLength, Chunk, OutputQueue, ResponseHead};

/// Sending half of a stream.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    state: Sending,
    /// Send window, in bytes.
    pub(crate) window: Window,
    pub(crate) priority: Priority,
    /// Bytes of the response so far, frame heads included.
    pub(crate) sent_bytes: u64,
    /// Time since when the window is empty while data is queued.
    blocked_ms: Option<u64>,
    /// Queued body pieces, and their length in bytes.
    pending: VecDeque<Chunk>,
    pending_bytes: u64,
    /// Most bytes of a DATA frame.
    chunk_bytes: usize,
    /// It is in a queue of the scheduler.
    queued: bool,
    /// It waits for its source, which is not polled until `resume`.
    stalled: bool,
    /// Its source is polled regardless of the windows, since the end may be next and needs no window: the body has
    /// no byte, or some of it was sent.
    ends_soon: bool,
}

/// State of the response.
#[derive(Debug, Default)]
enum Sending {
    /// No head has been sent.
    #[default]
    Waiting,
    /// The head has been sent, more of the body follows.
    Body,
    /// The last piece of the body is queued; these trailers, if any, follow it.
    Last(Option<Box<ResponseHead>>),
    /// The last piece to send is queued; then the stream is reset with this code.
    Broken(u32),
    /// Our end of the stream is sent.
    Ended,
}

impl Outgoing {
    /// A new stream with the memory of this one.
    #[inline]
    pub(crate) fn renewed(&mut self, window: Window, priority: Priority) -> Self {
        let mut pending = std::mem::take(&mut self.pending);
        pending.clear();
        Self {
            window,
            priority,
            pending,
            ..Self::default()
        }
    }

    /// Whether no head has been sent.
    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self.state, Sending::Waiting)
    }

    /// Whether a response may still be sent.
    pub(crate) fn is_running(&self) -> bool {
        !matches!(self.state, Sending::Ended)
    }

    /// Prepares for a head: returns whether it ends the stream, or `None` if it cannot be sent now. The response to
    /// HEAD has no body, regardless of its head.
    #[inline]
    pub(crate) fn begin(
        &mut self,
        head: &ResponseHead,
        plan: SendOptions,
        answers_head: bool,
    ) -> Option<bool> {
        if !matches!(self.state, Sending::Waiting) {
            return None;
        }
        let suppressed = answers_head || matches!(head.status, 100..=199 | 204 | 304);
        self.ends_soon = matches!(head.body, BodyLength::None | BodyLength::Length(0));
        let empty = self.ends_soon && !plan.trailers;
        self.state = Sending::Body;
        self.chunk_bytes = plan.chunk_bytes.max(1);
        Some(suppressed || empty)
    }

    /// Queues a piece of the body; false if none of it can be sent.
    #[inline(always)] // As `Sender::push`.
    pub(crate) fn push(&mut self, chunk: Chunk) -> bool {
        let taken = matches!(self.state, Sending::Body) && !chunk.is_empty();
        if taken {
            self.pending_bytes += chunk.len();
            self.pending.push_back(chunk);
        }
        taken
    }

    /// Ends the body after its queued bytes; false if there is none to end.
    #[inline(always)] // As `Sender::end`.
    pub(crate) fn end(&mut self, trailers: Option<&ResponseHead>) -> bool {
        let ends = matches!(self.state, Sending::Body);
        if ends {
            // They are encoded only when they are sent, since compression tables change with each block.
            let trailers = trailers.filter(|head| !head.fields.is_empty());
            self.state = Sending::Last(trailers.map(|head| Box::new(head.clone())));
        }
        ends
    }

    /// Breaks off the body after its queued bytes; false if there is none to break off.
    pub(crate) fn break_off(&mut self, code: u32) -> bool {
        let breaks = matches!(self.state, Sending::Body);
        if breaks {
            self.state = Sending::Broken(code);
        }
        breaks
    }

    /// The code of the pending reset, if the body is broken.
    pub(crate) fn broken(&self) -> Option<u32> {
        match self.state {
            Sending::Broken(code) => Some(code),
            _ => None,
        }
    }

    /// Takes the trailers to send now; `None` if the end is not due.
    pub(crate) fn take_trailers(&mut self) -> Option<Option<Box<ResponseHead>>> {
        match &mut self.state {
            Sending::Last(trailers) => Some(trailers.take()),
            _ => None,
        }
    }

    /// Whether the scheduler should know the stream.
    #[inline]
    fn could_send(&self) -> bool {
        match self.state {
            Sending::Waiting | Sending::Ended => false,
            Sending::Body => self.pending_bytes > 0 || !self.stalled,
            Sending::Last(_) | Sending::Broken(_) => true,
        }
    }

    /// Returns whether the stream must be put into the scheduler after a change.
    #[inline]
    fn comes_back(&mut self) -> bool {
        if self.window.available() > 0 {
            self.blocked_ms = None;
        }
        let back = !self.queued && self.could_send();
        self.queued |= back;
        back
    }

    /// Moves queued bytes to the end of `out`.
    #[inline]
    fn give(&mut self, len: u64, out: &mut OutputQueue) {
        let mut left = len;
        while left > 0 {
            let Some(mut chunk) = self.pending.pop_front() else {
                break;
            };
            if let Some(rest) = chunk.split_off(left) {
                self.pending.push_front(rest);
            }
            left -= chunk.len();
            out.push(chunk);
        }
        self.pending_bytes -= len;
    }

    /// Panics if its fields contradict each other; for tests and fuzzing.
    fn check_invariants(&self) {
        let sum: u64 = self.pending.iter().map(Chunk::len).sum();
        assert_eq!(sum, self.pending_bytes, "pending bytes are counted wrongly");
        assert!(
            self.queued || !self.could_send() || self.window.available() == 0,
            "a stream that could send waits for nobody"
        );
    }
}

/// Sending state shared by all streams of a connection. A stream of `S` lends its [`Outgoing`].
#[derive(Debug)]
pub(crate) struct Sender {
    /// Send window of the connection, in bytes.
    pub(crate) window: Window,
    scheduler: Scheduler,
    /// Time since when the window is empty while data is queued.
    blocked_ms: Option<u64>,
    /// Streams with a completely sent response, and its bytes.
    sent: VecDeque<(u32, u64)>,
}

/// Next step of the sender.
#[derive(Debug)]
pub(crate) enum Step {
    /// The driver gets a request or an event.
    Tell(SendAction),
    /// A DATA frame of `len` bytes.
    Data { stream: u32, len: u64 },
    /// The end of a stream without queued bytes.
    End(u32),
}

/// State of a stream after a piece was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    /// It carried the end of the stream.
    pub(crate) last: bool,
    /// Nothing waits behind it.
    pub(crate) all: bool,
}

impl Sender {
    pub(crate) fn new(window: Window) -> Self {
        Self {
            window,
            scheduler: Scheduler::default(),
            blocked_ms: None,
            sent: VecDeque::new(),
        }
    }

    /// Makes progress until something is needed, or `room` bytes wait in `out`; frames are of `most_bytes`.
    // Each protocol has one call site.
    #[inline(always)]
    pub(crate) fn next<S: AsMut<Outgoing>>(
        &mut self,
        streams: &mut StreamTable<S>,
        out: &OutputQueue,
        room: u64,
        most_bytes: usize,
        now_ms: u64,
    ) -> Step {
        loop {
            if let Some((stream, bytes)) = self.sent.pop_front() {
                return Step::Tell(SendAction::Sent { stream, bytes });
            }
            if out.len() >= room {
                return Step::Tell(SendAction::Nothing);
            }
            let Some(id) = self.scheduler.pop() else {
                return Step::Tell(SendAction::Nothing);
            };
            let Some(stream) = streams.get(id) else {
                continue;
            };
            let stream = stream.as_mut();
            if !std::mem::take(&mut stream.queued) || !stream.could_send() {
                continue;
            }
            let chunk_bytes = stream.chunk_bytes.min(most_bytes) as u64;
            if matches!(stream.state, Sending::Body)
                && !stream.stalled
                && stream.pending_bytes <= chunk_bytes
            {
                if stream.ends_soon
                    || (stream.window.available() > 0 && self.window.available() > 0)
                {
                    self.keep_turn(id, stream);
                    return Step::Tell(SendAction::Body(id));
                }
            } else if stream.pending_bytes == 0 {
                return Step::End(id);
            }
            let most = stream.window.available().min(chunk_bytes);
            if most == 0 {
                // A window update brings it back. Until then its source is not polled, since that may cost memory.
                stream.blocked_ms.get_or_insert(now_ms);
                continue;
            }
            let len = stream.pending_bytes.min(most).min(self.window.available());
            if len == 0 {
                self.blocked_ms.get_or_insert(now_ms);
                self.keep_turn(id, stream);
                return Step::Tell(SendAction::Nothing);
            }
            return Step::Data { stream: id, len };
        }
    }

    /// Returns a stream to its former place.
    #[inline]
    fn keep_turn(&mut self, id: u32, stream: &mut Outgoing) {
        stream.queued = true;
        let in_front = Priority {
            incremental: false,
            ..stream.priority
        };
        self.scheduler.push_again(id, in_front);
    }

    /// Moves `len` bytes of a stream to `out`, behind the frame head of `head_bytes` that `put_head` writes; its
    /// argument is true for the last frame of the stream.
    #[inline(always)]
    pub(crate) fn put_data(
        &mut self,
        id: u32,
        stream: &mut Outgoing,
        len: u64,
        out: &mut OutputQueue,
        head_bytes: usize,
        put_head: impl FnOnce(&mut Vec<u8>, bool),
    ) -> Piece {
        let taken = stream.window.take(len) && self.window.take(len);
        debug_assert!(taken, "windows were asked before");
        (stream.blocked_ms, self.blocked_ms) = (None, None);
        stream.sent_bytes += len + head_bytes as u64;
        stream.ends_soon = true;
        let all = stream.pending_bytes == len;
        let last = all && matches!(stream.state, Sending::Last(None));
        out.push_with(|out| put_head(out, last));
        stream.give(len, out);
        if !last && stream.could_send() {
            stream.queued = true;
            self.scheduler.push_again(id, stream.priority);
        }
        Piece { last, all }
    }

    /// Our side of a stream has ended; [`SendAction::Sent`] will report it.
    #[inline(always)]
    pub(crate) fn finish(&mut self, id: u32, stream: &mut Outgoing) {
        stream.state = Sending::Ended;
        stream.pending.clear();
        stream.pending_bytes = 0;
        self.sent.push_back((id, stream.sent_bytes));
    }

    /// Queues a stream that could send.
    #[inline]
    pub(crate) fn requeue(&mut self, id: u32, stream: &mut Outgoing) {
        if stream.comes_back() {
            self.scheduler.push(id, stream.priority);
        }
    }

    /// Queues all streams that could send.
    pub(crate) fn requeue_all<S: AsMut<Outgoing>>(&mut self, streams: &mut StreamTable<S>) {
        streams.each(|id, stream| self.requeue(id, stream.as_mut()));
    }

    /// Changes the priority of a stream.
    pub(crate) fn reprioritise(&mut self, id: u32, stream: &mut Outgoing, priority: Priority) {
        let before = std::mem::replace(&mut stream.priority, priority);
        if std::mem::take(&mut stream.queued) {
            self.scheduler.remove(id, before);
            self.requeue(id, stream);
        }
    }

    /// Takes a piece of the body of a stream.
    #[inline(always)] // Each protocol has one place that calls it.
    pub(crate) fn push<S: AsMut<Outgoing>>(
        &mut self,
        streams: &mut StreamTable<S>,
        id: u32,
        chunk: Chunk,
    ) {
        if let Some(stream) = streams.get(id).map(AsMut::as_mut)
            && stream.push(chunk)
        {
            self.requeue(id, stream);
        }
    }

    /// Ends the body of a stream.
    #[inline(always)] // Each protocol has one place that calls it.
    pub(crate) fn end<S: AsMut<Outgoing>>(
        &mut self,
        streams: &mut StreamTable<S>,
        id: u32,
        trailers: Option<&ResponseHead>,
    ) {
        if let Some(stream) = streams.get(id).map(AsMut::as_mut)
            && stream.end(trailers)
        {
            self.requeue(id, stream);
        }
    }

    /// Breaks off the body of a stream; false if there is none to break off.
    pub(crate) fn break_off<S: AsMut<Outgoing>>(
        &mut self,
        streams: &mut StreamTable<S>,
        id: u32,
        code: u32,
    ) -> bool {
        let Some(stream) = streams.get(id).map(AsMut::as_mut) else {
            return false;
        };
        let breaks = stream.break_off(code);
        if breaks {
            self.requeue(id, stream);
        }
        breaks
    }

    /// Records whether the source of a stream's body has data.
    pub(crate) fn stall<S: AsMut<Outgoing>>(
        &mut self,
        streams: &mut StreamTable<S>,
        id: u32,
        stalled: bool,
    ) {
        if let Some(stream) = streams.get(id).map(AsMut::as_mut) {
            stream.stalled = stalled;
            if !stalled {
                self.requeue(id, stream);
            }
        }
    }

    /// Time since when the window of a stream, or that of the connection, has blocked a response that is otherwise
    /// ready; in the clock of [`Self::next`].
    pub(crate) fn blocked_since(&self, stream: &Outgoing) -> Option<u64> {
        let waits = stream.could_send();
        stream.blocked_ms.or(self.blocked_ms.filter(|_| waits))
    }

    /// A stream that was broken off is to be reset; [`SendAction::Sent`] will report it.
    pub(crate) fn finish_broken(&mut self, id: u32, sent_bytes: u64) {
        self.sent.push_back((id, sent_bytes));
    }

    /// Removes all streams from the scheduler.
    pub(crate) fn clear(&mut self) {
        self.scheduler.clear();
    }

    /// Panics if a stream contradicts itself or its queue; for tests and fuzzing.
    pub(crate) fn check_invariants(&self, id: u32, stream: &Outgoing) {
        stream.check_invariants();
        assert!(!stream.queued || self.scheduler.contains(id), "a lost turn");
    }
}
