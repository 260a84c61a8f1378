//! One visit: its resources, their state, and the loop that drives them.

mod connections;
mod content;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sys::os_error;
use sys::poll::{Events, Interest, Poller, Waker};

use super::hosts::Hosts;
use super::kept::Kept;
use super::options::{MAX_RESOURCES, MAX_VISIT_BYTES, Options};
use super::progress::Progress;
use super::row::Row;
use crate::client::now_ns;
use crate::fetch::{Core, Failure, FailureCause, TlsOptions};
use crate::page::{Agent, PROGRAM, PageTimings, View, Visit};

/// A visit in progress.
pub(super) struct Visitor<'a> {
    options: &'a Options,
    kept: &'a mut Kept,
    view: View,
    start_ns: u64,
    started_unix_ms: f64,
    poller: Poller,
    waker: Arc<Waker>,
    hosts: Hosts,
    carriers: Vec<Carrier>,
    /// Carriers that are not over.
    open: usize,
    rows: Vec<Row>,
    /// Rows by URL, so that no URL is requested twice.
    known: HashMap<String, usize>,
    /// Rows that are not done.
    left: usize,
    /// The row of the document that is shown.
    page: usize,
    title: Option<String>,
    /// Resources beyond the limit.
    left_out: usize,
    received_bytes: u64,
    /// The reason for the end of requests.
    over: Option<Failure>,
    buffer: Vec<u8>,
}

/// A connection and its use.
struct Carrier {
    /// `None` once it is over.
    core: Option<Core>,
    host: usize,
    remote: SocketAddr,
    /// It has been open.
    was_open: bool,
    /// Requests that were sent on it.
    used: usize,
    /// Looking up its host, until its first request takes that.
    dns: Option<(u64, u64)>,
    round_trip_ns: u64,
    received_bytes: u64,
}

impl<'a> Visitor<'a> {
    pub(super) fn new(options: &'a Options, kept: &'a mut Kept) -> Result<Self, String> {
        let broken =
            |error: std::io::Error| format!("the visit cannot start: {}", os_error(&error));
        let poller = Poller::new().map_err(broken)?;
        let waker = Arc::new(Waker::new().map_err(broken)?);
        poller
            .add(&*waker, WAKER, Interest::Readable)
            .map_err(broken)?;
        // Setup before the clock starts is not part of the time of the server.
        tls_options(options, kept).prepare()?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let view = if kept.visits == 0 {
            View::Cold
        } else {
            View::Warm
        };
        kept.visits += 1;
        Ok(Self {
            options,
            kept,
            view,
            start_ns: now_ns(),
            started_unix_ms: now.map_or(0.0, |now| now.as_secs_f64() * 1e3),
            poller,
            hosts: Hosts::new(Arc::clone(&waker)),
            waker,
            carriers: Vec::new(),
            open: 0,
            rows: Vec::new(),
            known: HashMap::new(),
            left: 0,
            page: 0,
            title: None,
            left_out: 0,
            received_bytes: 0,
            over: None,
            buffer: vec![0; BUFFER_BYTES],
        })
    }

