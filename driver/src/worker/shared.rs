//! State shared by the connections of one thread: configuration, clock, files, logs, pools of memory.

use std::cell::Cell;
use std::io;
use std::rc::Rc;

use engines::http::OutputQueue;
use server_base::clock::{Clock, ReadClock};
use server_base::logs::Logs;
use server_base::memory;
use server_base::waker::{WakeKey, WakeQueue};
use server_http::exchange::{
    BODY_BUDGET_BYTES, Client, Ctx, DetachedEnd, DetachedRequest, Env, Exchange, Queues,
};
use server_http::wants::Wants;
use server_http::{detached, phases};
use server_upstream::request::Spares;
use sys::socket::Sent;

use super::arm_look::ArmLook;
use super::cpu::CpuSampler;
use super::dialer::Dialer;
use super::net::Net;
use super::readiness::WRITE_BYTES;
use super::server_state::ServerMemory;
use super::slab::Key;
use super::state::pools::Pools;
use super::state::serving::H1State;
use super::thread_config::ThreadConfig;
use super::token::TokenKind;
use super::transport::{self, Session, TlsBuffers, TlsStream};
use crate::io::files::FileCache;
use crate::io::send::Missing;

/// One thread's shared state.
pub struct Shared<N: Net> {
    /// Sockets.
    pub net: N,
    /// The configuration for new requests.
    pub generation: ThreadConfig,
    /// The time, set once a turn of the loop.
    pub clock: Clock,
    /// Attempts with servers, on their way to connections.
    pub dialer: Dialer,
    /// Memory for connections to servers.
    pub attempts: ServerMemory,
    /// Open files.
    pub files: FileCache,
    /// Access logs.
    pub logs: Logs,
    /// Facts about the process.
    pub env: Env,
    /// Remaining input of body stages in this pass over a connection, in bytes.
    pub budget: Cell<u64>,
    /// Exchanges that were woken, and detached requests that are to begin.
    pub queues: Queues,
    /// The connection that has its turn: its key as a token, by which its exchanges are woken.
    pub owner: u64,
    /// Buffer for reading sockets.
    pub scratch: Box<[u8]>,
    /// Memory for encryption.
    pub tls_buffers: TlsBuffers,
    /// An exchange has set a timer in this turn of the loop; it counts from then, however long the turn still takes.
    pub timer_set: bool,
    /// No connection is to be kept after its response.
    pub stopping: bool,
    /// The turn of a connection, and its limits.
    pub turn: Turn,
    /// The events that the configuration for new requests wants.
    pub wants: Wants,
    /// When bytes were last read, monotonic microseconds, if events are wanted.
    pub read_us: u64,
    /// Measurements for experiments.
    pub arms: ArmMeasurements,
    /// Requests served, for the process's counters.
    pub requests: u64,
    /// Unused memory of connections and exchanges.
    pub pools: Pools,
}

/// The turn of a connection, and its limits.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// Maximum number of passes.
    pub passes_max: usize,
    /// Bytes after which no more passes follow.
    pub bytes_max: u64,
    /// Bytes sent so far.
    pub(crate) bytes: u64,
}

/// Measurements of open connections for experiments.
#[derive(Debug, Default)]
pub struct ArmMeasurements {
    /// Processor time.
    pub cpu: CpuSampler,
    /// Memory and counts.
    pub look: ArmLook,
}

impl Default for Turn {
    fn default() -> Self {
        Self {
            passes_max: PASSES_A_TURN,
            bytes_max: BYTES_A_TURN,
            bytes: 0,
        }
    }
}

impl<N: Net> Shared<N> {
    /// The state of a new thread.
    pub fn new(net: N, generation: ThreadConfig, env: Env) -> Self {
        let wakers = WakeQueue::default();
        let mut arms = ArmMeasurements::default();
        arms.cpu.set_clock(cpu_clock(&env, generation.wants));
        Self {
            net,
            wants: generation.wants,
            read_us: 0,
            arms,
            generation,
            clock: Clock::new(0, 0),
            dialer: Dialer::new(wakers.clone()),
            attempts: ServerMemory::default(),
            files: FileCache::new(),
            logs: Logs::default(),
            env,
            budget: Cell::new(BODY_BUDGET_BYTES),
            queues: queues(wakers),
            owner: 0,
            scratch: vec![0; SCRATCH_BYTES].into_boxed_slice(),
            tls_buffers: TlsBuffers::default(),
            timer_set: false,
            stopping: false,
            turn: Turn::default(),
            requests: 0,
            pools: Pools::default(),
        }
    }

