//! Tests of `proxy_pass`, its groups of servers and its cache.

#[path = "../common/tls_client.rs"]
mod tls_client;

mod api;
mod api_counters;
mod applications;
mod balancing;
mod cache;
mod cache_attacks;
mod cache_conditions;
mod cache_disk;
mod cache_files;
mod cache_fills;
mod cache_invalidation;
mod cache_kills;
mod cache_open_files;
mod cache_purges;
mod cache_reloads;
mod cache_reports;
mod cache_server;
mod cache_stale;
mod cache_suite;
mod cache_together;
mod cache_variants;
mod client_abort;
mod cut_attempts;
mod disk_full;
mod early_response;
mod faults;
mod followed_names;
mod health_checks;
mod mirrors;
mod ntlm;
mod post_action;
mod proxy_bind;
mod proxy_pass;
mod proxy_to_itself;
mod queue;
mod reload;
mod responses;
mod retries;
mod retry_directives;
mod servers;
mod sticky;
mod sticky_compared;
mod zones;
