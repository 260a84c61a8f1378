//! Stories of one connection: the client's input and its times, the wire after each turn of the loop, and the log.
//!
//! The seeded simulation covers more cases, but checks them by rules. A story checks one case with its bytes, times and
//! limits. Absent: TLS of clients.

#[path = "turns/bodies.rs"]
mod bodies;
#[path = "turns/detached.rs"]
mod detached;
#[path = "turns/disk.rs"]
mod disk;
#[path = "turns/duplex.rs"]
mod duplex;
#[path = "turns/ends.rs"]
mod ends;
#[path = "turns/frames.rs"]
mod frames;
#[path = "turns/probe.rs"]
mod probe;
#[path = "turns/proxy_handler.rs"]
mod proxy_handler;
#[path = "turns/queue.rs"]
mod queue;
#[path = "turns/reload.rs"]
mod reload;
#[path = "behind/secure.rs"]
mod secure;
#[path = "turns/server_streams.rs"]
mod server_streams;
#[path = "turns/server_tls.rs"]
mod server_tls;
#[path = "turns/server_uploads.rs"]
mod server_uploads;
#[path = "turns/servers.rs"]
mod servers;
#[path = "turns/site.rs"]
mod site;
#[path = "turns/streams.rs"]
mod streams;
#[path = "turns/tunnels.rs"]
mod tunnels;
#[path = "turns/wakes.rs"]
mod wakes;
#[path = "turns/write_order.rs"]
mod write_order;
