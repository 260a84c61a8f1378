//! Requests of an examination: counts them, limits connections, and selects the network path.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::failure::Failure;
use super::figures::ms;
use super::network::{NetworkPath, SampleFilter};
use super::plan::{CONNECTIONS_MAX, Plan};
use crate::client::{Clocks, Protocol, Request, Url};
use crate::fetch::{Acks, Connection, ConnectionRecord, Dial, Response};

/// The requests and connections of an examination, shared by its threads.
#[derive(Debug, Default)]
pub(super) struct Budget {
    /// Requests that were sent.
    sent: AtomicU32,
    /// Connections that are open, and a wake for threads that wait for one to be closed.
    open: Mutex<usize>,
    closed: Condvar,
}

impl Budget {
    /// Requests that were sent.
    pub(super) fn sent(&self) -> u32 {
        self.sent.load(Ordering::Relaxed)
    }

    fn take(&self, requests: u32, most: u32) -> Result<(), Failure> {
        let taken = self
            .sent
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |sent| {
                sent.checked_add(requests).filter(|sum| *sum <= most)
            });
        taken.map(|_| ()).map_err(|_| Failure::BudgetSpent)
    }

    /// Waits until a connection may be opened.
    fn enter(&self) -> Permit<'_> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        while *open >= CONNECTIONS_MAX {
            let woken = self.closed.wait(open);
            open = woken.unwrap_or_else(PoisonError::into_inner);
        }
        *open += 1;
        Permit(self)
    }
}

/// The right to one connection.
#[derive(Debug)]
struct Permit<'a>(&'a Budget);

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self.0.open.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.closed.notify_one();
    }
}

/// An observer of an examination.
pub trait Watch: Sync {
    /// Reports progress: the current step, completed checks, and all checks.
    fn step(&self, what: &str, done: usize, of: usize);

    /// Whether the user interrupted the examination.
    fn is_stopped(&self) -> bool;
}

/// Makes requests to the target on one [`NetworkPath`]; shared by the threads of a task.
pub struct Visitor<'a> {
    pub(super) plan: &'a Plan,
    pub(super) budget: &'a Budget,
    pub(super) watch: &'a dyn Watch,
    pub(super) filter: &'a dyn SampleFilter,
    pub(super) address: SocketAddr,
    pub(super) network_path: NetworkPath,
    /// Whether the network path holds acknowledgements itself.
    pub(super) is_emulated: bool,
}

/// A connection with the right to it.
pub struct Session<'a> {
    connection: Connection,
    dial: Dial,
    visitor: &'a Visitor<'a>,
    _permit: Permit<'a>,
}

impl<'a> Visitor<'a> {
    /// How a connection is made unless a check wants it otherwise: the plan's protocols, TLS as browsers speak it, no session
    /// of an earlier connection.
    #[must_use]
    pub fn dial(&self) -> Dial {
        let acks = match (self.network_path, self.is_emulated) {
            // The link controls acknowledgements, so the kernel's setting has no effect.
            (_, true) => Acks::Kernel,
            (NetworkPath::Direct, false) => Acks::Kernel,
            (NetworkPath::Delayed(None), false) => Acks::Quick,
            (NetworkPath::Delayed(Some(_)), false) => Acks::Delayed,
        };
        let mut dial = Dial::new(&self.plan.url, self.address, self.plan.timeout);
        dial.protocols = self.plan.protocols();
        dial.acks = acks;
        if let Some(tls) = &mut dial.tls {
            tls.trust = self.plan.trust.clone();
        }
        dial
    }

