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
    /// Reads the kernel's data of a connection; `None` without sockets.
    pub tcp_info: Option<ReadTcpInfo>,
    /// Reads a clock in microseconds; `None` without such a clock.
    pub clock_us: Option<ReadClock>,
    /// Reads the processor time of the calling thread, nanoseconds; `None` without such a clock.
    pub cpu_ns: Option<ReadClock>,
    /// The queue of the offload threads, if the driver has any.
    pub offload: Option<Offload>,
    /// Receiver of samples of connections, if the driver has one.
    pub samples: Option<Arc<dyn SampleSink>>,
}

impl Env {
    /// Monotonic microseconds; 0 without such a clock.
    pub fn now_us(&self) -> u64 {
        self.clock_us.map_or(0, |read| read())
    }
}
