//! Network devices: their names as the kernel accepts them, and their TCP offloads.
//!
//! The server uses none of this: an emulated link (`link/`) names its devices and changes them, and a report of the
//! lab records the offloads of its measurement. They are read as whole features, as `ethtool -k` shows them.
//! Source: netdevice(7), ethtool(8), linux/ethtool.h.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::check;

/// Segmentation offloads of a device, or of the kernel before it; unknown if it reports none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offloads {
    /// TCP segmentation offload: the device cuts segments.
    pub tso: Option<bool>,
    /// Generic segmentation offload: the kernel cuts them, just before the device.
    pub gso: Option<bool>,
    /// Generic receive offload: the kernel merges segments on arrival.
    pub gro: Option<bool>,
}

/// Reads the offloads of a device in the calling thread's network; all are unknown if it does not exist.
#[must_use]
pub fn offloads(device: &str) -> Offloads {
    let is_on = |command| ask(device, command, 0).ok().map(|value| value != 0);
    Offloads {
        tso: is_on(ETHTOOL_GTSO),
        gso: is_on(ETHTOOL_GGSO),
        gro: is_on(ETHTOOL_GGRO),
    }
}

/// Switches generic segmentation offload of a device of the calling thread's network.
///
/// # Errors
/// There is no such device, the caller has no CAP_NET_ADMIN there, or the device does not support it.
pub fn set_segmentation_offload(device: &str, is_on: bool) -> io::Result<()> {
    ask(device, ETHTOOL_SGSO, is_on.into()).map(|_| ())
}

/// Argument of the kernel's interface for devices: `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// Sends a command of ethtool with its number to a device, and returns the number in the answer.
fn ask(device: &str, command: u32, data: u32) -> io::Result<u32> {
    let mut request = named(device)?;
    let mut value = Value { command, data };
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    let socket = any_socket()?;
    // SAFETY: the descriptor is open, and SIOCETHTOOL reads one ifreq, which is valid for the call. The commands
    // used here read and write one `ethtool_value` at its data pointer, which is valid for the call as well.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) })?;
    Ok(value.data)
}

/// A socket in the network of the calling thread, for requests about its devices.
fn any_socket() -> io::Result<OwnedFd> {
    let (family, kind) = (AddressFamily::INET, SocketType::DGRAM);
    Ok(socket_with(family, kind, SocketFlags::CLOEXEC, None)?)
}

/// A request that names a device; the rest is zero, the end of the name as well.
///
/// # Errors
/// `InvalidInput` for an invalid device name (1 to 15 bytes, no NUL).
pub(super) fn named(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: an ifreq is numbers, and a union of numbers and a pointer; zeroes are a value of each.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let fits = !name.is_empty() && name.len() < request.ifr_name.len() && !name.contains('\0');
    if !fits {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a device's name",
        ));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

// linux/ethtool.h.
const ETHTOOL_GTSO: u32 = 0x1e;
const ETHTOOL_GGSO: u32 = 0x23;
const ETHTOOL_SGSO: u32 = 0x24;
const ETHTOOL_GGRO: u32 = 0x2b;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::Network;

    #[test]
    fn names_have_one_to_fifteen_bytes() {
        for good in ["a", "fifteen-bytes-0"] {
            assert!(named(good).is_ok(), "{good}");
        }
        for bad in ["", "sixteen-bytes-00", "a\0b"] {
            let error = named(bad).err().map(|error| error.kind());
            assert_eq!(error, Some(io::ErrorKind::InvalidInput), "{bad:?}");
        }
    }

    #[test]
    fn a_device_that_is_not_there_has_no_offloads() {
        assert_eq!(offloads("nonesuch"), Offloads::default());
        assert_eq!(offloads("no name of a device"), Offloads::default());
    }

    const ETHTOOL_STSO: u32 = 0x1f;
    const ETHTOOL_SGRO: u32 = 0x2c;

    /// In a network namespace of its own, so that no other program is disturbed.
    #[test]
    fn offloads_are_those_that_are_switched_on() {
        let network = match Network::create() {
            Ok(network) => network,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return firstbyte_tests::skip::skip(&format!("no network of its own: {error}"));
            }
            Err(error) => panic!("no network of its own: {error}"),
        };
        let thread = std::thread::spawn(move || {
            network.enter().expect("it was made here");
            for bits in 0..8_u8 {
                let [tso, gso, gro] = [1, 2, 4].map(|bit| bits & bit != 0);
                for (command, on) in [(ETHTOOL_STSO, tso), (ETHTOOL_SGRO, gro)] {
                    ask("lo", command, on.into()).expect("whoever made a network may change it");
                }
                let set = set_segmentation_offload("lo", gso);
                set.expect("whoever made a network may change it");
                let expected = Offloads {
                    tso: Some(tso),
                    gso: Some(gso),
                    gro: Some(gro),
                };
                assert_eq!(offloads("lo"), expected);
            }
        });
        thread.join().expect("offloads are as they were set");
    }
}
