//! Questions to a resolver and its events.

use core::fmt;
use core::net::IpAddr;

use super::name::Name;
use super::slab::Key;

/// Type of the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject<'a> {
    /// The addresses of a host.
    Addresses(&'a [u8]),
    /// The addresses of the hosts that offer a service, by SRV records: `http` is short for `_http._tcp`, a name
    /// with a dot is taken verbatim.
    Service {
        /// The service.
        service: &'a [u8],
        /// The domain that offers it.
        name: &'a [u8],
    },
    /// The name of an address, by PTR records.
    Pointer(IpAddr),
}

/// Result of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// It is answered.
    Resolved {
        /// Key of the lookup.
        key: Key,
        /// The answer.
        answer: Answer,
        /// End of its validity, milliseconds.
        valid_until_ms: u64,
    },
    /// There is no answer.
    Failed {
        /// Key of the lookup.
        key: Key,
        /// Reason of the failure.
        why: Failure,
        /// Time before which a retry is useless.
        valid_until_ms: u64,
    },
}

impl Event {
    /// Key of the question.
    #[must_use]
    pub fn key(&self) -> Key {
        match self {
            Self::Resolved { key, .. } | Self::Failed { key, .. } => *key,
        }
    }
}

/// An answer; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Addresses, to be tried in this order.
    Addresses(Vec<IpAddr>),
    /// Addresses that offer a service, to be tried in this order.
    Services(Vec<ServiceAddress>),
    /// The name of an address.
    Name(Name),
}

/// An address that offers a service.
///
/// Source: RFC 2782.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAddress {
    /// The address.
    pub address: IpAddr,
    /// The port.
    pub port: u16,
    /// Lower ones are to be used first.
    pub priority: u16,
    /// The share among the hosts of one priority, at least 1.
    pub weight: u16,
    /// The name that the record had.
    pub host: Name,
}

/// Reason for a missing answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// SERVFAIL.
    ServerFailure,
    /// NXDOMAIN, no address, an invalid name, or endless aliases.
    NotFound,
    /// NOTIMP.
    Unimplemented,
    /// REFUSED.
    Refused,
    /// No server answered in time.
    TimedOut,
    /// [`ASKED_MAX`](super::ASKED_MAX) or [`WAITING_MAX`](super::WAITING_MAX) is reached.
    TooMany,
    /// No servers are configured.
    NoServers,
    /// None of the servers could be reached.
    Unreachable,
}

impl Failure {
    /// Number in nginx's messages, as in `www could not be resolved (3: Host not found)`.
    #[must_use]
    pub fn code(self) -> i32 {
        match self {
            Self::ServerFailure => 2,
            Self::NotFound => 3,
            Self::Unimplemented => 4,
            Self::Refused => 5,
            Self::TimedOut => ETIMEDOUT,
            Self::TooMany | Self::NoServers | Self::Unreachable => -1,
        }
    }

    /// Failure of a name for a response code; `None` for success and for codes that do not concern the name.
    pub(super) fn of_rcode(code: u8) -> Option<Self> {
        match code {
            2 => Some(Self::ServerFailure),
            3 => Some(Self::NotFound),
            4 => Some(Self::Unimplemented),
            5 => Some(Self::Refused),
            _ => None,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut => "Operation timed out",
            Self::TooMany => "Too many names are being resolved",
            Self::NoServers => "No name servers defined",
            Self::Unreachable => "No name server can be reached",
            other => rcode_text(other.code() as u8),
        })
    }
}

/// The words for a response code.
pub(super) fn rcode_text(code: u8) -> &'static str {
    match code {
        1 => "Format error",
        2 => "Server failure",
        3 => "Host not found",
        4 => "Unimplemented",
        5 => "Operation refused",
        _ => "Unknown error",
    }
}

/// A server, and how it is talked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The number of the server.
    pub server: usize,
    /// Datagrams or a stream.
    pub transport: Transport,
}

/// Transport of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A message is a datagram.
    Udp,
    /// Messages in sequence, each after its length.
    Tcp,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Udp => "UDP",
            Self::Tcp => "TCP",
        })
    }
}

/// Linux's number, shown by nginx for a timeout.
const ETIMEDOUT: i32 = 110;
