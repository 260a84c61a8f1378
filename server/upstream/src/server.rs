//! `server` of a group: its parameters, and the addresses of its host.
//!
//! Absent: the state of an address ([`crate::peer`]).
//!
//! Source: nginx documentation, `ngx_http_upstream_module`, `server`; nginx's behaviour.

use std::sync::Arc;

use conf::{ConfError, Directive};
use server_base::address::parse_endpoint;
use server_base::config::ConfigContext;

use crate::route::UpstreamAddr;

/// One `server`.
#[derive(Clone, Debug, Default)]
pub struct Server {
    /// The name as written.
    pub name: Arc<[u8]>,
    /// Its addresses; empty while its host is not found.
    pub addresses: Vec<UpstreamAddr>,
    /// The host that was not found when the configuration was read: it is resolved at run time.
    pub unresolved: Option<UnresolvedHost>,
    /// `weight`.
    pub weight: i64,
    /// `max_conns`; 0: no limit.
    pub max_conns: u64,
    /// `max_fails`; 0: failures do not count.
    pub max_fails: u64,
    /// `fail_timeout`, seconds.
    pub fail_timeout_s: u64,
    /// `backup`.
    pub is_backup: bool,
    /// `down`.
    pub is_down: bool,
}

/// A host that is resolved at run time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnresolvedHost {
    /// The name.
    pub name: String,
    /// The port of its addresses.
    pub port: u16,
    /// The error with its place; `None` for the host of one request.
    pub(crate) error: Option<ConfError>,
}

impl UnresolvedHost {
    /// Makes the host of one request.
    pub(crate) fn new(name: &str, port: u16) -> Self {
        Self {
            name: name.to_owned(),
            port,
            error: None,
        }
    }
}

impl Server {
    /// Makes a server with the defaults of the `server` directive.
    pub fn new() -> Self {
        Self {
            weight: 1,
            max_fails: 1,
            fail_timeout_s: 10,
            ..Self::default()
        }
    }

    /// Reads the address of a `server` directive, and looks up its host.
    ///
    /// # Errors
    /// nginx's.
    pub fn read_address(
        &mut self,
        cx: &mut dyn ConfigContext,
        d: &Directive,
    ) -> Result<(), ConfError> {
        let text = d.arg_str(0);
        self.name = Arc::from(d.arg(0));
        let mut missing = None;
        let mut look_up = |host: &str| {
            let found = cx.look_up(host);
            if found.is_none() {
                missing = Some(host.to_owned());
            }
            found
        };
        let error = |why: &str| {
            let text = format!("{why} in upstream \"{text}\"");
            ConfError::word(d, d.word(0), text)
        };
        match (
            parse_endpoint(text, SERVER_PORT, &mut look_up),
            &mut missing,
        ) {
            (Ok(found), _) => self.addresses = found.into_iter().map(UpstreamAddr::Inet).collect(),
            (Err(why), Some(name)) => {
                // The port was valid, since it is parsed before the lookup.
                let port = text
                    .split_once(':')
                    .and_then(|(_, port)| conf::parse_digits(port));
                self.unresolved = Some(UnresolvedHost {
                    name: std::mem::take(name),
                    port: port.unwrap_or(SERVER_PORT),
                    error: Some(error(why)),
                });
            }
            (Err(why), None) => return Err(error(why)),
        }
        Ok(())
    }

    /// Makes the server of an undefined group.
    pub(crate) fn implicit(host: &str) -> Self {
        Self {
            name: Arc::from(host.as_bytes()),
            ..Self::new()
        }
    }
}

/// Default port of a `server`.
const SERVER_PORT: u16 = 80;
