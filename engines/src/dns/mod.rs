//! Names to addresses: DNS messages and a resolver, client role.
//!
//! # Contract
//!
//! A [`Resolver`] is driven by one caller, in any order of these, none of which
//! blocks or fails:
//!
//! - [`Resolver::ask`] returns a [`Key`]; one [`Event`] with that key follows,
//!   at once when the answer is known, else when a server has given it or the
//!   time is over. [`Resolver::cancel`] takes the question back, and no event
//!   follows.
//! - Questions leave by [`Resolver::transmit`], which says to which server and
//!   over what; servers are numbered as the caller configured them.
//! - Messages of servers enter by [`Resolver::receive`], one at a time;
//!   [`Frames`] cuts a TCP stream into messages. A refused message is a value
//!   for the log and changes nothing.
//! - [`Resolver::unreachable`] says that a server could not be reached.
//! - Time is an argument, in milliseconds that never go back:
//!   [`Resolver::deadline`] says when to call [`Resolver::expire`].
//! - Randomness is an argument, too: `ask` needs some to spread load,
//!   `transmit` for the number of a query, which must be unpredictable.
//!   The caller's sockets add a source port to it.
//!
//! After any of these calls there may be events and questions to fetch.
//!
//! # Behaviour
//!
//! As nginx: A and AAAA are asked for together and an error of either is that of the name; servers take turns; what is
//! not answered in 5 s goes to the next server; a truncated answer is asked for again over TCP; aliases are followed 50
//! deep; errors are not kept, answers for their time to live, and they are dropped when unused for 30 s. Several askers
//! of one name wait for one query.
//!
//! Stricter than nginx: an answer counts only from a server that was asked;
//! compression pointers lead back only; records count only for the name that
//! was asked for and what its aliases lead to; names, queries and askers are
//! limited in number.
//!
//! Absent: EDNS, DNSSEC, search lists, `/etc/hosts`, the server role.
//!
//! Source: RFC 1035, RFC 3596 (AAAA), RFC 2782 (SRV), RFC 7766 (TCP); nginx
//! documentation, `resolver`, `resolver_timeout`.

mod answer;
mod entry;
mod event;
mod invariants;
mod message;
mod name;
mod refused;
mod resolver;
mod service;
mod settings;
mod settle;
mod slab;
mod stream;
mod waiter;

#[cfg(test)]
mod tests;

pub use answer::{ADDRESSES_MAX, SERVICES_MAX};
pub use event::{Answer, Event, Failure, Route, ServiceAddress, Subject, Transport};
pub use message::UDP_MESSAGE_BYTES_MAX;
pub use name::{Name, POINTERS_MAX, TEXT_BYTES_MAX};
pub use refused::Refused;
pub use resolver::{ALIASES_MAX, ASKED_MAX, KEPT_MAX, Resolver, WAITING_MAX};
pub use settings::Settings;
pub use slab::Key;
pub use stream::Frames;
