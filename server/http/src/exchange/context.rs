//! The context of handlers: clock, files and services of the thread.

use std::cell::Cell;

use server_base::clock::Clock;
use server_base::context::Env;
use server_base::files::Files;
use server_base::logs::Logs;
use server_upstream::connector::Connector;

use super::Queues;

/// The context that a handler gets with its exchange.
pub struct Ctx<'a> {
    /// The file system.
    pub files: &'a mut dyn Files,
    /// Connections to other servers.
    pub connector: &'a mut dyn Connector,
    /// The time.
    pub clock: &'a Clock,
    /// The access logs.
    pub logs: &'a mut Logs,
    /// Facts about the process.
    pub env: &'a Env,
    /// Number of bytes that body stages may still be given in this pass over the connection.
    pub budget: &'a Cell<u64>,
    /// Wakes and detached requests of the thread.
    pub queues: &'a Queues,
}

/// Maximum number of bytes that the stages of a connection's bodies are given in one turn, before their output is
/// written and other connections have their turn. Compressing this many takes about a millisecond.
pub const BODY_BUDGET_BYTES: u64 = 32 << 10;
