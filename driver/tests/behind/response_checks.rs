//! Checks a client's response: it must be a complete response of one server. An error of the proxy, or a visibly broken
//! response, must have a reason.

use std::io::Read;

use super::ledger::{Attempt, ClientRequest, Ledger, Part};
use super::plan::Accel;
use super::protocol::ServerProtocol;
use super::site::{FILE, KEPT_BYTES, LEAST_MS, OOPS, RESET_MS};

/// Progress of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum End {
    #[default]
    Open,
    Whole,
    /// Visibly incomplete.
    Broken,
    /// The connection ended, which ends a response without other framing.
    Closed,
}

/// Data received by a client.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReceivedResponse {
    pub(crate) status: u16,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: usize,
    pub(crate) end: End,
}

impl ReceivedResponse {
    fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        let found = fields.find(|(n, _)| n.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

impl Ledger {
    /// Compares the received data of a request with the responses of servers.
    ///
    /// # Errors
    /// A description of the error.
    pub(crate) fn check(
        &self,
        ask: usize,
        got: &ReceivedResponse,
        now_ms: u64,
    ) -> Result<(), String> {
        let ask = &self.asks[ask];
        let fault = |e: String| format!("request {} ({} {}): {e}", ask.id, ask.method, ask.path());
        if got.status == 0 {
            return match got.end {
                End::Open => Ok(()),
                _ => self.excuse(ask, now_ms, None).map_err(fault),
            };
        }
        let result = match got.field("x-answer") {
            Some(number) => self.answered(ask, got, number, now_ms),
            None => self.ours(ask, got, now_ms),
        };
        result.map_err(fault)
    }

    /// Checks a response made by a server.
    fn answered(
        &self,
        ask: &ClientRequest,
        got: &ReceivedResponse,
        number: &str,
        now_ms: u64,
    ) -> Result<(), String> {
        let number: usize = number.parse().map_err(|_| "the answer of nobody")?;
        // A server may read a stream after its timeout and before its reset, and may even begin its response.
        let timeout_ms = ask.begun_ms + LEAST_MS;
        let is_late = |(at, attempt): &(usize, &Attempt)| {
            let may_be_reset = attempt.sent == 0 || attempt.begun_ms >= timeout_ms;
            *at > number && attempt.protocol == ServerProtocol::Http2 && may_be_reset
        };
        let last = self.attempts_of(ask.id).filter(|of| !is_late(of)).last();
        let Some((_, attempt)) = last.filter(|(at, _)| *at == number) else {
            return Err(format!(
                "answer {number}, where {:?} is the last",
                last.map(|l| l.0)
            ));
        };
        let plan = attempt
            .plan
            .as_ref()
            .ok_or("an answer before it was made")?;
        if plan.status != got.status || !attempt.has_head() {
            return Err(format!("answer {number} with status {}", got.status));
        }
        if plan.accel != Accel::No {
            return Err("X-Accel-Redirect is passed on".to_owned());
        }
        let is_tunnel = got.status == 101;
        let bodiless = ask.is_head() || matches!(got.status, 204 | 304);
        let zipped = got.field("content-encoding") == Some("gzip");
        if !zipped && !bodiless && !plan.body.starts_with(&got.body) {
            let at = plan
                .body
                .iter()
                .zip(&got.body)
                .take_while(|(a, b)| a == b)
                .count();
            return Err(format!(
                "{} bytes, of which those from {at} on are not those of answer {number}",
                got.body.len()
            ));
        }
        let is_whole = match got.end {
            End::Open => return Ok(()),
            End::Broken => return self.excuse(ask, now_ms, Some(attempt)),
            // The end of a tunnel is not visible.
            End::Closed if is_tunnel && (!attempt.is_sound() || ask.spoiled) => return Ok(()),
            End::Closed if is_tunnel => !bodiless,
            // In HTTP/1.0 an incomplete response is not visible otherwise.
            End::Closed if !zipped && self.excuse(ask, now_ms, Some(attempt)).is_ok() => {
                return Ok(());
            }
            End::Whole | End::Closed => true,
        };
        if bodiless {
            return match got.body.is_empty() {
                true => Ok(()),
                false => Err("a body where there is none".to_owned()),
            };
        }
        if is_whole && !attempt.may_be_whole() {
            return Err(format!(
                "answer {number} is whole at the client and was not at the server"
            ));
        }
        let body = match zipped {
            true => unzip(&got.body)?,
            false => got.body.clone(),
        };
        if body != *plan.body && !(is_tunnel && self.excuse(ask, now_ms, None).is_ok()) {
            return Err(format!(
                "{} bytes of {} as the whole of answer {number}",
                body.len(),
                plan.body.len()
            ));
        }
        Ok(())
    }

    /// Checks a response made by the proxy.
    fn ours(&self, ask: &ClientRequest, got: &ReceivedResponse, now_ms: u64) -> Result<(), String> {
        let last = self.attempts_of(ask.id).last().map(|(_, attempt)| attempt);
        let plan = last.and_then(|attempt| attempt.plan.as_ref());
        let text = String::from_utf8_lossy(&got.body);
        if got.end == End::Open || got.end == End::Broken {
            return Ok(());
        }
        let fits = |text: &str, wanted: &str| text == wanted || (ask.is_head() && text.is_empty());
        if let Some(plan) = plan
            && last.is_some_and(Attempt::has_head)
        {
            if plan.accel == Accel::File && got.status == 200 && fits(&text, FILE) {
                return Ok(());
            }
            let intercepted = ask.location().intercepts && matches!(plan.status, 404 | 500 | 503);
            if intercepted && got.status == plan.status && fits(&text, OOPS) {
                return Ok(());
            }
            let is_missing = ask.location().reads_only && plan.status == 404;
            if is_missing && got.status == 404 && (ask.is_head() || text.ends_with("</html>\r\n")) {
                return Ok(());
            }
            // The internal redirect was followed, but there is no attempt yet.
            if plan.accel == Accel::Inner && self.unconnected > 0 {
                return Ok(());
            }
        }
        // END has no key. A surplus END counts as a miss of the following request. After a skipped request, so does the
        // END of the next one.
        let is_of_another = last.is_some_and(|last| last.is_behind_wrong || last.is_left_out());
        if is_of_another && got.status == 404 {
            return Ok(());
        }
        if self.is_refused(ask, got.status) {
            return Ok(());
        }
        let is_error = matches!(got.status, 400 | 408 | 413 | 500 | 502 | 503 | 504);
        if !is_error && (got.status != 200 || !fits(&text, OOPS)) {
            return Err(format!("{} of ours: {text:?}", got.status));
        }
        if !ask.is_head() && !text.ends_with("</html>\r\n") && text != OOPS {
            return Err(format!("{} of ours is {text:?}", got.status));
        }
        self.excuse(ask, now_ms, None)
            .map_err(|e| format!("{} of ours, {e}", got.status))
    }

    /// Whether the authorization server refused the request.
    fn is_refused(&self, ask: &ClientRequest, status: u16) -> bool {
        let mut auths = self.all_of(ask.id).filter(|a| a.part == Part::Auth);
        auths.any(|auth| {
            let plan = auth.plan.as_ref();
            plan.is_some_and(|p| p.status >= 300 && (status == 500 || status == p.status))
        })
    }

    /// Checks for a reason for an error or a broken response. If `only` is set, the reason must be this attempt.
    ///
    /// # Errors
    /// There is no reason.
    fn excuse(
        &self,
        ask: &ClientRequest,
        now_ms: u64,
        only: Option<&Attempt>,
    ) -> Result<(), String> {
        let is_late = now_ms >= ask.begun_ms + LEAST_MS;
        if ask.spoiled || !ask.is_sent || is_late {
            return Ok(());
        }
        // An unbuffered body is kept only as far as there is room.
        let is_gone = ask.location().streams && ask.body.len() > KEPT_BYTES;
        let mut lost = self.lost.iter().filter(|(id, _)| *id == ask.id);
        let lost = lost.any(|(_, at_ms)| is_gone || now_ms >= at_ms + RESET_MS);
        let mut own =
            (self.all_of(ask.id)).filter(|a| !matches!(a.part, Part::Copy | Part::Mirror));
        let sick = match only {
            Some(attempt) => !attempt.is_sound(),
            None => lost || self.unconnected > 0 || own.any(|a| !a.is_sound()),
        };
        match sick {
            true => Ok(()),
            false => Err("though nothing went wrong".to_owned()),
        }
    }

    /// Whether the response must have arrived. Called when nothing happens until time advances.
    pub(crate) fn is_due(&self, ask: usize, now_ms: u64) -> bool {
        let asked = &self.asks[ask];
        if !asked.is_sent || asked.spoiled || asked.location().is_slow {
            return false;
        }
        if asked.upgrade || self.lost.iter().any(|(id, _)| *id == ask) {
            return false;
        }
        let Some((_, last)) = self.attempts_of(ask).last() else {
            return false;
        };
        // Another attempt may wait for its connection, or for its time after one that took too long.
        let again = asked.location().tries > 1 || last.protocol == ServerProtocol::Memcached;
        let timed_out = now_ms >= last.begun_ms + LEAST_MS;
        let retried = again && (timed_out || self.unconnected + self.pending > 0);
        let passed_by = |status| asked.location().passes_by.contains(&status);
        let ends = |plan: &super::plan::Plan| !passed_by(plan.status) && plan.accel != Accel::Inner;
        last.is_sound() && !last.is_behind_wrong && !retried && last.plan.as_ref().is_some_and(ends)
    }
}

fn unzip(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut text = Vec::new();
    let mut decoder = flate2::read::GzDecoder::new(bytes);
    match decoder.read_to_end(&mut text) {
        Ok(_) => Ok(text),
        Err(e) => Err(format!("no whole gzip: {e}")),
    }
}
