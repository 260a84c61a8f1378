//! A syslog server that records its messages.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use crate::dir::set_mode;
use crate::wait::{DEADLINE, holds_within};

/// A receiver of datagrams.
#[derive(Debug)]
pub struct Receiver {
    socket: Socket,
    received: Vec<String>,
}

#[derive(Debug)]
enum Socket {
    Udp(UdpSocket),
    Unix(UnixDatagram),
}

impl Receiver {
    /// A receiver on a free UDP port of 127.0.0.1.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn udp() -> Self {
        Self::on_port(0)
    }

    /// A receiver on this UDP port of 127.0.0.1.
    ///
    /// # Panics
    /// If the port is in use.
    #[must_use]
    pub fn on_port(port: u16) -> Self {
        let socket = UdpSocket::bind(("127.0.0.1", port)).expect("a UDP port can be had");
        let set = socket.set_nonblocking(true);
        set.expect("a socket can be non-blocking");
        Self::of(Socket::Udp(socket))
    }

    /// A receiver on a UNIX-domain socket that everybody may write to.
    ///
    /// # Panics
    /// When it cannot be made.
    #[must_use]
    pub fn unix(path: &Path) -> Self {
        let socket = UnixDatagram::bind(path).expect("a socket can be made in the directory");
        let set = socket.set_nonblocking(true);
        set.expect("a socket can be non-blocking");
        set_mode(path, 0o777);
        Self::of(Socket::Unix(socket))
    }

    fn of(socket: Socket) -> Self {
        let received = Vec::new();
        Self { socket, received }
    }

    /// The port of a UDP receiver.
    ///
    /// # Panics
    /// When it has none.
    #[must_use]
    pub fn port(&self) -> u16 {
        match &self.socket {
            Socket::Udp(socket) => socket.local_addr().expect("a bound socket").port(),
            Socket::Unix(_) => panic!("a UNIX-domain socket has no port"),
        }
    }

    /// Waits for a message that contains `text`, and returns the first such one.
    ///
    /// # Panics
    /// When none comes.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) -> String {
        let mut found = None;
        holds_within(DEADLINE, || {
            let all = self.received();
            found = all.iter().find(|message| message.contains(text)).cloned();
            found.is_some()
        });
        found.unwrap_or_else(|| panic!("no message has {text:?}: {:#?}", self.received))
    }

    /// All messages received so far.
    ///
    /// # Panics
    /// If the socket breaks.
    pub fn received(&mut self) -> &[String] {
        let mut buffer = [0; 1 << 16];
        loop {
            let received = match &self.socket {
                Socket::Udp(socket) => socket.recv(&mut buffer),
                Socket::Unix(socket) => socket.recv(&mut buffer),
            };
            match received {
                Ok(n) => self
                    .received
                    .push(String::from_utf8_lossy(&buffer[..n]).into_owned()),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return &self.received,
                Err(e) => panic!("the socket broke: {e}"),
            }
        }
    }
}
