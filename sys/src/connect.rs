//! Sockets that are connected to a server: datagrams and streams, non-blocking, closed on exec.
//!
//! The system chooses the source address, and the source port by chance. Source: udp(7), tcp(7),
//! connect(2).

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType};

use super::retry;

/// A socket that sends datagrams to `server` and receives from nobody else.
///
/// # Errors
/// There is no way to `server`, or the descriptor limit is reached.
pub fn datagram(server: SocketAddr) -> io::Result<OwnedFd> {
    let socket = open(server, SocketType::DGRAM)?;
    retry(|| rustix::net::connect(&socket, &server))?;
    Ok(socket)
}

/// A stream to `server`, which may not be connected yet: it becomes writable when it is, or fails.
///
/// # Errors
/// As `datagram`; `ConnectionRefused` where that is known at once.
pub fn stream(server: SocketAddr) -> io::Result<OwnedFd> {
    let socket = open(server, SocketType::STREAM)?;
    match rustix::net::connect(&socket, &server) {
        // An interrupted connect goes on by itself, as one that takes longer does.
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}

/// Sends bytes, without a signal when the peer is gone; gives how many the socket took.
///
/// # Errors
/// `WouldBlock` when it has no room or is not connected yet; else the socket's error.
pub fn send(socket: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    let socket = socket.as_fd();
    Ok(retry(|| {
        rustix::net::send(socket, bytes, SendFlags::NOSIGNAL)
    })?)
}

fn open(server: SocketAddr, kind: SocketType) -> io::Result<OwnedFd> {
    let family = match server {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    Ok(rustix::net::socket_with(family, kind, flags, None)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll::{Events, Interest, Poller};
    use crate::socket::{receive, so_error};
    use std::net::{TcpListener, UdpSocket};

    /// Waits for the socket.
    fn ready(socket: &OwnedFd, interest: Interest) {
        let poller = Poller::new().expect("epoll");
        poller.add(socket, 1, interest).expect("add");
        let mut events = Events::with_capacity(1);
        poller.wait(&mut events, Some(10_000)).expect("wait");
        assert_eq!(events.len(), 1);
    }

    #[test]
    fn datagrams_come_from_the_server_alone() {
        let server = UdpSocket::bind("127.0.0.1:0").expect("bind");
        let socket = datagram(server.local_addr().expect("address")).expect("connect");
        let mut buffer = [0; 16];
        let empty = receive(&socket, &mut buffer).expect_err("nothing has come");
        assert_eq!(empty.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(send(&socket, b"ask").expect("send"), 3);
        let (length, ours) = server.recv_from(&mut buffer).expect("receive");
        assert_eq!(&buffer[..length], b"ask");
        let stranger = UdpSocket::bind("127.0.0.1:0").expect("bind");
        stranger.send_to(b"lie", ours).expect("send");
        server.send_to(b"truth", ours).expect("send");
        ready(&socket, Interest::Readable);
        let length = receive(&socket, &mut buffer).expect("receive");
        assert_eq!(&buffer[..length], b"truth");
    }

    #[test]
    fn a_closed_port_is_told_after_the_first_datagram() {
        let gone = UdpSocket::bind("127.0.0.1:0").expect("bind");
        let address = gone.local_addr().expect("address");
        drop(gone);
        let socket = datagram(address).expect("connect");
        send(&socket, b"ask").expect("send");
        ready(&socket, Interest::Readable);
        let error = receive(&socket, &mut [0; 16]).expect_err("nobody is there");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn a_stream_connects_in_its_own_time() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let socket = stream(listener.local_addr().expect("address")).expect("connect");
        listener.accept().expect("accept");
        ready(&socket, Interest::Writable);
        assert!(so_error(&socket).expect("a socket").is_none());
        assert_eq!(send(&socket, b"ask").expect("send"), 3);
    }
}
