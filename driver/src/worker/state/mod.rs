//! Protocols and exchanges of a connection, as data: rooms of connections and the memory of the thread share them.
//!
//! [`serving`] has the exchanges of a connection and the queue of their output, [`mux_engine`] the engines of protocols with
//! streams, [`detached`] the exchanges that outlive a stream or a client,
//! [`pools`] the unused memory of a thread. Absent: all that happens to them, which is in `conn`.

pub(crate) mod detached;
pub(crate) mod mux_engine;
pub mod pools;
pub mod serving;
