//! Progress reports to the service manager: the datagrams of sd_notify.
//!
//! A datagram of lines `NAME=value` is sent to the socket in `NOTIFY_SOCKET`, by path or, after an `@`, by abstract
//! name. Absent: passing descriptors, the watchdog, AF_VSOCK (a manager outside of this machine). Source:
//! sd_notify(3), systemd.exec(5).

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The service manager that started this process, or a parent of it.
#[derive(Debug)]
pub struct ServiceManager {
    address: SocketAddr,
}

impl ServiceManager {
    /// The manager named in the environment; `None` without one.
    ///
    /// # Errors
    /// The name is not valid for a socket of this machine.
    pub fn from_environment() -> io::Result<Option<Self>> {
        std::env::var_os(NOTIFY_SOCKET)
            .filter(|name| !name.is_empty())
            .map(|name| Self::named(&name))
            .transpose()
    }

    /// The manager for a value of `NOTIFY_SOCKET`.
    ///
    /// # Errors
    /// The name is neither an absolute path nor an abstract name, or is too long for a socket.
    pub fn named(name: &OsStr) -> io::Result<Self> {
        let address = match name.as_bytes() {
            [b'@', abstract_name @ ..] => SocketAddr::from_abstract_name(abstract_name),
            [b'/', ..] => SocketAddr::from_pathname(name),
            _ => Err(io::ErrorKind::Unsupported.into()),
        };
        Ok(Self { address: address? })
    }

    /// Sends lines of state in one datagram.
    ///
    /// # Errors
    /// There is no listener, or it accepted no datagram for [`SEND_TIMEOUT`].
    pub fn tell(&self, lines: &str) -> io::Result<()> {
        let socket = UnixDatagram::unbound()?;
        socket.set_write_timeout(Some(SEND_TIMEOUT))?;
        // A datagram leaves whole or not at all.
        socket
            .send_to_addr(lines.as_bytes(), &self.address)
            .map(drop)
    }
}

/// The clock by which a manager orders reloads, microseconds.
#[must_use]
pub fn monotonic_us() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let (seconds, nanoseconds) = (
        u64::try_from(now.tv_sec).unwrap_or(0),
        u64::try_from(now.tv_nsec).unwrap_or(0),
    );
    seconds * 1_000_000 + nanoseconds / 1_000
}

/// The variable with the name of the manager's socket.
const NOTIFY_SOCKET: &str = "NOTIFY_SOCKET";

/// Longest time that a manager with a full queue may block the supervisor.
pub const SEND_TIMEOUT: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn received(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 256];
        socket
            .set_read_timeout(Some(Duration::from_secs(5)))
            .expect("a timeout that is not zero");
        let length = socket.recv(&mut bytes).expect("a datagram");
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    #[test]
    fn lines_arrive_in_one_datagram_by_path() {
        let path = std::env::temp_dir().join(format!("firstbyte-notify.{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let socket = UnixDatagram::bind(&path).expect("a socket");
        let manager = ServiceManager::named(path.as_os_str()).expect("a name");
        manager.tell("READY=1\nMAINPID=7").expect("told");
        assert_eq!(received(&socket), "READY=1\nMAINPID=7");
        std::fs::remove_file(&path).expect("it was bound");
        manager.tell("STOPPING=1").expect_err("nobody listens");
    }

    #[test]
    fn an_at_sign_begins_an_abstract_name() {
        let name = format!("@firstbyte-notify.{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name[1..]).expect("a name");
        let socket = UnixDatagram::bind_addr(&address).expect("a socket");
        let manager = ServiceManager::named(OsStr::new(&name)).expect("a name");
        manager.tell("STOPPING=1").expect("told");
        assert_eq!(received(&socket), "STOPPING=1");
    }

    #[test]
    fn other_names_are_refused() {
        for name in ["notify", "vsock:2:3"] {
            let error = ServiceManager::named(OsStr::new(name)).expect_err(name);
            assert_eq!(error.kind(), io::ErrorKind::Unsupported);
        }
        // sun_path has 108 bytes; the last is for the NUL of a path.
        for (length, fits) in [(107, true), (108, false)] {
            let name = format!("/{}", "x".repeat(length - 1));
            assert_eq!(ServiceManager::named(OsStr::new(&name)).is_ok(), fits);
        }
    }

    #[test]
    fn monotonic_time_goes_on() {
        let before = monotonic_us();
        assert!(before > 0 && monotonic_us() >= before);
    }
}
