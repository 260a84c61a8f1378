//! Names to addresses: DNS messages and a resolver, client role.
//!
//! # Contract
//!
//! One caller drives a [`Resolver`] with these methods, in any order. None of them blocks or fails:
//!
//! - [`Resolver::ask`] returns a [`Key`]. One [`Event`] with that key follows: at once if the answer is cached,
//!   else on a server's answer or on timeout. [`Resolver::cancel`] withdraws the question, and no event follows.
//! - Queries leave by [`Resolver::transmit`], which returns the server and the transport; servers are numbered as
//!   the caller configured them.
//! - Messages of servers enter by [`Resolver::receive`], one at a time;
//!   [`Frames`] cuts a TCP stream into messages. A refused message is a value
//!   for the log and changes nothing.
//! - [`Resolver::unreachable`] reports an unreachable server.
//! - Time is an argument, in milliseconds that never go back: [`Resolver::deadline`] is the time of the next call
//!   of [`Resolver::expire`].
//! - Randomness is an argument, too: `ask` needs some to spread load,
//!   `transmit` for the number of a query, which must be unpredictable.
//!   The caller's sockets add a source port to it.
//!
//! After any of these calls there may be events and questions to fetch.
//!
//! # Behaviour
//!
//! As in nginx, A and AAAA are queried together, and an error of either is that of the name. Servers take turns; a
//! query without answer within 5 s goes to the next server. A truncated answer is queried again over TCP. Aliases
//! are followed 50 deep. Errors are not cached; answers are cached for their time to live, and dropped if unused
//! for 30 s. Several waiters for one name share one query.
//!
//! Stricter than nginx: an answer counts only from a queried server, and compression pointers lead back only.
//! Records count only for the name in the question and its aliases. Names, queries and waiters are limited in
//! number.
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
