//! TLS sessions shared by connections, and known properties of their servers.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tls::{ClientConfig, ClientOptions, Versions};

use crate::client::trust::{SESSIONS, Trust, server_trust};
use crate::client::{Protocol, Url};

/// A store of sessions; clones share it.
#[derive(Clone, Default)]
pub struct Sessions(Option<Arc<Mutex<Kept>>>);

#[derive(Default)]
struct Kept {
    /// Sessions are stored with the TLS settings of their connection.
    configs: Vec<(Trust, Versions, ClientConfig)>,
    /// The protocol that servers have given tickets for, by host and port.
    protocols: HashMap<(String, u16), Protocol>,
}

impl fmt::Debug for Sessions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = if self.0.is_some() { "shared" } else { "none" };
        write!(out, "Sessions({kept})")
    }
}

impl Sessions {
    /// No store: each handshake is a full one.
    #[must_use]
    pub const fn none() -> Self {
        Self(None)
    }

    /// An empty store.
    #[must_use]
    pub fn shared() -> Self {
        Self(Some(Arc::default()))
    }

    /// The settings of a connection.
    pub(super) fn config(
        &self,
        trust: &Trust,
        versions: Versions,
        offered: ClientOptions,
    ) -> Result<ClientConfig, String> {
        let Some(kept) = &self.0 else {
            return build(trust, versions, offered, 0);
        };
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut known = kept.configs.iter();
        if let Some((_, _, config)) = known.find(|one| one.0 == *trust && one.1 == versions) {
            return Ok(config.derived(offered));
        }
        let config = build(trust, versions, offered, SESSIONS)?;
        kept.configs.push((trust.clone(), versions, config.clone()));
        Ok(config)
    }

    /// A server has given a ticket on a connection of this protocol.
    pub(super) fn ticket_came(&self, server: &Url, protocol: Protocol) {
        if let Some(kept) = &self.0 {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.protocols.insert(key(server), protocol);
        }
    }

    /// Returns the protocol of the last ticket of a server, which early data must use (RFC 8446 section 4.2.10).
    pub(super) fn protocol(&self, server: &Url) -> Option<Protocol> {
        let kept = self.0.as_ref()?.lock();
        let kept = kept.unwrap_or_else(PoisonError::into_inner);
        kept.protocols.get(&key(server)).copied()
    }
}

fn key(server: &Url) -> (String, u16) {
    (server.host.clone(), server.port)
}

fn build(
    trust: &Trust,
    versions: Versions,
    offered: ClientOptions,
    sessions: usize,
) -> Result<ClientConfig, String> {
    let trust = server_trust(trust)?;
    ClientConfig::with_options(trust, versions, offered, sessions)
        .map_err(|error| error.to_string())
}
