//! Settings and zones of the response cache, for any prefix of directives.
//!
//! ```text
//! conf         settings of a location, as requests read them
//! counts       numbers of requests by their result
//! zone         a cache: its entries, directory and counts, shared by threads and kept over reloads
//! path         *_cache_path, as written
//! declared     the caches of one configuration
//! directives   values of the other directives
//! upkeep       the periodic task of a cache, which opens its directory
//! work         steps of loader, manager and purger
//! ```
//!
//! Absent: the steps of a request, which are in [`upstream`](crate::upstream); entries and files, which are in
//! [`server_cache`].
//!
//! Source: nginx documentation, `ngx_http_proxy_module`.

pub mod conf;
pub mod counts;
pub mod declared;
pub mod directives;
pub mod path;
mod upkeep;
mod work;
pub mod zone;

pub use server_cache::index::{PurgeError, PurgeMode};
pub use server_cache::key::CacheKey;
pub use server_cache::response_head::HeadFormat;
