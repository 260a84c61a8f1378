//! Exchanges without a client, in a table of their own.
//!
//! A handler starts one by [`DetachedRequest::start`], so it outlives the exchange and the connection that started it. It is
//! woken by its servers as any exchange, and ended by its own timeouts, by the limit of its creator, or with its thread.
//! Exchanges that outlive a client stay with its connection (`conn`), since their number is limited for each connection.

use server_base::waker::WakeKey;
use server_http::detached::{self, Discarded};
use server_http::exchange::{BODY_BUDGET_BYTES, DetachedEnd, DetachedRequest};

use super::disposition::Disposition;
use super::net::Net;
use super::readiness::TurnCause;
use super::shared::Shared;

/// An entry of the table of exchanges without a client.
pub struct DetachedExchange {
    /// None during a turn, so that a panic drops it.
    request: Option<DetachedRequest>,
}

impl DetachedExchange {
    /// An exchange that begins with its first turn.
    pub fn new(request: DetachedRequest) -> Self {
        Self {
            request: Some(request),
        }
    }

    /// Whether it began before this configuration.
    pub fn is_older_than(&self, number: u64) -> bool {
        let request = self.request.as_ref();
        request.is_some_and(|request| request.exchange.route.http.number < number)
    }

    /// Whether it is a health check of a server.
    pub fn is_health_check(&self) -> bool {
        let request = self.request.as_ref();
        request.is_some_and(|request| request.exchange.is_health_check())
    }

    /// Begins the exchange or continues it; one that has ended is logged if its creator wants that.
    pub(super) fn turn<N: Net>(&mut self, sh: &mut Shared<N>, cause: TurnCause) -> Disposition {
        let Some(mut request) = self.request.take() else {
            return Disposition::Close;
        };
        let end = match cause {
            TurnCause::Aborted | TurnCause::Broken => DetachedEnd::Closed,
            _ if request.until_ms <= sh.clock.mono_ms => DetachedEnd::TimedOut,
            _ => {
                sh.budget.set(BODY_BUDGET_BYTES);
                request.exchange.set_wake_key(WakeKey {
                    owner: sh.owner,
                    stream: 0,
                });
                match detached::turn(&mut request, &mut sh.ctx()) {
                    Discarded::Pending | Discarded::BudgetSpent => {
                        let due_ms = request.exchange.due_ms().unwrap_or(u64::MAX);
                        let deadline_ms = request.until_ms.min(due_ms);
                        self.request = Some(request);
                        return Disposition::Keep { deadline_ms };
                    }
                    Discarded::Ended(end) => end,
                }
            }
        };
        sh.end_detached(request, end);
        Disposition::Close
    }
}
