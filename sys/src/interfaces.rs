//! Addresses of this machine's network interfaces.
//!
//! Source: getifaddrs(3).

use std::net::Ipv6Addr;

/// Returns whether an interface has an IPv6 address of global scope; false if the kernel does not report it.
///
/// The call needs no /proc. It opens a netlink socket and costs some microseconds an address.
#[must_use]
pub fn have_global_ipv6() -> bool {
    let mut list = std::ptr::null_mut();
    // SAFETY: the pointer is valid for the call, which sets it to a list of its own.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return false;
    }
    let mut found = false;
    let mut next = list;
    // SAFETY: the list is the library's, of valid entries that end with a null pointer; it is freed below.
    while let Some(entry) = unsafe { next.as_ref() } {
        let family = libc::sa_family_t::try_from(libc::AF_INET6).ok();
        // SAFETY: an address is null or valid.
        let address = unsafe { entry.ifa_addr.as_ref() };
        if address.map(|address| address.sa_family) == family {
            // SAFETY: an address of this family is a sockaddr_in6. It is copied, since its alignment is not
            // guaranteed.
            let v6 = unsafe { entry.ifa_addr.cast::<libc::sockaddr_in6>().read_unaligned() };
            found |= is_global(Ipv6Addr::from(v6.sin6_addr.s6_addr));
        }
        next = entry.ifa_next;
    }
    // SAFETY: the list is from getifaddrs and is no longer used.
    unsafe { libc::freeifaddrs(list) };
    found
}

/// Returns whether the kernel assigns global scope to an address. Source: Linux, `ipv6_addr_scope`.
fn is_global(address: Ipv6Addr) -> bool {
    let is_site_local = address.segments()[0] & 0xffc0 == 0xfec0;
    !address.is_loopback() && !address.is_unicast_link_local() && !is_site_local
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_reach_no_other_network_do_not_count() {
        let all = [
            "::1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "2001:db8::1",
            "fd00::1",
        ];
        let global = all.map(|text| is_global(text.parse().expect("an address")));
        assert_eq!(global, [false, false, false, false, true, true]);
    }

    #[test]
    fn the_kernels_list_has_the_same_answer() {
        let list = std::fs::read_to_string("/proc/net/if_inet6").unwrap_or_default();
        let scope = |line: &str| line.split_ascii_whitespace().nth(3) == Some("00");
        assert_eq!(have_global_ipv6(), list.lines().any(scope));
    }
}
