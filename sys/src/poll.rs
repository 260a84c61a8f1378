//! Readiness: one epoll instance per thread, and an eventfd to wake it from another thread.
//!
//! A connection is registered once, edge-triggered for both directions, so that no turn costs an `epoll_ctl`.
//! Listeners are level-triggered and exclusive, so that one arriving connection wakes one thread. Absent: one-shot
//! registrations and timers (see `io::timer`). Source: epoll(7).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec};
use rustix::io::Errno;

use super::retry;

/// An epoll instance.
#[derive(Debug)]
pub struct Poller {
    epoll: OwnedFd,
}

/// Events that a registration is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// Both directions and the peer's end, edge-triggered: for connections, registered once.
    Connection,
    /// Readable, level-triggered: for control sockets, wakers, signals.
    Readable,
    /// Room to write, level-triggered.
    Writable,
}

/// One ready descriptor, identified by the token of its registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// The token given at registration.
    pub token: u64,
    /// Bytes, a connection or the end of the stream can be read.
    pub readable: bool,
    /// There is room to write.
    pub writable: bool,
    /// The peer closed its side, or the socket failed (RDHUP, HUP, ERR).
    pub closed: bool,
    /// The peer closed its side, and the socket is whole: the readable bytes end with the stream's end (RDHUP
    /// alone).
    pub eof: bool,
}

/// The buffer `Poller::wait` fills, reused over turns.
pub struct Events {
    list: Vec<epoll::Event>,
}

/// Wakes a poller from another thread.
#[derive(Debug)]
pub struct Waker {
    eventfd: OwnedFd,
}

impl Poller {
    /// Makes an instance that is closed on exec.
    ///
    /// # Errors
    /// The descriptor or kernel memory limits are reached.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self { epoll })
    }

    /// Registers `fd` under `token`.
    ///
    /// # Errors
    /// `fd` is registered already, cannot be polled, or the watch limit is reached.
    pub fn add(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(
            &self.epoll,
            fd,
            EventData::new_u64(token),
            interest.flags(),
        )?)
    }

    /// Registers a listener so that a connection wakes one of the waiting threads.
    ///
    /// # Errors
    /// As `add`.
    pub fn add_exclusive(&self, listener: impl AsFd, token: u64) -> io::Result<()> {
        let flags = EventFlags::IN | EventFlags::EXCLUSIVE;
        Ok(epoll::add(
            &self.epoll,
            listener,
            EventData::new_u64(token),
            flags,
        )?)
    }

    /// Changes token and interest; with an edge-triggered interest, current readiness is reported again. An
    /// exclusive registration cannot be changed.
    ///
    /// # Errors
    /// `fd` is not registered.
    pub fn modify(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(
            &self.epoll,
            fd,
            EventData::new_u64(token),
            interest.flags(),
        )?)
    }

    /// Drops the registration; closing the last descriptor of a socket does the same.
    ///
    /// # Errors
    /// `fd` is not registered.
    pub fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, fd)?)
    }

    /// Waits for readiness or until `timeout_ms` passed (`None`: for ever), and fills `events`. A signal ends the
    /// wait early with no event.
    ///
    /// # Errors
    /// Only a broken instance fails.
    pub fn wait(&self, events: &mut Events, timeout_ms: Option<u64>) -> io::Result<()> {
        events.list.clear();
        let timeout = timeout_ms.map(|ms| {
            let ms = ms.min(TIMEOUT_MS_MAX);
            Timespec {
                tv_sec: i64::try_from(ms / 1000).unwrap_or(i64::MAX),
                tv_nsec: i64::try_from(ms % 1000).unwrap_or(0) * 1_000_000,
            }
        });
        let room = rustix::buffer::spare_capacity(&mut events.list);
        match epoll::wait(&self.epoll, room, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Poller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

impl Interest {
    fn flags(self) -> EventFlags {
        match self {
            Self::Connection => {
                EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET
            }
            Self::Readable => EventFlags::IN,
            Self::Writable => EventFlags::OUT,
        }
    }
}

impl Events {
    /// Makes room for `capacity` events per wait; at least one.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            list: Vec::with_capacity(capacity.max(1)),
        }
    }

    /// Events of the last wait, in the kernel's order.
    pub fn iter(&self) -> impl Iterator<Item = Ready> + '_ {
        self.list.iter().map(|event| ready(*event))
    }

    /// The number of events the last wait found.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// The last wait found nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The event at `index`, for loops that change the poller while they iterate over the list.
    ///
    /// # Panics
    /// `index` is not below `len()`.
    #[must_use]
    pub fn at(&self, index: usize) -> Ready {
        ready(self.list[index])
    }
}

