//! Tests of limits: connections, descriptors, memory, disks, regular expressions.

#[path = "../common/tls_client.rs"]
mod tls_client;

mod bad_input;
mod descriptors;
mod disk_full;
mod match_limits;
mod memory_bounds;
mod worker_connections;
mod worker_memory_limit;
