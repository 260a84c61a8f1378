//! Addresses that an emulated link carries: those of IPv4.
//!
//! The network at the client's end has no IPv6. A connection to such an address is refused there, whatever the server does.

use std::net::SocketAddr;

use lab::client::Url;

/// The addresses of a URL's host that a link carries, one at least, in the system's order.
///
/// # Errors
/// A sentence: the host has none, or is unknown.
pub(super) fn carried(url: &Url) -> Result<Vec<SocketAddr>, String> {
    let all = url.addresses()?;
    // An address such as ::ffff:127.0.0.1 is an IPv4 address.
    let is_carried = |addr: &&SocketAddr| addr.ip().to_canonical().is_ipv4();
    let found: Vec<SocketAddr> = all.iter().filter(is_carried).copied().collect();
    match (found.is_empty(), all.first()) {
        (true, Some(first)) => Err(uncarried(&url.authority, &first.ip().to_string())),
        _ => Ok(found),
    }
}

/// Why a link cannot carry requests to a URL, if its host is known.
pub(super) fn refused(url: &Url) -> Option<String> {
    // Browsers resolve names unknown to the system, such as those below localhost.
    url.addresses().ok().and_then(|_| carried(url).err())
}

/// A remark about a command with a URL that has an address of IPv6.
pub(super) fn remark(words: &[impl AsRef<str>]) -> Option<String> {
    let word = words.iter().map(AsRef::as_ref);
    let mut addresses = word.filter_map(|word| word.split_once("://[")?.1.split_once(']'));
    addresses
        .next()
        .map(|(ip, _)| format!("{CARRIES}: [{ip}] cannot be reached over it"))
}

fn uncarried(authority: &str, ip: &str) -> String {
    format!("{CARRIES}, and {authority} has {ip}; an address of IPv4 is needed, such as 127.0.0.1")
}

const CARRIES: &str = "an emulated link carries IPv4 alone";

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Vec<SocketAddr>, String> {
        carried(&Url::parse(text).expect("a URL"))
    }

    #[test]
    fn only_addresses_of_ipv4_are_carried() {
        let addr = |text: &str| text.parse::<SocketAddr>().expect("an address");
        assert_eq!(of("http://127.0.0.1:81/"), Ok(vec![addr("127.0.0.1:81")]));
        let mapped = addr("[::ffff:127.0.0.1]:80");
        assert_eq!(of("http://[::ffff:127.0.0.1]/"), Ok(vec![mapped]));
        let why = of("https://[::1]:8443/").expect_err("it is refused");
        let told = "an emulated link carries IPv4 alone, and [::1]:8443 has ::1; \
                    an address of IPv4 is needed, such as 127.0.0.1";
        assert_eq!(why, told);
        let refused = |text| refused(&Url::parse(text).expect("a URL"));
        assert_eq!(refused("https://[::1]:8443/").as_deref(), Some(told));
        assert_eq!(refused("http://a.invalid/"), None);
    }

    #[test]
    fn a_command_with_an_address_of_ipv6_is_remarked() {
        let told = remark(&["curl", "-o", "x", "http://[::1]:80/"]);
        assert!(told.is_some_and(|told| told.ends_with("[::1] cannot be reached over it")));
        assert_eq!(remark(&["curl", "http://localhost/[x]", "[::1]"]), None);
    }
}
