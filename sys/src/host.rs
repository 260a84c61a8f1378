//! Hosts by name, as the system resolves them: files, DNS and other sources of `nsswitch.conf`.
//!
//! It blocks, so only code that reads a configuration may use it, never a serving thread. IPv6 addresses are
//! returned only if the machine has an IPv6 address, IPv4 ones likewise, so that a server does not listen on an
//! unavailable family. Source: getaddrinfo(3), `AI_ADDRCONFIG`.

use std::ffi::CString;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The addresses of a host in the system's order.
///
/// # Errors
/// `NotFound` if there is no such host or it cannot be resolved; `InvalidInput` if `host` holds a NUL.
pub fn addresses(host: &str) -> io::Result<Vec<IpAddr>> {
    let host = CString::new(host)?;
    // SAFETY: an addrinfo of zeroes is a value of its type: null pointers and numbers.
    let mut hints: libc::addrinfo = unsafe { std::mem::zeroed() };
    hints.ai_family = libc::AF_UNSPEC;
    // Otherwise each address would be returned once for each type of socket.
    hints.ai_socktype = libc::SOCK_STREAM;
    hints.ai_flags = libc::AI_ADDRCONFIG;
    let mut list = std::ptr::null_mut();
    // SAFETY: `host` ends with a NUL, `hints` and `list` are valid for the call.
    let error = unsafe {
        libc::getaddrinfo(
            host.as_ptr(),
            std::ptr::null(),
            &raw const hints,
            &raw mut list,
        )
    };
    if error != 0 {
        return Err(io::ErrorKind::NotFound.into());
    }
    let mut found = Vec::new();
    let mut next = list;
    while !next.is_null() {
        // SAFETY: the call succeeded, so the list and its contents are valid until it is freed.
        let entry = unsafe { &*next };
        // SAFETY: as above; `ai_family` is the family of the address at `ai_addr`.
        found.extend(unsafe { address(entry) });
        next = entry.ai_next;
    }
    // SAFETY: the list is from getaddrinfo, is freed once, and has no remaining references.
    unsafe { libc::freeaddrinfo(list) };
    Ok(found)
}

/// The address of an entry, if its family is supported.
///
/// # Safety
/// `ai_addr` must point to an address of the family in `ai_family`.
unsafe fn address(entry: &libc::addrinfo) -> Option<IpAddr> {
    match entry.ai_family {
        libc::AF_INET => {
            // SAFETY: the caller guarantees this type of the target; the copy needs no alignment.
            let socket: libc::sockaddr_in =
                unsafe { entry.ai_addr.cast::<libc::sockaddr_in>().read_unaligned() };
            let octets = socket.sin_addr.s_addr.to_ne_bytes();
            Some(Ipv4Addr::from(octets).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let socket: libc::sockaddr_in6 =
                unsafe { entry.ai_addr.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(Ipv6Addr::from(socket.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_its_own_host() {
        let found = addresses("127.0.0.1").expect("an address");
        assert_eq!(found, [IpAddr::from([127, 0, 0, 1])]);
    }

    #[test]
    fn localhost_is_this_machine() {
        let found = addresses("localhost").expect("every system knows it");
        assert!(
            found.iter().all(IpAddr::is_loopback) && !found.is_empty(),
            "{found:?}"
        );
    }

    #[test]
    fn what_no_host_can_be_is_not_found() {
        // A label of 64 bytes, which is refused before any query.
        let name = format!("{}.invalid", "a".repeat(64));
        let error = addresses(&name).expect_err("no host");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let error = addresses("a\0b").expect_err("no name");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
