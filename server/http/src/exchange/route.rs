//! The route of a request: the configuration it runs under, and its place there.

use std::rc::Rc;

use super::part::part;
use crate::conf_core::CoreLoc;
use crate::http::{LocalHttp, Location, Server};
use crate::settings_set::Conf;

part! {
    /// Configuration, port, server and location of a request, and the redirections that led there.
    pub struct RequestRoute(http: Rc<LocalHttp>) {
        /// The configuration this exchange runs under.
        pub http: Rc<LocalHttp> = http => keep,
        /// Index of the port in [`Http::ports`](crate::http::Http::ports).
        pub port: usize => keep,
        /// Index of the server.
        pub server: usize => keep,
        /// Index of the location.
        pub location: usize => keep,
        /// An internal redirect, a rewrite or an error page made this request.
        pub internal: bool,
        /// A rewrite changed the URI: look for a location again.
        pub uri_changed: bool,
        /// Remaining redirections. nginx counts down and fails at 0, so one less than the initial number succeeds.
        pub uri_changes: u8 = MAX_URI_CHANGES + 1,
        /// An error page is being served.
        pub error_page: bool,
        /// Status of the error being served, 0 for none.
        pub err_status: u16,
    }
}

// These functions read settings while other parts of the exchange change. Code that passes the whole exchange on
// holds the configuration (`Rc::clone(&x.route.http)`) and reads them with [`Exchange::loc`](super::Exchange::loc)
// and its like.
impl RequestRoute {
    /// The server's settings of one module.
    pub fn srv<T: Conf>(&self) -> &T {
        self.own_server().confs.get()
    }

    /// The location's settings of one module.
    pub fn loc<T: Conf>(&self) -> &T {
        self.own_location().confs.get()
    }

    /// The location's settings of the core: a faster [`Self::loc`].
    #[inline]
    pub fn core_loc(&self) -> &CoreLoc {
        &self.own_location().core
    }

    /// Counts a redirection; false when there have been too many.
    pub(crate) fn spend_redirect(&mut self) -> bool {
        self.uri_changes = self.uri_changes.saturating_sub(1);
        self.uri_changes > 0
    }

    /// The server.
    #[inline]
    pub fn own_server(&self) -> &Server {
        &self.http.servers[self.server]
    }

    /// The location.
    #[inline]
    pub fn own_location(&self) -> &Location {
        &self.http.locations[self.location]
    }
}

/// nginx's limit of internal redirections of one request (NGX_HTTP_MAX_URI_CHANGES).
pub const MAX_URI_CHANGES: u8 = 10;