    /// Opens a connection; waits while [`CONNECTIONS_MAX`] are open.
    ///
    /// # Errors
    /// It cannot be opened, or the examination was interrupted.
    pub fn open(&'a self, dial: &Dial) -> Result<Session<'a>, Failure> {
        self.check_stopped()?;
        let permit = self.budget.enter();
        let connection = Connection::open(dial)?;
        Ok(Session {
            connection,
            dial: dial.clone(),
            visitor: self,
            _permit: permit,
        })
    }

    /// Runs a task for each number below `rounds`, up to [`CONNECTIONS_MAX`] at a time. Returns the results in the order of their
    /// numbers, and the first failure. Failed and unstarted rounds have no result. A task must have only one [`Session`] at a time:
    /// tasks with two could wait for each other forever.
    pub fn side_by_side<T: Send>(
        &self,
        rounds: usize,
        task: impl Fn(usize) -> Result<T, Failure> + Sync,
    ) -> (Vec<T>, Option<Failure>) {
        let next = AtomicUsize::new(0);
        let ended = Mutex::new((Vec::new(), None));
        // A thread ends with its first failure, so a dead server is not requested in each round.
        let work = || loop {
            let round = next.fetch_add(1, Ordering::Relaxed);
            if round >= rounds {
                return;
            }
            let result = task(round);
            let (done, failure) = &mut *ended.lock().unwrap_or_else(PoisonError::into_inner);
            match result {
                Ok(value) => done.push((round, value)),
                Err(why) => {
                    failure.get_or_insert(why);
                    return;
                }
            }
        };
        thread::scope(|scope| {
            // A thread inherits the network of the one that starts it.
            for _ in 0..CONNECTIONS_MAX.min(rounds) {
                scope.spawn(work);
            }
        });
        let (mut done, failure) = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_by_key(|(round, _)| *round);
        (done.into_iter().map(|(_, value)| value).collect(), failure)
    }

    /// [`Visitor::side_by_side`] of tasks that all have to succeed.
    ///
    /// # Errors
    /// That of a task.
    pub fn rounds<T: Send>(
        &self,
        rounds: usize,
        task: impl Fn(usize) -> Result<T, Failure> + Sync,
    ) -> Result<Vec<T>, Failure> {
        match self.side_by_side(rounds, task) {
            (_, Some(failure)) => Err(failure),
            (all, None) => Ok(all),
        }
    }

    /// A request as the doctor makes it: GET, without content codings unless `fields` accept some.
    #[must_use]
    pub fn get(&self, url: &Url, fields: &[(&str, &str)]) -> Request {
        request(url, "GET", fields)
    }

    /// Requests left for all checks.
    #[must_use]
    pub fn requests_left(&self) -> u32 {
        self.plan.requests_max.saturating_sub(self.budget.sent())
    }

    /// Whether each of these samples is void, because the network path was late meanwhile. Samples are from beginning to end,
    /// nanoseconds of the monotonic clock.
    #[must_use]
    pub fn are_void(&self, samples: &[(u64, u64)]) -> Vec<bool> {
        let clocks = Clocks::now();
        let samples: Vec<(Instant, Instant)> = samples
            .iter()
            .map(|(from, to)| (clocks.instant(*from), clocks.instant(*to)))
            .collect();
        self.filter.are_void(&samples)
    }

    /// Durations of the times that [`Visitor::are_void`] does not exclude, ms.
    #[must_use]
    pub fn valid_ms(&self, samples: &[(u64, u64)]) -> Vec<f64> {
        let both = samples.iter().zip(self.are_void(samples));
        let valid = both.filter(|(_, is_void)| !is_void);
        valid.map(|((from, to), _)| ms(*from, *to)).collect()
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &'a Plan {
        self.plan
    }

    fn check_stopped(&self) -> Result<(), Failure> {
        match self.watch.is_stopped() {
            true => Err(Failure::Interrupted),
            false => Ok(()),
        }
    }

    fn take(&self, requests: usize) -> Result<(), Failure> {
        self.check_stopped()?;
        let requests = u32::try_from(requests).map_err(|_| Failure::BudgetSpent)?;
        self.budget.take(requests, self.plan.requests_max)
    }
}

impl Session<'_> {
    /// Sends one request and waits for the end of its response.
    ///
    /// # Errors
    /// There is no whole response, no request is left, or the examination was interrupted.
    pub fn exchange(&mut self, request: &Request) -> Result<Response, Failure> {
        self.visitor.take(1)?;
        Ok(self.connection.exchange(request)?)
    }

    /// Sends requests at once if the protocol has streams, else in turn.
    ///
    /// # Errors
    /// Not enough requests are left, or the examination was interrupted.
    pub fn exchange_all(
        &mut self,
        requests: &[Request],
    ) -> Result<Vec<Result<Response, Failure>>, Failure> {
        self.visitor.take(requests.len())?;
        let all = self.connection.exchange_all(requests).into_iter();
        Ok(all.map(|one| one.map_err(Failure::from)).collect())
    }

    /// Lets time pass; returns whether the connection is still open then.
    pub fn watch(&mut self, time: Duration) -> bool {
        self.connection.watch(time)
    }

