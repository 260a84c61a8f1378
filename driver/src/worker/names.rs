//! Names that requests look up, on a serving thread.
//!
//! Each set of name servers in use has a resolver, with its cache, which outlives a reload. A request without name
//! servers uses the system's files and servers. A question with a cached answer is answered at once. The others leave
//! when the poller can be touched ([`Names::transmit`]); answers wake the waiters.
//!
//! ```text
//! exchange:  resolve                      a Lookup, answered or pending
//! thread:    transmit, ready, expire      answers complete lookups and wake
//! ```
//!
//! A name may have several candidates, since the system completes short ones; they are queried in order. The engine
//! limits the names and waiters at a time.
//!
//! The main thread has names of its own, for hosts of groups ([`Names::follow`], [`Names::found`]). Their answers name
//! the question by a number, since no exchange waits for them.
//!
//! Absent: the exchanges that resolve names.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use engines::dns::{Answer, Event, Failure, ServiceAddress, Settings, Subject};
use server_base::errlog::ErrorLog;
use server_base::name_servers::NameServers;
use server_base::waker::Waker;
use server_upstream::connector::{Lookup, Resolved};
use server_upstream::found::{FoundAddress, FoundService};
use sys::poll::{Poller, Ready};

use crate::io::resolver::Resolver;
use crate::io::system_names::SystemNames;

/// The resolvers of a thread.
pub struct Names {
    known: Vec<Known>,
    system: SystemNames,
    log: ErrorLog,
    next_token: u64,
    /// Answers for the main thread.
    found: VecDeque<(u64, Found)>,
    /// Questions may wait to be sent.
    unsent: bool,
}

/// A resolver, and its name servers.
struct Known {
    by: By,
    resolver: Resolver<Question>,
    /// Number of questions above which questions of ended exchanges are removed.
    purge_at: usize,
}

#[derive(PartialEq)]
enum By {
    Configured(Arc<NameServers>),
    /// The system's servers, by the number of changes.
    System(u64),
}

/// Addresses of a followed host and the end of their validity, or the failure and the time before which a retry is useless,
/// monotonic milliseconds.
pub type Found = Result<(Vec<FoundAddress>, u64), (Failure, u64)>;

/// One name that an exchange or the main thread waits for.
struct Question {
    asker: Asker,
    service: Option<Box<str>>,
    /// Names to query next if there is no such name.
    candidates: VecDeque<String>,
    /// Time limit of one candidate, in milliseconds; 0: only the limit of the whole lookup.
    each_ms: u64,
    /// When the time for all is over, monotonic milliseconds.
    until_ms: u64,
    /// Reason of a failure other than that the name does not exist.
    failure: Option<Failure>,
}

/// The receiver of an answer.
enum Asker {
    Exchange(Lookup, Waker),
    /// The main thread, with its number for the question.
    Main(u64),
}

impl Default for Names {
    fn default() -> Self {
        Self::new(SystemNames::default())
    }
}

impl Names {
    /// No resolver yet.
    pub fn new(system: SystemNames) -> Self {
        Self {
            known: Vec::new(),
            system,
            log: ErrorLog::new(Vec::new()),
            next_token: FIRST_TOKEN,
            found: VecDeque::new(),
            unsent: false,
        }
    }

    /// Sets the log in which later resolvers report unreachable servers.
    pub fn set_log(&mut self, log: ErrorLog) {
        self.log = log;
    }

    /// Asks for the addresses of a name.
    pub fn resolve(
        &mut self,
        now_ms: u64,
        servers: Option<&Arc<NameServers>>,
        name: &str,
        timeout_ms: u64,
        waker: Waker,
    ) -> Lookup {
        let lookup = Lookup::pending();
        if servers.is_none()
            && let Some(resolved) = self.in_hosts_file(now_ms, name)
        {
            lookup.complete(Ok(resolved));
            return lookup;
        }
        let asker = Asker::Exchange(lookup.clone(), waker);
        let question = Question::new(asker, name, until_ms(now_ms, timeout_ms));
        if let Err(error) = self.begin(now_ms, servers, question) {
            lookup.complete(Err(sys::os_error(&error)));
        }
        lookup
    }