    /// Makes the visit.
    pub(super) fn run(
        mut self,
        progress: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<Visit, String> {
        self.request_page();
        let timeout_ns = u64::try_from(self.options.timeout.as_nanos()).unwrap_or(u64::MAX);
        let deadline_ns = self.start_ns.saturating_add(timeout_ns);
        let mut events = Events::with_capacity(64);
        while self.left > 0 {
            self.hosts.take_answers();
            for place in 0..self.hosts.all.len() {
                self.dispatch(place);
            }
            if self.left == 0 {
                break;
            }
            let now = now_ns();
            let state = Progress {
                resources: self.rows.len(),
                done: self.rows.len() - self.left,
                elapsed: Duration::from_nanos(now - self.start_ns),
            };
            if !progress(&state) {
                return Err("interrupted".to_owned());
            }
            if now >= deadline_ns {
                let seconds = self.options.timeout.as_secs_f64();
                let message = format!("not complete within the visit's {seconds} s");
                self.end(Failure::new(FailureCause::Timeout, message));
                break;
            }
            self.wait(&mut events, deadline_ns - now);
            if self.received_bytes > MAX_VISIT_BYTES {
                let most = MAX_VISIT_BYTES >> 20;
                let message = format!("the visit has received {most} MiB, which is its limit");
                self.end(Failure::new(FailureCause::Limit, message));
            }
        }
        self.finish()
    }

    /// Waits for news, and takes them.
    fn wait(&mut self, events: &mut Events, left_ns: u64) {
        let mut more = Vec::new();
        for (number, carrier) in self.carriers.iter().enumerate() {
            if carrier.core.as_ref().is_some_and(Core::has_more) {
                more.push(number);
            }
        }
        let timeout_ms = left_ns.div_ceil(1_000_000).min(TURN_MS);
        let timeout_ms = if more.is_empty() { timeout_ms } else { 0 };
        if self.poller.wait(events, Some(timeout_ms)).is_err() {
            return;
        }
        for ready in events.iter() {
            if ready.token == WAKER {
                self.waker.drain();
                continue;
            }
            let number = ready.token as usize;
            more.retain(|other| *other != number);
            self.turn(number, Some(ready));
        }
        for number in more {
            self.turn(number, None);
        }
    }

    /// Ends the visit: incomplete resources have failed.
    fn end(&mut self, failure: Failure) {
        let now = now_ns();
        self.over = Some(failure.clone());
        for number in 0..self.carriers.len() {
            if let Some(core) = &mut self.carriers[number].core {
                core.expire(self.options.timeout);
                self.take_events(number);
            }
        }
        for row in self.rows.iter_mut().filter(|row| !row.is_done) {
            row.record_failure(&failure, self.start_ns, now);
        }
        self.left = 0;
    }

    /// The finished visit.
    fn finish(mut self) -> Result<Visit, String> {
        for carrier in &mut self.carriers {
            if let Some(core) = &carrier.core {
                carrier.round_trip_ns = core.record().round_trip_ns();
            }
        }
        let page = &self.rows[self.page].resource;
        if let (0, Some(error)) = (page.status, &page.error) {
            let over = self.over.as_ref().map(|over| over.cause);
            let seconds = self.options.timeout.as_secs_f64();
            return Err(match over {
                Some(FailureCause::Timeout) => {
                    format!("{}: no response within {seconds} s", page.url)
                }
                _ => format!("{}: {error}", page.url),
            });
        }
        let host = self.rows[self.page].url.clone();
        let of_page = self.carriers.iter().filter(|carrier| {
            let place = &self.hosts.all[carrier.host];
            carrier.round_trip_ns > 0 && place.url.same_server(&host)
        });
        let round_trip_ns = of_page.map(|carrier| carrier.round_trip_ns).min();
        let first_byte_ms = (!page.from_cache).then(|| page.first_byte_ms());
        let ends = self.rows.iter().map(|row| row.resource.end_ms());
        let timings = PageTimings {
            first_byte_ms,
            load_ms: ends.reduce(f64::max),
            ..PageTimings::default()
        };
        let notes = self.notes();
        Ok(Visit {
            url: self.options.url.to_string(),
            title: self.title,
            agent: Agent {
                name: PROGRAM.to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                is_browser: false,
            },
            view: self.view,
            started_unix_ms: self.started_unix_ms,
            resources: self.rows.into_iter().map(|row| row.resource).collect(),
            timings,
            filmstrip: Vec::new(),
            withheld: None,
            round_trip_ms: round_trip_ns.map(|ns| ns as f64 / 1e6),
            notes,
        })
    }

    fn notes(&self) -> Vec<String> {
        let about = "A network waterfall: firstbyte's own clients requested the resources named in the document and its \
                     style sheets. No scripts ran, so their requests are missing. There was no layout, so unused images \
                     are included.";
        let mut notes = vec![about.to_owned()];
        if self.left_out > 0 {
            let count = self.left_out;
            notes.push(format!(
                "{count} references were skipped: a visit requests at most {MAX_RESOURCES} resources."
            ));
        }
        if let Some(failure) = &self.over {
            notes.push(format!("The visit was stopped: {failure}."));
        }
        notes
    }
}

/// How connections of a visit speak TLS.
fn tls_options(options: &Options, kept: &Kept) -> TlsOptions {
    TlsOptions {
        trust: options.trust.clone(),
        sessions: kept.sessions.clone(),
        key_log: options.key_log.clone(),
        ..TlsOptions::default()
    }
}

/// The token of the waker.
const WAKER: u64 = u64::MAX;
/// The longest time between two calls for progress, ms.
const TURN_MS: u64 = 100;
/// Bytes of one read.
const BUFFER_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Protocol, Url};
    use crate::fetch::tests::server::{PATIENCE, head, scripted};
    use crate::wire::options::MAX_CONNECTIONS;
    use std::io::Write;

    /// A visit of a page of a few bytes, which are all that the server sends.
    fn visit(timeout: Duration, change: impl FnOnce(&mut Visitor<'_>)) -> Result<Visit, String> {
        let address = scripted(|mut stream| {
            head(&mut stream);
            let _ = stream.write_all(ANSWER);
        });
        let mut options = Options::new(Url::parse(&format!("http://{address}/")).expect("a URL"));
        (options.protocol, options.timeout) = (Some(Protocol::H1), timeout);
        let mut kept = Kept::default();
        let mut visitor = Visitor::new(&options, &mut kept).expect("there are descriptors");
        change(&mut visitor);
        visitor.run(&mut |_| true)
    }

    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage";

    #[test]
    fn a_visit_receives_no_more_bytes_than_the_limit() {
        for more in [0, 1] {
            let before = MAX_VISIT_BYTES - ANSWER.len() as u64 + more;
            let found = visit(PATIENCE, |visitor| visitor.received_bytes = before);
            let notes = found.expect("a document").notes;
            let is_ended = notes.iter().any(|note| note.contains("512 MiB"));
            assert_eq!(is_ended, more > 0, "{notes:?}");
        }
    }

    #[test]
    fn no_more_connections_are_opened_than_the_limit() {
        let found = visit(PATIENCE, |visitor| visitor.open = MAX_CONNECTIONS - 1);
        assert!(found.is_ok(), "{found:?}");
        let short = Duration::from_millis(200);
        let found = visit(short, |visitor| visitor.open = MAX_CONNECTIONS);
        let why = found.expect_err("there is no room");
        assert!(why.ends_with("no response within 0.2 s"), "{why}");
    }
}
