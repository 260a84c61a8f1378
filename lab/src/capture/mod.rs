//! Captures of packets: flows of TCP, what delayed them, and the packets that prove it.
//!
//! Bytes of a file enter by [`read`]: classic pcap and pcapng, from tcpdump, Wireshark or the emulated link. The file is cut
//! into packets (`file`), these into segments (`packet`, `tcp`), which belong to flows in sequence space (`collect`, `flow`). Of
//! packets that were captured more than once, one is kept (`copies`).
//! [`findings`] applies the doctor's rules. A capture is made anywhere between client and server: the times from that point to
//! either end are taken from the flows themselves (`paths`), and every rule allows for both. With the keys of a connection
//! ([`Capture::decrypt`]) its requests have names.
//!
//! Deliberately absent: fragments of IP, which TCP avoids; tunnels; UDP.
//! Sources: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng, RFC 9293, RFC 896 with RFC 1122 section 4.2.3.2, RFC 8446.

mod captured;
mod collect;
mod connect;
mod copies;
mod decrypt;
mod file;
mod finding;
mod flow;
mod frames;
mod handshake;
mod hello;
mod packet;
mod paths;
mod plain;
mod records;
mod requests;
mod roles;
mod stall;
mod stream;
mod tcp;
mod withheld;
mod writes;

#[cfg(test)]
pub(crate) mod tests;

pub use collect::{Capture, read};
pub use decrypt::KeyLog;
pub use finding::{coverage, findings};
#[cfg(test)]
pub(crate) use finding::{flights, hellos, opened, runs, slow_records, stalls};
pub use flow::{Flow, Segment, Side};
pub use requests::Counted;
pub use stall::Stall;
pub use withheld::note_withheld;
