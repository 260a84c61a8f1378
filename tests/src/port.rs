//! Free TCP ports that stay free until the server under test has bound them.
//!
//! The system may hand out a port of `127.0.0.1:0` a second time, to another test's server or as source port of a
//! connection, before the server binds it. Ports here are below the range of source ports. A locked file per number
//! reserves a port among the parallel test processes of one user. The lock ends with the process that holds it.

use std::fs::{File, OpenOptions};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{FlockOperation, flock};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};

/// The lowest port handed out.
const FIRST: u32 = 10_240;

/// Next port to try, offset by the process id so that processes start apart.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A reserved port number.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _lock: File,
}

impl Port {
    /// Finds a free port and reserves it among the tests.
    ///
    /// # Panics
    /// When no port of the range is free.
    #[must_use]
    pub fn reserve() -> Self {
        let count = end_of_range() - FIRST;
        let start = std::process::id().wrapping_mul(61);
        for _ in 0..count {
            let step = NEXT.fetch_add(1, Ordering::Relaxed);
            let number = FIRST + start.wrapping_add(step) % count;
            let number = u16::try_from(number).expect("the range ends below 65536");
            if let Some(port) = Self::try_reserve(number) {
                return port;
            }
        }
        panic!("no free port between {FIRST} and {}", FIRST + count);
    }

    /// The port's number.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.number
    }

    fn try_reserve(number: u16) -> Option<Self> {
        let path = lock_folder().join(number.to_string());
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true).mode(0o600);
        let lock = options.open(path).ok()?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).ok()?;
        try_bind(number).ok()?;
        Some(Self {
            number,
            _lock: lock,
        })
    }
}

/// Returns whether no socket listens on a port, so that a server can bind it.
#[must_use]
pub fn is_free(number: u16) -> bool {
    try_bind(number).is_ok()
}

/// Tries to bind a port on every address: a listener on any of them would conflict. The socket does not listen, since a
/// child forked by another thread holds it until it starts its program. A listening socket would then conflict with the
/// server.
fn try_bind(number: u16) -> io::Result<()> {
    let (family, kind) = (AddressFamily::INET, SocketType::STREAM);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, number))?;
    Ok(())
}

/// One past the highest port handed out: the first source port of the system.
fn end_of_range() -> u32 {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let low = text
        .ok()
        .and_then(|t| t.split_whitespace().next()?.parse().ok());
    low.unwrap_or(32_768_u32).clamp(FIRST + 1000, 60_000)
}

/// The folder of the lock files, one per user.
fn lock_folder() -> PathBuf {
    let user = rustix::process::getuid().as_raw();
    let path = std::env::temp_dir().join(format!("firstbyte-test-ports.{user}"));
    std::fs::create_dir_all(&path).expect("the temporary directory is writable");
    path
}
