//! The context of handlers: settings, clock, files and services of the thread.

use std::cell::Cell;
use std::sync::Arc;

use crate::clock::{Clock, ReadClock};
use crate::connector::Connector;
use crate::files::Files;
use crate::logs::Logs;
use crate::offload::Offload;
use crate::samples::SampleSink;
use crate::transport::ReadTcpInfo;
use crate::waker::WakeQueue;

/// The context that a handler gets with its exchange.
pub struct Ctx<'a> {
    /// The file system.
    pub files: &'a mut dyn Files,
    /// Connections to other servers.
    pub connector: &'a mut dyn Connector,
    /// The time.
    pub clock: &'a Clock,
    /// The access logs.
    pub logs: &'a mut Logs,
    /// Facts about the process.
    pub env: &'a Env,
    /// Number of bytes that body stages may still be given in this pass over the connection.
    pub budget: &'a Cell<u64>,
    /// Where the thread's wakes go.
    pub wakers: &'a WakeQueue,
}

/// Maximum number of bytes that the stages of a connection's bodies are given in one turn, before their output is
/// written and other connections have their turn. Compressing this many takes about a millisecond.
pub const BODY_BUDGET_BYTES: u64 = 32 << 10;

/// Facts about the process that variables show.
#[derive(Debug, Clone, Default)]
pub struct Env {
    /// `$hostname`.
    pub hostname: Vec<u8>,
    /// `$pid`.
    pub pid: u32,
    /// Asks the kernel about a connection, where there are any.
    pub tcp_info: Option<ReadTcpInfo>,
    /// Reads a clock that counts microseconds, where there is one.
    pub clock_us: Option<ReadClock>,
    /// Reads the processor time of the calling thread, nanoseconds, where there is such a clock.
    pub cpu_ns: Option<ReadClock>,
    /// The queue of the offload threads, where the driver has any.
    pub offload: Option<Offload>,
    /// Receiver of samples of connections, where the driver has one.
    pub samples: Option<Arc<dyn SampleSink>>,
}

impl Env {
    /// Monotonic microseconds; 0 where there is no such clock.
    pub fn now_us(&self) -> u64 {
        self.clock_us.map_or(0, |read| read())
    }
}
