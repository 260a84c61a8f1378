//! The only clock, sockets, files, threads and processes of firstbyte.

pub mod bundle;
pub mod inbox;
pub mod io;
pub mod listen;
pub mod sys;
pub mod worker;
