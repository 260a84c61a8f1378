//! Captures of packets: TCP flows, causes of their delays, and the packets that prove them.
//!
//! Bytes of a file enter by [`read`]: classic pcap and pcapng, from tcpdump, Wireshark or the emulated link. The file is cut
//! into packets (`file`), then into segments (`packet`, `tcp`), which belong to flows in sequence space (`collect`, `flow`).
//! Packets that were captured more than once are deduplicated (`copies`).
//! [`findings`] applies the doctor's rules. A capture may be made anywhere between client and server. The times from that point
//! to both ends are measured from the flows (`paths`), and every rule allows for both. With the keys of a connection
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
#[cfg(test)]
pub(crate) use finding::{connects, flights, hellos, runs, slow_records, stalls};
pub use finding::{coverage, findings};
pub use flow::{Flow, Segment, Side};
pub use requests::Counted;
pub use stall::Stall;
pub use withheld::note_withheld;
