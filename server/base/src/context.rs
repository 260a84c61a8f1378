//! Facts about the process and its services, for the handlers of every kind of server.

use std::sync::Arc;

use crate::clock::ReadClock;
use crate::offload::Offload;
use crate::samples::SampleSink;
use crate::transport::ReadTcpInfo;

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
