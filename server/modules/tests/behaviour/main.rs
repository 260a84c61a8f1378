//! Details of nginx's documentation and sources that no test of a whole server shows at a glance: one site in memory
//! for each question.

mod addresses;
mod ahead;
mod auth;
mod bodies;
mod browsers;
mod charset;
mod compressing;
mod disk;
mod errors;
mod experiments;
mod fields;
mod films;
mod frozen;
mod gateway_params;
mod gateway_settings;
mod gateways;
mod geoip;
mod geoip2;
mod geoip_database;
mod lab_dashboard;
mod limits;
mod links;
mod listing;
mod mapping;
mod memcached;
mod packaged;
mod precompressed;
mod proxy_fields;
mod proxy_settings;
mod proxy_targets;
mod proxying;
mod referers;
mod rewriting;
mod rtt_map;
mod servers;
mod site;
mod ssi;
mod subrequests;
#[path = "../../../../engines/geoip/src/testing.rs"]
mod testing;
mod tls_clients;
mod tls_settings;
mod tls_stapling;
mod userids;
mod variables;
