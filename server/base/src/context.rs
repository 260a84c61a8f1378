//! What handlers need of the world while they work.

use std::cell::Cell;

use crate::clock::{Clock, ReadClock};
use crate::connector::Connector;
use crate::files::Files;
use crate::logs::Logs;
use crate::offload::Offload;
use crate::transport::ReadTcpInfo;
use crate::waker::WakeQueue;

/// What handlers need of the world while they work on an exchange.
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
    /// How many bytes body stages may still be given in this pass over the connection.
    pub budget: &'a Cell<u64>,
    /// Where the thread's wakes go.
    pub wakers: &'a WakeQueue,
}

/// How many bytes the stages of a connection's bodies are given before what came out of them is written and others have
/// their turn: compressing so much takes about a millisecond.
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
    /// Has work done by a thread that serves nobody, where there is one.
    pub offload: Option<Offload>,
}

impl Env {
    /// Monotonic microseconds; 0 where there is no such clock.
    pub fn now_us(&self) -> u64 {
        self.clock_us.map_or(0, |read| read())
    }
}
