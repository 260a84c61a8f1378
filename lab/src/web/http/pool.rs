//! Threads that make pages, and the thread that makes events. Results come back through a channel and a waker.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use sys::poll::Waker;

use super::response::{HTML, Request, Response};

/// The response to a request, or the need of a thread for it.
#[derive(Debug)]
pub(in crate::web) enum Route {
    /// The response is at hand.
    Now(Response),
    /// A thread makes the response.
    Thread,
    /// The connection becomes an event stream.
    Stream,
}

/// Makes the response to a request; each thread has its own.
pub(in crate::web) type Worker = Box<dyn FnMut(&Request) -> Response>;
/// Makes the next event; `None`: there is nothing new.
pub(in crate::web) type Events = Box<dyn FnMut() -> Option<String>>;

/// Content of the site.
pub(in crate::web) trait Handler: Send + Sync {
    /// Finds out how a request is answered. It must not wait.
    fn route(&self, request: &Request) -> Route;
    /// Called once by each thread.
    fn worker(&self) -> Worker;
    /// Called once by the thread of events.
    fn events(&self) -> Events;
    /// Time between two events.
    fn period(&self) -> Duration;
}

/// Result of a thread.
pub(super) enum Done {
    /// Response to a request.
    Page(Request, Response),
    /// Text of an event.
    Event(String),
}

/// Threads with their queue. They end with the pool, each after the page that it makes.
pub(super) struct Pool {
    jobs: SyncSender<Request>,
    done: Receiver<Done>,
    /// Number of open event streams. Without any, no event is made.
    pub(super) streams: Arc<AtomicUsize>,
    /// Its end stops the thread of events.
    _events: Sender<()>,
}

impl Pool {
    /// Starts the threads. They wake the poller of `waker`.
    ///
    /// # Errors
    /// If the system has no room for another thread.
    pub(super) fn start(handler: &Arc<dyn Handler>, waker: &Arc<Waker>) -> io::Result<Self> {
        let (jobs, queue) = mpsc::sync_channel(JOBS_MAX);
        let (sender, done) = mpsc::channel();
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..QUERY_THREADS {
            let (handler, queue) = (Arc::clone(handler), Arc::clone(&queue));
            let (sender, waker) = (sender.clone(), Arc::clone(waker));
            let run = move || answer_all(&*handler, &queue, &sender, &waker);
            thread::Builder::new()
                .name("lab-query".to_owned())
                .spawn(run)?;
        }
        let streams = Arc::new(AtomicUsize::new(0));
        let (events, ended) = mpsc::channel();
        let (handler, waker) = (Arc::clone(handler), Arc::clone(waker));
        let count = Arc::clone(&streams);
        let run = move || make_events(&*handler, &ended, &count, &sender, &waker);
        thread::Builder::new()
            .name("lab-events".to_owned())
            .spawn(run)?;
        Ok(Self {
            jobs,
            done,
            streams,
            _events: events,
        })
    }

    /// Queues a request; `false`: the queue is full.
    pub(super) fn offer(&self, request: Request) -> bool {
        self.jobs.try_send(request).is_ok()
    }

    /// Takes a result.
    pub(super) fn take_result(&self) -> Option<Done> {
        self.done.try_recv().ok()
    }
}

fn answer_all(
    handler: &dyn Handler,
    queue: &Mutex<Receiver<Request>>,
    sender: &Sender<Done>,
    waker: &Waker,
) {
    let mut worker = handler.worker();
    loop {
        // The lock is held while a thread waits; the next one waits for the lock.
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(request) = job else { return };
        // A fault in one page must not end the thread. The worker is made anew, since it may be half changed.
        let made = catch_unwind(AssertUnwindSafe(|| worker(&request)));
        let response = made.unwrap_or_else(|_| {
            worker = handler.worker();
            Response::made(500, HTML, FAULT.to_owned())
        });
        if sender.send(Done::Page(request, response)).is_err() {
            return;
        }
        waker.wake();
    }
}

fn make_events(
    handler: &dyn Handler,
    ended: &Receiver<()>,
    streams: &AtomicUsize,
    sender: &Sender<Done>,
    waker: &Waker,
) {
    let mut events = handler.events();
    while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(handler.period()) {
        if streams.load(Ordering::Relaxed) == 0 {
            continue;
        }
        let made = catch_unwind(AssertUnwindSafe(&mut events));
        let event = made.unwrap_or_else(|_| {
            events = handler.events();
            None
        });
        let Some(event) = event else { continue };
        if sender.send(Done::Event(event)).is_err() {
            return;
        }
        waker.wake();
    }
}

/// Threads that make pages. One slow query leaves the others one thread.
const QUERY_THREADS: usize = 2;
/// Requests that wait for a thread.
pub(super) const JOBS_MAX: usize = 64;
const FAULT: &str = "<!doctype html><html lang=en><title>Error</title><h1>This page has a fault</h1>\
    <p>The program failed while it made this page. Please report the address of the page.</p></html>\n";
