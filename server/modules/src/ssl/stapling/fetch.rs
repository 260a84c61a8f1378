//! The background fetch of one certificate's status from its OCSP responder.
//!
//! A good response is stapled at once and renewed before it expires. After a failure the next try is in five minutes;
//! the previous response is stapled until it expires.
//!
//! Source: nginx documentation, `ssl_stapling`; nginx's behaviour.

use std::sync::Arc;

use base64ct::{Base64, Encoding};
use server_base::background_fetch::{BackgroundFetch, Endpoint, FetchRequest};
use tls::ocsp::{Question, Status, Trust};
use tls::{Authorities, Chain, Staple};

use super::memory::{Memory, StoredResponse};

/// The periodic fetch of one certificate's status.
pub(super) struct StatusFetch {
    pub(super) endpoint: Endpoint,
    pub(super) request: FetchRequest,
    pub(super) question: Question,
    /// The certificate chain of the server.
    pub(super) chain: Chain,
    /// Authorities that must have signed responses, if these are verified.
    pub(super) trusted: Option<Authorities>,
    /// Receives the response that handshakes send.
    pub(super) staple: Arc<Staple>,
    pub(super) memory: Arc<Memory>,
}

impl StatusFetch {
    /// Staples the response that an earlier configuration fetched, if there is one.
    pub(super) fn remembering(self) -> Self {
        if let Some(known) = self.memory.last() {
            self.staple.put(&known.response, known.until_s);
        }
        self
    }
}

impl BackgroundFetch for StatusFetch {
    fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn request(&self) -> &FetchRequest {
        &self.request
    }

    fn first_in_ms(&self, now_s: i64) -> u64 {
        self.memory
            .last()
            .map_or(0, |known| ms_until(known.refresh_s, now_s))
    }

    /// Staples a response if it is good.
    fn accept(&self, response: &[u8], now_s: i64) -> Result<(), String> {
        let trust = match &self.trusted {
            Some(authorities) => Trust::Below(authorities),
            None => Trust::Named,
        };
        let answer = self.question.judge(response, &self.chain, trust, now_s);
        let answer = answer.map_err(|fault| fault.to_string())?;
        if answer.status != Status::Good {
            let status = answer.status;
            return Err(format!(
                "certificate status \"{status}\" in the OCSP response"
            ));
        }
        self.staple.put(response, answer.until_s);
        self.memory.store(StoredResponse {
            response: response.to_vec(),
            until_s: answer.until_s,
            refresh_s: refresh_s(answer.until_s, now_s),
        });
        Ok(())
    }

    fn ended(&self, succeeded: bool, now_s: i64) -> u64 {
        match self.memory.last().filter(|_| succeeded) {
            Some(known) => ms_until(known.refresh_s, now_s),
            None => SOONEST_S as u64 * 1000,
        }
    }
}

/// Returns the time of the next request: before the response expires, in an hour at the latest, in five minutes at the
/// earliest.
fn refresh_s(until_s: Option<i64>, now_s: i64) -> i64 {
    let before_end = until_s.map_or(i64::MAX, |until_s| until_s.saturating_sub(AHEAD_S));
    let latest = now_s.saturating_add(LATEST_S);
    before_end.min(latest).max(now_s.saturating_add(SOONEST_S))
}

/// The GET request with a question, DER, to the responder at `path`.
pub(super) fn request(host: String, path: &str, question: &[u8]) -> FetchRequest {
    FetchRequest {
        host,
        target: target(path, question),
        media_type: "application/ocsp-response",
        response_bytes_max: RESPONSE_BYTES_MAX,
    }
}

/// Appends the request in base64 to the path (RFC 6960 appendix A.1).
fn target(path: &str, question: &[u8]) -> String {
    let slash = if path.ends_with('/') { "" } else { "/" };
    let digits = Base64::encode_string(question).replace('+', "%2B");
    let digits = digits.replace('/', "%2F").replace('=', "%3D");
    format!("{path}{slash}{digits}")
}

/// Milliseconds until `then_s`; 0 if that has passed.
fn ms_until(then_s: i64, now_s: i64) -> u64 {
    let left_s = u64::try_from(then_s.saturating_sub(now_s)).unwrap_or(0);
    left_s.saturating_mul(1000)
}

/// Maximum size of a response, its head included, bytes; as in nginx.
const RESPONSE_BYTES_MAX: usize = 16 << 10;
/// Minimum time between two tries, seconds; as in nginx.
const SOONEST_S: i64 = 300;
/// Time before its end at which a response is renewed, seconds.
const AHEAD_S: i64 = 300;
/// Maximum time between two tries, seconds.
const LATEST_S: i64 = 3600;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_escaped_in_the_target() {
        for (path, question, expected) in [
            ("/", &[0, 1, 2][..], "/AAEC"),
            ("/x", &[0xfb, 0xff], "/x/%2B%2F8%3D"),
            ("/x", &[0xff], "/x/%2Fw%3D%3D"),
            ("/x/", b"foobar", "/x/Zm9vYmFy"),
        ] {
            assert_eq!(target(path, question), expected);
        }
    }

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
