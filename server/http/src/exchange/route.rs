//! Where a request is handled: the configuration it runs under, and its place there.

use std::rc::Rc;

use super::part::part;
use crate::http::LocalHttp;

part! {
    /// Port, server and location of a request, and the redirections that led there.
    pub struct RequestRoute(http: Rc<LocalHttp>, port: usize) {
        /// The configuration this exchange runs under.
        pub http: Rc<LocalHttp> = http,
        /// Index of the port in [`Http::ports`](crate::http::Http::ports).
        pub port: usize = port,
        /// Index of the server.
        pub server: usize => keep,
        /// Index of the location.
        pub location: usize => keep,
        /// An internal redirect, a rewrite or an error page made this request.
        pub internal: bool,
        /// A rewrite changed the URI: look for a location again.
        pub uri_changed: bool,
        /// Redirections left. nginx counts down and fails at 0, so that so many changes are allowed and one more is not.
        pub uri_changes: u8 = MAX_URI_CHANGES + 1,
        /// An error page is being served.
        pub error_page: bool,
    }
}

/// nginx's limit of internal redirections of one request (NGX_HTTP_MAX_URI_CHANGES).
pub const MAX_URI_CHANGES: u8 = 10;
