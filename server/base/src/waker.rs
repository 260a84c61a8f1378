//! Wakes an exchange that waits for anything but a timer: another exchange, memory, work on another thread.
//!
//! A [`Waker`] names the connection and the stream, never the exchange itself: a wake after its end has no effect. Wakes are
//! queued in the [`WakeQueue`] of the thread, which the driver empties between events and timers. A [`RemoteWaker`] wakes from
//! any thread, through an inbox; its first entry notifies the thread.
//!
//! ```text
//! handler:  x.waker(cx)            given to the code that ends the wait; then State::Waiting(Wait::woken())
//! any code: waker.wake()           at any time, any number of times, from another thread by waker.remote()
//! driver:   queue.take()           keys of connections and streams, whose exchanges are resumed
//! ```
//!
//! A resumed handler checks whether its wait is over, so a spurious wake is harmless.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Names a stream of a connection; only the driver interprets the numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct WakeKey {
    /// The connection, in one of the lives of its slot.
    pub owner: u64,
    /// Its stream; 0 if a connection has one exchange at a time.
    pub stream: u32,
}

/// Wakes an exchange: the driver runs its connection, which resumes it.
#[derive(Clone, Debug)]
pub struct Waker(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    key: Cell<WakeKey>,
    /// It was woken since the exchange was resumed, from this thread.
    woken: Cell<bool>,
    /// The flag by which other threads wake it, once a [`RemoteWaker`] was made.
    woken_remotely: OnceCell<Arc<AtomicBool>>,
    queue: WakeQueue,
}

impl Waker {
    /// A waker for this connection and stream.
    pub fn new(key: WakeKey, queue: &WakeQueue) -> Self {
        Self(Rc::new(Inner {
            key: Cell::new(key),
            woken: Cell::new(false),
            woken_remotely: OnceCell::new(),
            queue: queue.clone(),
        }))
    }

    /// Wakes the exchange.
    pub fn wake(&self) {
        self.0.woken.set(true);
        self.0.queue.push(self.0.key.get());
    }

    /// Whether the exchange was woken since [`Self::take`] was called.
    pub fn is_woken(&self) -> bool {
        let remotely = self.0.woken_remotely.get();
        self.0.woken.get() || remotely.is_some_and(|woken| woken.load(Ordering::Acquire))
    }

    /// Returns whether the exchange was woken, and forgets it.
    pub fn take(&self) -> bool {
        let remotely = self.0.woken_remotely.get();
        let remotely = remotely.is_some_and(|woken| woken.swap(false, Ordering::AcqRel));
        self.0.woken.take() || remotely
    }

    /// Sets the connection and stream, for an exchange that another entry of the loop takes over. Copies of the waker follow;
    /// those for other threads do not.
    pub fn set_key(&self, key: WakeKey) {
        self.0.key.set(key);
    }

    /// A waker of the same exchange for other threads.
    pub fn remote(&self) -> RemoteWaker {
        let woken = self.0.woken_remotely.get_or_init(Arc::default);
        RemoteWaker {
            key: self.0.key.get(),
            woken: Arc::clone(woken),
            inbox: Arc::clone(&self.0.queue.0.inbox),
        }
    }

    /// Whether both wake the same exchange for the same request.
    pub fn is_same(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// Whether no other copy of this waker exists: its exchange has ended.
    pub fn is_orphan(&self) -> bool {
        Rc::strong_count(&self.0) == 1
    }
}

/// A [`Waker`] for other threads.
#[derive(Clone, Debug)]
pub struct RemoteWaker {
    key: WakeKey,
    woken: Arc<AtomicBool>,
    inbox: Arc<Inbox>,
}

impl RemoteWaker {
    /// Wakes the exchange, on its own thread.
    pub fn wake(&self) {
        self.woken.store(true, Ordering::Release);
        self.inbox.push(self.key);
    }

    /// Whether both wake the same exchange for the same request.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.woken, &other.woken)
    }
}

/// The queued wakes of a thread.
#[derive(Clone, Debug, Default)]
pub struct WakeQueue(Rc<Queue>);

#[derive(Default)]
struct Queue {
    woken: RefCell<Vec<WakeKey>>,
    /// Reusable memory for keys.
    spare: Cell<Vec<WakeKey>>,
    inbox: Arc<Inbox>,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue")
            .field("woken", &self.woken)
            .finish_non_exhaustive()
    }
}

