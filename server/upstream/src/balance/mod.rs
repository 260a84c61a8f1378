//! Methods of choosing a server of a group, one file each.

pub mod round_robin;
mod tournament;
