//! Commands and events of the DevTools protocol.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::message::{Message, encode};
use super::options::Step;
use super::pipe::Pipe;

/// Is called with how far it is, and may end it by returning false.
pub(super) type Progress<'a> = dyn FnMut(&Step) -> bool + 'a;

/// Connection for commands to a browser.
pub(super) struct Devtools<'a, 'p> {
    pipe: Pipe,
    last_id: u64,
    /// Events received while waiting for a response.
    events: VecDeque<Message>,
    progress: &'a mut Progress<'p>,
    pub(super) step: Step,
    began: Instant,
}

impl<'a, 'p> Devtools<'a, 'p> {
    pub(super) fn new(pipe: Pipe, progress: &'a mut Progress<'p>, step: Step) -> Self {
        Self {
            pipe,
            last_id: 0,
            events: VecDeque::new(),
            progress,
            step,
            began: Instant::now(),
        }
    }

    /// Sends a command and returns its number. The response arrives as a message.
    ///
    /// # Errors
    /// The browser has exited or does not respond.
    pub(super) fn post(
        &mut self,
        session: Option<&str>,
        method: &str,
        params: &Value,
    ) -> Result<u64, String> {
        self.last_id += 1;
        let bytes = encode(self.last_id, session, method, params);
        self.pipe.send(&bytes)?;
        Ok(self.last_id)
    }

    /// Sends a command and returns its result.
    ///
    /// # Errors
    /// The browser refuses it, does not respond in time, or is gone; it was interrupted.
    pub(super) fn call(
        &mut self,
        session: Option<&str>,
        method: &str,
        params: &Value,
        limit: Duration,
    ) -> Result<Value, String> {
        let id = self.post(session, method, params)?;
        let end = Instant::now() + limit;
        while let Some(message) = self.receive(end)? {
            if message.id == Some(id) {
                let refused = |why: &str| format!("the browser refused {method}: {why}");
                return match message.error {
                    Some(failure) => Err(refused(&failure.message)),
                    None => Ok(message.result),
                };
            }
            // Responses to posted commands are ignored.
            if message.id.is_none() {
                if self.events.len() >= WAITING_MAX {
                    return Err("the browser sends too many events".to_owned());
                }
                self.events.push_back(message);
            }
        }
        Err(format!(
            "the browser did not respond to {method} within {} s",
            limit.as_secs()
        ))
    }

    /// Returns the next event or response; `None` if none arrives before `end`.
    ///
    /// # Errors
    /// The browser has exited; the visit was interrupted.
    pub(super) fn next(&mut self, end: Instant) -> Result<Option<Message>, String> {
        match self.events.pop_front() {
            Some(event) => Ok(Some(event)),
            None => self.receive(end),
        }
    }

    fn receive(&mut self, end: Instant) -> Result<Option<Message>, String> {
        loop {
            self.step.elapsed = self.began.elapsed();
            if !(self.progress)(&self.step) {
                return Err(INTERRUPTED.to_owned());
            }
            let left = end.saturating_duration_since(Instant::now());
            let message = self.pipe.receive(left.min(LOOK))?;
            if message.is_some() || left.is_zero() {
                return Ok(message);
            }
        }
    }
}

/// The error of visits that were ended by their caller.
pub(super) const INTERRUPTED: &str = "interrupted";
/// Longest time between two calls of the caller's `progress` during a wait.
const LOOK: Duration = Duration::from_millis(50);
/// The most events that wait while a response does.
const WAITING_MAX: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::View;
    use serde_json::json;
    use std::fs::File;
    use std::io::Write;

    #[test]
    fn events_wait_for_a_response_up_to_a_limit() {
        for (count, fits) in [(WAITING_MAX, true), (WAITING_MAX + 1, false)] {
            let (pipe, ends) = Pipe::create().expect("pipes");
            let mut responses = File::from(ends.responses);
            let writer = std::thread::spawn(move || {
                let sent = [&b"{}\0".repeat(count)[..], b"{\"id\":1}\0"].concat();
                // The reader goes when there are too many.
                let _ = responses.write_all(&sent);
            });
            let mut goes_on = |_: &Step| true;
            let step = Step {
                runs: (0, 1),
                view: View::Cold,
                resources: 0,
                elapsed: Duration::ZERO,
            };
            let mut devtools = Devtools::new(pipe, &mut goes_on, step);
            let result = devtools.call(None, "Page.enable", &json!({}), Duration::from_secs(60));
            assert_eq!(result.is_ok(), fits, "{result:?}");
            drop(devtools);
            writer.join().expect("it ends");
        }
    }
}
