//! Sockets connected to a server: datagrams and streams, non-blocking, closed on exec.
//!
//! The system chooses the source address, and a random source port, unless [`Options`] name one. Source: udp(7),
//! tcp(7), ip(7), unix(7), connect(2).

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sockopt};

use super::{check, retry};

/// Target of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address<'a> {
    /// An address and a port.
    Inet(SocketAddr),
    /// The path of a UNIX-domain socket.
    Unix(&'a [u8]),
}

/// Options of the socket of a stream, set before it connects.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The local address. If its port is 0, the system chooses one only when it knows the server, so that each
    /// server has a range of ports of its own.
    pub bind: Option<SocketAddr>,
    /// IP_TRANSPARENT: the local address may be any.
    pub transparent: bool,
    /// SO_KEEPALIVE.
    pub keepalive: bool,
    /// SO_RCVBUF, bytes.
    pub receive_buffer: Option<u32>,
    /// SO_SNDBUF, bytes.
    pub send_buffer: Option<u32>,
}

/// A stream on its way.
#[derive(Debug)]
pub struct Connecting<S> {
    /// Its socket.
    pub socket: S,
    /// It is connected already; otherwise it becomes writable once it is connected or has failed.
    pub established: bool,
}

/// Reason why a stream could not be begun.
#[derive(Debug)]
pub struct ConnectError {
    /// The call that failed, as nginx's log names it.
    pub call: &'static str,
    /// Its error.
    pub error: io::Error,
}

/// Opens a socket that sends datagrams to `server` and receives only from it.
///
/// # Errors
/// There is no way to `server`, or the descriptor limit is reached.
pub fn datagram(server: SocketAddr) -> io::Result<OwnedFd> {
    let socket = open(server, SocketType::DGRAM)?;
    retry(|| rustix::net::connect(&socket, &server))?;
    Ok(socket)
}

/// A stream to `server`, possibly not connected yet: it becomes writable once it is connected or has failed.
///
/// # Errors
/// As `datagram`; `ConnectionRefused` if that is known at once.
pub fn stream(server: SocketAddr) -> io::Result<OwnedFd> {
    let socket = open(server, SocketType::STREAM)?;
    match rustix::net::connect(&socket, &server) {
        // An interrupted connect continues by itself, like one that takes longer.
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}

/// A stream with these options, possibly not connected yet. The client must send first.
///
/// The acknowledgement that ends the handshake is sent with the first bytes, or alone after 200 ms without any.
/// That saves one segment, and the server wakes once, for the request. The server's answer is acknowledged with a
/// delay, as on an idle connection; [`socket::acknowledge`](crate::socket::acknowledge) avoids the delay.
///
/// # Errors
/// Those of socket(2), setsockopt(2), bind(2) and connect(2); `WouldBlock` if the backlog of a UNIX-domain socket
/// is full.
pub fn stream_to(
    address: Address<'_>,
    options: &Options,
) -> Result<Connecting<OwnedFd>, ConnectError> {
    let family = match address {
        Address::Inet(SocketAddr::V4(_)) => AddressFamily::INET,
        Address::Inet(SocketAddr::V6(_)) => AddressFamily::INET6,
        Address::Unix(_) => AddressFamily::UNIX,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None);
    let socket = socket.map_err(failed("socket()"))?;
    configure(socket.as_fd(), address, options)?;
    let result = match address {
        Address::Inet(address) => rustix::net::connect(&socket, &address),
        Address::Unix(path) => {
            SocketAddrUnix::new(path).and_then(|address| rustix::net::connect(&socket, &address))
        }
    };
    match result {
        Ok(()) => Ok(Connecting {
            socket,
            established: true,
        }),
        // An interrupted connect continues by itself, like one that takes longer. A server on this host has
        // accepted by then, which saves the wait for the event: only an established connection has a peer.
        Err(Errno::INPROGRESS | Errno::INTR) => Ok(Connecting {
            established: rustix::net::getpeername(&socket).is_ok(),
            socket,
        }),
        Err(errno) => Err(failed("connect()")(errno)),
    }
}

fn configure(
    socket: BorrowedFd<'_>,
    address: Address<'_>,
    options: &Options,
) -> Result<(), ConnectError> {
    if let Some(bytes) = options.receive_buffer {
        sockopt::set_socket_recv_buffer_size(socket, bytes as usize)
            .map_err(failed("setsockopt(SO_RCVBUF)"))?;
    }
    if let Some(bytes) = options.send_buffer {
        sockopt::set_socket_send_buffer_size(socket, bytes as usize)
            .map_err(failed("setsockopt(SO_SNDBUF)"))?;
    }
    if options.keepalive {
        sockopt::set_socket_keepalive(socket, true).map_err(failed("setsockopt(SO_KEEPALIVE)"))?;
    }
    if matches!(address, Address::Inet(_)) {
        // A segment more is no reason to fail.
        let _ = sockopt::set_tcp_quickack(socket, false);
    }
    if let (Some(local), Address::Inet(_)) = (options.bind, address) {
        bind(socket, local, options.transparent)?;
    }
    Ok(())
}

fn bind(socket: BorrowedFd<'_>, local: SocketAddr, transparent: bool) -> Result<(), ConnectError> {
    if transparent {
        let (level, option) = match local {
            SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_TRANSPARENT),
            SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_TRANSPARENT),
        };
        set_option(socket, level, option).map_err(|error| ConnectError {
            call: "setsockopt(IP_TRANSPARENT)",
            error,
        })?;
    }
    if local.port() == 0 {
        // Without it a port is chosen that is free for all servers. A kernel without this option does so.
        let _ = set_option(socket, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT);
    }
    rustix::net::bind(socket, &local).map_err(failed("bind()"))
}

