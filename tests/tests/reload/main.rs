//! Tests of the supervisor: reloads, signals, changes of the binary, sockets and files for workers.

#[path = "../common/tls_client.rs"]
mod tls_client;

mod changed_files;
mod clock_jumps;
mod control_messages;
mod daemon_start;
mod files_for_the_worker;
mod inherited_sockets;
mod listen_changes;
mod memory;
mod modes_of_files;
mod names_of_hosts;
mod service_manager;
mod signals_and_reloads;
mod stale_sockets;
mod unexpected_signals;
mod upgrade;
mod upgrade_nginx;
mod waiting_reloads;
mod without_proc;
mod worker_rights;
