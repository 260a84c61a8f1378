//! Tests of logs and metrics.

#[path = "../common/tls_client.rs"]
mod tls_client;

mod access_and_error_logs;
mod clients;
mod clients_http2;
mod debugging;
mod error_messages;
mod error_texts;
mod json;
mod metrics;
mod rotation;
mod syslog;
