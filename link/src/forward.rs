//! The thread that forwards packets: from one device, through the policy and the delay, into the other.
//!
//! It waits in poll until shortly before the next packet is due and then reads the clock in a loop, because a timer is
//! late by a wake-up. It runs in real time if permitted. Packets enter by `Run::read`, leave by `Run::deliver`.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use sys::schedule;

use crate::FORWARDER_PRIORITY;
use crate::ack_delay::{AckDelay, Released};
use crate::cpu_latency::CpuLatencyGuard;
use crate::options::{MTU_MAX, Options};
use crate::pcap::{Capture, Failure};
use crate::pipe::{Moving, Pipe};
use crate::record::Record;
use crate::segment::{Direction, Segment, Verdict};

/// The forwarding thread, from outside.
#[derive(Debug)]
pub(crate) struct Forwarder {
    record: Arc<Mutex<Record>>,
    losses: Arc<Losses>,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
    capture_failure: Failure,
    _awake: Option<CpuLatencyGuard>,
}

impl Forwarder {
    /// Starts between the client's device and the server's.
    pub(crate) fn start(near: OwnedFd, far: OwnedFd, options: &Options) -> io::Result<Self> {
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let awake = CpuLatencyGuard::keep();
        let waits_known = RunDelay::of_this_thread().is_some();
        let capture = options.pcap.as_deref().map(Capture::create).transpose()?;
        let capture_failure = capture.as_ref().map(Capture::failure).unwrap_or_default();
        let record = Arc::new(Mutex::new(Record::new(
            options.trace,
            waits_known,
            awake.is_some(),
        )));
        let losses = Arc::new(Losses::default());
        let way = |direction, ack_delay: Option<Duration>| DirectionState {
            direction,
            ack_delay: ack_delay.map(AckDelay::new),
            pipe: Pipe::new(direction, options),
        };
        let run = Run {
            devices: [near, far],
            ways: [
                way(Direction::ToServer, options.client_ack_hold),
                way(Direction::ToClient, options.server_ack_hold),
            ],
            record: Arc::clone(&record),
            losses: Arc::clone(&losses),
            stop: Arc::clone(&stop),
            outcomes: Vec::new(),
            capture,
            trace: options.trace,
            spin: Spin {
                saved: SPIN_SAVED_MAX,
                looked: Instant::now(),
                spinning: false,
            },
        };
        let thread = thread::Builder::new()
            .name("link".into())
            .spawn(move || run.run())?;
        Ok(Self {
            record,
            losses,
            stop,
            thread: Some(thread),
            capture_failure,
            _awake: awake,
        })
    }

    /// Drops the next segments with data of a direction.
    pub(crate) fn drop_next(&self, direction: Direction, segments: u32) {
        self.losses
            .of(direction)
            .fetch_add(segments, Ordering::Relaxed);
    }

    /// Returns the reason why the file of packets ended early, if it did.
    pub(crate) fn capture_failure(&self) -> Option<&str> {
        self.capture_failure.get().map(String::as_str)
    }

    /// Returns the record so far.
    pub(crate) fn record(&self) -> MutexGuard<'_, Record> {
        locked(&self.record)
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        // A counter of events takes a one whenever it is not full of them.
        let _ = rustix::io::write(self.stop.as_fd(), &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // A panic was reported by its thread; a second one here would end the process.
            let _ = thread.join();
        }
    }
}

/// Locks the record, even after a panic: it consists of counts, and each is whole.
fn locked(record: &Mutex<Record>) -> MutexGuard<'_, Record> {
    record.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Number of segments with data still to be dropped: those to the server, those to the client.
#[derive(Debug, Default)]
struct Losses([AtomicU32; 2]);

impl Losses {
    fn of(&self, direction: Direction) -> &AtomicU32 {
        match direction {
            Direction::ToServer => &self.0[0],
            Direction::ToClient => &self.0[1],
        }
    }

    /// Whether this packet must be dropped.
    fn take(&self, direction: Direction, packet: &[u8]) -> bool {
        let left = self.of(direction);
        if left.load(Ordering::Relaxed) == 0
            || Segment::parse(packet).is_none_or(|segment| segment.payload_bytes == 0)
        {
            return false;
        }
        let fewer = |left: u32| left.checked_sub(1);
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer)
            .is_ok()
    }
}

/// One direction.
#[derive(Debug)]
struct DirectionState {
    direction: Direction,
    ack_delay: Option<AckDelay>,
    pipe: Pipe,
}

/// State of the forwarding thread. A direction and the device that it reads from have the same index.
#[derive(Debug)]
struct Run {
    devices: [OwnedFd; 2],
    ways: [DirectionState; 2],
    record: Arc<Mutex<Record>>,
    losses: Arc<Losses>,
    stop: Arc<OwnedFd>,
    /// Outcomes of packets in this turn.
    outcomes: Vec<(Direction, Verdict, Moving, Instant)>,
    capture: Option<Capture>,
    trace: bool,
    spin: Spin,
}

