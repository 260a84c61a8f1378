//! no-resumption, no-early-data: savings of a returning client.
//!
//! Source: RFC 8446 sections 2.2 and 2.3, RFC 5077, RFC 8470.

use serde_json::{Value, json};

use super::handshakes::{alone, spoken};
use crate::doctor::code::{no_early_data, no_resumption};
use crate::doctor::command::server_name;
use crate::doctor::judge::handshake::Version;
use crate::doctor::{Examination, Failure, Finding, NetworkPath, Severity, Visitor};
use crate::fetch::{Dial, Sessions};

/// Connections with the session of an earlier one, and their results.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Attempts {
    pub(super) version: Version,
    /// Connections with a session, or without one if the server has never sent any.
    pub(super) tried: u32,
    pub(super) resumed: u32,
    /// Tickets of TLS 1.3 that came.
    pub(super) tickets: u32,
    /// Number of resumed connections with accepted early data.
    pub(super) early: u32,
}

/// All attempts of a server, one entry for each version that it speaks, the preferred one first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Figures {
    pub(super) attempts: Vec<Attempts>,
    pub(super) round_trip_ms: f64,
    pub(super) server: (String, String),
}

impl Attempts {
    /// Whether some sessions are resumed and some are not.
    fn is_unsteady(&self) -> bool {
        self.resumed > 0 && self.resumed < self.tried
    }
}

impl Figures {
    pub(super) fn measured(&self) -> Value {
        let one = |attempts: &Attempts| {
            json!({
                "version": attempts.version.name(),
                "tried": attempts.tried,
                "resumed": attempts.resumed,
                "tickets": attempts.tickets,
                "early_data_accepted": attempts.early,
            })
        };
        self.attempts.iter().map(one).collect()
    }
}

/// Connects again and again with the session of the connection before.
pub(super) fn run(x: &mut Examination<'_>) -> Result<Vec<Finding>, Failure> {
    if !x.plan.url.tls {
        return Ok(Vec::new());
    }
    let versions = spoken(x);
    let found = x.visit(NetworkPath::Direct, |visitor| {
        visitor.rounds(versions.len(), |n| match attempts(visitor, versions[n]) {
            // A server with TLS 1.3 need not support 1.2.
            Err(Failure::Fetch(_)) if n > 0 => Ok(None),
            result => result.map(Some),
        })
    })??;
    let attempts = found.into_iter().flatten().collect();
    let figures = Figures {
        attempts,
        round_trip_ms: x.round_trip_ms(),
        server: server_name(&x.plan.url),
    };
    x.measure("resumption", figures.measured());
    Ok(judge_resumption(&figures)
        .into_iter()
        .chain(judge_early_data(&figures))
        .collect())
}

/// The first connection has no session; each later one uses one of the sessions left. After a mixed result there are more
/// attempts, to tell a miss by chance from a server that misses every other time.
fn attempts(visitor: &Visitor<'_>, version: Version) -> Result<Attempts, Failure> {
    let mut dial = visitor.dial();
    if let Some(tls) = &mut dial.tls {
        tls.versions = alone(version);
        tls.sessions = Sessions::shared();
        tls.early_data = version == Version::Tls13;
    }
    let mut found = Attempts {
        version,
        tried: 0,
        resumed: 0,
        tickets: 0,
        early: 0,
    };
    let mut left = one(visitor, &dial, None, &mut found)?;
    // A server that stops giving tickets must not keep this going.
    for _ in 0..CONNECTIONS {
        let enough = match found.is_unsteady() {
            true => ATTEMPTS_UNSTEADY,
            false => ATTEMPTS,
        };
        if found.tried >= enough {
            break;
        }
        left = one(visitor, &dial, Some(left), &mut found)?;
    }
    Ok(found)
}

/// Opens one connection and sends a request. `left` is the number of unused sessions; `None` for the first connection. Returns
/// the new number.
fn one(
    visitor: &Visitor<'_>,
    dial: &Dial,
    left: Option<u32>,
    found: &mut Attempts,
) -> Result<u32, Failure> {
    let request = visitor.get(&visitor.plan().url, &[]);
    let mut session = visitor.open(dial)?;
    session.exchange(&request)?;
    if session.record().tickets == 0 && found.version == Version::Tls13 && session.is_open() {
        // A ticket may follow a quick response (RFC 8446 section 4.6.1), but precedes the next one.
        session.exchange(&request)?;
    }
    let record = session.record();
    // A ticket is used once (RFC 8446 appendix C.4), and some servers send none with a resumed handshake. The next connection
    // then has no session, and its full handshake proves nothing.
    let has_session = match found.version {
        Version::Tls12 => true,
        Version::Tls13 => left.is_some_and(|left| left > 0) || found.tickets == 0,
    };
    found.tickets += record.tickets;
    if let Some(handshake) = record
        .handshake
        .as_ref()
        .filter(|_| left.is_some() && has_session)
    {
        found.tried += 1;
        found.resumed += u32::from(handshake.resumed);
        found.early += u32::from(handshake.early_data_accepted);
    }
    let kept = left.unwrap_or(0).saturating_sub(1) + record.tickets;
    Ok(kept.min(TICKETS_KEPT))
}

