//! Settings and zones of the response cache, for any prefix of directives.
//!
//! ```text
//! conf         settings of a location, as requests read them
//! zone         a cache: its entries, directory and counts, shared by threads and kept over reloads
//! path         *_cache_path, as written
//! declared     the caches of one configuration
//! directives   values of the other directives
//! upkeep, work periodic work: opens the directory, loads, removes and purges files
//! ```
//!
//! Absent: the steps of a request, which are in [`upstream`](crate::upstream); entries and files, which are in
//! [`server_cache`].
//!
//! Source: nginx documentation, `ngx_http_proxy_module`.

pub mod conf;
mod work;
pub mod zone;
