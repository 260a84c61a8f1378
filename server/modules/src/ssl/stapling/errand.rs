//! Fetching what a responder says of one certificate.
//!
//! A response that is good is shown at once and asked for anew before it ends; after anything else the next try is in five
//! minutes, and what was known is shown for as long as it holds.
//!
//! Source: nginx documentation, `ssl_stapling`; nginx's behaviour.

use std::sync::Arc;

use server_core::errand::{Conversation, Destination, Errand, Progress};
use tls::ocsp::http::Received;
use tls::ocsp::{Question, Status as Said, Trust};
use tls::{Authorities, Chain, Staple};

use super::memory::{Known, Memory};

/// The status of one certificate.
pub(super) struct Status {
    pub(super) destination: Destination,
    /// What is sent.
    pub(super) request: Vec<u8>,
    pub(super) question: Question,
    /// The certificates that are shown.
    pub(super) chain: Chain,
    /// Whom responses must come from, where they are verified.
    pub(super) trusted: Option<Authorities>,
    /// Where a response is put to be shown.
    pub(super) staple: Arc<Staple>,
    pub(super) memory: Arc<Memory>,
}

impl Status {
    /// The same, showing already what an earlier configuration fetched.
    pub(super) fn remembering(self) -> Self {
        if let Some(known) = self.memory.last() {
            self.staple.put(&known.response, known.until_s);
        }
        self
    }

    /// Judges a response, and shows it if it is good.
    fn take(&self, response: &[u8], now_s: i64) -> Result<(), String> {
        let trust = match &self.trusted {
            Some(authorities) => Trust::Below(authorities),
            None => Trust::Named,
        };
        let answer = self.question.judge(response, &self.chain, trust, now_s);
        let answer = answer.map_err(|fault| fault.to_string())?;
        if answer.status != Said::Good {
            let status = answer.status;
            return Err(format!(
                "certificate status \"{status}\" in the OCSP response"
            ));
        }
        self.staple.put(response, answer.until_s);
        self.memory.keep(Known {
            response: response.to_vec(),
            until_s: answer.until_s,
            refresh_s: refresh_s(answer.until_s, now_s),
        });
        Ok(())
    }
}

/// When a response is asked for anew: before it ends, in an hour at the latest, and in five minutes at the earliest.
fn refresh_s(until_s: Option<i64>, now_s: i64) -> i64 {
    let before_end = until_s.map_or(i64::MAX, |until_s| until_s.saturating_sub(AHEAD_S));
    let latest = now_s.saturating_add(LATEST_S);
    before_end.min(latest).max(now_s.saturating_add(SOONEST_S))
}

impl Errand for Status {
    fn destination(&self) -> &Destination {
        &self.destination
    }

    fn begins_in_ms(&self, now_s: i64) -> u64 {
        self.memory
            .last()
            .map_or(0, |known| ms_until(known.refresh_s, now_s))
    }

    fn begin(self: Arc<Self>) -> Box<dyn Conversation> {
        Box::new(Exchange {
            status: self,
            received: Received::default(),
        })
    }

    fn ended(&self, well: bool, now_s: i64) -> u64 {
        match self.memory.last().filter(|_| well) {
            Some(known) => ms_until(known.refresh_s, now_s),
            None => SOONEST_S as u64 * 1000,
        }
    }
}

/// Milliseconds until a second; 0 if that has passed.
fn ms_until(then_s: i64, now_s: i64) -> u64 {
    let left_s = u64::try_from(then_s.saturating_sub(now_s)).unwrap_or(0);
    left_s.saturating_mul(1000)
}

/// One request and its response.
struct Exchange {
    status: Arc<Status>,
    received: Received,
}

impl Conversation for Exchange {
    fn request(&self) -> &[u8] {
        &self.status.request
    }

    fn receive(&mut self, bytes: &[u8], now_s: i64) -> Progress {
        match self.received.receive(bytes) {
            Ok(true) => Progress::Ended(self.status.take(self.received.body(), now_s)),
            Ok(false) => Progress::More,
            Err(fault) => Progress::Elsewhere(fault.to_string()),
        }
    }

    fn end(&mut self, now_s: i64) -> Progress {
        match self.received.end() {
            Ok(()) => Progress::Ended(self.status.take(self.received.body(), now_s)),
            Err(fault) => Progress::Elsewhere(fault.to_string()),
        }
    }
}

/// The shortest time between two tries, seconds; as the others in nginx.
const SOONEST_S: i64 = 300;
/// How long before its end a response is asked for anew.
const AHEAD_S: i64 = 300;
/// The longest time between two tries.
const LATEST_S: i64 = 3600;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_fetched_anew_in_time() {
        for (until_s, told) in [
            (None, 1_000 + 3600),
            (Some(i64::MAX), 1_000 + 3600),
            (Some(1_000 + 3901), 1_000 + 3600),
            (Some(1_000 + 3899), 1_000 + 3599),
            (Some(1_000 + 601), 1_000 + 301),
            (Some(1_000 + 599), 1_000 + 300),
            (Some(i64::MIN), 1_000 + 300),
        ] {
            assert_eq!(refresh_s(until_s, 1_000), told, "{until_s:?}");
        }
        assert_eq!(ms_until(1_300, 1_000), 300_000);
        assert_eq!(ms_until(1_000, 1_300), 0);
    }
}
