//! Invariants of a resolver between any two calls, checked by tests and the fuzz target after each.

use super::entry::{Stage, State};
use super::resolver::{ASKED_MAX, KEPT_MAX, Resolver, Timer, WAITING_MAX};
use super::slab::Key;
use super::waiter::{Role, Wait};

impl Resolver {
    /// Checks that the tables agree and the limits hold.
    ///
    /// # Panics
    /// The tables disagree, which is a fault of this module.
    pub fn check_invariants(&self) {
        assert!(self.asking <= ASKED_MAX && self.kept.len() <= KEPT_MAX);
        assert!(self.waiters.len() <= WAITING_MAX);
        assert_eq!(self.by_question.len(), self.entries.len());
        let mut asking = 0;
        let mut timers = 0;
        let mut queued = 0;
        for (key, entry) in self.entries.iter() {
            assert_eq!(self.by_question.get(&entry.question), Some(&key));
            match &entry.state {
                State::Asking(state) => {
                    asking += 1;
                    timers += 1;
                    let timer = (state.resend_at_ms, Timer::Entry(key));
                    assert!(self.timers.contains(&timer));
                    assert!(state.server < self.settings.servers);
                    assert!(state.asked.iter().all(|n| *n < self.settings.servers));
                    let pending = state.queries.iter().filter(|q| q.stage != Stage::Answered);
                    assert!(pending.count() > 0, "what is answered is not asked");
                    for (index, query) in state.queries.iter().enumerate() {
                        let waiting = self.sends.iter().filter(|send| **send == (key, index));
                        let expected = usize::from(query.stage == Stage::Queued);
                        assert_eq!(waiting.count(), expected);
                        assert!(query.stage == Stage::Queued || query.id.is_some());
                        queued += expected;
                    }
                }
                State::Kept(kept) => assert!(self.kept.contains(&(kept.used_ms, key))),
            }
        }
        assert_eq!(asking, self.asking);
        assert_eq!(asking + self.kept.len(), self.entries.len());
        assert_eq!(queued, self.sends.len());
        for (key, waiter) in self.waiters.iter() {
            if let Some(at) = waiter.deadline_ms {
                timers += 1;
                assert!(self.timers.contains(&(at, Timer::Waiter(key))));
            }
            self.check_wait(key, &waiter.stage);
            if let Role::Host { of, .. } = waiter.role {
                assert!(
                    self.waiters.get(of).is_some(),
                    "a host is looked up for somebody"
                );
            }
        }
        assert_eq!(timers, self.timers.len());
    }

    fn check_wait(&self, key: Key, wait: &Wait) {
        match wait {
            Wait::Nothing => panic!("a waiter waits for something"),
            Wait::Entry(entry) => {
                let state = self.entries.get(*entry).map(|entry| &entry.state);
                let listed =
                    matches!(state, Some(State::Asking(state)) if state.waiters.contains(&key));
                assert!(listed, "a waiter is listed where it waits");
            }
            Wait::Hosts(hosts) => {
                assert!(hosts.pending() > 0);
                assert_eq!(hosts.waiters().count(), hosts.pending());
                assert!(hosts.waiters().all(|host| self.waiters.get(host).is_some()));
            }
        }
    }
}
