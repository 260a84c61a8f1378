//! Whether an exchange waits, and whether its wait has ended.

use server_base::waker::{WakeKey, Waker};

use super::{Ctx, Exchange, State};

impl Exchange {
    /// Whether the exchange waits, in a phase.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        matches!(self.progress.state, State::Waiting(_))
    }

    /// Whether the driver delivers the request body: until the response is decided, or as long as the body is passed on.
    #[inline]
    pub fn wants_body(&self) -> bool {
        self.is_waiting() || (self.body.on_arrival.is_some() && self.passes_body())
    }

    /// Whether the wait of the exchange has ended.
    pub fn is_due(&self, now_ms: u64) -> bool {
        let State::Waiting(wait) = self.progress.state else {
            return false;
        };
        wait.until_ms <= now_ms || (wait.wake && self.is_woken()) || self.is_body_due()
    }

    /// Whether the exchange waits for something of the body that is there now.
    #[inline]
    pub fn is_body_due(&self) -> bool {
        let Some(request_body) = &self.input.body else {
            return false;
        };
        request_body.is_due() && self.is_waiting()
    }

    /// Whether the response is on its way, and a handler takes pieces of the body or of a tunnel.
    pub(crate) fn passes_body(&self) -> bool {
        let request_body = self.input.body.as_ref();
        self.progress.state == State::Responding
            && request_body.is_some_and(|request_body| request_body.stream.is_some())
    }

    /// Whether the exchange has been woken since it was resumed, or a subrequest that a phase waits for.
    pub(super) fn is_woken(&self) -> bool {
        let awaited = || self.subrequests.awaited().is_some_and(Self::is_woken);
        self.progress.waker.as_ref().is_some_and(Waker::is_woken) || awaited()
    }

    /// Forgets earlier wakes and pieces of the request body: only later ones count.
    pub(crate) fn forget_wakes(&mut self) {
        if let Some(waker) = &self.progress.waker {
            waker.take();
        }
        if let Some(request_body) = &mut self.input.body {
            request_body.forget_arrivals();
        }
    }

    /// Drops the exchange's waker; its copies wake no exchange any more.
    pub(crate) fn drop_waker(&mut self) {
        self.progress.waker = None;
    }

    /// The time of its own at which the exchange is to be looked at, monotonic milliseconds.
    #[inline]
    pub fn due_ms(&self) -> Option<u64> {
        let until_ms = match self.progress.state {
            State::Waiting(wait) => Some(wait.until_ms),
            _ => self.progress.pull_wait.map(|wait| wait.until_ms),
        };
        match &self.input.body {
            None => until_ms,
            Some(body) => until_ms.into_iter().chain(body.due_ms()).min(),
        }
    }

    /// The waker of the exchange, made on the first call.
    pub fn waker(&mut self, cx: &Ctx<'_>) -> Waker {
        let key = self.client.wake;
        let waker = self
            .progress
            .waker
            .get_or_insert_with(|| Waker::new(key, &cx.queues.wakers));
        waker.clone()
    }

    /// Takes the waker of another exchange, whose waits it takes over.
    pub(crate) fn take_waker(&mut self, other: &mut Self) {
        self.progress.waker = other.progress.waker.take();
    }

    /// Sets the entry of the loop that is woken for it.
    pub fn set_wake_key(&mut self, key: WakeKey) {
        self.client.wake = key;
        if let Some(waker) = &self.progress.waker {
            waker.set_key(key);
        }
    }
}

#[cfg(test)]
#[path = "due_tests.rs"]
mod tests;
