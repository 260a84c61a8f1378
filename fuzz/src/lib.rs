//! Code shared by fuzz targets.

pub mod cgi_peer;
pub mod client_peer;
pub mod h2_short;
pub mod joined;
pub mod keepalive_peer;
pub mod server_peer;
pub mod spdy_short;
