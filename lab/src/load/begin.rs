//! Which request is begun when, and on which connection.

use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec};
use sys::poll::Interest;

use super::{Connect, Loader, now_ns};
use crate::flights::Flight;
use crate::link::{Stage, failed};

impl Loader<'_> {
    /// Whether one more request may be begun; it is taken.
    pub(super) fn take_budget(&mut self, now: u64) -> bool {
        if self.until_ns.is_some_and(|until| now >= until) {
            return false;
        }
        match &mut self.left {
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
            None => true,
        }
    }

    /// Begins what is due at a constant rate.
    pub(super) fn due(&mut self, now: u64) {
        let Some(mut pace) = self.pace.take() else {
            return;
        };
        // What was due before the end of the run is sent, however late.
        while pace.next_ns() <= now && self.take_budget(pace.next_ns()) {
            self.backlog.push_back(pace.take());
        }
        // One that is due and was not taken came after the end.
        if pace.next_ns() > now {
            self.set_timer(pace.next_ns());
            self.pace = Some(pace);
        }
        for _ in 0..self.links.len() {
            if self.backlog.is_empty() {
                return;
            }
            let at = self.next_link;
            self.next_link = (at + 1) % self.links.len();
            self.begin_more(at);
        }
    }

    pub(super) fn set_timer(&self, at_ns: u64) {
        let Some(timer) = &self.timer else { return };
        let setting = Itimerspec {
            it_interval: Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: Timespec {
                tv_sec: (at_ns / 1_000_000_000) as i64,
                tv_nsec: (at_ns % 1_000_000_000) as i64,
            },
        };
        // A timer that cannot be set leaves the tick, which is later.
        let _ = rustix::time::timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &setting);
    }

    /// When the next request of a connection should be sent: now, or at the time of one that waits. `None` for no request.
    pub(super) fn next_intended(&mut self, now: u64) -> Option<u64> {
        if self.plan.rate.is_some() {
            return self.backlog.pop_front();
        }
        self.take_budget(now).then_some(now)
    }

    /// Begins what may be begun on a connection, and sends it.
    pub(super) fn begin_more(&mut self, at: usize) {
        if !self.running {
            return;
        }
        if self.plan.connect != Connect::Warm {
            return self.begin_once(at);
        }
        let now = now_ns();
        match self.links[at].stage {
            Stage::Closed if now >= self.links[at].retry_ns => {
                if self.may_begin(now) {
                    self.dial(at);
                }
                return;
            }
            Stage::Open => {}
            _ => return,
        }
        while self.has_room(at) {
            let Some(intended_ns) = self.next_intended(now) else {
                break;
            };
            self.send(at, intended_ns, now);
        }
        self.flush(at);
    }

    pub(super) fn has_room(&self, at: usize) -> bool {
        let link = &self.links[at];
        let Some(engine) = &link.engine else {
            return false;
        };
        let most = match engine.protocol().has_streams() {
            true => self.plan.streams,
            false => 1,
        };
        link.flights.len() < most && engine.room() > 0
    }

    /// Hands the next request to the engine of a connection.
    pub(super) fn send(&mut self, at: usize, intended_ns: u64, sent_ns: u64) {
        let request = &self.plan.requests[self.next_request];
        self.next_request += 1;
        if self.next_request == self.plan.requests.len() {
            self.next_request = 0;
        }
        let link = &mut self.links[at];
        let Some(engine) = &mut link.engine else {
            return;
        };
        match engine.request(&request.fields, &request.body) {
            Ok(stream) => link.flights.push(
                stream,
                Flight {
                    intended_ns,
                    sent_ns,
                    first_ns: 0,
                    status: 0,
                },
            ),
            Err(refusal) => {
                let why = format!("request not sent: {refusal:?}");
                self.count_error(&why, 1, sent_ns);
            }
        }
    }

    /// Begins a connection for one request.
    pub(super) fn begin_once(&mut self, at: usize) {
        let now = now_ns();
        let link = &self.links[at];
        if link.stage == Stage::Closed && self.once[at].is_none() {
            if now < link.retry_ns {
                return;
            }
            if let Some(intended) = self.next_intended(now) {
                self.once[at] = Some(intended);
                self.dial(at);
            }
            return;
        }
        if link.stage == Stage::Open
            && self.has_room(at)
            && let Some(intended) = self.once[at].take()
        {
            let begun = link.begun_ns;
            self.send(at, intended, begun);
            self.flush(at);
        }
    }

    pub(super) fn dial(&mut self, at: usize) {
        let now = now_ns();
        let result = match self.links[at].dial(&self.dial, now) {
            Ok(fd) => self.poller.add(fd, at as u64, Interest::Connection),
            Err(error) => Err(error),
        };
        if let Err(error) = result {
            self.fail(at, &failed("connect", &error), now);
        }
    }
}
