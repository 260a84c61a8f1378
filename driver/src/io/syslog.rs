//! The socket of a syslog server: UDP or UNIX datagrams. Sending never waits.
//!
//! It is opened at the first message. It is opened again after the server was replaced, as `/dev/log` is with its
//! daemon. A message that fails for this reason is sent once more. Messages are lost if the socket is full.
//!
//! Source: nginx documentation, "Logging to syslog"; unix(7), udp(7).

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::sync::{Arc, PoisonError, RwLock};

use server_base::errlog::ErrorLog;
use server_base::listen::ListenAddr;
use server_base::syslog::{Datagrams, NotSent, Syslog, SyslogTarget};

/// Returns the syslog servers of a configuration. Their sockets are not open yet.
pub fn servers(targets: &[SyslogTarget], hostname: &[u8]) -> Vec<Arc<Syslog>> {
    let server = |target: &SyslogTarget| {
        let socket = SyslogSocket {
            server: target.server.clone(),
            open: RwLock::new(None),
        };
        Arc::new(Syslog::new(target.clone(), hostname, Box::new(socket)))
    };
    targets.iter().map(server).collect()
}

/// Sets the log for reports of lost messages.
pub fn report_to(servers: &[Arc<Syslog>], log: &ErrorLog) {
    for server in servers {
        server.report_to(log);
    }
}

#[derive(Debug)]
struct SyslogSocket {
    server: ListenAddr,
    open: RwLock<Option<Socket>>,
}

#[derive(Debug)]
enum Socket {
    Udp(UdpSocket),
    Unix(UnixDatagram),
}

impl Datagrams for SyslogSocket {
    fn send(&self, datagram: &[u8]) -> Result<(), NotSent> {
        let sent = match &*self.open.read().unwrap_or_else(PoisonError::into_inner) {
            Some(socket) => socket.send(datagram),
            None => Err(ErrorKind::NotConnected.into()),
        };
        let Err(error) = sent else { return Ok(()) };
        if !is_gone(&error) {
            return Err(not_sent("send()", error));
        }
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        *open = None;
        let socket = Socket::connect(&self.server).map_err(|(call, e)| not_sent(call, e))?;
        let again = socket.send(datagram);
        *open = Some(socket);
        again.map_err(|error| not_sent("send()", error))?;
        // Over UDP, an error may belong to the previous datagram (ICMP).
        match self.server {
            ListenAddr::Inet(_) if error.kind() != ErrorKind::NotConnected => {
                Err(not_sent("send()", error))
            }
            _ => Ok(()),
        }
    }
}

impl Socket {
    fn connect(server: &ListenAddr) -> Result<Self, (&'static str, io::Error)> {
        match server {
            ListenAddr::Inet(addr) => {
                let any = match addr {
                    SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
                    SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
                };
                let socket = UdpSocket::bind(any).map_err(|e| ("socket()", e))?;
                socket.set_nonblocking(true).map_err(|e| ("ioctl()", e))?;
                socket.connect(addr).map_err(|e| ("connect()", e))?;
                Ok(Self::Udp(socket))
            }
            ListenAddr::Unix(path) => {
                let socket = UnixDatagram::unbound().map_err(|e| ("socket()", e))?;
                socket.set_nonblocking(true).map_err(|e| ("ioctl()", e))?;
                socket.connect(path).map_err(|e| ("connect()", e))?;
                Ok(Self::Unix(socket))
            }
        }
    }

    fn send(&self, datagram: &[u8]) -> io::Result<()> {
        match self {
            Self::Udp(socket) => socket.send(datagram),
            Self::Unix(socket) => socket.send(datagram),
        }
        .map(|_| ())
    }
}

/// Whether a new socket may reach the server after this error.
fn is_gone(error: &io::Error) -> bool {
    !matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::OutOfMemory
    ) && !matches!(error.raw_os_error(), Some(libc::EMSGSIZE | libc::ENOBUFS))
}

fn not_sent(call: &'static str, error: io::Error) -> NotSent {
    NotSent { call, error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn socket(server: ListenAddr) -> SyslogSocket {
        let open = RwLock::new(None);
        SyslogSocket { server, open }
    }

    fn received(of: &UnixDatagram) -> String {
        let mut buffer = [0; 64];
        let n = of.recv(&mut buffer).expect("a datagram");
        String::from_utf8_lossy(&buffer[..n]).into_owned()
    }

    fn place(name: &str) -> PathBuf {
        let name = format!("firstbyte-{}-{name}", std::process::id());
        std::env::temp_dir().join(name)
    }

    #[test]
    fn a_server_that_comes_back_loses_nothing_that_is_sent_after() {
        let path = place("log");
        let socket = socket(ListenAddr::Unix(path.clone()));
        let failed = socket.send(b"none").expect_err("nobody is there");
        assert_eq!(failed.call, "connect()");
        let first = UnixDatagram::bind(&path).expect("a socket");
        socket.send(b"one").expect("sent");
        assert_eq!(received(&first), "one");
        drop(first);
        socket.send(b"lost").expect_err("nobody is there");
        std::fs::remove_file(&path).expect("the socket's name");
        let second = UnixDatagram::bind(&path).expect("a socket");
        socket.send(b"two").expect("sent");
        assert_eq!(received(&second), "two");
        let _ = std::fs::remove_file(&path);
    }

    #[test]
    fn a_full_server_is_not_waited_for() {
        let path = place("full");
        let server = UnixDatagram::bind(&path).expect("a socket");
        let socket = socket(ListenAddr::Unix(path.clone()));
        let failed = (0..100_000).find_map(|_| socket.send(&[b'x'; 1000]).err());
        let failed = failed.expect("its queue is finite");
        assert_eq!(failed.error.kind(), ErrorKind::WouldBlock);
        received(&server);
        socket.send(b"there is room again").expect("sent");
        let _ = std::fs::remove_file(&path);
    }

    #[test]
    fn a_datagram_too_large_is_lost_alone() {
        let server = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let addr = server.local_addr().expect("an address");
        let socket = socket(ListenAddr::Inet(addr));
        let failed = socket.send(&[0; 70_000]).expect_err("larger than UDP");
        assert_eq!(failed.error.raw_os_error(), Some(libc::EMSGSIZE));
        socket.send(b"small").expect("sent");
        let mut buffer = [0; 16];
        assert_eq!(server.recv(&mut buffer).expect("a datagram"), 5);
    }
}
