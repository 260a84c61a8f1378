//! The only clock, sockets, files, threads and processes of firstbyte.

#![forbid(unsafe_code)]

pub mod bundle;
pub mod inbox;
pub mod io;
pub mod listen;
mod pool;
pub mod worker;
