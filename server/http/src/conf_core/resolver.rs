//! `resolver` and `resolver_timeout`: the name servers for lookups at run time.
//!
//! Absent: the lookups themselves, and the requests for OCSP responses that use them (`background_fetch`).
//!
//! Source: nginx documentation, `ngx_http_core_module`.

use std::sync::Arc;

use conf::Contexts;

use crate::settings;
use crate::settings_set::inherited;
use server_base::from_args::Millis;
pub use server_base::name_servers::NameServers;

settings! {
    /// How names are resolved at run time.
    pub struct ResolverLoc: Location {
        /// How long to wait for a name to be resolved.
        timeout "resolver_timeout": Millis = Millis(30_000), "30s", Contexts::HTTP_SERVER_LOCATION;
    }
    extra {
        /// `resolver`, if there is one.
        servers: Option<Arc<NameServers>> = inherited
    }
}
