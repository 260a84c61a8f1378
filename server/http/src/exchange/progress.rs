//! The progress of an exchange: its state, its waits, and the received part of its request.

use server_base::waker::Waker;

use super::Wait;
use super::action::Action;
use super::part::part;
use super::request_body::RequestBody;
use crate::decision::Phase;

/// The state of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// In the phases.
    Running,
    /// Waiting, in a phase.
    Waiting(Wait),
    /// The connection is to be closed without a response.
    Aborted,
    /// The response head is complete; the body is pulled.
    Responding,
}

part! {
    /// State, phase and handler of an exchange, its waits, and flags of its response.
    pub struct RequestProgress() {
        /// The state.
        pub state: State = State::Running,
        /// The phase that runs next.
        pub phase: Phase = Phase::PostRead,
        /// Handlers of the phase that have run.
        pub handler: usize,
        /// The status that `satisfy any` keeps.
        pub access_code: u16,
        /// The condition that the rest of the body waits for, as [`Exchange::pull`](super::Exchange::pull) found it.
        pub pull_wait: Option<Wait>,
        /// The waker, if one was made; dropped when the exchange is logged.
        pub(super) waker: Option<Waker> => keep,
        /// The filters have run: it is too late for another status.
        pub header_sent: bool,
        /// The action that the error log names.
        pub action: Action,
        /// The file of the URI was opened, so that the root exists: computed paths of access logs are used without a look.
        pub root_tested: bool,
        /// Keep the connection after this response.
        pub keep_alive: bool,
        /// The exchange goes on although its client has left.
        pub ignore_abort: bool,
    }
}

part! {
    /// The received request body, and the number of bytes.
    pub struct RequestInput() {
        /// The received part of the request body, until the response is decided; `None` without a body.
        pub(crate) body: Option<Box<RequestBody>>,
        /// The body was found too large: it is dropped, whatever the location of the error page allows.
        pub too_large: bool,
        /// Bytes of the request received, head and body.
        pub bytes: u64,
    }
}

impl RequestProgress {
    /// Sets the phase to run next.
    #[inline]
    pub(crate) fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.handler = 0;
    }
}
