//! Health checks: requests of the server itself to each peer of a group.
//!
//! ```text
//! prober         begins checks when they are due, records their results in the group
//! probe          a check in progress, with its verdict
//! examine        the step of a check behind the response head
//! response_test  tests of `match`
//! ```
//!
//! A check is a [`DetachedRequest`](crate::exchange::DetachedRequest) handled by the content handler of its location, so
//! all settings of the location apply. States of peers are in [`server_upstream::health::active`]. Absent: the
//! directives.
//!
//! Source: nginx documentation, `ngx_http_upstream_hc_module`.

pub(super) mod examine;
pub(super) mod probe;
mod prober;
pub mod response_test;

use std::sync::Arc;

use server_upstream::group::GroupId;
use server_upstream::health::active::CheckSpec;

use crate::settings_set::{Conf, Scope, SettingsDef};
pub use prober::Prober;
pub use response_test::ResponseTest;

/// The health checks of a configuration.
#[derive(Debug, Default)]
pub struct HealthChecks {
    /// All checks, in the order of their directives.
    pub list: Vec<HealthCheck>,
}

impl Conf for HealthChecks {
    fn def() -> &'static SettingsDef {
        static UNIT: SettingsDef =
            SettingsDef::new(Scope::Main, || Arc::new(HealthChecks::default()));
        &UNIT
    }

    fn merge(&mut self, _: Option<&Self>) {}
}

/// One `health_check`.
#[derive(Debug)]
pub struct HealthCheck {
    /// The group with the checked servers.
    pub group: GroupId,
    /// Index of the `server` block.
    pub server: usize,
    /// Index of the location.
    pub location: usize,
    /// Its limits, as the group knows it.
    pub spec: CheckSpec,
    /// `interval`: from the begin of a check to the begin of the next one, milliseconds.
    pub interval_ms: u64,
    /// `jitter`: maximum of a random delay, milliseconds.
    pub jitter_ms: u64,
    /// `uri`.
    pub uri: CheckUri,
    /// `port`: used in the place of the server's port.
    pub port: Option<u16>,
    /// `match`; `None`: the status must be 200 to 399.
    pub test: Option<Arc<ResponseTest>>,
    /// `keepalive_time`, milliseconds; `None`: each check has a new connection.
    pub keepalive_time_ms: Option<u64>,
}

/// The URI of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckUri {
    /// As written.
    pub written: Box<[u8]>,
    /// The normalised path.
    pub path: Box<[u8]>,
    /// The arguments.
    pub args: Box<[u8]>,
}
