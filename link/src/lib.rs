//! A link between a client and a server on one machine, with an exact delay and a record of its lateness.
//!
//! Two TUN devices join two networks. A thread (`forward`) takes each IP packet from one device and writes it to the
//! other one after the one-way delay. Jitter, loss, a rate and a queue are optional ([`Spec`], [`Options`]). It may
//! hold acknowledgements as receivers do ([`Options::client_ack_hold`]), so that a sender's wait for one becomes
//! visible. It records its own lateness ([`Link::lateness`], [`Link::worst_between`]): on a busy machine a sample is
//! valid only if the link was on time for it, and [`Link::is_void`] counts invalid ones. [`via`] runs commands at its
//! ends.
//!
//! Bytes enter and leave by programs inside: [`Link::in_client`], [`Link::in_server`], [`Link::spawn_server`].
//! Namespaces and devices have no names outside and are held by descriptors alone: they end with the link, or with its
//! process if it is killed. `docs/link.md` describes its use and its limits.
//!
//! Deliberately absent: IPv6, and links without CAP_SYS_ADMIN and CAP_NET_ADMIN, for which [`Link::new`] returns the
//! reason; [`via`] gets these rights from a user namespace if the machine permits it. Sources: tuntap.rst of the
//! kernel, network_namespaces(7), RFC 1122 section 4.2.3.2, RFC 5681 section 4.2.

#![forbid(unsafe_code)]

mod ack_delay;
mod cpu_latency;
mod forward;
mod options;
mod packet_rng;
mod pcap;
mod pipe;
mod quantity;
mod record;
mod segment;
mod setup;
mod spec;
mod tuning;
pub mod via;

use std::io;
use std::net::Ipv4Addr;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use sys::namespace::Network;
use sys::schedule;

pub use options::{LOCALHOST_PORTS, Options};
pub use quantity::{Loss, Rate};
pub use record::{
    Counters, DirectionCounters, LATE_THRESHOLD, Lateness, Trace, TraceEntry, is_conclusive,
};
pub use segment::{Direction, Flags, Flow, Segment, Verdict};
pub use spec::{Spec, SpecError};
pub use tuning::RouteOptions;

/// Two networks, the delay between them, and the thread that makes it.
#[derive(Debug)]
pub struct Link {
    client: Network,
    server: Network,
    addresses: setup::Addresses,
    far_name: String,
    options: Options,
    forwarder: forward::Forwarder,
    judged: AtomicU64,
    void: AtomicU64,
}

impl Link {
    /// Makes a namespace for each end, and starts to forward.
    ///
    /// # Errors
    /// `Unsupported`, with the reason, if a link is not possible: not root, no /dev/net/tun, no `ip` command; see
    /// [`available`]. Other errors are failures.
    pub fn new(options: Options) -> io::Result<Self> {
        options.check()?;
        Self::between(setup::Ends::apart(&options)?, options)
    }

    /// Makes a namespace for the client alone; the server's end is the network that the calling thread is in, and
    /// all that listens there is reached by its addresses and by [`Link::server_address`].
    ///
    /// # Errors
    /// As those of [`Link::new`].
    pub fn to_here(options: Options) -> io::Result<Self> {
        options.check()?;
        Self::between(setup::Ends::here(&options)?, options)
    }

    fn between(ends: setup::Ends, options: Options) -> io::Result<Self> {
        let [near, far] = ends.devices;
        let forwarder = forward::Forwarder::start(near, far, &options)?;
        Ok(Self {
            client: ends.client,
            server: ends.server,
            addresses: ends.addresses,
            far_name: ends.far_name,
            options,
            forwarder,
            judged: AtomicU64::new(0),
            void: AtomicU64::new(0),
        })
    }

    /// Options of the link.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Twice the one-way delay.
    #[must_use]
    pub fn round_trip(&self) -> Duration {
        self.options.one_way * 2
    }

    /// The server's address, as clients see it; all of its ports are free.
    #[must_use]
    pub fn server_address(&self) -> Ipv4Addr {
        self.addresses.server
    }

    /// The client's address.
    #[must_use]
    pub fn client_address(&self) -> Ipv4Addr {
        self.addresses.client
    }

