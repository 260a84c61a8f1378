//! A health check in progress: its peer, the received body, and its verdict.

use std::rc::Rc;
use std::sync::Arc;

use server_upstream::local::LocalGroup;

use super::response_test::ResponseTest;
use crate::decision::CLOSE_WITHOUT_RESPONSE;
use crate::exchange::Exchange;
use crate::handler::Content;
use crate::upstream::wording::Action;

/// A check in progress, kept with its exchange.
pub(super) struct Probe {
    /// A group with the checked peer alone.
    pub(super) group: Rc<LocalGroup>,
    /// `match`.
    pub(super) test: Option<Arc<ResponseTest>>,
    /// The received beginning of the response body.
    pub(super) body: Vec<u8>,
    /// `None` if the server is not to blame for its lack.
    pub(super) verdict: Option<Verdict>,
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) passed: bool,
    /// The words behind "while" in the log.
    pub(super) action: &'static str,
    /// Its time, monotonic milliseconds.
    pub(super) at_ms: u64,
}

impl Probe {
    /// Makes a check without a result.
    pub(super) fn new(group: Rc<LocalGroup>, test: Option<Arc<ResponseTest>>) -> Self {
        Self {
            group,
            test,
            body: Vec::new(),
            verdict: None,
        }
    }

    /// Appends a piece of the body. Returns whether the limit is reached.
    pub(super) fn add(&mut self, piece: &[u8]) -> bool {
        let room = BODY_BYTES - self.body.len();
        self.body.extend_from_slice(&piece[..piece.len().min(room)]);
        self.body.len() == BODY_BYTES
    }
}

/// Returns the group with the checked peer alone, if the exchange is a health check.
pub(crate) fn group(x: &Exchange) -> Option<Rc<LocalGroup>> {
    if !x.is_health_check() {
        return None;
    }
    let probe = x.extensions.get::<Probe>();
    probe.map(|probe| Rc::clone(&probe.group))
}

/// Ends a check without a response, so that no error page takes its place.
pub(crate) fn close(content: Content) -> Content {
    match content {
        Content::Wait => Content::Wait,
        _ => Content::Status(CLOSE_WITHOUT_RESPONSE),
    }
}

/// Records that the server has failed the check, if the exchange is one. `now_ms` is monotonic.
pub(crate) fn fail(x: &mut Exchange, action: Action, now_ms: u64) {
    if x.is_health_check()
        && let Some(probe) = x.extensions.get_mut::<Probe>()
    {
        probe.verdict = Some(Verdict {
            passed: false,
            action: action.text(),
            at_ms: now_ms,
        });
    }
}

/// Bytes of a response body that are examined.
const BODY_BYTES: usize = 256 << 10;
