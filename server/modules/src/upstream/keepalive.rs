//! `keepalive` and its limits: idle connections to the servers of a group.
//!
//! Absent: the pools, which belong to the driver.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`, `keepalive`.

use conf::{ConfError, Contexts, Directive};
use server_http::assemble::ConfigBuilder;
use server_upstream::group::Keepalive;

use super::set;

conf::directives! {
    pub(super) const ROWS: ConfigBuilder;

    /// Idle connections to the group's servers that a worker thread keeps, 0 for none; with local each location has its own.
    directive "keepalive": Contexts::UPSTREAM, TAKE12, "32 local", "connections [local]" => keepalive;

    /// Largest number of requests of one connection to a server.
    directive "keepalive_requests": Contexts::UPSTREAM, TAKE1, "1000", "number"
        => |b, d| set(b, d, |block| &mut block.keepalive.requests, conf::number);

    /// Time after which a connection to a server is closed, with its next response.
    directive "keepalive_time": Contexts::UPSTREAM, TAKE1, "1h", "time"
        => |b, d| set(b, d, |block| &mut block.keepalive.time_ms, conf::time_ms);

    /// How long an idle connection to a server is kept.
    directive "keepalive_timeout": Contexts::UPSTREAM, TAKE1, "60s", "timeout"
        => |b, d| set(b, d, |block| &mut block.keepalive.timeout_ms, conf::time_ms);
}

/// The directives about idle connections in an `upstream` block.
#[derive(Default)]
pub(super) struct KeepaliveDirectives {
    /// Number of connections, and whether locations keep pools of their own.
    connections: Option<(usize, bool)>,
    requests: Option<u64>,
    time_ms: Option<u64>,
    timeout_ms: Option<u64>,
}

impl KeepaliveDirectives {
    /// Returns the settings of idle connections; `None`: none are kept.
    pub(super) fn resolve(&self) -> Option<Keepalive> {
        let (connections, is_local) = self.connections.unwrap_or(KEPT);
        (connections > 0).then_some(Keepalive {
            connections,
            is_local,
            requests: self.requests.unwrap_or(REQUESTS),
            time_ms: self.time_ms.unwrap_or(TIME_MS),
            timeout_ms: self.timeout_ms.unwrap_or(TIMEOUT_MS),
        })
    }
}

fn keepalive(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let parse = |d: &Directive| {
        let connections = conf::parse_number(d.arg(0)).and_then(|n| usize::try_from(n).ok());
        let connections = connections.ok_or_else(|| {
            let text = format!(
                "invalid value \"{}\" in \"keepalive\" directive",
                d.arg_str(0)
            );
            ConfError::word(d, d.word(0), text)
        })?;
        match d.args.get(1) {
            None => Ok((connections, false)),
            Some(word) if word.text == b"local" => Ok((connections, true)),
            Some(word) => Err(ConfError::parameter(d, word)),
        }
    };
    set(b, d, |block| &mut block.keepalive.connections, parse)
}

/// Default of `keepalive`: connections, and whether each location has its own.
const KEPT: (usize, bool) = (32, true);
/// Defaults of the `keepalive_*` directives.
const REQUESTS: u64 = 1000;
const TIME_MS: u64 = 3_600_000;
const TIMEOUT_MS: u64 = 60_000;
