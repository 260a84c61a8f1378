//! Begins health checks when they are due, and records their results.
//!
//! One thread of the process has a [`Prober`] for each configuration. A peer has one check of a kind at a time. At most
//! [`CHECKS_MAX`] checks are in progress; the others wait in the order of their times. Peers that are added to a group
//! later are found by a periodic look at its list.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::rc::{Rc, Weak};

use engines::http::{Method, RequestHead, Version};
use server_base::errlog::{Level, Printable};
use server_upstream::group::{Groups, Keepalive};
use server_upstream::health::active::Health;
use server_upstream::local::LocalGroup;
use server_upstream::peer::Peer;
use server_upstream::peers::{PeerId, PeerList};
use server_upstream::route::UpstreamAddr;

use super::probe::{Probe, Verdict};
use super::{HealthCheck, HealthChecks};
use crate::builtin::random_id;
use crate::exchange::{Ctx, DetachedEnd, DetachedRequest, Exchange};
use crate::http::LocalHttp;
use crate::upstream::run::record;

/// Begins the health checks of one configuration.
pub struct Prober {
    http: Rc<LocalHttp>,
    schedule: Rc<RefCell<Schedule>>,
    /// The change of the group's list that was seen last, for each check.
    seen: Vec<Option<u32>>,
    /// Time of the next look at the lists, monotonic milliseconds.
    look_ms: u64,
}

/// A check of a peer: the index of the check, and the peer.
type Subject = (usize, PeerId);

/// The checks to come.
#[derive(Default)]
struct Schedule {
    /// Checks that are not in progress, with their times, monotonic milliseconds. Each is of a checked peer.
    waiting: BinaryHeap<Reverse<(u64, Subject)>>,
    /// Checked peers. Each has one entry in `waiting` or one check in progress.
    subjects: HashSet<Subject>,
    /// Peers with a check in progress, also those that are not checked any more.
    in_progress: HashSet<Subject>,
}

/// Schedules the next check of a peer when the check in progress is dropped, however it ends.
struct InProgress {
    schedule: Weak<RefCell<Schedule>>,
    subject: Subject,
    /// Time of the next check, monotonic milliseconds.
    next_ms: u64,
}

impl Drop for InProgress {
    fn drop(&mut self) {
        if let Some(schedule) = self.schedule.upgrade() {
            let mut schedule = schedule.borrow_mut();
            schedule.in_progress.remove(&self.subject);
            if schedule.subjects.contains(&self.subject) {
                schedule.waiting.push(Reverse((self.next_ms, self.subject)));
            }
        }
    }
}

impl Prober {
    /// Makes the prober of a configuration, and sets the checks of its groups; `None` if the configuration has no checks.
    pub fn of(http: &Rc<LocalHttp>) -> Option<Box<Self>> {
        let checks: &HealthChecks = http.main.find()?;
        if checks.list.is_empty() {
            return None;
        }
        let made = Self {
            http: Rc::clone(http),
            schedule: Rc::default(),
            seen: vec![None; checks.list.len()],
            look_ms: 0,
        };
        let groups = http.main::<Groups>();
        for check in &checks.list {
            let set = |peers: &mut PeerList| peers.set_checks(&groups[check.group].checks);
            made.group(check).peers().with(set);
        }
        Some(Box::new(made))
    }

    /// Returns the time of the next [`Self::run`], monotonic milliseconds.
    pub fn due_ms(&self) -> u64 {
        let next_ms = self.schedule.borrow().due_ms();
        next_ms.map_or(self.look_ms, |at_ms| self.look_ms.min(at_ms))
    }

    /// Begins the checks that are due, [`CHECKS_A_TURN`] at most, up to [`CHECKS_MAX`] in progress.
    pub fn run(&mut self, cx: &Ctx<'_>) {
        let now_ms = cx.clock.mono_ms;
        if self.look_ms <= now_ms {
            self.look(now_ms);
            self.look_ms = now_ms + LOOK_MS;
        }
        for _ in 0..CHECKS_A_TURN {
            let Some(subject) = self.schedule.borrow_mut().take_due(now_ms) else {
                return;
            };
            self.begin(subject, cx);
        }
    }

