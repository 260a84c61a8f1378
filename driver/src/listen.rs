//! Listening sockets with the options of nginx's `listen` directive.
//!
//! Errors keep the errno and the call that failed, because nginx's messages name it. An option that
//! does not change who can connect (buffers, keepalive, deferral, fast open) is advice: its failure
//! is returned in the list of `Bound` and the socket listens all the same, as in nginx. Without Multipath TCP in the
//! kernel, plain TCP is used.
//! Absent: UDP. Source: nginx documentation, `ngx_http_core_module`, `listen`.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::Mode;
use rustix::net::{
    AddressFamily, Protocol, SocketAddrUnix, SocketFlags, SocketType, ipproto, sockopt,
};
use server_base::listen::{KeepAlive, ListenAddr, SocketOptions, UnixAccess};
use sys::socket::{set_tcp_defer_accept, set_tcp_fastopen};

/// A socket that listens, and the options that could not be set.
#[derive(Debug)]
pub struct Bound {
    /// The listening socket: non-blocking, closed on exec.
    pub socket: OwnedFd,
    /// Options the system refused, each with its error.
    pub refused: Vec<BindError>,
}

/// Which call failed and why.
#[derive(Debug)]
pub struct BindError {
    /// The call as nginx names it: `socket()`, `bind()`, `setsockopt(SO_RCVBUF)`.
    pub call: &'static str,
    /// The system's error.
    pub error: io::Error,
}

impl BindError {
    fn of<E: Into<io::Error>>(call: &'static str) -> impl Fn(E) -> Self {
        move |error| Self {
            call,
            error: error.into(),
        }
    }
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed ({})", self.call, sys::os_error(&self.error))
    }
}

impl std::error::Error for BindError {}

/// A second socket of an address that is bound already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// Only `options.reuseport` permits it.
    AsConfigured,
    /// It is permitted ([`allow_sharing`]): the new socket replaces one of another protocol, or of a part of its address.
    Replaces,
}

/// Opens one listening socket. With `options.reuseport` the address can be bound again, once a thread.
///
/// # Errors
/// The call that failed; `bind()` or `listen()` with EADDRINUSE when the address is taken.
pub fn bind(
    address: &ListenAddr,
    options: &SocketOptions,
    sharing: Sharing,
) -> Result<Bound, BindError> {
    let bound = bind_only(address, options, sharing)?;
    listen(&bound.socket, options.backlog)?;
    Ok(bound)
}

/// Binds an address beside sockets that have a part of it and allow sharing ([`allow_sharing`]). The socket does not listen
/// before [`begin`]: connections that the other sockets take until then must not wait here.
///
/// # Errors
/// Those of [`bind`].
pub fn bind_beside(address: SocketAddr, options: &SocketOptions) -> Result<Bound, BindError> {
    bind_only(&ListenAddr::Inet(address), options, Sharing::Replaces)
}

/// Has a socket of [`bind_beside`] listen. From then on a socket without SO_REUSEPORT cannot be bound beside it.
///
/// # Errors
/// `listen()` with EADDRINUSE if another process took the address meanwhile.
pub fn begin(socket: &OwnedFd, options: &SocketOptions) -> Result<(), BindError> {
    listen(socket, options.backlog)?;
    sockopt::set_socket_reuseport(socket, options.reuseport)
        .map_err(BindError::of("setsockopt(SO_REUSEPORT)"))
}

/// Sets options that can change on a listening socket: buffers, keepalive, deferral, fast open and
/// the backlog. Returns the calls that the system refused.
#[must_use]
pub fn reconfigure(
    socket: &OwnedFd,
    address: &ListenAddr,
    options: &SocketOptions,
) -> Vec<BindError> {
    let mut refused = Vec::new();
    configure(socket, address, options, &mut refused);
    if let Err(error) = listen(socket, options.backlog) {
        refused.push(error);
    }
    refused
}

/// Lets others bind the address of a socket that was bound alone: `reuseport` is added, or the protocol changes.
///
/// # Errors
/// The system does not know SO_REUSEPORT.
pub fn allow_sharing(socket: &OwnedFd) -> Result<(), BindError> {
    sockopt::set_socket_reuseport(socket, true).map_err(BindError::of("setsockopt(SO_REUSEPORT)"))
}

