//! Protocols and exchanges of a connection as data, which connections and the memory of the thread share.
//!
//! - [`serving`]: the exchanges of a connection, and the queue of their output;
//! - [`mux_engine`]: the engines of protocols with streams;
//! - [`outliving`]: exchanges that outlive a stream or a client;
//! - [`pools`]: unused memory of a thread.
//!
//! Absent: the steps of a connection, which are in `conn`.

pub(crate) mod mux_engine;
pub(crate) mod outliving;
pub mod pools;
pub mod serving;