    /// Sets the time in milliseconds: monotonic, and of the wall clock.
    pub fn set_now(&mut self, mono_ms: u64, unix_ms: u64) {
        self.clock.set(mono_ms, unix_ms);
        self.files.set_now(mono_ms, unix_ms);
        self.dialer.set_now(mono_ms);
    }

    /// Changes the queue by which exchanges and connections are woken, before there are any.
    pub fn set_wakers(&mut self, wakers: WakeQueue) {
        self.dialer = Dialer::new(wakers.clone());
        self.queues = queues(wakers);
    }

    /// Changes the configuration for new requests; returns the one before. Unused exchanges would keep that alive.
    pub fn configure(&mut self, generation: ThreadConfig) -> ThreadConfig {
        self.pools.drop_exchanges();
        self.wants = generation.wants;
        self.read_us = 0;
        self.arms.cpu.set_clock(cpu_clock(&self.env, self.wants));
        if !self.wants.has_arms() {
            self.arms.look = ArmLook::default();
        }
        std::mem::replace(&mut self.generation, generation)
    }

    /// Lets go of memory that only saves time.
    pub fn relieve(&mut self) {
        self.pools = Pools::default();
        self.tls_buffers = TlsBuffers::default();
        self.attempts.relieve();
        self.dialer.spares = Spares::default();
        self.files.relieve();
        memory::relieve();
    }

    /// Encrypts and sends from the front of `out`; returns how many bytes of plaintext have left whole.
    ///
    /// # Errors
    /// The file's error, or the socket's.
    pub(crate) fn send_tls<S: Session>(
        &mut self,
        tls: &mut TlsStream<S>,
        socket: &mut N::Socket,
        out: &mut OutputQueue,
        missing: Missing<'_>,
    ) -> io::Result<Sent> {
        let (net, buffers) = (&mut self.net, &mut self.tls_buffers);
        transport::send(tls, socket, out, net, buffers, self.clock.mono_ms, missing)
    }

    /// Context of the core.
    pub fn ctx(&mut self) -> Ctx<'_> {
        Ctx {
            files: &mut self.files,
            connector: &mut self.dialer,
            clock: &self.clock,
            logs: &mut self.logs,
            env: &self.env,
            budget: &self.budget,
            queues: &self.queues,
        }
    }

    /// The state of a connection that begins to serve HTTP/1 on a port.
    pub(crate) fn begin_h1(&mut self, port: usize) -> Box<H1State> {
        self.pools.h1(Rc::clone(&self.generation.h1[port]))
    }

    /// An exchange that begins now.
    pub fn exchange(&mut self, client: Client, port: usize) -> Box<Exchange> {
        let mut x = match self.pools.exchange() {
            Some(x) => x,
            None => Box::new(Exchange::new(Rc::clone(&self.generation.http), client)),
        };
        x.begin(Rc::clone(&self.generation.http), port, client, &self.clock);
        x
    }

    /// Logs an ended exchange and takes it back.
    pub fn finish(&mut self, mut x: Box<Exchange>) {
        self.requests += 1;
        phases::log(&mut x, &mut self.ctx());
        self.drop_unlogged(x);
    }

    /// Logs an ended exchange as of an earlier time, and takes it back.
    pub fn finish_late(&mut self, x: Box<Exchange>, mut then: Clock) {
        std::mem::swap(&mut self.clock, &mut then);
        self.finish(x);
        self.clock = then;
    }

    /// Ends a detached request. Its exchange is not used again, since it has the depth of a subrequest.
    pub(crate) fn end_detached(&mut self, mut request: DetachedRequest, end: DetachedEnd) {
        let is_logged = detached::end(&mut request, &mut self.ctx(), end);
        self.requests += u64::from(is_logged);
    }

    /// Takes back an exchange that was no request.
    pub fn drop_unlogged(&mut self, x: Box<Exchange>) {
        self.pools.release_exchange(x, &self.generation.http);
    }
}

/// Queues of a thread. The key by which detached requests begin names no exchange.
fn queues(wakers: WakeQueue) -> Queues {
    let look = WakeKey {
        owner: TokenKind::Detached.first_token() | Key::NONE.token(),
        stream: 0,
    };
    Queues::new(wakers, look)
}

/// The clock for processor times of connections, which only experiments need.
fn cpu_clock(env: &Env, wants: Wants) -> Option<ReadClock> {
    env.cpu_ns.filter(|_| wants.has_arms())
}

/// Passes of one turn: a client with endless input must not occupy a thread.
pub const PASSES_A_TURN: usize = 4;
/// Bytes after which no more passes follow in a turn.
pub const BYTES_A_TURN: u64 = WRITE_BYTES;
/// Bytes of one read.
pub const SCRATCH_BYTES: usize = 64 << 10;