fn bind_only(
    address: &ListenAddr,
    options: &SocketOptions,
    sharing: Sharing,
) -> Result<Bound, BindError> {
    let mut refused = Vec::new();
    let socket = match address {
        ListenAddr::Inet(address) => bind_inet(*address, options, sharing, &mut refused)?,
        ListenAddr::Unix(path) => match options.access {
            UnixAccess::Everybody => bind_unix(path)?,
            UnixAccess::Owner => bind_unix_for_owner(path)?,
        },
    };
    configure(&socket, address, options, &mut refused);
    Ok(Bound { socket, refused })
}

fn listen(socket: &OwnedFd, backlog: i32) -> Result<(), BindError> {
    rustix::net::listen(socket, backlog).map_err(BindError::of("listen()"))
}

fn bind_inet(
    address: SocketAddr,
    options: &SocketOptions,
    sharing: Sharing,
    refused: &mut Vec<BindError>,
) -> Result<OwnedFd, BindError> {
    let family = if address.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let socket = if options.multipath {
        open_multipath(family, refused)?
    } else {
        open(family, None)?
    };
    sockopt::set_socket_reuseaddr(&socket, true)
        .map_err(BindError::of("setsockopt(SO_REUSEADDR)"))?;
    if options.reuseport || sharing == Sharing::Replaces {
        sockopt::set_socket_reuseport(&socket, true)
            .map_err(BindError::of("setsockopt(SO_REUSEPORT)"))?;
    }
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, options.ipv6only)
            .map_err(BindError::of("setsockopt(IPV6_V6ONLY)"))?;
    }
    rustix::net::bind(&socket, &address).map_err(BindError::of("bind()"))?;
    Ok(socket)
}

fn bind_unix(path: &Path) -> Result<OwnedFd, BindError> {
    let socket = open(AddressFamily::UNIX, None)?;
    let address = SocketAddrUnix::new(path).map_err(BindError::of("bind()"))?;
    rustix::net::bind(&socket, &address).map_err(BindError::of("bind()"))?;
    let mode = std::fs::Permissions::from_mode(UNIX_SOCKET_MODE);
    std::fs::set_permissions(path, mode).map_err(BindError::of("chmod()"))?;
    Ok(socket)
}

/// Binds a socket that was never open to other users: the file gets the mode that the socket has before bind(2).
fn bind_unix_for_owner(path: &Path) -> Result<OwnedFd, BindError> {
    let socket = open(AddressFamily::UNIX, None)?;
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::fchmod(&socket, mode).map_err(BindError::of("fchmod()"))?;
    let address = SocketAddrUnix::new(path).map_err(BindError::of("bind()"))?;
    rustix::net::bind(&socket, &address).map_err(BindError::of("bind()"))?;
    Ok(socket)
}

fn open(family: AddressFamily, protocol: Option<Protocol>) -> Result<OwnedFd, BindError> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    rustix::net::socket_with(family, SocketType::STREAM, flags, protocol)
        .map_err(BindError::of("socket()"))
}

/// Opens a socket of Multipath TCP, or of TCP if the kernel has none or `net.mptcp.enabled` is 0.
fn open_multipath(
    family: AddressFamily,
    refused: &mut Vec<BindError>,
) -> Result<OwnedFd, BindError> {
    match open(family, Some(ipproto::MPTCP)) {
        Err(BindError { error, .. }) if is_unsupported(&error) => {
            let call = "socket(IPPROTO_MPTCP)";
            refused.push(BindError { call, error });
            open(family, None)
        }
        result => result,
    }
}

/// Returns whether socket(2) refused the protocol, rather than the socket.
fn is_unsupported(error: &io::Error) -> bool {
    let refusals = [libc::EPROTONOSUPPORT, libc::ENOPROTOOPT, libc::EINVAL];
    error
        .raw_os_error()
        .is_some_and(|errno| refusals.contains(&errno))
}

fn configure(
    socket: &OwnedFd,
    address: &ListenAddr,
    options: &SocketOptions,
    refused: &mut Vec<BindError>,
) {
    let mut note = |call: &'static str, result: io::Result<()>| {
        if let Err(error) = result {
            refused.push(BindError { call, error });
        }
    };
    if let Some(bytes) = options.rcvbuf {
        let result = sockopt::set_socket_recv_buffer_size(socket, bytes as usize);
        note("setsockopt(SO_RCVBUF)", result.map_err(io::Error::from));
    }
    if let Some(bytes) = options.sndbuf {
        let result = sockopt::set_socket_send_buffer_size(socket, bytes as usize);
        note("setsockopt(SO_SNDBUF)", result.map_err(io::Error::from));
    }
    if matches!(address, ListenAddr::Unix(_)) {
        return;
    }
    if let Some(keepalive) = options.keepalive {
        note("setsockopt(SO_KEEPALIVE)", set_keepalive(socket, keepalive));
    }
    // Accepted sockets inherit it, which saves a call a connection.
    let result = sockopt::set_tcp_nodelay(socket, true);
    note("setsockopt(TCP_NODELAY)", result.map_err(io::Error::from));
    if let Some(queue) = options.fastopen {
        let result = set_tcp_fastopen(socket, queue);
        note("setsockopt(TCP_FASTOPEN)", result);
    }
    let seconds = if options.deferred { DEFER_ACCEPT_S } else { 0 };
    let result = set_tcp_defer_accept(socket, seconds);
    note("setsockopt(TCP_DEFER_ACCEPT)", result);
}