impl Run {
    fn run(mut self) {
        // Refused in some containers; the record then shows later packets.
        let _ = schedule::set_realtime_thread(FORWARDER_PRIORITY, false);
        let mut waits = RunDelay::of_this_thread();
        let mut buffer = vec![0; usize::from(MTU_MAX)];
        let mut unread = Duration::ZERO;
        let record = Arc::clone(&self.record);
        loop {
            let mut busy = false;
            let mut ignored = 0;
            for index in 0..2 {
                busy |= self.read(index, &mut buffer, unread, &mut ignored);
                self.expire(index);
            }
            // The lock is held from before an end can see a packet until its lateness is recorded. So a judge of a
            // sample knows all its packets. Packets that come while this thread waits for the lock have waited as well.
            let asked = Instant::now();
            let record = locked(&record);
            unread = asked.elapsed();
            for index in 0..2 {
                self.deliver(index);
            }
            self.record_outcomes(record, ignored);
            if busy {
                continue;
            }
            match self.wait() {
                Woken::Early => {}
                Woken::Slept => {
                    unread += waits.as_mut().map(RunDelay::since_last).unwrap_or_default()
                }
                Woken::Stopped => return,
            }
        }
    }

    /// Reads packets of a device; returns true if there may be more.
    fn read(
        &mut self,
        index: usize,
        buffer: &mut [u8],
        unread: Duration,
        ignored: &mut u64,
    ) -> bool {
        for _ in 0..READS_PER_TURN {
            match rustix::io::read(&self.devices[index], &mut *buffer) {
                Ok(length) => {
                    let packet = &buffer[..length];
                    if packet.first().is_none_or(|first| first >> 4 != 4) {
                        *ignored += 1;
                    } else {
                        self.take(index, packet.to_vec(), unread);
                    }
                }
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
        true
    }

    /// Takes a packet in: past the policy, into the delay.
    fn take(&mut self, index: usize, packet: Vec<u8>, unread: Duration) {
        let came = Instant::now();
        let direction = self.ways[index].direction;
        if self.losses.take(direction, &packet) {
            let lost = Moving {
                segment: Segment::parse(&packet).filter(|_| self.trace),
                packet,
                came,
                due: came,
                unread,
            };
            self.outcomes.push((direction, Verdict::Lost, lost, came));
            return;
        }
        let passes = Released {
            packet,
            at: came,
            came,
            is_forwarded: true,
        };
        if self.ways.iter().all(|way| way.ack_delay.is_none()) {
            self.enter(index, passes, unread);
            return;
        }
        let Some(segment) = Segment::parse(&passes.packet) else {
            self.enter(index, passes, unread);
            return;
        };
        if let Some(ack_delay) = &mut self.ways[1 - index].ack_delay {
            ack_delay.observe(&segment);
        }
        let Some(ack_delay) = &mut self.ways[index].ack_delay else {
            self.enter(index, passes, unread);
            return;
        };
        let mut out = Vec::new();
        ack_delay.offer(&segment, passes.packet, came, &mut out);
        for released in out {
            self.enter(index, released, unread);
        }
    }

    /// Forwards acknowledgements that the policy has held for their time.
    fn expire(&mut self, index: usize) {
        let Some(ack_delay) = &mut self.ways[index].ack_delay else {
            return;
        };
        let now = Instant::now();
        if ack_delay.next().is_some_and(|next| next <= now) {
            let mut out = Vec::new();
            ack_delay.expire(now, &mut out);
            for released in out {
                self.enter(index, released, Duration::ZERO);
            }
        }
    }

    fn enter(&mut self, index: usize, released: Released, unread: Duration) {
        let way = &mut self.ways[index];
        let at = released.at;
        let segment = self.trace.then(|| Segment::parse(&released.packet));
        let moving = Moving {
            segment: segment.flatten(),
            packet: released.packet,
            came: released.came,
            due: at,
            unread,
        };
        let ended = if released.is_forwarded {
            way.pipe.push(moving)
        } else {
            Err((moving, Verdict::Superseded))
        };
        if let Err((moving, verdict)) = ended {
            self.outcomes.push((way.direction, verdict, moving, at));
        }
    }

    /// Writes due packets to the other device.
    fn deliver(&mut self, index: usize) {
        loop {
            let now = Instant::now();
            let Some(moving) = self.ways[index].pipe.pop(now) else {
                return;
            };
            let written = rustix::io::retry_on_intr(|| {
                rustix::io::write(&self.devices[1 - index], &moving.packet)
            });
            let verdict = match written {
                Ok(_) => Verdict::Delivered,
                Err(_) => Verdict::Refused,
            };
            let direction = self.ways[index].direction;
            self.outcomes.push((direction, verdict, moving, now));
        }
    }

    /// Records the outcomes of packets, and releases the record.
    fn record_outcomes(&mut self, mut record: MutexGuard<'_, Record>, ignored: u64) {
        if self.outcomes.is_empty() && ignored == 0 {
            return;
        }
        for (direction, verdict, moving, at) in &self.outcomes {
            record.add(*direction, *verdict, moving, *at);
        }
        let uncaptured = self.capture.as_ref().map_or(0, |capture| capture.left_out);
        record.add_others(ignored, uncaptured);
        drop(record);
        let outcomes = self.outcomes.drain(..);
        if let Some(capture) = &mut self.capture {
            let delivered = outcomes.filter(|(_, verdict, ..)| *verdict == Verdict::Delivered);
            delivered.for_each(|(.., moving, at)| capture.packet(at, moving.packet));
        }
    }

    /// Sleeps until a packet comes or one is nearly due.
    fn wait(&mut self) -> Woken {
        let holds = self
            .ways
            .iter()
            .filter_map(|way| way.ack_delay.as_ref()?.next());
        let dues = self.ways.iter().filter_map(|way| way.pipe.next());
        let now = Instant::now();
        let limit = match holds.chain(dues).min() {
            None => {
                self.spin.sleeps(now);
                None
            }
            Some(due) => match self.spin.sleep(now, due.saturating_duration_since(now)) {
                None => return Woken::Early,
                Some(sleep) => Timespec::try_from(sleep).ok(),
            },
        };
        let [near, far] = &self.devices;
        let mut ready = [
            PollFd::new(near, PollFlags::IN),
            PollFd::new(far, PollFlags::IN),
            PollFd::new(&self.stop, PollFlags::IN),
        ];
        // An interruption does not matter: reads find ready packets, and the next wait finds the stop.
        let _ = poll(&mut ready, limit.as_ref());
        // A removed device would be ready forever.
        let removed = |device: &PollFd<'_>| device.revents().contains(PollFlags::ERR);
        if ready[2].revents().is_empty() && !ready[..2].iter().any(removed) {
            Woken::Slept
        } else {
            Woken::Stopped
        }
    }
}

/// Decides whether to spin on the clock or to sleep, so that packets are on time.
#[derive(Debug)]
struct Spin {
    /// Remaining budget of time.
    saved: Duration,
    /// Time of the last accounting.
    looked: Instant,
    /// Whether the thread has spun since then.
    spinning: bool,
}

impl Spin {
    /// Returns the time to sleep when something is due after `left`; `None`: no sleep.
    fn sleep(&mut self, now: Instant, left: Duration) -> Option<Duration> {
        self.account(now);
        if self.saved.is_zero() {
            return (!left.is_zero()).then_some(left);
        }
        let sleep = left.checked_sub(SPIN);
        self.spinning = sleep.is_none();
        sleep
    }

    /// Nothing is due.
    fn sleeps(&mut self, now: Instant) {
        self.account(now);
    }

    fn account(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.looked);
        self.looked = now;
        self.saved = if self.spinning {
            self.saved.saturating_sub(passed)
        } else {
            (self.saved + passed).min(SPIN_SAVED_MAX)
        };
        self.spinning = false;
    }
}

/// Result of a wait.
enum Woken {
    /// A packet is due so soon that there was no sleep.
    Early,
    /// After a sleep.
    Slept,
    /// The link is to end, or an end of it is gone.
    Stopped,
}

/// Time for which a thread was ready to run and did not: the second number of its schedstat, in nanoseconds.
///
/// A packet that came meanwhile has waited in its device at most so long.
#[derive(Debug)]
struct RunDelay {
    file: File,
    last: Duration,
}

impl RunDelay {
    fn of_this_thread() -> Option<Self> {
        let file = File::open("/proc/thread-self/schedstat").ok()?;
        let last = total(&file)?;
        Some(Self { file, last })
    }

    fn since_last(&mut self) -> Duration {
        let Some(now) = total(&self.file) else {
            return Duration::ZERO;
        };
        let waited = now.saturating_sub(self.last);
        self.last = now;
        waited
    }
}

fn total(file: &File) -> Option<Duration> {
    let mut text = [0; 80];
    let length = file.read_at(&mut text, 0).ok()?;
    let text = std::str::from_utf8(text.get(..length)?).ok()?;
    let waited = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(Duration::from_nanos(waited))
}

/// Time before a packet is due at which the thread stops sleeping: above that of a timer and a wake-up.
const SPIN: Duration = Duration::from_micros(200);
/// Time that the thread may spin on the clock at once; then as much as it sleeps, so that a busy
/// link does not take a CPU from its ends.
const SPIN_SAVED_MAX: Duration = Duration::from_millis(5);
/// Maximum number of packets read from a device before other work.
const READS_PER_TURN: usize = 64;
