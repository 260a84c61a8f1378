//! Addresses of hosts, and how long looking them up takes.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::failure::{Failure, FailureCause};
use crate::client::{Url, now_ns};

/// The addresses of a URL's server in the system's order, one at least, and how long the system took to look them up. An
/// address in place of a name takes no time.
///
/// # Errors
/// No address is known, or none was within the time.
pub fn resolve(url: &Url, timeout: Duration) -> Result<(Vec<SocketAddr>, Duration), Failure> {
    let unknown = |why| Failure::new(FailureCause::Name, why);
    if url.is_address() {
        return Ok((url.addresses().map_err(unknown)?, Duration::ZERO));
    }
    let (sender, receiver) = mpsc::channel();
    let (own, from) = (url.clone(), now_ns());
    // The system's call cannot be ended early: it is left behind where it takes too long.
    thread::spawn(move || {
        let found = own.addresses();
        let _ = sender.send((found, now_ns()));
    });
    let (found, to) = receiver.recv_timeout(timeout).map_err(|_| {
        let (host, seconds) = (&url.host, timeout.as_secs_f64());
        unknown(format!(
            "the addresses of the host \"{host}\" were not known within {seconds} s"
        ))
    })?;
    Ok((found.map_err(unknown)?, Duration::from_nanos(to - from)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(20);

    #[test]
    fn addresses_are_found_with_their_port() {
        let url = Url::parse("http://[::1]:81/").expect("a URL");
        let (found, took) = resolve(&url, TIMEOUT).expect("an address");
        assert_eq!(found, ["[::1]:81".parse().expect("an address")]);
        assert_eq!(took, Duration::ZERO);
        let url = Url::parse("http://localhost:82/").expect("a URL");
        let (found, took) = resolve(&url, TIMEOUT).expect("a known host");
        assert!(
            found
                .iter()
                .all(|one| one.ip().is_loopback() && one.port() == 82)
        );
        assert!(!found.is_empty() && took > Duration::ZERO);
    }

    #[test]
    fn a_host_without_an_address_is_named() {
        let url = Url::parse("http://a\u{0}b.invalid/").unwrap_or_else(|_| {
            // A name of more than 253 bytes is never looked up in DNS.
            Url::parse(&format!("http://{}/", "a.".repeat(200))).expect("a URL")
        });
        let failure = resolve(&url, TIMEOUT).expect_err("there is none");
        assert_eq!(failure.cause, FailureCause::Name);
        assert!(
            failure.message.contains("no address of the host"),
            "{failure}"
        );
    }

    #[test]
    fn a_slow_lookup_is_given_up() {
        let url = Url::parse("http://localhost/").expect("a URL");
        // An answer may be there before it is waited for.
        let failure = (0..1000).find_map(|_| resolve(&url, Duration::ZERO).err());
        let failure = failure.expect("no time");
        assert!(failure.message.contains("within 0 s"), "{failure}");
    }
}