impl WakeQueue {
    /// A queue of a thread; `notify` makes the thread read its inbox ([`Self::receive`]).
    pub fn new(notify: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Rc::new(Queue {
            woken: RefCell::default(),
            spare: Cell::default(),
            inbox: Arc::new(Inbox {
                woken: Mutex::default(),
                notify: Notify(Some(Box::new(notify))),
            }),
        }))
    }

    /// Returns whether the queue is empty; wakes of other threads count after [`WakeQueue::receive`].
    pub fn is_empty(&self) -> bool {
        self.0.woken.borrow().is_empty()
    }

    /// Adds a key.
    pub fn push(&self, key: WakeKey) {
        push(&mut self.0.woken.borrow_mut(), key);
    }

    /// Adds the wakes of other threads.
    pub fn receive(&self) {
        let woken = std::mem::take(&mut *self.0.inbox.lock());
        self.0.woken.borrow_mut().extend(woken);
    }

    /// Takes all keys, each once, grouped by connection.
    pub fn take(&self) -> Vec<WakeKey> {
        let mut keys = self.0.woken.replace(self.0.spare.take());
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Reuses the memory of taken keys.
    pub fn recycle(&self, mut keys: Vec<WakeKey>) {
        keys.clear();
        keys.shrink_to(SPARE_KEYS);
        self.0.spare.set(keys);
    }
}

/// Keys for which memory is kept.
const SPARE_KEYS: usize = 4096;

/// Wakes that other threads have sent to a thread.
#[derive(Debug, Default)]
struct Inbox {
    woken: Mutex<Vec<WakeKey>>,
    notify: Notify,
}

#[derive(Default)]
struct Notify(Option<Box<dyn Fn() + Send + Sync>>);

impl std::fmt::Debug for Notify {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Notify")
    }
}

impl Inbox {
    fn push(&self, key: WakeKey) {
        let mut woken = self.lock();
        let first = woken.is_empty();
        push(&mut woken, key);
        drop(woken);
        // The thread takes all wakes at once, so only the first one notifies.
        if let Some(notify) = self.notify.0.as_ref().filter(|_| first) {
            notify();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<WakeKey>> {
        // No operation under the lock can leave a partial change.
        self.woken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds a key; repeated wakes of one stream add it once.
fn push(keys: &mut Vec<WakeKey>, key: WakeKey) {
    if keys.last() != Some(&key) {
        keys.push(key);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    const KEY: WakeKey = WakeKey {
        owner: 7,
        stream: 3,
    };

    #[test]
    fn a_wake_is_queued_and_seen_until_it_is_taken() {
        let queue = WakeQueue::default();
        let waker = Waker::new(KEY, &queue);
        assert!(!waker.is_woken() && queue.is_empty() && queue.take().is_empty());
        waker.wake();
        assert!(waker.is_woken() && !queue.is_empty());
        assert_eq!(queue.take(), [KEY]);
        assert!(waker.is_woken(), "the exchange has not been resumed");
        waker.wake();
        assert_eq!(queue.take(), [KEY], "it is queued again, if woken already");
        assert!(waker.take() && !waker.take() && !waker.is_woken());
    }

    #[test]
    fn each_stream_is_queued_once_beside_those_of_its_connection() {
        let queue = WakeQueue::default();
        let key = |owner, stream| WakeKey { owner, stream };
        for (owner, stream) in [(2, 1), (1, 5), (2, 1), (2, 3), (1, 5), (1, 5)] {
            Waker::new(key(owner, stream), &queue).wake();
        }
        assert_eq!(queue.take(), [key(1, 5), key(2, 1), key(2, 3)]);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_wake_by_a_waker_whose_exchange_is_gone_is_a_key_and_no_more() {
        let queue = WakeQueue::default();
        let kept = Waker::new(KEY, &queue);
        let other = kept.clone();
        assert!(kept.is_same(&other) && !kept.is_orphan());
        assert!(!kept.is_same(&Waker::new(KEY, &queue)));
        drop(other);
        assert!(kept.is_orphan());
        kept.wake();
        drop(kept);
        assert_eq!(queue.take(), [KEY]);
    }

    #[test]
    fn another_thread_wakes_through_the_inbox_and_notifies_once_until_it_is_received() {
        let told = Arc::new(AtomicU32::new(0));
        let notified = Arc::clone(&told);
        let queue = WakeQueue::new(move || {
            notified.fetch_add(1, Ordering::Relaxed);
        });
        let waker = Waker::new(KEY, &queue);
        let remote = waker.remote();
        assert!(remote.is_same(&waker.remote()) && !waker.is_woken());
        let other = Waker::new(WakeKey::default(), &queue);
        let others = other.remote();
        assert!(!remote.is_same(&others));
        std::thread::spawn(move || {
            remote.wake();
            others.wake();
            remote.wake();
        })
        .join()
        .expect("it does not panic");
        assert_eq!(told.load(Ordering::Relaxed), 1);
        assert!(waker.is_woken() && queue.is_empty(), "nobody has looked");
        queue.receive();
        assert_eq!(queue.take(), [WakeKey::default(), KEY]);
        assert!(waker.take() && !waker.take());
        waker.remote().wake();
        assert_eq!(told.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_remote_waker_outlives_its_thread() {
        let remote = std::thread::spawn(|| Waker::new(KEY, &WakeQueue::new(|| {})).remote());
        remote.join().expect("it does not panic").wake();
    }
}
