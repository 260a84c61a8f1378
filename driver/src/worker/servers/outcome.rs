//! Why the requests of a connection are over, and failures of calls.

use std::io;

use server_upstream::request::Failure;
use tls::Fault;

/// Why the requests of a connection are over.
pub(super) enum Ending {
    /// The response is complete, or its rest has been dropped; or all streams have ended.
    Complete,
    /// No exchange wants it any more.
    GivenUp,
    /// It has failed.
    Failed(Failure),
    /// Requests of a queue are repeated, each alone.
    Retry,
}

impl Ending {
    /// A call on the socket has failed, or TLS.
    pub(super) fn failed(call: &'static str, error: &io::Error) -> Self {
        let fault = error.get_ref().and_then(|inner| inner.downcast_ref());
        Self::Failed(match fault {
            Some(fault) => of_tls(fault),
            None => Failure::Socket {
                call,
                errno: errno(error),
            },
        })
    }

    /// A write has failed, and no response came before.
    pub(super) fn broken(errno: i32) -> Self {
        let call = WRITE_CALL;
        Self::Failed(Failure::Socket { call, errno })
    }
}

/// TLS has failed.
pub(super) fn of_tls(fault: &Fault) -> Failure {
    Failure::Handshake(fault.to_string().into())
}

/// The number of an error; an error without one counts as a broken connection.
pub(super) fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(match error.kind() {
        io::ErrorKind::BrokenPipe => EPIPE,
        io::ErrorKind::ConnectionRefused => ECONNREFUSED,
        _ => ECONNRESET,
    })
}

/// Name of a write in nginx's log.
const WRITE_CALL: &str = "writev()";
pub(super) const EPIPE: i32 = 32;
const ECONNRESET: i32 = 104;
const ECONNREFUSED: i32 = 111;
