//! Exchanges without a client any more ([`Detached`]): their responses are read to the end and discarded.
//!
//! An exchange outlives its client if `*_ignore_client_abort on` or `*_store` applies and its request is complete. After
//! a reset of its stream the connection has it. After the end of the connection [`State::Detached`] has it, with the
//! socket, as in nginx; nothing is read or written. The access log line is written at the end of the response.
//! `*_read_timeout` and `worker_shutdown_timeout` still apply.
//!
//! Absent: `limit_rate` of the client, which takes nothing.
//!
//! Source: nginx documentation, `proxy_ignore_client_abort`.

use server_http::exchange::{BODY_BUDGET_BYTES, Exchange, Pulled, State as Progress};
use server_http::phases;

use super::client::abandon;
use super::probe::{self, EndedBy, Kept};
use super::state::{Conn, State};
use crate::worker::disposition::Disposition;
use crate::worker::net::Net;
use crate::worker::shared::Shared;
use crate::worker::state::detached::{Detached, outlives_client};
use crate::worker::state::serving::{ActiveExchange, Protocol};

impl Detached {
    /// Takes the active exchanges that outlive a connection.
    pub(super) fn take_from(&mut self, protocol: &mut Protocol) {
        if matches!(protocol, Protocol::H1(h1) if h1.engine.is_tunnel()) {
            return;
        }
        let outlives = |active: &mut ActiveExchange| outlives_client(&active.exchange);
        let active = &mut protocol.exchanges_mut().active;
        let taken: Vec<ActiveExchange> = active.extract_if(.., outlives).collect();
        let sent = protocol.exchanges().sent;
        for active in taken {
            let sent_bytes = match protocol {
                Protocol::H1(_) => sent.saturating_sub(active.start),
                Protocol::Mux(mux) => mux.engine.sent_bytes(active.stream),
            };
            self.add(active.exchange, sent_bytes);
        }
    }

    /// Continues the exchanges as far as they can go, and logs those that have ended.
    pub(super) fn run<N: Net>(&mut self, kept: &mut Kept, sh: &mut Shared<N>) {
        let mut at = 0;
        while let Some(x) = self.0.get_mut(at) {
            if go_on(x, sh) {
                at += 1;
                continue;
            }
            let mut x = self.0.swap_remove(at);
            abandon(&mut x);
            probe::abort(kept, sh, x, EndedBy::Client);
        }
    }

    /// Logs all exchanges, as far as they came.
    pub(super) fn finish_all<N: Net>(self, kept: &mut Kept, sh: &mut Shared<N>) {
        for mut x in self.0 {
            abandon(&mut x);
            probe::abort(kept, sh, x, EndedBy::Client);
        }
    }
}

/// Continues an exchange and discards its response so far; false if it has ended.
fn go_on<N: Net>(x: &mut Exchange, sh: &mut Shared<N>) -> bool {
    if x.is_waiting() {
        if x.is_due(sh.clock.mono_ms) {
            phases::resume(x, &mut sh.ctx());
        }
    } else {
        x.progress.pull_wait = None;
        x.arrived(&mut sh.ctx());
    }
    if x.is_waiting() {
        // An internal redirect may have led to a location that does not ignore the end of the client.
        return outlives_client(x);
    }
    while x.progress.state == Progress::Responding {
        match x.pull(&mut sh.ctx()) {
            Pulled::Chunk(_) => {}
            Pulled::Pending => return outlives_client(x),
            Pulled::BudgetSpent => {
                x.waker(&sh.ctx()).wake();
                return true;
            }
            Pulled::End => {
                if let Some(on_end) = x.response.on_end {
                    on_end(x, &mut sh.ctx());
                }
                return false;
            }
            Pulled::Broken => return false,
        }
    }
    false
}

/// A turn of a connection that its client has left.
#[cold]
pub(super) fn turn<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Disposition {
    let State::Detached(detached) = &mut c.state else {
        return Disposition::Close;
    };
    sh.budget.set(BODY_BUDGET_BYTES);
    detached.run(&mut c.probe, sh);
    match detached.is_empty() {
        true => {
            c.state = State::Closed;
            Disposition::Close
        }
        false => Disposition::Keep {
            deadline_ms: detached.due_ms().unwrap_or(u64::MAX),
        },
    }
}