    fn checks(&self) -> &[HealthCheck] {
        &self.http.main::<HealthChecks>().list
    }

    fn group(&self, check: &HealthCheck) -> Rc<LocalGroup> {
        let groups = self.http.main::<Groups>();
        self.http.upstreams().group(groups, check.group)
    }

    /// Adds peers that are new in their group, and forgets peers that are gone or `down`.
    fn look(&mut self, now_ms: u64) {
        for at in 0..self.seen.len() {
            let check = &self.checks()[at];
            let group = self.group(check);
            let seen = self.seen[at];
            let found = group.peers().with(|peers| {
                let changes = Some(peers.changes()).filter(|changes| seen != Some(*changes))?;
                // Peers may be excluded until their first check from now on.
                peers.settle_downtime(now_ms);
                let up = peers.iter().filter(|(_, peer)| !peer.is_down());
                Some((changes, up.map(|(id, _)| (at, id)).collect()))
            });
            let Some((changes, subjects)) = found else {
                continue;
            };
            let jitter_ms = check.jitter_ms;
            self.seen[at] = Some(changes);
            let mut schedule = self.schedule.borrow_mut();
            schedule.set(at, &subjects, || now_ms.saturating_add(random(jitter_ms)));
        }
    }

    /// Begins the check of a peer.
    fn begin(&self, subject: Subject, cx: &Ctx<'_>) {
        let (at, id) = subject;
        let check = &self.checks()[at];
        let group = self.group(check);
        let probed = group.peers().with(|peers| {
            let peer = peers.get(id)?;
            Some((
                check_group(check, group.name(), peer),
                label(check, &group, peer),
            ))
        });
        let Some((peer_group, label)) = probed else {
            self.schedule.borrow_mut().forget(subject);
            return;
        };
        let delay_ms = check.interval_ms.saturating_add(random(check.jitter_ms));
        let in_progress = InProgress {
            schedule: Rc::downgrade(&self.schedule),
            subject,
            next_ms: cx.clock.mono_ms.saturating_add(delay_ms),
        };
        let (spec_id, probe) = (
            check.spec.id,
            Probe::new(peer_group.into(), check.test.clone()),
        );
        let mut request = self.request(check, cx).observed_by(move |x, end| {
            let _in_progress = in_progress;
            if let Some(verdict) = verdict(x, end) {
                note(x, &group, (id, spec_id), verdict);
            }
        });
        let x = &mut request.exchange;
        record(x).check = Some(label.into());
        x.extensions.push(probe);
        request.start(cx);
    }

    /// Makes the request of a check.
    fn request(&self, check: &HealthCheck, cx: &Ctx<'_>) -> DetachedRequest {
        let mut head = RequestHead {
            method: Method::Get,
            version: Version::Http11,
            ..RequestHead::default()
        };
        head.method_name = head.store(b"GET");
        head.target = head.store(&check.uri.written);
        let ports = self.http.ports.iter();
        let mut ports = ports.map(|port| port.addrs.iter().flat_map(|addr| &addr.listens));
        let is_own = |(server, _): &(usize, _)| *server == check.server;
        let port = ports.position(|mut listens| listens.any(is_own));
        let place = (port.unwrap_or_default(), check.server);
        let mut request =
            DetachedRequest::new(&self.http, place, head, cx.clock).in_location(check.location);
        let target = &mut request.exchange.target;
        target.set_uri(&check.uri.path);
        target.set_args(&check.uri.args);
        request
    }
}

impl Schedule {
    /// Sets the checked peers of one check. New peers are checked first at the time that `first_ms` returns.
    fn set(&mut self, at: usize, subjects: &HashSet<Subject>, first_ms: impl Fn() -> u64) {
        let is_checked = |subject: &Subject| subject.0 != at || subjects.contains(subject);
        self.subjects.retain(is_checked);
        // Peers that come and go within an interval must not leave entries.
        self.waiting
            .retain(|Reverse((_, subject))| is_checked(subject));
        for subject in subjects {
            // The next check of a peer that returns follows the one in progress.
            if self.subjects.insert(*subject) && !self.in_progress.contains(subject) {
                self.waiting.push(Reverse((first_ms(), *subject)));
            }
        }
    }

