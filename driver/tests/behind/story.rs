//! Log of the connections to servers, for debugging a failure.

use super::protocol::ServerProtocol;
use super::server::ServerConnections;

impl ServerConnections {
    /// Returns a line for each connection and for each of its requests.
    pub(crate) fn story(&self) -> String {
        let book = self.book.borrow();
        let mut story = String::new();
        for (at, server) in self.links.iter().enumerate() {
            let wire = server.wire.borrow();
            let text = String::from_utf8_lossy(wire.sent()).into_owned();
            let lines: Vec<&str> = match server.protocol {
                ServerProtocol::Http => text.lines().filter(|l| l.ends_with("HTTP/1.1")).collect(),
                _ => text.lines().take(1).collect(),
            };
            story += &format!(
                "  server {at}: got {lines:?} lost {:?}, attempt {:?}, due {}, closed {}, left {}, ended {}, reset {}, pending {}, \
                 waiting {}, sent {} fetched {}\n",
                String::from_utf8_lossy(wire.lost()).lines().next(),
                server.attempt,
                server.due_ms,
                wire.closed,
                wire.has_left(),
                wire.is_ended(),
                wire.is_reset(),
                wire.is_pending(),
                wire.waiting(),
                wire.sent().len(),
                wire.fetched(),
            );
        }
        for (at, attempt) in book.attempts.iter().enumerate() {
            let plan = attempt.plan.as_ref().map(|p| {
                format!(
                    "{} text {} head {} whole {} close {} bad {} early {} late {} pause {:?} {:?} {:?}",
                    p.status, p.text.len(), p.head_at, p.whole_at, p.until_close, p.bad, p.early, p.late_ms, p.pause, p.after, p.accel
                )
            });
            story += &format!(
                "  attempt {at}: ask {} {:?} fresh {} at {} whole {} sent {} over {}: {plan:?}\n",
                attempt.ask,
                attempt.part,
                attempt.is_fresh,
                attempt.begun_ms,
                attempt.is_whole,
                attempt.sent,
                attempt.is_over
            );
        }
        story
    }
}