    /// Asks for the addresses of a host that the main thread follows, or for those of its service.
    /// [`Names::found`] returns the answer with this number.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn follow(
        &mut self,
        now_ms: u64,
        servers: Option<&Arc<NameServers>>,
        (name, service): (&str, Option<&str>),
        timeout_ms: u64,
        number: u64,
    ) -> std::io::Result<()> {
        if servers.is_none()
            && service.is_none()
            && let Some(resolved) = self.in_hosts_file(now_ms, name)
        {
            let found = found_addresses(resolved.addresses.iter().copied());
            let answer = Ok((found, resolved.valid_until_ms));
            self.found.push_back((number, answer));
            return Ok(());
        }
        let asker = Asker::Main(number);
        let mut question = Question::new(asker, name, until_ms(now_ms, timeout_ms));
        question.service = service.map(Box::from);
        self.begin(now_ms, servers, question)
    }

    /// Returns the next answer for [`Names::follow`], with its number.
    pub fn found(&mut self) -> Option<(u64, Found)> {
        self.found.pop_front()
    }

    /// The addresses of a name in the system's file.
    fn in_hosts_file(&mut self, now_ms: u64, name: &str) -> Option<Resolved> {
        self.system.refresh(now_ms);
        let addresses = self.system.addresses(name)?;
        Some(Resolved {
            addresses: addresses.into(),
            valid_until_ms: now_ms + HOSTS_VALID_MS,
        })
    }

    fn begin(
        &mut self,
        now_ms: u64,
        servers: Option<&Arc<NameServers>>,
        mut question: Question,
    ) -> std::io::Result<()> {
        let by = match servers {
            Some(servers) => By::Configured(Arc::clone(servers)),
            None => {
                self.system.refresh(now_ms);
                let conf = self.system.conf();
                question.each_ms = conf.name_timeout_ms();
                // The names of services are complete.
                if question.service.is_none()
                    && let Some(name) = question.candidates.pop_front()
                {
                    question.candidates = conf.candidates(&name).into();
                }
                By::System(self.system.changes())
            }
        };
        let place = self.place(&by)?;
        self.ask(place, now_ms, question);
        self.deliver(place, now_ms);
        Ok(())
    }

    /// Sends queued questions.
    pub fn transmit(&mut self, poller: &Poller, now_ms: u64) {
        if !std::mem::take(&mut self.unsent) {
            return;
        }
        for place in 0..self.known.len() {
            self.known[place].resolver.transmit(poller, now_ms);
            self.deliver(place, now_ms);
        }
        // A question for the next candidate leaves in the next turn, which begins at once.
    }

    /// A socket of a resolver is ready.
    pub fn ready(&mut self, poller: &Poller, now_ms: u64, ready: Ready) {
        let of_token = |known: &Known| known.resolver.tokens().contains(&ready.token);
        let Some(place) = self.known.iter().position(of_token) else {
            return;
        };
        self.known[place].resolver.ready(poller, now_ms, ready);
        self.deliver(place, now_ms);
    }

    /// When to call [`Names::expire`], monotonic milliseconds; at once if a question is queued.
    pub fn deadline(&self) -> Option<u64> {
        if self.unsent {
            return Some(0);
        }
        let deadlines = self.known.iter().filter_map(|k| k.resolver.deadline());
        deadlines.min()
    }

    /// Handles timeouts of questions that have passed.
    pub fn expire(&mut self, poller: &Poller, now_ms: u64) {
        for place in 0..self.known.len() {
            let resolver = &mut self.known[place].resolver;
            if resolver.deadline().is_some_and(|at_ms| at_ms <= now_ms) {
                resolver.expire(poller, now_ms);
                self.deliver(place, now_ms);
            }
        }
    }

    /// The resolver for these servers.
    fn place(&mut self, by: &By) -> std::io::Result<usize> {
        if let Some(place) = self.known.iter().position(|known| known.by == *by) {
            return Ok(place);
        }
        if self.known.len() >= RESOLVERS_MAX {
            self.known.retain(|known| known.resolver.waiting() > 0);
        }
        let (first, log) = (self.next_token, self.log.clone());
        let (by, resolver) = match by {
            By::Configured(servers) => {
                let resolver = Resolver::new(servers, first, log)?;
                (By::Configured(Arc::clone(servers)), resolver)
            }
            By::System(changes) => {
                let conf = self.system.conf();
                let settings = Settings {
                    servers: conf.servers.len(),
                    ipv6: self.system.has_ipv6(),
                    resend_ms: conf.timeout_ms,
                    rotate: conf.rotate,
                    gives_up: true,
                    ..Settings::default()
                };
                let made = Resolver::with_settings(&conf.servers, settings, first, log)?;
                (By::System(*changes), made)
            }
        };
        self.next_token = resolver.tokens().end;
        self.known.push(Known {
            by,
            resolver,
            purge_at: PURGE_MIN,
        });
        Ok(self.known.len() - 1)
    }

    /// Asks for the next candidate.
    fn ask(&mut self, place: usize, now_ms: u64, mut question: Question) {
        let known = &mut self.known[place];
        if known.resolver.waiting() >= known.purge_at {
            known.resolver.retain(|question| !question.is_abandoned());
            known.purge_at = (known.resolver.waiting() * 2).max(PURGE_MIN);
        }
        let name = question.candidates.pop_front().unwrap_or_default();
        // A limit of 0 means none, so an elapsed time is passed on as the shortest.
        let left_ms = question.until_ms.saturating_sub(now_ms).max(1);
        let timeout_ms = match (question.each_ms, question.until_ms) {
            (0, u64::MAX) => 0,
            (0, _) => left_ms,
            (each_ms, _) => each_ms.min(left_ms),
        };
        let service = question.service.clone();
        let subject = match &service {
            Some(service) => Subject::Service {
                service: service.as_bytes(),
                name: name.as_bytes(),
            },
            None => Subject::Addresses(name.as_bytes()),
        };
        known
            .resolver
            .ask_later(now_ms, subject, timeout_ms, question);
        self.unsent = true;
    }

    /// Takes the answers that a resolver has.
    fn deliver(&mut self, place: usize, now_ms: u64) {
        while let Some((mut question, event)) = self.known[place].resolver.event() {
            if question.is_abandoned() {
                continue;
            }
            let (answer, valid_until_ms) = match event {
                Event::Resolved {
                    answer,
                    valid_until_ms,
                    ..
                } => (Ok(answer), valid_until_ms),
                Event::Failed {
                    why,
                    valid_until_ms,
                    ..
                } => {
                    let failure = question.failure.filter(|_| why == Failure::NotFound);
                    let failure = failure.unwrap_or(why);
                    // A server without an answer for this name may have one for the next.
                    let is_next_tried = matches!(
                        why,
                        Failure::NotFound
                            | Failure::ServerFailure
                            | Failure::Refused
                            | Failure::Unimplemented
                    );
                    if is_next_tried && !question.candidates.is_empty() {
                        question.failure = (failure != Failure::NotFound).then_some(failure);
                        self.ask(place, now_ms, question);
                        continue;
                    }
                    (Err(failure), valid_until_ms)
                }
            };
            match question.asker {
                Asker::Exchange(lookup, waker) => {
                    lookup.complete(resolved(answer, valid_until_ms));
                    waker.wake();
                }
                Asker::Main(number) => {
                    let found = match answer {
                        Ok(answer) => Ok((found(answer), valid_until_ms)),
                        Err(why) => Err((why, valid_until_ms)),
                    };
                    self.found.push_back((number, found));
                }
            }
        }
    }
}

