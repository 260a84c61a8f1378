//! Exchanges without a client any more ([`Outliving`]): their responses are read to the end and discarded.
//!
//! An exchange outlives its client if `*_ignore_client_abort on` or `*_store` applies and its request is complete. After
//! a reset of its stream the connection keeps it. After the end of the connection [`State::Outlived`] has it, with the
//! socket, as in nginx; nothing is read or written. The access log line is written at the end of the response.
//! `*_read_timeout` and `worker_shutdown_timeout` still apply.
//!
//! Absent: `limit_rate` of the client, which takes nothing.
//!
//! Source: nginx documentation, `proxy_ignore_client_abort`.

use server_http::detached::{Discarded, discard};
use server_http::exchange::{BODY_BUDGET_BYTES, Exchange};

use super::client::abandon;
use super::probe::{self, EndedBy, ProbeState};
use super::state::{Conn, State};
use crate::worker::disposition::Disposition;
use crate::worker::net::Net;
use crate::worker::shared::Shared;
use crate::worker::state::outliving::{Outliving, outlives_client};
use crate::worker::state::serving::{ActiveExchange, Protocol};

impl Outliving {
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

    /// Continues all exchanges as far as possible, and logs the ended ones.
    pub(super) fn run<N: Net>(&mut self, probe_state: &mut ProbeState, sh: &mut Shared<N>) {
        let mut at = 0;
        while let Some(x) = self.0.get_mut(at) {
            if resume(x, sh) {
                at += 1;
                continue;
            }
            let mut x = self.0.swap_remove(at);
            abandon(&mut x);
            probe::abort(probe_state, sh, x, EndedBy::Client);
        }
    }

    /// Logs all exchanges, as far as they came.
    pub(super) fn finish_all<N: Net>(self, probe_state: &mut ProbeState, sh: &mut Shared<N>) {
        for mut x in self.0 {
            abandon(&mut x);
            probe::abort(probe_state, sh, x, EndedBy::Client);
        }
    }
}

/// Continues an exchange; false if it has ended.
fn resume<N: Net>(x: &mut Exchange, sh: &mut Shared<N>) -> bool {
    match discard(x, &mut sh.ctx()) {
        // An internal redirect may have led to a location that does not ignore the end of the client.
        Discarded::Pending => outlives_client(x),
        Discarded::BudgetSpent => true,
        Discarded::Ended(_) => false,
    }
}

/// A turn of a connection that its client has left.
#[cold]
pub(super) fn turn<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Disposition {
    let State::Outlived(outliving) = &mut c.state else {
        return Disposition::Close;
    };
    sh.budget.set(BODY_BUDGET_BYTES);
    outliving.run(&mut c.probe, sh);
    match outliving.is_empty() {
        true => {
            c.state = State::Closed;
            Disposition::Close
        }
        false => Disposition::Keep {
            deadline_ms: outliving.due_ms().unwrap_or(u64::MAX),
        },
    }
}