    /// The name of the TUN device in the client's network.
    #[must_use]
    pub fn client_device(&self) -> &'static str {
        setup::DEVICE
    }

    /// The client's network, for threads that are to stay there.
    #[must_use]
    pub fn client(&self) -> &Network {
        &self.client
    }

    /// The server's network.
    #[must_use]
    pub fn server(&self) -> &Network {
        &self.server
    }

    /// Runs `task` on a thread in the client's namespace, as a measuring instrument: in real time if permitted, so that
    /// other load does not delay its clock readings. Its connections use the link.
    ///
    /// # Panics
    /// If `task` does.
    pub fn in_client<T: Send>(&self, task: impl FnOnce() -> T + Send) -> T {
        inside(&self.client, || {
            // Refused in some containers; measurements are noisier then.
            let _ = schedule::set_realtime_thread(ENDS_PRIORITY, false);
            task()
        })
    }

    /// Runs `task` on a thread in the server's namespace. The client reaches sockets bound by it over the link.
    /// Processes spawned by it stay there, and [`Options::realtime_server`] decides on their scheduling.
    ///
    /// # Panics
    /// If `task` does.
    pub fn in_server<T: Send>(&self, task: impl FnOnce() -> T + Send) -> T {
        inside(&self.server, || {
            if self.options.realtime_server {
                // Refused in some containers, as for the client.
                let _ = schedule::set_realtime_thread(ENDS_PRIORITY, true);
            }
            task()
        })
    }

    /// Starts a process in the server's namespace; ending it is the caller's, before the link is dropped.
    ///
    /// # Errors
    /// As those of [`Command::spawn`].
    pub fn spawn_server(&self, command: &mut Command) -> io::Result<Child> {
        self.in_server(|| command.spawn())
    }

    /// Drops the next segments with data that go in a direction.
    pub fn drop_next(&self, direction: Direction, segments: u32) {
        self.forwarder.drop_next(direction, segments);
    }

    /// Returns the counts of packets by outcome, so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.forwarder.record().counters()
    }

    /// Checks that the file of packets has not ended early.
    ///
    /// # Errors
    /// A sentence with the file's name and the system's error.
    pub fn captured(&self) -> Result<(), String> {
        match self.forwarder.capture_failure() {
            Some(why) => Err(why.to_owned()),
            None => Ok(()),
        }
    }

    /// Returns the number of packets dropped by the kernel so far, since the ends sent faster than the link could read.
    ///
    /// # Errors
    /// /proc is not mounted, or a device was removed.
    pub fn unread(&self) -> io::Result<u64> {
        let near = inside(&self.client, || setup::unread(setup::DEVICE))?;
        let far = inside(&self.server, || setup::unread(&self.far_name))?;
        Ok(near + far)
    }

    /// Returns the lateness of delivered packets, so far.
    #[must_use]
    pub fn lateness(&self) -> Lateness {
        self.forwarder.record().lateness()
    }

    /// The latest that a packet was which left the link between two moments; a sample of that time is worth
    /// nothing when this is more than it may err.
    #[must_use]
    pub fn worst_between(&self, from: Instant, to: Instant) -> Duration {
        self.forwarder.record().worst_between(from, to)
    }

    /// Whether a sample of that time is worth nothing, because the link delivered a packet meanwhile later than
    /// `limit`; how many there were is [`Link::samples`].
    #[must_use]
    pub fn is_void(&self, from: Instant, to: Instant, limit: Duration) -> bool {
        self.are_void(&[(from, to)], limit) == [true]
    }

    /// [`Link::is_void`] of many samples at once, each a pair of moments. A sample may be judged as soon as its last
    /// packet was read.
    #[must_use]
    pub fn are_void(&self, samples: &[(Instant, Instant)], limit: Duration) -> Vec<bool> {
        let Some(first) = samples.iter().map(|(from, _)| *from).min() else {
            return Vec::new();
        };
        let late = self.forwarder.record().later_than(limit, first);
        let judged = samples
            .iter()
            .map(|(from, to)| late.any_between(*from, *to));
        let judged: Vec<bool> = judged.collect();
        let void = judged.iter().filter(|void| **void).count();
        self.judged
            .fetch_add(judged.len() as u64, Ordering::Relaxed);
        self.void.fetch_add(void as u64, Ordering::Relaxed);
        judged
    }

    /// Returns the number of samples judged, and of void ones among them.
    #[must_use]
    pub fn samples(&self) -> (u64, u64) {
        let judged = self.judged.load(Ordering::Relaxed);
        (judged, self.void.load(Ordering::Relaxed))
    }

    /// Takes the packets traced since the last call, or since the link was made; empty without [`Options::trace`].
    #[must_use]
    pub fn take_trace(&self) -> Trace {
        self.forwarder.record().take_trace()
    }

    /// The numbers of both namespaces, as /proc shows them: the client's and the server's.
    ///
    /// # Errors
    /// None is known.
    pub fn namespaces(&self) -> io::Result<[u64; 2]> {
        Ok([self.client.id()?, self.server.id()?])
    }
}

fn inside<T: Send>(network: &Network, task: impl FnOnce() -> T + Send) -> T {
    let ran = thread::scope(|scope| {
        let thread = scope.spawn(|| {
            network
                .enter()
                .expect("whoever made a namespace may enter it");
            task()
        });
        thread.join()
    });
    ran.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Real-time priorities: the link runs before its ends, the ends before all else.
const FORWARDER_PRIORITY: i32 = 2;
const ENDS_PRIORITY: i32 = 1;