impl Question {
    fn new(asker: Asker, name: &str, until_ms: u64) -> Self {
        Self {
            asker,
            service: None,
            candidates: VecDeque::from([name.to_owned()]),
            each_ms: 0,
            until_ms,
            failure: None,
        }
    }

    fn is_abandoned(&self) -> bool {
        match &self.asker {
            Asker::Exchange(lookup, _) => lookup.is_abandoned(),
            Asker::Main(_) => false,
        }
    }
}

/// The end of a time limit; 0: none.
fn until_ms(now_ms: u64, timeout_ms: u64) -> u64 {
    match timeout_ms {
        0 => u64::MAX,
        timeout_ms => now_ms.saturating_add(timeout_ms),
    }
}

/// The answer for an exchange.
fn resolved(answer: Result<Answer, Failure>, valid_until_ms: u64) -> Result<Resolved, String> {
    match answer {
        Ok(Answer::Addresses(addresses)) => Ok(Resolved {
            addresses: Rc::from(addresses),
            valid_until_ms,
        }),
        // Exchanges ask for addresses alone.
        Ok(_) => Err(format!(
            "{}: {}",
            Failure::NotFound.code(),
            Failure::NotFound
        )),
        Err(failure) => Err(format!("{}: {failure}", failure.code())),
    }
}

/// The answer for the main thread.
fn found(answer: Answer) -> Vec<FoundAddress> {
    match answer {
        Answer::Addresses(addresses) => found_addresses(addresses),
        Answer::Services(services) => services.into_iter().map(found_service).collect(),
        Answer::Name(_) => Vec::new(),
    }
}

fn found_addresses(addresses: impl IntoIterator<Item = IpAddr>) -> Vec<FoundAddress> {
    let found = |ip| FoundAddress { ip, record: None };
    addresses.into_iter().map(found).collect()
}

fn found_service(service: ServiceAddress) -> FoundAddress {
    FoundAddress {
        ip: service.address,
        record: Some(FoundService {
            priority: service.priority,
            port: service.port,
            weight: service.weight,
            target: service.host.to_string().into_bytes().into(),
        }),
    }
}

/// Whether a token is of a resolver's socket.
pub fn is_token(token: u64) -> bool {
    token >> KIND_SHIFT == KIND
}

/// The kind in the tokens of resolvers' sockets, and its position.
const KIND: u64 = 2;
const KIND_SHIFT: u32 = 60;
const FIRST_TOKEN: u64 = KIND << KIND_SHIFT;
/// Number of resolvers above which resolvers without waiters are dropped.
const RESOLVERS_MAX: usize = 64;
/// Number of questions of one resolver above which those without waiters are dropped.
const PURGE_MIN: usize = 64;
/// Validity of answers from `/etc/hosts`, in milliseconds.
const HOSTS_VALID_MS: u64 = 5_000;

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
