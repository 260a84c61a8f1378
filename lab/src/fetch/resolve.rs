//! Addresses of hosts, and the duration of their lookup.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::failure::{Failure, FailureCause};
use crate::client::{Url, now_ns};

/// A look-up of a URL's server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// Its addresses in the system's order, one at least.
    pub addresses: Vec<SocketAddr>,
    /// Duration of the lookup; 0 for an address.
    pub took: Duration,
}

impl Lookup {
    /// Looks up the server of a URL; the system sets the timeout.
    ///
    /// # Errors
    /// No address is known.
    pub fn of(url: &Url) -> Result<Self, Failure> {
        let from = now_ns();
        let addresses = url
            .addresses()
            .map_err(|why| Failure::new(FailureCause::Name, why))?;
        let took_ns = if url.is_address() { 0 } else { now_ns() - from };
        Ok(Self {
            addresses,
            took: Duration::from_nanos(took_ns),
        })
    }
}

/// A [`Lookup`] that is given up after a time.
///
/// # Errors
/// No address is known, or none was within the time.
pub fn resolve(url: &Url, timeout: Duration) -> Result<Lookup, Failure> {
    let (sender, receiver) = mpsc::channel();
    let asked = url.clone();
    // The system's call cannot be interrupted: after a timeout its thread goes on alone.
    thread::spawn(move || sender.send(Lookup::of(&asked)));
    receiver.recv_timeout(timeout).map_err(|_| {
        let message = format!(
            "the host \"{}\" was not resolved within {} s",
            url.host,
            timeout.as_secs_f64()
        );
        Failure::new(FailureCause::Name, message)
    })?
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(20);

    #[test]
    fn addresses_are_found_with_their_port() {
        let url = Url::parse("http://[::1]:81/").expect("a URL");
        let found = resolve(&url, TIMEOUT).expect("an address");
        assert_eq!(found.addresses, ["[::1]:81".parse().expect("an address")]);
        assert_eq!(found.took, Duration::ZERO);
        let url = Url::parse("http://localhost:82/").expect("a URL");
        let found = resolve(&url, TIMEOUT).expect("a known host");
        let is_own = |one: &SocketAddr| one.ip().is_loopback() && one.port() == 82;
        assert!(found.addresses.iter().all(is_own));
        assert!(!found.addresses.is_empty() && found.took > Duration::ZERO);
    }

    #[test]
    fn a_host_without_an_address_is_named() {
        let url = Url::parse("http://a\u{0}b.invalid/").unwrap_or_else(|_| {
            // The system rejects a name of more than 253 bytes without a DNS query.
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
