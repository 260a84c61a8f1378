//! Health of servers: whether a server is left out of the choice for a while.

pub mod passive;