/// Connections with a session, for each version. If two processes do not share their keys, four connections show it in fifteen
/// of sixteen cases.
const ATTEMPTS: u32 = 4;
/// Attempts if some sessions are resumed and some are not.
const ATTEMPTS_UNSTEADY: u32 = 12;
/// Limit of connections for a version; half of them may lack a session.
const CONNECTIONS: u32 = 2 * ATTEMPTS_UNSTEADY;
/// Tickets of a server that the client keeps (rustls).
const TICKETS_KEPT: u32 = 8;
/// Misses of [`ATTEMPTS_UNSTEADY`] for a verdict: servers may forget single sessions.
const MISSES_MIN: u32 = 3;

/// no-resumption: bad if a returning visitor loses a round trip, as with TLS 1.2 as the best version. A note if too few sessions
/// were refused to know the cause.
pub(super) fn judge_resumption(figures: &Figures) -> Option<Finding> {
    let misses = |one: &&Attempts| one.tried > 0 && one.resumed < one.tried;
    let preferred = figures.attempts.first()?.version;
    let worst = figures.attempts.iter().find(misses)?;
    let version = worst.version.name();
    let (server, name) = &figures.server;
    let text = match (worst.resumed, worst.tried) {
        (0, tried) => no_resumption::never(version, tried, server, name),
        (some, tried) if tried - some < MISSES_MIN => {
            no_resumption::seldom_refused(version, some, tried, server, name)
        }
        (some, tried) => no_resumption::often_refused(version, some, tried, server, name),
    };
    let share = f64::from(worst.tried - worst.resumed) / f64::from(worst.tried);
    // A full handshake of TLS 1.3 takes no more round trips than a resumed one, but the certificates and their signature.
    let trips = match worst.version {
        Version::Tls12 => share,
        Version::Tls13 => 0.0,
    };
    let severity = match (worst.version, worst.version == preferred, worst.resumed) {
        (Version::Tls12, true, 0) => Severity::Bad,
        (_, _, 0) => Severity::Warn,
        (_, _, resumed) if worst.tried - resumed >= MISSES_MIN => Severity::Warn,
        _ => Severity::Note,
    };
    let found = Finding::of(text, severity).costs(trips * figures.round_trip_ms, trips);
    Some(found.proof("attempts", figures.measured()))
}

/// no-early-data: a note, since requests in early data can be replayed, and applications must be prepared for that.
pub(super) fn judge_early_data(figures: &Figures) -> Option<Finding> {
    let mut attempts = figures.attempts.iter();
    let modern = attempts.find(|one| one.version == Version::Tls13)?;
    if modern.resumed == 0 || modern.early > 0 {
        return None;
    }
    let found = Finding::of(no_early_data::server(), Severity::Note);
    let found = found.costs(figures.round_trip_ms, 1.0);
    Some(found.proof("attempts", figures.measured()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(all: &[(Version, u32, u32)]) -> Figures {
        let attempts = |(version, resumed, early): &(Version, u32, u32)| Attempts {
            version: *version,
            tried: 4,
            resumed: *resumed,
            tickets: 0,
            early: *early,
        };
        Figures {
            attempts: all.iter().map(attempts).collect(),
            round_trip_ms: 20.0,
            server: ("h:443".to_owned(), "h".to_owned()),
        }
    }

    use Version::{Tls12, Tls13};

    #[test]
    fn sessions_that_are_all_resumed_are_not_found() {
        let good = figures(&[(Tls13, 4, 4), (Tls12, 4, 0)]);
        assert_eq!(judge_resumption(&good), None);
        assert_eq!(judge_early_data(&good), None);
        assert_eq!(judge_resumption(&Figures::default()), None);
    }

    #[test]
    fn sessions_that_are_never_resumed_cost_a_round_trip_of_tls_1_2() {
        let found = judge_resumption(&figures(&[(Tls12, 0, 0)])).expect("none is resumed");
        assert_eq!((found.severity, found.lost_ms), (Severity::Bad, 20.0));
        let found = judge_resumption(&figures(&[(Tls13, 0, 0), (Tls12, 4, 0)]));
        let found = found.expect("none is resumed");
        assert_eq!((found.severity, found.lost_ms), (Severity::Warn, 0.0));
    }

    #[test]
    fn sessions_that_are_resumed_at_times_say_so() {
        let judged = |tried, resumed| {
            let mut some = figures(&[(Tls12, resumed, 0)]);
            some.attempts[0].tried = tried;
            judge_resumption(&some).expect("some are not resumed")
        };
        let found = judged(12, 12 - MISSES_MIN);
        assert!(
            found
                .title
                .contains("9 of 12 TLS 1.2 sessions were resumed, as with"),
            "{}",
            found.title
        );
        assert_eq!(
            (found.severity, found.lost_round_trips),
            (Severity::Warn, 0.25)
        );
        let found = judged(12, 13 - MISSES_MIN);
        assert!(found.title.ends_with("refused some"), "{}", found.title);
        assert_eq!(found.severity, Severity::Note);
    }

    #[test]
    fn early_data_is_a_note_where_sessions_are_resumed() {
        let found = judge_early_data(&figures(&[(Tls13, 4, 0)])).expect("it is not taken");
        assert_eq!(found.severity, Severity::Note);
        assert_eq!(judge_early_data(&figures(&[(Tls13, 0, 0)])), None);
        assert_eq!(judge_early_data(&figures(&[(Tls12, 4, 0)])), None);
    }
}