    /// The protocol that the server chose.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        self.record().protocol.unwrap_or(Protocol::H1)
    }

    /// The connection's record.
    #[must_use]
    pub fn record(&self) -> &ConnectionRecord {
        self.connection.record()
    }

    /// Whether it takes another request.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.connection.is_open()
    }

    /// Opens another connection in place of one that takes no further request.
    ///
    /// # Errors
    /// It cannot be opened, or the examination was interrupted.
    pub fn keep_open(&mut self) -> Result<(), Failure> {
        if !self.is_open() {
            self.visitor.check_stopped()?;
            self.connection = Connection::open(&self.dial)?;
        }
        Ok(())
    }
}

/// A request of the doctor.
#[must_use]
pub(super) fn request(url: &Url, method: &str, fields: &[(&str, &str)]) -> Request {
    let own = [("user-agent", USER_AGENT), ("accept", "*/*")];
    let fields: Vec<(String, String)> = own
        .iter()
        .chain(fields)
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    Request::new(url, method, &url.path, &fields, b"")
}

/// The `User-Agent` of the doctor.
const USER_AGENT: &str = concat!("firstbyte-doctor/", env!("CARGO_PKG_VERSION"));

#[cfg(test)]
pub(super) mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;
    use crate::doctor::network::{Network, Unchanged};

    #[test]
    fn a_budget_ends_at_its_limit() {
        let budget = Budget::default();
        assert_eq!(budget.take(3, 4), Ok(()));
        assert_eq!(budget.take(2, 4), Err(Failure::BudgetSpent));
        assert_eq!(budget.take(1, 4), Ok(()));
        assert_eq!(budget.take(1, 4), Err(Failure::BudgetSpent));
        assert_eq!(budget.sent(), 4);
    }

    struct Unwatched;

    impl Watch for Unwatched {
        fn step(&self, _: &str, _: usize, _: usize) {}

        fn is_stopped(&self) -> bool {
            false
        }
    }

    /// A server that a task sends nothing to.
    const NOBODY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 80);

    /// Runs a task with a visitor to a server.
    pub(in crate::doctor) fn visiting(address: SocketAddr, task: impl FnOnce(&Visitor<'_>) + Send) {
        let plan = Plan::new(Url::parse(&format!("http://{address}/")).expect("a URL"));
        let (budget, mut task) = (Budget::default(), Some(task));
        let ran = Unchanged::default().run(NetworkPath::Direct, &mut |filter| {
            let visitor = Visitor {
                plan: &plan,
                budget: &budget,
                watch: &Unwatched,
                filter,
                address,
                network_path: NetworkPath::Direct,
                is_emulated: false,
            };
            task.take().expect("it is run once")(&visitor);
        });
        ran.expect("the network is there");
    }

    #[test]
    fn rounds_keep_their_order_and_are_as_many_at_a_time_as_connections() {
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        visiting(NOBODY, |visitor| {
            let all = visitor.rounds(50, |n| {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                thread::yield_now();
                now.fetch_sub(1, Ordering::SeqCst);
                Ok(n)
            });
            assert_eq!(all, Ok((0..50).collect()));
            assert_eq!(visitor.rounds(0, Ok), Ok(Vec::new()));
        });
        assert!(most.into_inner() <= CONNECTIONS_MAX);
    }

    #[test]
    fn a_round_that_fails_takes_none_of_the_others_away() {
        visiting(NOBODY, |visitor| {
            let task = |n| match n {
                3 => Err(Failure::BudgetSpent),
                n => Ok(n),
            };
            let (done, failure) = visitor.side_by_side(5, task);
            assert_eq!(
                (done, failure),
                (vec![0, 1, 2, 4], Some(Failure::BudgetSpent))
            );
            assert_eq!(visitor.rounds(5, task), Err(Failure::BudgetSpent));
            // Each thread ends with its own failure.
            let asked = AtomicUsize::new(0);
            let (_, failure) = visitor.side_by_side(50, |_| {
                asked.fetch_add(1, Ordering::Relaxed);
                Err::<(), _>(Failure::other("nobody answers"))
            });
            assert!(failure.is_some() && asked.into_inner() == CONNECTIONS_MAX);
        });
    }

    #[test]
    fn a_fifth_connection_waits_for_the_end_of_another() {
        let budget = Budget::default();
        let mut permits: Vec<Permit<'_>> = (0..CONNECTIONS_MAX).map(|_| budget.enter()).collect();
        thread::scope(|scope| {
            let (sender, receiver) = std::sync::mpsc::channel();
            let budget = &budget;
            scope.spawn(move || {
                let permit = budget.enter();
                sender.send(()).expect("somebody listens");
                drop(permit);
            });
            assert!(receiver.try_recv().is_err());
            permits.pop();
            receiver.recv().expect("it came in");
        });
    }
}