    /// Returns the time of the next check, monotonic milliseconds; `None`: another check must end first, or there is
    /// none.
    fn due_ms(&self) -> Option<u64> {
        let has_room = self.in_progress.len() < CHECKS_MAX;
        let next = self.waiting.peek().filter(|_| has_room)?;
        Some(next.0.0)
    }

    /// Takes the next check that is due, if there is one and there is room. It is in progress until its [`InProgress`] is
    /// dropped.
    fn take_due(&mut self, now_ms: u64) -> Option<Subject> {
        self.due_ms().filter(|at_ms| *at_ms <= now_ms)?;
        let Reverse((_, subject)) = self.waiting.pop()?;
        self.in_progress.insert(subject);
        Some(subject)
    }

    /// Ends the checks of a peer that is gone.
    fn forget(&mut self, subject: Subject) {
        self.subjects.remove(&subject);
        self.in_progress.remove(&subject);
    }
}

/// Makes a group with the checked peer alone.
fn check_group(check: &HealthCheck, name: &[u8], peer: &Peer) -> LocalGroup {
    let mut addr = peer.addr().clone();
    if let (UpstreamAddr::Inet(addr), Some(port)) = (&mut addr, check.port) {
        addr.set_port(port);
    }
    let keepalive = check.keepalive_time_ms.map(|time_ms| Keepalive {
        connections: KEPT,
        is_local: true,
        requests: u64::MAX,
        time_ms,
        timeout_ms: time_ms,
    });
    LocalGroup::of_check(name, peer, addr, keepalive)
}

/// The words about a check at the end of lines in the log.
fn label(check: &HealthCheck, group: &LocalGroup, peer: &Peer) -> String {
    let test = check.test.as_ref().map_or(&b""[..], |test| &test.name);
    let (test, addr, name) = (Printable(test), peer.addr(), Printable(group.name()));
    let port = match check.port {
        Some(port) => format!(", port {port}"),
        None => String::new(),
    };
    format!("health check \"{test}\" of peer {addr} in upstream \"{name}\"{port}")
}

/// Returns the result of an ended check; `None` if there is none.
fn verdict(x: &mut Exchange, end: DetachedEnd) -> Option<Verdict> {
    let probe = x.extensions.take::<Probe>()?;
    match end {
        DetachedEnd::Closed => None,
        DetachedEnd::Complete | DetachedEnd::Broken | DetachedEnd::TimedOut => probe.verdict,
    }
}

/// Records a result in the group, and logs a change.
fn note(x: &Exchange, group: &LocalGroup, (peer, check): (PeerId, u64), verdict: Verdict) {
    let change = group.peers().with(|peers| {
        let change = peers.record_check(peer, check, verdict.passed, verdict.at_ms);
        let recovered = peers.get(peer).is_some_and(|peer| !peer.checks().is_out());
        if change == Some(Health::Up) && recovered {
            peers.begin_slow_start(peer, verdict.at_ms);
        }
        change
    });
    let (level, text) = match change {
        None => return,
        Some(Health::Up) => (Level::Notice, "peer is healthy"),
        Some(Health::Checking | Health::Unhealthy) => (Level::Warn, "peer is unhealthy"),
    };
    x.log_while(level, verdict.action, format_args!("{text}"));
}

/// Returns a random number up to a maximum.
fn random(max: u64) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = random_id();
    match max.checked_add(1) {
        Some(count) => u64::from_le_bytes([a, b, c, d, e, f, g, h]) % count,
        None => 0,
    }
}

/// Interval of looks at the lists of peers, milliseconds.
const LOOK_MS: u64 = 1000;
/// Maximum number of checks that begin in one turn of the loop.
const CHECKS_A_TURN: usize = 32;
/// Maximum number of checks in progress. Each has a connection, and up to 256 KiB of a body.
const CHECKS_MAX: usize = 512;
/// Maximum number of idle connections for the checks of one group in a location.
const KEPT: usize = 1024;

#[cfg(test)]
#[path = "prober_tests.rs"]
mod tests;
