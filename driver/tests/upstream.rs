//! Attempts with servers over real sockets: one worker thread, a handler that passes requests on, and scripted servers.
//!
//! The handler collects the response and reports it in one line. Absent: the state machine of proxied requests.

#[path = "upstream/applications.rs"]
mod applications;
#[path = "upstream/attempts.rs"]
mod attempts;
#[path = "upstream/server.rs"]
mod server;
#[path = "support/setup.rs"]
mod setup;
#[path = "upstream/site.rs"]
mod site;
#[path = "upstream/untouched.rs"]
mod untouched;
