//! The context of handlers without a driver.

use std::cell::Cell;

use server_base::clock::Clock;
use server_base::logs::Logs;
use server_http::exchange::{Ctx, Env, Queues};
use server_upstream::connector::Connector;

use crate::disk::Disk;

/// A context with these parts.
pub(crate) fn context<'a>(
    files: &'a mut Disk,
    connector: &'a mut dyn Connector,
    clock: &'a Clock,
    logs: &'a mut Logs,
    env: &'a Env,
    budget: &'a Cell<u64>,
    queues: &'a Queues,
) -> Ctx<'a> {
    Ctx {
        files,
        connector,
        clock,
        logs,
        env,
        budget,
        queues,
    }
}
