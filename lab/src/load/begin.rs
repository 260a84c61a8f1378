//! Chooses the time and the connection of each request.

use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec};
use sys::poll::Interest;

use super::plan::Connect;
use super::thread::Loader;
use crate::client::{Stage, failed, now_ns};

impl Loader<'_> {
    /// Takes a request from the budget; returns whether there was one left.
    pub(super) fn take_budget(&mut self, now: u64) -> bool {
        if self.until_ns.is_some_and(|until| now >= until) {
            return false;
        }
        match &mut self.left {
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                if *left == 0 && self.plan.rate.is_none() {
                    self.end.last_begun_ns = Some(now);
                }
                true
            }
            None => true,
        }
    }

    /// Begins requests that are due at a constant rate.
    pub(super) fn due(&mut self, now: u64) {
        let Some(mut schedule) = self.schedule.take() else {
            return;
        };
        // Requests that were due before the end of the run are sent, however late.
        while schedule.next_ns() <= now && self.take_budget(schedule.next_ns()) {
            self.backlog.push_back(schedule.take());
        }
        // One that is due and was not taken came after the end.
        if schedule.next_ns() > now {
            self.set_timer(schedule.next_ns());
            self.schedule = Some(schedule);
        } else {
            self.schedule_is_over = true;
        }
        for _ in 0..self.slots.len() {
            if self.backlog.is_empty() {
                return;
            }
            let at = self.next_slot;
            self.next_slot = (at + 1) % self.slots.len();
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

    /// Scheduled time of a connection's next request: now, or the time of a waiting one. `None` without a request.
    pub(super) fn next_intended(&mut self, now: u64) -> Option<u64> {
        if self.plan.rate.is_some() {
            let intended = self.backlog.pop_front();
            if intended.is_some() && self.backlog.is_empty() && self.schedule_is_over {
                self.end.last_begun_ns = Some(now);
            }
            return intended;
        }
        self.take_budget(now).then_some(now)
    }

    /// Begins as many requests as a connection may have, and sends them.
    pub(super) fn begin_more(&mut self, at: usize) {
        if !self.running {
            return;
        }
        if self.plan.connect != Connect::Warm {
            return self.begin_once(at);
        }
        let now = now_ns();
        let slot = &self.slots[at];
        match slot.connection.stage {
            Stage::Closed if now >= slot.retry_ns => {
                if self.may_begin(now) {
                    self.dial(at);
                }
                return;
            }
            Stage::Open => {}
            _ => return,
        }
        while self.slots[at].connection.has_room(self.plan.streams) {
            let Some(intended_ns) = self.next_intended(now) else {
                break;
            };
            self.send(at, intended_ns, now);
        }
        self.flush(at);
    }

    /// Hands the next request to the engine of a connection.
    pub(super) fn send(&mut self, at: usize, intended_ns: u64, sent_ns: u64) {
        let request = &self.plan.requests[self.next_request];
        self.next_request += 1;
        if self.next_request == self.plan.requests.len() {
            self.next_request = 0;
        }
        self.result.sent += 1;
        let connection = &mut self.slots[at].connection;
        if let Err(why) = connection.request(request, intended_ns, sent_ns) {
            self.count_error(&why, 1, sent_ns);
        }
    }

    /// Begins a connection for one request.
    pub(super) fn begin_once(&mut self, at: usize) {
        let now = now_ns();
        let slot = &mut self.slots[at];
        let (stage, begun_ns) = (slot.connection.stage, slot.connection.begun_ns);
        if stage == Stage::Closed && slot.once.is_none() {
            if now < slot.retry_ns {
                return;
            }
            if let Some(intended) = self.next_intended(now) {
                self.slots[at].once = Some(intended);
                self.dial(at);
            }
        } else if stage == Stage::Open
            && slot.connection.has_room(self.plan.streams)
            && let Some(intended) = slot.once.take()
        {
            self.send(at, intended, begun_ns);
            self.flush(at);
        }
    }

    pub(super) fn dial(&mut self, at: usize) {
        let now = now_ns();
        let result = match self.slots[at].connection.dial(&self.target, now) {
            Ok(fd) => self.poller.add(fd, at as u64, Interest::Connection),
            Err(error) => Err(error),
        };
        if let Err(error) = result {
            self.fail(at, &failed("connect", &error), now);
        }
    }
}