impl Waker {
    /// Makes a waker; register it with `Interest::Readable`.
    ///
    /// # Errors
    /// The descriptor limit is reached.
    pub fn new() -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Self {
            eventfd: rustix::event::eventfd(0, flags)?,
        })
    }

    /// Makes the waker readable until it is drained; wakes before that count as one.
    pub fn wake(&self) {
        // The counter is full only after 2^64 - 2 wakes without a drain, and then it is readable.
        let _ = retry(|| rustix::io::write(&self.eventfd, &1u64.to_ne_bytes()));
    }

    /// Takes all wakes so far.
    pub fn drain(&self) {
        let mut counter = [0; 8];
        // Nothing to read means nothing to drain.
        let _ = retry(|| rustix::io::read(&self.eventfd, &mut counter));
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.eventfd.as_fd()
    }
}

fn ready(event: epoll::Event) -> Ready {
    let flags = event.flags;
    let failed = flags.intersects(EventFlags::HUP | EventFlags::ERR);
    Ready {
        token: event.data.u64(),
        readable: failed || flags.intersects(EventFlags::IN | EventFlags::RDHUP),
        writable: failed || flags.contains(EventFlags::OUT),
        closed: failed || flags.contains(EventFlags::RDHUP),
        eof: !failed && flags.contains(EventFlags::RDHUP),
    }
}

/// Longer waits are cut to this, the limit of epoll_wait's milliseconds.
const TIMEOUT_MS_MAX: u64 = i32::MAX as u64;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn connection_is_reported_once_until_it_changes() {
        let (mut peer, ours) = UnixStream::pair().expect("a socket pair");
        ours.set_nonblocking(true).expect("non-blocking");
        let poller = Poller::new().expect("epoll");
        let mut events = Events::with_capacity(8);
        poller.add(&ours, 7, Interest::Connection).expect("add");
        poller.wait(&mut events, Some(0)).expect("wait");
        assert_eq!(events.len(), 1);
        let first = events.at(0);
        assert!(first.writable && !first.readable && first.token == 7);
        poller.wait(&mut events, Some(0)).expect("wait");
        assert!(events.is_empty(), "edges are told once");
        peer.write_all(b"x").expect("write");
        poller.wait(&mut events, Some(1000)).expect("wait");
        assert!(events.at(0).readable && !events.at(0).closed);
        drop(peer);
        poller.wait(&mut events, Some(1000)).expect("wait");
        assert!(events.at(0).closed && events.at(0).readable);
        let mut left = Vec::new();
        (&ours).read_to_end(&mut left).expect("read");
        assert_eq!(left, b"x");
    }

    #[test]
    fn waker_wakes_until_drained() {
        let waker = Waker::new().expect("eventfd");
        let poller = Poller::new().expect("epoll");
        let mut events = Events::with_capacity(1);
        poller.add(&waker, 1, Interest::Readable).expect("add");
        waker.wake();
        waker.wake();
        poller.wait(&mut events, None).expect("wait");
        assert_eq!(events.iter().next().map(|ready| ready.token), Some(1));
        waker.drain();
        poller.wait(&mut events, Some(0)).expect("wait");
        assert!(events.is_empty());
        waker.drain();
    }

    #[test]
    fn listener_stays_ready_while_connections_wait() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bind");
        let poller = Poller::new().expect("epoll");
        let mut events = Events::with_capacity(4);
        poller.add_exclusive(&listener, 3).expect("add");
        let address = listener.local_addr().expect("address");
        let _client = std::net::TcpStream::connect(address).expect("connect");
        for _ in 0..2 {
            poller.wait(&mut events, Some(1000)).expect("wait");
            assert!(events.at(0).readable, "level-triggered");
        }
        poller.remove(&listener).expect("remove");
        poller.wait(&mut events, Some(0)).expect("wait");
        assert!(events.is_empty());
    }
}