fn set_option(socket: BorrowedFd<'_>, level: libc::c_int, option: libc::c_int) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: `on` is an int that outlives the call, and its size is the length given.
    check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    })?;
    Ok(())
}

fn failed(call: &'static str) -> impl Fn(Errno) -> ConnectError {
    move |errno| ConnectError {
        call,
        error: errno.into(),
    }
}

/// Sends bytes, without a signal if the peer is gone; returns the number that the socket took.
///
/// # Errors
/// `WouldBlock` if the socket is full or not connected yet; else the socket's error.
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
    use crate::socket::{receive, receive_into, so_error};
    use crate::tcp_info::tcp_info;
    use std::io::{Read, Write};
    use std::net::{TcpListener, UdpSocket};
    use std::os::unix::net::UnixListener;

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

    fn to(listener: &TcpListener, options: &Options) -> Connecting<OwnedFd> {
        let address = listener.local_addr().expect("address");
        stream_to(Address::Inet(address), options).expect("it listens")
    }

    #[test]
    fn options_are_set_before_it_connects() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let options = Options {
            bind: Some("127.0.0.9:0".parse().expect("an address")),
            keepalive: true,
            receive_buffer: Some(20_000),
            send_buffer: Some(30_000),
            ..Options::default()
        };
        let stream = to(&listener, &options).socket;
        let (_, peer) = listener.accept().expect("accept");
        assert_eq!(peer.ip().to_string(), "127.0.0.9");
        assert!(sockopt::socket_keepalive(&stream).expect("a socket"));
        // The kernel doubles the requested sizes.
        assert_eq!(sockopt::socket_recv_buffer_size(&stream), Ok(40_000));
        assert_eq!(sockopt::socket_send_buffer_size(&stream), Ok(60_000));
    }

    #[test]
    fn a_server_on_this_host_is_connected_at_once() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let stream = to(&listener, &Options::default());
        assert!(stream.established);
        assert_eq!(send(&stream.socket, b"ask").expect("send"), 3);
        // Small pieces are delayed by default, as on any socket.
        assert_eq!(sockopt::tcp_nodelay(&stream.socket), Ok(false));
    }

    #[test]
    fn the_first_bytes_end_the_handshake() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let stream = to(&listener, &Options::default()).socket;
        // Its field tcpi_segs_out.
        let segments = || tcp_info(stream.as_raw_fd()).and_then(|info| info.u32_at(136));
        assert_eq!(segments(), Some(1), "the first of the handshake alone");
        assert_eq!(send(&stream, b"ask").expect("send"), 3);
        assert_eq!(segments(), Some(2));
        let (mut server, _) = listener.accept().expect("accept");
        let mut request = [0; 3];
        server.read_exact(&mut request).expect("it was sent");
        assert_eq!(&request, b"ask");
    }

    #[test]
    fn a_handshake_ends_without_bytes_as_well() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let stream = to(&listener, &Options::default());
        assert!(stream.established);
        let (mut server, _) = listener.accept().expect("the kernel sends it by itself");
        drop(stream);
        assert_eq!(server.read(&mut [0; 1]).expect("the end"), 0);
    }

    #[test]
    fn a_port_that_is_closed_is_not_connected() {
        let closed = TcpListener::bind("127.0.0.1:0").expect("bind");
        let address = closed.local_addr().expect("address");
        drop(closed);
        let stream = stream_to(Address::Inet(address), &Options::default()).expect("begun");
        assert!(!stream.established);
        let error = so_error(&stream.socket).expect("a socket");
        let kind = error.map(|error| error.kind());
        assert_eq!(kind, Some(io::ErrorKind::ConnectionRefused));
    }

    #[test]
    fn a_local_port_serves_one_server_each() {
        let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("bind"));
        let mut options = Options::default();
        // With its port, an address is one of this host, and is bound at once.
        let free = TcpListener::bind("127.0.0.10:0").expect("bind");
        options.bind = free.local_addr().ok();
        drop(free);
        let _first = to(&listeners[0], &options);
        let address = listeners[1].local_addr().expect("address");
        let second = stream_to(Address::Inet(address), &options).expect_err("it is taken");
        assert_eq!(second.call, "bind()");
        assert_eq!(second.error.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn a_foreign_address_needs_a_right_or_is_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let address = listener.local_addr().expect("address");
        let mut options = Options {
            bind: Some("192.0.2.1:0".parse().expect("an address")),
            ..Options::default()
        };
        let error = stream_to(Address::Inet(address), &options).expect_err("it is not ours");
        assert_eq!(error.call, "bind()");
        assert_eq!(error.error.kind(), io::ErrorKind::AddrNotAvailable);
        options.transparent = true;
        // Permission to set it depends on the user of the test.
        if let Err(error) = stream_to(Address::Inet(address), &options) {
            assert_eq!(error.call, "setsockopt(IP_TRANSPARENT)");
        }
    }

    #[test]
    fn a_unix_domain_socket_is_established_at_once_or_says_why_not() {
        let name = format!("firstbyte-sys-connect-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let bytes = path.as_os_str().as_encoded_bytes();
        let error = stream_to(Address::Unix(bytes), &Options::default()).expect_err("no file");
        assert_eq!(error.call, "connect()");
        assert_eq!(error.error.kind(), io::ErrorKind::NotFound);
        let listener = UnixListener::bind(&path).expect("bind");
        let stream = stream_to(Address::Unix(bytes), &Options::default()).expect("it listens");
        assert!(stream.established);
        listener.accept().expect("accept");
        std::fs::remove_file(&path).expect("it is there");
        let long = vec![b'a'; 200];
        assert!(stream_to(Address::Unix(&long), &Options::default()).is_err());
    }

    #[test]
    fn acknowledged_bytes_count_the_first_segment_as_one() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let stream = to(&listener, &Options::default()).socket;
        let (mut served, _) = listener.accept().expect("accept");
        ready(&stream, Interest::Writable);
        let acknowledged = || tcp_info(stream.as_raw_fd()).and_then(|info| info.bytes_acked());
        assert_eq!(acknowledged(), Some(1));
        send(&stream, b"hello").expect("send");
        served.read_exact(&mut [0; 5]).expect("receive");
        // An answer acknowledges the bytes read before.
        served.write_all(b"x").expect("send");
        ready(&stream, Interest::Readable);
        assert_eq!(acknowledged(), Some(6));
    }

    #[test]
    fn a_read_appends_no_more_than_it_may() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let stream = to(&listener, &Options::default()).socket;
        let (mut served, _) = listener.accept().expect("accept");
        served.write_all(b"hello").expect("send");
        ready(&stream, Interest::Readable);
        let mut buffer = b"> ".to_vec();
        assert_eq!(receive_into(&stream, &mut buffer, 4).ok(), Some(4));
        assert_eq!(receive_into(&stream, &mut buffer, 4).ok(), Some(1));
        assert_eq!(buffer, b"> hello");
        let empty = receive_into(&stream, &mut buffer, 4).expect_err("nothing is left");
        assert_eq!((empty.kind(), buffer.len()), (io::ErrorKind::WouldBlock, 7));
        drop(served);
        ready(&stream, Interest::Readable);
        assert_eq!(receive_into(&stream, &mut buffer, 4).ok(), Some(0));
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
