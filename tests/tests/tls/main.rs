//! Tests of TLS: handshakes, certificates, early data.

#[path = "../common/tls_client.rs"]
mod tls_client;

mod bad_input;
mod handshakes;
mod many_certificates;
mod mozilla;
mod ssl_certificate_watch;
mod ssl_early_data;
mod ssl_stapling;
mod ssl_verify_client;
mod to_servers;
mod variable_certificates;
