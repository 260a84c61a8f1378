//! Health of servers: whether a server is excluded from the choice for a while.

pub mod active;
pub mod passive;
