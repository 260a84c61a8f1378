//! `resolver` and `resolver_timeout`: the servers that are asked for names at run time.
//!
//! Absent: what asks, which is what fetches OCSP responses (`background_fetch`).
//!
//! Source: nginx documentation, `ngx_http_core_module`.

use std::sync::Arc;

use conf::{ConfError, Contexts, Directive};

use crate::build::ConfigBuilder;
use crate::settings;
use server_base::from_args::Millis;
pub use server_base::name_servers::NameServers;
use server_base::name_servers::name_servers;

settings! {
    /// How names are resolved at run time.
    pub struct ResolverLoc: Location / PLAIN {
        /// How long to wait for a name to be resolved.
        timeout "resolver_timeout": Millis = Millis(30_000), "30s", Contexts::HTTP_SERVER_LOCATION;
    }
    extra {
        /// `resolver`, where there is one.
        servers: Option<Arc<NameServers>>
    }
    merge inherit;
}

fn inherit(own: &mut ResolverLoc, parent: Option<&ResolverLoc>) {
    if own.servers.is_none() {
        own.servers = parent.and_then(|parent| parent.servers.clone());
    }
}

pub(super) fn resolver(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    if b.conf_mut::<ResolverLoc>().servers.is_some() {
        return Err(ConfError::directive(d, "is duplicate"));
    }
    let servers = name_servers(b, d)?;
    b.conf_mut::<ResolverLoc>().servers = Some(Arc::new(servers));
    Ok(())
}
