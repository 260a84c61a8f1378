//! TUN devices: a process reads and writes their packets.
//!
//! The server needs none; an emulated link (`link/`) is made of two. Without IFF_VNET_HDR the kernel hands
//! over packets as they would be on a wire: cut to the MTU, checksums filled in. Source: the kernel's
//! Documentation/networking/tuntap.rst.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags};

use super::check;
use super::device::named;

/// Makes the TUN device `name` in the network namespace of the calling thread, and returns it with its name; it is
/// removed with its descriptor, which is non-blocking. Each read and each write is one IP packet, without a header.
/// The kernel replaces a `%d` in the name by the lowest free number.
///
/// # Errors
/// `NotFound` without /dev/net/tun, `PermissionDenied` if it may not be opened or without CAP_NET_ADMIN,
/// `InvalidInput` for an invalid device name (1 to 15 bytes, no NUL).
pub fn open(name: &str) -> io::Result<(OwnedFd, String)> {
    let mut request = named(name)?;
    let mode = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let tun = rustix::fs::open("/dev/net/tun", mode, Mode::empty())?;
    // The flags fit: IFF_TUN is 0x0001 and IFF_NO_PI 0x1000.
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the descriptor is open, and TUNSETIFF reads and writes one ifreq, which is valid for the call.
    check(unsafe { libc::ioctl(tun.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })?;
    let given = request.ifr_name.iter().map(|byte| *byte as u8);
    let given: Vec<u8> = given.take_while(|byte| *byte != 0).collect();
    Ok((tun, String::from_utf8_lossy(&given).into_owned()))
}