fn set_keepalive(socket: &OwnedFd, keepalive: KeepAlive) -> io::Result<()> {
    let seconds = |s: u32| Duration::from_secs(u64::from(s));
    sockopt::set_socket_keepalive(socket, keepalive.on)?;
    if let Some(idle_s) = keepalive.idle_s {
        sockopt::set_tcp_keepidle(socket, seconds(idle_s))?;
    }
    if let Some(interval_s) = keepalive.interval_s {
        sockopt::set_tcp_keepintvl(socket, seconds(interval_s))?;
    }
    if let Some(count) = keepalive.count {
        sockopt::set_tcp_keepcnt(socket, count)?;
    }
    Ok(())
}

/// Everybody may connect, as nginx has it.
const UNIX_SOCKET_MODE: u32 = 0o666;

/// Time limit of a deferred connection's first byte: nginx's one second.
const DEFER_ACCEPT_S: i32 = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;
    use sys::socket;

    fn loopback(port: u16) -> ListenAddr {
        ListenAddr::Inet(SocketAddr::from(([127, 0, 0, 1], port)))
    }

    fn port_of(socket: &OwnedFd) -> u16 {
        let address = socket::local_addr(socket).expect("a socket");
        address.expect("an inet socket").port()
    }

    #[test]
    fn accepted_socket_inherits_nodelay() {
        let options = SocketOptions {
            deferred: true,
            fastopen: Some(16),
            rcvbuf: Some(65_536),
            keepalive: Some(KeepAlive {
                on: true,
                idle_s: Some(60),
                interval_s: None,
                count: Some(3),
            }),
            ..SocketOptions::default()
        };
        let bound = bind(&loopback(0), &options, Sharing::AsConfigured).expect("bind");
        assert!(bound.refused.is_empty(), "{:?}", bound.refused);
        let plain = SocketOptions::default();
        assert!(reconfigure(&bound.socket, &loopback(0), &plain).is_empty());
        let port = port_of(&bound.socket);
        let _client = TcpStream::connect(("127.0.0.1", port)).expect("connect");
        let (socket, _) = socket::accept(&bound.socket).expect("accept");
        assert!(sockopt::tcp_nodelay(&socket).expect("TCP"));
    }

    #[test]
    fn taken_address_is_eaddrinuse_of_bind() {
        let taken = TcpListener::bind("127.0.0.1:0").expect("bind");
        let port = taken.local_addr().expect("address").port();
        let error = bind(
            &loopback(port),
            &SocketOptions::default(),
            Sharing::AsConfigured,
        )
        .expect_err("taken");
        assert_eq!(error.call, "bind()");
        assert_eq!(error.error.raw_os_error(), Some(libc::EADDRINUSE));
        let shown = "bind() failed (98: Address already in use)";
        assert_eq!(error.to_string(), shown);
    }

    #[test]
    fn reuseport_binds_once_a_thread() {
        let options = SocketOptions {
            reuseport: true,
            ..SocketOptions::default()
        };
        let first = bind(&loopback(0), &options, Sharing::AsConfigured).expect("bind");
        let port = port_of(&first.socket);
        bind(&loopback(port), &options, Sharing::AsConfigured).expect("bind again");
        bind(
            &loopback(port),
            &SocketOptions::default(),
            Sharing::AsConfigured,
        )
        .expect_err("not shared");
    }

    #[test]
    fn a_protocol_that_the_kernel_lacks_is_told_from_other_failures() {
        for errno in [libc::EPROTONOSUPPORT, libc::ENOPROTOOPT, libc::EINVAL] {
            assert!(is_unsupported(&io::Error::from_raw_os_error(errno)));
        }
        assert!(!is_unsupported(&io::Error::from_raw_os_error(libc::EMFILE)));
    }

    #[test]
    fn multipath_listens_with_or_without_the_kernels_help() {
        let options = SocketOptions {
            multipath: true,
            ..SocketOptions::default()
        };
        let bound = bind(&loopback(0), &options, Sharing::AsConfigured).expect("bind");
        let lacks = bound.refused.iter().any(|refused| {
            assert_eq!(refused.call, "socket(IPPROTO_MPTCP)");
            true
        });
        assert_eq!(socket::is_multipath(&bound.socket), !lacks);
        let port = port_of(&bound.socket);
        let _client = TcpStream::connect(("127.0.0.1", port)).expect("connect");
        let (socket, _) = socket::accept(&bound.socket).expect("accept");
        assert!(sockopt::tcp_nodelay(&socket).expect("TCP"));
    }

    #[test]
    fn a_socket_of_another_protocol_takes_the_place_of_one_that_allows_it() {
        let plain = bind(
            &loopback(0),
            &SocketOptions::default(),
            Sharing::AsConfigured,
        );
        let plain = plain.expect("bind");
        let address = loopback(port_of(&plain.socket));
        let options = SocketOptions {
            multipath: true,
            ..SocketOptions::default()
        };
        bind(&address, &options, Sharing::Replaces).expect_err("the first one is alone");
        allow_sharing(&plain.socket).expect("SO_REUSEPORT");
        bind(&address, &options, Sharing::AsConfigured).expect_err("the second one does not share");
        bind(&address, &options, Sharing::Replaces).expect("both share");
    }

    #[test]
    fn reuseport_can_be_added_to_a_socket_that_listens() {
        let alone = bind(
            &loopback(0),
            &SocketOptions::default(),
            Sharing::AsConfigured,
        )
        .expect("bind");
        let port = port_of(&alone.socket);
        let options = SocketOptions {
            reuseport: true,
            ..SocketOptions::default()
        };
        bind(&loopback(port), &options, Sharing::AsConfigured).expect_err("bound alone");
        allow_sharing(&alone.socket).expect("sharing");
        bind(&loopback(port), &options, Sharing::AsConfigured).expect("bind again");
    }

    #[test]
    fn wider_address_listens_beside_a_narrower_one_and_then_alone() {
        let plain = SocketOptions::default();
        let narrow = bind(&loopback(0), &plain, Sharing::AsConfigured).expect("bind");
        let port = port_of(&narrow.socket);
        let wide = SocketAddr::from(([0, 0, 0, 0], port));
        bind_beside(wide, &plain).expect_err("the other one does not share");
        allow_sharing(&narrow.socket).expect("sharing");
        let beside = bind_beside(wide, &plain).expect("bind");
        // A client that connects before it listens is queued at the other one.
        let _early = TcpStream::connect(("127.0.0.1", port)).expect("connect");
        begin(&beside.socket, &plain).expect("listen");
        socket::divert_new_connections(&narrow.socket).expect("diverted");
        let _late = TcpStream::connect(("127.0.0.1", port)).expect("connect");
        socket::accept(&narrow.socket).expect("the early one");
        socket::accept(&narrow.socket).expect_err("no other");
        socket::accept(&beside.socket).expect("the late one");
        drop(narrow);
        bind(&ListenAddr::Inet(wide), &plain, Sharing::AsConfigured).expect_err("in use");
    }

    #[test]
    fn socket_of_the_owner_is_never_open_to_others() {
        let path = std::env::temp_dir().join(format!("firstbyte-owner-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let options = SocketOptions {
            access: UnixAccess::Owner,
            ..SocketOptions::default()
        };
        // It does not listen yet, so no client can have been there before the mode was set.
        let bound = bind_only(
            &ListenAddr::Unix(path.clone()),
            &options,
            Sharing::AsConfigured,
        );
        let _bound = bound.expect("bind");
        let file = std::fs::metadata(&path).expect("a socket");
        assert_eq!(file.permissions().mode() & 0o777, 0o600);
        std::fs::remove_file(&path).expect("remove");
    }

    #[test]
    fn unix_socket_is_open_to_everybody() {
        let path = std::env::temp_dir().join(format!("firstbyte-listen-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let address = ListenAddr::Unix(path.clone());
        let bound = bind(&address, &SocketOptions::default(), Sharing::AsConfigured).expect("bind");
        assert!(bound.refused.is_empty());
        let mode = std::fs::metadata(&path)
            .expect("a socket")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, UNIX_SOCKET_MODE);
        UnixStream::connect(&path).expect("connect");
        std::fs::remove_file(&path).expect("remove");
    }
}
