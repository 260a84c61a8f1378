//! Listening sockets inherited by this process, by number.
//!
//! A program that starts a server with open sockets passes their numbers in the environment, which is untrusted
//! input. A number is accepted only for a socket that an earlier program left open on exec: everything that this
//! process opens is closed on exec, so its own descriptors are never taken. Absent: reading the environment.
//! Source: nginx's `NGINX` variable, sd_listen_fds(3).

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::io::FdFlags;
use rustix::net::{AddressFamily, SocketAddrAny, SocketAddrUnix, SocketType, sockopt};

use super::check;
use super::socket::is_multipath;

/// Local address of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalAddr {
    /// An IPv4 or IPv6 address and port.
    Inet(SocketAddr),
    /// The path of a UNIX-domain socket.
    Unix(PathBuf),
}

/// A socket left open for this process.
#[derive(Debug)]
pub struct Inherited {
    /// The socket, closed on exec from now on.
    pub socket: OwnedFd,
    /// Its local address; `None` for a family unknown to `listen`, or a socket without a path.
    pub address: Option<LocalAddr>,
    /// It takes stream connections.
    pub listens: bool,
    /// Others may bind its address (SO_REUSEPORT).
    pub reuseport: bool,
    /// It speaks Multipath TCP.
    pub multipath: bool,
}

/// Takes over the socket with this number; a listening one becomes non-blocking.
///
/// # Errors
/// EBADF for a number that is not open, is a standard stream or was opened by this process; ENOTSOCK for a
/// descriptor that is no socket. Neither is touched.
pub fn adopt(number: i32) -> io::Result<Inherited> {
    // SAFETY: the call takes numbers, and one that is not open is an error.
    let flags = check(unsafe { libc::fcntl(number, libc::F_GETFD) })?;
    if number <= libc::STDERR_FILENO || flags & libc::FD_CLOEXEC != 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    let mut kind: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: both pointers are valid for the call, and the length is that of `kind`.
    check(unsafe {
        libc::getsockopt(
            number,
            libc::SOL_SOCKET,
            libc::SO_TYPE,
            (&raw mut kind).cast(),
            &raw mut length,
        )
    })?;
    // SAFETY: the descriptor is open and has no owner in this process: it is no standard stream, and all
    // descriptors opened here are closed on exec. The flag set next prevents a second adoption.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    rustix::io::fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
    let listens = sockopt::socket_acceptconn(&socket).unwrap_or(false)
        && sockopt::socket_type(&socket)? == SocketType::STREAM;
    if listens {
        rustix::io::ioctl_fionbio(&socket, true)?;
    }
    Ok(Inherited {
        address: address_of(&socket)?,
        listens,
        reuseport: sockopt::socket_reuseport(&socket).unwrap_or(false),
        multipath: is_multipath(&socket),
        socket,
    })
}

fn address_of(socket: impl AsFd) -> io::Result<Option<LocalAddr>> {
    let address: SocketAddrAny = rustix::net::getsockname(socket)?;
    Ok(match address.address_family() {
        AddressFamily::INET | AddressFamily::INET6 => {
            SocketAddr::try_from(address).ok().map(LocalAddr::Inet)
        }
        AddressFamily::UNIX => SocketAddrUnix::try_from(address)
            .ok()
            .as_ref()
            .and_then(SocketAddrUnix::path_bytes)
            .map(|path| LocalAddr::Unix(PathBuf::from(std::ffi::OsStr::from_bytes(path)))),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::net::{TcpListener, UdpSocket};
    use std::os::fd::{AsRawFd, IntoRawFd};
    use std::os::unix::net::UnixListener;

    /// A descriptor left open on exec, by number.
    fn left_open(fd: impl Into<OwnedFd>) -> i32 {
        let fd = fd.into();
        rustix::io::fcntl_setfd(&fd, FdFlags::empty()).expect("an open descriptor");
        fd.into_raw_fd()
    }

    #[test]
    fn listening_socket_is_taken_once_with_its_address() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let address = listener.local_addr().expect("an address");
        let number = left_open(listener);
        let taken = adopt(number).expect("a socket");
        assert_eq!(taken.address, Some(LocalAddr::Inet(address)));
        assert!(taken.listens && !taken.reuseport && !taken.multipath);
        let again = adopt(number).expect_err("it is owned now");
        assert_eq!(again.raw_os_error(), Some(libc::EBADF));
        let waiting = crate::socket::accept(&taken.socket).expect_err("nobody connects");
        assert_eq!(waiting.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn unix_socket_has_its_path() {
        let path = std::env::temp_dir().join(format!("firstbyte-inherit-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let number = left_open(UnixListener::bind(&path).expect("bind"));
        let taken = adopt(number).expect("a socket");
        assert_eq!(taken.address, Some(LocalAddr::Unix(path.clone())));
        std::fs::remove_file(&path).expect("remove");
    }

    #[test]
    fn socket_that_does_not_listen_is_told() {
        let datagrams = left_open(UdpSocket::bind("127.0.0.1:0").expect("bind"));
        assert!(!adopt(datagrams).expect("a socket").listens);
        let (one, _other) = crate::fdpass::pair().expect("a pair");
        let unnamed = adopt(left_open(one)).expect("a socket");
        assert_eq!((unnamed.address, unnamed.listens), (None, false));
    }

    #[test]
    fn everything_else_is_left_alone() {
        let code = |number| adopt(number).expect_err("not to be taken").raw_os_error();
        assert_eq!(code(libc::STDIN_FILENO), Some(libc::EBADF));
        assert_eq!(code(1_000_000), Some(libc::EBADF));
        assert_eq!(code(-1), Some(libc::EBADF));
        let own = TcpListener::bind("127.0.0.1:0").expect("bind");
        assert_eq!(code(own.as_raw_fd()), Some(libc::EBADF));
        let file = left_open(File::open("/dev/null").expect("open"));
        assert_eq!(code(file), Some(libc::ENOTSOCK));
        // SAFETY: `left_open` gave the number up, and it has no other owner.
        drop(unsafe { OwnedFd::from_raw_fd(file) });
    }
}
