//! Tests of HTTP: connections, requests, responses, static files and modules of content.

#[path = "../common/tls_client.rs"]
mod tls_client;

mod access_control;
mod aio;
mod bad_input_bodies;
mod bad_input_framing;
mod bad_input_headers;
mod bad_input_http2;
mod browser;
mod compression;
mod computed_paths;
mod conditional_requests;
mod content_types;
mod dav;
mod dav_destination;
mod dav_errors;
mod example_php;
mod field_whitespace;
mod first_byte_sampling;
mod freshness;
mod freshness_together;
mod geoip;
mod http2;
mod http2_ending;
mod keepalive;
mod locations;
mod open_files_memory;
mod paths_and_ranges;
mod proxy_protocol;
mod push_and_early_hints;
mod redirects;
mod replaced_content;
mod responses;
mod server_names;
mod spdy;
mod spdy_clients;
mod spdy_servers;
mod static_files;
mod subrequests;
mod unread_bodies;
mod uploads;
