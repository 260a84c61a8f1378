//! `queue` in an `upstream` block: requests that wait until a server can be chosen.
//!
//! The queue itself is in [`server_upstream::queue`].
//!
//! Source: nginx documentation, `ngx_http_upstream_module`, `queue`.

use conf::{ConfError, Contexts, Directive};
use server_http::assemble::ConfigBuilder;
use server_upstream::group::QueueLimits;

use super::set;

conf::directives! {
    pub(super) const ROWS: ConfigBuilder;

    /// Requests that wait on each worker thread until a server can be chosen, and the longest wait; further requests get 502.
    directive "queue": Contexts::UPSTREAM, TAKE12, "", "number [timeout=time]"
        => |b, d| set(b, d, |block| &mut block.queue, parse);
}

fn parse(d: &Directive) -> Result<QueueLimits, ConfError> {
    let requests = conf::parse_number(d.arg(0)).and_then(|n| usize::try_from(n).ok());
    let invalid = || ConfError::invalid(d, d.word(0));
    let requests = requests
        .filter(|requests| *requests > 0)
        .ok_or_else(invalid)?;
    let timeout_ms = match d.args.get(1) {
        None => TIMEOUT_MS,
        Some(word) => (word.text.strip_prefix(b"timeout="))
            .and_then(conf::parse_time_ms)
            .filter(|timeout_ms| *timeout_ms > 0)
            .ok_or_else(|| ConfError::parameter(d, word))?,
    };
    Ok(QueueLimits {
        requests,
        timeout_ms,
    })
}

/// Default of `timeout`.
const TIMEOUT_MS: u64 = 60_000;
